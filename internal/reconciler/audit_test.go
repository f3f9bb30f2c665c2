package reconciler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/crashtest"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// audited reads what the daily comparison found from the last run's log line.
func audited(t *testing.T, log *bytes.Buffer) map[string]int {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	var fields map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &fields); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for name, v := range fields {
		if kind, ok := strings.CutPrefix(name, "audit_"); ok && kind != "age_s" {
			found[kind] = int(v.(float64))
		}
	}
	return found
}

// far keeps a promise asleep until long after the comparison.
func far(o webhook.Outbox, w *sim.World) webhook.Outbox {
	o.WakeAt = w.Now().Add(36 * time.Hour)
	return o
}

func promiseOf(row webhook.Inbox, w *sim.World) webhook.Outbox {
	return far(webhook.NewOutbox(row, w.Now(), w.Now()), w)
}

func failed(t *testing.T, w *sim.World, row webhook.Inbox) webhook.Inbox {
	t.Helper()
	return change(t, w, row.Fail(w.Now(), "by_hand", time.Hour*24*400))
}

// A difference made by hand, what the comparison says and does, and where the
// event ends.
type difference struct {
	name     string
	arrange  func(t *testing.T, w *sim.World, row webhook.Inbox)
	want     map[string]int
	ends     webhook.Status
	outcome  webhook.Outcome
	promises int // left once all rests
	entries  int // in the ledger
}

func differences() []difference {
	processed := func(w *sim.World, row webhook.Inbox) webhook.Inbox {
		w.Settle()
		return w.Row(row.ID)
	}
	return []difference{
		{
			name: "nothing", arrange: func(_ *testing.T, w *sim.World, row webhook.Inbox) { processed(w, row) },
			want: map[string]int{"compared": 1}, ends: webhook.Processed, outcome: webhook.Applied, entries: 1,
		},
		{
			name: "a waiting row without a promise", arrange: func(_ *testing.T, w *sim.World, row webhook.Inbox) {
				w.DropStream()
				w.ForgetPromise(row.ID)
			},
			want: map[string]int{"compared": 1, "open_without_promise": 1, "faults": 1}, ends: webhook.Processed, outcome: webhook.Applied, entries: 1,
		},
		{
			name: "a row claimed by the dead, without a promise", arrange: func(t *testing.T, w *sim.World, row webhook.Inbox) {
				w.DropStream()
				change(t, w, webhook.Claim(row.ID, "dead", w.Now(), time.Minute, 5))
				w.ForgetPromise(row.ID)
			},
			want: map[string]int{"compared": 1, "open_without_promise": 1, "faults": 1}, ends: webhook.Processed, outcome: webhook.Applied, entries: 1,
		},
		{
			name: "a held row without a promise", arrange: func(t *testing.T, w *sim.World, row webhook.Inbox) {
				w.DropStream()
				change(t, w, row.Hold("by_hand"))
				w.ForgetPromise(row.ID)
			},
			want: map[string]int{"compared": 1, "open_without_promise": 1, "faults": 1}, ends: webhook.Held, promises: 1,
		},
		{
			name: "an applied row whose promise stayed", arrange: func(_ *testing.T, w *sim.World, row webhook.Inbox) {
				w.PutPromise(promiseOf(processed(w, row), w))
				w.DropStream()
			},
			want: map[string]int{"compared": 1, "promise_left": 1}, ends: webhook.Processed, outcome: webhook.Applied, entries: 1,
		},
		{
			name: "an applied row with a promise of a later life", arrange: func(_ *testing.T, w *sim.World, row webhook.Inbox) {
				ahead := promiseOf(processed(w, row), w)
				ahead.Gen += 7
				w.PutPromise(ahead)
				w.DropStream()
			},
			want: map[string]int{"compared": 1, "promise_ahead": 1, "faults": 1}, ends: webhook.Processed, outcome: webhook.Applied, entries: 1,
		},
		{
			name: "an open row with a promise of a later life", arrange: func(_ *testing.T, w *sim.World, row webhook.Inbox) {
				ahead := promiseOf(row, w)
				ahead.Gen += 7
				w.PutPromise(ahead)
				w.DropStream()
			},
			want: map[string]int{"compared": 1, "promise_ahead": 1, "faults": 1}, ends: webhook.Processed, outcome: webhook.Applied, entries: 1,
		},
		{
			name: "an applied row without a mark", arrange: func(_ *testing.T, w *sim.World, row webhook.Inbox) {
				processed(w, row)
				w.ForgetMark(row.ID, 0)
			},
			want: map[string]int{"compared": 1, "mark_missing": 1, "faults": 1}, ends: webhook.Processed, outcome: webhook.Applied, entries: 1,
		},
		{
			name: "an open row that was applied in another life", arrange: func(_ *testing.T, w *sim.World, row webhook.Inbox) {
				w.WriteMark(webhook.Mark{InboxID: row.ID, At: w.Now()})
				w.PutPromise(promiseOf(row, w))
				w.DropStream()
			},
			want: map[string]int{"compared": 1, "marked_but_open": 1, "faults": 1}, ends: webhook.Processed, outcome: webhook.AlreadyApplied,
		},
		{
			name: "an open row that was applied in another life, without a promise", arrange: func(_ *testing.T, w *sim.World, row webhook.Inbox) {
				w.DropStream()
				w.WriteMark(webhook.Mark{InboxID: row.ID, At: w.Now()})
				w.ForgetPromise(row.ID)
			},
			want: map[string]int{"compared": 1, "open_without_promise": 1, "marked_but_open": 1, "faults": 2}, ends: webhook.Processed, outcome: webhook.AlreadyApplied,
		},
		{
			name: "a failed row that was applied in another life", arrange: func(t *testing.T, w *sim.World, row webhook.Inbox) {
				w.DropStream()
				w.WriteMark(webhook.Mark{InboxID: row.ID, At: w.Now()})
				failed(t, w, row)
				w.ForgetPromise(row.ID)
			},
			want: map[string]int{"compared": 1, "marked_but_failed": 1, "faults": 1}, ends: webhook.Failed,
		},
		{
			name: "an open row whose body is gone", arrange: func(_ *testing.T, w *sim.World, row webhook.Inbox) {
				w.ForgetBody(row.BodyID)
				w.PutPromise(promiseOf(row, w))
				w.DropStream()
			},
			want: map[string]int{"compared": 1, "body_gone": 1, "faults": 1}, ends: webhook.Failed,
		},
	}
}

// Proves R1, R2, A6: each difference is found, counted by its kind, mended where
// that is safe, and no event is applied twice by it.
func TestEachDifferenceIsFoundOnceADayLater(t *testing.T) {
	t.Parallel()
	for _, tt := range differences() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			w, row := world(t, sim.Options{Log: &log})
			tt.arrange(t, w, row)
			w.Reconcile()
			if diff := cmp.Diff(map[string]int{"compared": 0}, audited(t, &log)); diff != "" {
				t.Errorf("before its time (-want +got):\n%s", diff)
			}
			w.Advance(25 * time.Hour)
			w.Reconcile()
			if diff := cmp.Diff(tt.want, audited(t, &log)); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			w.Rest()
			wantEnd(t, w, row.ID, tt)
			w.Advance(2 * time.Hour)
			w.Reconcile()
			if got := audited(t, &log); got["compared"] != 0 {
				t.Errorf("compared again: %v", got)
			}
		})
	}
}

func wantEnd(t *testing.T, w *sim.World, id webhook.InboxID, want difference) {
	t.Helper()
	row := w.Row(id)
	entries, _ := w.Ledger()
	if row.Status != want.ends || row.Outcome != want.outcome || len(w.Outbox()) != want.promises || entries[id] != want.entries {
		t.Errorf("it ends %s %s with %d promises and %d ledger entries; want %s %s, %d and %d",
			row.Status, row.Outcome, len(w.Outbox()), entries[id], want.ends, want.outcome, want.promises, want.entries)
	}
}

// A row that cannot be read is counted, and hides no other.
func TestAnUnreadableEventIsCountedAndHidesNoOther(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, row := world(t, sim.Options{Log: &log})
	w.Settle()
	w.Garble(row.ID)
	w.Reconcile()
	w.Advance(25 * time.Hour)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"compared": 1, "row_unreadable": 1, "faults": 1}, audited(t, &log)); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// Proves R2, T4, T7: the reconciler dies before and after each of its writes, and
// the comparison ends as if it had not.
func TestADeathInTheComparisonChangesNothing(t *testing.T) {
	t.Parallel()
	for i, tt := range differences() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := prepared(t, differences()[i])
			from := len(w.Reconciler.Switch.Calls())
			w.Reconcile()
			for n, call := range w.Reconciler.Switch.Calls()[from:] {
				if !slices.Contains([]string{"DynamoDB.UpdateItem", "DynamoDB.DeleteItem", "DynamoDB.TransactWriteItems"}, call.Operation) {
					continue
				}
				for _, side := range []crashtest.Side{crashtest.Before, crashtest.After} {
					w := prepared(t, differences()[i])
					w.Reconciler.Switch.KillAt(n+1, side)
					w.Reconcile()
					w.Advance(2 * time.Minute)
					w.Reconcile()
					w.Rest()
					wantEnd(t, w, demoID, tt)
				}
			}
		})
	}
}

var demoID = webhook.DeriveInboxID("demo", "stripe", "evt_1")

// prepared is a world whose only event differs, on the eve of its comparison.
func prepared(t *testing.T, d difference) *sim.World {
	t.Helper()
	w, row := world(t, sim.Options{})
	d.arrange(t, w, row)
	w.Reconcile()
	w.Advance(25 * time.Hour)
	return w
}

// many accepts events of one endpoint, some of them open without a promise.
func many(t *testing.T, w *sim.World, events int) {
	t.Helper()
	for i := range events {
		row := webhook.Inbox{
			ID: webhook.InboxID(fmt.Sprintf("in_%04d", i)), Endpoint: "demo", Status: webhook.Failed, ReceivedAt: w.Now().Add(time.Duration(i) * time.Second),
		}
		if i%50 == 0 {
			row.Status = webhook.Received
		}
		if _, err := w.Outside.Accept(t.Context(), row, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Proves R1: a comparison whose time is up goes on where it stopped: each event is
// compared once, though the pages are many and the runs are cut off.
func TestTheComparisonGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	const events = 2000
	var log bytes.Buffer
	stop := &stopAfter{operation: "Query", calls: 1 << 30}
	w := sim.New(t, sim.Options{Log: &log, Middleware: map[string]func(*middleware.Stack) error{"reconciler": stop.middleware}})
	w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_reconciler")
	many(t, w, events)
	w.Reconcile()
	w.Advance(25 * time.Hour)
	compared, found, runs := 0, 0, 0
	for ; runs < 20; runs++ {
		// The due index takes 16 queries, the deliveries as many, the endpoints one,
		// and each window 16 or more.
		stop.seen, stop.calls = 0, 16+16+1+9
		w.Reconcile()
		got := audited(t, &log)
		compared, found = compared+got["compared"], found+got["open_without_promise"]
		if w.ReconcileErr == nil {
			break
		}
		w.Advance(time.Minute)
	}
	if compared != events || found != events/50 || runs < 3 {
		t.Errorf("%d events compared and %d requeued in %d runs; want %d and %d in several", compared, found, runs, events, events/50)
	}
}

// Proves R1: the end of a run's time is no error, and no event is compared twice
// or left out because of it.
func TestAComparisonWhoseTimeIsUpGoesOn(t *testing.T) {
	t.Parallel()
	const events = 2000
	w := sim.New(t, sim.Options{})
	w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_reconciler")
	many(t, w, events)
	everything(w).Audit(t.Context(), time.Minute)
	w.Advance(25 * time.Hour)
	told := map[webhook.InboxID]int{}
	compared, runs := 0, 0
	for done := false; !done && runs < 40; runs++ {
		ctx, cancel := context.WithCancel(t.Context())
		c := everything(w).Comparer
		c.Store = &cutOff{Store: w.Outside, after: 5, cut: cancel}
		report := c.Audit(ctx, time.Minute)
		if !report.Ran || report.Err != nil {
			t.Fatalf("run %d: %+v", runs, report)
		}
		for _, d := range report.Details {
			told[d.InboxID]++
		}
		compared += report.Compared
		done = ctx.Err() == nil
		cancel()
	}
	for id, n := range told {
		if n != 1 {
			t.Errorf("%s was found %d times", id, n)
		}
	}
	if compared != events || len(told) != events/50 || runs < 4 {
		t.Errorf("%d events compared and %d requeued in %d runs; want %d and %d in several", compared, len(told), runs, events, events/50)
	}
}
