package stripe

import (
	"regexp"
	"time"

	"dakghar/internal/provider"
)

// The ids of objects that are fetched. Stripe promises a prefix and no length.
var (
	paymentID      = regexp.MustCompile(`^pi_[A-Za-z0-9_]{1,250}$`)
	refundID       = regexp.MustCompile(`^(re|pyr)_[A-Za-z0-9_]{1,250}$`)
	disputeID      = regexp.MustCompile(`^(dp|du)_[A-Za-z0-9_]{1,250}$`)
	subscriptionID = regexp.MustCompile(`^sub_[A-Za-z0-9_]{1,250}$`)
	accountID      = regexp.MustCompile(`^acct_[A-Za-z0-9]{1,250}$`)
)

// api is Stripe's API. The credential is a secret or restricted key, read access
// to the objects that are fetched and to events is enough.
//
//   - Address, key and the header for a connected account:
//     https://docs.stripe.com/api/authentication, https://docs.stripe.com/api/connected-accounts.
//   - Events, 30 days back, newest first, by the id of the last one:
//     https://docs.stripe.com/api/events/list, https://docs.stripe.com/api/pagination.
//   - 429 for too many calls: https://docs.stripe.com/rate-limits.
//
// An endpoint that receives the events of several connected accounts cannot be
// asked about all of them: the account is a setting of the endpoint and is not
// taken from an event.
func api() *provider.API {
	return &provider.API{
		Host: "api.stripe.com", Root: "/v1",
		Account: []provider.Param{{
			Name: "account", About: "the connected account whose objects these are: acct_…",
			Alphabet: accountID, Header: "Stripe-Account",
		}},
		Auth: provider.Auth{Style: provider.AuthBearer, Foreign: []string{"whsec_", "pk_"}},
		Histories: []provider.History{{
			Path: "/events", Query: []provider.Pair{{Name: "limit", Text: "100"}},
			Since: "created[gte]", SinceUnix: true, NewestFirst: true,
			Cursor: provider.Cursor{Style: provider.CursorLast, Param: "starting_after", Size: 100, More: "has_more"},
			Items:  "data", At: []string{"created"},
		}},
		Reach: 30 * 24 * time.Hour,
		Sources: []string{
			"https://docs.stripe.com/api/authentication",
			"https://docs.stripe.com/api/events/list",
			"https://docs.stripe.com/api/pagination",
			"https://docs.stripe.com/rate-limits",
		},
	}
}

// current is how an object is fetched: GET /v1/<objects>/<id> answers with the
// object that an event has in data.object. No object of Stripe's has the time of
// its last change, and none vanishes: one that is not found was asked for under
// another account or in the other mode, so its state is not that it is gone.
//
// https://docs.stripe.com/api/payment_intents/retrieve, and the same page of
// refunds, disputes, subscriptions and accounts.
func current(path string, id *regexp.Regexp, read *provider.Reading) *provider.Current {
	return &provider.Current{Path: path, ID: id, At: "data.object", Read: read}
}

// currentPayment reads the state from the intent itself; its event's type may be
// older. The words are those of
// https://docs.stripe.com/payments/paymentintents/lifecycle.
func currentPayment() *provider.Current {
	states := append([]provider.StateRule{{
		// A try that failed leaves the intent as it was before, beside what went wrong.
		When: []provider.Check{provider.Is(status, "requires_payment_method"), provider.Has("data.object.last_payment_error")}, State: "failed",
	}}, provider.Statuses(status,
		"requires_payment_method", "created", "requires_confirmation", "created", "requires_action", "requires_action",
		"processing", "processing", "requires_capture", "authorised", "canceled", "cancelled",
	)...)
	states = append(states, provider.StateRule{
		When: []provider.Check{provider.Is(status, "succeeded")}, State: "succeeded", Credit: +1, Amount: []string{received, amount},
	})
	return current("/payment_intents/{id}", paymentID, &provider.Reading{
		ID: []string{id}, Amount: []string{amount}, Currency: currency(), States: states,
	})
}
