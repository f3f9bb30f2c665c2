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

// LettersMax bounds the letters that one list or redrive looks at.
const LettersMax = 10_000

// How long a reading hides letters: a list gives them back as soon as it has
// them, a redrive when it has dealt with all. A command that dies leaves them
// hidden for no longer.
const (
	listHides    = 30 * time.Second
	redriveHides = 10 * time.Minute
)

// Fate is what the protocol's rule makes of a wake-up that is sent again: what its
// row says, and nothing of the letter.
type Fate string

// The fates. All but the first three, [FateFailed], and the two that nobody can
// read are dropped: there is nothing to do, or the row's own promise wakes somebody.
const (
	FateClaimed   Fate = "claimed"    // RECEIVED or RETRY and due, or its worker's time is over
	FateExpired   Fate = "expired"    // PARKED beyond its deadline: it ends FAILED
	FateNewer     Fate = "newer_wake" // of a newer version than this program
	FateForeign   Fate = "not_a_wake"
	FateFailed    Fate = "failed" // for an operator to replay
	FateNotDue    Fate = "not_due"
	FateWorking   Fate = "working" // a worker has it
	FateParked    Fate = "parked"
	FateHeld      Fate = "held"
	FatePaused    Fate = "paused" // its endpoint is
	FateProcessed Fate = "processed"
	FateMissing   Fate = "missing" // there is no such row
)

// Useless reports whether a letter of this fate changes nothing when it is sent
// again, and nobody is to decide about it.
func (f Fate) Useless() bool {
	switch f {
	case FateNotDue, FateWorking, FateParked, FateHeld, FatePaused, FateProcessed, FateMissing:
		return true
	case FateClaimed, FateExpired, FateNewer, FateForeign, FateFailed:
	}
	return false
}

// claimEarly is how much before its due time a worker claims a row.
const claimEarly = 5 * time.Second

// fateOf says what a worker would do about a row.
func fateOf(row webhook.Inbox, paused bool, now time.Time) Fate {
	switch row.Status {
	case webhook.Processed:
		return FateProcessed
	case webhook.Failed:
		return FateFailed
	case webhook.Held:
		return FateHeld
	case webhook.Received, webhook.Retry, webhook.Parked, webhook.Processing:
	}
	switch {
	case paused:
		return FatePaused
	case row.GapOver(now):
		return FateExpired
	case row.Status == webhook.Parked:
		return FateParked
	case row.Status == webhook.Processing && !row.LeaseOver(now):
		return FateWorking
	case row.Status.Waiting() && row.NextAttemptAt.After(now.Add(claimEarly)):
		return FateNotDue
	}
	return FateClaimed
}

// DeadLetter is a wake-up that the processor could not take, with its row.
type DeadLetter struct {
	webhook.Letter

	Wake webhook.Wake   // zero where the letter is none of ours
	Row  *webhook.Inbox // as it stands; nil where there is none
	Fate Fate
}

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

// EventLetters looks at up to limit wake-ups in the dead letters. Nothing is taken
// out; each look raises their receive counts by one.
func (o *Operator) EventLetters(ctx context.Context, limit int) (Letters[DeadLetter], error) {
	var found Letters[DeadLetter]
	raw, depth, err := o.look(ctx, o.EventDeadLetters, limit)
	if err != nil {
		return found, err
	}
	found.Depth = depth
	if found.Move, err = o.lastMove(ctx); err != nil {
		return found, err
	}
	judge := o.judge()
	for _, l := range raw {
		letter, err := judge(ctx, l)
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

// judge returns a function that reads a letter's row and says its fate. It
// remembers which endpoints are paused.
func (o *Operator) judge() func(context.Context, webhook.Letter) (DeadLetter, error) {
	paused := map[webhook.EndpointID]bool{}
	return func(ctx context.Context, l webhook.Letter) (DeadLetter, error) {
		d := DeadLetter{Letter: l, Fate: FateForeign}
		var wake webhook.Wake
		if readable := json.Unmarshal([]byte(l.Body), &wake) == nil; !readable || wake.InboxID == "" || wake.Topic != webhook.TopicProcess {
			return d, nil
		}
		d.Wake = wake
		if wake.Version > webhook.WakeVersion {
			d.Fate = FateNewer
			return d, nil
		}
		row, found, err := o.Inbox.Inbox(ctx, wake.InboxID)
		switch {
		case err != nil:
			return d, unreachable("the inbox", err)
		case !found:
			d.Fate = FateMissing
			return d, nil
		}
		d.Row = &row
		is, known := paused[row.Endpoint]
		if !known {
			e, _, err := o.Registry.Endpoint(ctx, row.Endpoint)
			if err != nil {
				return d, unreachable("the registry", err)
			}
			is = !e.PausedAt.IsZero()
			paused[row.Endpoint] = is
		}
		d.Fate = fateOf(row, is, o.Now())
		return d, nil
	}
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

func (o *Operator) lastMove(ctx context.Context) (*webhook.Move, error) {
	m, found, err := o.EventDeadLetters.LastMove(ctx)
	switch {
	case err != nil:
		return nil, unreachable("the queue", err)
	case !found:
		return nil, nil
	}
	return &m, nil
}
