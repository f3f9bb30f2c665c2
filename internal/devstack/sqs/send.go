package sqs

import (
	"net/http"
	"regexp"
	"time"
)

// BatchEntriesMax bounds every batch call.
const BatchEntriesMax = 10

var entryID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// outgoing is what SendMessage and an entry of SendMessageBatch have in common.
type outgoing struct {
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       map[string]attributeValue
	MessageSystemAttributes map[string]attributeValue
	MessageGroupID          string `json:"MessageGroupId"`
}

type sendMessageInput struct {
	QueueURL string `json:"QueueUrl"`
	outgoing
}

type sent struct {
	MessageID     string `json:"MessageId"`
	SumBody       string `json:"MD5OfMessageBody"`
	SumAttributes string `json:"MD5OfMessageAttributes,omitempty"`
	SumSystem     string `json:"MD5OfMessageSystemAttributes,omitempty"`
}

func (s *Server) sendMessage(_ *http.Request, in sendMessageInput) (sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return sent{}, err
	}
	return s.send(q, in.outgoing)
}

// send checks a message and puts it in. The lock is held.
func (s *Server) send(q *queue, out outgoing) (sent, error) {
	delay, err := q.check(out)
	if err != nil {
		return sent{}, err
	}
	now := s.cfg.Now()
	m := &message{
		id:        s.cfg.NewID(),
		order:     s.nextOrder(),
		body:      out.MessageBody,
		sum:       sum(out.MessageBody),
		attrs:     out.MessageAttributes,
		group:     out.MessageGroupID,
		sentAt:    now,
		visibleAt: now.Add(delay),
	}
	if trace, ok := out.MessageSystemAttributes[traceHeader]; ok {
		m.trace = string(trace.value())
	}
	q.add(m, now)
	return sent{
		MessageID:     m.id,
		SumBody:       m.sum,
		SumAttributes: sumAttributes(out.MessageAttributes),
		SumSystem:     sumAttributes(out.MessageSystemAttributes),
	}, nil
}

func (s *Server) nextOrder() uint64 {
	s.sends++
	return s.sends
}

const traceHeader = "AWSTraceHeader"

// check refuses a message, or returns how long it is delayed.
func (q *queue) check(out outgoing) (time.Duration, error) {
	delay := q.settings.duration(delaySeconds)
	if out.DelaySeconds != nil {
		limits := numeric[delaySeconds]
		if *out.DelaySeconds < limits.from || *out.DelaySeconds > limits.to {
			return 0, outOfRange(delaySeconds, limits.from, limits.to)
		}
		delay = time.Duration(*out.DelaySeconds) * time.Second
	}
	if err := checkBody(out.MessageBody); err != nil {
		return 0, err
	}
	if err := checkAttributes(out.MessageAttributes); err != nil {
		return 0, err
	}
	for name, v := range out.MessageSystemAttributes {
		if name != traceHeader || v.DataType != "String" || len(v.value()) == 0 {
			return 0, invalidParameter("The only message system attribute is %s, a String.", traceHeader)
		}
	}
	if out.MessageGroupID != "" && !groupID.MatchString(out.MessageGroupID) {
		return 0, invalidParameter("MessageGroupId must be 1 to %d letters, digits and punctuation marks.", groupIDMax)
	}
	if most := q.settings.numbers[maximumMessageSize]; size(out.MessageBody, out.MessageAttributes) > most {
		return 0, invalidParameter("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", most)
	}
	return delay, nil
}

type sendEntry struct {
	ID string `json:"Id"`
	outgoing
}

type sendMessageBatchInput struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []sendEntry
}

type sentEntry struct {
	ID string `json:"Id"`
	sent
}

func (s *Server) sendMessageBatch(_ *http.Request, in sendMessageBatchInput) (batchOutput[sentEntry], error) {
	total := 0
	for _, e := range in.Entries {
		total += size(e.MessageBody, e.MessageAttributes)
	}
	return batch(s, in.QueueURL, in.Entries, func(e sendEntry) string { return e.ID },
		func() error {
			if total > MessageBytesMax {
				return refuse("BatchRequestTooLong", queryPrefix+"BatchRequestTooLong",
					"Batch requests cannot be longer than %d bytes. You have sent %d bytes.", MessageBytesMax, total)
			}
			return nil
		},
		func(q *queue, e sendEntry) (sentEntry, error) {
			done, err := s.send(q, e.outgoing)
			return sentEntry{ID: e.ID, sent: done}, err
		})
}

// batchOutput reports each entry of a batch on its own.
type batchOutput[Done any] struct {
	Successful []Done        `json:"Successful"`
	Failed     []failedEntry `json:"Failed"`
}

// batch checks a batch as a whole, then does each entry for itself.
func batch[Entry, Done any](
	s *Server, url string, entries []Entry, id func(Entry) string,
	whole func() error, one func(*queue, Entry) (Done, error),
) (batchOutput[Done], error) {
	out := batchOutput[Done]{Successful: []Done{}, Failed: []failedEntry{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(url)
	if err != nil {
		return out, err
	}
	if err := checkEntries(entries, id); err != nil {
		return out, err
	}
	if err := whole(); err != nil {
		return out, err
	}
	q.settle(s.cfg.Now())
	for _, e := range entries {
		if done, err := one(q, e); err != nil {
			out.Failed = append(out.Failed, failure(id(e), err))
		} else {
			out.Successful = append(out.Successful, done)
		}
	}
	return out, nil
}

func checkEntries[Entry any](entries []Entry, id func(Entry) string) error {
	if len(entries) == 0 {
		return refuse("EmptyBatchRequest", queryPrefix+"EmptyBatchRequest", "There should be at least one entry in the request.")
	}
	if len(entries) > BatchEntriesMax {
		return refuse("TooManyEntriesInBatchRequest", queryPrefix+"TooManyEntriesInBatchRequest",
			"Maximum number of entries per request are %d. You have sent %d.", BatchEntriesMax, len(entries))
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if !entryID.MatchString(id(e)) {
			return refuse("InvalidBatchEntryId", queryPrefix+"InvalidBatchEntryId",
				"The Id of a batch entry must be 1 to 80 letters, digits, hyphens and underscores.")
		}
		if seen[id(e)] {
			return refuse("BatchEntryIdsNotDistinct", queryPrefix+"BatchEntryIdsNotDistinct", "Two entries of the batch have the same Id.")
		}
		seen[id(e)] = true
	}
	return nil
}
