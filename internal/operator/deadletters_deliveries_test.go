package operator_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

func message(t *testing.T, w webhook.Wake) string {
	t.Helper()
	body, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func wakeOfDelivery(t *testing.T, id delivery.ID) string {
	t.Helper()
	return message(t, delivery.Delivery{ID: id, Effect: webhook.Effect{InboxID: "in_1"}}.Wake())
}

// undispatched buries wake-ups of the dispatcher's, one of each fate and named by
// its delivery, or by the promise of its effect.
func undispatched(t *testing.T, w *operatortest.World) {
	t.Helper()
	far, soon, past := w.Clock.Add(time.Hour), w.Clock.Add(4*time.Second), w.Clock.Add(-time.Hour)
	for id, s := range map[delivery.SubscriptionID]delivery.Subscription{
		"partner":  {State: delivery.Active},
		"paused":   {State: delivery.Paused, StateAt: past},
		"draining": {State: delivery.Draining, StateAt: past},
		"stopped":  {State: delivery.Stopped, StateAt: past},
		"called":   {State: delivery.Active, Calls: true},
	} {
		s.ID, s.Tenant = id, "default"
		w.Subscriptions[id] = s
	}
	for id, d := range map[delivery.ID]delivery.Delivery{
		"dl_due":       {Status: delivery.Pending, NextAttemptAt: past},
		"dl_retry":     {Status: delivery.Retry, NextAttemptAt: soon, LastError: "status_503"},
		"dl_abandoned": {Status: delivery.Sending, LeaseUntil: past},
		"dl_before":    {Status: delivery.Retry, NextAttemptAt: past, Subscription: "draining", CreatedAt: past.Add(-time.Minute)},
		"dl_late":      {Status: delivery.Retry, NextAttemptAt: far, Deadline: past},
		"dl_lapsed":    {Status: delivery.Faulted, Deadline: w.Clock},
		"dl_stopped":   {Status: delivery.Pending, NextAttemptAt: past, Subscription: "stopped"},
		"dl_deserted":  {Status: delivery.Pending, NextAttemptAt: past, Subscription: "nobody"},
		"dl_later":     {Status: delivery.Retry, NextAttemptAt: far},
		"dl_working":   {Status: delivery.Sending, LeaseUntil: far, Deadline: past},
		"dl_paused":    {Status: delivery.Pending, NextAttemptAt: past, Subscription: "paused"},
		"dl_faulted":   {Status: delivery.Faulted, LastError: "key_missing"},
		"dl_dead":      {Status: delivery.Dead, LastError: "status_404"},
		"dl_expired":   {Status: delivery.Expired, LastError: "deadline_passed"},
		"dl_replayed":  {Status: delivery.Dead, ReplayedAs: "dl_due"},
		"dl_delivered": {Status: delivery.Delivered},
		"dl_cancelled": {Status: delivery.Cancelled},
	} {
		d.ID, d.Tenant = id, "default"
		if d.Subscription == "" {
			d.Subscription = "partner"
		}
		if d.Deadline.IsZero() {
			d.Deadline = far
		}
		w.Deliveries[id] = d
		w.DeliveryLetters.Put("m-"+string(id), wakeOfDelivery(t, id), past)
	}
	effect := func(id webhook.InboxID, call string, kept time.Time) webhook.Outbox {
		return webhook.NewEffectOutbox(webhook.Effect{InboxID: id, Tenant: "default", Type: "payment.succeeded", Call: call, BodyExpiresAt: kept}, 0, 3, past)
	}
	for _, p := range []webhook.Outbox{
		effect("in_told", "", far), effect("in_calls", "called", far), effect("in_unheard", "nobody", far), effect("in_misdirected", "partner", far), effect("in_forgotten", "nobody", past),
	} {
		w.Promises[p.ID] = p
		w.DeliveryLetters.Put("m-"+string(p.InboxID), message(t, webhook.NewWake(p)), past)
	}
	w.DeliveryLetters.Put("m-fanned", message(t, webhook.NewWake(effect("in_fanned", "", far))), past)
	older := effect("in_told", "", far)
	older.Gen = 2
	w.DeliveryLetters.Put("m-older", message(t, webhook.NewWake(older)), past)
	w.DeliveryLetters.Put("m-gone", wakeOfDelivery(t, "dl_gone"), past)
	w.DeliveryLetters.Put("m-new", `{"v":2,"delivery_id":"dl_due","topic":"deliver"}`, past)
	w.DeliveryLetters.Put("m-odd", `hello`, past)
	w.DeliveryLetters.Put("m-nothing", `{"v":1,"topic":"deliver"}`, past)
	w.DeliveryLetters.Put("m-other", wakeOf(t, "in_1"), past)
}

// undelivered makes a world with the dispatcher's dead letters alone.
func undelivered(t *testing.T) (*operatortest.World, *operator.Operator) {
	t.Helper()
	w, o := create(t)
	undispatched(t, w)
	return w, o
}

// Proves R3, X4: what becomes of the dispatcher's dead letter is told by the
// delivery's row, or by the promise of its effect.
func TestALetterOfTheDispatcherHasTheFateThatItsRowSays(t *testing.T) {
	t.Parallel()
	w, o := undelivered(t)
	before := len(w.DeliveryLetters.Letters)
	got, err := o.Letters(t.Context(), operator.QueueDeliveries, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]operator.Fate{
		"m-dl_due": operator.FateClaimed, "m-dl_retry": operator.FateClaimed, "m-dl_abandoned": operator.FateClaimed, "m-dl_before": operator.FateClaimed,
		"m-dl_late": operator.FateExpired, "m-dl_lapsed": operator.FateExpired, "m-dl_stopped": operator.FateCancelled, "m-dl_deserted": operator.FateCancelled,
		"m-dl_later": operator.FateNotDue, "m-dl_working": operator.FateWorking, "m-dl_paused": operator.FatePaused, "m-dl_faulted": operator.FateFaulted,
		"m-dl_dead": operator.FateDead, "m-dl_expired": operator.FateDead, "m-dl_replayed": operator.FateEnded, "m-dl_delivered": operator.FateEnded,
		"m-dl_cancelled": operator.FateEnded,
		"m-in_told":      operator.FateClaimed, "m-in_calls": operator.FateClaimed, "m-in_forgotten": operator.FateClaimed,
		"m-in_unheard": operator.FateUnaddressed, "m-in_misdirected": operator.FateUnaddressed,
		"m-fanned": operator.FateMissing, "m-older": operator.FateMissing, "m-gone": operator.FateMissing,
		"m-new": operator.FateNewer, "m-odd": operator.FateForeign, "m-nothing": operator.FateForeign, "m-other": operator.FateForeign,
	}
	if diff := cmp.Diff(want, fates(got.Found)); diff != "" {
		t.Errorf("fates (-want +got):\n%s", diff)
	}
	if want := (webhook.Depth{Waiting: before}); got.Depth != want || got.Move != nil {
		t.Errorf("depth %+v, move %v; want %+v and none", got.Depth, got.Move, want)
	}
	for _, l := range got.Found {
		switch d, p := w.Deliveries[delivery.ID(l.Wake.Delivery)], w.Promises[l.Wake.OutboxID]; {
		case l.Fate == operator.FateMissing || l.Fate == operator.FateForeign || l.Fate == operator.FateNewer:
			if l.Row != nil || l.Delivery != nil || l.Promise != nil {
				t.Errorf("%s has a row", l.ID)
			}
		case l.Wake.Delivery != "":
			if l.Delivery == nil || !cmp.Equal(d, *l.Delivery) {
				t.Errorf("%s: its delivery is %+v", l.ID, l.Delivery)
			}
		case l.Promise == nil || !cmp.Equal(p, *l.Promise):
			t.Errorf("%s: its promise is %+v", l.ID, l.Promise)
		}
	}
	if len(w.DeliveryLetters.Letters) != before || len(w.Acts) != 1 { // the endpoint's
		t.Errorf("%d letters, acts %v: a look takes nothing out and is no act", len(w.DeliveryLetters.Letters), w.Acts)
	}
}

// Whatever call of a look fails, every letter is there for the next reader.
func TestALookAtTheDispatchersLettersThatFailsTakesNothingOut(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Depth", "Receive", "LastMove", "Delivery", "Subscription", "Outbox"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w, o := undelivered(t)
			before := len(w.DeliveryLetters.Letters)
			w.Fail = operatortest.Down(call)
			_, err := o.Letters(t.Context(), operator.QueueDeliveries, 100)
			wantRefusal(t, err, "unavailable")
			w.Fail = func(string) error { return nil }
			if got, err := o.Letters(t.Context(), operator.QueueDeliveries, 100); err != nil || len(got.Found) != before {
				t.Errorf("%d letters, error %v; want %d", len(got.Found), err, before)
			}
		})
	}
}

func TestTheRelaysQueueHasNoWakeUps(t *testing.T) {
	t.Parallel()
	_, o := undelivered(t)
	for _, q := range []operator.Queue{operator.QueueRelay, "", "both"} {
		_, err := o.Letters(t.Context(), q, 100)
		wantRefusal(t, err, "usage")
	}
}

// Proves R3: all letters are moved by the queue's own service, and the act names
// the queue. A delivery that ended is not made once more by it.
func TestTheDispatchersLettersAreMovedByTheQueueItself(t *testing.T) {
	t.Parallel()
	w, o := undelivered(t)
	before, rows := len(w.DeliveryLetters.Letters), len(w.Deliveries)
	w.EventLetters.Put("m-event", wakeOf(t, "in_1"), w.Clock)
	got, err := redrive(t, o, operator.Redrive{Queues: only(operator.QueueDeliveries), Rate: 50, Why: "ticket 7"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Redriven{Moved: before}, got); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if len(w.DeliveryLetters.Letters) != 0 || len(w.DeliveryLetters.Sent) != before || len(w.EventLetters.Letters) != 1 || w.EventLetters.Task != nil {
		t.Errorf("%d letters left, %d sent; the events have %d", len(w.DeliveryLetters.Letters), len(w.DeliveryLetters.Sent), len(w.EventLetters.Letters))
	}
	act := w.Acts[len(w.Acts)-1]
	if act.Name != "dlq redrive" || act.Subject != "queue deliveries" || act.Who != "ada" || act.Why != "ticket 7" || len(w.Deliveries) != rows {
		t.Errorf("act %+v, %d deliveries of %d before", act, len(w.Deliveries), rows)
	}
}

// Proves R3: useless letters go. Those that somebody is to decide about are moved,
// and the deliveries' rows are nobody's to change here.
func TestPruningTheDispatchersLettersLeavesOnlyWhatIsToBeMoved(t *testing.T) {
	t.Parallel()
	w, o := undelivered(t)
	wanted := []string{"m-dl_due", "m-dl_retry", "m-dl_abandoned", "m-dl_before", "m-dl_late", "m-dl_lapsed", "m-dl_stopped", "m-dl_deserted", "m-dl_dead", "m-dl_expired",
		"m-in_told", "m-in_calls", "m-in_forgotten", "m-new", "m-odd", "m-nothing", "m-other"}
	want := []string{}
	for _, l := range w.DeliveryLetters.Letters {
		if slices.Contains(wanted, l.ID) {
			want = append(want, l.Body)
		}
	}
	before := len(w.DeliveryLetters.Letters)
	got, err := redrive(t, o, operator.Redrive{Queues: []operator.Queue{operator.QueueEvents, operator.QueueDeliveries}, Rate: 50, Why: "ticket 7", Prune: true, ReplayFailed: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Redriven{Removed: before - len(wanted), Moved: len(wanted)}, got); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	slices.Sort(want)
	slices.Sort(w.DeliveryLetters.Sent)
	if diff := cmp.Diff(want, w.DeliveryLetters.Sent); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
	if d := w.Deliveries["dl_dead"]; d.ReplayedAs != "" {
		t.Errorf("the DEAD delivery was replayed as %s", d.ReplayedAs)
	}
}

// A move of one queue is followed; the other is dealt with all the same, and both
// are counted together.
func TestAMoveOfOneQueueKeepsTheOtherFromNothing(t *testing.T) {
	t.Parallel()
	w, o := buried(t)
	undispatched(t, w)
	deliveries := len(w.DeliveryLetters.Letters)
	w.EventLetters.Task = &webhook.Move{StartedAt: w.Clock, Running: true, ToMove: 4}
	got, err := redrive(t, o, operator.Redrive{Queues: operator.Queues(), Rate: 50, Why: "ticket 7"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Redriven{Moved: 4 + deliveries}, got); diff != "" || len(w.EventLetters.Letters) != 11 || len(w.DeliveryLetters.Letters) != 0 {
		t.Errorf("%d and %d letters left; done (-want +got):\n%s", len(w.EventLetters.Letters), len(w.DeliveryLetters.Letters), diff)
	}
}
