package webhook

import "time"

// leaseMargin is how long after the end of a lease its row is looked at.
const leaseMargin = time.Second

// Near returns an open row's promise brought back from far away, where a pause
// put it: due as soon as the row may be worked on, and not published. The
// generation stays, since the row did not change.
func (o Outbox) Near(row Inbox, now time.Time) Outbox {
	due := row.NextAttemptAt
	if row.Status == Processing {
		due = row.LeaseUntil.Add(leaseMargin)
	}
	o.DueAt = later(due, now)
	o.WakeAt = o.DueAt.Add(firstWake)
	o.PublishedAt, o.Wakes = time.Time{}, 0
	o.InDueIndex = o.Far(now)
	return o
}
