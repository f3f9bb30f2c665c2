package operator

import (
	"context"
	"encoding/json"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// Fate is what the protocol's rule makes of a wake-up that is sent again: what its
// row says, and nothing of the letter.
type Fate string

// The fates. Three of them have something done, [FateClaimed], [FateExpired] and
// [FateCancelled]; [FateFailed] and [FateDead] wait for an operator's replay; two
// kinds nobody can read. All others are dropped: there is nothing to do, or the
// row's own promise wakes somebody.
const (
	FateClaimed Fate = "claimed" // waiting and due, or its worker's time is over
	// FateExpired is an event that is PARKED beyond its deadline and ends FAILED, or a
	// delivery beyond its own, which ends EXPIRED.
	FateExpired   Fate = "expired"
	FateCancelled Fate = "cancelled"  // a delivery whose subscription is stopped or gone: it ends CANCELLED
	FateNewer     Fate = "newer_wake" // of a newer version than this program
	FateForeign   Fate = "not_a_wake"
	FateFailed    Fate = "failed" // an event for an operator to replay
	FateDead      Fate = "dead"   // a delivery that ended DEAD or EXPIRED and was not replayed
	FateNotDue    Fate = "not_due"
	FateWorking   Fate = "working" // a worker has it
	FateParked    Fate = "parked"
	FateHeld      Fate = "held"
	FatePaused    Fate = "paused"  // its endpoint, or its subscription, is
	FateFaulted   Fate = "faulted" // a delivery for which something of ours is missing
	// FateUnaddressed is an effect that calls a subscription which is not there: its
	// promise stays until it is.
	FateUnaddressed Fate = "unaddressed"
	FateProcessed   Fate = "processed"
	FateEnded       Fate = "ended"   // a delivery that ended, and nobody is to replay
	FateMissing     Fate = "missing" // there is no such row; an effect's promise goes when it is fanned out
)

// Useless reports whether a letter of this fate changes nothing when it is sent
// again, and nobody is to decide about it.
func (f Fate) Useless() bool {
	switch f {
	case FateNotDue, FateWorking, FateParked, FateHeld, FatePaused, FateFaulted, FateUnaddressed, FateProcessed, FateEnded, FateMissing:
		return true
	case FateClaimed, FateExpired, FateCancelled, FateNewer, FateForeign, FateFailed, FateDead:
	}
	return false
}

// DeadLetter is a wake-up that its worker could not take, with its row. At most
// one of the rows is there: none where the letter names none.
type DeadLetter struct {
	webhook.Letter

	Wake     webhook.Wake // zero where the letter is none of ours
	Row      *webhook.Inbox
	Delivery *delivery.Delivery
	Promise  *webhook.Outbox // of an effect
	Fate     Fate
}

// judge reads a letter's row and says its fate.
type judge func(context.Context, webhook.Letter) (DeadLetter, error)

// readLetter reads a letter. False means that its fate is told by its text alone.
func readLetter(l webhook.Letter, ours func(webhook.Wake) bool) (DeadLetter, bool) {
	d := DeadLetter{Letter: l, Fate: FateForeign}
	var wake webhook.Wake
	if json.Unmarshal([]byte(l.Body), &wake) != nil || !ours(wake) {
		return d, false
	}
	d.Wake = wake
	if wake.Version > webhook.WakeVersion {
		d.Fate = FateNewer
		return d, false
	}
	d.Fate = FateMissing // until a row is found
	return d, true
}

// judgeEvents says what a processor would do. It remembers which endpoints are paused.
func (o *Operator) judgeEvents() judge {
	paused := o.pauses()
	return func(ctx context.Context, l webhook.Letter) (DeadLetter, error) {
		d, ours := readLetter(l, func(w webhook.Wake) bool { return w.InboxID != "" && w.Topic == webhook.TopicProcess })
		if !ours {
			return d, nil
		}
		row, found, err := o.Inbox.Inbox(ctx, d.Wake.InboxID)
		switch {
		case err != nil:
			return d, unreachable("the inbox", err)
		case !found:
			return d, nil
		}
		d.Row = &row
		is, err := paused(ctx, row.Endpoint)
		if err != nil {
			return d, err
		}
		d.Fate = fateOf(row, is, o.Now())
		return d, nil
	}
}

// claimEarly is how much before its due time a worker claims a row.
const claimEarly = 5 * time.Second

// fateOf says what a worker would do about an event's row.
func fateOf(row webhook.Inbox, paused bool, now time.Time) Fate {
	switch row.Status {
	case webhook.Processed:
		return FateProcessed
	case webhook.Failed:
		return FateFailed
	case webhook.Held:
		return FateHeld
	case webhook.Received, webhook.Retry, webhook.Parked, webhook.Processing:
	}
	switch {
	case paused:
		return FatePaused
	case row.GapOver(now):
		return FateExpired
	case row.Status == webhook.Parked:
		return FateParked
	case row.Status == webhook.Processing && !row.LeaseOver(now):
		return FateWorking
	case row.Status.Waiting() && row.NextAttemptAt.After(now.Add(claimEarly)):
		return FateNotDue
	}
	return FateClaimed
}

// judgeDeliveries says what a dispatcher would do: attempt a delivery, or fan an
// effect out. It remembers subscriptions.
func (o *Operator) judgeDeliveries() judge {
	known := map[delivery.SubscriptionID]*delivery.Subscription{}
	subscription := func(ctx context.Context, id delivery.SubscriptionID) (*delivery.Subscription, error) {
		if s, read := known[id]; read {
			return s, nil
		}
		s, found, err := o.Deliveries.Subscription(ctx, id)
		switch {
		case err != nil:
			return nil, unreachable("the registry", err)
		case !found:
			known[id] = nil
		default:
			known[id] = &s
		}
		return known[id], nil
	}
	return func(ctx context.Context, l webhook.Letter) (DeadLetter, error) {
		d, ours := readLetter(l, func(w webhook.Wake) bool {
			return w.Topic == webhook.TopicEffect || w.Topic == webhook.TopicDeliver && w.Delivery != ""
		})
		switch {
		case !ours:
			return d, nil
		case d.Wake.Topic == webhook.TopicEffect:
			return o.judgeEffect(ctx, d, subscription)
		}
		return o.judgeDelivery(ctx, d, subscription)
	}
}

// subscriptionReader returns nil for a subscription that is not there.
type subscriptionReader func(context.Context, delivery.SubscriptionID) (*delivery.Subscription, error)

func (o *Operator) judgeDelivery(ctx context.Context, d DeadLetter, subscription subscriptionReader) (DeadLetter, error) {
	row, found, err := o.Deliveries.Delivery(ctx, delivery.ID(d.Wake.Delivery))
	switch {
	case err != nil:
		return d, unreachable("the deliveries", err)
	case !found:
		return d, nil
	}
	d.Delivery = &row
	s, err := subscription(ctx, row.Subscription)
	if err != nil {
		return d, err
	}
	d.Fate = fateOfDelivery(row, s, o.Now())
	return d, nil
}

// fateOfDelivery says what a worker would do about a delivery. One that is claimed
// is attempted, or ends DEAD where its attempts are spent.
func fateOfDelivery(d delivery.Delivery, s *delivery.Subscription, now time.Time) Fate {
	switch d.Status {
	case delivery.Dead, delivery.Expired:
		if d.ReplayedAs == "" {
			return FateDead
		}
		return FateEnded
	case delivery.Delivered, delivery.Cancelled:
		return FateEnded
	case delivery.Pending, delivery.Sending, delivery.Retry, delivery.Faulted:
	}
	switch {
	case d.Status == delivery.Sending && !d.LeaseOver(now):
		return FateWorking
	case !now.Before(d.Deadline):
		return FateExpired
	case d.Status == delivery.Faulted:
		return FateFaulted
	case !d.Due(now):
		return FateNotDue
	case s == nil || s.State == delivery.Stopped:
		return FateCancelled
	case s.Holds(d):
		return FatePaused
	}
	return FateClaimed
}

// judgeEffect looks for the promise that an effect is fanned out, which goes when
// that is done.
func (o *Operator) judgeEffect(ctx context.Context, d DeadLetter, subscription subscriptionReader) (DeadLetter, error) {
	p, found, err := o.Inbox.Outbox(ctx, d.Wake.OutboxID)
	switch {
	case err != nil:
		return d, unreachable("the outbox", err)
	case !found || p.Effect == nil || p.Gen != d.Wake.Gen:
		return d, nil
	}
	d.Promise, d.Fate = &p, FateClaimed
	if p.Effect.Call == "" || !o.Now().Before(p.Effect.BodyExpiresAt) {
		return d, nil
	}
	s, err := subscription(ctx, delivery.SubscriptionID(p.Effect.Call))
	if err != nil {
		return d, err
	}
	if s == nil || !s.Wants(*p.Effect, func(string) (string, bool) { return "", false }) {
		d.Fate = FateUnaddressed
	}
	return d, nil
}
