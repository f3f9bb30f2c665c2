package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/effect"
	"dakghar/internal/webhook"
)

// How often a test's delivery is looked for, and how often somebody is woken for
// it until it is there: a process may not know the subscription yet.
const (
	tryLook = 250 * time.Millisecond
	tryWake = 5 * time.Second
)

// Try sends a test event to one subscription, by the way that every event takes,
// and waits for what becomes of its first attempt, at most as long as told. A
// wait that ends first is no error of the test: what is there is returned with it.
func (o *Operator) Try(ctx context.Context, id delivery.SubscriptionID, wait time.Duration, why string) (DeliveryStory, error) {
	s, err := o.subscription(ctx, id)
	switch {
	case err != nil:
		return DeliveryStory{}, err
	case s.State != delivery.Active:
		return DeliveryStory{}, refuse("subscription_"+string(s.State), fmt.Sprintf("subscription %s is %s, so a test would wait as well", id, s.State),
			run("see it:", "subscription", "show", string(id)))
	case wait < 0:
		return DeliveryStory{}, misuse("--wait is 0 or more")
	}
	promise, err := o.announceTest(ctx, s, why)
	if err != nil {
		return DeliveryStory{}, err
	}
	return o.awaitAttempt(ctx, promise, delivery.DeriveID(s.Tenant, promise.Effect.ID, s.ID, 0), wait)
}

// announceTest keeps the event's bytes, and then promises that the subscription
// is told. Dying in between leaves bytes that nobody refers to.
func (o *Operator) announceTest(ctx context.Context, s delivery.Subscription, why string) (webhook.Outbox, error) {
	act, err := o.act(ctx, "subscription test", subjectOfSubscription(s.ID), why)
	if err != nil {
		return webhook.Outbox{}, err
	}
	data, err := json.Marshal(map[string]string{"subscription": string(s.ID), "test": act.ID})
	if err != nil {
		return webhook.Outbox{}, err
	}
	// What names the event in place of an accepted one: this very act.
	source := webhook.InboxID(webhook.DeriveID("st_", "subscription test", string(s.ID), act.ID))
	e, err := effect.Keep(ctx, o.Keeper, webhook.Announcement{Type: delivery.TestType, Call: string(s.ID), Data: data}, webhook.Effect{
		ID: webhook.DeriveEffectID(source, 0, 0), InboxID: source, Tenant: s.Tenant, CreatedAt: act.At,
	}, act.At.Truncate(time.Millisecond), o.NewID()) // as finely as an event's receipt is told
	if err != nil {
		return webhook.Outbox{}, unreachable("the body store", err)
	}
	promise := webhook.NewEffectOutbox(e, 0, 0, act.At)
	if _, err := o.Deliveries.AnnounceBy(ctx, promise, act); err != nil {
		return promise, unreachable("the outbox", err)
	}
	return promise, nil
}

// awaitAttempt waits until a first attempt has ended, or none will be made.
func (o *Operator) awaitAttempt(ctx context.Context, promise webhook.Outbox, id delivery.ID, wait time.Duration) (DeliveryStory, error) {
	end := o.Now().Add(wait)
	wakeAt := o.Now().Add(tryWake)
	for {
		d, found, err := o.Deliveries.Delivery(ctx, id)
		switch now := o.Now(); {
		case err != nil:
			return DeliveryStory{}, unreachable("the deliveries", err)
		case found && (d.Status == delivery.Retry && d.AttemptCount > 0 || d.Status == delivery.Faulted || d.Status.Terminal()):
			return o.Delivery(ctx, id)
		case !now.Before(end):
			return DeliveryStory{Row: delivery.Delivery{ID: id, Subscription: delivery.SubscriptionID(promise.Effect.Call)}}, refuse("test_waits",
				fmt.Sprintf("the test was sent on its way as %s, and no attempt has ended within %s", id, wait),
				run("see what becomes of it:", "delivery", "show", string(id)),
				say(whyItWaits(d, found, now)))
		case !found && !now.Before(wakeAt):
			o.Wakes.Send(ctx, []webhook.Wake{webhook.NewWake(promise)}, []time.Duration{0})
			wakeAt = now.Add(tryWake)
		}
		if err := o.Wait(ctx, tryLook); err != nil {
			return DeliveryStory{}, err
		}
	}
}

// whyItWaits says what a test that was not attempted is most likely waiting for.
func whyItWaits(d delivery.Delivery, found bool, now time.Time) string {
	if found && d.NextAttemptAt.After(now) {
		return fmt.Sprintf("it waits until %s for the partner's rate, its places or its breaker, and spends no attempt meanwhile", d.NextAttemptAt.UTC().Format(time.RFC3339))
	}
	return "a process that does not know the subscription yet learns of it within 30 s"
}
