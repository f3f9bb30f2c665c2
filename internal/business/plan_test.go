package business_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

func plan(t *testing.T, ev webhook.Event, m *memory) webhook.Plan {
	t.Helper()
	h, ok := business.Standard().Handler(ev)
	if !ok {
		t.Fatalf("no handler for %s", ev.Facts.ObjectType)
	}
	p, err := h.Plan(context.Background(), ev, m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Proves O5, W2: the first event of an object is written only if there still is
// no row, beside its entry and its addition to the balance.
func TestTheFirstStepAsksForAnAbsentRow(t *testing.T) {
	t.Parallel()
	p := follows(webhook.Payment)
	ev := p.says("succeeded", moves(+1, 500), func(f *webhook.Facts) { f.ParentID = "order_9" })

	want := webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{
		{
			Op: webhook.Update, Key: webhook.Key{PK: "shop#razorpay#payment#o_1", SK: "projection"},
			Item: webhook.Item{
				"state": "succeeded", "amount": int64(500), "currency": "INR", "parent": "order_9", "provider": "razorpay",
				"kind": "payment.succeeded", "inbox": "in_payment_1", "counted_succeeded": true,
			},
			Add: map[string]int64{"events": 1}, Drop: []string{"version"},
			Tag: webhook.Unchanged, When: []webhook.Condition{{Attribute: "pk", Relation: webhook.Absent}},
		},
		{
			Op: webhook.Put, Key: webhook.Key{PK: "shop#razorpay#payment#o_1", SK: "entry#in_payment_1#0"},
			Item: webhook.Item{
				"amount": int64(500), "currency": "INR", "state": "succeeded", "provider": "razorpay",
				"kind": "payment.succeeded", "type": "t.succeeded", "inbox": "in_payment_1", "run": int64(0),
			},
		},
		{
			Op: webhook.Update, Key: webhook.Key{PK: "shop#razorpay#payment#o_1", SK: "balance"},
			Add: map[string]int64{"entries": 1, "balance_INR": 500},
		},
	}, Effects: []webhook.Announcement{{Type: "payment.succeeded", Data: []byte(`{"event":{"id":"in_payment_1","provider":"razorpay","type":"t.succeeded"},` +
		`"object":{"type":"payment","id":"o_1","parent_id":"order_9","state":"succeeded","amount":500,"currency":"INR"}}`)}}}
	if diff := cmp.Diff(want, plan(t, ev, newMemory())); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// Proves O5, W2: a later step is written only over the very row that was read.
func TestALaterStepAsksForTheRowThatWasRead(t *testing.T) {
	t.Parallel()
	p := follows(webhook.Payment)
	m := newMemory()
	m.processAll(t, business.Standard(), p.says("created"), p.says("processing"))

	got := plan(t, p.says("failed"), m).Actions[0]
	want := webhook.Action{
		Op: webhook.Update, Key: webhook.Key{PK: "shop#razorpay#payment#o_1", SK: "projection"},
		Item: webhook.Item{"state": "failed", "provider": "razorpay", "kind": "payment.failed", "inbox": "in_payment_3"},
		Add:  map[string]int64{"events": 1}, Drop: []string{"version", "amount", "currency", "parent"},
		Tag: webhook.Unchanged, When: []webhook.Condition{
			{Attribute: "state", Relation: webhook.Equal, Value: "processing"},
			{Attribute: "events", Relation: webhook.Equal, Value: int64(2)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("projection (-want +got):\n%s", diff)
	}
}

// Proves O5, T3: money that arrives late leaves the state alone, and a row of its
// own keeps a recurring object's round from being credited again.
func TestMoneyOfAnEarlierRoundIsCreditedLateAndOnce(t *testing.T) {
	t.Parallel()
	s := follows(webhook.Subscription)
	m := newMemory()
	m.processAll(t, business.Standard(), s.says("active", at(2), moves(+1, 100)))

	late := s.says("active", at(1), moves(+1, 100))
	want := []webhook.Action{
		{
			Op: webhook.Update, Key: business.ProjectionKey(late), Add: map[string]int64{"events": 1},
			Tag: webhook.Unchanged, When: []webhook.Condition{
				{Attribute: "state", Relation: webhook.Equal, Value: "active"},
				{Attribute: "events", Relation: webhook.Equal, Value: int64(1)},
			},
		},
		{
			Op: webhook.Put, Key: business.Key(late, "once", "1", "active"), Item: webhook.Item{"inbox": "in_subscription_2"},
			Tag: webhook.Newer, When: []webhook.Condition{{Attribute: "pk", Relation: webhook.Absent}},
		},
	}
	actions := plan(t, late, m).Actions
	if diff := cmp.Diff(want, []webhook.Action{actions[0], actions[len(actions)-1]}); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	got := m.processAll(t, business.Standard(), late, s.says("active", at(1), moves(+1, 100)))
	if diff := cmp.Diff([]webhook.Outcome{webhook.Applied, webhook.Stale}, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// Proves O5, T3: an end is one end, whichever round it is told with.
func TestTheMoneyOfAnEndIsCreditedOnce(t *testing.T) {
	t.Parallel()
	s := follows(webhook.Subscription)
	m := newMemory()
	got := m.processAll(t, business.Standard(), s.says("cancelled", moves(-1, 100)), s.says("cancelled", at(2), moves(-1, 100)))
	if diff := cmp.Diff([]webhook.Outcome{webhook.Applied, webhook.Stale}, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// Proves O5: what a refund took is given back when it fails after all.
func TestARefundThatFailsGivesBackWhatItTook(t *testing.T) {
	t.Parallel()
	r := follows(webhook.Refund)
	m := newMemory()
	failed := r.says("failed")
	m.processAll(t, business.Standard(), r.says("succeeded", moves(-1, 200)), failed)

	got := map[webhook.Key]webhook.Item{
		business.ProjectionKey(failed):    m.rows[business.ProjectionKey(failed)],
		business.LedgerEntryKey(failed):   m.rows[business.LedgerEntryKey(failed)],
		business.LedgerBalanceKey(failed): m.rows[business.LedgerBalanceKey(failed)],
	}
	want := map[webhook.Key]webhook.Item{
		business.ProjectionKey(failed): {
			"state": "failed", "provider": "razorpay", "kind": "refund.failed", "inbox": "in_refund_1", "events": int64(2),
		},
		business.LedgerEntryKey(failed): {
			"amount": int64(200), "currency": "INR", "state": "failed", "provider": "razorpay",
			"kind": "refund.failed", "type": "t.failed", "inbox": "in_refund_1", "run": int64(0),
		},
		business.LedgerBalanceKey(failed): {"entries": int64(2), "balance_INR": int64(0)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// Proves O3's neighbour: kinds that set no state are recorded, whatever the state is.
func TestAnEventWithoutAStateIsRecordedAlone(t *testing.T) {
	t.Parallel()
	s := follows(webhook.Subscription)
	m := newMemory()
	got := m.processAll(t, business.Standard(), s.says("cancelled"), s.says("", moves(+1, 30)))
	if diff := cmp.Diff([]webhook.Outcome{webhook.Applied, webhook.Applied}, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	ev := s.says("")
	if diff := cmp.Diff(webhook.Item{"entries": int64(2), "balance_INR": int64(30)}, m.rows[business.LedgerBalanceKey(ev)]); diff != "" {
		t.Errorf("balance (-want +got):\n%s", diff)
	}
	if got := m.rows[business.ProjectionKey(ev)]["state"]; got != "cancelled" {
		t.Errorf("the state is %v, want cancelled", got)
	}
}

// Proves W4: facts that make no sense fail at once, each with its own code.
func TestFactsThatMakeNoSenseAreAPermanentFault(t *testing.T) {
	t.Parallel()
	payment := func(change func(*webhook.Event)) webhook.Event {
		ev := follows(webhook.Payment).says("succeeded", moves(+1, 500))
		change(&ev)
		return ev
	}
	object := func(change func(*webhook.Event)) webhook.Event {
		ev := (&happening{object: webhook.Object, policy: webhook.ByVersion}).says("ready", at(1))
		change(&ev)
		return ev
	}
	tests := []struct {
		name string
		ev   webhook.Event
		want string
	}{
		{"no object id", payment(func(ev *webhook.Event) { ev.Facts.ObjectID = "" }), "no_object_id"},
		{"an object id that makes no key", payment(func(ev *webhook.Event) { ev.Facts.ObjectID = strings.Repeat("#", webhook.ObjectIDBytesMax+1) }), "object_id_too_long"},
		{"a state that the graph does not have", payment(func(ev *webhook.Event) { ev.Facts.State = "paid" }), "unknown_state"},
		{"a credit of two", payment(func(ev *webhook.Event) { ev.Facts.Credit = 2 }), "bad_credit"},
		{"a credit with a second sign", payment(func(ev *webhook.Event) { ev.Facts.Amount = -1 }), "negative_amount"},
		{"a currency in small letters", payment(func(ev *webhook.Event) { ev.Facts.Currency = "inr" }), "bad_currency"},
		{"money without a currency", payment(func(ev *webhook.Event) { ev.Facts.Currency = "" }), "bad_currency"},
		{"a payment by version", payment(func(ev *webhook.Event) { ev.Policy = webhook.ByVersion }), "policy_mismatch"},
		{"a round below nought", payment(func(ev *webhook.Event) { ev.Facts.Version, ev.Facts.HasVersion = -1, true }), "bad_version"},
		{"an object without a version", object(func(ev *webhook.Event) { ev.Facts.HasVersion = false }), "no_version"},
		{"an object with a version below nought", object(func(ev *webhook.Event) { ev.Facts.Version = -1 }), "no_version"},
		{"an object by graph", object(func(ev *webhook.Event) { ev.Policy = webhook.Monotonic }), "policy_mismatch"},
		{"an object without an id", object(func(ev *webhook.Event) { ev.Facts.ObjectID = "" }), "no_object_id"},
		{"a notice about nothing", webhook.Event{Facts: webhook.Facts{ObjectType: webhook.Account}}, "no_object_id"},
		{"a charge of a subscription without its round", follows(webhook.Subscription).says("active", moves(+1, 1)), "no_round"},
		{"a failed refund with a credit of its own", follows(webhook.Refund).says("failed", moves(+1, 1)), "void_with_credit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, _ := business.Standard().Handler(tt.ev)
			p, err := h.Plan(context.Background(), tt.ev, newMemory())
			if fault.KindOf(err) != fault.Permanent || fault.CodeOf(err) != tt.want {
				t.Errorf("Plan = %+v, %v; want the permanent fault %s", p, err, tt.want)
			}
		})
	}
}

// Proves W4: a stored row that is not ours to read is not overwritten.
func TestAStoredRowThatMakesNoSenseIsAPermanentFault(t *testing.T) {
	t.Parallel()
	ev := follows(webhook.Payment).says("succeeded")
	for want, row := range map[string]webhook.Item{
		"unknown_stored_state": {"state": "paid", "events": int64(1)},
		"foreign_projection":   {"state": "created"},
	} {
		m := newMemory()
		m.rows[business.ProjectionKey(ev)] = row
		if _, err := m.process(business.Standard(), ev); fault.KindOf(err) != fault.Permanent || fault.CodeOf(err) != want {
			t.Errorf("over %v: %v, want the permanent fault %s", row, err, want)
		}
	}
}

// Proves W4: a refund's steps in two currencies cannot be undone, so the second is refused.
func TestAStepInAnotherCurrencyIsAPermanentFault(t *testing.T) {
	t.Parallel()
	r := follows(webhook.Refund)
	m := newMemory()
	m.processAll(t, business.Standard(), r.says("pending", moves(-1, 200)))
	_, err := m.process(business.Standard(), r.says("succeeded", moves(-1, 200), func(f *webhook.Facts) { f.Currency = "USD" }))
	if fault.KindOf(err) != fault.Permanent || fault.CodeOf(err) != "currency_changed" {
		t.Errorf("%v, want the permanent fault currency_changed", err)
	}
}

type brokenReader struct{ err error }

func (b brokenReader) Get(context.Context, webhook.Key) (webhook.Item, bool, error) {
	return nil, false, b.err
}

// Proves W4: a store that cannot be read stays the store's fault.
func TestAReaderErrorKeepsItsKind(t *testing.T) {
	t.Parallel()
	ev := follows(webhook.Payment).says("succeeded")
	h, _ := business.Standard().Handler(ev)
	down := fault.New(fault.Ours, "store_unavailable", errors.New("no answer"))
	_, err := h.Plan(context.Background(), ev, brokenReader{down})
	if !errors.Is(err, down) || fault.KindOf(err) != fault.Ours {
		t.Errorf("Plan: %v, want the reader's own fault", err)
	}
}

// Proves O1: of all the kinds that the built-in handlers know, no plan and no
// outcome changes with the provider's clock.
func TestNoPlanDependsOnTheProvidersClock(t *testing.T) {
	t.Parallel()
	for _, l := range lives() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			for _, ev := range l.events {
				before, after := ev, ev
				before.Facts.CreatedAt = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
				after.Facts.CreatedAt = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
				if diff := cmp.Diff(plan(t, before, m), plan(t, after, m)); diff != "" {
					t.Errorf("%s (-early +late):\n%s", ev.Kind, diff)
				}
				m.processAll(t, business.Standard(), ev)
			}
		})
	}
}

// Two actions on one row would be refused by the store, and so would too many.
func TestEveryPlanCanBeCommitted(t *testing.T) {
	t.Parallel()
	for _, l := range lives() {
		m := newMemory()
		for _, ev := range l.events {
			rows := map[webhook.Key]bool{}
			p := plan(t, ev, m)
			for _, a := range p.Actions {
				rows[a.Key] = true
				if len(a.Key.PK) > 2048 || len(a.Key.SK) > 1024 || a.Key.PK == "" || a.Key.SK == "" {
					t.Errorf("%s: key %v", ev.Kind, a.Key)
				}
			}
			if len(rows) != len(p.Actions) || len(rows) > webhook.ActionsMax {
				t.Errorf("%s: %d actions on %d rows", ev.Kind, len(p.Actions), len(rows))
			}
			m.processAll(t, business.Standard(), ev)
		}
	}
}

// Tenants, object types, objects and senders of generic objects never share a
// partition, however their names are cut; and the marks' partitions stay apart.
func TestNoTwoObjectsShareAPartition(t *testing.T) {
	t.Parallel()
	base := webhook.Event{
		Tenant: "a", Provider: "p", Endpoint: "e",
		Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: "1"},
	}
	change := func(f func(*webhook.Event)) webhook.Event {
		ev := base
		f(&ev)
		return ev
	}
	events := []webhook.Event{
		base,
		change(func(ev *webhook.Event) { ev.Tenant = "b" }),
		change(func(ev *webhook.Event) { ev.Tenant, ev.Provider = "a#p", "" }),
		change(func(ev *webhook.Event) { ev.Tenant, ev.Provider = "a%23p", "" }),
		change(func(ev *webhook.Event) { ev.Tenant, ev.Provider = "a#b", "c" }),
		change(func(ev *webhook.Event) { ev.Tenant, ev.Provider = "a", "b#c" }),
		change(func(ev *webhook.Event) { ev.Tenant = "mark" }),
		change(func(ev *webhook.Event) { ev.Facts.ObjectID = "1#1" }),
		change(func(ev *webhook.Event) { ev.Facts.ObjectID = "1%231" }),
		change(func(ev *webhook.Event) { ev.Facts.ObjectType = webhook.Refund }),
		change(func(ev *webhook.Event) { ev.Facts.ObjectType = webhook.Object }),
		change(func(ev *webhook.Event) { ev.Facts.ObjectType, ev.Endpoint = webhook.Object, "f" }),
	}
	seen := map[string]int{}
	for i, ev := range events {
		key := business.ProjectionKey(ev)
		if j, ok := seen[key.PK]; ok {
			t.Errorf("events %d and %d share the partition %q", j, i, key.PK)
		}
		seen[key.PK] = i
		if strings.HasPrefix(key.PK, "mark#in_") {
			t.Errorf("event %d lies among the marks: %q", i, key.PK)
		}
		if business.LedgerBalanceKey(ev).PK != key.PK || business.LedgerEntryKey(ev).PK != key.PK {
			t.Errorf("event %d has rows in several partitions", i)
		}
	}
	moved := base
	moved.Endpoint = "new-address"
	if diff := cmp.Diff(business.ProjectionKey(base), business.ProjectionKey(moved)); diff != "" {
		t.Errorf("a provider's object moved with the endpoint (-old +new):\n%s", diff)
	}
}

// The longest id, all of it escaped, is still a key.
func TestTheLongestObjectIDMakesAKey(t *testing.T) {
	t.Parallel()
	ev := follows(webhook.Payment).says("created")
	ev.Tenant, ev.Facts.ObjectID = webhook.Tenant(strings.Repeat("t", 64)), strings.Repeat("#", webhook.ObjectIDBytesMax)
	if got := len(plan(t, ev, newMemory()).Actions[0].Key.PK); got > 2048 {
		t.Errorf("the key has %d bytes, at most 2048", got)
	}
}

func TestARouterFindsItsHandlersAndNoOthers(t *testing.T) {
	t.Parallel()
	handlers := map[webhook.ObjectType]business.Handler{"parcel": business.Notices{}}
	r := business.NewRouter(handlers)
	handlers["letter"] = business.Notices{}

	wider := r.With("parcel", business.Versioned{}).With("letter", business.Notices{})
	found := func(r *business.Router, of webhook.ObjectType) business.Handler {
		h, ok := r.Handler(webhook.Event{Facts: webhook.Facts{ObjectType: of}})
		if ok != (h != nil) {
			t.Errorf("%s: a handler %v, found %v", of, h, ok)
		}
		return h
	}
	got := []business.Handler{found(r, "parcel"), found(r, "letter"), found(wider, "parcel"), found(wider, "letter"), found(wider, "")}
	want := []business.Handler{business.Notices{}, nil, business.Versioned{}, business.Notices{}, nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("handlers (-want +got):\n%s", diff)
	}
}

func TestARouteWithoutAHandlerPanics(t *testing.T) {
	t.Parallel()
	for _, handlers := range []map[webhook.ObjectType]business.Handler{
		{"parcel": nil}, {"": business.Notices{}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v was accepted", handlers)
				}
			}()
			business.NewRouter(handlers)
		}()
	}
}

// Proves P4: the main uses are all handled, each in the words that adapters use.
func TestTheStandardRouterKnowsTheMainUses(t *testing.T) {
	t.Parallel()
	want := map[webhook.ObjectType][]string{
		webhook.Payment:      {"authorised", "cancelled", "created", "failed", "processing", "requires_action", "succeeded"},
		webhook.Order:        {"cancelled", "fulfilled", "open", "paid"},
		webhook.Subscription: {"active", "cancelled", "incomplete", "past_due", "paused", "trialing", "unpaid"},
		webhook.Refund:       {"cancelled", "failed", "pending", "succeeded"},
		webhook.Dispute:      {"closed", "lost", "needs_response", "under_review", "won"},
		webhook.Account:      nil,
		webhook.Object:       nil,
	}
	got := map[webhook.ObjectType][]string{}
	for of := range want {
		h, ok := business.Standard().Handler(webhook.Event{Facts: webhook.Facts{ObjectType: of}})
		if !ok {
			t.Errorf("%s has no handler", of)
		}
		got[of] = nil
		if l, ok := h.(business.Lifecycle); ok {
			got[of] = l.Graph.States()
			for _, state := range l.Voids {
				if !l.Graph.Final(state) {
					t.Errorf("%s: %q undoes money and is not an end", of, state)
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}
