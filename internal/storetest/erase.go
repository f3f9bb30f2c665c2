package storetest

import (
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

// applied accepts an event and completes it.
func (s suite) applied(t *testing.T, name string) webhook.Inbox {
	t.Helper()
	row := Row(name, 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	change := claimed.Complete(webhook.Applied, now, keep)
	v, err := s.Complete(t.Context(), webhook.Completion{Change: change, Claim: "c", Mark: &webhook.Mark{InboxID: row.ID, At: now}})
	if err != nil || v != webhook.Committed {
		t.Fatalf("complete: %v, %v", v, err)
	}
	return change.Apply(claimed)
}

// of returns what a list holds of one event.
func of[T any](t *testing.T, list iter.Seq2[T, error], id func(T) webhook.InboxID, want webhook.InboxID) []T {
	t.Helper()
	var found []T
	for entry, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		if id(entry) == want {
			found = append(found, entry)
		}
	}
	return found
}

func actOn(row webhook.Inbox, id, name string) webhook.Act {
	return webhook.Act{ID: id, At: now, Name: name, Subject: "event " + string(row.ID), Who: "ada", Why: "request 77"}
}

func (s suite) erase(t *testing.T) {
	row := s.applied(t, "erase")
	at := now.Add(time.Hour)
	change := row.Erase(at)
	entry := webhook.Erased{InboxID: row.ID, Endpoint: row.Endpoint, Tenant: row.Tenant, BodyID: row.BodyID, Effects: []webhook.BodyID{"bd_1", "bd_2"}, At: at}
	act := actOn(row, "erase-1", "erase")
	for i, want := range []bool{true, false} { // the second is the try after a reply that never came
		if ok, err := s.EraseBy(t.Context(), change, entry, act); err != nil || ok != want {
			t.Fatalf("erase %d: %v, %v; want %v", i, ok, err, want)
		}
		s.wantRow(t, change.Apply(row))
	}
	listed := func(since, until time.Time) []webhook.Erased {
		return of(t, s.ErasedEvents(t.Context(), since, until), func(e webhook.Erased) webhook.InboxID { return e.InboxID }, row.ID)
	}
	if diff := cmp.Diff([]webhook.Erased{entry}, listed(at.Add(-72*time.Hour), at)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if early, late := listed(at.Add(-time.Hour), at.Add(-time.Second)), listed(at.Add(time.Second), at.Add(time.Hour)); len(early)+len(late) > 0 {
		t.Errorf("listed outside its time: %v, %v", early, late)
	}
	if acts, err := s.ActsOn(t.Context(), act.Subject); err != nil || !cmp.Equal([]webhook.Act{act}, acts) {
		t.Errorf("record %v, error %v", acts, err)
	}
	after := change.Apply(row)
	for name, c := range map[string]webhook.Change{"reprocess": after.Reprocess(now.Add(-40 * 24 * time.Hour)), "erase": after.Erase(at)} {
		if _, ok, err := s.Change(t.Context(), c); err != nil || ok {
			t.Errorf("%s of an erased row: %v, %v; want it refused", name, ok, err)
		}
	}
	if existing, err := s.Accept(t.Context(), Row("erase", 1), nil); err != nil || existing == nil || !existing.ErasedAt.Equal(at) {
		t.Errorf("a repeat: %v, %v; want the erased row", existing, err)
	}
}

func (s suite) legalHold(t *testing.T) {
	row := s.applied(t, "hold by law")
	change := row.HoldByLaw()
	entry := webhook.HeldByLaw{InboxID: row.ID, Endpoint: row.Endpoint, At: now, Who: "ada", Why: "case 14"}
	for i, want := range []bool{true, false} {
		if ok, err := s.HoldByLawBy(t.Context(), change, entry, actOn(row, "hold-1", "legal-hold set")); err != nil || ok != want {
			t.Fatalf("hold %d: %v, %v; want %v", i, ok, err, want)
		}
	}
	row = change.Apply(row)
	s.wantRow(t, row)
	listed := func() []webhook.HeldByLaw {
		return of(t, s.LegalHolds(t.Context()), func(h webhook.HeldByLaw) webhook.InboxID { return h.InboxID }, row.ID)
	}
	if diff := cmp.Diff([]webhook.HeldByLaw{entry}, listed()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if ok, err := s.EraseBy(t.Context(), row.Erase(now), webhook.Erased{InboxID: row.ID, At: now}, actOn(row, "erase-2", "erase")); err != nil || ok {
		t.Errorf("erase of a row under legal hold: %v, %v; want it refused", ok, err)
	}
	letGo := row.LetGo(now.Add(time.Hour), keep)
	for i, want := range []bool{true, false} {
		if ok, err := s.LetGoBy(t.Context(), letGo, actOn(row, "clear-1", "legal-hold clear")); err != nil || ok != want {
			t.Fatalf("let go %d: %v, %v; want %v", i, ok, err, want)
		}
	}
	s.wantRow(t, letGo.Apply(row))
	if held := listed(); len(held) > 0 {
		t.Errorf("still listed: %v", held)
	}
}
