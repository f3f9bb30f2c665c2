package operator

import (
	"context"
	"fmt"
	"iter"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// PlanDeliveries counts what a job would do to deliveries. It writes nothing.
func (o *Operator) PlanDeliveries(ctx context.Context, b Bulk) (Plan, error) {
	deed, ok := deliveryDeedOf(b.Act)
	if err := checkBulk(b, "deliveries", ok, delivery.Statuses(), deed.from); err != nil {
		return Plan{}, err
	}
	f := b.Filter
	if len(f.Statuses) == 0 {
		f.Statuses = statusWords(deed.usual)
	}
	if f.Subscription == "" && deed.name == actDeliveryReplay && len(b.Filter.Statuses) == 0 {
		f.Statuses = statusWords([]delivery.Status{delivery.Dead}) // those alone are listed over all subscriptions
	}
	var err error
	if b.Filter, err = o.settleDeliveries(ctx, f); err != nil {
		return Plan{}, err
	}
	return o.countDeliveries(ctx, o.jobOf(b), deed.units)
}

// countDeliveries goes through all the deliveries of a job.
func (o *Operator) countDeliveries(ctx context.Context, j webhook.Job, units int) (Plan, error) {
	p := newPlan(j)
	for d, err := range o.listDeliveries(ctx, j.Filter) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return p, err
		}
		p.Matched++
		p.ByStatus[webhook.Status(d.Status)]++
		p.ByKind[d.Effect.Type]++
		if len(p.Deliveries) < SampleMax {
			p.Deliveries = append(p.Deliveries, d)
		}
		if code := foreseenOfDelivery(j, d); code != "" {
			p.Refused[code]++
		}
	}
	p.finish(units)
	return p, nil
}

// foreseenOfDelivery returns the code of the refusal that a delivery would meet,
// as far as its row tells.
func foreseenOfDelivery(j webhook.Job, d delivery.Delivery) string {
	switch j.Act {
	case actDeliveryReplay:
		return codeOf(replayable(d, j.CreatedAt))
	case actDeliveryResume, actSubscriptionResume:
		if !j.CreatedAt.Before(d.Deadline) {
			return "deadline_passed"
		}
	}
	return ""
}

// deliveryBatches yields the deliveries of a job from its cursor on.
func (o *Operator) deliveryBatches(ctx context.Context, f webhook.Filter, cursor string) iter.Seq2[batch, error] {
	list := func(ctx context.Context, f webhook.Filter) (iter.Seq2[delivery.Delivery, error], error) {
		return o.listDeliveries(ctx, f), nil
	}
	return backFrom(ctx, f, cursor, list, func(f webhook.Filter, d delivery.Delivery) (candidate, time.Time) {
		return candidate{delivery: d}, atOfDelivery(f, d)
	})
}

// deliveryDeed reads the delivery, then whether this job was here before, and then
// writes under the fence that it read: whatever comes between, the deed is done once.
func (r *runner) deliveryDeed(ctx context.Context, c candidate, again bool) error {
	d, err := r.o.delivery(ctx, c.delivery.ID)
	if err != nil {
		return err
	}
	subject := subjectOfDelivery(d.ID)
	was, err := r.o.Jobs.JobDid(ctx, r.job.ID, subject)
	switch {
	case err != nil:
		return unreachable("the registry", err)
	case was && again: // our own, whose answer was lost
		return nil
	case was:
		return refuse("done_before", string(d.ID)+" was handled by this job before")
	case !matchesDelivery(r.job.Filter, d):
		return movedDelivery(d.ID)
	}
	_, err = r.o.performDelivery(ctx, d, webhook.Act{
		ID: r.o.NewID(), At: r.o.Now(), Name: r.job.Act, Subject: subject, Who: r.job.Who, Why: r.job.Why, Job: r.job.ID,
	})
	return err
}

// deliveryNear has a waiting delivery attempted now.
func (r *runner) deliveryNear(ctx context.Context, c candidate, _ bool) error {
	d, err := r.o.delivery(ctx, c.delivery.ID)
	now := r.o.Now()
	switch {
	case err != nil:
		return err
	case !matchesDelivery(r.job.Filter, d):
		return movedDelivery(d.ID)
	case !now.Before(d.Deadline):
		return refuse("deadline_passed", "the deadline of "+string(d.ID)+" has passed: it ends EXPIRED when it is looked at")
	}
	change := d.Postpone(now)
	written, err := r.o.Deliveries.ChangeDelivery(ctx, change)
	switch {
	case err != nil:
		return unreachable("the deliveries", err)
	case !written:
		return movedDelivery(d.ID)
	}
	r.o.wake(ctx, change.Apply(d))
	return nil
}

// mayBringNear refuses to bring deliveries near of a subscription that was paused
// again.
func (r *runner) mayBringNear(ctx context.Context) error {
	s, err := r.o.subscription(ctx, delivery.SubscriptionID(r.job.Filter.Subscription))
	if err == nil && s.State != delivery.Active {
		err = refuse("paused", fmt.Sprintf("subscription %s is %s again", s.ID, s.State))
	}
	return err
}

// Things names what a job goes through, one or many of them.
func Things(act string) (one, many string) {
	if ofDeliveries(act) {
		return "delivery", "deliveries"
	}
	return "event", "events"
}
