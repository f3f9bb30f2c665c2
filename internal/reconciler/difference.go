package reconciler

import (
	"time"

	"dakghar/internal/webhook"
)

// Kind is one way in which what the tables say of an event does not agree.
type Kind string

// The kinds. docs/understand/reconciler.md says of each what it means.
const (
	OpenWithoutPromise Kind = "open_without_promise" // nobody would ever come for it
	PromiseLeft        Kind = "promise_left"         // an ended row whose promise stayed
	PromiseAhead       Kind = "promise_ahead"        // a promise of a later life than the row's
	MarkMissing        Kind = "mark_missing"         // PROCESSED, and not marked as applied
	MarkedButOpen      Kind = "marked_but_open"      // applied in another life; open in this one
	MarkedButFailed    Kind = "marked_but_failed"    // applied in another life; FAILED in this one
	BodyGone           Kind = "body_gone"            // open, and its body is not kept any more
	RowGone            Kind = "row_gone"             // in the index, and not in the table
	RowUnreadable      Kind = "row_unreadable"       // the row, or its promise, is none of ours
	Unsettled          Kind = "unsettled"            // it changed faster than it could be looked at
)

// Kinds lists every kind, in the order of reports.
func Kinds() []Kind {
	return []Kind{
		OpenWithoutPromise, PromiseLeft, PromiseAhead, MarkMissing, MarkedButOpen, MarkedButFailed, BodyGone, RowGone, RowUnreadable, Unsettled,
	}
}

// Fault reports whether a difference can only come from a restore or a bug: no
// crash leaves it behind.
func (k Kind) Fault() bool { return k != PromiseLeft && k != Unsettled }

// Deed is what was done about a difference.
type Deed string

// The deeds.
const (
	Reported Deed = "reported" // a person decides, or the row's own promise brings it
	Requeued Deed = "requeued" // a new promise, under a new fence
	Deleted  Deed = "deleted"  // the promise was removed
)

// Deeds lists every deed, in the order of reports.
func Deeds() []Deed { return []Deed{Requeued, Deleted, Reported} }

// Evidence is what the tables say of one event. The subject is read first: its
// fence, found unchanged afterwards, shows that the rest was read of the same
// life of it.
type Evidence struct {
	Row     webhook.Inbox
	Promise *webhook.Outbox // nil: there is none
	Marked  bool            // of the row's current run
	// BodyGone is looked up for open rows only.
	BodyGone bool
}

// Differences returns what does not agree, most urgent first. Nothing is a
// difference that a crash of one of our programs can leave for a moment, except
// a promise that an ended row still has.
func (e Evidence) Differences() []Kind {
	var kinds []Kind
	open := !e.Row.Status.Terminal()
	switch {
	case e.Promise == nil && open:
		kinds = append(kinds, OpenWithoutPromise)
	case e.Promise != nil && e.Promise.Gen > e.Row.Fence:
		kinds = append(kinds, PromiseAhead)
	case e.Promise != nil && !open:
		kinds = append(kinds, PromiseLeft)
	}
	switch {
	case e.Row.Status == webhook.Processed && !e.Marked:
		kinds = append(kinds, MarkMissing)
	case e.Row.Status == webhook.Failed && e.Marked:
		kinds = append(kinds, MarkedButFailed)
	case open && e.Marked:
		kinds = append(kinds, MarkedButOpen)
	}
	if open && e.BodyGone {
		kinds = append(kinds, BodyGone)
	}
	return kinds
}

// deed is what a difference in the promise asks for.
func (e Evidence) deed() Deed {
	open := !e.Row.Status.Terminal()
	switch {
	case e.Promise == nil && open, e.Promise != nil && open && e.Promise.Gen > e.Row.Fence:
		return Requeued
	case e.Promise != nil && !open:
		return Deleted
	}
	return Reported
}

// promiseAnew is the promise that a requeued row is committed with: it comes when
// the row's own state asks for it.
func promiseAnew(row webhook.Inbox, now time.Time) webhook.Outbox {
	due := now
	switch {
	case row.Status == webhook.Held && !row.BodyExpiresAt.IsZero():
		return webhook.NewHeldOutbox(row, now)
	case row.Status == webhook.Processing && !row.LeaseOver(now):
		due = row.LeaseUntil.Add(time.Second)
	case row.NextAttemptAt.After(now) && row.Status != webhook.Held:
		due = row.NextAttemptAt
	}
	return webhook.NewOutbox(row, due, now)
}

// Finding is one difference and what was done about it.
type Finding struct {
	Kind Kind
	Deed Deed
}

// Detail is a finding and whose it is.
type Detail struct {
	InboxID webhook.InboxID
	Finding
}

// Tally counts what a comparison met.
type Tally struct {
	Compared int // rows, each once
	Found    map[Finding]int
}

// Faults counts the differences that no crash leaves behind.
func (t Tally) Faults() int {
	n := 0
	for f, count := range t.Found {
		if f.Kind.Fault() {
			n += count
		}
	}
	return n
}

// Of counts the differences of a kind.
func (t Tally) Of(k Kind) int {
	n := 0
	for f, count := range t.Found {
		if f.Kind == k {
			n += count
		}
	}
	return n
}

func (t *Tally) merge(other Tally) {
	t.Compared += other.Compared
	if t.Found == nil {
		t.Found = map[Finding]int{}
	}
	for f, n := range other.Found {
		t.Found[f] += n
	}
}
