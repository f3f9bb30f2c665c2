package processor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// fetching returns a world whose refunds are read at the provider.
func fetching(t *testing.T, o sim.Options) (*sim.World, *sim.Endpoint) {
	t.Helper()
	w := sim.New(t, o)
	e := w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_processor")
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.Policies = map[webhook.Kind]webhook.Policy{"refund.updated": webhook.ByFetch, "refund.created": webhook.ByFetch}
		return e
	})
	return w, e
}

// refund is what the provider says that the one refund is.
func refund(status string, amount int64) []byte {
	return fmt.Appendf(nil, `{"id":"re_1","object":"refund","status":%q,"amount":%d,"currency":"eur","payment_intent":"pi_1"}`, status, amount)
}

// updated is an event about the one refund, whose own state says nothing here.
func updated(w *sim.World, e *sim.Endpoint, event string) *sim.Delivery {
	return w.Event(e, provider.SampleOptions{Type: "refund.updated", EventID: event, ObjectID: "re_1", State: "pending", Amount: 500, Currency: "EUR"})
}

// balance returns the sum of the one refund's ledger.
func balance(t *testing.T, w *sim.World) int64 {
	t.Helper()
	ev := webhook.Event{Tenant: "acme", Provider: "stripe", Endpoint: "demo", Facts: webhook.Facts{ObjectType: webhook.Refund, ObjectID: "re_1"}}
	row, _, err := w.Outside.Get(t.Context(), business.LedgerBalanceKey(ev))
	if err != nil {
		t.Fatal(err)
	}
	sum, _ := row[business.BalanceAttribute("EUR")].(int64)
	return sum
}

// What the provider has now is applied, whatever the event said, and the ledger
// follows it there and back. Proves O3.
func TestTheCurrentStateIsAppliedAndNotTheEvents(t *testing.T) {
	t.Parallel()
	w, e := fetching(t, sim.Options{})
	for i, step := range []struct {
		status string
		amount int64
		state  string
		sum    int64
	}{
		{"pending", 500, "pending", 0},
		{"succeeded", 500, "succeeded", -500},
		{"succeeded", 700, "succeeded", -700},
		{"failed", 700, "failed", 0},
	} {
		w.Objects.Set("re_1", refund(step.status, step.amount))
		send(t, w, updated(w, e, fmt.Sprint("evt_", i)))
		w.Settle()
		if got := w.Projected("re_1", business.AttrState); got != step.state {
			t.Errorf("after %s the state is %v, want %s", step.status, got, step.state)
		}
		if got := balance(t, w); got != step.sum {
			t.Errorf("after %s the balance is %d, want %d", step.status, got, step.sum)
		}
	}
	w.Rest()
	check(t, w)
}

// Of two reads at once the one that began later stands, although the other one
// writes last. Proves O3, O1.
func TestOfConcurrentReadsTheLaterTicketStands(t *testing.T) {
	t.Parallel()
	w, e := fetching(t, sim.Options{})
	w.Objects.Set("re_1", refund("succeeded", 500))
	// While the first event's read is under way, the second event is read and applied.
	w.Objects.Script("re_1", sim.Read{Doc: refund("pending", 500), After: func() {
		send(t, w, updated(w, e, "evt_second"))
		w.PumpRival(w.Rival(0))
	}})
	send(t, w, updated(w, e, "evt_first"))
	w.Rest()
	check(t, w)
	if got := w.Row(id("evt_first")); got.Outcome != webhook.Stale {
		t.Errorf("the earlier read ended %s %s, want stale", got.Status, got.Outcome)
	}
	if got := w.Projected("re_1", business.AttrState); got != "succeeded" {
		t.Errorf("state %v, want succeeded", got)
	}
	if got := balance(t, w); got != -500 {
		t.Errorf("balance %d, want -500", got)
	}
}

// A worker that dies between its read and its write leaves nothing that a later
// read is measured against. Proves O3, T4.
func TestAReadWhoseWorkerDiedIsMadeAgain(t *testing.T) {
	t.Parallel()
	w, e := fetching(t, sim.Options{})
	w.Objects.Set("re_1", refund("succeeded", 500))
	w.Objects.Script("re_1", sim.Read{Doc: refund("pending", 500), After: func() { w.Processor.Switch.KillAt(1, "before") }})
	send(t, w, updated(w, e, "evt_1"))
	w.Rest()
	check(t, w)
	if got := balance(t, w); got != -500 || w.Objects.Reads() != 2 {
		t.Errorf("balance %d after %d reads, want -500 after 2", got, w.Objects.Reads())
	}
}

// What the provider or our own credential gets wrong leads to its own next state.
// Proves W4, O3.
func TestWhatAFailedReadLeadsTo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		read sim.Read
		want end
	}{
		{"the provider is down", sim.Read{Err: fault.New(fault.Theirs, "api_503", nil)}, end{webhook.Retry, "", 1, "api_503"}},
		{"our credential is refused", sim.Read{Err: fault.New(fault.Ours, "api_credential_refused", nil)}, end{webhook.Retry, "", 0, "api_credential_refused"}},
		{"it is another object", sim.Read{Doc: []byte(`{"id":"re_2","status":"pending","amount":1,"currency":"eur"}`)},
			end{webhook.Failed, "", 1, "fetched_other_object"}},
		{"it cannot be read", sim.Read{Doc: []byte(`{"id":"re_1","status":"strange"}`)}, end{webhook.Retry, "", 1, "answer_state_unknown"}},
		{"there is none yet", sim.Read{}, end{webhook.Retry, "", 1, "object_missing"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, e := fetching(t, sim.Options{})
			w.Objects.Script("re_1", tt.read)
			send(t, w, updated(w, e, "evt_1"))
			w.Settle()
			if diff := cmp.Diff(tt.want, endOf(w.Row(id("evt_1")))); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

// An object that the provider keeps saying it does not have is taken for gone
// after three tries and ten minutes, and not before. What it was stays.
// Proves O3, W4.
func TestAMissingObjectIsBelievedGoneInTheEnd(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{AttemptsMax: 8})
	e := w.AddEndpoint("shopify", "shop", "a secret of the shop that only this test knows")
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.Policies = map[webhook.Kind]webhook.Policy{"order.updated": webhook.ByFetch}
		return e
	})
	of := func(t webhook.EventType, event string) *sim.Delivery {
		return w.Event(e, provider.SampleOptions{Type: t, EventID: event, ObjectID: "820982911946154508", Amount: 500, Currency: "EUR"})
	}
	order := func(event string) *sim.Delivery { return of("orders/updated", event) }
	first := order("evt_1")
	w.Objects.Set("820982911946154508", fmt.Appendf(nil, `{"order":%s}`, of("orders/paid", "evt_0").Sample.Body))
	send(t, w, first)
	w.Settle()
	w.Objects.Set("820982911946154508", nil)
	reads := w.Objects.Reads()
	send(t, w, order("evt_2"))
	w.Rest()
	check(t, w)
	var last webhook.Inbox
	for _, r := range w.Inbox() {
		if r.ReceivedAt.After(last.ReceivedAt) || last.ID == "" {
			last = r
		}
	}
	if reads = w.Objects.Reads() - reads; last.Outcome != webhook.Applied || last.ProcessedAt.Sub(last.ReceivedAt) < 10*time.Minute || reads < 3 {
		t.Errorf("ended %s %s after %s and %d reads", last.Status, last.Outcome, last.ProcessedAt.Sub(last.ReceivedAt), reads)
	}
	got := map[string]any{}
	for _, attribute := range []string{business.AttrGone, business.AttrState, business.AttrAmount} {
		got[attribute] = w.Projected("820982911946154508", attribute)
	}
	want := map[string]any{business.AttrGone: true, business.AttrState: "cancelled", business.AttrAmount: int64(500)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("projection (-want +got):\n%s", diff)
	}
}

// A read that shows an older state than the one that is stored came from a replica
// that lags: it is made again, and never written. Proves O3, O1.
func TestAnOlderReadIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{AttemptsMax: 8})
	e := w.AddEndpoint("shopify", "shop", "a secret of the shop that only this test knows")
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.Policies = map[webhook.Kind]webhook.Policy{"order.updated": webhook.ByFetch}
		return e
	})
	const order = "820982911946154508"
	shown := func(status, updated string) []byte {
		return fmt.Appendf(nil, `{"order":{"id":%s,"order_number":1,"line_items":[],"total_price":"5.00","currency":"EUR","financial_status":%q,"updated_at":%q}}`, order, status, updated)
	}
	of := func(event string) *sim.Delivery {
		return w.Event(e, provider.SampleOptions{Type: "orders/updated", EventID: event, ObjectID: order, Amount: 500, Currency: "EUR"})
	}
	w.Objects.Set(order, shown("paid", "2026-03-01T12:00:05Z"))
	send(t, w, of("evt_1"))
	w.Settle()
	w.Objects.Script(order, sim.Read{Doc: shown("pending", "2026-03-01T12:00:04Z")})
	send(t, w, of("evt_2"))
	w.Settle()
	retried := 0
	for _, r := range w.Inbox() {
		if r.Status == webhook.Retry && r.LastError == "fetched_older" && r.AttemptCount == 1 {
			retried++
		}
	}
	if retried != 1 || w.Projected(order, business.AttrState) != "paid" {
		t.Errorf("%d events are retried, the order is %v", retried, w.Projected(order, business.AttrState))
	}
	w.Rest()
	check(t, w)
	if got := outcomesOf(w); got["PROCESSED applied"] != 2 {
		t.Errorf("ended as %v", got)
	}
}

func outcomesOf(w *sim.World) map[string]int {
	counts := map[string]int{}
	for _, r := range w.Inbox() {
		counts[string(r.Status)+" "+string(r.Outcome)]++
	}
	return counts
}

// Where the provider's objects do not go, one that is never found is a failure
// that somebody sees: a credential of another mode, for one. Proves O3, W4.
func TestAMissingObjectThatCannotBeGoneFails(t *testing.T) {
	t.Parallel()
	w, e := fetching(t, sim.Options{AttemptsMax: 8})
	send(t, w, updated(w, e, "evt_1"))
	w.Rest()
	check(t, w)
	if diff := cmp.Diff(end{webhook.Failed, "", 8, "object_missing"}, endOf(w.Row(id("evt_1")))); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

// An endpoint that goes from its state graph to reading, and back, credits
// nothing twice. Proves T3, T7.
func TestChangingThePolicyCreditsNothingTwice(t *testing.T) {
	t.Parallel()
	w, e := fetching(t, sim.Options{})
	policy := func(to map[webhook.Kind]webhook.Policy) {
		w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint { e.Policies = to; return e })
		w.Advance(time.Minute)
	}
	byFetch := map[webhook.Kind]webhook.Policy{"refund.updated": webhook.ByFetch}
	succeeded := func(event string) *sim.Delivery {
		return w.Event(e, provider.SampleOptions{Type: "refund.updated", EventID: event, ObjectID: "re_1", State: "succeeded", Amount: 500, Currency: "EUR"})
	}
	w.Objects.Set("re_1", refund("succeeded", 500))
	for i, to := range []map[webhook.Kind]webhook.Policy{nil, byFetch, nil, byFetch} {
		policy(to)
		send(t, w, succeeded(fmt.Sprint("evt_", i)))
		w.Settle()
		if got := balance(t, w); got != -500 {
			t.Errorf("after event %d the balance is %d, want -500", i, got)
		}
	}
	w.Rest()
	check(t, w)
}
