package sim_test

import (
	"fmt"
	"strconv"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// outbound is what becomes of the effects of events.
func outbound() []sim.Scenario {
	return []sim.Scenario{effect(), fanOut(), attemptAgain(), deadLetter(), signingRotation(), deliveryReplay(), lateAnswer(), circle()}
}

// told makes an endpoint that is paid through, and partners who want to know.
func told(e **sim.Endpoint, partners int, change func(*delivery.Subscription)) func(*sim.World) {
	return func(w *sim.World) {
		*e = stripe(w)
		for n := range partners {
			w.Subscribe(delivery.SubscriptionID(fmt.Sprintf("sub_%02d", n)), change)
		}
	}
}

// wantDeliveries counts how deliveries ended, and what the wire saw at least.
func wantDeliveries(want map[delivery.Status]int) func(*sim.World) []string {
	return func(w *sim.World) []string {
		got := map[delivery.Status]int{}
		for _, d := range w.Deliveries() {
			got[d.Status]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return []string{fmt.Sprintf("deliveries ended as %v, want %v", got, want)}
		}
		return nil
	}
}

func effect() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "effect", Arrange: told(&e, 1, nil),
		Act:  func(w *sim.World) { w.Send(w.Event(e, payment("evt_1"))) },
		Want: wantDeliveries(map[delivery.Status]int{delivery.Delivered: 1}),
	}
}

func fanOut() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "fan-out", Arrange: told(&e, 4, nil),
		Act: func(w *sim.World) {
			w.Send(w.Event(e, payment("evt_1")))
			w.Send(w.Event(e, payment("evt_2")))
		},
		Want: wantDeliveries(map[delivery.Status]int{delivery.Delivered: 8}),
	}
}

func attemptAgain() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "attempt again", Arrange: told(&e, 1, nil),
		Act: func(w *sim.World) {
			w.Partner.Answer(sim.PartnerAnswer{Status: 503}, sim.PartnerAnswer{Status: 500, Lost: true})
			w.Send(w.Event(e, payment("evt_1")))
		},
		Want: wantDeliveries(map[delivery.Status]int{delivery.Delivered: 1}),
	}
}

func deadLetter() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "dead letter", Arrange: told(&e, 1, nil),
		Act: func(w *sim.World) {
			w.Partner.Always(sim.PartnerAnswer{Status: 400})
			w.Send(w.Event(e, payment("evt_1")))
		},
		Want: wantDeliveries(map[delivery.Status]int{delivery.Dead: 1}),
	}
}

// circle is an event that a whole chain of deliveries led to: what it brings about
// ends unsent.
func circle() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "circle", Arrange: told(&e, 1, nil),
		Act: func(w *sim.World) {
			d := w.Event(e, payment("evt_1"))
			d.Sample.Header[delivery.HeaderHops] = strconv.Itoa(webhook.HopsMax)
			w.Send(d)
		},
		Want: func(w *sim.World) []string {
			wrong := wantDeliveries(map[delivery.Status]int{delivery.Dead: 1})(w)
			if n := len(w.Partner.Got()); n != 0 {
				wrong = append(wrong, fmt.Sprintf("%d requests arrived", n))
			}
			return wrong
		},
	}
}

func signingRotation() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "signing rotation", Arrange: told(&e, 1, nil),
		Act: func(w *sim.World) {
			w.Partner.Answer(sim.PartnerAnswer{Status: 503})
			w.Send(w.Event(e, payment("evt_1")))
			w.Settle()
			w.RotateSigning("sub_00", "k2", "whsec_YW5vdGhlciBvdXRib3VuZCBzZWNyZXQgb2YgMzIh")
		},
		Want: func(w *sim.World) []string {
			wrong := wantDeliveries(map[delivery.Status]int{delivery.Delivered: 1})(w)
			old, err := delivery.ParseSigningKey("k1", sim.SigningText)
			if err != nil {
				return append(wrong, err.Error())
			}
			for _, a := range w.Partner.Got() { // the partner has only the old key
				if _, err := delivery.Verify(sim.Flat(a.Header), a.Body, []delivery.VerifyingKey{old.Verifying()}, a.At, time.Minute); err != nil {
					wrong = append(wrong, fmt.Sprintf("an attempt does not verify: %v", err))
				}
			}
			return wrong
		},
	}
}

// deliveryReplay is an operator who has a dead delivery made again.
func deliveryReplay() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "delivery replay", Arrange: told(&e, 1, nil),
		Act: func(w *sim.World) {
			w.Partner.Always(sim.PartnerAnswer{Status: 400})
			w.Send(w.Event(e, payment("evt_1")))
			w.Rest()
			w.Partner.Always(sim.PartnerAnswer{})
			for _, d := range w.Deliveries() {
				w.ReplayDelivery(d.ID)
			}
		},
		Want: wantDeliveries(map[delivery.Status]int{delivery.Dead: 1, delivery.Delivered: 1}),
	}
}

// lateAnswer is a partner whose 2xx comes when the attempt was given up.
func lateAnswer() sim.Scenario {
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "late answer", Arrange: told(&e, 1, nil),
		Act: func(w *sim.World) {
			w.Partner.Answer(sim.PartnerAnswer{Before: func() {
				w.Advance(10 * time.Minute) // beyond the lease
				w.Reconcile()
				w.PumpRivalDispatch(w.RivalDispatch())
			}})
			w.Send(w.Event(e, payment("evt_1")))
		},
		Want: wantDeliveries(map[delivery.Status]int{delivery.Delivered: 1}),
	}
}
