package processor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

func payment(id string) provider.SampleOptions {
	return provider.SampleOptions{Type: "payment_intent.succeeded", EventID: id, ObjectID: "pi_" + id, Amount: 1250, Currency: "EUR"}
}

// handler is a handler that a test writes in place.
type handler func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error)

func (h handler) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	return h(ctx, ev, r)
}

func router(h handler) *business.Router {
	return business.NewRouter(map[webhook.ObjectType]business.Handler{webhook.Payment: h})
}

// standard is the built-in handler for payments.
func standard(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	h, _ := business.Standard().Handler(ev)
	return h.Plan(ctx, ev, r)
}

func id(event string) webhook.InboxID {
	return webhook.DeriveInboxID("demo", "stripe", webhook.EventID(event))
}

// world returns a world with one accepted event per id.
func world(t *testing.T, o sim.Options, events ...string) *sim.World {
	t.Helper()
	w := sim.New(t, o)
	e := w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_processor")
	for _, event := range events {
		if status := w.Send(w.Event(e, payment(event))); status != 200 {
			t.Fatalf("event %s: status %d", event, status)
		}
	}
	return w
}

func check(t *testing.T, w *sim.World) {
	t.Helper()
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
}

// end is how a row ended, or stands.
type end struct {
	Status   webhook.Status
	Outcome  webhook.Outcome
	Attempts int
	Error    string
}

func endOf(r webhook.Inbox) end { return end{r.Status, r.Outcome, r.AttemptCount, r.LastError} }

// Each fault leads to its own next state, and the attempt is spent or given
// back by whose fault it is. Proves W4.
func TestWhatAFaultLeadsTo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		plan handler
		want end
		wait time.Duration // until the next attempt, at most
	}{
		{"the handler's own schema error", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			return webhook.Plan{}, fault.New(fault.Permanent, "no_amount", nil)
		}, end{webhook.Failed, "", 1, "no_amount"}, 0},
		{"an unknown error", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			return webhook.Plan{}, errors.New("something with a payload in it")
		}, end{webhook.Retry, "", 1, "unknown"}, 15 * time.Second},
		{"a partner's fault", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			return webhook.Plan{}, fault.New(fault.Theirs, "partner_503", nil)
		}, end{webhook.Retry, "", 1, "partner_503"}, 15 * time.Second},
		{"our fault gives the attempt back", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			return webhook.Plan{}, fault.New(fault.Ours, "store_unavailable", nil)
		}, end{webhook.Retry, "", 0, "store_unavailable"}, 2 * time.Second},
		{"a panic", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			panic("with a payload in it")
		}, end{webhook.Failed, "", 1, "handler_panic"}, 0},
		{"a plan that is too large", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			p := webhook.Plan{Outcome: webhook.Applied}
			for i := range webhook.ActionsMax + 1 {
				p.Actions = append(p.Actions, webhook.PutItem(webhook.Key{PK: fmt.Sprint(i), SK: "s"}, nil))
			}
			return p, nil
		}, end{webhook.Failed, "", 1, "plan_too_large"}, 0},
		{"a value that cannot be stored", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{webhook.PutItem(webhook.Key{PK: "a", SK: "s"}, webhook.Item{"v": 1.5})}}, nil
		}, end{webhook.Failed, "", 1, "value_unsupported"}, 0},
		{"ignored by choice", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			return webhook.Plan{Outcome: webhook.Ignored}, nil
		}, end{webhook.Processed, webhook.Ignored, 1, ""}, 0},
		{"stale", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			return webhook.Plan{Outcome: webhook.Stale}, nil
		}, end{webhook.Processed, webhook.Stale, 1, ""}, 0},
		{"an object that is always contended is our fault", func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
			impossible := webhook.CheckItem(webhook.Key{PK: "none", SK: "s"}).If(webhook.Unchanged, webhook.Condition{Attribute: "v", Relation: webhook.Equal, Value: int64(1)})
			return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{impossible}}, nil
		}, end{webhook.Retry, "", 0, "object_contended"}, 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			w := world(t, sim.Options{Handlers: router(tt.plan), Log: &log}, "evt_1")
			w.PumpStream()
			w.PumpQueue()
			row := w.Row(id("evt_1"))
			if diff := cmp.Diff(tt.want, endOf(row)); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
			if tt.wait > 0 {
				if wait := row.NextAttemptAt.Sub(w.Now()); wait < tt.wait/2 || wait > tt.wait {
					t.Errorf("the next attempt is in %s, want %s to %s", wait, tt.wait/2, tt.wait)
				}
			}
			if strings.Contains(row.LastError, "payload") || strings.Contains(log.String(), "with a payload in it") && tt.name == "a panic" {
				t.Errorf("the diagnostic is not redacted: %q\n%s", row.LastError, log.String())
			}
		})
	}
}

// Proves W4: an event that this program does not know yet waits for the one that
// does, and ends where it can be replayed: ingress was deployed before it.
func TestAnEventOfALaterProgramIsNotIgnored(t *testing.T) {
	t.Parallel()
	w := world(t, sim.Options{AttemptsMax: 2, Handlers: business.NewRouter(map[webhook.ObjectType]business.Handler{
		webhook.Refund: handler(standard),
	})}, "evt_1")
	w.PumpStream()
	w.PumpQueue()
	if diff := cmp.Diff(end{webhook.Retry, "", 1, "handler_unknown"}, endOf(w.Row(id("evt_1")))); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	w.Rest()
	if diff := cmp.Diff(end{webhook.Failed, "", 2, "handler_unknown"}, endOf(w.Row(id("evt_1")))); diff != "" {
		t.Errorf("at last (-want +got):\n%s", diff)
	}
}

// Proves W4, A6: exhausted retries end FAILED with nothing left open.
func TestExhaustedRetriesFail(t *testing.T) {
	t.Parallel()
	w := world(t, sim.Options{AttemptsMax: 3, Handlers: router(func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
		return webhook.Plan{}, fault.New(fault.Theirs, "partner_503", nil)
	})}, "evt_1")
	w.Rest()
	if diff := cmp.Diff(end{webhook.Failed, "", 3, "partner_503"}, endOf(w.Row(id("evt_1")))); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	check(t, w)
}

// Proves W5: a poison event ends by itself and its neighbours are applied at once.
func TestAPoisonEventDelaysNoNeighbour(t *testing.T) {
	t.Parallel()
	w := world(t, sim.Options{Handlers: router(func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
		if ev.EventID == "evt_2" {
			panic("poison")
		}
		return standard(ctx, ev, r)
	})}, "evt_1", "evt_2", "evt_3")
	w.Settle()
	for event, want := range map[string]webhook.Status{"evt_1": webhook.Processed, "evt_2": webhook.Failed, "evt_3": webhook.Processed} {
		if got := w.Row(id(event)).Status; got != want {
			t.Errorf("%s is %s, want %s", event, got, want)
		}
	}
	check(t, w)
}

// Proves W1, W2: a worker that finishes after its claim was taken over writes
// nothing, and the event is applied once.
func TestALateFinisherWritesNothing(t *testing.T) {
	t.Parallel()
	var w *sim.World
	calls := 0
	w = world(t, sim.Options{Handlers: router(func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
		if calls++; calls == 1 {
			// While the first worker thinks, its lease runs out, the reconciler frees
			// the row, and a second worker applies the event.
			w.Advance(6 * time.Minute)
			w.Reconcile()
			w.Advance(time.Minute)
			w.Settle()
		}
		return standard(ctx, ev, r)
	})}, "evt_1")
	w.Settle()
	if calls != 2 {
		t.Fatalf("the handler ran %d times, want 2", calls)
	}
	if diff := cmp.Diff(end{webhook.Processed, webhook.Applied, 2, "lease_expired"}, endOf(w.Row(id("evt_1")))); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	w.Rest()
	check(t, w)
}

// Proves W2: a rival that changes what the handler read makes it decide again.
func TestARivalsWriteMakesTheHandlerDecideAgain(t *testing.T) {
	t.Parallel()
	object := webhook.Key{PK: "acme#counter", SK: "c"}
	var w *sim.World
	runs := 0
	w = world(t, sim.Options{Handlers: router(func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
		runs++
		row, found, err := r.Get(ctx, object)
		if err != nil {
			return webhook.Plan{}, err
		}
		n, _ := row["n"].(int64)
		unchanged := webhook.Condition{Attribute: "n", Relation: webhook.Equal, Value: n}
		if !found {
			unchanged = webhook.IfAbsent()
		}
		if runs == 1 {
			w.Write(webhook.UpdateItem(object, webhook.Item{"n": int64(41)}))
		}
		plan, err := standard(ctx, ev, r)
		plan.Actions = append(plan.Actions, webhook.UpdateItem(object, webhook.Item{"n": n + 1}).If(webhook.Unchanged, unchanged))
		return plan, err
	})}, "evt_1")
	w.Settle()
	row, _, err := w.Outside.Get(t.Context(), object)
	if err != nil || row["n"] != int64(42) || runs != 2 {
		t.Errorf("n = %v after %d runs, error %v; want 42 after 2", row["n"], runs, err)
	}
	check(t, w)
}

// A refused domain rule is told to the handler, which decides what it means.
func TestARefusedRuleIsTheHandlersToDecide(t *testing.T) {
	t.Parallel()
	w := world(t, sim.Options{Handlers: router(func(_ context.Context, ev webhook.Event, _ business.Reader) (webhook.Plan, error) {
		if ev.DomainRefused {
			return webhook.Plan{}, fault.New(fault.Permanent, "account_closed", nil)
		}
		open := webhook.CheckItem(webhook.Key{PK: "account", SK: "a"}).If(webhook.Domain, webhook.Condition{Attribute: "open", Relation: webhook.Equal, Value: true})
		return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{open}}, nil
	})}, "evt_1")
	w.Settle()
	if diff := cmp.Diff(end{webhook.Failed, "", 1, "account_closed"}, endOf(w.Row(id("evt_1")))); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

// Proves W2, T3: the mark stops what even a lost PROCESSED could not.
func TestAnAppliedEventMeetsItsMark(t *testing.T) {
	t.Parallel()
	w := world(t, sim.Options{}, "evt_1")
	mark := &webhook.Mark{InboxID: id("evt_1"), At: w.Now()}
	w.WriteMark(*mark)
	w.Settle()
	if diff := cmp.Diff(end{webhook.Processed, webhook.AlreadyApplied, 1, ""}, endOf(w.Row(id("evt_1")))); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if entries, _ := w.Ledger(); len(entries) != 0 {
		t.Errorf("%d ledger entries, want none", len(entries))
	}
}

// Lost replies, conflicts and throttles at each of the processor's writes: the
// event is applied once all the same. Proves W2, W4, D5.
func TestStoreFaultsAroundTheProcessor(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]sim.Fault{
		"the claim's reply is lost":         {Operation: "UpdateItem", Times: 1, Late: true, Err: sim.ErrLost},
		"the claim never arrives":           {Operation: "UpdateItem", Times: 1, Err: sim.ErrLost},
		"complete's reply is lost":          {Operation: "TransactWriteItems", Times: 1, Late: true, Err: sim.ErrLost},
		"complete never arrives":            {Operation: "TransactWriteItems", Times: 1, Err: sim.ErrLost},
		"complete is throttled for a while": {Operation: "TransactWriteItems", Times: 5, Err: sim.ErrThrottle},
		"complete conflicts for a while":    {Operation: "TransactWriteItems", Times: 3, Err: sim.ErrConflict(5)},
		"the body cannot be read":           {Operation: "GetItem", Times: 1, Err: sim.ErrLost},
		"the data key cannot be opened":     {Operation: "Decrypt", Times: 1, Err: sim.ErrLost},
		"the promise cannot be removed":     {Operation: "DeleteItem", Times: 1, Err: sim.ErrLost},
		"an hour of nothing":                {Times: 4, Err: sim.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults := &sim.Faults{}
			w := world(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"processor": faults.Middleware}}, "evt_1")
			faults.Add(f)
			w.Rest()
			if row := w.Row(id("evt_1")); row.Status != webhook.Processed || row.Outcome != webhook.Applied {
				t.Errorf("row %+v", endOf(row))
			}
			check(t, w)
		})
	}
}

// Proves A4, T5: while no worker runs, events are accepted; afterwards all are applied.
func TestWorkPilesUpAndDrains(t *testing.T) {
	t.Parallel()
	const events = 60
	var ids []string
	for i := range events {
		ids = append(ids, fmt.Sprintf("evt_%d", i))
	}
	w := world(t, sim.Options{}, ids...)
	if n := len(w.Outbox()); n != events {
		t.Fatalf("%d promises, want %d", n, events)
	}
	w.Rest()
	counts := map[webhook.Outcome]int{}
	for _, r := range w.Inbox() {
		counts[r.Outcome]++
	}
	if want := map[webhook.Outcome]int{webhook.Applied: events}; !cmp.Equal(want, counts) {
		t.Errorf("outcomes %v, want %v", counts, want)
	}
	check(t, w)
}
