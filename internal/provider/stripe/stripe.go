// Package stripe receives Stripe's events.
//
// # Signature
//
// Stripe-Signature is "t=<unix seconds>,v1=<hex>", with one v1 for each secret
// while one is being rolled. Each is HMAC-SHA256 over "<t>.<body>" under the
// whole secret, "whsec_" included: that text is not base64 here. Other names,
// v0 among them, are ignored.
//
// It covers id, type and the time of the attempt. Stripe's libraries refuse what
// is older than 300 seconds; we also refuse what is as far ahead.
//
// # Redelivery
//
// A retry is the same event (id, created) with a new t and signature: live mode
// for up to 3 days with growing gaps, test mode three times within hours. A
// person can resend an event from the Dashboard, the command line tool or by
// listing undelivered events, which reaches back 30 days; that it keeps its id
// is implied, since what is resent is the event object. The body may differ
// between attempts: pending_webhooks counts the deliveries still open.
//
// # Order
//
// None is promised. created has a resolution of one second and is the event's
// own time, not the object's version. Payments, refunds and disputes follow
// their life cycle; subscriptions their billing period first.
//
// # What is read as what
//
// A payment is a PaymentIntent. The events of its charges are accepted as
// notices: they repeat what payment_intent.* says about the state, and what
// refund.* says about money. Invoices are notices about their subscription, or
// about themselves where there is none.
//
// # Sources
//
// github.com/stripe/stripe-go: webhook/client.go and its test;
// docs.stripe.com/webhooks, docs.stripe.com/webhooks/process-undelivered-events,
// docs.stripe.com/api/events/types.
package stripe

import (
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
)

// tolerance is the default of Stripe's own libraries.
const tolerance = 5 * time.Minute

// Adapter returns the adapter.
func Adapter() *provider.Adapter {
	return &provider.Adapter{
		Name: "stripe", Title: "Stripe",
		Scheme:       scheme(),
		BodyBytesMax: provider.BodyBytesMax,
		ContentTypes: []string{"application/json"},
		SuccessCode:  200,
		ID:           []provider.Source{{Parts: []provider.Place{{Path: "id"}}, Signed: true}},
		Type:         provider.Source{Parts: []provider.Place{{Path: "type"}}, Signed: true},
		Created:      []string{"created"},
		ObjectID:     []string{"data.object.id", "related_object.id"},
		Covers:       provider.Covers{ID: true, Type: true, Time: true},
		BodyVaries:   provider.Unknown,
		Catalogue:    catalogue(),
		API:          api(),
		Addresses:    addresses(),
		Redelivery: provider.Redelivery{
			Automatic:    "live mode: for up to 3 days with exponential backoff; test mode: 3 times over a few hours",
			AutomaticFor: 3 * 24 * time.Hour, SameIDOnRetry: provider.Stated,
			Manual:    "resend from the Dashboard (15 days) or the command line tool (30 days); undelivered events can be listed for 30 days",
			ManualFor: 30 * 24 * time.Hour, SameIDOnManual: provider.Assumed,
			Sources: []string{
				"https://docs.stripe.com/webhooks",
				"https://docs.stripe.com/webhooks/process-undelivered-events",
				"https://github.com/stripe/stripe-go/blob/master/webhook/client.go",
			},
		},
		Ordering: "None: created has a resolution of one second and there is no object version. State graphs, and a subscription's billing period.",
		Overlap:  24 * time.Hour, // how long Stripe signs with a rolled secret
	}
}

// addresses are those of Stripe's webhooks. Changes are announced seven days
// ahead, on a mailing list.
func addresses() *provider.Addresses {
	return &provider.Addresses{
		Prefixes: provider.Prefixes(
			"3.18.12.63", "3.69.109.8", "3.120.168.93", "3.130.192.231", "13.235.14.237", "13.235.122.149", "18.211.135.69", "35.154.171.200",
			"35.157.207.129", "52.15.183.38", "54.88.130.119", "54.88.130.237", "54.187.174.169", "54.187.205.235", "54.187.216.72",
		),
		AsOf:      time.Date(2026, time.September, 4, 0, 0, 0, 0, time.UTC),
		Except:    "what the command line tool forwards",
		Sources:   []string{"https://stripe.com/files/ips/ips_webhooks.json", "https://docs.stripe.com/ips"},
		Published: &provider.Published{URL: "https://stripe.com/files/ips/ips_webhooks.json", Member: "WEBHOOKS"},
	}
}

func scheme() *signature.Scheme {
	return &signature.Scheme{
		Methods: []signature.Method{{Tag: "v1", Algorithm: signature.HMACSHA256, Key: signature.KeyRule{
			Encoding: signature.Text, BytesMin: 10,
			Foreign: []string{"sk_", "rk_", "pk_"},
		}}},
		Message:   []signature.Part{signature.SignedTime(), signature.Literal("."), signature.RawBody()},
		Signature: signature.Place{Header: "stripe-signature", Grammar: signature.Fields, Separator: ',', Encoding: signature.Hex},
		Timestamp: signature.Timestamp{Field: "t", Unit: signature.Seconds, Past: tolerance, Future: tolerance},
	}
}
