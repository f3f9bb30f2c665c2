package paddle

import (
	"regexp"
	"time"

	"dakghar/internal/provider"
)

// The ids of objects that are fetched: a prefix and 26 letters and digits, of
// which only the alphabet is held to.
var (
	transactionID  = regexp.MustCompile(`^txn_[a-z0-9]{1,64}$`)
	subscriptionID = regexp.MustCompile(`^sub_[a-z0-9]{1,64}$`)
)

// api is Paddle's API. The credential is an API key that may read transactions,
// subscriptions and notifications. A sandbox answers at another host, and only to
// its own keys.
//
//   - Address, key, version: https://developer.paddle.com/api-reference/about, and
//     /authentication, /versioning below it.
//   - Events, 90 days back, by the id of the last one:
//     https://developer.paddle.com/api-reference/events/list-events,
//     https://developer.paddle.com/api-reference/about/pagination.
//   - 429 for too many calls, with the seconds to wait; 240 calls a minute and
//     address: https://developer.paddle.com/api-reference/about/rate-limiting.
//
// The list has no parameter for a time. It is walked from the newest event to the
// asked time, which its order allows: an event's id begins with the milliseconds
// of its occurred_at (a ULID, seen in Paddle's published examples), and ids are what
// the list is sorted by. Its items are whole events, without notification_id.
func api() *provider.API {
	return &provider.API{
		Host: "{host}",
		Account: []provider.Param{{
			Name: "host", About: "sandbox-api.paddle.com for a sandbox account; left out for a live one",
			Alphabet: regexp.MustCompile(`^(sandbox-)?api\.paddle\.com$`), Default: "api.paddle.com",
		}},
		Auth:   provider.Auth{Style: provider.AuthBearer, Foreign: []string{"pdl_ntfset_", "live_", "test_"}},
		Header: []provider.Pair{{Name: "Paddle-Version", Text: "1"}},
		Histories: []provider.History{{
			Path: "/events", Query: []provider.Pair{{Name: "order_by", Text: "id[DESC]"}, {Name: "per_page", Text: "200"}},
			NewestFirst: true,
			Cursor:      provider.Cursor{Style: provider.CursorLast, Param: "after", Size: 200, More: "meta.pagination.has_more", ID: "event_id"},
			Items:       "data", At: []string{"occurred_at"},
		}},
		Reach: 90 * 24 * time.Hour,
		Sources: []string{
			"https://developer.paddle.com/api-reference/about/authentication",
			"https://developer.paddle.com/api-reference/events/list-events",
			"https://developer.paddle.com/api-reference/about/pagination",
			"https://developer.paddle.com/api-reference/about/rate-limiting",
			"https://developer.paddle.com/api-reference/transactions/get-transaction",
			"https://developer.paddle.com/api-reference/subscriptions/get-subscription",
		},
	}
}

// current is how an object is fetched: the answer has it in data, as an event
// does. updated_at is the time of its last change. None vanishes.
func current(path string, id *regexp.Regexp, read *provider.Reading) *provider.Current {
	return &provider.Current{Path: path, ID: id, Unwrap: "data", At: "data", Read: read, Updated: []string{"data.updated_at"}}
}

// currentPayment reads the state from the transaction itself. A try that failed
// leaves its status as it was; the newest try stands first.
func currentPayment() *provider.Current {
	read := payment()
	read.States = append([]provider.StateRule{{
		When: []provider.Check{provider.Is(status, "ready"), provider.Is("data.payments.0.status", "error")}, State: "failed",
	}}, provider.Crediting(statuses(), "succeeded", +1)...)
	return current("/transactions/{id}", transactionID, read)
}
