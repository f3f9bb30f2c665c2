package business

import "dakghar/internal/ordering"

// The built-in life cycles. Each is a chain down to its ends, because only what
// is ordered converges; where a provider's objects do go back, the comment says
// what is lost by that.

// payments: a payment that failed may still succeed, since the buyer tries again
// or the bank authorises late. A new try after a failure is therefore not shown
// before it comes further. Refunds are objects of their own and change nothing
// here.
func payments() ordering.Declaration {
	return ordering.Declaration{
		Initial: []string{"created"},
		Steps: map[string][]string{
			"created":         {"requires_action", "cancelled"},
			"requires_action": {"processing", "cancelled"},
			"processing":      {"failed", "cancelled"},
			"failed":          {"authorised", "cancelled"},
			"authorised":      {"succeeded", "cancelled"},
		},
	}
}

// orders: an order that is fulfilled before it is paid (cash on delivery) stays
// fulfilled; the payment that comes later is still credited.
func orders() ordering.Declaration {
	return ordering.Declaration{
		Initial: []string{"open"},
		Steps: map[string][]string{
			"open":      {"paid"},
			"paid":      {"fulfilled"},
			"fulfilled": {"cancelled"},
		},
	}
}

// subscriptions legitimately go back, from past_due to active when the buyer
// pays. They are recurring: a later billing round is ahead whatever its state,
// and the chain decides within one round. docs/adr/0010-subscription-order.md
// says what counts as a round, and what this cannot see.
func subscriptions() ordering.Declaration {
	return ordering.Declaration{
		Initial: []string{"incomplete"},
		Steps: map[string][]string{
			"incomplete": {"trialing"},
			"trialing":   {"active"},
			"active":     {"past_due"},
			"past_due":   {"unpaid"},
			"unpaid":     {"paused"},
			"paused":     {"cancelled"},
		},
		Recurring: true,
	}
}

// refunds: one that succeeded can still fail, when the bank returns the money;
// what it took from the balance is then given back.
func refunds() ordering.Declaration {
	return ordering.Declaration{
		Initial: []string{"pending"},
		Steps: map[string][]string{
			"pending":   {"succeeded"},
			"succeeded": {"failed", "cancelled"},
		},
	}
}

// disputes: further evidence may be asked for during a review; the dispute is
// shown as under review until it ends.
func disputes() ordering.Declaration {
	return ordering.Declaration{
		Initial: []string{"needs_response"},
		Steps: map[string][]string{
			"needs_response": {"under_review"},
			"under_review":   {"won", "lost", "closed"},
		},
	}
}
