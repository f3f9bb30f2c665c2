// Package github receives GitHub's webhooks as account notices.
//
// # Signature
//
// X-Hub-Signature-256 is "sha256=" and the hexadecimal HMAC-SHA256 of the body
// as it was sent, under the secret as text. The older X-Hub-Signature, SHA-1, is
// sent beside it and ignored. Without a secret there is no header: refused.
//
// The body is JSON, or a form whose one field, payload, holds the JSON; then the
// form's text is what is signed.
//
// It covers the body's action and nothing else of what we need: neither the id
// (X-GitHub-Delivery), nor the event's name (X-GitHub-Event), nor any time. So
// the body must look like what the header says: it must have what the event has
// and nothing that only other events have. A captured request can still be sent
// again at any later day under a fresh id; the pipeline marks such a row.
//
// # Redelivery
//
// GitHub never retries by itself: what is refused or lost during an outage comes
// only if somebody asks. A redelivery, by hand or over the REST API, has the
// same X-GitHub-Delivery and body. It reaches back 3 days on github.com by what
// is read today, 30 days by an older copy of the documentation; we remember for
// the longer. One event has the same id at every hook that it is sent to, which
// is why ids are kept apart by endpoint.
//
// # Order
//
// None. A repository's own updated_at could be compared, and is not: notices
// have no order here.
//
// # Sources
//
// docs.github.com/en/webhooks: using-webhooks/validating-webhook-deliveries,
// using-webhooks/best-practices-for-using-webhooks, webhook-events-and-payloads,
// testing-and-troubleshooting-webhooks/redelivering-webhooks;
// github.com/octokit/webhooks-methods.js.
package github

import (
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
)

// Adapter returns the adapter.
func Adapter() *provider.Adapter {
	return &provider.Adapter{
		Name: "github", Title: "GitHub",
		Scheme: &signature.Scheme{
			Methods: []signature.Method{{Algorithm: signature.HMACSHA256, Key: signature.KeyRule{
				Encoding: signature.Text, BytesMin: 8,
				Foreign: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"},
			}}},
			Message:   []signature.Part{signature.RawBody()},
			Signature: signature.Place{Header: "x-hub-signature-256", Grammar: signature.Plain, Prefix: "sha256=", Encoding: signature.Hex},
		},
		BodyBytesMax: provider.BodyBytesMax,
		ContentTypes: []string{"application/json", "application/x-www-form-urlencoded"},
		FormField:    "payload",
		SuccessCode:  200,
		ID:           []provider.Source{{Parts: []provider.Place{{Header: "x-github-delivery"}}}},
		Type: provider.Source{
			Parts: []provider.Place{{Header: "x-github-event"}, {Path: "action", Optional: true}}, Join: ".",
		},
		ObjectID:   []string{"repository.id", "installation.id", "organization.id"},
		Covers:     provider.Covers{},
		BodyVaries: provider.Never,
		Catalogue:  catalogue(),
		API:        api(),
		Addresses:  addresses(),
		Redelivery: provider.Redelivery{
			SameIDOnRetry: provider.None,
			Manual:        "by hand or over the REST API, for 3 days (an older copy of the documentation: 30 days)",
			ManualFor:     30 * 24 * time.Hour, SameIDOnManual: provider.Stated,
			Sources: []string{
				"https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks",
				"https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks",
			},
		},
		Ordering: "None that is used: notices have no order here.",
		// A redelivery is signed with the secret of its own time.
		Overlap: time.Hour,
	}
}

// addresses are the "hooks" of GitHub's own list, with the three ranges that were
// announced in October 2026. A GitHub of your own sends from its own.
func addresses() *provider.Addresses {
	return &provider.Addresses{
		Prefixes: provider.Prefixes(
			"9.234.98.160/28", "9.234.98.176/28", "9.234.106.48/28", "140.82.112.0/20", "143.55.64.0/20", "185.199.108.0/22", "192.30.252.0/22",
			"2606:50c0::/32", "2a0a:a440::/29",
		),
		AsOf:   time.Date(2026, time.October, 29, 0, 0, 0, 0, time.UTC),
		Except: "GitHub Enterprise Server",
		Sources: []string{
			"https://api.github.com/meta",
			"https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-githubs-ip-addresses",
			"https://github.blog/changelog/2026-10-29-webhook-ip-ranges-added-to-the-meta-api",
		},
		Published: &provider.Published{URL: "https://api.github.com/meta", Member: "hooks"},
	}
}
