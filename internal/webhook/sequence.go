package webhook

import (
	"strconv"
	"strings"
	"time"
)

// SequenceID addresses an object's sequence row; see [DeriveSequenceID].
type SequenceID string

// DeriveSequenceID returns the address of an object's sequence. The endpoint
// takes part: two senders number their events apart.
func DeriveSequenceID(tenant Tenant, endpoint EndpointID, object ObjectType, id string) SequenceID {
	return SequenceID("sq_" + hashID("sequence", string(tenant), string(endpoint), string(object), id))
}

// ParkedMax bounds the events that wait for one object's gap to close, and with
// it the size of the sequence row.
const ParkedMax = 32

// Sequence is how far an object's numbered events have been applied, and which
// of them came too early. The first number of an object is 1.
type Sequence struct {
	ID   SequenceID
	Last int64 // 0: none was applied yet
	// Parked maps the numbers that wait to their events.
	Parked map[int64]InboxID
}

// Slot is the place of a PARKED row in its object's sequence. The zero value is
// no place.
type Slot struct {
	Sequence SequenceID
	Number   int64
}

// String renders a slot as it is stored, empty for none.
func (s Slot) String() string {
	if s == (Slot{}) {
		return ""
	}
	return string(s.Sequence) + "#" + strconv.FormatInt(s.Number, 10)
}

// ParseSlot reads what [Slot.String] rendered.
func ParseSlot(text string) (Slot, bool) {
	if text == "" {
		return Slot{}, true
	}
	id, number, ok := strings.Cut(text, "#")
	n, err := strconv.ParseInt(number, 10, 64)
	return Slot{SequenceID(id), n}, ok && err == nil
}

// Turn is one step of a sequence, committed together with what its event does.
// It holds only if the sequence is still as it was read.
type Turn struct {
	Sequence SequenceID
	Last     int64 // the last number, as read
	Number   int64 // the last number from now on: the next one, or a later one where an operator gives up a gap
	// Next is who waits behind it, as read; empty if nobody does.
	Next InboxID
	// Unpark lets the next event go on; nil where nobody waits, or where the one
	// that did has left without taking its slot along, which is then cleared.
	Unpark *Change
	// Promise is the next event's, committed with Unpark.
	Promise *Outbox
	// Waiting are the events that wait, by their numbers, as read. Where numbers are
	// given up it must still be so: one that parked since may be among them.
	Waiting map[int64]InboxID
}

// LetGo makes the turn unpark who waits behind it, if the row still waits there.
func (t *Turn) LetGo(next Inbox, now time.Time) {
	if next.Status != Parked || next.Slot != (Slot{Sequence: t.Sequence, Number: t.Number + 1}) {
		return
	}
	change := next.Unpark(now)
	promise := NewOutbox(change.Apply(next), now, now)
	t.Unpark, t.Promise = &change, &promise
}

// Park puts a claimed row aside until the events before it have been applied, or
// the deadline has come. The attempt is given back: waiting is no failure.
func (row Inbox) Park(slot Slot, deadline time.Time) Change {
	row.mustBeClaimed("park")
	assert(slot.Sequence != "" && slot.Number > 1, "park of %s at %q", row.ID, slot)
	c := Change{
		Transition: "park", ID: row.ID, Guard: row.asClaimed(),
		To: Parked, NextAttemptAt: deadline, Slot: slot,
	}
	if row.AttemptCount > 0 {
		c.Attempts = -1
	}
	return c
}

// Unpark lets a parked row be worked on: its turn has come.
func (row Inbox) Unpark(now time.Time) Change {
	assert(row.Status == Parked, "unpark of %s, which is %s", row.ID, row.Status)
	return Change{
		Transition: "unpark", ID: row.ID,
		Guard: Guard{From: []Status{Parked}, Fence: row.Fence},
		To:    Received, NextAttemptAt: now,
	}
}

// GapOver reports whether a parked row has waited long enough.
func (row Inbox) GapOver(now time.Time) bool {
	return row.Status == Parked && !row.NextAttemptAt.After(now)
}
