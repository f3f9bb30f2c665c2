// Package svix receives from Svix and from the many senders that use it.
//
// # Signature
//
// It is Standard Webhooks under the header names svix-id, svix-timestamp and
// svix-signature, and covers the same: id, type and the attempt's time. Svix may
// send the webhook-* names beside them; they are not read here, so nothing
// depends on which of two ids is looked at. See the package standardwebhooks.
//
// # Redelivery
//
// An automatic retry has the same svix-id and body, a new time and signature:
// at once, then after 5 seconds, 5 and 30 minutes, 2, 5, 10 and 10 hours. A
// manual resend or replay is by message id; that the header keeps its value is
// implied by that and not stated. Svix keeps a message's payload for 90 days
// unless told otherwise, which bounds how late a replay can come.
//
// # Order
//
// None, as in Standard Webhooks: data.version where the sender gives one.
//
// # Sources
//
// github.com/svix/svix-webhooks: server/svix-server/src/worker.rs,
// bridge/svix-bridge/src/webhook_receiver/verification.rs;
// docs.svix.com/retries, docs.svix.com/receiving/source-ips; resend.com/docs/webhooks/retries-and-replays (a user of Svix).
package svix

import (
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/provider/standardwebhooks"
)

// Adapter returns the adapter.
func Adapter() *provider.Adapter {
	a := standardwebhooks.New("svix")
	a.Name, a.Title = "svix", "Svix"
	a.BodyVaries = provider.Never
	a.Redelivery = provider.Redelivery{
		Automatic:    "at once, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h",
		AutomaticFor: 28 * time.Hour, SameIDOnRetry: provider.Stated,
		Manual:    "resend or replay by message id, while the payload is kept",
		ManualFor: 90 * 24 * time.Hour, SameIDOnManual: provider.Assumed,
		Sources: []string{
			"https://docs.svix.com/retries",
			"https://github.com/svix/svix-webhooks/blob/main/server/svix-server/src/worker.rs",
			"https://resend.com/docs/webhooks/retries-and-replays",
		},
	}
	a.Addresses = addresses()
	return a
}

// addresses are those of all of Svix's regions: United States (two), Europe, India,
// Australia, Canada. The page has no date; the newest copy with one is of 2025.
func addresses() *provider.Addresses {
	return &provider.Addresses{
		Prefixes: provider.Prefixes(
			"44.228.126.217", "50.112.21.217", "52.24.126.164", "54.148.139.208", "2600:1f24:64:8000::/56",
			"54.90.7.123", "54.164.207.221", "2600:1f28:37:4000::/56",
			"52.215.16.239", "54.216.8.72", "63.33.109.123", "2a05:d028:17:8000::/56",
			"13.126.41.108", "15.207.218.84", "65.2.133.31",
			"13.239.204.236", "54.66.246.217", "54.252.65.96", "2406:da2c:13:4000::/56",
			"3.96.105.27", "3.98.68.230", "52.60.44.49", "2600:1f21:1c:4000::/56",
		),
		AsOf:    time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC),
		Except:  "senders that run Svix themselves, and those whose plan has no static addresses",
		Sources: []string{"https://docs.svix.com/receiving/source-ips", "https://docs.svix.com/webhook-ips.json"},
	}
}
