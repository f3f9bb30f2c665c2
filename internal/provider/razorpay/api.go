package razorpay

import (
	"regexp"
	"slices"
	"strings"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// The ids of objects that are fetched: a prefix and 14 letters and digits, of
// which only the alphabet is held to.
var (
	paymentID      = regexp.MustCompile(`^pay_[A-Za-z0-9]{1,64}$`)
	orderID        = regexp.MustCompile(`^order_[A-Za-z0-9]{1,64}$`)
	refundID       = regexp.MustCompile(`^rfnd_[A-Za-z0-9]{1,64}$`)
	subscriptionID = regexp.MustCompile(`^sub_[A-Za-z0-9]{1,64}$`)
	disputeID      = regexp.MustCompile(`^disp_[A-Za-z0-9]{1,64}$`)
)

// api is Razorpay's API. The credential is "key_id:key_secret".
//
//   - Address and credential: https://razorpay.com/docs/api/authentication.
//   - An id that does not exist is answered with 400 and a sentence:
//     https://razorpay.com/docs/api/disputes/fetch, and the same page of the others.
//   - 429 for too many calls: https://razorpay.com/docs/api/best-practices.
//
// Razorpay lists no events, only objects, and each list goes by the time at which
// its objects were made. What an object says of itself is made into the event that
// would have said the same. So a list from a time T on does not show a payment that
// was made before T and captured after it; ask from as far back as a payment may
// stay open.
func api() *provider.API {
	return &provider.API{
		Host: "api.razorpay.com", Root: "/v1",
		Auth: provider.Auth{Style: provider.AuthBasic},
		Missing: []provider.Missing{
			{Status: 400, When: []provider.Check{provider.Is("error.description", "The id provided does not exist")}},
		},
		Histories: []provider.History{
			// https://razorpay.com/docs/api/payments/fetch-all-payments
			list("/payments", payment, []string{"id", "status"},
				"captured", "payment.captured", "refunded", "payment.captured", "authorized", "payment.authorized", "failed", "payment.failed"),
			// https://razorpay.com/docs/api/refunds/fetch-all
			list("/refunds", refund, []string{"id", "status"},
				"processed", "refund.processed", "failed", "refund.failed", "pending", "refund.created"),
			// https://razorpay.com/docs/api/orders/fetch-all
			list("/orders", order, []string{"id", "status"}, "paid", "order.paid"),
			// https://razorpay.com/docs/api/payments/subscriptions/fetch-all-subscriptions
			list("/subscriptions", subscription, []string{"id", "status", "paid_count"},
				"authenticated", "subscription.authenticated", "active", "subscription.activated", "pending", "subscription.pending",
				"halted", "subscription.halted", "paused", "subscription.paused", "cancelled", "subscription.cancelled", "completed", "subscription.completed"),
		},
		Sources: []string{
			"https://razorpay.com/docs/api/authentication",
			"https://razorpay.com/docs/api/payments/fetch-all-payments",
			"https://razorpay.com/docs/api/refunds/fetch-all",
			"https://razorpay.com/docs/api/orders/fetch-all",
			"https://razorpay.com/docs/api/payments/subscriptions/fetch-all-subscriptions",
			"https://razorpay.com/docs/api/disputes/fetch",
		},
	}
}

// list is a list of objects, up to 100 a page, from which a number is skipped. An
// object that is made meanwhile moves the others on, so that some are seen twice
// and none is missed. pairs are statuses and the events they are told by.
func list(path, entity string, key []string, pairs ...string) provider.History {
	var types []provider.TypeRule
	for pair := range slices.Chunk(pairs, 2) {
		types = append(types, provider.TypeRule{When: []provider.Check{provider.Is("status", pair[0])}, Type: webhook.EventType(pair[1])})
	}
	return provider.History{
		Path: path, Query: []provider.Pair{{Name: "count", Text: "100"}},
		Since: "from", SinceUnix: true,
		Cursor: provider.Cursor{Style: provider.CursorOffset, Param: "skip", Size: 100},
		Items:  "items", At: []string{"created_at"},
		Made: &provider.Made{
			At: strings.TrimSuffix(entity, "."), Types: types, TypeAt: "event", CreatedAt: "created_at",
			IDHeader: "x-razorpay-event-id", Key: key,
		},
	}
}

// current is how an object is fetched: the answer is the entity of an event's
// payload. No object has the time of its last change.
func current(path string, id *regexp.Regexp, entity string, read *provider.Reading) *provider.Current {
	return &provider.Current{Path: path, ID: id, At: strings.TrimSuffix(entity, "."), Read: read}
}

// currentPayment: https://razorpay.com/docs/api/payments/fetch-with-id, and for
// the words https://razorpay.com/docs/payments/payments/payment-life-cycle. What
// was refunded had been captured.
func currentPayment() *provider.Current {
	read := reading(payment, []string{payment + "order_id"}, nil)
	read.States = provider.Crediting(provider.Statuses(payment+"status",
		"created", "created", "pending", "processing", "authorized", "authorised", "captured", "succeeded", "refunded", "succeeded", "failed", "failed",
	), "succeeded", +1)
	return current("/payments/{id}", paymentID, payment, read)
}

// currentOrder: https://razorpay.com/docs/api/orders/fetch-with-id.
func currentOrder() *provider.Current {
	read := reading(order, nil, nil)
	read.States = provider.Statuses(order+"status", "created", "open", "attempted", "open", "paid", "paid")
	return current("/orders/{id}", orderID, order, read)
}

// currentDispute: https://razorpay.com/docs/api/disputes/fetch. What is disputed
// is not always what is lost.
func currentDispute() *provider.Current {
	read := reading(dispute, []string{dispute + "payment_id"}, nil)
	read.States = append(provider.Statuses(dispute+"status",
		"open", "needs_response", "under_review", "under_review", "won", "won", "closed", "closed",
	), provider.StateRule{
		When: []provider.Check{provider.Is(dispute+"status", "lost")}, State: "lost", Credit: -1,
		Amount: []string{dispute + "amount_deducted", dispute + "amount"},
	})
	return current("/disputes/{id}", disputeID, dispute, read)
}
