package reconciler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/reconciler"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// world returns a world with one accepted event, and its row.
func world(t *testing.T, o sim.Options) (*sim.World, webhook.Inbox) {
	t.Helper()
	w := sim.New(t, o)
	e := w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_reconciler")
	d := w.Event(e, provider.SampleOptions{Type: "payment_intent.succeeded", EventID: "evt_1", Amount: 5, Currency: "EUR"})
	if status := w.Send(d); status != 200 {
		t.Fatalf("status %d", status)
	}
	return w, w.Row(webhook.DeriveInboxID("demo", "stripe", "evt_1"))
}

// acts reads what the last run did from its log line.
func acts(t *testing.T, log *bytes.Buffer) map[string]int {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	var fields map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &fields); err != nil {
		t.Fatal(err)
	}
	did := map[string]int{}
	for name, v := range fields {
		if act, ok := strings.CutPrefix(name, "reconciler_"); ok {
			did[act] = int(v.(float64))
		}
	}
	return did
}

// change puts a row into a state by hand.
func change(t *testing.T, w *sim.World, c webhook.Change) webhook.Inbox {
	t.Helper()
	row, ok, err := w.Outside.Change(t.Context(), c)
	if err != nil || !ok {
		t.Fatalf("change: %v, %v", ok, err)
	}
	return *row
}

// The protocol's table "who comes for what", row by row. Proves R1, R2, D5, A6.
func TestWhoComesForWhat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		arrange func(t *testing.T, w *sim.World, row webhook.Inbox)
		want    map[string]int // what the run does
		ends    webhook.Status // where the event ends, once all rests
	}{
		{"a row whose time has not come is left alone", func(_ *testing.T, w *sim.World, _ webhook.Inbox) {
			w.Advance(59 * time.Second)
		}, map[string]int{}, webhook.Processed},
		{"an outbox row that was never published", func(_ *testing.T, w *sim.World, _ webhook.Inbox) {
			w.DropStream()
			w.Advance(time.Minute)
		}, map[string]int{"woken": 1}, webhook.Processed},
		{"a published row whose message is gone", func(_ *testing.T, w *sim.World, _ webhook.Inbox) {
			for w.PumpStream() {
			}
			w.Purge()
			w.Advance(5 * time.Minute)
		}, map[string]int{"woken": 1}, webhook.Processed},
		{"a lease held by the dead, with attempts left", func(t *testing.T, w *sim.World, row webhook.Inbox) {
			change(t, w, webhook.Claim(row.ID, "dead", w.Now(), time.Minute, 5))
			w.Advance(time.Minute + time.Millisecond)
		}, map[string]int{"lease_freed": 1}, webhook.Processed},
		{"a lease held by the dead, with the attempts spent", func(t *testing.T, w *sim.World, row webhook.Inbox) {
			for i := range 5 {
				row = change(t, w, webhook.Claim(row.ID, webhook.ClaimID(fmt.Sprint("dead", i)), w.Now(), time.Minute, 5))
				w.Advance(time.Minute + time.Millisecond)
				if i < 4 {
					row = change(t, w, row.FreeLease(w.Now(), w.Now()))
				}
			}
		}, map[string]int{"exhausted": 1}, webhook.Failed},
		{"a lease that runs", func(t *testing.T, w *sim.World, row webhook.Inbox) {
			w.Advance(time.Minute)
			change(t, w, webhook.Claim(row.ID, "alive", w.Now(), time.Minute, 5))
		}, map[string]int{"sleeping": 1}, webhook.Processed},
		{"a complete whose outbox row stayed", func(t *testing.T, w *sim.World, row webhook.Inbox) {
			claimed := change(t, w, webhook.Claim(row.ID, "c", w.Now(), time.Minute, 5))
			change(t, w, claimed.Complete(webhook.Ignored, w.Now(), time.Hour))
			w.DropStream()
			w.Advance(time.Minute)
		}, map[string]int{"promise_kept": 1}, webhook.Processed},
		{"a waiting row whose attempts are spent", func(t *testing.T, w *sim.World, row webhook.Inbox) {
			for i := range 5 {
				claimed := change(t, w, webhook.Claim(row.ID, webhook.ClaimID(fmt.Sprint("c", i)), w.Now(), time.Minute, 5))
				row = change(t, w, claimed.Retry(w.Now(), "x", false))
			}
			w.DropStream()
			w.Advance(time.Minute)
		}, map[string]int{"exhausted": 1}, webhook.Failed},
		{"a body about to expire under an open row", func(_ *testing.T, w *sim.World, _ webhook.Inbox) {
			w.DropStream()
			w.Advance(28*24*time.Hour + time.Minute)
		}, map[string]int{"body_warning": 1, "body_expiring": 1}, webhook.Failed},
		{"a body that will expire soon", func(_ *testing.T, w *sim.World, _ webhook.Inbox) {
			w.DropStream()
			w.Advance(26 * 24 * time.Hour)
		}, map[string]int{"body_warning": 1, "woken": 1}, webhook.Processed},
		{"a retry due in hours, brought by the due index", func(t *testing.T, w *sim.World, row webhook.Inbox) {
			claimed := change(t, w, webhook.Claim(row.ID, "c", w.Now(), time.Minute, 5))
			next := w.Now().Add(2 * time.Hour)
			c := claimed.Retry(next, "x", false)
			if ok, err := w.Outside.Retry(t.Context(), c, webhook.NewOutbox(c.Apply(claimed), next, w.Now())); err != nil || !ok {
				t.Fatalf("retry: %v, %v", ok, err)
			}
			for w.PumpStream() {
			}
			w.Advance(2*time.Hour - 10*time.Minute)
		}, map[string]int{"woken": 1}, webhook.Processed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			w, row := world(t, sim.Options{Log: &log})
			tt.arrange(t, w, row)
			w.Reconcile()
			if diff := cmp.Diff(tt.want, acts(t, &log)); diff != "" {
				t.Errorf("acts (-want +got):\n%s", diff)
			}
			w.Rest()
			if got := w.Row(row.ID).Status; got != tt.ends {
				t.Errorf("the event ends %s, want %s", got, tt.ends)
			}
			if n := len(w.Outbox()); n != 0 {
				t.Errorf("%d promises are left", n)
			}
		})
	}
}

// A held row waits for an operator: its promise sleeps, and nothing is sent.
func TestAHeldRowsPromiseSleeps(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := sim.New(t, sim.Options{Log: &log})
	row := webhook.Inbox{ID: "in_held", Status: webhook.Held, ReceivedAt: w.Now(), NextAttemptAt: w.Now()}
	promise := webhook.NewOutbox(row, w.Now(), w.Now())
	if _, err := w.Outside.Accept(t.Context(), row, &promise); err != nil {
		t.Fatal(err)
	}
	w.DropStream()
	w.Advance(time.Minute)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"sleeping": 1}, acts(t, &log)); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
	promise.WakeAt = w.Now().Add(6 * time.Hour)
	if diff := cmp.Diff([]webhook.Outbox{promise}, w.Outbox()); diff != "" {
		t.Errorf("promise (-want +got):\n%s", diff)
	}
}

// Proves A6, D6: a held row does not lose its body unseen. It is warned of five
// days before and fails two days before, where an operator can replay it.
func TestAHeldRowFailsBeforeItsBodyIsGone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := sim.New(t, sim.Options{Log: &log})
	row := webhook.Inbox{
		ID: "in_held", Status: webhook.Held, ReceivedAt: w.Now(), NextAttemptAt: w.Now(), BodyExpiresAt: w.Now().Add(30 * 24 * time.Hour),
	}
	promise := webhook.NewHeldOutbox(row, w.Now())
	if _, err := w.Outside.Accept(t.Context(), row, &promise); err != nil {
		t.Fatal(err)
	}
	for w.PumpStream() {
	}
	if n := w.Waiting(); n != 0 {
		t.Errorf("%d messages for a held row", n)
	}
	steps := []struct {
		after time.Duration
		want  map[string]int
	}{
		{24 * 24 * time.Hour, map[string]int{}},
		{25*24*time.Hour + time.Minute, map[string]int{"body_warning": 1, "sleeping": 1}},
		{25*24*time.Hour + time.Hour, map[string]int{}},
		{26 * 24 * time.Hour, map[string]int{"body_warning": 1, "sleeping": 1}},
		{28*24*time.Hour + time.Minute, map[string]int{"body_warning": 1, "body_expiring": 1}},
	}
	for _, step := range steps {
		w.Advance(step.after - w.Now().Sub(sim.Start))
		w.Reconcile()
		if diff := cmp.Diff(step.want, acts(t, &log)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.after, diff)
		}
	}
	if got := w.Row("in_held"); got.Status != webhook.Failed || got.LastError != "body_expiring" || len(w.Outbox()) != 0 {
		t.Errorf("the row is %s (%s), %d promises", got.Status, got.LastError, len(w.Outbox()))
	}
}

// A row that is no outbox row hides no other, and is counted.
func TestAnUnreadableRowHidesNoOther(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, row := world(t, sim.Options{Log: &log})
	w.PutOdd("!first in every order")
	w.PutOdd("~last in every order")
	w.DropStream()
	w.Advance(time.Minute)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"woken": 1, "unreadable": 2}, acts(t, &log)); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
	w.Settle()
	if got := w.Row(row.ID).Status; got != webhook.Processed {
		t.Errorf("the event is %s", got)
	}
}

// An event in a state that only a newer program knows, beside which this one runs
// during a release or after a rollback, is counted and left as it is. Proves A6.
func TestAStateOfANewerProgramIsLeftAlone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, row := world(t, sim.Options{Log: &log})
	want := change(t, w, webhook.Change{ID: row.ID, Guard: webhook.Guard{From: []webhook.Status{row.Status}, Fence: row.Fence}, To: "QUARANTINED"})
	w.DropStream()
	w.Advance(time.Minute)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"unreadable": 1}, acts(t, &log)); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, w.Row(row.ID)); diff != "" || len(w.Outbox()) != 1 {
		t.Errorf("%d promises, row (-want +got):\n%s", len(w.Outbox()), diff)
	}
}

// So is a promise of a topic that only a newer program knows, although its event
// has ended: that program keeps it. Proves D5, A6.
func TestAPromiseOfANewerProgramIsLeftAlone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, row := world(t, sim.Options{Log: &log})
	w.Settle()
	newer := webhook.NewOutbox(row, w.Now(), w.Now())
	newer.ID, newer.Topic = webhook.NewOutboxID(row.ID, "digest", 0), "digest"
	w.PutPromise(newer)
	w.DropStream()
	w.Advance(2 * time.Hour)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"unreadable": 1}, acts(t, &log)); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]webhook.Outbox{newer}, w.Outbox()); diff != "" {
		t.Errorf("promises (-want +got):\n%s", diff)
	}
}

// A page that time did not suffice for is read again by the next run, and not passed
// over until the scan begins anew. Proves R1, A6.
func TestAPageThatWasNotLookedAtIsReadAgain(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, row := world(t, sim.Options{Log: &log})
	w.DropStream()
	w.Advance(time.Minute)
	is := w.Schedule().Reconciler
	late := &reconciler.Reconciler{Store: lateSubjects{is.Store}, Queue: is.Queue, Policy: is.Policy, Now: is.Now, NewID: is.NewID, Chance: is.Chance}
	late.Policy.AuditTime = 0
	bounded, cancel := context.WithTimeout(t.Context(), late.Policy.Slack+time.Second)
	defer cancel()
	if r := late.Run(bounded); !r.Ran || r.Whole || r.Acts["woken"] != 0 {
		t.Fatalf("the first run: %+v", r)
	}
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"woken": 1}, acts(t, &log)); diff != "" {
		t.Errorf("the next run (-want +got):\n%s", diff)
	}
	w.Settle()
	if got := w.Row(row.ID).Status; got != webhook.Processed {
		t.Errorf("the event is %s", got)
	}
}

// lateSubjects reads subjects when the time of the scan is over.
type lateSubjects struct{ reconciler.Store }

func (s lateSubjects) InboxRows(ctx context.Context, ids []webhook.InboxID) (map[webhook.InboxID]webhook.Inbox, []webhook.InboxID, error) {
	<-ctx.Done()
	return s.Store.InboxRows(context.WithoutCancel(ctx), ids)
}

// A reconciler that cannot read says so: its function fails, and no figure
// pretends that nothing is old.
func TestABlindReconcilerIsSeen(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	faults := &sim.Faults{}
	w, _ := world(t, sim.Options{Log: &log, Middleware: map[string]func(*middleware.Stack) error{"reconciler": faults.Middleware}})
	w.Advance(time.Hour)
	faults.Add(sim.Fault{Operation: "Scan", Times: -1, Err: sim.ErrDenied})
	w.Reconcile()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if w.ReconcileErr == nil || strings.Contains(lines[len(lines)-1], "oldest_open_age_s") {
		t.Errorf("error %v, line %s", w.ReconcileErr, lines[len(lines)-1])
	}
}

// A promise without a subject, as a restore can leave it, is reported for an
// hour before it is removed.
func TestAnOrphanIsRemovedAfterAnHour(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := sim.New(t, sim.Options{Log: &log})
	gone := webhook.Inbox{ID: "in_gone", Status: webhook.Received, ReceivedAt: w.Now()}
	promise := webhook.NewOutbox(gone, w.Now(), w.Now())
	if _, err := w.Outside.Accept(t.Context(), gone, &promise); err != nil {
		t.Fatal(err)
	}
	w.Forget(gone.ID)
	w.DropStream()
	w.Advance(59 * time.Minute)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"orphan": 1}, acts(t, &log)); diff != "" {
		t.Errorf("within the hour (-want +got):\n%s", diff)
	}
	w.Advance(time.Minute)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"orphan_removed": 1}, acts(t, &log)); diff != "" {
		t.Errorf("after the hour (-want +got):\n%s", diff)
	}
	if n := len(w.Outbox()); n != 0 {
		t.Errorf("%d promises are left", n)
	}
}

// Of two runners at once one works, and the other goes home.
func TestOneRunnerAtATime(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, _ := world(t, sim.Options{Log: &log})
	w.DropStream()
	w.Advance(time.Minute)
	if _, ok, err := w.Outside.Lease(t.Context(), "reconciler", "another", w.Now(), w.Now().Add(time.Minute)); err != nil || !ok {
		t.Fatalf("lease: %v, %v", ok, err)
	}
	w.Reconcile()
	if !strings.Contains(log.String(), `"decision":"lease_taken"`) {
		t.Errorf("the second runner did not go home: %s", log.String())
	}
	w.Advance(61 * time.Second)
	w.Reconcile()
	if diff := cmp.Diff(map[string]int{"woken": 1}, acts(t, &log)); diff != "" {
		t.Errorf("once the lease is over (-want +got):\n%s", diff)
	}
}

// A queue that takes nothing leaves the wake times as they were, so the next
// minute tries again.
func TestAQueueOutageIsTriedAgain(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	faults := &sim.Faults{}
	w, row := world(t, sim.Options{Log: &log, Middleware: map[string]func(*middleware.Stack) error{"reconciler": faults.Middleware}})
	w.DropStream()
	w.Advance(time.Minute)
	faults.Add(sim.Fault{Operation: "SendMessageBatch", Times: 1, Err: sim.ErrLost})
	before := w.Outbox()
	w.Reconcile()
	if diff := cmp.Diff(before, w.Outbox()); diff != "" {
		t.Errorf("promises (-before +after):\n%s", diff)
	}
	w.Advance(time.Minute)
	w.Reconcile()
	w.Settle()
	if got := w.Row(row.ID).Status; got != webhook.Processed {
		t.Errorf("the event is %s", got)
	}
}

// A run whose time is up leaves cursors, and the next goes on behind them: the
// rows at the end of the table are reached too.
func TestAScanGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	const rows = 100
	stop := &stopAfter{operation: "Scan", calls: 3}
	w := sim.New(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"reconciler": stop.middleware}})
	for i := range rows {
		row := webhook.Inbox{ID: webhook.InboxID(fmt.Sprintf("in_%03d", i)), Status: webhook.Processed, ReceivedAt: w.Now()}
		promise := webhook.NewOutbox(row, w.Now(), w.Now())
		if _, err := w.Outside.Accept(t.Context(), row, &promise); err != nil {
			t.Fatal(err)
		}
	}
	w.DropStream()
	w.Advance(time.Minute)
	left := rows
	for range 10 {
		stop.seen = 0
		w.Reconcile()
		now := len(w.Outbox())
		if now == 0 {
			return
		}
		if now >= left {
			t.Fatalf("a run made no progress: %d promises before, %d after", left, now)
		}
		left = now
	}
	t.Errorf("%d promises are left after ten runs", left)
}

// stopAfter fails an operation after some calls.
type stopAfter struct {
	operation string
	calls     int
	seen      int
}

func (s *stopAfter) middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("stopAfter", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if middleware.GetOperationName(ctx) == s.operation {
			if s.seen++; s.seen > s.calls {
				return middleware.InitializeOutput{}, middleware.Metadata{}, sim.ErrLost
			}
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.After)
}
