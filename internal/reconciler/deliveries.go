package reconciler

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// deliveriesMax is how many deliveries of a shard are woken in one run; the rest
// come the next minute.
const deliveriesMax = 500

// deliveries wakes the dispatcher for every delivery whose wake time has come: a
// worker has died, a message was lost, or the next attempt was too far away for
// the queue. A delivery is its own promise; nothing else is done to it here.
func (r *Reconciler) deliveries(ctx context.Context, report *Report) {
	for shard := range webhook.Shards {
		ids, err := r.Store.DueDeliveries(ctx, shard, r.Now(), deliveriesMax)
		if err != nil {
			report.note(unlessOver(ctx, err))
			return
		}
		r.wakeDeliveries(ctx, r.dueOf(ctx, ids, report), report)
	}
}

// dueOf reads deliveries consistently, and keeps those that still are to be woken.
func (r *Reconciler) dueOf(ctx context.Context, ids []delivery.ID, report *Report) []delivery.Delivery {
	read := make([]*delivery.Delivery, len(ids))
	errs := make([]error, len(ids))
	var group errgroup.Group
	group.SetLimit(marksAtOnce)
	now := r.Now()
	for i, id := range ids {
		group.Go(func() error {
			d, found, err := r.Store.Delivery(ctx, id)
			if errs[i] = err; err == nil && found && !d.Status.Terminal() && !d.WakeAt.After(now) {
				read[i] = &d
			}
			return nil
		})
	}
	_ = group.Wait() // its functions return no error
	var due []delivery.Delivery
	for i, d := range read {
		report.note(unlessOver(ctx, errs[i]))
		if d != nil {
			due = append(due, *d)
			report.OldestDueS = max(report.OldestDueS, now.Sub(d.NextAttemptAt).Seconds())
		}
	}
	return due
}

func (r *Reconciler) wakeDeliveries(ctx context.Context, due []delivery.Delivery, report *Report) {
	if len(due) == 0 {
		return
	}
	now := r.Now()
	wakes, delays := make([]webhook.Wake, len(due)), make([]time.Duration, len(due))
	for i, d := range due {
		wakes[i], delays[i] = d.Wake(), min(max(d.NextAttemptAt.Sub(now), 0), webhook.PublishAhead)
	}
	sent := r.Queue.Send(ctx, wakes, delays)
	acts := make([]string, len(due))
	errs := make([]error, len(due))
	var group errgroup.Group
	group.SetLimit(marksAtOnce)
	for i, d := range due {
		if sent[i] != nil {
			acts[i], errs[i] = NotSent, sent[i]
			continue
		}
		group.Go(func() error {
			acts[i], errs[i] = did(DeliveryWoken)(r.Store.RewakeDelivery(ctx, d, d.WakeAgain(now)))
			return nil
		})
	}
	_ = group.Wait() // its functions return no error
	for i, act := range acts {
		report.Looked++
		report.count(act, errs[i])
	}
}
