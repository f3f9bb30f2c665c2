package dynamo_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

// Proves R3, O4: an operator's skip commits the sequence, who goes on, its promise
// and the record together, and nothing where anything is not as it was read.
func TestSkipCommitsAllOrNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		id := webhook.DeriveSequenceID("acme", "demo", webhook.Object, "obj_1")
		row := parkedAs(t, s, rowAt(1, "demo", noon), webhook.Slot{Sequence: id, Number: 5})
		waiting := map[int64]webhook.InboxID{5: row.ID}
		turn := webhook.Turn{Sequence: id, Number: 4, Next: row.ID, Waiting: waiting}
		turn.LetGo(row, noon)
		record := webhook.Act{ID: "act-1", At: noon, Name: "sequence skip", Subject: "object demo/object/obj_1 to 4", Who: "ada", Why: "tests"}

		outdated := row
		outdated.Fence--
		changed := webhook.Turn{Sequence: id, Number: 4, Next: row.ID, Waiting: waiting}
		changed.LetGo(outdated, noon)
		for name, stale := range map[string]webhook.Turn{
			"the sequence was further":         {Sequence: id, Last: 3, Number: 4, Next: row.ID, Waiting: waiting, Unpark: turn.Unpark, Promise: turn.Promise},
			"somebody waits who was not there": {Sequence: id, Number: 4, Waiting: waiting},
			"another waits":                    {Sequence: id, Number: 4, Next: "in_other", Waiting: waiting},
			"the row has changed":              changed,
			"as many wait, but others":         {Sequence: id, Number: 4, Next: row.ID, Waiting: map[int64]webhook.InboxID{7: "in_other"}, Unpark: turn.Unpark, Promise: turn.Promise},
		} {
			if ok, err := s.Skip(t.Context(), stale, record); ok || err != nil {
				t.Errorf("%s: written %v, error %v; want neither", name, ok, err)
			}
		}
		wantSkipped(t, s, webhook.Sequence{ID: id, Parked: map[int64]webhook.InboxID{5: row.ID}}, row, 0)

		if ok, err := s.Skip(t.Context(), turn, record); !ok || err != nil {
			t.Fatalf("written %v, error %v", ok, err)
		}
		after := turn.Unpark.Apply(row)
		wantSkipped(t, s, webhook.Sequence{ID: id, Last: 4, Parked: map[int64]webhook.InboxID{}}, after, 1)
		if got, found, err := s.Outbox(t.Context(), turn.Promise.ID); err != nil || !found || !cmp.Equal(*turn.Promise, got) {
			t.Errorf("promise %+v, found %v, error %v; want %+v", got, found, err, *turn.Promise)
		}

		// The same once more, as after a lost reply, does nothing.
		if ok, err := s.Skip(t.Context(), turn, record); ok || err != nil {
			t.Errorf("again: written %v, error %v; want neither", ok, err)
		}
		wantSkipped(t, s, webhook.Sequence{ID: id, Last: 4, Parked: map[int64]webhook.InboxID{}}, after, 1)
	})
}

// Proves O4: an event that parks between an operator's look and the skip is not
// passed over.
func TestASkipPassesNobodyOverWhoParkedMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		id := webhook.DeriveSequenceID("acme", "demo", webhook.Object, "obj_1")
		waits := parkedAs(t, s, rowAt(1, "demo", noon), webhook.Slot{Sequence: id, Number: 5})
		seen, err := s.Sequence(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		turn := webhook.Turn{Sequence: id, Last: seen.Last, Number: 4, Next: seen.Parked[5], Waiting: seen.Parked}
		turn.LetGo(waits, noon)
		between := parkedAs(t, s, rowAt(2, "demo", noon), webhook.Slot{Sequence: id, Number: 3})

		record := webhook.Act{ID: "act-1", At: noon, Name: "sequence skip", Subject: "object demo/object/obj_1", Who: "ada", Why: "tests"}
		if ok, err := s.Skip(t.Context(), turn, record); ok || err != nil {
			t.Errorf("written %v, error %v; want neither", ok, err)
		}
		wantSkipped(t, s, webhook.Sequence{ID: id, Parked: map[int64]webhook.InboxID{3: between.ID, 5: waits.ID}}, between, 0)
	})
}

// parkedAs accepts, claims and parks an event.
func parkedAs(t *testing.T, s *dynamo.Store, row webhook.Inbox, slot webhook.Slot) webhook.Inbox {
	t.Helper()
	accept(t, s, row)
	claimed, ok, err := s.Change(t.Context(), webhook.Claim(row.ID, "worker", noon, time.Minute, 8))
	if err != nil || !ok {
		t.Fatalf("claim: ok %v, error %v", ok, err)
	}
	deadline := noon.Add(time.Hour)
	park := claimed.Park(slot, deadline)
	parked := park.Apply(*claimed)
	seq, err := s.Sequence(t.Context(), slot.Sequence)
	if err != nil {
		t.Fatal(err)
	}
	if verdict, err := s.Park(t.Context(), park, seq, webhook.NewOutbox(parked, deadline, noon)); err != nil || verdict != webhook.Committed {
		t.Fatalf("park: %s, %v", verdict, err)
	}
	return parked
}

// wantSkipped compares what a skip is about with what the store holds.
func wantSkipped(t *testing.T, s *dynamo.Store, seq webhook.Sequence, row webhook.Inbox, acts int) {
	t.Helper()
	got, err := s.Sequence(t.Context(), seq.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(seq, got); diff != "" {
		t.Errorf("sequence (-want +got):\n%s", diff)
	}
	there, _, err := s.Inbox(t.Context(), row.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(row, there); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	recorded, err := s.ActsOn(t.Context(), "object demo/object/obj_1")
	if err != nil || len(recorded) != acts {
		t.Errorf("record %v, error %v; want %d", recorded, err, acts)
	}
}
