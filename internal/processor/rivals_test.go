package processor_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// An event that a rival works on is left to it: nothing is planned beside it, and
// its row stays as it is. Proves W1.
func TestAnEventInARivalsHandsIsLeftToIt(t *testing.T) {
	t.Parallel()
	plans := 0
	w := world(t, sim.Options{Handlers: router(func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
		plans++
		return standard(ctx, ev, r)
	})}, "evt_1")
	rivals, claimed, err := w.Outside.Change(t.Context(), webhook.Claim(id("evt_1"), "rival", w.Now(), time.Minute, 5))
	if err != nil || !claimed {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	w.Settle()
	if diff := cmp.Diff(*rivals, w.Row(id("evt_1"))); diff != "" || plans != 0 {
		t.Errorf("%d plans, row (-want +got):\n%s", plans, diff)
	}
}

// A run that an operator asked for again is applied once more and tells nobody a
// second time. Proves X1, R3.
func TestAnotherRunTellsNobodyTwice(t *testing.T) {
	t.Parallel()
	plans := 0
	w := world(t, sim.Options{Handlers: router(func(_ context.Context, ev webhook.Event, _ business.Reader) (webhook.Plan, error) {
		plans++
		return webhook.Plan{Outcome: webhook.Applied, Effects: []webhook.Announcement{business.Announce(ev)}}, nil
	})}, "evt_1")
	w.Subscribe("sub_1", nil)
	w.Settle()
	row := w.Row(id("evt_1"))
	change := row.Reprocess(w.Now())
	again := change.Apply(row)
	act := webhook.Act{ID: "act-1", At: w.Now(), Name: "inbox reprocess", Subject: "event " + string(row.ID), Who: "ada"}
	if verdict, err := w.Outside.Reopen(t.Context(), change, again.Run, webhook.NewOutbox(again, w.Now(), w.Now()), act); err != nil || verdict != webhook.Committed {
		t.Fatalf("reopened: %s, %v", verdict, err)
	}
	w.Rest()
	type came struct{ Runs, Plans, Deliveries, Requests int }
	got := came{w.Row(row.ID).Run + 1, plans, len(w.Deliveries()), len(w.Partner.Got())}
	if diff := cmp.Diff(came{2, 2, 1, 1}, got); diff != "" {
		t.Errorf("came to (-want +got):\n%s", diff)
	}
}
