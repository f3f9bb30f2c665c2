package delivery

import (
	"fmt"
	"slices"
	"time"

	"dakghar/internal/webhook"
)

// Guard is what the store must find true for a change to be written.
type Guard struct {
	From []Status
	// Fence must equal the row's, unless AnyFence is set.
	Fence    webhook.Fence
	AnyFence bool
	// AttemptsFrom, when positive, asks for at least so many attempts.
	AttemptsFrom int
}

// Allows reports whether the guard holds for a delivery. The store evaluates the
// same conditions itself, inside the write.
func (g Guard) Allows(d Delivery) bool {
	switch {
	case !slices.Contains(g.From, d.Status):
		return false
	case !g.AnyFence && d.Fence != g.Fence:
		return false
	case g.AttemptsFrom > 0 && d.AttemptCount < g.AttemptsFrom:
		return false
	}
	return true
}

// Change is a decided transition of one delivery: the guard, and what the row
// becomes. The fence is raised by one in every change.
type Change struct {
	Transition string
	ID         ID
	Guard      Guard
	To         Status

	NextAttemptAt time.Time // zero: unchanged
	LeaseUntil    time.Time // zero: removed
	ClaimID       ClaimID   // empty: removed
	Attempts      int       // added to attempt_count
	LastStatus    int       // 0: unchanged
	LastError     string    // empty: unchanged
	ReplayedAs    ID        // empty: unchanged
	EndedAt       time.Time // zero: unchanged
	ExpiresAt     time.Time // zero: unchanged
	WakeAt        time.Time // zero: removed
}

// Apply returns the delivery after the change.
func (c Change) Apply(d Delivery) Delivery {
	d.Status, d.Fence, d.Wakes = c.To, d.Fence+1, 0
	d.AttemptCount += c.Attempts
	d.LeaseUntil, d.ClaimID, d.WakeAt = c.LeaseUntil, c.ClaimID, c.WakeAt
	if !c.NextAttemptAt.IsZero() {
		d.NextAttemptAt = c.NextAttemptAt
	}
	if c.LastStatus != 0 {
		d.LastStatus = c.LastStatus
	}
	if c.LastError != "" {
		d.LastError = c.LastError
	}
	if c.ReplayedAs != "" {
		d.ReplayedAs = c.ReplayedAs
	}
	if !c.EndedAt.IsZero() {
		d.EndedAt, d.ExpiresAt = c.EndedAt, c.ExpiresAt
	}
	return d
}

// claimEarly is how much before its due time a delivery may be claimed: a
// queue's delay is not exact.
const claimEarly = 5 * time.Second

// Claim takes a waiting, due delivery, or one whose worker's lease is over, for
// one attempt, which it counts, as it was read. The lease must outlast the
// attempt's own deadline.
func (d Delivery) Claim(claim ClaimID, now time.Time, lease time.Duration) Change {
	assert(claim != "" && lease > 0, "claim of %s with claim %q and lease %s", d.ID, claim, lease)
	assert(d.Due(now), "claim of %s, which is %s", d.ID, d.Status)
	return Change{
		Transition: "claim", ID: d.ID,
		Guard: Guard{From: []Status{d.Status}, Fence: d.Fence},
		To:    Sending, LeaseUntil: now.Add(lease), ClaimID: claim, Attempts: 1, WakeAt: now.Add(lease + firstWake),
	}
}

// Deliver ends a delivery as DELIVERED. A 2xx is a fact, however late: it holds
// although the worker's lease is over and another attempt is under way, but not
// where the delivery has ended.
func (d Delivery) Deliver(now time.Time, status int) Change {
	d.mustBeClaimed("deliver")
	c := d.end("deliver", Delivered, now)
	c.Guard = Guard{From: []Status{Sending, Retry, Faulted}, AnyFence: true, AttemptsFrom: d.AttemptCount}
	c.LastStatus = status
	return c
}

// Again puts a claimed delivery back to wait until next.
func (d Delivery) Again(next time.Time, status int, code string) Change {
	d.mustBeClaimed("again")
	return Change{
		Transition: "again", ID: d.ID, Guard: d.asClaimed(),
		To: Retry, NextAttemptAt: next, LastStatus: status, LastError: clip(code), WakeAt: next.Add(firstWake),
	}
}

// Kill ends a delivery as DEAD, from the state it was read in.
func (d Delivery) Kill(now time.Time, status int, code string) Change {
	assert(!d.Status.Terminal(), "kill of %s, which is %s", d.ID, d.Status)
	c := d.end("kill", Dead, now)
	c.LastStatus, c.LastError = status, clip(code)
	return c
}

// Expire ends a delivery whose deadline has passed, from the state it was read in.
func (d Delivery) Expire(now time.Time) Change {
	assert(!d.Status.Terminal(), "expire of %s, which is %s", d.ID, d.Status)
	c := d.end("expire", Expired, now)
	c.LastError = "deadline_passed"
	return c
}

// Fault sets a delivery aside that cannot be signed: something of ours is
// missing, and an operator has to mend it. Nothing was sent.
func (d Delivery) Fault(now time.Time, code string) Change {
	assert(!d.Status.Terminal() && d.Status != Faulted, "fault of %s, which is %s", d.ID, d.Status)
	return Change{
		Transition: "fault", ID: d.ID, Guard: Guard{From: []Status{d.Status}, Fence: d.Fence},
		To: Faulted, LastError: clip(code), WakeAt: d.Deadline,
	}
}

// Resume lets a FAULTED delivery be worked on, by an operator.
func (d Delivery) Resume(now time.Time) Change {
	assert(d.Status == Faulted, "resume of %s, which is %s", d.ID, d.Status)
	return Change{
		Transition: "resume", ID: d.ID, Guard: Guard{From: []Status{Faulted}, Fence: d.Fence},
		To: Retry, NextAttemptAt: now, WakeAt: now.Add(firstWake),
	}
}

// Postpone moves a waiting delivery's due time without an attempt: while its
// subscription is paused, beyond its rate, or behind a breaker.
func (d Delivery) Postpone(next time.Time) Change {
	assert(d.Status.Waiting(), "postpone of %s, which is %s", d.ID, d.Status)
	return Change{
		Transition: "postpone", ID: d.ID, Guard: Guard{From: []Status{d.Status}, Fence: d.Fence},
		To: d.Status, NextAttemptAt: next, WakeAt: next.Add(firstWake),
	}
}

// Cancel ends a delivery by an operator.
func (d Delivery) Cancel(now time.Time, code string) Change {
	assert(!d.Status.Terminal(), "cancel of %s, which is %s", d.ID, d.Status)
	c := d.end("cancel", Cancelled, now)
	c.LastError = clip(code)
	return c
}

// Replay returns the delivery that repeats a terminal one, under an identity of
// its own, and the change that links the old one to it. A delivery is repeated
// once; its repetition can be repeated again.
func (d Delivery) Replay(s Subscription, now time.Time) (Delivery, Change) {
	assert(d.Status.Terminal() && d.ReplayedAs == "", "replay of %s, which is %s and was replayed as %q", d.ID, d.Status, d.ReplayedAs)
	next := New(d.Effect, s, now)
	next.Generation, next.ReplayOf = d.Generation+1, d.ID
	next.ID = DeriveID(d.Tenant, d.Effect.ID, d.Subscription, next.Generation)
	return next, Change{
		Transition: "replay", ID: d.ID, Guard: Guard{From: []Status{d.Status}, Fence: d.Fence},
		To: d.Status, ReplayedAs: next.ID,
	}
}

func (d Delivery) end(transition string, to Status, now time.Time) Change {
	return Change{
		Transition: transition, ID: d.ID, Guard: Guard{From: []Status{d.Status}, Fence: d.Fence},
		To: to, EndedAt: now, ExpiresAt: now.Add(Keep),
	}
}

func (d Delivery) asClaimed() Guard { return Guard{From: []Status{Sending}, Fence: d.Fence} }

func (d Delivery) mustBeClaimed(transition string) {
	assert(d.Status == Sending && d.ClaimID != "", "%s of %s, which is %s", transition, d.ID, d.Status)
}

func clip(code string) string { return code[:min(len(code), webhook.LastErrorBytesMax)] }

// assert ends the record at hand when our own code has broken a rule.
func assert(ok bool, format string, args ...any) {
	if !ok {
		panic("delivery: " + fmt.Sprintf(format, args...))
	}
}
