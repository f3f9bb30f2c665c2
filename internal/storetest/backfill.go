package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

// backfill walks the row of one endpoint's back-fill through its life.
func (s suite) backfill(t *testing.T) {
	read := func(want webhook.Backfill) webhook.Backfill {
		t.Helper()
		got, err := s.Backfill(t.Context(), "listed")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("row (-want +got):\n%s", diff)
		}
		return got
	}
	write := func(b webhook.Backfill, want bool) {
		t.Helper()
		if ok, err := s.UpdateBackfill(t.Context(), b); err != nil || ok != want {
			t.Fatalf("update at revision %d: %v, %v; want %v", b.Revision, ok, err, want)
		}
	}
	want := func(at time.Time) {
		t.Helper()
		if err := s.WantBackfill(t.Context(), "listed", at); err != nil {
			t.Fatal(err)
		}
	}
	none := read(webhook.Backfill{Endpoint: "listed"})
	want(now)
	asked := read(webhook.Backfill{Endpoint: "listed", WantedAt: now}) // asking makes no run
	begun := asked.Begin(now.Add(-time.Hour), now, now).Missed("evt_1", now)
	write(begun, true)
	write(none.Begin(now, now, now), false) // another that began at the same time
	want(now.Add(time.Minute))              // beside a run
	want(now.Add(-time.Minute))             // a clock that is behind takes nothing back
	begun.Revision, begun.WantedAt = 1, now.Add(time.Minute)
	read(begun)
	turned := begun.Turned("0.next", now.Add(time.Second))
	turned.Counts = webhook.BackfillCounts{Pages: 1, Accepted: 2, Duplicate: 3, Redelivered: 4, Awaited: 5, Refused: 6, Unwanted: 7, Unreadable: 8}
	write(turned, true)
	write(turned, false) // a reply that was lost, or a rival: the row has moved on
	turned.Revision = 2
	ended := read(turned).Turned("", now.Add(2*time.Second))
	write(ended, true)
	ended.Revision = 3
	read(ended)
}
