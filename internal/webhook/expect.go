package webhook

import "time"

// Bounds of [Endpoint.ExpectEvery]. Below the least a pause between two events
// rings; beyond the most nobody is helped by knowing.
const (
	ExpectEveryMin = 15 * time.Minute
	ExpectEveryMax = 30 * 24 * time.Hour
)

// Heard reports whether the row shows that the provider calls the webhook. A canary
// is our own, and what a back-fill brought is what the webhook did not.
func (row Inbox) Heard() bool { return !row.Canary() && row.MatchedVersion != Backfilled }
