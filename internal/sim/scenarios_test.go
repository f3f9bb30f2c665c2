package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dakghar/internal/business"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

const (
	stripeSecret   = "whsec_test_secret_for_the_simulation"
	stripeSecret2  = "whsec_test_secret_after_the_rotation"
	standardSecret = "whsec_c2ltdWxhdGlvbiBzZWNyZXQgb2YgMzIgYnl0ZXMhISE="
)

func payment(id string) provider.SampleOptions {
	return provider.SampleOptions{Type: "payment_intent.succeeded", EventID: id, ObjectID: "pi_" + id, Amount: 1250, Currency: "EUR"}
}

func object(id string, version int64) provider.SampleOptions {
	return provider.SampleOptions{Type: "object.updated", EventID: id, ObjectID: "obj_1", Version: version}
}

func stripe(w *sim.World) *sim.Endpoint { return w.AddEndpoint("stripe", "demo", stripeSecret) }

// inbox is the row of an event of the endpoint that stripe makes.
func inbox(event webhook.EventID) webhook.InboxID {
	return webhook.DeriveInboxID("demo", "stripe", event)
}

// outcomes counts how rows ended: "PROCESSED applied".
func outcomes(w *sim.World) map[string]int {
	counts := map[string]int{}
	for _, r := range w.Inbox() {
		counts[strings.TrimSpace(string(r.Status)+" "+string(r.Outcome))]++
	}
	return counts
}

func wantOutcomes(want map[string]int) func(*sim.World) []string {
	return func(w *sim.World) []string {
		if got := outcomes(w); fmt.Sprint(got) != fmt.Sprint(want) {
			return []string{fmt.Sprintf("rows ended as %v, want %v", got, want)}
		}
		return nil
	}
}

func applied(n int) func(*sim.World) []string {
	return wantOutcomes(map[string]int{"PROCESSED applied": n})
}

var errPartner = errors.New("a handler's own dependency")

// handler is a payment's handler, written in place.
type handler func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error)

func (h handler) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	return h(ctx, ev, r)
}

func handling(h handler) *business.Router {
	return business.NewRouter(map[webhook.ObjectType]business.Handler{webhook.Payment: h})
}

// standard is the built-in handler of payments.
func standard(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	h, ok := business.Standard().Handler(ev)
	if !ok {
		return webhook.Plan{}, errors.New("no handler for payments")
	}
	return h.Plan(ctx, ev, r)
}

// handlersFailing fail so many times, without end when negative, and then leave
// the work to the built-in handler.
func handlersFailing(times int, err error) *business.Router {
	return handling(func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
		if times != 0 {
			times--
			return webhook.Plan{}, err
		}
		return standard(ctx, ev, r)
	})
}

// scenarios are made anew for each run, since some of their handlers count.
func scenarios() []sim.Scenario {
	return slices.Concat(acceptance(), work(), recovery(), order(), backfillScenarios(), outbound())
}

// acceptance is what happens at the front door.
func acceptance() []sim.Scenario {
	var e *sim.Endpoint
	arrange := func(w *sim.World) { e = stripe(w) }
	return []sim.Scenario{
		{
			Name: "accept", Arrange: arrange, // three events at once
			Act: func(w *sim.World) {
				for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
					w.Send(w.Event(e, payment(id)))
				}
			},
			Want: applied(3),
		},
		{
			Name: "duplicate", Arrange: arrange, // before, during and after the work
			Act: func(w *sim.World) {
				d := w.Event(e, payment("evt_1"))
				w.Send(d)
				w.Send(d)
				w.PumpStream()
				w.Send(d)
				w.Settle()
				w.Send(d)
			},
			Want: applied(1),
		},
		{
			Name:    "conflict", // a known id with another body
			Arrange: func(w *sim.World) { e = w.AddEndpoint("razorpay", "demo", "a text only the test knows") },
			Act: func(w *sim.World) {
				o := provider.SampleOptions{Type: "payment.captured", EventID: "evt_1", ObjectID: "pay_1", Amount: 100, Currency: "INR"}
				w.Send(w.Event(e, o))
				o.Amount = 9999
				w.Send(w.Event(e, o))
			},
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1, "HELD": 1}),
		},
		{
			Name: "large body", Arrange: arrange, Options: sim.Options{InlineBytes: 1}, // in the bucket
			Act: func(w *sim.World) {
				large := payment("evt_1")
				large.BodyBytes = 200 << 10
				w.Send(w.Event(e, large))
			},
			Want: applied(1),
		},
		{
			Name: "rotate", Arrange: arrange, // a new key in the middle, then the end of the old one
			Act: func(w *sim.World) {
				old := e.Key
				w.Send(w.Event(e, payment("evt_1")))
				e.Key = w.AddKey(e, stripeSecret2)
				w.Send(w.Event(e, payment("evt_2")))
				w.Settle()
				w.RetireKey(e, webhook.KeyVersion(old.Version))
				w.Advance(31 * time.Second) // what is cached is not trusted longer
				w.Send(w.Event(e, payment("evt_3")))
			},
			Want: applied(3),
		},
	}
}

// work is what becomes of an accepted event.
func work() []sim.Scenario {
	var e *sim.Endpoint
	arrange := func(w *sim.World) { e = stripe(w) }
	one := func(w *sim.World) { w.Send(w.Event(e, payment("evt_1"))) }
	return []sim.Scenario{
		{Name: "process", Arrange: arrange, Act: one, Want: applied(1)},
		{
			Name:    "stale version",
			Arrange: func(w *sim.World) { e = w.AddEndpoint("standard-webhooks", "objects", standardSecret) },
			Act: func(w *sim.World) {
				for _, v := range []int64{3, 1, 2} {
					w.Send(w.Event(e, object(fmt.Sprintf("msg_%d", v), v)))
					w.Settle()
				}
			},
			Want: func(w *sim.World) []string {
				// A death can change which of the older versions comes before the
				// newest; whatever the order, the newest stands at the end.
				counts := outcomes(w)
				if counts["PROCESSED applied"]+counts["PROCESSED stale"] != 3 || counts["PROCESSED applied"] < 1 {
					return []string{fmt.Sprintf("rows ended as %v", counts)}
				}
				if v := w.Projected("obj_1", business.AttrVersion); v != int64(3) {
					return []string{fmt.Sprintf("the object is at version %v, want 3", v)}
				}
				return nil
			},
		},
		{Name: "retry", Options: sim.Options{Handlers: handlersFailing(2, errPartner)}, Arrange: arrange, Act: one, Want: applied(1)},
		{
			Name: "exhaust", Options: sim.Options{Handlers: handlersFailing(-1, errPartner), AttemptsMax: 3}, Arrange: arrange,
			Act: one, Want: wantOutcomes(map[string]int{"FAILED": 1}),
		},
		{
			Name: "lost message", Arrange: arrange, // a wake that was published and purged
			Act: func(w *sim.World) {
				one(w)
				for w.PumpStream() {
				}
				w.Purge()
			},
			Want: applied(1),
		},
		{
			Name: "lost stream", Arrange: arrange,
			Act: func(w *sim.World) {
				one(w)
				w.DropStream()
			},
			Want: applied(1),
		},
		{
			Name: "repeated stream", Arrange: arrange,
			Act: func(w *sim.World) {
				one(w)
				w.PumpStream()
				w.RepeatStream()
				w.Settle()
				w.RepeatStream()
			},
			Want: applied(1),
		},
	}
}

// recovery is what operators do, and workers that come too late.
func recovery() []sim.Scenario {
	var e *sim.Endpoint
	arrange := func(w *sim.World) { e = stripe(w) }
	one := func(w *sim.World) { w.Send(w.Event(e, payment("evt_1"))) }
	return []sim.Scenario{
		{
			Name: "replay", Options: sim.Options{Handlers: handlersFailing(3, errPartner), AttemptsMax: 3}, Arrange: arrange,
			Act: func(w *sim.World) {
				one(w)
				w.Rest()
				w.Replay(inbox("evt_1"))
			},
			Want: applied(1),
		},
		{
			Name: "replay twice", Options: sim.Options{Handlers: handlersFailing(3, errPartner), AttemptsMax: 3}, Arrange: arrange,
			Act: func(w *sim.World) { // two operators at once
				one(w)
				w.Rest()
				if w.Row(inbox("evt_1")).Status == webhook.Failed { // a death may have spared it
					w.ReplayTwice(inbox("evt_1"))
				}
			},
			Want: applied(1),
		},
		{
			Name: "hold and release", Arrange: arrange,
			Act: func(w *sim.World) {
				one(w)
				w.PumpStream()
				w.Hold(inbox("evt_1"))
				w.Rest()
				w.Release(inbox("evt_1"))
			},
			Want: applied(1),
		},
		lateFinisher("late after takeover", 5, func(w *sim.World) {
			w.Reconcile() // frees the row
			w.Advance(time.Minute)
			w.PumpRival(w.Rival(0))
		}),
		lateFinisher("late after replay", 1, func(w *sim.World) {
			w.Reconcile() // the only attempt is spent
			w.Replay(inbox("evt_1"))
			w.PumpRival(w.Rival(0))
		}),
		lateFinisher("late after hold", 5, func(w *sim.World) { w.Hold(inbox("evt_1")) }),
	}
}

// lateFinisher is a worker that thinks until its lease is over. In the meantime
// others act on its event; it goes on as if nothing had happened.
func lateFinisher(name string, attempts int, meanwhile func(*sim.World)) sim.Scenario {
	var w *sim.World
	var e *sim.Endpoint
	thought := false
	slow := func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
		plan, err := standard(ctx, ev, r)
		if !thought {
			thought = true
			w.Advance(6 * time.Minute)
			meanwhile(w)
		}
		return plan, err
	}
	return sim.Scenario{
		Name: name, Options: sim.Options{Handlers: handling(slow), AttemptsMax: attempts},
		Arrange: func(world *sim.World) { w, e = world, stripe(world) },
		Act: func(w *sim.World) {
			w.Send(w.Event(e, payment("evt_1")))
			w.Rest()
			// What is held, or has spent its only attempt in a death, is opened by hand.
			w.Release(inbox("evt_1"))
			w.Replay(inbox("evt_1"))
			// A second death may have spent the replay's only attempt too.
			w.Rest()
			w.Replay(inbox("evt_1"))
		},
		Want: applied(1),
	}
}
