package webhook_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

// Proves D4, D5: a promise's times, near and far.
func TestNewOutboxSaysWhenTheWorkIsDueAndWhenToLookAgain(t *testing.T) {
	t.Parallel()
	row := received()
	row.Fence = 7
	base := webhook.Outbox{ID: "in_1#process#0", InboxID: "in_1", Topic: webhook.TopicProcess, CreatedAt: now, Gen: 7}
	tests := []struct {
		name string
		due  time.Time
		want func(*webhook.Outbox)
	}{
		{"due now", now, func(o *webhook.Outbox) { o.DueAt, o.WakeAt = now, now.Add(time.Minute) }},
		{"due in a quarter of an hour, which the queue can carry", now.Add(15 * time.Minute), func(o *webhook.Outbox) {
			o.DueAt, o.WakeAt = now.Add(15*time.Minute), now.Add(16*time.Minute)
		}},
		{"due later, so the due index brings it", now.Add(time.Hour), func(o *webhook.Outbox) {
			o.DueAt, o.WakeAt, o.InDueIndex = now.Add(time.Hour), now.Add(61*time.Minute), true
		}},
		{"overdue: the look comes after now", now.Add(-time.Hour), func(o *webhook.Outbox) {
			o.DueAt, o.WakeAt = now.Add(-time.Hour), now.Add(time.Minute)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := base
			tt.want(&want)
			if diff := cmp.Diff(want, webhook.NewOutbox(row, tt.due, now)); diff != "" {
				t.Errorf("outbox row (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves R1: the next look doubles from 5 minutes to 6 hours, so a lost message
// is found within 6 hours.
func TestWakesDoubleFromFiveMinutesToSixHours(t *testing.T) {
	t.Parallel()
	want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 360, 360, 360}
	for wakes, minutes := range want {
		o := webhook.Outbox{ID: "o", Gen: 3, DueAt: now, WakeAt: now, Wakes: wakes}
		expected := webhook.Published{ID: "o", Gen: 3, At: now, WakeAt: now.Add(minutes * time.Minute)}
		if diff := cmp.Diff(expected, o.Publish(now)); diff != "" {
			t.Errorf("publish after %d wakes (-want +got):\n%s", wakes, diff)
		}
		expected.SeenWakeAt = now
		if diff := cmp.Diff(expected, o.Rewake(now)); diff != "" {
			t.Errorf("rewake after %d wakes (-want +got):\n%s", wakes, diff)
		}
	}
}

func TestDelayStaysWithinWhatAQueueCanCarry(t *testing.T) {
	t.Parallel()
	for due, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, time.Minute: time.Minute, 15 * time.Minute: 15 * time.Minute, time.Hour: 15 * time.Minute,
	} {
		if got := (webhook.Outbox{DueAt: now.Add(due)}).Delay(now); got != want {
			t.Errorf("delay of a row due in %s = %s, want %s", due, got, want)
		}
	}
}
