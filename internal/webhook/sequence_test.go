package webhook_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

var slot = webhook.Slot{Sequence: "sq_1", Number: 7}

func parked() webhook.Inbox { return claimed().Park(slot, now.Add(time.Hour)).Apply(claimed()) }

// Proves O4: parking and leaving change the whole row as stated.
func TestTheWayIntoASlotAndOutOfIt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change webhook.Change
		row    webhook.Inbox
		want   webhook.Inbox
		leaves webhook.Slot
	}{
		{"parking gives the attempt back and waits for the deadline", claimed().Park(slot, now.Add(time.Hour)), claimed(), webhook.Inbox{
			ID: "in_1", Status: webhook.Parked, ReceivedAt: now, NextAttemptAt: now.Add(time.Hour), Fence: 2, Slot: slot,
		}, webhook.Slot{}},
		{"its turn makes it as new", parked().Unpark(now), parked(), webhook.Inbox{
			ID: "in_1", Status: webhook.Received, ReceivedAt: now, NextAttemptAt: now, Fence: 3,
		}, webhook.Slot{}},
		{"failing leaves the slot", parked().Fail(now, "gap_expired", keep), parked(), webhook.Inbox{
			ID: "in_1", Status: webhook.Failed, ReceivedAt: now, NextAttemptAt: now.Add(time.Hour), Fence: 3,
			LastError: "gap_expired", ProcessedAt: now, ExpiresAt: now.Add(keep),
		}, slot},
		{"holding leaves the slot", parked().Hold("why"), parked(), webhook.Inbox{
			ID: "in_1", Status: webhook.Held, ReceivedAt: now, NextAttemptAt: now.Add(time.Hour), Fence: 3, LastError: "why",
		}, slot},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.change.Apply(tt.row)); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.leaves, tt.change.Leaves); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
			if !tt.change.Guard.Allows(tt.row) {
				t.Error("the guard refuses the very row that it was decided on")
			}
		})
	}
}

// Proves O4, A6: nobody claims a parked row, and its deadline is its own.
func TestAParkedRowWaitsForItsTurnOrItsDeadline(t *testing.T) {
	t.Parallel()
	row := parked()
	if webhook.Claim("in_1", "c", now.Add(2*time.Hour), lease, attemptsMax).Guard.Allows(row) {
		t.Error("a parked row can be claimed")
	}
	if row.GapOver(now.Add(time.Hour-1)) || !row.GapOver(now.Add(time.Hour)) {
		t.Error("the gap is over at the deadline, not before")
	}
}

func TestASlotIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, s := range []webhook.Slot{{}, slot, {Sequence: "sq_x", Number: 9_007_199_254_740_993}} {
		if got, ok := webhook.ParseSlot(s.String()); !ok || got != s {
			t.Errorf("%q is read as %v, %v", s, got, ok)
		}
	}
	for _, text := range []string{"sq_1", "sq_1#", "sq_1#x", "#"} {
		if got, ok := webhook.ParseSlot(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// Two objects, two endpoints and two tenants are numbered apart.
func TestSequencesAreApart(t *testing.T) {
	t.Parallel()
	seen := map[webhook.SequenceID]bool{}
	for _, id := range []webhook.SequenceID{
		webhook.DeriveSequenceID("a", "e", "object", "1"), webhook.DeriveSequenceID("b", "e", "object", "1"),
		webhook.DeriveSequenceID("a", "f", "object", "1"), webhook.DeriveSequenceID("a", "e", "order", "1"),
		webhook.DeriveSequenceID("a", "e", "object", "2"), webhook.DeriveSequenceID("ae", "", "object", "1"),
	} {
		if seen[id] {
			t.Errorf("%s twice", id)
		}
		seen[id] = true
	}
}

// Proves W4: a postponed promise is unpublished, and far ones are in the due index.
func TestAPostponedPromiseIsPublishedAgain(t *testing.T) {
	t.Parallel()
	o := webhook.NewOutbox(received(), now, now)
	o.PublishedAt, o.Wakes = now, 3
	want := o
	want.PublishedAt, want.DueAt, want.WakeAt = time.Time{}, now.Add(time.Minute), now.Add(2*time.Minute)
	if diff := cmp.Diff(want, o.Postponed(now.Add(time.Minute), now)); diff != "" {
		t.Errorf("near (-want +got):\n%s", diff)
	}
	want.DueAt, want.WakeAt, want.InDueIndex = now.Add(time.Hour), now.Add(time.Hour+time.Minute), true
	if diff := cmp.Diff(want, o.Postponed(now.Add(time.Hour), now)); diff != "" {
		t.Errorf("far (-want +got):\n%s", diff)
	}
}

// Proves O2, O3, O4: an endpoint's choice comes before the catalogue's.
func TestAnEndpointsPolicyComesFirst(t *testing.T) {
	t.Parallel()
	e := webhook.Endpoint{Policies: map[webhook.Kind]webhook.Policy{"refund.updated": webhook.ByFetch}}
	if got := e.PolicyFor("refund.updated", webhook.Monotonic); got != webhook.ByFetch {
		t.Errorf("overridden: %s", got)
	}
	if got := e.PolicyFor("refund.created", webhook.Monotonic); got != webhook.Monotonic {
		t.Errorf("not overridden: %s", got)
	}
}
