// Package paddle receives the events of Paddle Billing. Paddle Classic, the older
// product, signs otherwise and is not received.
//
// # Signature
//
// Paddle-Signature is "ts=<unix seconds>;h1=<hex>", with at least one h1, and more
// while a secret is being rotated. Each is HMAC-SHA256 over "<ts>:<body>" under the
// whole secret, "pdl_ntfset_" included. It covers id, type and the time of the
// attempt. Paddle's own Go library takes exactly one h1.
//
// Paddle's libraries refuse what is older than 5 seconds. We take 5 minutes, both
// ways; see tolerance.
//
// # Redelivery
//
// A live account's notification is tried 60 times in just under 3 days, 20 of them
// in the first hour; a sandbox's 3 times in 15 minutes. That a retry is signed anew
// with its own ts is nowhere stated. It follows from the 5 seconds of Paddle's
// libraries, under which none of its retries could ever succeed otherwise.
//
// A person or the API can replay a notification for 90 days. The replay is of the
// same event_id and has another notification_id in its body, so the bytes of one
// event do differ. Two destinations at one endpoint differ in the same way.
//
// What the webhook simulator sends is signed like a real event, and would be
// applied like one; its ids begin with ntfsimevt_. A destination whose usage type is
// Platform, which is the default, gets none.
//
// # Order
//
// None is promised: Paddle advises occurred_at, which is a clock's reading and
// decides nothing here. There is no version. Transactions and adjustments follow
// their life cycle; a subscription its billing period first.
//
// # What is read as what
//
// A payment is a transaction. Only transaction.completed carries its money:
// paid comes a moment before it, without the subscription and the fees, and is
// shown as authorised. transaction.updated and revised are notices, since every
// change of the state has an event of its own, and a revision may change totals
// that were counted.
//
// adjustment.created and updated are told apart by their action, which stands
// behind the type: "adjustment.created/refund". A refund takes its money when it is
// approved. A chargeback has taken it when it is made; the chargeback_reverse of a
// contest that Paddle won is an adjustment, and therefore an object, of its own,
// which gives the money back. Nothing in it names the chargeback but their
// transaction. A chargeback_warning moves no money here: that Paddle refunds the
// buyer upon a warning is stated, and by which adjustment is not. Credits lower
// what is asked for, which grand_total has in it already; they are notices about
// their payment.
//
// Amounts are whole numbers of the currency's smallest unit, as text; ¥1000 is
// "1000".
//
// # Sources
//
// developer.paddle.com/webhooks/about (how-webhooks-work, signature-verification,
// respond-to-webhooks), /webhooks/transactions, /webhooks/subscriptions,
// /webhooks/adjustments, /webhooks/simulator/test-webhooks,
// /api-reference/notifications/replay-notification,
// /api-reference/about/data-types, /changelog/2023/transaction-paid-event-status,
// /changelog/2024/event-notification-retention-changes;
// paddle.com/help/manage/risk-prevention/understanding-chargebacks-with-paddle;
// github.com/PaddleHQ/paddle-go-sdk webhook_verifier.go and its test,
// pkg/paddlenotification; github.com/PaddleHQ/paddle-node-sdk
// src/notifications/helpers/webhooks-validator.ts. By others only: a sandbox's
// retries, and that it is a rotation which brings several h1 (hookdeck.com,
// github.com/hookdeck/webhook-skills).
package paddle

import (
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
)

// tolerance is ours. Paddle suggests 5 seconds, and its users found honest
// deliveries refused by that (github.com/PaddleHQ/paddle-node-sdk/issues/30): a cold
// start, a slow network or a clock a few seconds off are enough, and while it lasts
// every retry is refused too. What more time gives away is little, because the id
// is signed and remembered: a request that was captured and is sent again within
// these minutes is a duplicate.
const tolerance = 5 * time.Minute

// Adapter returns the adapter.
func Adapter() *provider.Adapter {
	return &provider.Adapter{
		Name: "paddle", Title: "Paddle Billing",
		Scheme:       scheme(),
		BodyBytesMax: provider.BodyBytesMax,
		ContentTypes: []string{"application/json"},
		SuccessCode:  200,
		ID:           []provider.Source{{Parts: []provider.Place{{Path: "event_id"}}, Signed: true}},
		Type: provider.Source{
			Parts: []provider.Place{{Path: "event_type"}, {Path: "data.action", Optional: true}}, Join: "/", Signed: true,
		},
		Created:    []string{"occurred_at"},
		ObjectID:   []string{"data.id"},
		Covers:     provider.Covers{ID: true, Type: true, Time: true},
		BodyVaries: provider.PerAttempt, // a replay has another notification_id
		Catalogue:  catalogue(),
		API:        api(),
		Addresses:  addresses(),
		Redelivery: provider.Redelivery{
			Automatic:    "live: 60 times in just under 3 days with exponential backoff; sandbox: 3 times in 15 minutes",
			AutomaticFor: 3 * 24 * time.Hour, SameIDOnRetry: provider.Stated,
			Manual:    "dashboard or API: a notification that was delivered or has failed, for 90 days, under another notification_id",
			ManualFor: 90 * 24 * time.Hour, SameIDOnManual: provider.Stated,
			Sources: []string{
				"https://developer.paddle.com/webhooks/about/how-webhooks-work",
				"https://developer.paddle.com/webhooks/about/respond-to-webhooks",
				"https://developer.paddle.com/api-reference/notifications/replay-notification",
				"https://developer.paddle.com/changelog/2024/event-notification-retention-changes",
				"https://hookdeck.com/webhooks/platforms/guide-to-paddle-webhooks-features-and-best-practices",
			},
		},
		Ordering: "None: occurred_at is a clock's reading, and there is no object version. State graphs, and a subscription's billing period.",
		// How long Paddle signs with both secrets is not stated. A secret belongs to its
		// destination, so where the new one came with a new destination, the retries of
		// the old one go on under its own.
		Overlap: 3 * 24 * time.Hour,
	}
}

// addresses are those of live accounts. A sandbox sends from others, which the page
// lists beside them; an endpoint for one names them itself. The list of today is
// read without a key.
func addresses() *provider.Addresses {
	return &provider.Addresses{
		Prefixes: provider.Prefixes("34.195.105.136", "34.212.5.7", "34.232.58.13", "34.237.3.244", "35.155.119.135", "52.11.166.252"),
		// A copy of the answer that says when it was taken; Paddle's page has no date.
		AsOf:   time.Date(2026, time.October, 10, 0, 0, 0, 0, time.UTC),
		Except: "sandbox accounts",
		Sources: []string{
			"https://developer.paddle.com/webhooks/about/respond-to-webhooks",
			"https://developer.paddle.com/api-reference/ip-addresses/get-ip-addresses",
			"https://api.paddle.com/ips",
		},
		Published: &provider.Published{URL: "https://api.paddle.com/ips", Member: "data.ipv4_cidrs"},
	}
}

func scheme() *signature.Scheme {
	return &signature.Scheme{
		Methods: []signature.Method{{Tag: "h1", Algorithm: signature.HMACSHA256, Key: signature.KeyRule{
			Encoding: signature.Text, BytesMin: 24,
			Foreign: []string{"pdl_live_apikey_", "pdl_sdbx_apikey_", "live_", "test_"},
		}}},
		Message:   []signature.Part{signature.SignedTime(), signature.Literal(":"), signature.RawBody()},
		Signature: signature.Place{Header: "paddle-signature", Grammar: signature.Fields, Separator: ';', Encoding: signature.Hex},
		Timestamp: signature.Timestamp{Field: "ts", Unit: signature.Seconds, Past: tolerance, Future: tolerance},
	}
}
