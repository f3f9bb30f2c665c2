package stripe

import (
	_ "embed"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

var (
	//go:embed samples/payment_intent.json
	paymentIntentSample []byte
	//go:embed samples/charge.json
	chargeSample []byte
	//go:embed samples/refund.json
	refundSample []byte
	//go:embed samples/dispute.json
	disputeSample []byte
	//go:embed samples/subscription.json
	subscriptionSample []byte
	//go:embed samples/invoice.json
	invoiceSample []byte
	//go:embed samples/account.json
	accountSample []byte
)

const (
	id       = "data.object.id"
	status   = "data.object.status"
	amount   = "data.object.amount"
	received = "data.object.amount_received"
	intent   = "data.object.payment_intent"
)

// currency is shared by all objects; amounts are in the smallest unit that
// Stripe knows of it.
func currency() []string { return []string{"data.object.currency"} }

func catalogue() map[webhook.EventType]provider.Kind {
	c := map[webhook.EventType]provider.Kind{}
	payments(c)
	charges(c)
	refunds(c)
	disputes(c)
	subscriptions(c)
	invoices(c)
	accounts(c)
	return c
}

func payments(c map[webhook.EventType]provider.Kind) {
	// What has succeeded was received; until then it is only asked for.
	now := currentPayment()
	asked := &provider.Reading{ID: []string{id}, Amount: []string{amount}, Currency: currency(), Sample: paymentIntentSample}
	settled := &provider.Reading{ID: []string{id}, Amount: []string{received, amount}, Currency: currency(), Sample: paymentIntentSample}
	add := func(t webhook.EventType, name webhook.Kind, state, word string, read *provider.Reading, credit int) {
		c[t] = provider.Kind{
			Name: name, Object: webhook.Payment, Policy: webhook.Monotonic, State: state, Credit: credit, Read: read,
			Example: []provider.Check{provider.Is(status, word)}, Current: now,
		}
	}
	add("payment_intent.created", "payment.created", "created", "requires_payment_method", asked, 0)
	add("payment_intent.requires_action", "payment.requires_action", "requires_action", "requires_action", asked, 0)
	add("payment_intent.processing", "payment.processing", "processing", "processing", asked, 0)
	add("payment_intent.payment_failed", "payment.failed", "failed", "requires_payment_method", asked, 0)
	add("payment_intent.amount_capturable_updated", "payment.authorised", "authorised", "requires_capture", asked, 0)
	add("payment_intent.succeeded", "payment.succeeded", "succeeded", "succeeded", settled, +1)
	add("payment_intent.canceled", "payment.cancelled", "cancelled", "canceled", asked, 0)
	add("payment_intent.partially_funded", "payment.noted", "", "requires_action", asked, 0)

	succeeded := c["payment_intent.succeeded"]
	succeeded.Example = append(succeeded.Example, provider.Is(received, "4200"))
	c["payment_intent.succeeded"] = succeeded
}

// charges are notices about their payment: see the package documentation.
func charges(c map[webhook.EventType]provider.Kind) {
	read := &provider.Reading{ID: []string{intent, id}, Amount: []string{amount}, Currency: currency(), Sample: chargeSample}
	for t, word := range map[webhook.EventType]string{
		"charge.succeeded": "succeeded", "charge.captured": "succeeded", "charge.updated": "succeeded", "charge.refunded": "succeeded",
		"charge.pending": "pending", "charge.failed": "failed", "charge.expired": "failed",
	} {
		c[t] = provider.Kind{
			Name: "payment.noted", Object: webhook.Payment, Policy: webhook.Monotonic, Read: read,
			Example: []provider.Check{provider.Is(status, word)}, Current: currentPayment(),
		}
	}
	refunded := c["charge.refunded"]
	refunded.Example = append(refunded.Example, provider.Is("data.object.refunded", "true"))
	c["charge.refunded"] = refunded
}

func refunds(c map[webhook.EventType]provider.Kind) {
	read := &provider.Reading{
		ID: []string{id}, Parent: []string{intent, "data.object.charge"}, Amount: []string{amount}, Currency: currency(),
		States: provider.Crediting(provider.Statuses(status,
			"pending", "pending", "requires_action", "pending", "succeeded", "succeeded", "failed", "failed", "canceled", "cancelled",
		), "succeeded", -1),
		Sample: refundSample,
	}
	add := func(t webhook.EventType, name webhook.Kind, state, word string) {
		c[t] = provider.Kind{
			Name: name, Object: webhook.Refund, Policy: webhook.Monotonic, State: state, Read: read,
			Example: []provider.Check{provider.Is(status, word)}, Current: current("/refunds/{id}", refundID, nil),
		}
	}
	add("refund.created", "refund.created", "", "pending")
	add("refund.updated", "refund.updated", "", "succeeded")
	add("refund.failed", "refund.failed", "failed", "failed")
	// The older name of refund.updated.
	add("charge.refund.updated", "refund.updated", "", "succeeded")
}

func disputes(c map[webhook.EventType]provider.Kind) {
	read := &provider.Reading{
		ID: []string{id}, Parent: []string{intent, "data.object.charge"}, Amount: []string{amount}, Currency: currency(),
		// An inquiry (warning_*) is answered and reviewed like a dispute, and ends
		// without a winner; a prevented dispute ends before it begins.
		States: provider.Crediting(provider.Statuses(status,
			"needs_response", "needs_response", "warning_needs_response", "needs_response",
			"under_review", "under_review", "warning_under_review", "under_review",
			"won", "won", "lost", "lost", "warning_closed", "closed", "prevented", "closed",
		), "lost", -1),
		Sample: disputeSample,
	}
	for t, k := range map[webhook.EventType]struct {
		name webhook.Kind
		word string
	}{
		"charge.dispute.created":          {"dispute.opened", "needs_response"},
		"charge.dispute.updated":          {"dispute.updated", "under_review"},
		"charge.dispute.closed":           {"dispute.closed", "lost"},
		"charge.dispute.funds_withdrawn":  {"dispute.funds_withdrawn", "needs_response"},
		"charge.dispute.funds_reinstated": {"dispute.funds_reinstated", "won"},
	} {
		c[t] = provider.Kind{
			Name: k.name, Object: webhook.Dispute, Policy: webhook.Monotonic, Read: read,
			Example: []provider.Check{provider.Is(status, k.word)}, Current: current("/disputes/{id}", disputeID, nil),
		}
	}
}

func subscriptions(c map[webhook.EventType]provider.Kind) {
	read := &provider.Reading{
		ID: []string{id}, Parent: []string{"data.object.customer"},
		// The period moved to the items with API version 2025-03-31.
		Round: []string{"data.object.items.data.0.current_period_start", "data.object.current_period_start"},
		States: provider.Statuses(status,
			"incomplete", "incomplete", "incomplete_expired", "cancelled", "trialing", "trialing", "active", "active",
			"past_due", "past_due", "unpaid", "unpaid", "paused", "paused", "canceled", "cancelled",
		),
		Sample: subscriptionSample,
	}
	for t, k := range map[webhook.EventType]struct {
		name        webhook.Kind
		state, word string
	}{
		"customer.subscription.created":        {"subscription.created", "", "incomplete"},
		"customer.subscription.updated":        {"subscription.updated", "", "active"},
		"customer.subscription.deleted":        {"subscription.cancelled", "cancelled", "canceled"},
		"customer.subscription.paused":         {"subscription.paused", "", "paused"},
		"customer.subscription.resumed":        {"subscription.resumed", "", "active"},
		"customer.subscription.trial_will_end": {"subscription.trial_ending", "", "trialing"},
	} {
		c[t] = provider.Kind{
			Name: k.name, Object: webhook.Subscription, Policy: webhook.Monotonic, State: k.state, Read: read,
			Example: []provider.Check{provider.Is(status, k.word)}, Current: current("/subscriptions/{id}", subscriptionID, nil),
		}
	}
}

// invoices are notices: the money is the payment's, the state the subscription's.
func invoices(c map[webhook.EventType]provider.Kind) {
	read := &provider.Reading{
		// The subscription moved into parent with API version 2025-03-31.
		ID:     []string{"data.object.parent.subscription_details.subscription", "data.object.subscription", id},
		Parent: []string{"data.object.customer"},
		Amount: []string{"data.object.amount_due"}, Currency: currency(),
		Sample: invoiceSample,
	}
	for t, k := range map[webhook.EventType]struct {
		name webhook.Kind
		word string
	}{
		"invoice.paid":                    {"subscription.invoice_paid", "paid"},
		"invoice.payment_succeeded":       {"subscription.invoice_paid", "paid"},
		"invoice.payment_failed":          {"subscription.invoice_failed", "open"},
		"invoice.payment_action_required": {"subscription.invoice_action_required", "open"},
		"invoice.marked_uncollectible":    {"subscription.invoice_uncollectible", "uncollectible"},
		"invoice.voided":                  {"subscription.invoice_voided", "void"},
	} {
		c[t] = provider.Kind{
			Name: k.name, Object: webhook.Subscription, Policy: webhook.Monotonic, Read: read,
			Example: []provider.Check{provider.Is(status, k.word)},
		}
	}
}

func accounts(c map[webhook.EventType]provider.Kind) {
	// account is the connected account that an event is about; it is absent for
	// the platform's own.
	own := &provider.Reading{ID: []string{id}, Sample: accountSample}
	connected := &provider.Reading{ID: []string{"account", id}, Sample: accountSample}
	add := func(t webhook.EventType, name webhook.Kind, state string, read *provider.Reading) {
		c[t] = provider.Kind{Name: name, Object: webhook.Account, Policy: webhook.Monotonic, State: state, Read: read}
	}
	add("account.updated", "account.updated", "updated", own)
	add("account.application.authorized", "account.authorised", "authorised", connected)
	add("account.application.deauthorized", "account.deauthorised", "deauthorised", connected)
	add("account.external_account.created", "account.bank_changed", "bank_added", connected)
	add("account.external_account.updated", "account.bank_changed", "bank_updated", connected)
	add("account.external_account.deleted", "account.bank_changed", "bank_removed", connected)
	add("capability.updated", "account.capability_changed", "capability_updated", connected)

	updated := c["account.updated"]
	updated.Current = current("/accounts/{id}", accountID, nil)
	c["account.updated"] = updated
}
