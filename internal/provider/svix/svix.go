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
// docs.svix.com/retries; resend.com/docs/webhooks/retries-and-replays (a user of Svix).
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
	return a
}
