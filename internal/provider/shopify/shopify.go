// Package shopify receives Shopify's order webhooks.
//
// # Signature
//
// X-Shopify-Hmac-Sha256 is the base64 HMAC-SHA256 of the raw body under the
// app's client secret, taken as text. The same secret signs OAuth requests in
// hexadecimal, which is not accepted here.
//
// It covers the body and nothing beside it: neither the ids, nor the topic, nor
// the time of X-Shopify-Triggered-At. Deliveries can be a day late, so an
// unsigned time would prove nothing even if it were judged. Therefore a body
// must have the shape of its topic, and an order's state is read from the signed
// body alone: a captured body under another topic says what it said before.
// A captured request under a fresh id is accepted as its own row, which names
// the first, and the state graphs let it change nothing.
//
// # Identity
//
// Shopify's own pages disagree on which of two headers tells duplicates:
// X-Shopify-Event-Id is one per action of the merchant and is shared by several
// topics, so on its own it would drop work; X-Shopify-Webhook-Id is one per
// delivery and stays on retries. We take topic, shop and X-Shopify-Webhook-Id
// together.
//
// # Redelivery
//
// Shopify retries 8 times within 4 hours, with the original body and headers,
// and then removes a subscription made over the Admin API. There is no manual
// redelivery. After a change of the client secret, deliveries signed with the
// old one can come for an hour.
//
// # Order
//
// None, and no version. updated_at could be compared and is not: orders and
// payments follow their life cycle.
//
// # What is read as what
//
// order_transactions/create is a payment: a sale or capture that succeeded
// credits it. refunds/create is a refund; what it takes is the sum of its
// refund transactions that succeeded. A refund's transaction, told as a
// transaction, is only a notice.
//
// # Sources
//
// shopify.dev/docs/apps/build/webhooks (best-practices, ignore-duplicates,
// subscribe/https); shopify.dev/docs/api/webhooks;
// shopify.dev/changelog/updates-to-webhook-retry-mechanism;
// github.com/Shopify/shopify-api-js packages/shopify-api/lib/webhooks.
package shopify

import (
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
)

// Adapter returns the adapter.
func Adapter() *provider.Adapter {
	return &provider.Adapter{
		Name: "shopify", Title: "Shopify",
		Scheme: &signature.Scheme{
			Methods: []signature.Method{{Algorithm: signature.HMACSHA256, Key: signature.KeyRule{
				Encoding: signature.Text, BytesMin: 8,
				Foreign: []string{"shpat_", "shpca_", "shppa_"},
			}}},
			Message:   []signature.Part{signature.RawBody()},
			Signature: signature.Place{Header: "x-shopify-hmac-sha256", Grammar: signature.Plain, Encoding: signature.Base64},
		},
		BodyBytesMax: provider.BodyBytesMax,
		ContentTypes: []string{"application/json"},
		SuccessCode:  200,
		ID: []provider.Source{{
			Parts: []provider.Place{
				{Header: "x-shopify-topic"}, {Header: "x-shopify-shop-domain", Optional: true, Example: "sample.myshopify.com"}, {Header: "x-shopify-webhook-id"},
			},
			Join: "|",
		}},
		Type:       provider.Source{Parts: []provider.Place{{Header: "x-shopify-topic"}}},
		Created:    []string{"updated_at", "created_at"},
		ObjectID:   []string{"id"},
		Covers:     provider.Covers{},
		BodyVaries: provider.Never,
		Catalogue:  catalogue(),
		API:        api(),
		Redelivery: provider.Redelivery{
			Automatic:    "8 times over 4 h with exponential backoff, with the original body; a first delivery can itself be a day late",
			AutomaticFor: 28 * time.Hour, SameIDOnRetry: provider.Stated,
			SameIDOnManual: provider.None,
			Sources: []string{
				"https://shopify.dev/changelog/updates-to-webhook-retry-mechanism",
				"https://shopify.dev/docs/apps/build/webhooks/best-practices",
				"https://shopify.dev/docs/apps/build/webhooks/ignore-duplicates",
			},
		},
		Ordering: "None that is used: updated_at has a resolution of one second. State graphs.",
		// The old client secret signs for up to an hour, and retries of that last four more.
		Overlap: 6 * time.Hour,
	}
}
