package business_test

import (
	"fmt"

	"dakghar/internal/webhook"
)

// life is one object's events in the order in which they happened.
type life struct {
	name   string
	events []webhook.Event
	// state and balance are where every order of arrival must end.
	state   string
	version any // int64, or nil where there is none
	balance int64
}

// happening builds events of one object.
type happening struct {
	object   webhook.ObjectType
	provider webhook.Provider
	policy   webhook.Policy
	count    int
}

func (h *happening) says(state string, more ...func(*webhook.Facts)) webhook.Event {
	h.count++
	ev := webhook.Event{
		InboxID: webhook.InboxID(fmt.Sprintf("in_%s_%d", h.object, h.count)), Tenant: "shop", Provider: h.provider, Endpoint: "main",
		EventID: webhook.EventID(fmt.Sprintf("evt_%d", h.count)), Type: webhook.EventType("t." + state),
		Kind: webhook.Kind(string(h.object) + "." + state), Policy: h.policy,
		Facts: webhook.Facts{ObjectType: h.object, ObjectID: "o_1", State: state},
	}
	for _, change := range more {
		change(&ev.Facts)
	}
	return ev
}

func at(version int64) func(*webhook.Facts) {
	return func(f *webhook.Facts) { f.Version, f.HasVersion = version, true }
}

func moves(credit int, amount int64) func(*webhook.Facts) {
	return func(f *webhook.Facts) { f.Credit, f.Amount, f.Currency = credit, amount, "INR" }
}

func follows(t webhook.ObjectType) *happening {
	return &happening{object: t, provider: "razorpay", policy: webhook.Monotonic}
}

// lives returns the life cycles that the built-in handlers know.
func lives() []life {
	return []life{
		paymentThatFailsFirst(), paymentCancelled(), orderPaidFirst(), orderPaidOnDelivery(), orderCancelled(),
		subscriptionWithRounds(), subscriptionWithoutRounds(), refundThatFailsLate(), refund(), dispute(),
		account(), object(),
	}
}

func paymentThatFailsFirst() life {
	p := follows(webhook.Payment)
	return life{name: "a payment that fails before it succeeds", state: "succeeded", balance: 500, events: []webhook.Event{
		p.says("created"), p.says("requires_action"), p.says("processing"), p.says("failed"),
		p.says("authorised", moves(0, 500)), p.says("succeeded", moves(+1, 500)),
	}}
}

func paymentCancelled() life {
	p := follows(webhook.Payment)
	return life{name: "a payment that is authorised and cancelled", state: "cancelled", events: []webhook.Event{
		p.says("created"), p.says("authorised", moves(0, 500)), p.says("cancelled"),
	}}
}

func orderPaidFirst() life {
	o := follows(webhook.Order)
	return life{name: "an order that is paid and fulfilled", state: "fulfilled", balance: 900, events: []webhook.Event{
		o.says("open"), o.says("paid", moves(+1, 900)), o.says("fulfilled"),
	}}
}

func orderPaidOnDelivery() life {
	o := follows(webhook.Order)
	return life{name: "an order that is paid on delivery", state: "fulfilled", balance: 900, events: []webhook.Event{
		o.says("open"), o.says("fulfilled"), o.says("paid", moves(+1, 900)),
	}}
}

func orderCancelled() life {
	o := follows(webhook.Order)
	return life{name: "an order that is paid and cancelled", state: "cancelled", balance: 900, events: []webhook.Event{
		o.says("open"), o.says("paid", moves(+1, 900)), o.says("cancelled"),
	}}
}

// subscriptionWithRounds falls behind and recovers, twice, with the count of
// paid cycles as its round.
func subscriptionWithRounds() life {
	s := follows(webhook.Subscription)
	return life{name: "a subscription that recovers", state: "active", version: int64(3), balance: 300, events: []webhook.Event{
		s.says("incomplete", at(0)), s.says("active", at(1)), s.says("active", at(1), moves(+1, 100)),
		s.says("past_due", at(1)), s.says("active", at(2), moves(+1, 100)),
		s.says("unpaid", at(2)), s.says("active", at(3), moves(+1, 100)),
	}}
}

func subscriptionWithoutRounds() life {
	s := follows(webhook.Subscription)
	return life{name: "a subscription that ends", state: "cancelled", events: []webhook.Event{
		s.says("incomplete"), s.says("trialing"), s.says("active"), s.says("past_due"), s.says("cancelled"),
	}}
}

func refundThatFailsLate() life {
	r := follows(webhook.Refund)
	return life{name: "a refund that fails after it succeeded", state: "failed", balance: 0, events: []webhook.Event{
		r.says("pending"), r.says("succeeded", moves(-1, 200)), r.says("failed"),
	}}
}

func refund() life {
	r := follows(webhook.Refund)
	return life{name: "a refund", state: "succeeded", balance: -200, events: []webhook.Event{
		r.says("pending"), r.says("succeeded", moves(-1, 200)),
	}}
}

// dispute takes the money when it opens and gives it back when it is won.
func dispute() life {
	d := follows(webhook.Dispute)
	return life{name: "a dispute that is won", state: "won", balance: 0, events: []webhook.Event{
		d.says("needs_response", moves(-1, 700)), d.says("under_review"), d.says("won", moves(+1, 700)),
	}}
}

func account() life {
	a := &happening{object: webhook.Account, provider: "github"}
	return life{name: "account notices", events: []webhook.Event{
		a.says("suspended"), a.says("renamed"), a.says("suspended"), a.says(""),
	}}
}

func object() life {
	o := &happening{object: webhook.Object, provider: "standard-webhooks", policy: webhook.ByVersion}
	return life{name: "a versioned object", state: "c", version: int64(3), events: []webhook.Event{
		o.says("a", at(1)), o.says("b", at(2)), o.says("c", at(3)),
	}}
}
