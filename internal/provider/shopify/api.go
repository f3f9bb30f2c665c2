package shopify

import (
	"regexp"
	"time"

	"dakghar/internal/provider"
)

// api is a shop's Admin API, in REST: it is called legacy, answers as before, and
// its orders look like those of the webhooks, which GraphQL's do not. The
// credential is the app's access token for the shop.
//
//   - Address, token and versions: https://shopify.dev/docs/api/admin-rest,
//     https://shopify.dev/docs/api/usage/versioning. A version that is no longer
//     supported is answered in the oldest one that is.
//   - Orders by the time of their last change, up to 250 a page:
//     https://shopify.dev/docs/api/admin-rest/latest/resources/order.
//   - The next page, by page_info, beside which only limit may stand:
//     https://shopify.dev/docs/api/usage/pagination-rest.
//   - 429 with Retry-After: https://shopify.dev/docs/api/usage/rate-limits.
//
// Shopify lists no events. An order is made into the event orders/updated, which
// says what the order has become; payments and refunds of an outage are not found
// this way. Without the scope read_all_orders, orders of the last 60 days are shown.
func api() *provider.API {
	return &provider.API{
		Host: "{shop}", Root: "/admin/api/{version}",
		Account: []provider.Param{
			{Name: "shop", About: "the shop's own name: example.myshopify.com", Alphabet: regexp.MustCompile(`^[a-z0-9][a-z0-9-]*\.myshopify\.com$`)},
			{Name: "version", About: "the version of the API: 2026-07", Alphabet: regexp.MustCompile(`^20[0-9]{2}-(01|04|07|10)$`), Default: "2026-07"},
		},
		Auth: provider.Auth{Style: provider.AuthHeader, Header: "X-Shopify-Access-Token", Foreign: []string{"shpss_"}},
		Histories: []provider.History{{
			Path: "/orders.json", Query: []provider.Pair{{Name: "status", Text: "any"}, {Name: "limit", Text: "250"}},
			Since: "updated_at_min",
			Cursor: provider.Cursor{
				Style: provider.CursorLink, Param: "page_info", Size: 250, Alone: []provider.Pair{{Name: "limit", Text: "250"}},
			},
			Items: "orders", At: []string{"updated_at"},
			Made: &provider.Made{
				Types:      []provider.TypeRule{{Type: "orders/updated"}},
				TypeHeader: "x-shopify-topic", IDHeader: "x-shopify-webhook-id",
				Header: []provider.Pair{{Name: "x-shopify-shop-domain", Text: "{shop}"}},
				Key:    []string{"id", "updated_at"},
			},
		}},
		Reach: 60 * 24 * time.Hour,
		Sources: []string{
			"https://shopify.dev/docs/api/admin-rest",
			"https://shopify.dev/docs/api/admin-rest/latest/resources/order",
			"https://shopify.dev/docs/api/usage/pagination-rest",
			"https://shopify.dev/docs/api/usage/rate-limits",
			"https://shopify.dev/docs/api/usage/versioning",
		},
	}
}

// currentOrder: GET orders/{id}.json answers {"order": …}, the body of the
// webhooks. updated_at has a resolution of one second.
// https://shopify.dev/docs/api/admin-rest/latest/resources/order#get-orders-order-id
func currentOrder() *provider.Current {
	return &provider.Current{
		Path: "/orders/{id}.json", ID: regexp.MustCompile(`^[0-9]{1,20}$`), Unwrap: "order",
		Updated: []string{"updated_at"}, Gone: "cancelled",
	}
}
