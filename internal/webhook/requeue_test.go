package webhook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Proves R2: a requeue changes the fence and nothing else, whatever an open row
// waits for, and is no way out of an ended one.
func TestARequeueRaisesTheFenceAndNothingElse(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	row := Inbox{
		ID: "in_1", Fence: 7, AttemptCount: 3, Run: 1, NextAttemptAt: at, LastError: "x", ReceivedAt: at.Add(-time.Hour), BodyExpiresAt: at.Add(time.Hour),
	}
	for _, status := range Statuses() {
		row := row
		row.Status = status
		switch status {
		case Processing:
			row.ClaimID, row.LeaseUntil = "c", at.Add(time.Minute)
		case Parked:
			row.Slot = Slot{Sequence: "sq_1", Number: 4}
		case Received, Retry, Processed, Failed, Held:
		}
		if status.Terminal() {
			if !panics(func() { row.Requeue() }) {
				t.Errorf("a %s row is requeued", status)
			}
			continue
		}
		change := row.Requeue()
		want := row
		want.Fence++
		if diff := cmp.Diff(want, change.Apply(row)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
		if diff := cmp.Diff(Guard{From: []Status{status}, Fence: 7}, change.Guard); diff != "" {
			t.Errorf("guard of %s (-want +got):\n%s", status, diff)
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
