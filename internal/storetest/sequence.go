package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

func sequenceID(name string) webhook.SequenceID {
	return webhook.DeriveSequenceID("acme", "demo", webhook.Object, name)
}

func (s suite) wantSequence(t *testing.T, want webhook.Sequence) {
	t.Helper()
	got, err := s.Sequence(t.Context(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if want.Parked == nil {
		want.Parked = map[int64]webhook.InboxID{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sequence (-want +got):\n%s", diff)
	}
}

// parked accepts, claims and parks the n-th event of a name, and returns it as parked.
func (s suite) parked(t *testing.T, name string, n int) webhook.Inbox {
	t.Helper()
	row := Row(name, n)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	seq, err := s.Sequence(t.Context(), sequenceID(name))
	if err != nil {
		t.Fatal(err)
	}
	deadline := now.Add(time.Hour)
	change := claimed.Park(webhook.Slot{Sequence: seq.ID, Number: int64(n)}, deadline)
	after := change.Apply(claimed)
	verdict, err := s.Park(t.Context(), change, seq, webhook.NewOutbox(after, deadline, now))
	if err != nil || verdict != webhook.Committed {
		t.Fatalf("park: %s, %v", verdict, err)
	}
	return after
}

func (s suite) park(t *testing.T) {
	row := s.parked(t, "park", 3)
	s.wantRow(t, row)
	promised := webhook.NewOutbox(row, now.Add(time.Hour), now)
	s.wantPromise(t, promised.ID, &promised)
	s.wantSequence(t, webhook.Sequence{ID: sequenceID("park"), Parked: map[int64]webhook.InboxID{3: row.ID}})
}

// A lost reply, a lost claim, a sequence that has moved, a slot that is taken and
// a buffer that is full are told apart.
func (s suite) parkVerdicts(t *testing.T) {
	claimed := func(n int) webhook.Inbox {
		row := Row("verdict", n)
		s.accept(t, row)
		return s.claim(t, row.ID, "c", now)
	}
	id := sequenceID("verdict")
	empty := webhook.Sequence{ID: id}
	park := func(row webhook.Inbox, n int64, seq webhook.Sequence) webhook.Verdict {
		t.Helper()
		change := row.Park(webhook.Slot{Sequence: id, Number: n}, now.Add(time.Hour))
		verdict, err := s.Park(t.Context(), change, seq, webhook.NewOutbox(change.Apply(row), now.Add(time.Hour), now))
		if err != nil {
			t.Fatal(err)
		}
		return verdict
	}
	first, second := claimed(1), claimed(2)
	lost := first
	lost.Fence--
	got := []webhook.Verdict{
		park(lost, 2, empty),
		park(first, 2, empty),
		park(first, 2, empty), // the reply was lost
		park(second, 2, empty),
		park(second, 3, webhook.Sequence{ID: id, Last: 1}),
		park(second, 3, empty),
	}
	want := []webhook.Verdict{
		webhook.ClaimLost, webhook.Committed, webhook.Committed, webhook.TurnMoved, webhook.TurnMoved, webhook.Committed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	for n := 3; n <= webhook.ParkedMax; n++ {
		s.parked(t, "verdict", n+1)
	}
	if got := park(claimed(100), 100, empty); got != webhook.TurnMoved {
		t.Errorf("one more than fits: %s, want turn_moved", got)
	}
}

// complete commits a step of a sequence.
func (s suite) step(t *testing.T, row webhook.Inbox, turn webhook.Turn) webhook.Verdict {
	t.Helper()
	verdict, err := s.Complete(t.Context(), webhook.Completion{
		Change: row.Complete(webhook.Applied, now, keep), Claim: row.ClaimID, Mark: &webhook.Mark{InboxID: row.ID, At: now}, Turn: &turn,
	})
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

func (s suite) unpark(t *testing.T) {
	waiting := s.parked(t, "unpark", 2)
	first := Row("unpark", 1)
	s.accept(t, first)
	claimed := s.claim(t, first.ID, "c", now)
	id := sequenceID("unpark")

	if got := s.step(t, claimed, webhook.Turn{Sequence: id, Number: 1}); got != webhook.TurnMoved {
		t.Errorf("without the one who waits: %s, want turn_moved", got)
	}
	change := waiting.Unpark(now)
	after := change.Apply(waiting)
	promised := webhook.NewOutbox(after, now, now)
	outdated := waiting.Unpark(now)
	outdated.Guard.Fence--
	if got := s.step(t, claimed, webhook.Turn{Sequence: id, Number: 1, Next: waiting.ID, Unpark: &outdated, Promise: &promised}); got != webhook.TurnMoved {
		t.Errorf("the one who waits has changed: %s, want turn_moved", got)
	}
	s.wantRow(t, waiting)
	if got := s.step(t, claimed, webhook.Turn{Sequence: id, Number: 1, Next: waiting.ID, Unpark: &change, Promise: &promised}); got != webhook.Committed {
		t.Errorf("step: %s, want committed", got)
	}
	s.wantRow(t, after)
	s.wantPromise(t, promised.ID, &promised)
	s.wantSequence(t, webhook.Sequence{ID: id, Last: 1})
	if got := s.step(t, s.claim(t, waiting.ID, "c2", now), webhook.Turn{Sequence: id, Last: 1, Number: 2}); got != webhook.Committed {
		t.Errorf("the next step: %s, want committed", got)
	}
	s.wantSequence(t, webhook.Sequence{ID: id, Last: 2})
}

// Failing and holding a parked row clear its slot with it; a slot that is gone
// keeps nobody in PARKED.
func (s suite) leaveSlot(t *testing.T) {
	failed, held, bare := s.parked(t, "leave", 2), s.parked(t, "leave", 3), s.parked(t, "leave", 4)
	if ok, err := s.Fail(t.Context(), failed.Fail(now, "gap_expired", keep), webhook.NewOutbox(failed, now, now).ID); err != nil || !ok {
		t.Fatalf("fail: %v, %v", ok, err)
	}
	s.wantRow(t, failed.Fail(now, "gap_expired", keep).Apply(failed))
	hold := held.Hold("held")
	act := webhook.Act{ID: "a", At: now, Name: "inbox hold", Subject: "event " + string(held.ID), Who: "test"}
	if ok, err := s.Hold(t.Context(), hold, webhook.NewHeldOutbox(hold.Apply(held), now), act); err != nil || !ok {
		t.Fatalf("hold: %v, %v", ok, err)
	}
	s.wantRow(t, hold.Apply(held))
	s.wantSequence(t, webhook.Sequence{ID: sequenceID("leave"), Parked: map[int64]webhook.InboxID{4: bare.ID}})

	elsewhere := bare.Fail(now, "gap_expired", keep)
	elsewhere.Leaves.Number = 9
	if ok, err := s.Fail(t.Context(), elsewhere, webhook.NewOutbox(bare, now, now).ID); err != nil || !ok {
		t.Fatalf("fail without a slot: %v, %v", ok, err)
	}
	if ok, err := s.Fail(t.Context(), elsewhere, webhook.NewOutbox(bare, now, now).ID); err != nil || ok {
		t.Errorf("fail again: %v, %v; want refused", ok, err)
	}
}

func (s suite) tickets(t *testing.T) {
	k := key("tickets")
	for want := int64(1); want <= 3; want++ {
		if got, err := s.Ticket(t.Context(), k); err != nil || got != want {
			t.Errorf("ticket %d, %v; want %d", got, err, want)
		}
	}
}

func (s suite) postpone(t *testing.T) {
	for name, due := range map[string]time.Duration{"near": time.Minute, "far": time.Hour} {
		row := Row("postpone-"+name, 1)
		s.accept(t, row)
		o := *promise(row)
		if ok, err := s.MarkPublished(t.Context(), o.Publish(now)); err != nil || !ok {
			t.Fatalf("publish: %v, %v", ok, err)
		}
		if ok, err := s.Postpone(t.Context(), o.ID, o.Gen+1, now.Add(due), now); err != nil || ok {
			t.Errorf("another generation: %v, %v; want refused", ok, err)
		}
		if ok, err := s.Postpone(t.Context(), o.ID, o.Gen, now.Add(due), now); err != nil || !ok {
			t.Errorf("postpone: %v, %v", ok, err)
		}
		o.Wakes = 1
		want := o.Postponed(now.Add(due), now)
		s.wantPromise(t, o.ID, &want)
	}
	if ok, err := s.Postpone(t.Context(), "none", 0, now, now); err != nil || ok {
		t.Errorf("a promise that is gone: %v, %v; want refused", ok, err)
	}
}
