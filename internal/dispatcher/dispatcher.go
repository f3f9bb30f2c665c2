// Package dispatcher tells partners what was committed. A wake-up leads to one
// of two things: an effect is fanned out into one delivery for each subscription
// that wants it, or a delivery is attempted once.
//
// Invariants:
//
//   - A delivery is put if absent, under an identity that follows from the effect:
//     fanning out twice, or by two workers, makes no second one.
//   - An attempt is recorded, under the fence, before anything is sent. Whatever
//     waits for a partner's limit, a breaker or our own stores spends no attempt.
//   - Nothing unsigned is sent: without a key, the delivery is set aside and an
//     operator is told.
//   - The bytes that are signed and sent are the stored ones.
//   - A wake-up is never the record, and is finished with in every case.
//
// The package knows no HTTP client and no store, and never logs a body.
package dispatcher

import (
	"context"
	"time"

	"dakghar/internal/backoff"
	"dakghar/internal/delivery"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Store reads and writes the rows.
type Store interface {
	Outbox(ctx context.Context, id webhook.OutboxID) (webhook.Outbox, bool, error)
	DeleteOutbox(ctx context.Context, id webhook.OutboxID, upTo webhook.Fence) (bool, error)
	Postpone(ctx context.Context, id webhook.OutboxID, gen webhook.Fence, due, now time.Time) (bool, error)
	MoveCursor(ctx context.Context, o webhook.Outbox, cursor string) (bool, error)

	CreateDelivery(ctx context.Context, d delivery.Delivery) (bool, error)
	Delivery(ctx context.Context, id delivery.ID) (delivery.Delivery, bool, error)
	ChangeDelivery(ctx context.Context, c delivery.Change) (bool, error)
	BeginAttempt(ctx context.Context, c delivery.Change, a delivery.Attempt) (bool, error)
	EndAttempt(ctx context.Context, c delivery.Change, a delivery.Attempt) (bool, error)
	UpdateSubscription(ctx context.Context, s delivery.Subscription) (bool, error)
	PauseSubscription(ctx context.Context, s delivery.Subscription, promise webhook.Outbox) (bool, error)
	Subscription(ctx context.Context, id delivery.SubscriptionID) (delivery.Subscription, bool, error)
}

// Subscriptions tells what partners want, at most half a minute old.
type Subscriptions interface {
	Of(ctx context.Context, t webhook.Tenant, now time.Time) ([]delivery.Subscription, error)
}

// Bodies opens an effect's bytes, and keeps those of the dispatcher's own events.
type Bodies interface {
	Put(ctx context.Context, b webhook.Body) (webhook.Placed, error)
	Open(ctx context.Context, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error)
}

// Keys reads what a subscription signs with, and its partner's credential.
type Keys interface {
	// Signing returns the keys in the order of the subscription's, the newest first.
	// A key that the store does not hold is an error of [delivery.ErrKeyMissing].
	Signing(ctx context.Context, s delivery.Subscription, keys []delivery.Key) ([]delivery.SigningKey, error)
	Credential(ctx context.Context, s delivery.Subscription) (string, error)
	// NewestCredential asks the store again for one that was just refused.
	NewestCredential(ctx context.Context, s delivery.Subscription) (string, error)
}

// Sender delivers one attempt to targets of one kind. sign returns the headers
// for this very moment; it is called once for every request, redirects included.
type Sender interface {
	Send(ctx context.Context, s delivery.Subscription, body []byte, sign func() (map[string]string, error)) (delivery.Answer, error)
}

// Queue takes wake-ups, one error for each.
type Queue interface {
	Send(ctx context.Context, wakes []webhook.Wake, delays []time.Duration) []error
}

// Dispatcher works on wake-ups. All fields are required.
type Dispatcher struct {
	Store         Store
	Subscriptions Subscriptions
	Bodies        Bodies
	Keys          Keys
	Senders       map[delivery.TargetKind]Sender
	Queue         Queue
	Partners      *Partners
	Policy        Policy
	Now           func() time.Time
	NewID         func() string
	Chance        func() float64
	Wait          func(ctx context.Context, d time.Duration) error
}

// Policy holds the numbers that an operator chooses.
type Policy struct {
	// Attempt bounds one attempt, redirects included.
	Attempt time.Duration
	// Lease is at least Attempt and half a minute.
	Lease time.Duration
	Ours  backoff.Schedule // while we are at fault
}

// Result is what became of a wake-up, for the log line and the metrics.
type Result struct {
	Topic        webhook.Topic
	Effect       webhook.EffectID
	Delivery     delivery.ID
	Subscription delivery.SubscriptionID
	Tenant       webhook.Tenant
	Type         string
	Attempt      int
	// Decision is one of [Decisions].
	Decision string
	Created  int // deliveries that a fan-out made
	Status   int // the partner's
	Code     string
	Age      time.Duration // from the effect to now
	Took     time.Duration
	// AutoPaused is set when the attempt paused its subscription after days of failure.
	AutoPaused bool
	Err        error
}

// Decisions lists every decision; each is counted apart.
func Decisions() []string {
	return []string{
		"fanned_out", "unfinished", "unaddressed", "gone", // of an effect
		"delivered", "retry", "dead", "expired", "faulted", "cancelled", // of a delivery
		"waits", "paused", "not_due", "ended", "claim_lost", "missing", // of one that is left as it is
		"unavailable", // of both
	}
}

// Handle looks at one row and does what it says. It never returns an error: what
// could not be done is promised again by the rows themselves.
func (d *Dispatcher) Handle(ctx context.Context, wake webhook.Wake) Result {
	if wake.Topic == webhook.TopicEffect {
		return d.fanOut(ctx, wake)
	}
	return d.deliver(ctx, delivery.ID(wake.Delivery))
}

func (r Result) end(decision string, err error) Result {
	r.Decision = decision
	if err != nil {
		r.Err, r.Code = err, fault.CodeOf(err)
	}
	return r
}
