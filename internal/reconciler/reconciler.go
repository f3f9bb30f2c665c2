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
// Besides, it compares every accepted event once, when it is a day old, with its
// promise, its processed mark and its body ([Comparer]): what a crash cannot leave
// behind and a restore or a bug can. There the subject is read first and its fence
// ties everything together: a look counts only if the fence is still the same
// when something is written, or when nothing is.
//
// It also tells of endpoints: whose changed secret nobody has finished changing, and
// which heard nothing for longer than they expect. For that it only reads.
//
// For what is late the package trusts no index: the due index only makes finding
// faster than the scan. The daily comparison does walk one, a day after it was
// written; `dakghar reconcile --full` reads the table itself.
package reconciler

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"dakghar/internal/backoff"
	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// Store reads and writes the rows.
type Store interface {
	Evidences
	DueOutbox(ctx context.Context, shard int, dueBy time.Time, limit int) ([]webhook.OutboxID, error)
	ScanOutbox(ctx context.Context, segment, segments int, wakeBy time.Time, from string, limit int) (webhook.OutboxPage, error)
	MarkPublished(ctx context.Context, p webhook.Published) (bool, error)
	PushWake(ctx context.Context, o webhook.Outbox, wakeAt time.Time) (bool, error)
	DeleteOrphan(ctx context.Context, o webhook.Outbox) (bool, error)
	DueDeliveries(ctx context.Context, shard int, by time.Time, limit int) ([]delivery.ID, error)
	Delivery(ctx context.Context, id delivery.ID) (delivery.Delivery, bool, error)
	RewakeDelivery(ctx context.Context, d delivery.Delivery, wakeAt time.Time) (bool, error)
	Fail(ctx context.Context, c webhook.Change, promise webhook.OutboxID) (bool, error)
	Endpoint(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error)
	// Arrivals yields an endpoint's events by the time of receipt, newest first, with
	// both bounds included; a row that cannot be read is passed over.
	Arrivals(ctx context.Context, e webhook.EndpointID, since, until time.Time) iter.Seq2[webhook.Inbox, error]
}

// Queue takes wake-ups, one error for each.
type Queue interface {
	Send(ctx context.Context, wakes []webhook.Wake, delays []time.Duration) []error
}

// Reconciler looks after the outbox. All fields are required. It is not to be copied.
type Reconciler struct {
	Store  Store
	Queue  Queue
	Policy Policy
	Now    func() time.Time
	NewID  func() string
	Chance func() float64

	ears ears
}

// Policy holds the numbers that an operator chooses.
type Policy struct {
	AttemptsMax int
	Retry       backoff.Schedule // after a worker's death
	KeepInbox   time.Duration
	Segments    int // of the scan
	PageRows    int // read at a time
	// AtOnce is how many segments, or pages of the daily comparison, are read side
	// by side.
	AtOnce int
	// AuditTime is kept free for the daily comparison in each run, which has what the
	// scan leaves besides.
	AuditTime time.Duration
	// Silence is how much of a run goes to looking for silent endpoints.
	Silence SilenceBounds
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
	// OldestDueS is for how many seconds the oldest delivery that was met has been due,
	// 0 where none was. A delivery is met when it is to be woken, and then not for 5
	// minutes to 6 hours: 0 does not mean that there is none.
	OldestDueS float64
	// Rotations is what the endpoints say of keys that were changed.
	Rotations Rotations
	// Silence is which endpoints heard nothing for longer than they expect.
	Silence Silence
	// Audit is what the daily comparison did in this run.
	Audit AuditReport
}

// What a run can do to a row.
const (
	Woken         = "woken"
	LeaseFreed    = "lease_freed"
	Exhausted     = "exhausted"
	BodyExpiring  = "body_expiring"
	BodyWarning   = "body_warning"
	GapExpired    = "gap_expired"  // a parked row whose gap never closed is failed
	PromiseKept   = "promise_kept" // the subject is terminal: its outbox row is removed
	Orphan        = "orphan"       // the subject does not exist
	OrphanRemoved = "orphan_removed"
	Sleeping      = "sleeping" // held, or a live lease: looked at again later
	Lost          = "lost"     // somebody else was faster
	NotSent       = "not_sent"
	Unreadable    = "unreadable"     // the row, or its subject, is none of ours, or of a newer program
	DeliveryWoken = "delivery_woken" // a delivery's worker is told again
	AheadRemoved  = "promise_ahead"  // a promise of a later life than its ended subject's is removed
)

// Acts lists what a run can do to a row.
func Acts() []string {
	return []string{
		Woken, LeaseFreed, Exhausted, BodyExpiring, BodyWarning, GapExpired, PromiseKept, Orphan, OrphanRemoved, Sleeping, Lost, NotSent, Unreadable,
		DeliveryWoken, AheadRemoved,
	}
}

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
	r.deliveries(work, &report)
	r.lookAtEndpoints(work, &report)
	scan, done := sooner(work, r.Policy.AuditTime)
	cursors := r.scan(scan, decodeCursors(state, r.Policy.Segments), &report)
	done()
	if err := r.Store.Release(ctx, leaseName, owner, cursors.encode()); err != nil {
		report.note(err)
	}
	report.Audit = r.comparer().Audit(work, r.Policy.Lease)
	return report
}

// sooner ends a context some time before its deadline.
func sooner(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-by))
}

// comparer is the daily comparison's. What it finishes beyond its time and the
// cursors it leaves behind share the slack with the run's own.
func (r *Reconciler) comparer() *Comparer {
	return &Comparer{Store: r.Store, Now: r.Now, NewID: r.NewID, AtOnce: r.Policy.AtOnce, Slack: r.Policy.Slack / 3}
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

// scan reads the segments side by side until all are done or time is up.
func (r *Reconciler) scan(ctx context.Context, c cursors, report *Report) cursors {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(r.Policy.AtOnce)
	for segment := range c.From {
		if c.Done[segment] {
			continue
		}
		group.Go(func() error {
			part := Report{Acts: map[string]int{}}
			c.From[segment], c.Done[segment] = r.segment(ctx, segment, c.From[segment], &part)
			mu.Lock()
			defer mu.Unlock()
			report.merge(part)
			return nil
		})
	}
	_ = group.Wait() // its functions return no error
	report.Whole = c.whole()
	return c
}

// segment reads one segment on from a cursor, and looks at what is due. It
// returns where the next run goes on, and whether the segment is at its end. The
// cursor moves only past pages that were looked at whole; a segment that cannot
// be read is left to the next run, and the others go on.
func (r *Reconciler) segment(ctx context.Context, segment int, from string, report *Report) (string, bool) {
	for ctx.Err() == nil {
		rows, next, err := r.gather(ctx, segment, from, report)
		if !r.look(ctx, rows, report) {
			return from, false
		}
		if from = next; err != nil {
			report.note(unlessOver(ctx, err))
			return from, false
		}
		if from == "" {
			return "", true
		}
	}
	return from, false
}

// Of a page a hundredth may be due: pages are gathered until it is worth looking,
// so that subjects are read and wake-ups are sent in full batches.
const (
	gatherRows  = 100
	gatherPages = 25
)

// gather reads pages on from a cursor. On an error it returns what it has read
// before, and where that ends.
func (r *Reconciler) gather(ctx context.Context, segment int, from string, report *Report) (rows []webhook.Outbox, next string, err error) {
	unreadable := 0
	for range gatherPages {
		var page webhook.OutboxPage
		if page, err = r.Store.ScanOutbox(ctx, segment, r.Policy.Segments, r.Now(), from, r.Policy.PageRows); err != nil {
			break
		}
		unreadable += page.Unreadable
		rows, from = append(rows, page.Rows...), page.Next
		if from == "" || len(rows) >= gatherRows {
			break
		}
	}
	if unreadable > 0 {
		report.Acts[Unreadable] += unreadable
	}
	return rows, from, err
}

func (r *Report) merge(part Report) {
	r.Looked += part.Looked
	r.OldestS = max(r.OldestS, part.OldestS)
	for act, n := range part.Acts {
		r.Acts[act] += n
	}
	r.note(part.Err)
}

func (r *Report) note(err error) {
	if r.Err == nil && err != nil {
		r.Err = err
	}
}
