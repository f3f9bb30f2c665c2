package remote_test

import (
	"time"

	"dakghar/internal/webhook"
)

// objects are one of each that is fetched, as the senders' documentation shows
// them, with what is read from them.
func objects() map[string]struct {
	provider   webhook.Provider
	collection string
	eventType  webhook.EventType
	state      string
	want       webhook.Facts
} {
	updated := time.Date(2026, time.March, 1, 11, 59, 30, 0, time.UTC)
	return map[string]struct {
		provider   webhook.Provider
		collection string
		eventType  webhook.EventType
		state      string
		want       webhook.Facts
	}{
		"a payment of Stripe's that succeeded, though the event said created": {
			"stripe", "payment_intents", "payment_intent.created",
			`{"id":"pi_3MtwBw","object":"payment_intent","amount":2000,"amount_received":1500,"currency":"usd","status":"succeeded","last_payment_error":null}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_3MtwBw", State: "succeeded", Amount: 1500, Currency: "USD", Credit: 1},
		},
		"a payment of Stripe's that failed, though the event said succeeded": {
			"stripe", "payment_intents", "payment_intent.succeeded",
			`{"id":"pi_2","object":"payment_intent","amount":2000,"amount_received":0,"currency":"usd","status":"requires_payment_method","last_payment_error":{"code":"card_declined"}}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_2", State: "failed", Amount: 2000, Currency: "USD"},
		},
		"a payment of Stripe's that nobody has tried": {
			"stripe", "payment_intents", "payment_intent.payment_failed",
			`{"id":"pi_4","object":"payment_intent","amount":2000,"amount_received":0,"currency":"usd","status":"requires_confirmation"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_4", State: "created", Amount: 2000, Currency: "USD"},
		},
		"the payment of a charge of Stripe's": {
			"stripe", "payment_intents", "charge.refunded",
			`{"id":"pi_5","object":"payment_intent","amount":2000,"amount_received":2000,"currency":"usd","status":"succeeded"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_5", State: "succeeded", Amount: 2000, Currency: "USD", Credit: 1},
		},
		"a refund of Stripe's": {
			"stripe", "refunds", "refund.failed",
			`{"id":"re_1Nis","object":"refund","amount":1000,"charge":"ch_1","currency":"usd","payment_intent":"pi_1Gsz","status":"succeeded"}`,
			webhook.Facts{ObjectType: webhook.Refund, ObjectID: "re_1Nis", State: "succeeded", Amount: 1000, Currency: "USD", Credit: -1, ParentID: "pi_1Gsz"},
		},
		"a dispute of Stripe's": {
			"stripe", "disputes", "charge.dispute.created",
			`{"id":"du_1Mt","object":"dispute","amount":1000,"charge":"ch_1","currency":"usd","payment_intent":null,"status":"lost"}`,
			webhook.Facts{ObjectType: webhook.Dispute, ObjectID: "du_1Mt", State: "lost", Amount: 1000, Currency: "USD", Credit: -1, ParentID: "ch_1"},
		},
		"a subscription of Stripe's that goes on, though the event said deleted": {
			"stripe", "subscriptions", "customer.subscription.deleted",
			`{"id":"sub_1Mow","object":"subscription","customer":"cus_Na6","status":"active","items":{"object":"list","data":[{"id":"si_1","current_period_start":1679609767}]}}`,
			webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "sub_1Mow", State: "active", Version: 1679609767, HasVersion: true, ParentID: "cus_Na6"},
		},
		"an account of Stripe's": {
			"stripe", "accounts", "account.updated", `{"id":"acct_1Nv0","object":"account","charges_enabled":false}`,
			webhook.Facts{ObjectType: webhook.Account, ObjectID: "acct_1Nv0", State: "updated"},
		},
		"a payment of Razorpay's that was captured and refunded": {
			"razorpay", "payments", "payment.failed",
			`{"id":"pay_DG4ZdRK8ZnXC3k","entity":"payment","amount":1000,"currency":"INR","status":"refunded","order_id":"order_1","created_at":1772366390}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pay_DG4ZdRK8ZnXC3k", State: "succeeded", Amount: 1000, Currency: "INR", Credit: 1, ParentID: "order_1"},
		},
		"an order of Razorpay's": {
			"razorpay", "orders", "order.paid",
			`{"id":"order_DaaS6LOUAASb7Y","entity":"order","amount":2200,"amount_paid":0,"currency":"INR","status":"attempted","created_at":1772366390}`,
			webhook.Facts{ObjectType: webhook.Order, ObjectID: "order_DaaS6LOUAASb7Y", State: "open", Amount: 2200, Currency: "INR"},
		},
		"a refund of Razorpay's": {
			"razorpay", "refunds", "refund.created",
			`{"id":"rfnd_EqWThTE7dd7utf","entity":"refund","amount":6000,"currency":"INR","payment_id":"pay_EpkFDYRirena0f","status":"processed","created_at":1772366390}`,
			webhook.Facts{ObjectType: webhook.Refund, ObjectID: "rfnd_EqWThTE7dd7utf", State: "succeeded", Amount: 6000, Currency: "INR", Credit: -1, ParentID: "pay_EpkFDYRirena0f"},
		},
		"a subscription of Razorpay's": {
			"razorpay", "subscriptions", "subscription.activated",
			`{"id":"sub_00000000000001","entity":"subscription","customer_id":"cust_1","status":"halted","paid_count":4}`,
			webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "sub_00000000000001", State: "unpaid", Version: 4, HasVersion: true, ParentID: "cust_1"},
		},
		"a dispute of Razorpay's": {
			"razorpay", "disputes", "payment.dispute.created",
			`{"id":"disp_AHfqOvkldwsbqt","entity":"dispute","payment_id":"pay_EsyWjHrfzb59eR","amount":10000,"currency":"INR","amount_deducted":9000,"status":"lost"}`,
			webhook.Facts{ObjectType: webhook.Dispute, ObjectID: "disp_AHfqOvkldwsbqt", State: "lost", Amount: 9000, Currency: "INR", Credit: -1, ParentID: "pay_EsyWjHrfzb59eR"},
		},
		"a payment of Paddle's that was completed, though the event said that a try failed": {
			"paddle", "transactions", "transaction.payment_failed",
			`{"id":"txn_01hv8wptq8987qeep44cyrewp9","status":"completed","currency_code":"JPY","subscription_id":"sub_1","details":{"totals":{"total":"1100","grand_total":"1000","currency_code":"JPY"}},"payments":[{"status":"captured"},{"status":"error"}],"updated_at":"2026-03-01T11:59:30.000000Z"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "txn_01hv8wptq8987qeep44cyrewp9", State: "succeeded", Amount: 1000, Currency: "JPY", Credit: 1, ParentID: "sub_1", UpdatedAt: updated},
		},
		"a payment of Paddle's of which the last try failed": {
			"paddle", "transactions", "transaction.ready",
			`{"id":"txn_2","status":"ready","currency_code":"USD","subscription_id":null,"details":{"totals":{"grand_total":"1000","currency_code":"USD"}},"payments":[{"status":"error"}],"updated_at":"2026-03-01T11:59:30Z"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "txn_2", State: "failed", Amount: 1000, Currency: "USD", UpdatedAt: updated},
		},
		"a payment of Paddle's that is tried again": {
			"paddle", "transactions", "transaction.updated",
			`{"id":"txn_3","status":"ready","currency_code":"USD","subscription_id":null,"details":{"totals":{"grand_total":"1000","currency_code":"USD"}},"payments":[{"status":"action_required"},{"status":"error"}],"updated_at":"2026-03-01T11:59:30Z"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "txn_3", State: "requires_action", Amount: 1000, Currency: "USD", UpdatedAt: updated},
		},
		"a subscription of Paddle's that goes on, though the event said paused": {
			"paddle", "subscriptions", "subscription.paused",
			`{"id":"sub_01hv8x29kz0t586xy6zn1a62ny","status":"active","customer_id":"ctm_1","current_billing_period":{"starts_at":"2026-03-01T11:00:00.5Z","ends_at":"2026-04-01T11:00:00Z"},"paused_at":null,"updated_at":"2026-03-01T11:59:30Z"}`,
			webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "sub_01hv8x29kz0t586xy6zn1a62ny", State: "active", Version: 1772362800, HasVersion: true, ParentID: "ctm_1", UpdatedAt: updated},
		},
		"an order of Shopify's": {
			"shopify", "orders", "orders/create",
			`{"id":820982911946154508,"order_number":1001,"financial_status":"paid","fulfillment_status":null,"cancelled_at":null,"total_price":"42.00","currency":"USD","line_items":[],"updated_at":"2026-03-01T06:59:30-05:00"}`,
			webhook.Facts{ObjectType: webhook.Order, ObjectID: "820982911946154508", State: "paid", Amount: 4200, Currency: "USD", UpdatedAt: updated},
		},
		"a repository of GitHub's": {
			"github", "repositories", "repository.publicized",
			`{"id":1296269,"full_name":"octo/renamed","private":true,"archived":false,"updated_at":"2026-03-01T11:59:30Z"}`,
			webhook.Facts{ObjectType: webhook.Account, ObjectID: "repository:1296269", State: "repository.private", UpdatedAt: updated},
		},
	}
}
