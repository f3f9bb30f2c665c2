package delivery

import (
	"strconv"
	"time"

	"dakghar/internal/webhook"
)

// Identifiers are distinct types, so that no two of them can be swapped.
type (
	// ID identifies one event's delivery to one subscription; see [DeriveID].
	ID string
	// SubscriptionID names one address of one partner. It is never reused.
	SubscriptionID string
	// ClaimID identifies one attempt by one worker, drawn at random.
	ClaimID string
)

// DeriveID returns the identity of a delivery. Generation 0 is the first; an
// operator's replay has the next one.
func DeriveID(t webhook.Tenant, effect webhook.EffectID, s SubscriptionID, generation int) ID {
	return ID(webhook.DeriveID("dl_", "delivery", string(t), string(effect), string(s), strconv.Itoa(generation)))
}

// Status is the state of a delivery.
type Status string

// The states. PENDING and RETRY wait for a worker; SENDING is claimed; FAULTED
// waits for an operator, since something of ours is missing; the others are
// terminal.
const (
	Pending   Status = "PENDING"
	Sending   Status = "SENDING"
	Retry     Status = "RETRY"
	Faulted   Status = "FAULTED"
	Delivered Status = "DELIVERED"
	Dead      Status = "DEAD"      // the partner's final answer, or its attempts spent
	Expired   Status = "EXPIRED"   // its deadline passed first
	Cancelled Status = "CANCELLED" // by an operator, or with its subscription
)

// Statuses lists every state.
func Statuses() []Status {
	return []Status{Pending, Sending, Retry, Faulted, Delivered, Dead, Expired, Cancelled}
}

// Terminal reports whether nothing takes a delivery out of s: only a replay, as
// another delivery, follows.
func (s Status) Terminal() bool {
	return s == Delivered || s == Dead || s == Expired || s == Cancelled
}

// Waiting reports whether s waits for a worker.
func (s Status) Waiting() bool { return s == Pending || s == Retry }

// Delivery is one event's way to one subscription. It never holds the event's
// bytes, and stays under 1,024 bytes in storage.
type Delivery struct {
	ID           ID
	Tenant       webhook.Tenant
	Subscription SubscriptionID
	Effect       webhook.Effect // what is delivered
	Generation   int
	ReplayOf     ID // the delivery that this one repeats
	ReplayedAs   ID // the delivery that repeats this one

	Status        Status
	Fence         webhook.Fence // raised by one on every change by anyone
	AttemptCount  int
	NextAttemptAt time.Time
	LeaseUntil    time.Time
	ClaimID       ClaimID
	CreatedAt     time.Time
	Deadline      time.Time // no attempt begins after it
	LastStatus    int       // of the last attempt that was answered; 0 for none
	LastError     string    // a code of at most [webhook.LastErrorBytesMax] bytes
	EndedAt       time.Time
	ExpiresAt     time.Time // when the row goes; set at a terminal state
	// WakeAt is when the reconciler looks, always later than the work is due. It
	// never decides what is done. Zero at a terminal state.
	WakeAt time.Time
	Wakes  int
}

// Keep is how long a delivery's rows are kept after its end.
const Keep = 90 * 24 * time.Hour

// firstWake is how long the reconciler gives the queue before it looks itself.
const firstWake = time.Minute

// New returns the delivery of an effect to a subscription, due at once. It is over
// with its profile's time, or with the life of its bytes: a replay may find less of
// that left.
func New(effect webhook.Effect, s Subscription, now time.Time) Delivery {
	deadline := now.Add(s.Profile().Deadline)
	if end := effect.BodyExpiresAt; !end.IsZero() && end.Before(deadline) {
		deadline = end
	}
	return Delivery{
		ID: DeriveID(effect.Tenant, effect.ID, s.ID, 0), Tenant: effect.Tenant, Subscription: s.ID, Effect: effect,
		Status: Pending, NextAttemptAt: now, CreatedAt: now, Deadline: deadline, WakeAt: now.Add(firstWake),
	}
}

// WakeAgain returns when somebody looks once more, after a wake-up at now: after
// 5 minutes, doubling to 6 hours.
func (d Delivery) WakeAgain(now time.Time) time.Time {
	wait := wakeMax
	if d.Wakes < 7 { // 5 min · 2^7 is already beyond 6 h
		wait = min(wakeFirst<<d.Wakes, wakeMax)
	}
	return now.Add(wait)
}

const (
	wakeFirst = 5 * time.Minute
	wakeMax   = 6 * time.Hour
)

// Wake is the message that somebody should look at the delivery. It is never the
// record.
func (d Delivery) Wake() webhook.Wake {
	return webhook.Wake{Version: webhook.WakeVersion, Topic: webhook.TopicDeliver, InboxID: d.Effect.InboxID, Delivery: string(d.ID), Gen: d.Fence}
}

// LeaseOver reports whether the delivery is claimed by a worker whose time is up.
func (d Delivery) LeaseOver(now time.Time) bool {
	return d.Status == Sending && d.LeaseUntil.Before(now)
}

// Due reports whether a worker may take the delivery at now.
func (d Delivery) Due(now time.Time) bool {
	return d.Status.Waiting() && !d.NextAttemptAt.After(now.Add(claimEarly)) || d.LeaseOver(now)
}

// Attempt is one try of a delivery. It is recorded before anything is sent;
// Result is empty until its answer is known, and stays so where the worker died.
type Attempt struct {
	Delivery ID
	N        int // from 1
	At       time.Time
	KeyID    string
	Result   Result
	Status   int           // the partner's, 0 without an answer
	Code     string        // why there was none, or what was wrong with it
	Took     time.Duration // from the first byte sent to the last one read
	// Answer is the beginning of the partner's answer, printable and cut.
	Answer string
	// Redirects counts the redirects that were followed.
	Redirects int
}

// AnswerBytesMax bounds what is kept of a partner's answer.
const AnswerBytesMax = 256

// Result says how an attempt ended.
type Result string

// The results.
const (
	Abandoned    Result = ""             // the worker died, or its answer was never recorded
	Accepted     Result = "accepted"     // 2xx
	Refused      Result = "refused"      // a final answer
	Troubled     Result = "troubled"     // to be tried again
	NotSent      Result = "not_sent"     // nothing left the house: our own fault
	Discontinued Result = "discontinued" // 410: the partner wants nothing more
)
