package sqs

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// handle names one receive of one message. Only the newest handle of a message
// deletes it.
func handle(q *queue, m *message) string {
	return base64.RawURLEncoding.EncodeToString([]byte(q.name + "/" + m.id + "/" + strconv.Itoa(m.receives)))
}

// receipt finds the message of a handle. The message is nil when it is gone, and
// newest is false when it has been received again since.
func (q *queue) receipt(h string) (m *message, newest bool, err error) {
	if h == "" {
		return nil, false, missingParameter("ReceiptHandle")
	}
	raw, err := base64.RawURLEncoding.DecodeString(h)
	if err != nil {
		return nil, false, receiptHandleIsInvalid()
	}
	parts := strings.Split(string(raw), "/")
	if len(parts) != 3 || parts[0] != q.name {
		return nil, false, receiptHandleIsInvalid()
	}
	m, ok := q.messages[parts[1]]
	if !ok {
		return nil, false, nil
	}
	return m, strconv.Itoa(m.receives) == parts[2], nil
}

type deleteMessageInput struct {
	QueueURL      string `json:"QueueUrl"`
	ReceiptHandle string
}

func (s *Server) deleteMessage(_ *http.Request, in deleteMessageInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return err
	}
	q.settle(s.cfg.Now())
	return s.delete(q, in.ReceiptHandle)
}

// delete removes the message of a handle. An old handle removes nothing and a
// message that is gone stays gone: both succeed, as the service documents.
func (s *Server) delete(q *queue, h string) error {
	m, newest, err := q.receipt(h)
	if err != nil || m == nil || !newest {
		return err
	}
	full := q.inFlight >= s.cfg.InFlightMax
	q.remove(m)
	if full {
		q.notify()
	}
	return nil
}

type deleteEntry struct {
	ID            string `json:"Id"`
	ReceiptHandle string
}

type deleteMessageBatchInput struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []deleteEntry
}

type doneEntry struct {
	ID string `json:"Id"`
}

func nothingMore() error { return nil }

func (s *Server) deleteMessageBatch(_ *http.Request, in deleteMessageBatchInput) (batchOutput[doneEntry], error) {
	return batch(s, in.QueueURL, in.Entries, func(e deleteEntry) string { return e.ID }, nothingMore,
		func(q *queue, e deleteEntry) (doneEntry, error) {
			return doneEntry{ID: e.ID}, s.delete(q, e.ReceiptHandle)
		})
}

type visibilityEntry struct {
	ID string `json:"Id"`
	visibility
}

type visibility struct {
	ReceiptHandle     string
	VisibilityTimeout *int
}

type changeMessageVisibilityInput struct {
	QueueURL string `json:"QueueUrl"`
	visibility
}

func (s *Server) changeMessageVisibility(_ *http.Request, in changeMessageVisibilityInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return err
	}
	q.settle(s.cfg.Now())
	return s.hide(q, in.visibility)
}

// hide changes when a message in flight can be received again.
func (s *Server) hide(q *queue, v visibility) error {
	if v.VisibilityTimeout == nil {
		return missingParameter(visibilityTimeout)
	}
	var timeout time.Duration
	if err := seconds(visibilityTimeout, visibilityTimeout, v.VisibilityTimeout, &timeout); err != nil {
		return err
	}
	m, newest, err := q.receipt(v.ReceiptHandle)
	if err != nil {
		return err
	}
	if m == nil {
		return invalidParameter("The value for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.")
	}
	if !newest || !m.inFlight {
		return refuse("MessageNotInflight", queryPrefix+"MessageNotInflight", "The message is not in flight under this receipt handle.")
	}
	now := s.cfg.Now()
	if now.Add(timeout).After(m.receivedAt.Add(VisibilityMax)) {
		return invalidParameter("The value for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [%d seconds].", int(VisibilityMax.Seconds()))
	}
	q.lift(m)
	m.visibleAt, m.inFlight = now.Add(timeout), true
	q.place(m, now)
	return nil
}

type changeMessageVisibilityBatchInput struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []visibilityEntry
}

func (s *Server) changeMessageVisibilityBatch(_ *http.Request, in changeMessageVisibilityBatchInput) (batchOutput[doneEntry], error) {
	return batch(s, in.QueueURL, in.Entries, func(e visibilityEntry) string { return e.ID }, nothingMore,
		func(q *queue, e visibilityEntry) (doneEntry, error) {
			return doneEntry{ID: e.ID}, s.hide(q, e.visibility)
		})
}
