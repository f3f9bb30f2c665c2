package reconciler_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/reconciler"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// Proves R1: an operator's comparison that is interrupted goes on, with what it
// had counted; asked to begin anew, it does.
func TestAnInterruptedPassGoesOn(t *testing.T) {
	t.Parallel()
	const events = 1500
	w := sim.New(t, sim.Options{})
	many(t, w, events)
	ctx, cancel := context.WithCancel(t.Context())
	pass := everything(w)
	pass.Store = &cutOff{Store: w.Outside, after: 6, cut: cancel}
	first, err := pass.Run(ctx)
	if err == nil || first.Done || first.Compared == 0 || first.Compared == events {
		t.Fatalf("the first run: %+v, error %v", first, err)
	}
	second, err := everything(w).Run(t.Context())
	want := reconciler.PassProgress{
		Tally: reconciler.Tally{Compared: events, Found: map[reconciler.Finding]int{{Kind: reconciler.OpenWithoutPromise, Deed: reconciler.Requeued}: events / 50}},
		Done:  true, Resumed: true,
	}
	if diff := cmp.Diff(want, second); err != nil || diff != "" {
		t.Errorf("the second run, error %v (-want +got):\n%s", err, diff)
	}
	third, err := everything(w).Run(t.Context())
	want = reconciler.PassProgress{Tally: reconciler.Tally{Compared: events, Found: map[reconciler.Finding]int{}}, Done: true}
	if diff := cmp.Diff(want, third); err != nil || diff != "" {
		t.Errorf("a new pass, error %v (-want +got):\n%s", err, diff)
	}
}

func (c *cutOff) RecentPage(ctx context.Context, e webhook.EndpointID, shard int, from, to time.Time, after string, limit int) ([]webhook.InboxID, string, error) {
	if c.after--; c.after == 0 {
		c.cut()
	}
	return c.Store.RecentPage(ctx, e, shard, from, to, after, limit)
}

// cutOff ends a context after some pages.
type cutOff struct {
	reconciler.Store
	after int
	cut   func()
}

func (c *cutOff) InboxPage(ctx context.Context, segment, segments int, after string, limit int) ([]webhook.Inbox, []webhook.InboxID, string, error) {
	if c.after--; c.after == 0 {
		c.cut()
	}
	return c.Store.InboxPage(ctx, segment, segments, after, limit)
}

// One endpoint's events from a time on, across midnight, and nobody else's.
func TestAPassOverOneEndpoint(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	demo := w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_reconciler")
	other := w.AddEndpoint("stripe", "other", "whsec_test_secret_for_the_other_one")
	send := func(e *sim.Endpoint, id string) webhook.InboxID {
		w.Send(w.Event(e, provider.SampleOptions{Type: "payment_intent.succeeded", EventID: id, Amount: 5, Currency: "EUR"}))
		w.DropStream()
		inbox := webhook.DeriveInboxID(webhook.Scope(e.ID), "stripe", webhook.EventID(id))
		w.ForgetPromise(inbox)
		return inbox
	}
	send(demo, "evt_early")
	w.Advance(6 * time.Hour)
	since := w.Now()
	send(demo, "evt_1")
	send(other, "evt_2")
	w.Advance(8 * time.Hour)
	send(demo, "evt_3")
	w.Advance(time.Minute)
	pass := everything(w)
	pass.Scope = reconciler.Scope{Endpoint: "demo", Since: since, Till: w.Now()}
	got, err := pass.Run(t.Context())
	want := reconciler.PassProgress{
		Tally: reconciler.Tally{Compared: 2, Found: map[reconciler.Finding]int{{Kind: reconciler.OpenWithoutPromise, Deed: reconciler.Requeued}: 2}},
		Done:  true,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// Of two passes at once one is turned away.
func TestOnePassAtATime(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	if _, ok, err := w.Outside.Lease(t.Context(), "reconcile", "another", w.Now(), w.Now().Add(time.Minute)); err != nil || !ok {
		t.Fatalf("lease: %v, %v", ok, err)
	}
	if _, err := everything(w).Run(t.Context()); err != reconciler.ErrPassTaken { //nolint:errorlint // it is returned bare
		t.Errorf("error %v, want %v", err, reconciler.ErrPassTaken)
	}
}

// Only told: the tables are as they were.
func TestAPassThatOnlyReportsChangesNothing(t *testing.T) {
	t.Parallel()
	w, row := world(t, sim.Options{})
	w.DropStream()
	w.ForgetPromise(row.ID)
	pass := everything(w)
	pass.ReportOnly = true
	got, err := pass.Run(t.Context())
	want := map[reconciler.Finding]int{{Kind: reconciler.OpenWithoutPromise, Deed: reconciler.Reported}: 1}
	if diff := cmp.Diff(want, got.Found); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(row, w.Row(row.ID)); diff != "" || len(w.Outbox()) != 0 {
		t.Errorf("%d promises, row (-before +after):\n%s", len(w.Outbox()), diff)
	}
}
