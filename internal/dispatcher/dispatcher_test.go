package dispatcher_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/delivery"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// world returns a world with an endpoint that is paid through, and one partner.
func world(t *testing.T, o sim.Options, change func(*delivery.Subscription)) (*sim.World, *sim.Endpoint) {
	t.Helper()
	w := sim.New(t, o)
	e := w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_dispatcher")
	w.Subscribe("sub_1", change)
	return w, e
}

// pay sends the n-th payment and lets the system go on until nothing is ready.
func pay(t *testing.T, w *sim.World, e *sim.Endpoint, n int) {
	t.Helper()
	d := w.Event(e, provider.SampleOptions{
		Type: "payment_intent.succeeded", EventID: fmt.Sprint("evt_", n), ObjectID: fmt.Sprint("pi_", n), Amount: 1250, Currency: "EUR",
	})
	if status := w.Send(d); status != 200 {
		t.Fatalf("status %d", status)
	}
	w.Settle()
}

func check(t *testing.T, w *sim.World) {
	t.Helper()
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
}

// only returns the one delivery.
func only(t *testing.T, w *sim.World) delivery.Delivery {
	t.Helper()
	all := w.Deliveries()
	if len(all) != 1 {
		t.Fatalf("%d deliveries, want 1: %+v", len(all), all)
	}
	return all[0]
}

// end is how a delivery ended, or stands.
type end struct {
	Status   delivery.Status
	Attempts int
	Last     int
	Error    string
}

func endOf(d delivery.Delivery) end { return end{d.Status, d.AttemptCount, d.LastStatus, d.LastError} }

func keys(t *testing.T) []delivery.VerifyingKey {
	t.Helper()
	k, err := delivery.ParseSigningKey("k1", sim.SigningText)
	if err != nil {
		t.Fatal(err)
	}
	return []delivery.VerifyingKey{k.Verifying()}
}

// A payment that was applied is told to the partner, once, signed over the very
// bytes on the wire. Proves X1, X2, X3, X12.
func TestWhatWasAppliedIsToldOnceAndSigned(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, nil)
	pay(t, w, e, 1)
	w.Rest()
	check(t, w)
	got := w.Partner.Got()
	if len(got) != 1 {
		t.Fatalf("%d requests, want 1", len(got))
	}
	d := only(t, w)
	if diff := cmp.Diff(end{delivery.Delivered, 1, 204, ""}, endOf(d)); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
	want := `{"type":"payment.succeeded","timestamp":"` + d.Effect.CreatedAt.Format(time.RFC3339Nano) + `","data":{"event":{"id":"` + string(d.Effect.InboxID) +
		`","provider":"stripe","type":"payment_intent.succeeded"},"object":{"type":"payment","id":"pi_1","state":"succeeded","amount":1250,"currency":"EUR"}}}`
	if diff := cmp.Diff(want, string(got[0].Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	verified, err := delivery.Verify(sim.Flat(got[0].Header), got[0].Body, keys(t), w.Now(), 5*time.Minute)
	if err != nil {
		t.Fatalf("the signature does not verify: %v", err)
	}
	if verified.Delivery != d.ID || verified.Attempt != 1 || verified.KeyID != "k1" || string(d.ID) == string(d.Effect.ID) {
		t.Errorf("verified %+v of delivery %s", verified, d.ID)
	}
}

// What a partner answers decides what comes next. Proves X5, X6, X9.
func TestWhatAnAnswerLeadsTo(t *testing.T) {
	t.Parallel()
	status := func(n int) sim.PartnerAnswer { return sim.PartnerAnswer{Status: n} }
	tests := []struct {
		name   string
		answer sim.PartnerAnswer
		want   end
	}{
		{"200", status(200), end{delivery.Delivered, 1, 200, ""}},
		{"202", status(202), end{delivery.Delivered, 1, 202, ""}},
		{"408", status(408), end{delivery.Retry, 1, 408, "status_408"}},
		{"425", status(425), end{delivery.Retry, 1, 425, "status_425"}},
		{"429", status(429), end{delivery.Retry, 1, 429, "status_429"}},
		{"500", status(500), end{delivery.Retry, 1, 500, "status_500"}},
		{"503", status(503), end{delivery.Retry, 1, 503, "status_503"}},
		{"400 is final", status(400), end{delivery.Dead, 1, 400, "status_400"}},
		{"401 is final", status(401), end{delivery.Dead, 1, 401, "status_401"}},
		{"404 is final", status(404), end{delivery.Dead, 1, 404, "status_404"}},
		{"410 is final", status(410), end{delivery.Dead, 1, 410, "status_410"}},
		{"304 is final", status(304), end{delivery.Dead, 1, 304, "status_304"}},
		{"301 turns a POST into a GET", sim.PartnerAnswer{Status: 301, Header: http.Header{"Location": {"https://partner.example.com/new"}}}, end{delivery.Dead, 1, 301, "status_301"}},
		{"a redirect to another host", sim.PartnerAnswer{Status: 307, Header: http.Header{"Location": {"https://elsewhere.example.org/"}}}, end{delivery.Dead, 1, 307, "redirect_refused"}},
		{"a redirect to http", sim.PartnerAnswer{Status: 308, Header: http.Header{"Location": {"http://partner.example.com/"}}}, end{delivery.Dead, 1, 308, "redirect_refused"}},
		{"a redirect to nowhere", sim.PartnerAnswer{Status: 307}, end{delivery.Dead, 1, 307, "redirect_refused"}},
		{"a time-out", sim.PartnerAnswer{Err: fault.New(fault.Theirs, "egress_timeout", nil)}, end{delivery.Retry, 1, 0, "egress_timeout"}},
		{"a 200 whose body breaks off", sim.PartnerAnswer{Status: 200, Err: fault.New(fault.Theirs, "egress_reset", nil)}, end{delivery.Delivered, 1, 200, ""}},
		{"a 500 whose body breaks off", sim.PartnerAnswer{Status: 500, Err: fault.New(fault.Theirs, "egress_reset", nil)}, end{delivery.Retry, 1, 500, "status_500"}},
		{"an address that leads inward", sim.PartnerAnswer{Err: fault.New(fault.Permanent, "egress_address_refused", nil)}, end{delivery.Dead, 1, 0, "egress_address_refused"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, e := world(t, sim.Options{}, nil)
			w.Partner.Answer(tt.answer)
			pay(t, w, e, 1)
			if diff := cmp.Diff(tt.want, endOf(only(t, w))); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
			w.Rest()
			check(t, w)
		})
	}
}

// Retries carry one identity, the same bytes, a rising number and a new time,
// until the profile is spent; then the delivery is dead. Proves X2, X3, X5, X6, X7.
func TestRetriesAreOneFamilyUntilTheProfileIsSpent(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, func(s *delivery.Subscription) { s.ProfileName = "brisk" })
	w.Partner.Always(sim.PartnerAnswer{Status: 500})
	pay(t, w, e, 1)
	for range 20 {
		w.Advance(30 * time.Second)
		w.Settle()
	}
	w.Rest()
	check(t, w)
	profile, _ := delivery.ProfileNamed("brisk")
	got := w.Partner.Got()
	if len(got) != profile.Attempts {
		t.Fatalf("%d requests, want %d", len(got), profile.Attempts)
	}
	for i, a := range got {
		verified, err := delivery.Verify(sim.Flat(a.Header), a.Body, keys(t), a.At, 0)
		if err != nil || verified.Attempt != i+1 || verified.Delivery != only(t, w).ID || string(a.Body) != string(got[0].Body) {
			t.Errorf("request %d: %+v, %v", i+1, verified, err)
		}
	}
	if diff := cmp.Diff(end{delivery.Dead, profile.Attempts, 500, "status_500"}, endOf(only(t, w))); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
}

// Proves X8: many wake-ups of one delivery, and many fan-outs of one effect, make
// one family of attempts.
func TestAHundredWakesMakeOneFamily(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, nil)
	w.Partner.Answer(sim.PartnerAnswer{Status: 503})
	pay(t, w, e, 1)
	d := only(t, w)
	w.Advance(time.Hour)
	dispatch := w.Dispatch().Dispatcher
	done := make(chan string)
	for range 100 {
		go func() { done <- dispatch.Handle(t.Context(), d.Wake()).Decision }()
	}
	decisions := map[string]int{}
	for range 100 {
		decisions[<-done]++
	}
	if decisions["delivered"] != 1 {
		t.Errorf("decisions %v, want one delivered", decisions)
	}
	w.Rest()
	check(t, w)
	if n := len(w.Partner.Got()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// Without its key a delivery is set aside, nothing leaves the house, and an
// operator can let it go on. Proves X10.
func TestAMissingKeySendsNoByte(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, func(s *delivery.Subscription) { s.Keys[0].Version = "00000000-0000-4000-8000-00000000dead" })
	pay(t, w, e, 1)
	w.Advance(12 * time.Hour)
	w.Reconcile()
	w.Settle()
	if n := len(w.Partner.Got()); n != 0 {
		t.Fatalf("%d requests left", n)
	}
	d := only(t, w)
	if diff := cmp.Diff(end{delivery.Faulted, 0, 0, "key_missing"}, endOf(d)); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
	w.ChangeSubscription("sub_1", func(s *delivery.Subscription) { s.Keys = nil })
	w.RotateSigning("sub_1", "k1", sim.SigningText)
	if ok, err := w.Outside.ChangeDelivery(t.Context(), d.Resume(w.Now())); err != nil || !ok {
		t.Fatal(ok, err)
	}
	w.Rest()
	check(t, w)
	if diff := cmp.Diff(end{delivery.Delivered, 1, 204, "key_missing"}, endOf(only(t, w))); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
}

// A rotation in the middle of retries: the partner verifies every attempt with
// the old key, with the new one, or with both. Proves X11, T6.
func TestARotationInTheMiddleVerifiesThroughout(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, nil)
	w.Partner.Answer(sim.PartnerAnswer{Status: 503}, sim.PartnerAnswer{Status: 503})
	pay(t, w, e, 1)
	const second = "whsec_YW5vdGhlciBvdXRib3VuZCBzZWNyZXQgb2YgMzIh"
	w.RotateSigning("sub_1", "k2", second)
	w.Rest()
	check(t, w)
	fresh, err := delivery.ParseSigningKey("k2", second)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i, a := range w.Partner.Got() {
		_, oldErr := delivery.Verify(sim.Flat(a.Header), a.Body, keys(t), a.At, 0)
		_, newErr := delivery.Verify(sim.Flat(a.Header), a.Body, []delivery.VerifyingKey{fresh.Verifying()}, a.At, 0)
		if oldErr != nil || (newErr == nil) != (i > 0) {
			t.Errorf("request %d: old key %v, new key %v", i+1, oldErr, newErr)
		}
		ids = append(ids, a.Header.Get("Dakghar-Key-Id"))
	}
	if diff := cmp.Diff([]string{"k1", "k2", "k2"}, ids); diff != "" {
		t.Errorf("key ids (-want +got):\n%s", diff)
	}
}

// A worker that dies after it recorded an attempt and before it sent leaves an
// abandoned attempt, and the next one is the same delivery. One that dies after it
// sent makes the partner see the same bytes twice. Proves X1, X2, T4, T6.
func TestADeadWorkersAttemptIsAbandonedAndMadeAgain(t *testing.T) {
	t.Parallel()
	t.Run("before sending", func(t *testing.T) {
		t.Parallel()
		w, e := world(t, sim.Options{}, nil)
		w.Partner.Answer(sim.PartnerAnswer{Before: func() { w.Dispatcher.Switch.KillAt(1, "before") }, Lost: true})
		pay(t, w, e, 1)
		w.Rest()
		check(t, w)
		wantAttempts(t, w, []delivery.Result{delivery.Abandoned, delivery.Accepted}, []string{"2"})
	})
	t.Run("after sending", func(t *testing.T) {
		t.Parallel()
		w, e := world(t, sim.Options{}, nil)
		dead := false
		w.Partner.Always(sim.PartnerAnswer{Before: func() {
			if !dead {
				dead = true
				w.Dispatcher.Switch.KillAt(1, "before")
			}
		}})
		pay(t, w, e, 1)
		w.Rest()
		check(t, w)
		wantAttempts(t, w, []delivery.Result{delivery.Abandoned, delivery.Accepted}, []string{"1", "2"})
	})
}

// wantAttempts compares how the one delivery's attempts ended, and which of them
// the wire saw.
func wantAttempts(t *testing.T, w *sim.World, results []delivery.Result, wire []string) {
	t.Helper()
	var got []delivery.Result
	for _, a := range w.Attempts(only(t, w).ID) {
		got = append(got, a.Result)
	}
	if diff := cmp.Diff(results, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	var seen []string
	for _, a := range w.Partner.Got() {
		seen = append(seen, a.Header.Get("Dakghar-Attempt"))
	}
	if diff := cmp.Diff(wire, seen); diff != "" {
		t.Errorf("on the wire (-want +got):\n%s", diff)
	}
}

// Types, filters, tenants and states decide who is told. Proves X1.
func TestWhoIsTold(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_dispatcher")
	for id, change := range map[delivery.SubscriptionID]func(*delivery.Subscription){
		"all":     nil,
		"exact":   func(s *delivery.Subscription) { s.Types = []string{"payment.succeeded"} },
		"pattern": func(s *delivery.Subscription) { s.Types = []string{"refund.*", "payment.*"} },
		"other":   func(s *delivery.Subscription) { s.Types = []string{"refund.*"} },
		"euro":    func(s *delivery.Subscription) { s.Filter = map[string]string{"object.currency": "EUR"} },
		"amount": func(s *delivery.Subscription) {
			s.Filter = map[string]string{"object.amount": "1250", "object.type": "payment"}
		},
		"dollar":   func(s *delivery.Subscription) { s.Filter = map[string]string{"object.currency": "USD"} },
		"stranger": func(s *delivery.Subscription) { s.Tenant = "globex" },
		"paused":   func(s *delivery.Subscription) { s.State = delivery.Paused },
		"stopped":  func(s *delivery.Subscription) { s.State = delivery.Stopped },
		"calls":    func(s *delivery.Subscription) { s.Calls = true },
	} {
		w.Subscribe(id, change)
	}
	pay(t, w, e, 1)
	got := map[delivery.SubscriptionID]delivery.Status{}
	for _, d := range w.Deliveries() {
		got[d.Subscription] = d.Status
	}
	want := map[delivery.SubscriptionID]delivery.Status{
		"all": delivery.Delivered, "exact": delivery.Delivered, "pattern": delivery.Delivered, "euro": delivery.Delivered, "amount": delivery.Delivered,
		"paused": delivery.Pending,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

// Without an effect's bytes nobody can say whom its filters would have chosen: who
// may have wanted it has a delivery that is set aside, and the promise is over.
// Proves X1, A6.
func TestLostBytesOfAnEffectAreSeenByWhoeverFilters(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_dispatcher")
	w.Subscribe("dollar", func(s *delivery.Subscription) { s.Filter = map[string]string{"object.currency": "USD"} })
	w.Subscribe("refunds", func(s *delivery.Subscription) {
		s.Types, s.Filter = []string{"refund.*"}, map[string]string{"object.currency": "EUR"}
	})
	d := w.Event(e, provider.SampleOptions{Type: "payment_intent.succeeded", EventID: "evt_1", ObjectID: "pi_1", Amount: 1250, Currency: "EUR"})
	if status := w.Send(d); status != 200 {
		t.Fatalf("status %d", status)
	}
	w.PumpStream()
	w.PumpQueue()
	promises := w.Outbox()
	i := slices.IndexFunc(promises, func(o webhook.Outbox) bool { return o.Effect != nil })
	if i < 0 {
		t.Fatalf("no effect among %+v", promises)
	}
	w.ForgetBody(promises[i].Effect.BodyID)
	w.Settle()
	got := map[delivery.SubscriptionID]end{}
	for _, d := range w.Deliveries() {
		got[d.Subscription] = endOf(d)
	}
	if diff := cmp.Diff(map[delivery.SubscriptionID]end{"dollar": {delivery.Faulted, 0, 0, "body_missing"}}, got); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if left := w.Outbox(); len(left) != 0 {
		t.Errorf("promises %+v, want none", left)
	}
}

// Where nobody wants to know, an event leaves nothing but itself.
func TestWithoutAPartnerNothingIsMade(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_dispatcher")
	pay(t, w, e, 1)
	w.Rest()
	check(t, w)
	if n := len(w.Deliveries()); n != 0 {
		t.Errorf("%d deliveries", n)
	}
}

// A partner's Retry-After is honoured up to the deadline, and no attempt begins
// after that. Proves X5, X7.
func TestRetryAfterIsHonouredWithinTheDeadline(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says string
		next time.Duration
	}{
		"seconds":            {"7200", 2 * time.Hour},
		"beyond the end":     {"9999999", 48 * time.Hour},
		"a time in the past": {"Sun, 01 Mar 2020 12:00:00 GMT", 0},
		"nonsense":           {"soon", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, e := world(t, sim.Options{}, nil)
			w.Partner.Answer(sim.PartnerAnswer{Status: 429, Header: http.Header{"Retry-After": {tt.says}}})
			pay(t, w, e, 1)
			d := only(t, w)
			wait := d.NextAttemptAt.Sub(d.CreatedAt)
			if tt.next > 0 && wait != tt.next || tt.next == 0 && wait > 5*time.Second {
				t.Errorf("the next attempt is after %s", wait)
			}
			w.Rest()
			check(t, w)
		})
	}
}

// A delivery whose deadline passes while it waits is EXPIRED, and nothing is sent
// after it. Proves X7.
func TestADeliveryExpiresUnsent(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, func(s *delivery.Subscription) { s.ProfileName, s.State = "brisk", delivery.Paused })
	pay(t, w, e, 1)
	w.Rest()
	check(t, w)
	if diff := cmp.Diff(end{delivery.Expired, 0, 0, "deadline_passed"}, endOf(only(t, w))); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
	if n := len(w.Partner.Got()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// A partner that says 410 is told nothing more; one that fails for days is paused
// by itself, and what waits is kept. Proves X6 and the protection of partners.
func TestAPartnerThatIsGoneOrFailsForDays(t *testing.T) {
	t.Parallel()
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		w, e := world(t, sim.Options{}, nil)
		w.Partner.Answer(sim.PartnerAnswer{Status: 410})
		pay(t, w, e, 1)
		w.Advance(time.Minute)
		pay(t, w, e, 2)
		w.Rest()
		check(t, w)
		s, _, _ := w.Outside.Subscription(t.Context(), "sub_1")
		if n := len(w.Partner.Got()); n != 1 || s.State != delivery.Stopped || s.StateWhy != "gone" {
			t.Errorf("%d requests, state %s %q", n, s.State, s.StateWhy)
		}
	})
	t.Run("failing", func(t *testing.T) {
		t.Parallel()
		w, e := world(t, sim.Options{}, func(s *delivery.Subscription) { s.ProfileName = "brisk" })
		w.Partner.Always(sim.PartnerAnswer{Status: 500})
		for day := range 6 {
			pay(t, w, e, day)
			w.Rest()
			w.Advance(24*time.Hour + time.Minute)
		}
		s, _, _ := w.Outside.Subscription(t.Context(), "sub_1")
		if s.State != delivery.Paused || s.StateWhy != "failing" {
			t.Errorf("state %s %q, failing since %s", s.State, s.StateWhy, s.FailingSince)
		}
		check(t, w)
	})
}

// A failure right after an acceptance begins a new count of days, although the
// subscription that the process remembers still has the old one: a partner that
// came back is not paused, and what waits for it does not expire.
func TestAPartnerThatHasJustAcceptedIsNotPaused(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, func(s *delivery.Subscription) { s.FailingSince = s.CreatedAt.Add(-delivery.FailingMax) })
	w.Partner.Answer(sim.PartnerAnswer{Status: 204}, sim.PartnerAnswer{Status: 503})
	pay(t, w, e, 1)
	w.Advance(time.Second)
	pay(t, w, e, 2)
	s, _, _ := w.Outside.Subscription(t.Context(), "sub_1")
	type stand struct {
		State delivery.State
		Since time.Time
	}
	if diff := cmp.Diff(stand{delivery.Active, w.Now()}, stand{s.State, s.FailingSince}); diff != "" {
		t.Errorf("subscription (-want +got):\n%s", diff)
	}
	w.Rest()
	check(t, w)
	for _, d := range w.Deliveries() {
		if d.Status != delivery.Delivered {
			t.Errorf("%s ended %s", d.ID, d.Status)
		}
	}
}

// When days of failure pause a subscription, the tenant's others are told so.
func TestOthersAreToldOfAPause(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, func(s *delivery.Subscription) { s.ProfileName, s.Types = "brisk", []string{"payment.*"} })
	w.Subscribe("watcher", func(s *delivery.Subscription) {
		s.Types = []string{"dakghar.*"}
		s.Target.URL = "https://watcher.example.com/"
	})
	w.Partner.Always(sim.PartnerAnswer{Status: 500})
	for day := range 6 {
		pay(t, w, e, day)
		w.Rest()
		w.Advance(24*time.Hour + time.Minute)
	}
	w.Partner.Always(sim.PartnerAnswer{})
	w.Rest()
	check(t, w)
	var told []string
	for _, a := range w.Partner.Got() {
		if a.URL == "https://watcher.example.com/" && a.Header.Get("Dakghar-Attempt") == "1" {
			told = append(told, string(a.Body))
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], `"type":"dakghar.subscription_paused"`) || !strings.Contains(told[0], `"id":"sub_1","why":"failing"`) {
		t.Errorf("told %q", told)
	}
}

// What partners are told outlives the last attempt, although its bytes were first
// kept weeks ago by a worker whose commit came to nothing. Proves X1, W4.
func TestTheBytesOfAnEffectOutliveItsDeliveries(t *testing.T) {
	t.Parallel()
	faults := &sim.Faults{}
	w, e := world(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"processor": faults.Middleware}},
		func(s *delivery.Subscription) { s.ProfileName = "patient" })
	faults.Add(sim.Fault{Operation: "TransactWriteItems", Table: "BusinessTable", Times: -1, Err: sim.ErrThrottle})
	pay(t, w, e, 1)
	faults.Clear()
	id := webhook.DeriveInboxID("demo", "stripe", "evt_1")
	w.Hold(id)
	w.Advance(27 * 24 * time.Hour)
	w.Release(id)
	w.Settle()
	d := only(t, w)
	if !d.Effect.BodyExpiresAt.After(d.Deadline) {
		t.Errorf("attempts until %s, bytes until %s", d.Deadline, d.Effect.BodyExpiresAt)
	}
	w.Rest()
	check(t, w)
}

// calling plans, beside what the built-in handler does, one call to billing.
type calling struct{}

func (calling) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	h, _ := business.Standard().Handler(ev)
	plan, err := h.Plan(ctx, ev, r)
	if plan.Outcome == webhook.Applied {
		plan.Effects = append(plan.Effects, webhook.Announcement{Type: "invoice.wanted", Call: "billing", Data: []byte(`{"n":1}`)})
	}
	return plan, err
}

func callers() *business.Router {
	return business.NewRouter(map[webhook.ObjectType]business.Handler{webhook.Payment: calling{}})
}

// A call to another service carries the event's own key in every attempt, goes to
// that service alone, and waits for it to be set up. Proves W3, X8.
func TestACallCarriesItsIdempotencyKey(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{Handlers: callers()}, nil)
	pay(t, w, e, 1)
	if n := len(w.Partner.Got()); n != 1 { // the announcement; nobody is called billing yet
		t.Fatalf("%d requests, want 1", n)
	}
	w.Subscribe("billing", func(s *delivery.Subscription) {
		s.Calls, s.Target.URL = true, "https://billing.example.com/"
	})
	w.Partner.Answer(sim.PartnerAnswer{Status: 500})
	w.Rest()
	check(t, w)
	id := webhook.DeriveInboxID("demo", "stripe", "evt_1")
	var keys []string
	for _, a := range w.Partner.Got() {
		if a.URL == "https://billing.example.com/" {
			keys = append(keys, a.Header.Get("Idempotency-Key"))
		} else if a.Header.Get("Idempotency-Key") != "" {
			t.Errorf("%s got a key", a.URL)
		}
	}
	want := string(id) + "/1"
	if diff := cmp.Diff([]string{want, want}, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
