package sim_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/delivery"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// foretold is what a list of dead letters says of one, and what the dispatcher
// then decides when it has the letter again.
type foretold struct {
	Fate     operator.Fate
	Decision string
}

// Proves R3, X4: what a list says of the dispatcher's dead letters is what the
// dispatcher does about them, over one and the same rows.
func TestWhatIsSaidOfADeadLetterIsWhatTheDispatcherDoes(t *testing.T) {
	t.Parallel()
	var e *sim.Endpoint
	w := sim.New(t, sim.Options{})
	told(&e, 1, nil)(w)
	w.Send(w.Event(e, payment("evt_1")))
	w.Settle()
	effect := w.Deliveries()[0].Effect // its bytes are kept
	for id, state := range map[delivery.SubscriptionID]delivery.State{"paused": delivery.Paused, "draining": delivery.Draining, "stopped": delivery.Stopped} {
		w.Subscribe(id, func(s *delivery.Subscription) { s.State, s.StateAt = state, w.Now() })
	}
	called := w.Subscribe("called", func(s *delivery.Subscription) { s.Calls = true })
	now := w.Now()
	far, past := now.Add(time.Hour), now.Add(-time.Minute)
	letters := operatortest.New()
	put := func(name string, wake webhook.Wake) {
		body, err := json.Marshal(wake)
		if err != nil {
			t.Fatal(err)
		}
		letters.DeliveryLetters.Put(name, string(body), past)
	}
	due := delivery.Delivery{Status: delivery.Pending, NextAttemptAt: now, Subscription: "sub_00", CreatedAt: past, Deadline: far}
	for name, change := range map[string]func(*delivery.Delivery){
		"due":   func(*delivery.Delivery) {},
		"early": func(d *delivery.Delivery) { d.NextAttemptAt = now.Add(4 * time.Second) },
		"abandoned": func(d *delivery.Delivery) {
			d.Status, d.LeaseUntil, d.ClaimID, d.AttemptCount = delivery.Sending, past, "c", 1
		},
		"spent": func(d *delivery.Delivery) { d.Status, d.AttemptCount = delivery.Retry, 1000 },
		"later": func(d *delivery.Delivery) { d.Status, d.NextAttemptAt = delivery.Retry, far },
		"working": func(d *delivery.Delivery) {
			d.Status, d.LeaseUntil, d.ClaimID, d.Deadline = delivery.Sending, far, "c", past
		},
		"late":      func(d *delivery.Delivery) { d.Status, d.NextAttemptAt, d.Deadline = delivery.Retry, far, now },
		"lapsed":    func(d *delivery.Delivery) { d.Status, d.Deadline = delivery.Faulted, now },
		"faulted":   func(d *delivery.Delivery) { d.Status = delivery.Faulted },
		"paused":    func(d *delivery.Delivery) { d.Subscription = "paused" },
		"held":      func(d *delivery.Delivery) { d.Subscription, d.CreatedAt = "draining", far },
		"before":    func(d *delivery.Delivery) { d.Subscription, d.CreatedAt = "draining", now.Add(-time.Hour) },
		"stopped":   func(d *delivery.Delivery) { d.Subscription = "stopped" },
		"deserted":  func(d *delivery.Delivery) { d.Subscription = "nobody" },
		"delivered": func(d *delivery.Delivery) { d.Status, d.EndedAt = delivery.Delivered, past },
		"dead":      func(d *delivery.Delivery) { d.Status, d.EndedAt = delivery.Dead, past },
		"expired":   func(d *delivery.Delivery) { d.Status, d.EndedAt = delivery.Expired, past },
		"cancelled": func(d *delivery.Delivery) { d.Status, d.EndedAt = delivery.Cancelled, past },
	} {
		d := due
		d.ID, d.Tenant, d.Effect = delivery.ID("dl_"+name), effect.Tenant, effect
		change(&d)
		if ok, err := w.Outside.CreateDelivery(t.Context(), d); err != nil || !ok {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		put(name, d.Wake())
	}
	put("gone", delivery.Delivery{ID: "dl_gone", Effect: effect}.Wake())
	promise := func(name string, ordinal int, call delivery.SubscriptionID, kept bool) {
		effect := effect
		effect.Ordinal, effect.Call = ordinal, string(call)
		if !kept {
			effect.BodyExpiresAt = now
		}
		o := webhook.NewEffectOutbox(effect, 0, 1, now)
		if ok, err := w.Outside.AnnounceBy(t.Context(), o, webhook.Act{ID: name, At: now, Name: "test", Subject: name, Who: "sim"}); err != nil || !ok {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		put(name, webhook.NewWake(o))
	}
	promise("effect", 1, "", true)
	promise("call", 2, called.ID, true)
	promise("call of nobody", 3, "nobody", true)
	promise("call of another kind", 4, "sub_00", true)
	promise("call of nobody, over", 5, "nobody", false)
	put("fanned out", webhook.NewWake(webhook.NewEffectOutbox(effect, 9, 1, now)))

	o := w.Command(business.Standard())
	o.DeliveryDeadLetters = letters.Operator().DeliveryDeadLetters
	found, err := o.Letters(t.Context(), operator.QueueDeliveries, 100)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]foretold{}
	for _, l := range found.Found {
		got[l.ID] = foretold{l.Fate, w.Dispatch().Dispatcher.Handle(t.Context(), l.Wake).Decision}
	}
	want := map[string]foretold{
		"due": {operator.FateClaimed, "delivered"}, "early": {operator.FateClaimed, "delivered"}, "abandoned": {operator.FateClaimed, "delivered"},
		"before": {operator.FateClaimed, "delivered"}, "spent": {operator.FateClaimed, "dead"},
		"later": {operator.FateNotDue, "not_due"}, "working": {operator.FateWorking, "not_due"},
		"late": {operator.FateExpired, "expired"}, "lapsed": {operator.FateExpired, "expired"}, "faulted": {operator.FateFaulted, "faulted"},
		"paused": {operator.FatePaused, "paused"}, "held": {operator.FatePaused, "paused"},
		"stopped": {operator.FateCancelled, "cancelled"}, "deserted": {operator.FateCancelled, "cancelled"},
		"delivered": {operator.FateEnded, "ended"}, "cancelled": {operator.FateEnded, "ended"}, "dead": {operator.FateDead, "ended"}, "expired": {operator.FateDead, "ended"},
		"gone":   {operator.FateMissing, "missing"},
		"effect": {operator.FateClaimed, "fanned_out"}, "call": {operator.FateClaimed, "fanned_out"}, "call of nobody, over": {operator.FateClaimed, "fanned_out"},
		"call of nobody": {operator.FateUnaddressed, "unaddressed"}, "call of another kind": {operator.FateUnaddressed, "unaddressed"},
		"fanned out": {operator.FateMissing, "gone"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("said and done (-want +got):\n%s", diff)
	}
}
