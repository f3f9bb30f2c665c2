package shopify

import (
	_ "embed"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

var (
	//go:embed samples/order.json
	orderSample []byte
	//go:embed samples/transaction.json
	transactionSample []byte
	//go:embed samples/refund.json
	refundSample []byte
)

func catalogue() map[webhook.EventType]provider.Kind {
	c := map[webhook.EventType]provider.Kind{}
	orders(c)
	c["order_transactions/create"] = transactions()
	c["refunds/create"] = refunds()
	return c
}

// orders all have the same body, which alone decides the state: an order can be
// paid when it is created, and the topic is not signed.
func orders(c map[webhook.EventType]provider.Kind) {
	read := &provider.Reading{
		ID:     []string{"id"},
		Amount: []string{"total_price"}, Decimal: true, Currency: []string{"currency"},
		States: []provider.StateRule{
			{When: []provider.Check{provider.Has("cancelled_at")}, State: "cancelled"},
			{When: []provider.Check{provider.Is("fulfillment_status", "fulfilled")}, State: "fulfilled"},
			// What was given back had been paid.
			{When: []provider.Check{provider.Is("financial_status", "paid", "partially_refunded", "refunded")}, State: "paid"},
			{State: "open"},
		},
		Sample: orderSample,
	}
	shape := []provider.Check{provider.Has("order_number"), provider.Has("line_items"), provider.Lacks("kind"), provider.Lacks("order_id")}
	paid := provider.Is("financial_status", "paid")
	for t, k := range map[webhook.EventType]struct {
		name    webhook.Kind
		example []provider.Check
	}{
		"orders/create":              {"order.opened", nil},
		"orders/updated":             {"order.updated", nil},
		"orders/paid":                {"order.paid", []provider.Check{paid}},
		"orders/partially_fulfilled": {"order.updated", []provider.Check{paid, provider.Is("fulfillment_status", "partial")}},
		"orders/fulfilled":           {"order.fulfilled", []provider.Check{paid, provider.Is("fulfillment_status", "fulfilled")}},
		"orders/cancelled":           {"order.cancelled", []provider.Check{provider.Has("cancelled_at")}},
	} {
		c[t] = provider.Kind{
			Name: k.name, Object: webhook.Order, Policy: webhook.Monotonic, Shape: shape, Read: read, Example: k.example,
			Current: currentOrder(),
		}
	}
}

func transactions() provider.Kind {
	const kind, status = "kind", "status"
	takes := provider.Is(kind, "sale", "capture")
	pays := provider.Is(kind, "sale", "capture", "authorization")
	return provider.Kind{
		Name: "payment.transaction", Object: webhook.Payment, Policy: webhook.Monotonic,
		Shape: []provider.Check{provider.Has("order_id"), provider.Has(kind), provider.Has(status), provider.Has("gateway"), provider.Lacks("order_number")},
		Read: &provider.Reading{
			ID: []string{"id"}, Parent: []string{"order_id"},
			Amount: []string{"amount"}, Decimal: true, Currency: []string{"currency"},
			States: []provider.StateRule{
				{When: []provider.Check{takes, provider.Is(status, "success")}, State: "succeeded", Credit: +1},
				{When: []provider.Check{provider.Is(kind, "authorization"), provider.Is(status, "success")}, State: "authorised"},
				{When: []provider.Check{pays, provider.Is(status, "pending")}, State: "processing"},
				{When: []provider.Check{pays, provider.Is(status, "awaiting_response")}, State: "requires_action"},
				{When: []provider.Check{pays, provider.Is(status, "failure", "error")}, State: "failed"},
				// The refund's own event carries its money; a void undoes another
				// transaction, and change is handed out in cash.
				{When: []provider.Check{provider.Is(kind, "refund", "void", "change")}},
			},
			Sample: transactionSample,
		},
	}
}

func refunds() provider.Kind {
	return provider.Kind{
		Name: "refund.succeeded", Object: webhook.Refund, Policy: webhook.Monotonic, State: "succeeded", Credit: -1,
		Shape: []provider.Check{provider.Has("order_id"), provider.Has("transactions"), provider.Has("refund_line_items"), provider.Lacks("kind")},
		Read: &provider.Reading{
			ID: []string{"id"}, Parent: []string{"order_id"},
			Sum: &provider.Sum{
				Array: "transactions", Amount: "amount", Currency: "currency",
				Where: []provider.Check{provider.Is("kind", "refund"), provider.Is("status", "success")},
			},
			Sample: refundSample,
		},
	}
}
