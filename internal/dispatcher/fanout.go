package dispatcher

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"dakghar/internal/delivery"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

const (
	// fanOutChunk is how many deliveries are made between two notes of how far the
	// fan-out has come, and createsAtOnce how many side by side.
	fanOutChunk   = 50
	createsAtOnce = 16
	// fanOutSlack is kept free at the end of an invocation.
	fanOutSlack = 5 * time.Second
)

// fanOut makes the deliveries of an effect. It goes on from where an earlier one
// has come; what that one made and did not note is met again and left alone.
func (d *Dispatcher) fanOut(ctx context.Context, wake webhook.Wake) Result {
	result := Result{Topic: webhook.TopicEffect}
	o, found, err := d.Store.Outbox(ctx, wake.OutboxID)
	switch {
	case err != nil:
		return result.end("unavailable", err)
	case !found || o.Effect == nil || o.Gen != wake.Gen:
		return result.end("gone", nil)
	}
	now := d.Now()
	effect := *o.Effect
	result.Effect, result.Tenant, result.Type, result.Age = effect.ID, effect.Tenant, effect.Type, now.Sub(effect.CreatedAt)
	wanting, err := d.wanting(ctx, effect, now)
	if err != nil {
		return d.later(ctx, o, now, result, err)
	}
	if effect.Call != "" && len(wanting) == 0 && now.Before(effect.BodyExpiresAt) {
		// Somebody is to be called whom nobody has set up: the promise stays, and
		// wakes again and again until somebody does.
		return result.end("unaddressed", nil)
	}
	for len(wanting) > 0 {
		chunk := wanting[:min(fanOutChunk, len(wanting))]
		wanting = wanting[len(chunk):]
		if string(chunk[len(chunk)-1].ID) <= o.Cursor {
			continue
		}
		created, err := d.create(ctx, effect, chunk, now)
		if result.Created += created; err != nil {
			return d.later(ctx, o, now, result, err)
		}
		if len(wanting) == 0 {
			break
		}
		if _, err := d.Store.MoveCursor(ctx, o, string(chunk[len(chunk)-1].ID)); err != nil {
			return d.later(ctx, o, now, result, err)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < fanOutSlack { //nolint:forbidigo // a context's deadline is in real time
			return d.later(ctx, o, now, result, nil)
		}
	}
	// Failing to tidy up only means that the effect is fanned out once more.
	_, err = d.Store.DeleteOutbox(ctx, o.ID, o.Gen)
	return result.end("fanned_out", err)
}

// later has the rest of a fan-out done by another worker. Where even that cannot
// be written, the promise's wake time brings one.
func (d *Dispatcher) later(ctx context.Context, o webhook.Outbox, now time.Time, result Result, cause error) Result {
	due := now
	if cause != nil {
		due = now.Add(d.Policy.Ours.Delay(o.Wakes+1, d.Chance()))
	}
	if _, err := d.Store.Postpone(context.WithoutCancel(ctx), o.ID, o.Gen, due, now); cause == nil {
		cause = err
	}
	if cause != nil {
		return result.end("unavailable", cause)
	}
	return result.end("unfinished", nil)
}

// wanting returns the subscriptions that the effect is for, in the order of
// their ids. The effect's bytes are read only if somebody filters by them.
func (d *Dispatcher) wanting(ctx context.Context, e webhook.Effect, now time.Time) ([]delivery.Subscription, error) {
	all, err := d.Subscriptions.Of(ctx, e.Tenant, now)
	if err != nil {
		return nil, err
	}
	var members func(string) (string, bool)
	var readErr error
	member := func(path string) (string, bool) {
		if members == nil && readErr == nil {
			var body []byte
			if body, readErr = d.Bodies.Open(ctx, e.BodyID, e.Tenant, e.Digest); readErr == nil {
				members = delivery.Members(body)
			}
		}
		if members == nil {
			return "", false
		}
		return members(path)
	}
	var wanting []delivery.Subscription
	for _, s := range all {
		if s.Wants(e, member) {
			wanting = append(wanting, s)
		}
	}
	if readErr != nil && fault.KindOf(readErr) == fault.Permanent {
		return mayWant(all, e), nil
	}
	return wanting, readErr
}

// mayWant returns the subscriptions that an effect may be for whose bytes are gone.
// Their deliveries will be set aside for that, where an operator sees them: better
// than a promise that wakes for ever, and than one that is dropped in silence.
func mayWant(all []delivery.Subscription, e webhook.Effect) []delivery.Subscription {
	return slices.DeleteFunc(slices.Clone(all), func(s delivery.Subscription) bool {
		s.Filter = nil
		return !s.Wants(e, nil)
	})
}

// create puts the deliveries of a chunk and wakes a worker for each new one. A
// wake-up that is not taken is made up for by the delivery's own wake time.
func (d *Dispatcher) create(ctx context.Context, e webhook.Effect, chunk []delivery.Subscription, now time.Time) (int, error) {
	made := make([]*delivery.Delivery, len(chunk))
	group, work := errgroup.WithContext(ctx)
	group.SetLimit(createsAtOnce)
	for i, s := range chunk {
		group.Go(func() error {
			dl := delivery.New(e, s, now)
			created, err := d.Store.CreateDelivery(work, dl)
			if created {
				made[i] = &dl
			}
			return err
		})
	}
	err := group.Wait()
	var wakes []webhook.Wake
	for _, dl := range made {
		if dl != nil {
			wakes = append(wakes, dl.Wake())
		}
	}
	if len(wakes) > 0 {
		d.Queue.Send(ctx, wakes, make([]time.Duration, len(wakes)))
	}
	return len(wakes), err
}
