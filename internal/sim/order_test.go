package sim_test

import (
	"context"
	"fmt"

	"dakghar/internal/business"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// order is what happens where events wait for each other, or where the provider
// is asked what is true.
func order() []sim.Scenario {
	return []sim.Scenario{fetchCurrent(), fetchAtOnce(), gap(), gapNeverCloses(), neighboursRace(), holdInGap()}
}

func policies(kinds ...webhook.Kind) func(webhook.Policy) func(webhook.Endpoint) webhook.Endpoint {
	return func(p webhook.Policy) func(webhook.Endpoint) webhook.Endpoint {
		return func(e webhook.Endpoint) webhook.Endpoint {
			e.Policies = map[webhook.Kind]webhook.Policy{}
			for _, k := range kinds {
				e.Policies[k] = p
			}
			return e
		}
	}
}

// refund is an event about a refund; what it says itself is never the truth here.
func refund(event string) provider.SampleOptions {
	return provider.SampleOptions{Type: "refund.updated", EventID: event, ObjectID: "re_1", State: "pending", Amount: 500, Currency: "EUR"}
}

func refundNow(status string) []byte {
	return fmt.Appendf(nil, `{"id":"re_1","object":"refund","status":%q,"amount":500,"currency":"eur","payment_intent":"pi_1"}`, status)
}

func fetched(w *sim.World) *sim.Endpoint {
	e := stripe(w)
	w.Configure(e, policies("refund.updated")(webhook.ByFetch))
	w.Objects.Set("re_1", refundNow("succeeded"))
	return e
}

// wantRefund checks the end of the refund, whichever event has brought it.
func wantRefund(w *sim.World) []string {
	var wrong []string
	if got := w.Projected("re_1", business.AttrState); got != "succeeded" {
		wrong = append(wrong, fmt.Sprintf("the refund is %v, want succeeded", got))
	}
	if _, balances := w.Ledger(); sumOf(balances, business.BalanceAttribute("EUR")) != -500 {
		wrong = append(wrong, fmt.Sprintf("the balances are %v, want -500 in all", balances))
	}
	return wrong
}

func sumOf(balances map[string]map[string]int64, attribute string) int64 {
	var sum int64
	for _, row := range balances {
		sum += row[attribute]
	}
	return sum
}

func fetchCurrent() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name:    "fetch current",
		Arrange: func(w *sim.World) { e = fetched(w) },
		Act: func(w *sim.World) {
			// A change is told by an event that is sent after it: that is what makes the
			// highest ticket's read the last word.
			w.Objects.Set("re_1", refundNow("pending"))
			w.Send(w.Event(e, refund("evt_1")))
			w.Settle()
			w.Objects.Set("re_1", refundNow("succeeded"))
			w.Send(w.Event(e, refund("evt_2")))
		},
		Want: wantRefund,
	}
}

// fetchAtOnce is an early read that is written last.
func fetchAtOnce() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name:    "fetch at once",
		Arrange: func(w *sim.World) { e = fetched(w) },
		Act: func(w *sim.World) {
			w.Objects.Script("re_1", sim.Read{Doc: refundNow("pending"), After: func() {
				w.Send(w.Event(e, refund("evt_2")))
				w.PumpRival(w.Rival(0))
			}})
			w.Send(w.Event(e, refund("evt_1")))
		},
		Want: wantRefund,
	}
}

func sequenced(w *sim.World) *sim.Endpoint {
	e := w.AddEndpoint("standard-webhooks", "objects", standardSecret)
	w.Configure(e, policies("object.changed")(webhook.BySequence))
	return e
}

func step(n int64) provider.SampleOptions { return object(fmt.Sprint("step_", n), n) }

func stepID(n int64) webhook.InboxID {
	return webhook.DeriveInboxID("objects", "standard-webhooks", webhook.EventID(fmt.Sprint("step_", n)))
}

// wantSteps checks that the sequence stands at its last number, with no slot left.
func wantSteps(last int64) func(*sim.World) []string {
	return func(w *sim.World) []string {
		seq, err := w.Outside.Sequence(w.T.Context(), webhook.DeriveSequenceID("acme", "objects", webhook.Object, "obj_1"))
		if err != nil || seq.Last != last || len(seq.Parked) != 0 {
			return []string{fmt.Sprintf("the sequence is %+v, error %v; want %d and no slot", seq, err, last)}
		}
		if v := w.Projected("obj_1", business.AttrVersion); v != last {
			return []string{fmt.Sprintf("the object is at version %v, want %d", v, last)}
		}
		return nil
	}
}

func gap() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name:    "gap",
		Arrange: func(w *sim.World) { e = sequenced(w) },
		Act: func(w *sim.World) {
			for _, n := range []int64{3, 2, 1} {
				w.Send(w.Event(e, step(n)))
				w.Settle()
			}
		},
		Want: func(w *sim.World) []string {
			return append(wantSteps(3)(w), applied(3)(w)...)
		},
	}
}

func gapNeverCloses() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name:    "gap never closes",
		Arrange: func(w *sim.World) { e = sequenced(w) },
		Act: func(w *sim.World) {
			w.Send(w.Event(e, step(1)))
			w.Send(w.Event(e, step(3)))
		},
		Want: func(w *sim.World) []string {
			return append(wantSteps(1)(w), wantOutcomes(map[string]int{"PROCESSED applied": 1, "FAILED": 1})(w)...)
		},
	}
}

// neighboursRace lets the event before a gap be applied while the one behind it
// is about to be parked.
func neighboursRace() sim.Scenario {
	var e *sim.Endpoint
	var w *sim.World
	raced := false
	racing := func(plan func() (webhook.Plan, error)) (webhook.Plan, error) {
		decided, err := plan()
		if !raced {
			raced = true
			w.Send(w.Event(e, step(2)))
			w.PumpRival(w.Rival(0))
		}
		return decided, err
	}
	return sim.Scenario{
		Name:    "neighbours race",
		Options: sim.Options{Handlers: business.NewRouter(nil).WithPolicy("", webhook.BySequence, meanwhile(racing))},
		Arrange: func(world *sim.World) { w, e = world, sequenced(world) },
		Act:     func(w *sim.World) { w.Send(w.Event(e, step(1))) },
		Want: func(w *sim.World) []string {
			return append(wantSteps(2)(w), applied(2)(w)...)
		},
	}
}

// meanwhile lets something happen around the built-in handler of sequences.
type meanwhile func(plan func() (webhook.Plan, error)) (webhook.Plan, error)

// Plan implements [business.Handler].
func (m meanwhile) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	return m(func() (webhook.Plan, error) { return business.Sequenced{}.Plan(ctx, ev, r) })
}

func holdInGap() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name:    "hold in a gap",
		Arrange: func(w *sim.World) { e = sequenced(w) },
		Act: func(w *sim.World) {
			w.Send(w.Event(e, step(2)))
			w.Settle()
			w.Hold(stepID(2))
			w.Send(w.Event(e, step(1)))
			w.Settle()
			w.Release(stepID(2))
			w.Rest()
			w.Release(stepID(2)) // where a death let the hold come later
		},
		Want: wantSteps(2),
	}
}
