package webhook_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

// Proves R3: a promise that is brought near is due as soon as its row may be
// worked on, never sooner, and looks to the relay as if it were new.
func TestNearIsDueWhenItsRowIs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		row  func(*webhook.Inbox)
		due  time.Time
		far  bool
	}{
		{"a row that waits", func(*webhook.Inbox) {}, now, false},
		{"a retry in an hour", func(r *webhook.Inbox) { r.Status, r.NextAttemptAt = webhook.Retry, now.Add(time.Hour) }, now.Add(time.Hour), true},
		{"a row that a worker has", func(r *webhook.Inbox) { r.Status, r.LeaseUntil = webhook.Processing, now.Add(time.Minute) }, now.Add(61 * time.Second), false},
		{"a row whose worker died", func(r *webhook.Inbox) { r.Status, r.LeaseUntil = webhook.Processing, now.Add(-time.Minute) }, now, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			row := received()
			row.NextAttemptAt = now.Add(-time.Hour)
			tt.row(&row)
			far := webhook.Outbox{ID: "o", InboxID: row.ID, Gen: 4, DueAt: now.Add(99 * time.Hour), WakeAt: now.Add(100 * time.Hour), PublishedAt: now, Wakes: 7, InDueIndex: true}
			want := webhook.Outbox{ID: "o", InboxID: row.ID, Gen: 4, DueAt: tt.due, WakeAt: tt.due.Add(time.Minute), InDueIndex: tt.far}
			if diff := cmp.Diff(want, far.Near(row, now)); diff != "" {
				t.Errorf("near (-want +got):\n%s", diff)
			}
		})
	}
}
