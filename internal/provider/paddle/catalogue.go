package paddle

import (
	_ "embed"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

var (
	//go:embed samples/transaction.json
	transactionSample []byte
	//go:embed samples/subscription.json
	subscriptionSample []byte
	//go:embed samples/adjustment.json
	adjustmentSample []byte
)

const (
	id          = "data.id"
	status      = "data.status"
	transaction = "data.transaction_id"
)

func catalogue() map[webhook.EventType]provider.Kind {
	c := map[webhook.EventType]provider.Kind{}
	payments(c)
	subscriptions(c)
	refunds(c)
	disputes(c)
	credits(c)
	return c
}

// payments: grand_total is what is due after credits and before any payment. The
// words of a status are those of
// https://developer.paddle.com/api-reference/transactions/list-transactions.
func payments(c map[webhook.EventType]provider.Kind) {
	read := payment()
	read.States = provider.Crediting(statuses(), "succeeded", +1)
	now := currentPayment()
	for t, k := range map[webhook.EventType]struct {
		name webhook.Kind
		word string
	}{
		"transaction.created":   {"payment.created", "draft"},
		"transaction.ready":     {"payment.requires_action", "ready"},
		"transaction.billed":    {"payment.processing", "billed"},
		"transaction.paid":      {"payment.authorised", "paid"},
		"transaction.completed": {"payment.succeeded", "completed"},
		"transaction.canceled":  {"payment.cancelled", "canceled"},
		"transaction.past_due":  {"payment.failed", "past_due"},
	} {
		c[t] = provider.Kind{
			Name: k.name, Object: webhook.Payment, Policy: webhook.Monotonic, Read: read,
			Example: []provider.Check{provider.Is(status, k.word)}, Current: now,
		}
	}
	// A try failed; the status stays what it was.
	c["transaction.payment_failed"] = provider.Kind{
		Name: "payment.failed", Object: webhook.Payment, Policy: webhook.Monotonic, State: "failed", Read: payment(),
		Example: []provider.Check{provider.Is(status, "ready")}, Current: now,
	}
	for t, word := range map[webhook.EventType]string{"transaction.updated": "ready", "transaction.revised": "completed"} {
		c[t] = provider.Kind{
			Name: "payment.noted", Object: webhook.Payment, Policy: webhook.Monotonic, Read: payment(),
			Example: []provider.Check{provider.Is(status, word)}, Current: now,
		}
	}
}

func payment() *provider.Reading {
	return &provider.Reading{
		ID:     []string{id},
		Amount: []string{"data.details.totals.grand_total"}, Text: true,
		Currency: []string{"data.details.totals.currency_code", "data.currency_code"},
		Parent:   []string{"data.subscription_id"},
		Sample:   transactionSample,
	}
}

// statuses: what is past due failed, and may still be paid. A paid transaction
// becomes completed without anybody's doing, mostly within a second.
func statuses() []provider.StateRule {
	return provider.Statuses(status,
		"draft", "created", "ready", "requires_action", "billed", "processing", "past_due", "failed",
		"paid", "authorised", "completed", "succeeded", "canceled", "cancelled",
	)
}

func subscriptions(c map[webhook.EventType]provider.Kind) {
	read := &provider.Reading{
		ID: []string{id}, Parent: []string{"data.customer_id"},
		// A paused subscription keeps its period since December 2024; where it has none,
		// the pause itself is what came after the period
		// (https://developer.paddle.com/changelog/2024/resume-subscription-billing-period-options).
		// That a period's start never goes back is assumed.
		Round: []string{"data.current_billing_period.starts_at", "data.paused_at"},
		States: provider.Statuses(status,
			"trialing", "trialing", "active", "active", "past_due", "past_due", "paused", "paused", "canceled", "cancelled",
		),
		Sample: subscriptionSample,
	}
	now := current("/subscriptions/{id}", subscriptionID, nil)
	for t, k := range map[webhook.EventType]struct {
		name webhook.Kind
		word string
	}{
		"subscription.created":   {"subscription.created", "active"},
		"subscription.imported":  {"subscription.created", "active"},
		"subscription.trialing":  {"subscription.trialing", "trialing"},
		"subscription.activated": {"subscription.activated", "active"},
		"subscription.updated":   {"subscription.updated", "active"},
		"subscription.past_due":  {"subscription.past_due", "past_due"},
		"subscription.paused":    {"subscription.paused", "paused"},
		"subscription.resumed":   {"subscription.resumed", "active"},
		"subscription.canceled":  {"subscription.cancelled", "canceled"},
	} {
		c[t] = provider.Kind{
			Name: k.name, Object: webhook.Subscription, Policy: webhook.Monotonic, Read: read,
			Example: []provider.Check{provider.Is(status, k.word)}, Current: now,
		}
	}
	ended := c["subscription.canceled"]
	ended.Example = append(ended.Example, provider.Lacks("data.current_billing_period"))
	c["subscription.canceled"] = ended
}

// adjustment is what all adjustments share. No single one can be fetched: Paddle
// only lists them.
func adjustment(states []provider.StateRule) *provider.Reading {
	return &provider.Reading{
		ID: []string{id}, Parent: []string{transaction},
		Amount: []string{"data.totals.total"}, Text: true,
		Currency: []string{"data.totals.currency_code", "data.currency_code"},
		States:   states, Sample: adjustmentSample,
	}
}

// both adds the two events of one action. The status that their samples show is
// the one that they mostly have.
func both(c map[webhook.EventType]provider.Kind, action string, created, updated webhook.Kind, object webhook.ObjectType, word string, read *provider.Reading) {
	for t, k := range map[webhook.EventType]struct {
		name webhook.Kind
		word string
	}{
		"adjustment.created": {created, word}, "adjustment.updated": {updated, "approved"},
	} {
		c[t+"/"+webhook.EventType(action)] = provider.Kind{
			Name: k.name, Object: object, Policy: webhook.Monotonic, Read: read, Example: []provider.Check{provider.Is(status, k.word)},
		}
	}
}

// refunds: most of a live account's wait for Paddle's approval. The word reversed
// is for chargebacks and credits; a refund that had it would have been given back.
func refunds(c map[webhook.EventType]provider.Kind) {
	read := adjustment(provider.Crediting(provider.Statuses(status,
		"pending_approval", "pending", "approved", "succeeded", "rejected", "failed", "reversed", "cancelled",
	), "succeeded", -1))
	both(c, "refund", "refund.created", "refund.updated", webhook.Refund, "pending_approval", read)
}

// disputes: Paddle contests on its own, so nobody is asked for evidence and none
// is under review. What was reversed had been taken, and comes back with the
// adjustment that reverses it: it must not come back twice.
func disputes(c map[webhook.EventType]provider.Kind) {
	ended := func(approved string, credit int) *provider.Reading {
		return adjustment(provider.Crediting(provider.Statuses(status,
			"pending_approval", "needs_response", "approved", approved, "rejected", "closed", "reversed", approved,
		), approved, credit))
	}
	both(c, "chargeback", "dispute.lost", "dispute.updated", webhook.Dispute, "approved", ended("lost", -1))
	both(c, "chargeback_reverse", "dispute.won", "dispute.updated", webhook.Dispute, "approved", ended("won", +1))

	warned := adjustment(provider.Statuses(status,
		"pending_approval", "needs_response", "approved", "needs_response", "rejected", "closed", "reversed", "closed",
	))
	both(c, "chargeback_warning", "dispute.opened", "dispute.updated", webhook.Dispute, "approved", warned)
	over := adjustment([]provider.StateRule{{State: "closed"}})
	both(c, "chargeback_warning_reverse", "dispute.closed", "dispute.updated", webhook.Dispute, "approved", over)
}

// credits are notices about their payment.
func credits(c map[webhook.EventType]provider.Kind) {
	read := adjustment(nil)
	read.ID, read.Parent = []string{transaction}, []string{"data.subscription_id"}
	both(c, "credit", "payment.noted", "payment.noted", webhook.Payment, "approved", read)
	both(c, "credit_reverse", "payment.noted", "payment.noted", webhook.Payment, "approved", read)
}
