// Package reconciler comes for what was left behind. Every minute it looks at
// each outbox row whose time has come, published or not, reads the row's subject
// consistently, and does what the subject's state asks for: wakes it, frees a
// dead worker's lease, fails what is exhausted, or removes a promise that is kept.
//
// Invariants:
//
//   - It reads the outbox first and the subject afterwards, never the other way
//     round, and writes only under what it read: state, fence, generation, wake time.
//   - It never works on an event itself; it re-enters through the same queue.
//   - One runner at a time, under a lease longer than its own timeout. Two at
//     once, after a clock went wrong, would be harmless and wasteful.
//
// The package trusts no index: the due index only makes finding faster than the scan.
package reconciler

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"dakghar/internal/backoff"
	"dakghar/internal/webhook"
)

// Store reads and writes the rows.
type Store interface {
	Inbox(ctx context.Context, id webhook.InboxID) (webhook.Inbox, bool, error)
	Outbox(ctx context.Context, id webhook.OutboxID) (webhook.Outbox, bool, error)
	DueOutbox(ctx context.Context, shard int, dueBy time.Time, limit int) ([]webhook.OutboxID, error)
	ScanOutbox(ctx context.Context, segment, segments int, wakeBy time.Time, from string, limit int) (webhook.OutboxPage, error)
	MarkPublished(ctx context.Context, p webhook.Published) (bool, error)
	PushWake(ctx context.Context, o webhook.Outbox, wakeAt time.Time) (bool, error)
	DeleteOutbox(ctx context.Context, id webhook.OutboxID, upTo webhook.Fence) (bool, error)
	DeleteOrphan(ctx context.Context, o webhook.Outbox) (bool, error)
	Retry(ctx context.Context, c webhook.Change, promise webhook.Outbox) (bool, error)
	Fail(ctx context.Context, c webhook.Change, promise webhook.OutboxID) (bool, error)
	Lease(ctx context.Context, name, owner string, now, until time.Time) (state string, ok bool, err error)
	Release(ctx context.Context, name, owner, state string) error
}

// Queue takes wake-ups, one error for each.
type Queue interface {
	Send(ctx context.Context, wakes []webhook.Wake, delays []time.Duration) []error
}

// Reconciler looks after the outbox. All fields are required.
type Reconciler struct {
	Store  Store
	Queue  Queue
	Policy Policy
	Now    func() time.Time
	NewID  func() string
	Chance func() float64
}

// Policy holds the numbers that an operator chooses.
type Policy struct {
	AttemptsMax int
	Retry       backoff.Schedule // after a worker's death
	KeepInbox   time.Duration
	Segments    int // of the scan
	PageRows    int
	// Lease must be longer than the longest run.
	Lease time.Duration
	// Slack is kept free at the end of a run for leaving the cursors behind.
	Slack time.Duration
}

// Bounds that the protocol gives.
const (
	orphanAge     = time.Hour           // a subject may be missing that long, before its promise is removed
	heldWake      = 6 * time.Hour       // how long a held row's promise sleeps
	bodyFailAhead = 2 * 24 * time.Hour  // an open row fails so long before its body expires
	bodyWarnAhead = webhook.HeldWarning // and is counted as a warning so long before
	dueRowsMax    = 200                 // per shard and run; the rest come the next minute
)

// Report counts what a run found and did, by name: see the constants.
type Report struct {
	Ran     bool // false: another runner holds the lease
	Looked  int
	Acts    map[string]int
	OldestS float64 // age in seconds of the oldest open row that was met
	Whole   bool    // the scan reached its end within the time
	Err     error   // the first error met; the run goes on past it
}

// What a run can do to a row.
const (
	Woken         = "woken"
	LeaseFreed    = "lease_freed"
	Exhausted     = "exhausted"
	BodyExpiring  = "body_expiring"
	BodyWarning   = "body_warning"
	PromiseKept   = "promise_kept" // the subject is terminal: its outbox row is removed
	Orphan        = "orphan"       // the subject does not exist
	OrphanRemoved = "orphan_removed"
	Sleeping      = "sleeping" // held, or a live lease: looked at again later
	Lost          = "lost"     // somebody else was faster
	NotSent       = "not_sent"
	Unreadable    = "unreadable" // the row is no outbox row
)

const leaseName = "reconciler"

// dueSlack is how long after it is due a row's first wake time lies, and a little more.
const dueSlack = 2 * time.Minute

// Run makes one pass. A pass that runs out of time leaves cursors, and the next
// one goes on from them.
func (r *Reconciler) Run(ctx context.Context) Report {
	report := Report{Acts: map[string]int{}}
	owner, now := r.NewID(), r.Now()
	state, ok, err := r.Store.Lease(ctx, leaseName, owner, now, now.Add(r.Policy.Lease))
	if err != nil || !ok {
		report.Err = err
		return report
	}
	report.Ran = true
	work, cancel := context.WithTimeout(ctx, r.budget(ctx))
	defer cancel()
	r.due(work, &report)
	cursors := r.scan(work, decodeCursors(state, r.Policy.Segments), &report)
	if err := r.Store.Release(ctx, leaseName, owner, cursors.encode()); err != nil {
		report.note(err)
	}
	return report
}

// budget is the time a run may use, so that the rest suffices to leave in order.
func (r *Reconciler) budget(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return r.Policy.Lease - r.Policy.Slack
	}
	return time.Until(end) - r.Policy.Slack //nolint:forbidigo // a context's deadline is in real time
}

// due brings the rows whose work becomes due within the queue's longest delay.
func (r *Reconciler) due(ctx context.Context, report *Report) {
	dueBy := r.Now().Add(webhook.PublishAhead)
	for shard := range webhook.Shards {
		ids, err := r.Store.DueOutbox(ctx, shard, dueBy, dueRowsMax)
		if err != nil {
			report.note(err)
			return
		}
		var rows []webhook.Outbox
		for _, id := range ids {
			row, found, err := r.Store.Outbox(ctx, id)
			if err != nil {
				report.note(err)
				continue
			}
			// A held row stays in the index, and sleeps until its wake time.
			if found && row.InDueIndex && !row.WakeAt.After(dueBy.Add(dueSlack)) {
				rows = append(rows, row)
			}
		}
		r.look(ctx, rows, report)
	}
}

// cursors are where each segment of the scan goes on; "done" segments wait for
// the others, so that every pass over the table is a whole one.
type cursors struct {
	From []string `json:"from"`
	Done []bool   `json:"done"`
}

func decodeCursors(state string, segments int) cursors {
	var c cursors
	// An unreadable or outdated state only means that the scan begins anew.
	_ = json.Unmarshal([]byte(state), &c)
	if len(c.From) != segments || len(c.Done) != segments {
		return cursors{From: make([]string, segments), Done: make([]bool, segments)}
	}
	return c
}

func (c cursors) whole() bool {
	for _, done := range c.Done {
		if !done {
			return false
		}
	}
	return true
}

func (c cursors) encode() string {
	if c.whole() {
		return ""
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic("reconciler: cursors do not encode: " + err.Error())
	}
	return string(b)
}

// scan reads the segments in turn, a page each, until all are done or time is up.
func (r *Reconciler) scan(ctx context.Context, c cursors, report *Report) cursors {
	over := slices.Clone(c.Done) // for this run: done, or failed and left to the next one
	for slices.Contains(over, false) {
		for segment := range c.From {
			if over[segment] {
				continue
			}
			if ctx.Err() != nil {
				return c
			}
			page, err := r.Store.ScanOutbox(ctx, segment, r.Policy.Segments, r.Now(), c.From[segment], r.Policy.PageRows)
			if err != nil {
				// The other segments go on; this one is read again the next time.
				report.note(err)
				over[segment] = true
				continue
			}
			if page.Unreadable > 0 {
				report.Acts[Unreadable] += page.Unreadable
			}
			if !r.look(ctx, page.Rows, report) {
				return c
			}
			c.From[segment], c.Done[segment] = page.Next, page.Next == ""
			over[segment] = c.Done[segment]
		}
	}
	report.Whole = c.whole()
	return c
}

func (r *Report) note(err error) {
	if r.Err == nil {
		r.Err = err
	}
}
