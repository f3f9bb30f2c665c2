package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/operator"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// lived sends events one after the other and lets each be worked on.
func lived(w *sim.World, e *sim.Endpoint, events ...provider.SampleOptions) {
	w.T.Helper()
	for _, o := range events {
		w.Send(w.Event(e, o))
		w.Settle()
		w.Space()
	}
}

// intent is an event of one payment's life.
func intent(id, kind string) provider.SampleOptions {
	return provider.SampleOptions{Type: webhook.EventType("payment_intent." + kind), EventID: "evt_" + kind + "_" + id, ObjectID: "pi_" + id, Amount: 1250, Currency: "EUR"}
}

// shadowed runs the handlers over what the endpoint received since a time.
func shadowed(t *testing.T, w *sim.World, e *sim.Endpoint, since time.Time, handlers *business.Router) (operator.Shadowed, []string) {
	t.Helper()
	before := w.Contents()
	var told []string
	got, err := w.Command(handlers).Shadow(t.Context(), operator.Shadow{Endpoint: e.ID, Since: since, Limit: 1000, Why: "release 12"}, func(d operator.Difference) {
		told = append(told, said(d))
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.Contents(), cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberBOOL{})); diff != "" {
		t.Errorf("the tables changed (-before +after):\n%s", diff)
	}
	return got, told
}

func said(d operator.Difference) string {
	if d.Event != nil {
		return strings.TrimSpace(fmt.Sprintf("%s: %s, now %s %s", d.Event.EventID, d.Recorded, d.Now, d.Code))
	}
	sort, _, _ := strings.Cut(d.Key.SK, "#")
	return fmt.Sprintf("%s %s: %v, now %v", sort, d.Attribute, d.Stored, d.Made)
}

// Proves R3: the handlers that made the rows make them again, event by event:
// nothing differs, and nothing is written but the record of the act.
func TestTheSameHandlersDifferInNothing(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := stripe(w)
	lived(w, e, intent("1", "processing"), intent("1", "succeeded"), intent("1", "succeeded"), intent("2", "succeeded"), intent("2", "processing"),
		provider.SampleOptions{Type: "refund.updated", EventID: "evt_r1", ObjectID: "re_1", State: "succeeded", Amount: 500, Currency: "EUR"},
		provider.SampleOptions{Type: "refund.updated", EventID: "evt_r2", ObjectID: "re_1", State: "failed", Amount: 500, Currency: "EUR"})
	objects := w.AddEndpoint("standard-webhooks", "objects", standardSecret)
	lived(w, objects, object("msg_1", 1), object("msg_3", 3), object("msg_2", 2))

	got, told := shadowed(t, w, e, sim.Start, business.Standard())
	if diff := cmp.Diff(operator.Shadowed{Events: 6, Compared: 6, Skipped: map[string]int{}, Objects: 3}, got); diff != "" || len(told) > 0 {
		t.Errorf("told %v; the run (-want +got):\n%s", told, diff)
	}
	got, told = shadowed(t, w, objects, sim.Start, business.Standard())
	if diff := cmp.Diff(operator.Shadowed{Events: 3, Compared: 3, Skipped: map[string]int{}, Objects: 1}, got); diff != "" || len(told) > 0 {
		t.Errorf("told %v; the run (-want +got):\n%s", told, diff)
	}
	acts, err := w.Outside.ActsOn(t.Context(), "endpoint objects")
	if err != nil || len(acts) != 1 || acts[0].Name != "shadow" || acts[0].Why != "release 12" {
		t.Errorf("acts %+v, error %v", acts, err)
	}
}

// doubled is a handler with a mistake: it credits every amount twice.
type doubled struct{ business.Handler }

func (h doubled) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	ev.Facts.Amount *= 2
	return h.Handler.Plan(ctx, ev, r)
}

// picky is one that ends some events otherwise.
type picky struct{ business.Handler }

func (h picky) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	switch ev.Facts.ObjectID {
	case "pi_1":
		return webhook.Plan{Outcome: webhook.Ignored}, nil
	case "pi_2":
		return webhook.Plan{}, fault.New(fault.Permanent, "too_small", nil)
	case "pi_3":
		panic("a mistake")
	case "pi_4":
		return webhook.Plan{}, errors.New("later")
	case "pi_5":
		return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{
			webhook.UpdateItem(business.ProjectionKey(ev), webhook.Item{"state": "x"}).If(webhook.Unchanged, webhook.Condition{Attribute: "no", Relation: webhook.Equal, Value: "way"}),
		}}, nil
	case "pi_6":
		if ev.DomainRefused {
			return webhook.Plan{Outcome: webhook.Ignored}, nil
		}
		return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{
			webhook.CheckItem(business.ProjectionKey(ev)).If(webhook.Domain, webhook.Condition{Attribute: "no", Relation: webhook.Equal, Value: "way"}),
		}}, nil
	}
	return h.Handler.Plan(ctx, ev, r)
}

func handlerOf(t *testing.T, object webhook.ObjectType) business.Handler {
	t.Helper()
	h, ok := business.Standard().Handler(webhook.Event{Facts: webhook.Facts{ObjectType: object}})
	if !ok {
		t.Fatal("no handler")
	}
	return h
}

// Proves R3: a change of a handler shows in the rows that it would have written.
func TestAChangedHandlerShowsInItsRows(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := stripe(w)
	lived(w, e, intent("1", "processing"), intent("1", "succeeded"))
	got, told := shadowed(t, w, e, sim.Start, business.Standard().With(webhook.Payment, doubled{handlerOf(t, webhook.Payment)}))
	want := []string{"balance balance_EUR: 1250, now 2500", "entry amount: 1250, now 2500", "projection amount: 1250, now 2500"}
	slices.Sort(told)
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(operator.Shadowed{Events: 2, Compared: 2, Skipped: map[string]int{}, Objects: 1, Rows: 3}, got); diff != "" {
		t.Errorf("the run (-want +got):\n%s", diff)
	}
}

// Proves R3: an event that ends otherwise is told, with the code; a panic ends nothing else.
func TestAnEventThatEndsOtherwiseIsTold(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := stripe(w)
	for n := range 7 {
		lived(w, e, intent(fmt.Sprint(n+1), "succeeded"))
	}
	got, told := shadowed(t, w, e, sim.Start, business.Standard().With(webhook.Payment, picky{handlerOf(t, webhook.Payment)}))
	var ends []string
	for _, line := range told {
		if strings.HasPrefix(line, "evt_") {
			ends = append(ends, line)
		}
	}
	want := []string{
		"evt_succeeded_1: applied, now ignored", "evt_succeeded_2: applied, now failed too_small", "evt_succeeded_3: applied, now failed handler_panic",
		"evt_succeeded_4: applied, now retry unknown", "evt_succeeded_5: applied, now retry object_contended",
		"evt_succeeded_6: applied, now ignored",
	}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	// Each of the six objects has three rows that are not made any more.
	if got.Rows = 0; !cmp.Equal(operator.Shadowed{Events: 7, Compared: 7, Skipped: map[string]int{}, Objects: 7, Outcomes: 6}, got) {
		t.Errorf("the run %+v", got)
	}
	if rows := len(told) - len(ends); rows != 18 {
		t.Errorf("%d rows, want 18", rows)
	}
}

// An object whose history begins before the range is handled on its rows as they
// are: what was applied is stale now, which says nothing against the handler.
func TestAnObjectWhoseHistoryBeganBeforeIsNotHeldAgainstTheHandler(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := stripe(w)
	lived(w, e, intent("1", "processing"))
	since := w.Now()
	lived(w, e, intent("1", "succeeded"), intent("2", "succeeded"))
	got, told := shadowed(t, w, e, since, business.Standard())
	if diff := cmp.Diff(operator.Shadowed{Events: 2, Compared: 2, Skipped: map[string]int{}, Objects: 1, Partial: 1, Undecided: 1}, got); diff != "" || len(told) > 0 {
		t.Errorf("told %v; the run (-want +got):\n%s", told, diff)
	}
	_, told = shadowed(t, w, e, since, business.Standard().With(webhook.Payment, picky{handlerOf(t, webhook.Payment)}))
	if !slices.Contains(told, "evt_succeeded_1: applied, now ignored") {
		t.Errorf("told %v, want the first payment's event among them", told)
	}
}

// Events whose end depends on more than their body and the rows are counted, not judged.
func TestWhatCannotBeJudgedIsCounted(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := fetched(w)
	lived(w, e, refund("evt_1"), intent("1", "succeeded"), intent("2", "succeeded"))
	w.DropBody(w.Row(inbox("evt_succeeded_1")).BodyID)
	got, told := shadowed(t, w, e, sim.Start, business.Standard())
	want := operator.Shadowed{Events: 3, Compared: 1, Skipped: map[string]int{"policy_fetch": 1, "body_gone": 1}, Objects: 1}
	if diff := cmp.Diff(want, got); diff != "" || len(told) > 0 {
		t.Errorf("told %v; the run (-want +got):\n%s", told, diff)
	}
	numbered := sequenced(w)
	lived(w, numbered, step(1), step(2))
	got, _ = shadowed(t, w, numbered, sim.Start, business.Standard())
	if diff := cmp.Diff(operator.Shadowed{Events: 2, Skipped: map[string]int{"policy_sequence": 2}}, got); diff != "" {
		t.Errorf("the run (-want +got):\n%s", diff)
	}
}

// bare keeps no ledger.
type bare struct{}

func (bare) Plan(_ context.Context, ev webhook.Event, _ business.Reader) (webhook.Plan, error) {
	newer := webhook.Condition{Attribute: "version", Relation: webhook.ElseLess, Value: ev.Facts.Version}
	return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{
		webhook.UpdateItem(business.ProjectionKey(ev), webhook.Item{"version": ev.Facts.Version}).If(webhook.Newer, newer),
	}}, nil
}

// Where a handler keeps no ledger, nothing tells whether a history is whole, and
// its rows are not compared.
func TestWithoutALedgerNoHistoryIsWhole(t *testing.T) {
	t.Parallel()
	handlers := business.Standard().With(webhook.Object, bare{})
	w := sim.New(t, sim.Options{Handlers: handlers})
	e := w.AddEndpoint("standard-webhooks", "objects", standardSecret)
	lived(w, e, object("msg_3", 3))
	since := w.Now()
	lived(w, e, object("msg_1", 1))
	got, told := shadowed(t, w, e, since, handlers)
	if diff := cmp.Diff(operator.Shadowed{Events: 1, Compared: 1, Skipped: map[string]int{}, Partial: 1}, got); diff != "" || len(told) > 0 {
		t.Errorf("told %v; the run (-want +got):\n%s", told, diff)
	}
	got, told = shadowed(t, w, e, sim.Start, handlers)
	if diff := cmp.Diff(operator.Shadowed{Events: 2, Compared: 2, Skipped: map[string]int{}, Partial: 1, Undecided: 1}, got); diff != "" || len(told) > 0 {
		t.Errorf("told %v; the run (-want +got):\n%s", told, diff)
	}
}
