// Package razorpay receives Razorpay's events.
//
// # Signature
//
// X-Razorpay-Signature is the hexadecimal HMAC-SHA256 of the raw body under the
// webhook's own secret, taken as text. That is not the secret of the API key.
//
// It covers the type, which is in the body, and nothing else: neither the id,
// the header x-razorpay-event-id, nor any time. A captured request can be sent
// again at any later day under a fresh id. What that does is bounded by the
// state graphs, and the pipeline marks such a row with the one that had the same
// bytes first.
//
// # Redelivery
//
// Retries have the same id and body, with growing gaps for 24 hours after the
// event; then Razorpay disables the webhook. From the dashboard a person can
// replay events that were never acknowledged, up to 7 days old and 5 times a
// day, sent exactly as first made but signed with the current secret; that the
// id stays is implied. Retries made after a change of the secret may still be
// signed with the old one.
//
// # Order
//
// None is promised, and payment.captured may come before payment.authorized.
// There is no version. Payments, refunds and disputes follow their life cycle;
// a subscription its count of paid cycles first.
//
// # What is read as what
//
// A captured payment carries the money; order.paid and subscription.charged
// repeat it and credit nothing. A dispute's kinds are named by their event.
//
// # Sources
//
// razorpay.com/docs/webhooks (validate-test, best-practices, faqs, all,
// payments, refunds, subscriptions, disputes, partners, replay-events);
// github.com/razorpay/razorpay-python tests/test_client_utility.py.
package razorpay

import (
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
)

// Adapter returns the adapter.
func Adapter() *provider.Adapter {
	return &provider.Adapter{
		Name: "razorpay", Title: "Razorpay",
		Scheme: &signature.Scheme{
			Methods: []signature.Method{{Algorithm: signature.HMACSHA256, Key: signature.KeyRule{
				Encoding: signature.Text, BytesMin: 8,
				Foreign: []string{"rzp_live_", "rzp_test_"},
			}}},
			Message:   []signature.Part{signature.RawBody()},
			Signature: signature.Place{Header: "x-razorpay-signature", Grammar: signature.Plain, Encoding: signature.Hex},
		},
		BodyBytesMax: provider.BodyBytesMax,
		ContentTypes: []string{"application/json"},
		SuccessCode:  200,
		ID:           []provider.Source{{Parts: []provider.Place{{Header: "x-razorpay-event-id"}}}},
		Type:         provider.Source{Parts: []provider.Place{{Path: "event"}}, Signed: true},
		Created:      []string{"created_at"},
		ObjectID:     []string{"account_id"},
		Covers:       provider.Covers{Type: true},
		BodyVaries:   provider.Never,
		Catalogue:    catalogue(),
		API:          api(),
		Addresses:    addresses(),
		Redelivery: provider.Redelivery{
			Automatic:    "with exponential backoff for 24 h after the event; then the webhook is disabled",
			AutomaticFor: 24 * time.Hour, SameIDOnRetry: provider.Stated,
			Manual:    "dashboard: unacknowledged events up to 7 days old, 5 times in 24 h, signed with the current secret",
			ManualFor: 7 * 24 * time.Hour, SameIDOnManual: provider.Assumed,
			Sources: []string{
				"https://razorpay.com/docs/webhooks/best-practices",
				"https://razorpay.com/docs/webhooks/replay-events",
				"https://razorpay.com/docs/webhooks/faqs",
			},
		},
		Ordering: "None: no version, and created_at has a resolution of one second. State graphs, and a subscription's count of paid cycles.",
		// Retries may be signed with the old secret for as long as they last.
		Overlap: 48 * time.Hour,
	}
}

// addresses are those of the pages for India, and the last three of that for the
// United States. The page differs by country; those for Malaysia and Singapore
// were not read.
func addresses() *provider.Addresses {
	return &provider.Addresses{
		Prefixes: provider.Prefixes(
			"13.126.199.247", "13.126.238.192", "13.232.194.134", "18.96.225.0/26", "18.99.161.0/26", "35.154.22.73", "35.154.143.15", "35.154.217.40",
			"52.66.75.174", "52.66.76.63", "52.66.151.218",
			"3.136.42.4", "3.140.215.0", "18.224.88.246",
		),
		AsOf:    time.Date(2026, time.September, 1, 0, 0, 0, 0, time.UTC),
		Except:  "accounts in Malaysia and Singapore, and Razorpay's own test systems (UAT)",
		Sources: []string{"https://razorpay.com/docs/security/whitelists"},
	}
}
