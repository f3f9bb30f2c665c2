package dispatcher_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/directory"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// A worker that reads a delivery in the same moment as another, and claims it
// later, sends nothing. Proves X8.
func TestAWorkerThatLosesTheClaimSendsNothing(t *testing.T) {
	t.Parallel()
	faults := &sim.Faults{}
	w, e := world(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"dispatcher": faults.Middleware}}, nil)
	w.Partner.Answer(sim.PartnerAnswer{Status: 503})
	pay(t, w, e, 1)
	w.Advance(time.Minute)
	read := only(t, w)
	rivals := read.Claim("rival", w.Now(), time.Minute)
	faults.Add(sim.Fault{Operation: "TransactWriteItems", Times: 1, Meanwhile: func() {
		a := delivery.Attempt{Delivery: read.ID, N: 2, At: w.Now(), KeyID: "k1"}
		if ok, err := w.Outside.BeginAttempt(t.Context(), rivals, a); err != nil || !ok {
			t.Errorf("the rival: %v, %v", ok, err)
		}
	}})
	if got := w.Dispatch().Dispatcher.Handle(t.Context(), read.Wake()).Decision; got != "claim_lost" {
		t.Errorf("decision %s", got)
	}
	if n := len(w.Partner.Got()); n != 1 {
		t.Errorf("%d requests, want the first one alone", n)
	}
	if diff := cmp.Diff(rivals.Apply(read), only(t, w)); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
}

// A fan-out that goes on from where another has come, over a list that has grown
// meanwhile, leaves nobody out. Proves X1.
func TestAFanOutGoesOnOverALongerList(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, nil)
	for n := range 54 { // beside the first one, a chunk and a little
		w.Subscribe(delivery.SubscriptionID(fmt.Sprintf("sub_1%02d", n)), nil)
	}
	applied(t, w, e)
	promise := w.Outbox()[0]
	wake := webhook.NewWake(promise)
	if got := w.Dispatch().Dispatcher.Handle(endsSoon(t), wake); got.Decision != "unfinished" || got.Created != 50 {
		t.Fatalf("at first %s, %d deliveries: %v", got.Decision, got.Created, got.Err)
	}
	w.Subscribe("sub_0", nil) // before all others
	w.Advance(31 * time.Second)
	if got := w.Dispatch().Dispatcher.Handle(t.Context(), wake); got.Decision != "fanned_out" || got.Created != 5 {
		t.Errorf("then %s, %d deliveries: %v", got.Decision, got.Created, got.Err)
	}
}

// A subscription that a process does not know of yet, since what it remembers is up
// to half a minute old, loses no delivery that another process has made for it: one
// that was just created, and one that was just taken up again. Proves X1, X12.
func TestADeliveryOutlivesWhatAProcessRemembers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		remember func(*sim.World) // as the process read it
		meantime func(*sim.World)
	}{
		{"created", func(*sim.World) {}, func(w *sim.World) { w.Subscribe("sub_2", nil) }},
		{"resumed", func(w *sim.World) {
			w.Subscribe("sub_2", func(s *delivery.Subscription) { s.State, s.StateWhy = delivery.Stopped, "gone" })
		}, func(w *sim.World) {
			w.ChangeSubscription("sub_2", func(s *delivery.Subscription) { s.State, s.StateWhy = delivery.Active, "" })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, e := world(t, sim.Options{}, nil)
			tt.remember(w)
			pay(t, w, e, 1)
			tt.meantime(w)
			w.Advance(-directory.Age) // the world waits until everybody knows
			s, _, err := w.Outside.Subscription(t.Context(), "sub_2")
			if err != nil {
				t.Fatal(err)
			}
			another := delivery.New(only(t, w).Effect, s, w.Now()) // as another process fans out
			if ok, err := w.Outside.CreateDelivery(t.Context(), another); err != nil || !ok {
				t.Fatal(ok, err)
			}
			if got := w.Dispatch().Dispatcher.Handle(t.Context(), another.Wake()).Decision; got != "delivered" {
				t.Errorf("decision %s", got)
			}
			w.Rest()
			check(t, w)
		})
	}
}

// What was set aside for a key that is lost, and resumed as soon as there is another
// one, is not set aside again by a process that remembers the lost one. Proves X10, X11.
func TestAResumedDeliveryIsSignedWithTheNewKey(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, func(s *delivery.Subscription) { s.Keys[0].Version = "00000000-0000-4000-8000-00000000dead" })
	pay(t, w, e, 1)
	d := only(t, w)
	if d.Status != delivery.Faulted {
		t.Fatalf("the delivery is %s", d.Status)
	}
	w.ChangeSubscription("sub_1", func(s *delivery.Subscription) { s.Keys = nil })
	w.RotateSigning("sub_1", "k1", sim.SigningText)
	w.Advance(-2 * directory.Age) // the world waits until everybody knows
	if ok, err := w.Outside.ChangeDelivery(t.Context(), d.Resume(w.Now())); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if got := w.Dispatch().Dispatcher.Handle(t.Context(), d.Wake()).Decision; got != "delivered" {
		t.Errorf("decision %s", got)
	}
	w.Rest()
	check(t, w)
}

// A final answer of an address that is not the subscription's any more ends neither
// the subscription nor the delivery: the new address is asked. Proves X5, X6.
func TestAnAddressThatWasLeftHasNoLastWord(t *testing.T) {
	t.Parallel()
	for _, status := range []int{410, 404} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w, e := world(t, sim.Options{}, nil)
			moves := func() {
				w.ChangeSubscription("sub_1", func(s *delivery.Subscription) { s.Target.URL = "https://partner.example.com/moved" })
				w.Advance(-directory.Age)
			}
			w.Partner.Answer(sim.PartnerAnswer{Status: status, Before: moves})
			pay(t, w, e, 1)
			if diff := cmp.Diff(end{delivery.Retry, 1, status, "target_moved"}, endOf(only(t, w))); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
			w.Rest()
			check(t, w)
			s, _, _ := w.Outside.Subscription(t.Context(), "sub_1")
			if got := w.Partner.Got(); len(got) != 2 || got[1].URL != s.Target.URL || s.State != delivery.Active || only(t, w).Status != delivery.Delivered {
				t.Errorf("%d requests, subscription %s, delivery %s", len(got), s.State, only(t, w).Status)
			}
		})
	}
}

// A credential that was turned over is not what a delivery ends for: a process that
// remembers the older one asks for the present one first. One that the partner does
// not accept although it is the present one is an answer. Proves X5.
func TestARefusalOfAnOlderCredentialIsNoLastWord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		turn bool
		want []end
		sent []string
	}{
		{"turned over", true, []end{{delivery.Retry, 1, 401, "credential_moved"}, {delivery.Delivered, 2, 204, "credential_moved"}}, []string{"Bearer first", "Bearer second"}},
		{"the present one", false, []end{{delivery.Dead, 1, 401, "status_401"}, {delivery.Dead, 1, 401, "status_401"}}, []string{"Bearer first"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, e := world(t, sim.Options{}, nil)
			name := w.TurnCredential("sub_1", "Bearer first")
			w.ChangeSubscription("sub_1", func(s *delivery.Subscription) { s.CredentialHeader, s.Credential = "authorization", name })
			w.Partner.Answer(sim.PartnerAnswer{Status: 401, Before: func() {
				w.Advance(time.Minute) // which it was remembered for
				if tt.turn {
					w.TurnCredential("sub_1", "Bearer second")
				}
			}})
			pay(t, w, e, 1)
			got := []end{endOf(only(t, w))}
			w.Rest()
			check(t, w)
			if diff := cmp.Diff(tt.want, append(got, endOf(only(t, w)))); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
			var sent []string
			for _, r := range w.Partner.Got() {
				sent = append(sent, r.Header.Get("Authorization"))
			}
			if diff := cmp.Diff(tt.sent, sent); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// applied has a payment processed, and leaves its effect to the test.
func applied(t *testing.T, w *sim.World, e *sim.Endpoint) {
	t.Helper()
	d := w.Event(e, provider.SampleOptions{Type: "payment_intent.succeeded", EventID: "evt_0", ObjectID: "pi_0", Amount: 1250, Currency: "EUR"})
	if status := w.Send(d); status != 200 {
		t.Fatalf("status %d", status)
	}
	for w.PumpStream() || w.PumpQueue() {
	}
}

// endsSoon is the context of an invocation that has less time left than a fan-out
// keeps free, and is not cut off however slow the test.
func endsSoon(t *testing.T) context.Context {
	t.Helper()
	bounded, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	end, _ := bounded.Deadline()
	return ending{t.Context(), end}
}

type ending struct {
	context.Context //nolint:containedctx // it is one

	end time.Time
}

func (e ending) Deadline() (time.Time, bool) { return e.end, true }
