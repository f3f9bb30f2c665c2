package webhook

import "time"

// Erase takes an ended event's content away for good, by an operator: what was
// sent is deleted, and the row says since when. Its identity stays, so that a
// repeat is still a duplicate. Its body counts as over from now on: nothing opens
// the event again, and a repeat that stores the bytes anew takes them back out.
// An event under legal hold is not erased.
func (row Inbox) Erase(now time.Time) Change {
	assert(row.Status.Terminal(), "erase of %s, which is %s", row.ID, row.Status)
	c := row.asEnded("erase")
	c.Guard.Free, c.ErasedAt = true, now
	return c
}

// HoldByLaw keeps an ended event until [Inbox.LetGo]: the row does not expire, and
// the event is neither erased nor worked on again.
func (row Inbox) HoldByLaw() Change {
	assert(row.Status.Terminal(), "legal hold of %s, which is %s", row.ID, row.Status)
	c := row.asEnded("legal_hold")
	c.Guard.Free, c.HoldByLaw = true, true
	return c
}

// LetGo ends a legal hold. The row is kept from now on as one that has just ended.
func (row Inbox) LetGo(now time.Time, keep time.Duration) Change {
	assert(row.Status.Terminal() && row.LegalHold, "end of a legal hold of %s, which is %s and has none", row.ID, row.Status)
	c := row.asEnded("let_go")
	c.LetGo, c.ExpiresAt = true, now.Add(keep)
	return c
}

// asEnded is a change that leaves an ended row in its state.
func (row Inbox) asEnded(transition string) Change {
	return Change{
		Transition: transition, ID: row.ID,
		Guard: Guard{From: []Status{row.Status}, Fence: row.Fence},
		To:    row.Status, KeepClaim: true, ProcessedAt: row.ProcessedAt,
	}
}

// Erased is the entry of an event in the list of those that were erased. It is
// kept beside the tables that a restore brings back, and says what to erase again.
type Erased struct {
	InboxID  InboxID
	Endpoint EndpointID
	Tenant   Tenant
	BodyID   BodyID
	// Effects are the bytes that partners were told because of the event.
	Effects []BodyID
	At      time.Time
}

// HeldByLaw is the entry of an event in the list of legal holds.
type HeldByLaw struct {
	InboxID  InboxID
	Endpoint EndpointID
	At       time.Time
	Who      string
	Why      string
}

// Kept says who stored a body that is there.
type Kept struct {
	PutID string // names the put or the renewal that was the last
	First InboxID
	// RenewedAt is the receipt of the request that renewed it last; zero where none
	// did: then [Kept.First] alone has it.
	RenewedAt time.Time
}
