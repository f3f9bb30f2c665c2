package dispatcher

import (
	"context"
	"encoding/json"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/effect"
	"dakghar/internal/webhook"
)

// PausedType is the type of the event by which a tenant's other subscriptions are
// told that one of them was paused because its partner failed for days.
const PausedType = "dakghar.subscription_paused"

// remember notes on the subscription that its partner fails, accepts again, or
// wants nothing more. Losing the note is harmless: the next attempt makes it
// again. It reports whether the attempt paused the subscription.
func (d *Dispatcher) remember(ctx context.Context, s delivery.Subscription, v verdict, now time.Time) (paused bool) {
	if _, changed := judged(s, v, now); !changed {
		return false
	}
	fresh, found, err := d.Store.Subscription(ctx, s.ID)
	if err != nil || !found || fresh.State != s.State {
		return false // somebody has decided about it since
	}
	// What is remembered may be half a minute old, and the partner may have accepted
	// since: the count of days is the row's.
	after, changed := judged(fresh, v, now)
	if !changed {
		return false
	}
	if after.State == fresh.State || after.State != delivery.Paused {
		_, _ = d.Store.UpdateSubscription(ctx, after)
		return false
	}
	return d.pause(ctx, after, now)
}

// judged is the subscription after an attempt, and whether that changes it.
func judged(s delivery.Subscription, v verdict, now time.Time) (delivery.Subscription, bool) {
	if v.result == delivery.Discontinued {
		return s.Stop("gone", now), true
	}
	return s.Judged(v.result == delivery.Accepted, now)
}

// pause writes the pause together with the promise that others are told of it.
// The event's bytes are kept before.
func (d *Dispatcher) pause(ctx context.Context, s delivery.Subscription, now time.Time) bool {
	event, err := d.pausedEvent(ctx, s, now)
	if err != nil {
		return false
	}
	written, err := d.Store.PauseSubscription(ctx, s, webhook.NewEffectOutbox(event, 0, 0, now))
	return err == nil && written
}

func (d *Dispatcher) pausedEvent(ctx context.Context, s delivery.Subscription, now time.Time) (webhook.Effect, error) {
	data, err := json.Marshal(map[string]any{"subscription": map[string]string{
		"id": string(s.ID), "why": s.StateWhy, "failing_since": s.FailingSince.UTC().Format(time.RFC3339),
	}})
	if err != nil {
		return webhook.Effect{}, err
	}
	// What names the event in place of an accepted one: this pause of this subscription.
	source := webhook.InboxID(webhook.DeriveID("sp_", "subscription paused", string(s.ID), s.StateAt.UTC().Format(time.RFC3339Nano)))
	return effect.Keep(ctx, d.Bodies, webhook.Announcement{Type: PausedType, Data: data}, webhook.Effect{
		ID: webhook.DeriveEffectID(source, 0, 0), InboxID: source, Tenant: s.Tenant, CreatedAt: now,
	}, now, d.NewID())
}
