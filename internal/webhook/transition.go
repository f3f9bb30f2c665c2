package webhook

import (
	"fmt"
	"slices"
	"time"
)

// Guard is what the store must find true for a change to be written.
type Guard struct {
	From []Status // the row is in one of these states
	// Fence must equal the row's, unless AnyFence is set.
	Fence    Fence
	AnyFence bool
	// DueBy, when set, asks RECEIVED and RETRY rows to be due at or before it.
	DueBy time.Time
	// LeaseOverAt, when set, asks a PROCESSING row's lease to have ended before it.
	LeaseOverAt time.Time
	// AttemptsBelow, when positive, asks for fewer attempts than this.
	AttemptsBelow int
	// BodyAliveAt, when set, asks for a body that lives beyond it.
	BodyAliveAt time.Time
	// Free asks for a row that is neither erased nor under legal hold.
	Free bool
}

// Allows reports whether the guard holds for a row. The store evaluates the
// same conditions itself, inside the write.
func (g Guard) Allows(row Inbox) bool {
	switch {
	case !slices.Contains(g.From, row.Status):
		return false
	case !g.AnyFence && row.Fence != g.Fence:
		return false
	case g.AttemptsBelow > 0 && row.AttemptCount >= g.AttemptsBelow:
		return false
	case !g.BodyAliveAt.IsZero() && !row.BodyExpiresAt.After(g.BodyAliveAt):
		return false
	case g.Free && (row.LegalHold || !row.ErasedAt.IsZero()):
		return false
	case row.Status.Waiting() && !g.DueBy.IsZero():
		return !row.NextAttemptAt.After(g.DueBy)
	case row.Status == Processing && !g.LeaseOverAt.IsZero():
		return row.LeaseUntil.Before(g.LeaseOverAt)
	}
	return true
}

// Change is a decided transition of one row: the guard, and what the row
// becomes. The fence is raised by one in every change.
type Change struct {
	Transition string // the name, for logs
	ID         InboxID
	Guard      Guard
	To         Status

	Outcome       Outcome
	NextAttemptAt time.Time // zero: unchanged
	LeaseUntil    time.Time // zero: removed
	ClaimID       ClaimID   // empty: removed, unless KeepClaim
	KeepClaim     bool
	Attempts      int    // added to attempt_count: +1, 0 or -1
	Reopen        bool   // the attempts begin anew, and what a terminal row had is removed
	NextRun       bool   // the row is applied once more: its run is raised, its outcome removed
	LastError     string // empty: unchanged
	Slot          Slot   // zero: removed
	// Leaves is the slot that the row had and leaves: whatever takes a row out of
	// PARKED, but its turn, clears the slot in the same transaction.
	Leaves      Slot
	ProcessedAt time.Time
	ExpiresAt   time.Time // zero: unchanged
	// ErasedAt, when set, is noted, and is the end of the body's life.
	ErasedAt  time.Time
	HoldByLaw bool // the row is under legal hold, and has no expiry
	LetGo     bool // it is not any more
}

// Apply returns the row after the change.
func (c Change) Apply(row Inbox) Inbox {
	row.Status = c.To
	row.Fence++
	row.AttemptCount += c.Attempts
	if c.Reopen {
		row.AttemptCount, row.ProcessedAt, row.ExpiresAt = 0, time.Time{}, time.Time{}
	}
	if c.NextRun {
		row.Run, row.Outcome = row.Run+1, ""
	}
	row.LeaseUntil, row.Slot = c.LeaseUntil, c.Slot
	if !c.KeepClaim {
		row.ClaimID = c.ClaimID
	}
	if c.Outcome != "" {
		row.Outcome = c.Outcome
	}
	if !c.NextAttemptAt.IsZero() {
		row.NextAttemptAt = c.NextAttemptAt
	}
	if c.LastError != "" {
		row.LastError = c.LastError
	}
	if !c.ProcessedAt.IsZero() {
		row.ProcessedAt = c.ProcessedAt
	}
	if !c.ExpiresAt.IsZero() {
		row.ExpiresAt = c.ExpiresAt
	}
	if !c.ErasedAt.IsZero() {
		row.ErasedAt, row.BodyExpiresAt = c.ErasedAt, c.ErasedAt
	}
	switch {
	case c.HoldByLaw:
		row.LegalHold, row.ExpiresAt = true, time.Time{}
	case c.LetGo:
		row.LegalHold = false
	}
	return row
}

// claimEarly is how much before its due time a row may be claimed: a queue's
// delay is not exact, and a wake that comes a moment early would be lost.
const claimEarly = 5 * time.Second

// Claim takes a waiting, due row for one attempt. It counts the attempt before
// the work, so a worker that dies again and again still spends the budget. A row
// whose worker has died is put back first, see [Inbox.FreeLease], and waits: the
// events that died with it in one batch would otherwise all come back together,
// and die together again.
func Claim(id InboxID, claim ClaimID, now time.Time, lease time.Duration, attemptsMax int) Change {
	assert(claim != "", "claim of %s without a claim id", id)
	assert(lease > 0 && attemptsMax > 0, "claim of %s with lease %s and %d attempts", id, lease, attemptsMax)
	return Change{
		Transition: "claim",
		ID:         id,
		Guard: Guard{
			From: []Status{Received, Retry}, AnyFence: true,
			DueBy: now.Add(claimEarly), AttemptsBelow: attemptsMax,
		},
		To: Processing, LeaseUntil: now.Add(lease), ClaimID: claim, Attempts: 1,
	}
}

// Complete ends a claimed row as PROCESSED. It keeps the claim id, so that a
// worker whose reply was lost can recognise its own commit.
func (row Inbox) Complete(outcome Outcome, now time.Time, keep time.Duration) Change {
	row.mustBeClaimed("complete")
	assert(outcome != "", "complete of %s without an outcome", row.ID)
	return Change{
		Transition: "complete", ID: row.ID, Guard: row.asClaimed(),
		To: Processed, Outcome: outcome, KeepClaim: true,
		ProcessedAt: now, ExpiresAt: now.Add(keep),
	}
}

// Retry puts a claimed row back to wait until next. A fault that is ours gives
// the attempt back.
func (row Inbox) Retry(next time.Time, reason string, ours bool) Change {
	row.mustBeClaimed("retry")
	c := Change{
		Transition: "retry", ID: row.ID, Guard: row.asClaimed(),
		To: Retry, NextAttemptAt: next, LastError: clip(reason),
	}
	if ours && row.AttemptCount > 0 {
		c.Attempts = -1
	}
	return c
}

// Fail ends a row as FAILED, from the state and fence it was read with.
func (row Inbox) Fail(now time.Time, reason string, keep time.Duration) Change {
	assert(!row.Status.Terminal(), "fail of %s, which is %s", row.ID, row.Status)
	return Change{
		Transition: "fail", ID: row.ID,
		Guard: Guard{From: []Status{row.Status}, Fence: row.Fence},
		To:    Failed, LastError: clip(reason), Leaves: row.Slot,
		ProcessedAt: now, ExpiresAt: now.Add(keep),
	}
}

// Exhausted reports whether a row has spent its attempts and would otherwise be
// claimable at now: such a row fails; one that a rival works on does not.
func (row Inbox) Exhausted(now time.Time, attemptsMax int) bool {
	if row.AttemptCount < attemptsMax {
		return false
	}
	return row.Status.Waiting() && !row.NextAttemptAt.After(now.Add(claimEarly)) || row.LeaseOver(now)
}

// LeaseOver reports whether the row is claimed by a worker whose time is up.
func (row Inbox) LeaseOver(now time.Time) bool {
	return row.Status == Processing && row.LeaseUntil.Before(now)
}

// FreeLease puts a row back whose worker let the lease run out. The attempt
// stays spent: a worker's death counts.
func (row Inbox) FreeLease(now, next time.Time) Change {
	assert(row.LeaseOver(now), "free of %s, whose lease lasts until %s", row.ID, row.LeaseUntil)
	c := row.Retry(next, "lease_expired", false)
	c.Transition = "free_lease"
	c.Guard.LeaseOverAt = now
	return c
}

// FailLease ends a row whose worker let the lease of the last attempt run out.
func (row Inbox) FailLease(now time.Time, keep time.Duration) Change {
	assert(row.LeaseOver(now), "fail of %s, whose lease lasts until %s", row.ID, row.LeaseUntil)
	c := row.Fail(now, "attempts_exhausted", keep)
	c.Transition = "fail_lease"
	c.Guard.LeaseOverAt = now
	return c
}

// replayBody is how much longer the body of a replayed event must live, so that
// it is not gone before the work is done.
const replayBody = 24 * time.Hour

// Replay opens a FAILED row again, by an operator: the attempts begin anew.
func (row Inbox) Replay(now time.Time) Change {
	assert(row.Status == Failed, "replay of %s, which is %s", row.ID, row.Status)
	return row.reopen("replay", now)
}

// Release opens a HELD row, by an operator.
func (row Inbox) Release(now time.Time) Change {
	assert(row.Status == Held, "release of %s, which is %s", row.ID, row.Status)
	return row.reopen("release", now)
}

// Reprocess opens a PROCESSED row for another run, by an operator: its handler
// will apply the event once more, under a mark of its own. Only a handler that
// declares itself safe to run again may be given such an event.
func (row Inbox) Reprocess(now time.Time) Change {
	assert(row.Status == Processed, "reprocess of %s, which is %s", row.ID, row.Status)
	c := row.reopen("reprocess", now)
	c.NextRun = true
	return c
}

func (row Inbox) reopen(transition string, now time.Time) Change {
	return Change{
		Transition: transition, ID: row.ID,
		Guard: Guard{From: []Status{row.Status}, Fence: row.Fence, BodyAliveAt: now.Add(replayBody), Free: true},
		To:    Received, NextAttemptAt: now, Reopen: true,
	}
}

// Replayable reports whether the row's body lives long enough to open it again.
func (row Inbox) Replayable(now time.Time) bool { return row.BodyExpiresAt.After(now.Add(replayBody)) }

// Hold takes an open row out of the work, by an operator, until it is released.
// A worker that has it loses its claim.
func (row Inbox) Hold(reason string) Change {
	assert(!row.Status.Terminal() && row.Status != Held, "hold of %s, which is %s", row.ID, row.Status)
	return Change{
		Transition: "hold", ID: row.ID,
		Guard: Guard{From: []Status{row.Status}, Fence: row.Fence},
		To:    Held, LastError: clip(reason), Leaves: row.Slot,
	}
}

// Requeue raises an open row's fence and changes nothing else of it, so that a
// promise which was lost, or belongs to another life, is put anew in the same
// transaction. A worker that has the row loses its claim; the lease runs on.
func (row Inbox) Requeue() Change {
	assert(!row.Status.Terminal(), "requeue of %s, which is %s", row.ID, row.Status)
	return Change{
		Transition: "requeue", ID: row.ID,
		Guard: Guard{From: []Status{row.Status}, Fence: row.Fence},
		To:    row.Status, LeaseUntil: row.LeaseUntil, KeepClaim: true, Slot: row.Slot,
	}
}

func (row Inbox) asClaimed() Guard {
	return Guard{From: []Status{Processing}, Fence: row.Fence}
}

func (row Inbox) mustBeClaimed(transition string) {
	assert(row.Status == Processing && row.ClaimID != "", "%s of %s, which is %s", transition, row.ID, row.Status)
}

func clip(reason string) string {
	return reason[:min(len(reason), LastErrorBytesMax)]
}

// assert ends the record at hand when our own code has broken a rule. The queue
// hands the record out again, so a wrong answer becomes a late one.
func assert(ok bool, format string, args ...any) {
	if !ok {
		panic("webhook: " + fmt.Sprintf(format, args...))
	}
}
