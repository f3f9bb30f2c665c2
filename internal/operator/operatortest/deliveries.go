package operatortest

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// random fills bytes with the number of the draw.
func (w *World) random(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drawn++
	for i := range b {
		b[i] = w.drawn*31 + byte(i)*7
	}
}

// Put keeps bytes for 30 days.
func (b bodies) Put(_ context.Context, body webhook.Body) (webhook.Placed, error) {
	if err := b.w.Fail("Put body"); err != nil {
		return webhook.Placed{}, err
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.Bodies[body.ID] = body.Raw
	return webhook.Placed{ExpiresAt: b.w.Clock.Add(30 * 24 * time.Hour)}, nil
}

type wakes struct{ w *World }

func (k wakes) Send(_ context.Context, all []webhook.Wake, _ []time.Duration) []error {
	errs := make([]error, len(all))
	for i, wake := range all {
		if errs[i] = k.w.Fail("Send wake"); errs[i] != nil {
			continue
		}
		k.w.mu.Lock()
		k.w.Woken = append(k.w.Woken, wake)
		k.w.mu.Unlock()
		if k.w.OnWake != nil {
			k.w.OnWake(wake)
		}
	}
	return errs
}

type deliveries struct{ w *World }

func (d deliveries) Subscription(_ context.Context, id delivery.SubscriptionID) (delivery.Subscription, bool, error) {
	if err := d.w.Fail("Subscription"); err != nil {
		return delivery.Subscription{}, false, err
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	s, found := d.w.Subscriptions[id]
	return s, found, nil
}

func (d deliveries) Subscriptions(_ context.Context, t webhook.Tenant) ([]delivery.Subscription, error) {
	if err := d.w.Fail("Subscriptions"); err != nil {
		return nil, err
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	var all []delivery.Subscription
	for _, id := range slices.Sorted(maps.Keys(d.w.Subscriptions)) {
		if s := d.w.Subscriptions[id]; t == "" || s.Tenant == t {
			all = append(all, s)
		}
	}
	return all, nil
}

func (d deliveries) CreateSubscriptionBy(_ context.Context, s delivery.Subscription, a webhook.Act) (bool, error) {
	if err := d.w.Fail("CreateSubscriptionBy"); err != nil {
		return false, err
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if _, taken := d.w.Subscriptions[s.ID]; taken {
		return false, nil
	}
	s.Revision = 1
	d.w.Subscriptions[s.ID], d.w.Acts = s, append(d.w.Acts, a)
	return true, d.w.Lose("CreateSubscriptionBy")
}

func (d deliveries) UpdateSubscriptionBy(_ context.Context, s delivery.Subscription, a webhook.Act) (bool, error) {
	if rival := d.w.Rival; rival != nil {
		d.w.Rival = nil
		rival(d.w)
	}
	if err := d.w.Fail("UpdateSubscriptionBy"); err != nil {
		return false, err
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.w.Subscriptions[s.ID].Revision != s.Revision {
		return false, nil
	}
	s.Revision++
	d.w.Subscriptions[s.ID], d.w.Acts = s, append(d.w.Acts, a)
	return true, d.w.Lose("UpdateSubscriptionBy")
}

func (d deliveries) Delivery(_ context.Context, id delivery.ID) (delivery.Delivery, bool, error) {
	if err := d.w.Fail("Delivery"); err != nil {
		return delivery.Delivery{}, false, err
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	row, found := d.w.Deliveries[id]
	return row, found, nil
}

func (d deliveries) Attempts(_ context.Context, id delivery.ID) ([]delivery.Attempt, error) {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return slices.Clone(d.w.Attempts[id]), nil
}

func (d deliveries) DeliveriesOf(_ context.Context, id delivery.SubscriptionID, since, until time.Time) iter.Seq2[delivery.Delivery, error] {
	return d.list("DeliveriesOf", since, until, func(r delivery.Delivery) (time.Time, bool) { return r.CreatedAt, r.Subscription == id })
}

func (d deliveries) DeadDeliveries(_ context.Context, since, until time.Time) iter.Seq2[delivery.Delivery, error] {
	return d.list("DeadDeliveries", since, until, func(r delivery.Delivery) (time.Time, bool) { return r.EndedAt, r.Status == delivery.Dead })
}

func (d deliveries) list(call string, since, until time.Time, pick func(delivery.Delivery) (time.Time, bool)) iter.Seq2[delivery.Delivery, error] {
	return func(yield func(delivery.Delivery, error) bool) {
		if err := d.w.Fail(call); err != nil {
			yield(delivery.Delivery{}, err)
			return
		}
		for _, r := range d.picked(since, until, pick) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (d deliveries) picked(since, until time.Time, pick func(delivery.Delivery) (time.Time, bool)) []delivery.Delivery {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	var rows []delivery.Delivery
	for _, r := range d.w.Deliveries {
		if at, ok := pick(r); ok && !at.Before(since) && !at.After(until) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b delivery.Delivery) int {
		atA, _ := pick(a)
		atB, _ := pick(b)
		return 2*atB.Compare(atA) + strings.Compare(string(a.ID), string(b.ID))
	})
	return rows
}

func (d deliveries) ChangeDelivery(_ context.Context, c delivery.Change) (bool, error) {
	return d.change("ChangeDelivery", c, nil, func() {})
}

func (d deliveries) ChangeDeliveryBy(_ context.Context, c delivery.Change, a webhook.Act) (bool, error) {
	return d.change("ChangeDeliveryBy", c, &a, func() {})
}

func (d deliveries) ReplayDelivery(_ context.Context, next delivery.Delivery, c delivery.Change, a webhook.Act) (bool, error) {
	return d.change("ReplayDelivery", c, &a, func() { d.w.Deliveries[next.ID] = next })
}

func (d deliveries) change(call string, c delivery.Change, a *webhook.Act, with func()) (bool, error) {
	if err := d.w.Fail(call); err != nil {
		return false, err
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	row := d.w.Deliveries[c.ID]
	if !c.Guard.Allows(row) {
		return false, nil
	}
	d.w.Deliveries[c.ID] = c.Apply(row)
	if a != nil {
		d.w.Acts = append(d.w.Acts, *a)
	}
	with()
	return true, d.w.Lose(call)
}

func (d deliveries) AnnounceBy(_ context.Context, o webhook.Outbox, a webhook.Act) (bool, error) {
	if err := d.w.Fail("AnnounceBy"); err != nil {
		return false, err
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if _, there := d.w.Promises[o.ID]; there {
		return false, nil
	}
	d.w.Promises[o.ID], d.w.Acts = o, append(d.w.Acts, a)
	return true, d.w.Lose("AnnounceBy")
}
