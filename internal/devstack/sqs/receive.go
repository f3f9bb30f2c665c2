package sqs

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

type receiveMessageInput struct {
	QueueURL                    string `json:"QueueUrl"`
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
}

type received struct {
	MessageID         string                    `json:"MessageId"`
	ReceiptHandle     string                    `json:"ReceiptHandle"`
	Body              string                    `json:"Body"`
	SumBody           string                    `json:"MD5OfBody"`
	Attributes        map[string]string         `json:"Attributes,omitempty"`
	MessageAttributes map[string]attributeValue `json:"MessageAttributes,omitempty"`
	SumAttributes     string                    `json:"MD5OfMessageAttributes,omitempty"`
}

type receiveMessageOutput struct {
	Messages []received `json:"Messages,omitempty"`
}

// request is a receive with the queue's defaults filled in.
type request struct {
	receiveMessageInput
	most       int
	visibility time.Duration
	wait       time.Duration
}

func (s *Server) receiveMessage(r *http.Request, in receiveMessageInput) (receiveMessageOutput, error) {
	req, err := s.parseReceive(in)
	if err != nil {
		return receiveMessageOutput{}, err
	}
	deadline := s.cfg.Now().Add(req.wait)
	for {
		// A caller that has gone must not take a message with it.
		if err := r.Context().Err(); err != nil {
			return receiveMessageOutput{}, err
		}
		got, wake, err := s.take(req, deadline)
		if err != nil || len(got) > 0 || wake.after <= 0 {
			return receiveMessageOutput{Messages: got}, err
		}
		fired, stop := s.cfg.Timer(wake.after)
		select {
		case <-wake.changed:
		case <-fired:
		case <-r.Context().Done():
		}
		stop()
	}
}

func (s *Server) parseReceive(in receiveMessageInput) (request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return request{}, err
	}
	req := request{
		receiveMessageInput: in,
		most:                1,
		visibility:          q.settings.duration(visibilityTimeout),
		wait:                q.settings.duration(receiveWaitTimeSeconds),
	}
	if in.MaxNumberOfMessages != nil {
		req.most = *in.MaxNumberOfMessages
	}
	if req.most < 1 || req.most > BatchEntriesMax {
		return request{}, outOfRange("MaxNumberOfMessages", 1, BatchEntriesMax)
	}
	if err := seconds(visibilityTimeout, visibilityTimeout, in.VisibilityTimeout, &req.visibility); err != nil {
		return request{}, err
	}
	if err := seconds("WaitTimeSeconds", receiveWaitTimeSeconds, in.WaitTimeSeconds, &req.wait); err != nil {
		return request{}, err
	}
	return req, checkSystemNames(append(in.AttributeNames, in.MessageSystemAttributeNames...))
}

// seconds reads an optional parameter that has the limits of a queue attribute.
func seconds(name, attribute string, in *int, out *time.Duration) error {
	if in == nil {
		return nil
	}
	if limits := numeric[attribute]; *in < limits.from || *in > limits.to {
		return outOfRange(name, limits.from, limits.to)
	}
	*out = time.Duration(*in) * time.Second
	return nil
}

// wake says when there is reason to look again: when the queue changes, or after
// some time. Nothing more can come when after is not above zero.
type wake struct {
	changed <-chan struct{}
	after   time.Duration
}

// take receives what can be received now.
func (s *Server) take(req request, deadline time.Time) ([]received, wake, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(req.QueueURL)
	if err != nil {
		return nil, wake{}, err
	}
	now := s.cfg.Now()
	q.settle(now)
	got := s.handOut(q, req, now)
	// Only a short poll is told about the limit, as the service documents.
	if len(got) == 0 && q.ready.Len() > 0 && req.wait == 0 {
		return nil, wake{}, refuse("OverLimit", "OverLimit", "There are too many messages in flight.")
	}
	until := deadline
	if m := q.waiting.first(); m != nil && m.visibleAt.Before(until) {
		until = m.visibleAt
	}
	return got, wake{changed: q.changed, after: until.Sub(now)}, nil
}

// handOut gives ready messages to a receiver, and moves those that were received
// too often to the dead-letter queue.
func (s *Server) handOut(q *queue, req request, now time.Time) (got []received) {
	var taken []*message
	for len(taken) < req.most {
		m := q.ready.first()
		if m == nil {
			break
		}
		if p := q.settings.redrive; p != nil && m.receives >= int(p.MaxReceiveCount) {
			s.bury(q, m)
			continue
		}
		if q.inFlight+len(taken) >= s.cfg.InFlightMax {
			break
		}
		q.lift(m)
		m.receive(now, req.visibility)
		taken = append(taken, m)
		got = append(got, q.show(m, req))
	}
	// Only now, so that a visibility timeout of zero does not hand out one message
	// twice in one answer; it goes behind the others.
	for _, m := range taken {
		m.order = s.nextOrder()
		q.place(m, now)
	}
	return got
}

func (m *message) receive(now time.Time, visibility time.Duration) {
	m.receives++
	m.receivedAt, m.visibleAt, m.inFlight = now, now.Add(visibility), true
	if m.firstReceivedAt.IsZero() {
		m.firstReceivedAt = now
	}
}

// show is what the receiver sees of a message.
func (q *queue) show(m *message, req request) received {
	attributes := pick(m.attrs, req.MessageAttributeNames)
	return received{
		MessageID:         m.id,
		ReceiptHandle:     handle(q, m),
		Body:              m.body,
		SumBody:           m.sum,
		Attributes:        m.systemAttributes(append(req.AttributeNames, req.MessageSystemAttributeNames...)),
		MessageAttributes: attributes,
		SumAttributes:     sumAttributes(attributes),
	}
}

// senderID stands for whoever sent the message: the local stack knows no users.
const senderID = "AIDALOCALSTACK"

var systemAttributeNames = []string{
	"All", "SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp",
	"SequenceNumber", "MessageDeduplicationId", "MessageGroupId", traceHeader, "DeadLetterQueueSourceArn",
}

func checkSystemNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(systemAttributeNames, name) {
			return unknownAttribute(name)
		}
	}
	return nil
}

func (m *message) systemAttributes(wanted []string) map[string]string {
	all := map[string]string{
		"SenderId":                         senderID,
		"SentTimestamp":                    milliseconds(m.sentAt),
		"ApproximateReceiveCount":          strconv.Itoa(m.receives),
		"ApproximateFirstReceiveTimestamp": milliseconds(m.firstReceivedAt),
		"MessageGroupId":                   m.group,
		traceHeader:                        m.trace,
		"DeadLetterQueueSourceArn":         m.source,
	}
	for name, value := range all {
		if value == "" || !slices.Contains(wanted, name) && !slices.Contains(wanted, "All") {
			delete(all, name)
		}
	}
	return all
}

func milliseconds(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
