package processor_test

import (
	"context"
	"testing"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/fault"
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

// A claim whose answer was lost, and that the SDK makes again, is the worker's own:
// it works on the event, and needs no second attempt. Proves W1.
func TestAClaimThatIsMadeTwiceIsItsWorkersOwn(t *testing.T) {
	t.Parallel()
	claims := 0
	w := world(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"processor": func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("twice", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			if awsmiddleware.GetOperationName(ctx) == "UpdateItem" {
				if claims++; claims == 1 {
					if _, _, err := next.HandleInitialize(ctx, in); err != nil {
						t.Errorf("the claim: %v", err)
					}
				}
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.After)
	}}}, "evt_1")
	w.Settle()
	if diff := cmp.Diff(end{webhook.Processed, webhook.Applied, 1, ""}, endOf(w.Row(id("evt_1")))); diff != "" || claims == 0 {
		t.Errorf("%d claims, row (-want +got):\n%s", claims, diff)
	}
	w.Rest()
	check(t, w)
}

// A wake-up that meets an ended event tidies up after that life of it alone: one
// that an operator opens in the same moment keeps its promise. Proves R3, A6.
func TestTidyingUpLeavesAReplayedEventItsPromise(t *testing.T) {
	t.Parallel()
	plans := 0
	faults := &sim.Faults{}
	w := world(t, sim.Options{
		Middleware: map[string]func(*middleware.Stack) error{"processor": faults.Middleware},
		Handlers: router(func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
			if plans++; plans == 1 {
				return webhook.Plan{}, fault.New(fault.Permanent, "no_amount", nil)
			}
			return standard(ctx, ev, r)
		}),
	}, "evt_1")
	wake := webhook.NewWake(w.Outbox()[0])
	w.Settle()
	if got := w.Row(id("evt_1")).Status; got != webhook.Failed {
		t.Fatalf("the event is %s", got)
	}
	faults.Add(sim.Fault{Operation: "DeleteItem", Times: 1, Meanwhile: func() { w.Replay(id("evt_1")) }})
	if got := w.Queue().Processor.Process(t.Context(), wake).Decision; got != "terminal" {
		t.Errorf("decision %s", got)
	}
	if promises, row := w.Outbox(), w.Row(id("evt_1")); len(promises) != 1 || promises[0].Gen != row.Fence || row.Status != webhook.Received {
		t.Errorf("the row is %s at fence %d, promises %+v", row.Status, row.Fence, promises)
	}
	w.Rest()
	check(t, w)
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
