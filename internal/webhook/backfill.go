package webhook

import (
	"slices"
	"time"
)

// Backfilled stands as the matched version of an event that no request brought:
// it was read from the provider's own list of what it had, with our credential.
// It cannot be the name of a key: those of the secret store have 32 bytes or more.
const Backfilled KeyVersion = "backfill"

// Backfill is how far the events that a provider lists were compared with the
// inbox, at one endpoint. A run walks the list page by page and may take many
// programs to its end; each leaves its cursor here.
type Backfill struct {
	Endpoint EndpointID
	// StartedAt is when the run under way began, zero between runs. Since is from
	// which time on it compares, Cursor the place in the provider's list.
	StartedAt time.Time `json:",omitzero"`
	Since     time.Time `json:",omitzero"`
	Cursor    string    `json:",omitempty"`
	// Covers says that the run begins no later than where the last covering one
	// leaves off, so that its end moves Covered.
	Covers bool `json:",omitempty"`
	// Asked are events that the provider was asked to send again, the last
	// [BackfillAskedMax] of them, latest last. After a run only those are kept that
	// were still missing in it.
	Asked []Asked `json:",omitempty"`
	// Counts are of the run under way, or else of the last one. After a crash they
	// count a page's items twice.
	Counts BackfillCounts
	// Covered is when the last whole run began: what the provider had before it was
	// compared. CompletedAt is when a run last came to its end.
	Covered     time.Time `json:",omitzero"`
	CompletedAt time.Time `json:",omitzero"`
	// NotBefore keeps the schedule away after a failure, of which LastError is the
	// code and Failures the number in a row.
	NotBefore time.Time `json:",omitzero"`
	LastError string    `json:",omitempty"`
	Failures  int       `json:",omitempty"`
	UpdatedAt time.Time
	// WantedAt is when somebody last missed an event. It is an attribute of its own,
	// which only grows, so that asking never meets a run's revision.
	WantedAt time.Time `json:"-"`
	// Revision is raised by every change of the row; a change is guarded by the one it read.
	Revision int64 `json:"-"`
}

// Asked is an event that a provider was asked to send again.
type Asked struct {
	ID EventID
	// First and Last are when it was asked for. Of one that is given up, Last is when
	// it was last seen to be missing.
	First, Last time.Time
}

// BackfillCounts says what became of the items that a provider listed.
type BackfillCounts struct {
	Pages       int
	Accepted    int // were missing, and are events now
	Duplicate   int // were there
	Redelivered int // were missing, and the provider was asked to send them again
	Awaited     int // are missing still, and were asked for before in this run
	Refused     int // are missing, and not sent again: the provider refused, or was asked for too long
	Unwanted    int // of a type that the endpoint does not take
	Unreadable  int // could not be read
}

// Items returns how many items were come by.
func (c BackfillCounts) Items() int {
	return c.Accepted + c.Duplicate + c.Redelivered + c.Awaited + c.Refused + c.Unwanted + c.Unreadable
}

// Add returns the sums.
func (c BackfillCounts) Add(o BackfillCounts) BackfillCounts {
	return BackfillCounts{
		Pages: c.Pages + o.Pages, Accepted: c.Accepted + o.Accepted, Duplicate: c.Duplicate + o.Duplicate, Redelivered: c.Redelivered + o.Redelivered,
		Awaited: c.Awaited + o.Awaited, Refused: c.Refused + o.Refused, Unwanted: c.Unwanted + o.Unwanted, Unreadable: c.Unreadable + o.Unreadable,
	}
}

// Bounds of back-fills.
const (
	// BackfillOverlap is how far before the last run's beginning the next one looks:
	// a provider lists an event a while after its time.
	BackfillOverlap = time.Hour
	// BackfillWantedPause is the least time between the beginnings of two runs that
	// were asked for: a gap that never closes would ask for ever.
	BackfillWantedPause = 5 * time.Minute
	// BackfillAskedMax bounds the memory of what was asked for; what is older and
	// still missing is asked for once more, which is harmless.
	BackfillAskedMax = 500
	// BackfillAskFor is how long an event is asked for, run after run. Each try is
	// itself one more item of the provider's list, so that an event which the front
	// door never takes would be asked for without end.
	BackfillAskFor = 3 * 24 * time.Hour
	// A failed run is tried again after a minute, doubling to an hour.
	backfillRetryFirst = time.Minute
	backfillRetryMax   = time.Hour
)

// Open reports whether a run is under way, worked on or left behind.
func (b Backfill) Open() bool { return !b.StartedAt.IsZero() }

// Due reports whether the schedule is to begin a run, or to go on with one.
func (b Backfill) Due(every time.Duration, now time.Time) bool {
	if now.Before(b.NotBefore) {
		return false
	}
	wanted := b.WantedAt.After(b.Covered) && !now.Before(b.Covered.Add(BackfillWantedPause))
	return b.Open() || wanted || !now.Before(b.Covered.Add(every))
}

// From returns from which time on the next run of the schedule compares: a while
// before the last one began, for the first one since the endpoint is there. reach
// is how far back the provider's list goes, 0 for all the way.
func (b Backfill) From(e Endpoint, reach time.Duration, now time.Time) time.Time {
	from := e.CreatedAt
	if !b.Covered.IsZero() {
		from = b.Covered.Add(-BackfillOverlap)
	}
	if reach > 0 && from.Before(now.Add(-reach)) {
		from = now.Add(-reach)
	}
	return from
}

// Begin returns the row with a new run, in place of any that was left behind.
// from is where the schedule would begin.
func (b Backfill) Begin(since, from, now time.Time) Backfill {
	b.StartedAt, b.Since, b.Cursor, b.Covers = now, since, "", !since.After(from)
	b.Counts = BackfillCounts{}
	b.NotBefore, b.LastError, b.Failures, b.UpdatedAt = time.Time{}, "", 0, now
	return b
}

// Turned returns the row after a page: the run goes on at next, or is over where
// that is empty.
func (b Backfill) Turned(next string, now time.Time) Backfill {
	b.Cursor, b.UpdatedAt = next, now
	b.NotBefore, b.LastError, b.Failures = time.Time{}, "", 0
	if next != "" {
		return b
	}
	if b.Covers {
		b.Covered = b.StartedAt
	}
	began := b.StartedAt
	b.Asked = slices.DeleteFunc(slices.Clone(b.Asked), func(a Asked) bool { return a.Last.Before(began) })
	if len(b.Asked) == 0 {
		b.Asked = nil
	}
	b.StartedAt, b.Since, b.Covers, b.CompletedAt = time.Time{}, time.Time{}, false, now
	return b
}

// Failed returns the row after a failure: the run goes on from its cursor, not
// before the provider wants to hear from us. anew begins the list again, where its
// place in it is not good any more.
func (b Backfill) Failed(code string, wait time.Duration, anew bool, now time.Time) Backfill {
	pause := min(backfillRetryFirst<<min(b.Failures, 6), backfillRetryMax)
	b.NotBefore, b.LastError, b.UpdatedAt = now.Add(max(wait, pause)), clip(code), now
	b.Failures++
	if anew {
		b.Cursor = ""
	}
	return b
}

// Rested returns the row of a run that stops in order, and goes on after a while.
func (b Backfill) Rested(wait time.Duration, now time.Time) Backfill {
	b.UpdatedAt = now
	if wait > 0 {
		b.NotBefore = now.Add(wait)
	}
	return b
}

// Asking says what is to be done about an event that a provider can send again.
type Asking int

// What is to be done.
const (
	AskNow  Asking = iota + 1 // ask for it
	AskedIt                   // it was asked for in this run
	GivenUp                   // it was asked for long enough
)

// Asking decides about an event that is missing.
func (b Backfill) Asking(id EventID, now time.Time) Asking {
	i := b.asked(id)
	switch {
	case i < 0:
		return AskNow
	case now.Sub(b.Asked[i].First) > BackfillAskFor:
		return GivenUp
	case !b.Asked[i].Last.Before(b.StartedAt):
		return AskedIt
	}
	return AskNow
}

// Missed returns the row with an event noted that was asked for, or given up.
func (b Backfill) Missed(id EventID, now time.Time) Backfill {
	a := Asked{ID: id, First: now, Last: now}
	list := slices.Clone(b.Asked)
	if i := b.asked(id); i >= 0 {
		a.First = list[i].First
		list = slices.Delete(list, i, i+1)
	}
	list = append(list, a)
	b.Asked = list[max(0, len(list)-BackfillAskedMax):]
	return b
}

func (b Backfill) asked(id EventID) int {
	return slices.IndexFunc(b.Asked, func(a Asked) bool { return a.ID == id })
}
