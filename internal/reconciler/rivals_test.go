package reconciler_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/reconciler"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// between lets a rival act right before the reconciler's next call of an operation.
type between struct {
	operation string
	act       func()
}

func (b *between) middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("between", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if act := b.act; act != nil && middleware.GetOperationName(ctx) == b.operation {
			b.act = nil
			act()
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.After)
}

// everything is an operator's comparison of the whole inbox.
func everything(w *sim.World) *reconciler.Pass {
	return &reconciler.Pass{Comparer: &reconciler.Comparer{Store: w.Outside, Now: w.Now, NewID: w.NewID, AtOnce: 1, Slack: time.Second}}
}

// Of two auditors at once, each between the other's reads and writes, one mends.
func TestTwoAuditorsAtOnceMendOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	rival := &between{operation: "TransactWriteItems"}
	w, row := world(t, sim.Options{Log: &log, Middleware: map[string]func(*middleware.Stack) error{"reconciler": rival.middleware}})
	w.DropStream()
	w.ForgetPromise(row.ID)
	w.Reconcile()
	w.Advance(25 * time.Hour)
	var theirs reconciler.PassProgress
	rival.act = func() {
		var err error
		if theirs, err = everything(w).Run(t.Context()); err != nil {
			t.Error(err)
		}
	}
	w.Reconcile()
	want := map[reconciler.Finding]int{{Kind: reconciler.OpenWithoutPromise, Deed: reconciler.Requeued}: 1}
	if diff := cmp.Diff(want, theirs.Found); diff != "" {
		t.Errorf("the rival (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"compared": 1}, audited(t, &log)); diff != "" {
		t.Errorf("the slower one (-want +got):\n%s", diff)
	}
	if got := w.Row(row.ID); got.Fence != row.Fence+1 {
		t.Errorf("fence %d, want %d: one requeue", got.Fence, row.Fence+1)
	}
	w.Rest()
	wantEnd(t, w, row.ID, difference{ends: webhook.Processed, outcome: webhook.Applied, entries: 1})
}

// An operator replays the event between the comparison's look and its write: the
// promise that the replay has put stays, also where it has the very generation
// that was seen.
func TestAnOldLookNeverRemovesAPromisePutAnew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		operation string
		ahead     webhook.Fence
	}{
		"a promise that stayed":                       {"DeleteItem", 0},
		"a promise ahead, of the replay's generation": {"TransactWriteItems", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			rival := &between{operation: tt.operation}
			w, row := world(t, sim.Options{Log: &log, Middleware: map[string]func(*middleware.Stack) error{"reconciler": rival.middleware}})
			w.DropStream()
			row = failed(t, w, row)
			old := promiseOf(row, w)
			old.Gen = row.Fence + tt.ahead
			w.PutPromise(old)
			w.Reconcile()
			w.Advance(25 * time.Hour)
			rival.act = func() { w.Replay(row.ID) }
			w.Reconcile()
			replayed := w.Row(row.ID)
			if replayed.Status != webhook.Received || replayed.Fence != row.Fence+1 {
				t.Fatalf("the rival did not replay: %s, fence %d", replayed.Status, replayed.Fence)
			}
			if diff := cmp.Diff([]webhook.Outbox{webhook.NewOutbox(replayed, w.Now(), w.Now())}, w.Outbox()); diff != "" {
				t.Errorf("promises (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]int{"compared": 1}, audited(t, &log)); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

// The minute's scan read a promise of an ended row, and the row was replayed
// before it acted: the new promise stays.
func TestAnOldScanNeverRemovesAPromisePutAnew(t *testing.T) {
	t.Parallel()
	rival := &between{operation: "DeleteItem"}
	w, row := world(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"reconciler": rival.middleware}})
	w.DropStream()
	row = failed(t, w, row)
	w.Advance(2 * time.Minute)
	rival.act = func() { w.Replay(row.ID) }
	w.Reconcile()
	replayed := w.Row(row.ID)
	if diff := cmp.Diff([]webhook.Outbox{webhook.NewOutbox(replayed, w.Now(), w.Now())}, w.Outbox()); diff != "" {
		t.Errorf("promises (-want +got):\n%s", diff)
	}
	w.Rest()
	wantEnd(t, w, row.ID, difference{ends: webhook.Processed, outcome: webhook.Applied, entries: 1})
}

// A promise of a later life than its ended row's would be met for ever: the
// minute's scan removes it.
func TestTheScanRemovesAPromiseOfALaterLife(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, row := world(t, sim.Options{Log: &log})
	w.Settle()
	ahead := webhook.NewOutbox(w.Row(row.ID), w.Now(), w.Now())
	ahead.Gen += 7
	w.PutPromise(ahead)
	w.DropStream()
	w.Advance(time.Minute)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"promise_ahead": 1}, acts(t, &log)); diff != "" || len(w.Outbox()) != 0 {
		t.Errorf("%d promises, acts (-want +got):\n%s", len(w.Outbox()), diff)
	}
}

// A worker has the row when it is requeued: it loses its claim, and the event is
// applied once, after the lease.
func TestARequeueTakesTheClaimAndNothingTwice(t *testing.T) {
	t.Parallel()
	w, row := world(t, sim.Options{})
	w.DropStream()
	w.ForgetPromise(row.ID)
	claimed := change(t, w, webhook.Claim(row.ID, "alive", w.Now(), time.Minute, 5))
	if _, err := everything(w).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	requeued := claimed
	requeued.Fence++
	if diff := cmp.Diff(requeued, w.Row(row.ID)); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	want := webhook.NewOutbox(requeued, claimed.LeaseUntil.Add(time.Second), w.Now())
	if diff := cmp.Diff([]webhook.Outbox{want}, w.Outbox()); diff != "" {
		t.Errorf("promise (-want +got):\n%s", diff)
	}
	if _, ok, err := w.Outside.Change(t.Context(), claimed.Complete(webhook.Applied, w.Now(), time.Hour)); ok || err != nil {
		t.Errorf("the worker still completes: %v, %v", ok, err)
	}
	w.Rest()
	wantEnd(t, w, row.ID, difference{ends: webhook.Processed, outcome: webhook.Applied, entries: 1})
}

// Proves A6: an event whose promise was lost comes back too late for its body to
// last, and fails where an operator sees it.
func TestARequeuedRowWhoseBodyIsAboutToExpireFails(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, row := world(t, sim.Options{Log: &log})
	w.DropStream()
	w.ForgetPromise(row.ID)
	w.Advance(28*24*time.Hour + time.Minute)
	progress, err := everything(w).Run(t.Context())
	if err != nil || progress.Of(reconciler.OpenWithoutPromise) != 1 {
		t.Fatalf("%+v, error %v", progress, err)
	}
	w.DropStream()
	w.Advance(time.Minute)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"body_warning": 1, "body_expiring": 1}, acts(t, &log)); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
	if got := w.Row(row.ID); got.Status != webhook.Failed || got.LastError != "body_expiring" {
		t.Errorf("it is %s (%s)", got.Status, got.LastError)
	}
}
