package razorpay

import (
	_ "embed"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

var (
	//go:embed samples/payment.json
	paymentSample []byte
	//go:embed samples/order.json
	orderSample []byte
	//go:embed samples/refund.json
	refundSample []byte
	//go:embed samples/subscription.json
	subscriptionSample []byte
	//go:embed samples/dispute.json
	disputeSample []byte
	//go:embed samples/account.json
	accountSample []byte
)

const (
	payment      = "payload.payment.entity."
	order        = "payload.order.entity."
	refund       = "payload.refund.entity."
	subscription = "payload.subscription.entity."
	dispute      = "payload.dispute.entity."
)

func catalogue() map[webhook.EventType]provider.Kind {
	c := map[webhook.EventType]provider.Kind{}
	payments(c)
	refunds(c)
	subscriptions(c)
	disputes(c)
	accounts(c)
	return c
}

// reading is what all entities with money share: amounts are in the currency's
// subunit.
func reading(entity string, parent []string, sample []byte) *provider.Reading {
	return &provider.Reading{
		ID: []string{entity + "id"}, Parent: parent,
		Amount: []string{entity + "amount"}, Currency: []string{entity + "currency"}, Sample: sample,
	}
}

func payments(c map[webhook.EventType]provider.Kind) {
	read := reading(payment, []string{payment + "order_id"}, paymentSample)
	add := func(t webhook.EventType, name webhook.Kind, state, word string, credit int) {
		c[t] = provider.Kind{
			Name: name, Object: webhook.Payment, Policy: webhook.Monotonic, State: state, Credit: credit, Read: read,
			Example: []provider.Check{provider.Is(payment+"status", word)}, Current: currentPayment(),
		}
	}
	add("payment.authorized", "payment.authorised", "authorised", "authorized", 0)
	add("payment.captured", "payment.succeeded", "succeeded", "captured", +1)
	add("payment.failed", "payment.failed", "failed", "failed", 0)
	// Cash on delivery: ordered, not yet collected.
	add("payment.pending", "payment.processing", "processing", "pending", 0)

	c["order.paid"] = provider.Kind{
		Name: "order.paid", Object: webhook.Order, Policy: webhook.Monotonic, State: "paid",
		Read: reading(order, nil, orderSample), Current: currentOrder(),
	}
}

func refunds(c map[webhook.EventType]provider.Kind) {
	read := reading(refund, []string{refund + "payment_id"}, refundSample)
	// A refund can be processed by the time its creation is told.
	read.States = provider.Crediting(provider.Statuses(refund+"status",
		"pending", "pending", "processed", "succeeded", "failed", "failed",
	), "succeeded", -1)
	for t, k := range map[webhook.EventType]struct {
		name webhook.Kind
		word string
	}{
		"refund.created":       {"refund.created", "pending"},
		"refund.processed":     {"refund.succeeded", "processed"},
		"refund.failed":        {"refund.failed", "failed"},
		"refund.speed_changed": {"refund.updated", "processed"},
	} {
		c[t] = provider.Kind{
			Name: k.name, Object: webhook.Refund, Policy: webhook.Monotonic, Read: read,
			Example: []provider.Check{provider.Is(refund+"status", k.word)}, Current: current("/refunds/{id}", refundID, refund, nil),
		}
	}
}

func subscriptions(c map[webhook.EventType]provider.Kind) {
	read := &provider.Reading{
		ID: []string{subscription + "id"}, Parent: []string{subscription + "customer_id"},
		Round: []string{subscription + "paid_count"},
		// Halted means that all retries of a charge failed; pending that some did.
		// What completed or expired has come to its end like what was cancelled.
		States: provider.Statuses(subscription+"status",
			"created", "incomplete", "authenticated", "incomplete", "active", "active", "pending", "past_due",
			"halted", "unpaid", "paused", "paused", "cancelled", "cancelled", "completed", "cancelled", "expired", "cancelled",
		),
		Sample: subscriptionSample,
	}
	for t, k := range map[webhook.EventType]struct {
		name webhook.Kind
		word string
	}{
		"subscription.authenticated": {"subscription.created", "authenticated"},
		"subscription.activated":     {"subscription.activated", "active"},
		"subscription.charged":       {"subscription.charged", "active"},
		"subscription.updated":       {"subscription.updated", "active"},
		"subscription.pending":       {"subscription.past_due", "pending"},
		"subscription.halted":        {"subscription.unpaid", "halted"},
		"subscription.paused":        {"subscription.paused", "paused"},
		"subscription.resumed":       {"subscription.resumed", "active"},
		"subscription.cancelled":     {"subscription.cancelled", "cancelled"},
		"subscription.completed":     {"subscription.completed", "completed"},
	} {
		c[t] = provider.Kind{
			Name: k.name, Object: webhook.Subscription, Policy: webhook.Monotonic, Read: read,
			Example: []provider.Check{provider.Is(subscription+"status", k.word)}, Current: current("/subscriptions/{id}", subscriptionID, subscription, nil),
		}
	}
	authenticated := c["subscription.authenticated"]
	authenticated.Example = append(authenticated.Example, provider.Is(subscription+"paid_count", "0"))
	c["subscription.authenticated"] = authenticated
}

func disputes(c map[webhook.EventType]provider.Kind) {
	read := reading(dispute, []string{dispute + "payment_id"}, disputeSample)
	for t, k := range map[webhook.EventType]struct {
		name        webhook.Kind
		state, word string
		credit      int
	}{
		"payment.dispute.created":         {"dispute.opened", "needs_response", "open", 0},
		"payment.dispute.action_required": {"dispute.updated", "needs_response", "open", 0},
		"payment.dispute.under_review":    {"dispute.updated", "under_review", "under_review", 0},
		"payment.dispute.won":             {"dispute.won", "won", "won", 0},
		"payment.dispute.lost":            {"dispute.lost", "lost", "lost", -1},
		"payment.dispute.closed":          {"dispute.closed", "closed", "closed", 0},
	} {
		c[t] = provider.Kind{
			Name: k.name, Object: webhook.Dispute, Policy: webhook.Monotonic, State: k.state, Credit: k.credit, Read: read,
			Example: []provider.Check{provider.Is(dispute+"status", k.word)}, Current: currentDispute(),
		}
	}
	// What is disputed is not always what is lost.
	taken := reading(dispute, []string{dispute + "payment_id"}, disputeSample)
	taken.Amount = []string{dispute + "amount_deducted", dispute + "amount"}
	lost := c["payment.dispute.lost"]
	lost.Read = taken
	lost.Example = append(lost.Example, provider.Is(dispute+"amount_deducted", "4200"))
	c["payment.dispute.lost"] = lost
}

func accounts(c map[webhook.EventType]provider.Kind) {
	// The entity's own id lacks the prefix that every other place has.
	read := &provider.Reading{ID: []string{"account_id"}, Sample: accountSample}
	for _, word := range []string{
		"activated", "activated_kyc_pending", "instantly_activated", "under_review", "needs_clarification", "rejected", "suspended", "updated",
	} {
		c[webhook.EventType("account."+word)] = provider.Kind{
			Name: webhook.Kind("account." + word), Object: webhook.Account, Policy: webhook.Monotonic, State: word, Read: read,
		}
	}
}
