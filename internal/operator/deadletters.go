package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"dakghar/internal/webhook"
)

// DeadLetters is one dead-letter queue.
type DeadLetters interface {
	// Receive takes some letters and hides them from other readers for a time. None
	// means that none was found.
	Receive(ctx context.Context, hidden time.Duration) ([]webhook.Letter, error)
	// GiveBack shows letters again at once, and Remove deletes them.
	GiveBack(ctx context.Context, letters []webhook.Letter) error
	Remove(ctx context.Context, letters []webhook.Letter) error
	Depth(ctx context.Context) (webhook.Depth, error)
	// Move has the queue's service bring all letters back to where they came from. A
	// move that runs already is an error.
	Move(ctx context.Context, rate int) error
	LastMove(ctx context.Context) (webhook.Move, bool, error)
}

// Queue names one queue of dead letters.
type Queue string

// The queues. The first two have wake-ups, the last one reports.
const (
	QueueEvents     Queue = "events"     // what the processor could not take
	QueueDeliveries Queue = "deliveries" // what the dispatcher could not take
	QueueRelay      Queue = "relay"      // what the stream's trigger gave up
)

// Queues lists every queue, in the order in which they are shown and dealt with.
func Queues() []Queue { return []Queue{QueueEvents, QueueDeliveries, QueueRelay} }

// wakeQueue is a queue of dead wake-ups. It is made for one look or one redrive,
// since its judge remembers what it has read.
type wakeQueue struct {
	name    Queue
	letters DeadLetters
	judge   judge
}

// wakeQueue returns a queue by its name; false means that it has no wake-ups.
func (o *Operator) wakeQueue(q Queue) (wakeQueue, bool) {
	switch q {
	case QueueEvents:
		return wakeQueue{q, o.EventDeadLetters, o.judgeEvents()}, true
	case QueueDeliveries:
		return wakeQueue{q, o.DeliveryDeadLetters, o.judgeDeliveries()}, true
	case QueueRelay:
	}
	return wakeQueue{}, false
}

// LettersMax bounds the letters that one list or redrive looks at.
const LettersMax = 10_000

// How long a reading hides letters: a list gives them back as soon as it has
// them, a sift at the end of each portion, and a redrive of reports deletes them
// when every promise was brought near. A command that dies leaves them hidden for
// no longer.
const (
	listHides   = 30 * time.Second
	siftHides   = 2 * time.Minute
	reportsHide = 10 * time.Minute
)

// Report is what the stream's trigger says about records that it gave up. It
// names where they were in the stream, never which rows they were.
type Report struct {
	webhook.Letter

	// Readable is false where the message is no such report.
	Readable    bool
	Shard       string
	First, Last string // sequence numbers
	Records     int
	// From and To are when the first and the last record came, to the second.
	From, To  time.Time
	Condition string // RetryAttemptsExhausted, MaximumRecordAgeExceeded, …
	Tries     int
}

// Behind counts the promises that the relay ought to have published by now.
type Behind struct {
	Unpublished int // and due
	OldestDue   time.Time
	// LastWake is when the reconciler has come for the last of them, by itself.
	LastWake time.Time
}

// Letters is what one look into a dead-letter queue found. A queue shows a
// sample: it never promises all that it holds.
type Letters[T any] struct {
	Depth webhook.Depth // about, before the look
	Found []T
	// Move is the newest move of the queue's letters, nil if there was none.
	Move *webhook.Move
}

// Letters looks at up to limit wake-ups in the dead letters of one of the queues
// that carry them. Nothing is taken out; each look raises their receive counts by one.
func (o *Operator) Letters(ctx context.Context, queue Queue, limit int) (Letters[DeadLetter], error) {
	var found Letters[DeadLetter]
	w, ok := o.wakeQueue(queue)
	if !ok {
		return found, misuse(fmt.Sprintf("the queue %q has no wake-ups", queue))
	}
	raw, depth, err := o.look(ctx, w.letters, limit)
	if err != nil {
		return found, err
	}
	found.Depth = depth
	if found.Move, err = w.lastMove(ctx); err != nil {
		return found, err
	}
	for _, l := range raw {
		letter, err := w.judge(ctx, l)
		if err != nil {
			return found, err
		}
		found.Found = append(found.Found, letter)
	}
	return found, nil
}

// RelayReports looks at up to limit reports of the stream's trigger, and at the
// promises that are behind.
func (o *Operator) RelayReports(ctx context.Context, limit int) (Letters[Report], Behind, error) {
	var found Letters[Report]
	raw, depth, err := o.look(ctx, o.RelayFailures, limit)
	if err != nil {
		return found, Behind{}, err
	}
	found.Depth = depth
	for _, l := range raw {
		found.Found = append(found.Found, reportOf(l))
	}
	behind, err := o.behind(ctx)
	return found, behind, err
}

// look receives letters until there are no new ones, and gives all of them back
// before anything is done with what they say.
func (o *Operator) look(ctx context.Context, q DeadLetters, limit int) ([]webhook.Letter, webhook.Depth, error) {
	if limit < 1 || limit > LettersMax {
		return nil, webhook.Depth{}, misuse(fmt.Sprintf("--limit is 1 to %d", LettersMax))
	}
	depth, err := q.Depth(ctx)
	if err != nil {
		return nil, depth, unreachable("the queue", err)
	}
	letters, err := o.take(ctx, q, limit, listHides)
	// Also when the command was told to end. Those that stay hidden show themselves.
	_ = q.GiveBack(context.WithoutCancel(ctx), letters)
	if err != nil {
		return nil, depth, unreachable("the queue", err)
	}
	return letters[:min(limit, len(letters))], depth, nil
}

// take receives letters and keeps them hidden. A letter that comes twice, since
// the queue promises no more than at least once, counts once, by its newest handle.
func (o *Operator) take(ctx context.Context, q DeadLetters, limit int, hidden time.Duration) ([]webhook.Letter, error) {
	var letters []webhook.Letter
	place := map[string]int{}
	for len(letters) < limit {
		some, err := q.Receive(ctx, hidden)
		if err != nil {
			return letters, err
		}
		known := len(letters)
		for _, l := range some {
			if at, twice := place[l.ID]; twice {
				letters[at] = l
				continue
			}
			place[l.ID] = len(letters)
			letters = append(letters, l)
		}
		if len(letters) == known {
			break
		}
	}
	return letters, nil
}

// reportOf reads what Lambda sends to an on-failure destination.
func reportOf(l webhook.Letter) Report {
	var doc struct {
		Request struct {
			Condition string `json:"condition"`
			Tries     int    `json:"approximateInvokeCount"`
		} `json:"requestContext"`
		Batch struct {
			Shard string    `json:"shardId"`
			First string    `json:"startSequenceNumber"`
			Last  string    `json:"endSequenceNumber"`
			From  time.Time `json:"approximateArrivalOfFirstRecord"`
			To    time.Time `json:"approximateArrivalOfLastRecord"`
			Size  int       `json:"batchSize"`
		} `json:"DDBStreamBatchInfo"`
	}
	if json.Unmarshal([]byte(l.Body), &doc) != nil || doc.Batch.Shard == "" {
		return Report{Letter: l}
	}
	return Report{
		Letter: l, Readable: true, Shard: doc.Batch.Shard, First: doc.Batch.First, Last: doc.Batch.Last, Records: doc.Batch.Size,
		From: doc.Batch.From, To: doc.Batch.To, Condition: doc.Request.Condition, Tries: doc.Request.Tries,
	}
}

// relayLag is how long after its due time the relay may still be at a promise.
const relayLag = 10 * time.Second

// late reports whether a promise was due and nobody has published it.
func late(p webhook.Outbox, now time.Time) bool {
	return p.Topic == webhook.TopicProcess && p.PublishedAt.IsZero() && p.DueAt.Before(now.Add(-relayLag))
}

// behind goes through the outbox, which holds only work in flight.
func (o *Operator) behind(ctx context.Context) (Behind, error) {
	var b Behind
	err := o.pages(ctx, func(promises []webhook.Outbox) error {
		for _, p := range promises {
			b.Unpublished++
			if b.OldestDue.IsZero() || p.DueAt.Before(b.OldestDue) {
				b.OldestDue = p.DueAt
			}
			if p.WakeAt.After(b.LastWake) {
				b.LastWake = p.WakeAt
			}
		}
		return nil
	})
	return b, err
}

// pages hands on the late promises of every page of the outbox.
func (o *Operator) pages(ctx context.Context, do func([]webhook.Outbox) error) error {
	for from := ""; ; {
		page, err := o.Inbox.OpenPromises(ctx, from, promisesPage)
		if err != nil {
			return unreachable("the outbox", err)
		}
		var overdue []webhook.Outbox
		for _, p := range page.Rows {
			if late(p, o.Now()) {
				overdue = append(overdue, p)
			}
		}
		if err := do(overdue); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if from = page.Next; from == "" {
			return nil
		}
	}
}

func (w wakeQueue) lastMove(ctx context.Context) (*webhook.Move, error) {
	m, found, err := w.letters.LastMove(ctx)
	switch {
	case err != nil:
		return nil, unreachable("the queue", err)
	case !found:
		return nil, nil
	}
	return &m, nil
}
