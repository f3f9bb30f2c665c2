package sim_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/crashtest"
	"dakghar/internal/delivery"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// troubled is a world with one endpoint whose named program has faults.
func troubled(t *testing.T, program string, o sim.Options) (*sim.World, *sim.Endpoint, *sim.Faults) {
	t.Helper()
	faults := &sim.Faults{}
	o.Middleware = map[string]func(*middleware.Stack) error{program: faults.Middleware}
	w := sim.New(t, o)
	return w, stripe(w), faults
}

func send(w *sim.World, e *sim.Endpoint, events ...string) {
	for _, id := range events {
		w.Send(w.Event(e, payment(id)))
	}
}

func wantEnd(t *testing.T, w *sim.World, want map[string]int) {
	t.Helper()
	w.Rest()
	if diff := cmp.Diff(want, outcomes(w)); diff != "" {
		t.Errorf("rows ended (-want +got):\n%s", diff)
	}
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
}

// What DynamoDB Local and the embedded services never do by themselves, each in
// each program that can meet it: three events are accepted and applied once all
// the same. The comment of a case names what it proves.
func TestCallsThatGoWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, program string
		fault         sim.Fault
	}{
		{"accepting meets a conflict", "ingress", sim.Fault{Operation: "TransactWriteItems", Times: 2, Err: sim.ErrContended}},                                      // A3
		{"accepting meets conflicts only", "ingress", sim.Fault{Operation: "TransactWriteItems", Times: 4, Err: sim.ErrContended}},                                  // A2, A3
		{"accepting meets itself in progress", "ingress", sim.Fault{Operation: "TransactWriteItems", Times: 1, Err: sim.ErrInProgress}},                             // A2
		{"accepting is throttled", "ingress", sim.Fault{Operation: "TransactWriteItems", Times: 2, Err: sim.ErrThrottle}},                                           // A2, A4
		{"accepting is beyond the account's rate", "ingress", sim.Fault{Operation: "TransactWriteItems", Times: 1, Err: sim.ErrRate}},                               // A2, A4
		{"accepting commits, and its reply is lost", "ingress", sim.Fault{Operation: "TransactWriteItems", Times: 1, Late: true, Err: sim.ErrLost}},                 // A2, D4
		{"the body is put, and the reply is lost", "ingress", sim.Fault{Operation: "PutItem", Table: "BodyTable", Times: 1, Late: true, Err: sim.ErrLost}},          // A2, D6
		{"a batch of wakes is taken in part", "relay", sim.Fault{Operation: "SendMessageBatch", Times: 1, Part: true}},                                              // D5
		{"wakes are taken, and the reply is lost", "relay", sim.Fault{Operation: "SendMessageBatch", Times: 1, Late: true, Err: sim.ErrLost}},                       // D5, R1
		{"no wake is taken", "relay", sim.Fault{Operation: "SendMessageBatch", Times: 3, Err: sim.ErrLost}},                                                         // D5, R1
		{"marking is throttled", "relay", sim.Fault{Operation: "UpdateItem", Table: "OutboxTable", Times: 3, Err: sim.ErrThrottle}},                                 // D5, R1
		{"marking is done, and the reply is lost", "relay", sim.Fault{Operation: "UpdateItem", Table: "OutboxTable", Times: 3, Late: true, Err: sim.ErrLost}},       // D5
		{"the claim is throttled", "processor", sim.Fault{Operation: "UpdateItem", Table: "InboxTable", Times: 3, Err: sim.ErrThrottle}},                            // W4
		{"the claim's reply is lost", "processor", sim.Fault{Operation: "UpdateItem", Table: "InboxTable", Times: 1, Late: true, Err: sim.ErrLost}},                 // W4, R1
		{"completing meets a conflict", "processor", sim.Fault{Operation: "TransactWriteItems", Table: "BusinessTable", Times: 3, Err: sim.ErrContended}},           // W2
		{"completing meets itself in progress", "processor", sim.Fault{Operation: "TransactWriteItems", Table: "BusinessTable", Times: 2, Err: sim.ErrInProgress}},  // W2
		{"completing is throttled", "processor", sim.Fault{Operation: "TransactWriteItems", Table: "BusinessTable", Times: 3, Err: sim.ErrThrottle}},                // W4
		{"completing is beyond the account's rate", "processor", sim.Fault{Operation: "TransactWriteItems", Table: "BusinessTable", Times: 3, Err: sim.ErrRate}},    // W4
		{"complete's reply is lost", "processor", sim.Fault{Operation: "TransactWriteItems", Table: "BusinessTable", Times: 1, Late: true, Err: sim.ErrLost}},       // W2
		{"the promise's removal is lost", "processor", sim.Fault{Operation: "DeleteItem", Table: "OutboxTable", Times: 3, Err: sim.ErrLost}},                        // R1
		{"the reconciler's scan is throttled", "reconciler", sim.Fault{Operation: "Scan", Table: "OutboxTable", Times: 2, Err: sim.ErrThrottle}},                    // R1
		{"the reconciler's wakes are taken in part", "reconciler", sim.Fault{Operation: "SendMessageBatch", Times: 1, Part: true}},                                  // R1
		{"the reconciler's wakes are taken, and the reply is lost", "reconciler", sim.Fault{Operation: "SendMessageBatch", Times: 1, Late: true, Err: sim.ErrLost}}, // R1
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var hit atomic.Int64
			tt.fault.Meanwhile = func() { hit.Add(1) }
			w, e, faults := troubled(t, tt.program, sim.Options{})
			faults.Add(tt.fault)
			send(w, e, "evt_1", "evt_2", "evt_3")
			if tt.program == "reconciler" { // it has something to do only when the stream was lost
				w.DropStream()
			}
			wantEnd(t, w, map[string]int{"PROCESSED applied": 3})
			if hit.Load() == 0 {
				t.Error("the fault met no call")
			}
		})
	}
}

// Retrying goes wrong as well: the row's new promise and its new state are
// written together or not at all. Proves W4, R1.
func TestRetryingGoesWrong(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]sim.Fault{
		"the reply is lost":  {Operation: "TransactWriteItems", Times: 1, Late: true, Err: sim.ErrLost},
		"it never arrives":   {Operation: "TransactWriteItems", Times: 1, Err: sim.ErrLost},
		"a rival is writing": {Operation: "TransactWriteItems", Times: 1, Err: sim.ErrContended},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, e, faults := troubled(t, "processor", sim.Options{Handlers: handlersFailing(1, errPartner)})
			faults.Add(f)
			send(w, e, "evt_1")
			wantEnd(t, w, map[string]int{"PROCESSED applied": 1})
		})
	}
}

// A relay dies between publishing and marking: the wake is sent again, and the
// second one finds nothing to do. Proves D5, W2, T4.
func TestARelayDiesBetweenPublishAndMark(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := stripe(w)
	send(w, e, "evt_1")
	w.Relay.Switch.KillAt(1, crashtest.After)
	w.PumpStream()
	if got := []string{w.Relay.Switch.Calls()[0].Operation, fmt.Sprint(w.Relay.Switch.Deaths(), " death")}; !cmp.Equal(got, []string{"SQS.SendMessageBatch", "1 death"}) {
		t.Errorf("the relay died %v", got)
	}
	w.PumpStream()
	if n := w.Waiting(); n != 2 {
		t.Errorf("%d wakes, want 2", n)
	}
	wantEnd(t, w, map[string]int{"PROCESSED applied": 1})
}

// A worker dies again and again on one event: the claim counts before the work,
// so the event ends by its bound, and its neighbour is applied. Proves W4, W5, A6.
func TestAnEventThatKillsItsWorkersEnds(t *testing.T) {
	t.Parallel()
	var w *sim.World
	kill := errors.New("unreachable")
	w = sim.New(t, sim.Options{AttemptsMax: 3, Handlers: handling(func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
		if ev.EventID == "evt_1" {
			w.Processor.Switch.KillAt(1, crashtest.Before)
			_, _, err := r.Get(ctx, webhook.Key{PK: "any", SK: "thing"})
			return webhook.Plan{}, errors.Join(kill, err)
		}
		return standard(ctx, ev, r)
	})})
	e := stripe(w)
	send(w, e, "evt_1")
	send(w, e, "evt_2")
	w.Settle()
	// One batch, one death. Afterwards each comes back in its own time: the neighbour
	// is done while the other one goes on killing its workers.
	for range 600 {
		w.Advance(time.Second)
		w.Settle()
	}
	if got := w.Row(inbox("evt_2")); got.Outcome != webhook.Applied || got.AttemptCount > 2 {
		t.Errorf("the neighbour is %s %s after %d attempts", got.Status, got.Outcome, got.AttemptCount)
	}
	wantEnd(t, w, map[string]int{"FAILED": 1, "PROCESSED applied": 1})
	row := w.Row(inbox("evt_1"))
	if row.AttemptCount != 3 || row.LastError != "attempts_exhausted" || w.Processor.Switch.Deaths() != 3 {
		t.Errorf("%d attempts, %q, %d deaths; want 3, attempts_exhausted, 3", row.AttemptCount, row.LastError, w.Processor.Switch.Deaths())
	}
}

// An old scan acts on a row that was inserted anew: the scan returns a promise,
// then its event fails and is replayed. What the reconciler read belongs to the
// earlier life and touches nothing of the new one. Proves R1, R3, D5.
func TestAnOldScanMeetsARowInsertedAnew(t *testing.T) {
	t.Parallel()
	w, e, faults := troubled(t, "reconciler", sim.Options{})
	send(w, e, "evt_1")
	w.DropStream()
	w.Advance(2 * time.Minute)
	var anew []webhook.Outbox
	faults.Add(sim.Fault{Operation: "Scan", Table: "OutboxTable", Times: 1, Late: true, Meanwhile: func() {
		row := w.Row(inbox("evt_1"))
		promise := webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0)
		if ok, err := w.Outside.Fail(t.Context(), row.Fail(w.Now(), "x", time.Hour), promise); err != nil || !ok {
			t.Errorf("fail: %v, %v", ok, err)
		}
		w.Replay(row.ID)
		anew = w.Outbox()
	}})
	w.Reconcile()
	if diff := cmp.Diff(anew, w.Outbox()); diff != "" || len(anew) != 1 || anew[0].Gen != 2 {
		t.Errorf("the new promise, of generation 2, was touched (-before +after):\n%s", diff)
	}
	wantEnd(t, w, map[string]int{"PROCESSED applied": 1})
}

// A body about to expire under an event that nobody came for: it fails two days
// before, where it is seen, and is never lost. Proves D6, A6.
func TestABodyAboutToExpireFailsItsEvent(t *testing.T) {
	t.Parallel()
	w, e, faults := troubled(t, "processor", sim.Options{})
	faults.Add(sim.Fault{Operation: "UpdateItem", Table: "InboxTable", Times: -1, Err: sim.ErrLost}) // no claim for a month
	send(w, e, "evt_1")
	w.Settle()
	w.Advance(28*24*time.Hour + time.Minute)
	w.Reconcile()
	wantEnd(t, w, map[string]int{"FAILED": 1})
	if row := w.Row(inbox("evt_1")); row.LastError != "body_expiring" {
		t.Errorf("the event failed of %q", row.LastError)
	}
}

// One program's clock is 30 s off, either way: the event is retried, applied and
// tidied up all the same. Proves W2, W4, R1.
func TestAClockIsOff(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"ingress", "relay", "processor", "reconciler"} {
		for _, skew := range []time.Duration{30 * time.Second, -30 * time.Second} {
			t.Run(fmt.Sprint(program, " by ", skew), func(t *testing.T) {
				t.Parallel()
				w := sim.New(t, sim.Options{Handlers: handlersFailing(2, errPartner), Skew: map[string]time.Duration{program: skew}})
				send(w, stripe(w), "evt_1")
				wantEnd(t, w, map[string]int{"PROCESSED applied": 1})
			})
		}
	}
}

// A rival whose clock is 30 s ahead takes a lease that runs: the first worker
// finds its fence gone and writes nothing. A rival whose clock is behind finds
// the event not due, and it comes again. Proves W1, W2.
func TestARivalsClockIsOff(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": 30 * time.Second, "behind": -30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *sim.World
			runs := 0
			w = sim.New(t, sim.Options{Handlers: handling(func(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
				plan, err := standard(ctx, ev, r)
				if runs++; runs == 1 { // 40 s of a lease of a minute have passed, and the wake is there twice
					w.Advance(40 * time.Second)
					w.RepeatStream()
					w.PumpRival(w.Rival(skew))
				}
				return plan, err
			})})
			send(w, stripe(w), "evt_1")
			wantEnd(t, w, map[string]int{"PROCESSED applied": 1})
			want := map[string]int{"ahead": 2, "behind": 1}[name]
			if runs != want {
				t.Errorf("the handler ran %d times, want %d", runs, want)
			}
		})
	}
}

// An applied event is not replayed: neither from PROCESSED, nor where its row
// says FAILED and the mark knows better. Proves R3, W2.
func TestAnAppliedEventIsNotReplayed(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{Handlers: handlersFailing(-1, errPartner), AttemptsMax: 1})
	send(w, stripe(w), "evt_1")
	w.Rest()
	w.WriteMark(webhook.Mark{InboxID: inbox("evt_1"), At: w.Now()})
	row := w.Row(inbox("evt_1"))
	change := row.Replay(w.Now())
	verdict, err := w.Outside.Reopen(t.Context(), change, row.Run, webhook.NewOutbox(change.Apply(row), w.Now(), w.Now()), webhook.Act{ID: "a", At: w.Now(), Name: "replay"})
	if err != nil || verdict != webhook.MarkExists {
		t.Errorf("replay: %s, %v; want mark_exists", verdict, err)
	}
	if diff := cmp.Diff(row, w.Row(row.ID)); diff != "" {
		t.Errorf("the row changed (-before +after):\n%s", diff)
	}
	if n := len(w.Outbox()); n != 0 {
		t.Errorf("%d promises", n)
	}
}

// Two operators replay one event at once: one of them does, the record has one
// act, and the event is applied once. Proves R3, W2.
func TestTwoOperatorsReplayOneEvent(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{Handlers: handlersFailing(1, errPartner), AttemptsMax: 1})
	send(w, stripe(w), "evt_1")
	w.Rest()
	if written := w.ReplayTwice(inbox("evt_1")); written != 1 {
		t.Errorf("%d operators replayed it, want 1", written)
	}
	acts := 0
	for a, err := range w.Outside.Acts(t.Context(), sim.Start, w.Now()) {
		if err != nil {
			t.Fatal(err)
		}
		if a.Name == "replay" {
			acts++
		}
	}
	if acts != 1 {
		t.Errorf("%d acts are recorded, want 1", acts)
	}
	wantEnd(t, w, map[string]int{"PROCESSED applied": 1})
}

// An hour without KMS, or without the business table, fails no event, however
// few attempts it has: what is our fault gives them back. Proves W4, T5, A4.
func TestAnHourOfOutageFailsNoEvent(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]sim.Fault{
		"KMS":      {Operation: "Decrypt", Times: -1, Err: sim.ErrLost},
		"Business": {Table: "BusinessTable", Times: -1, Err: sim.ErrThrottle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hit atomic.Int64
			f.Meanwhile = func() { hit.Add(1) }
			w, e, faults := troubled(t, "processor", sim.Options{AttemptsMax: 2})
			faults.Add(f)
			for minute := range 60 {
				send(w, e, fmt.Sprintf("evt_%d", minute))
				w.Minute()
			}
			counts := outcomes(w)
			if counts["FAILED"] != 0 || counts["PROCESSED applied"] != 0 || hit.Load() == 0 {
				t.Errorf("after an hour, and %d calls turned away, rows stand as %v; want none FAILED, none applied", hit.Load(), counts)
			}
			for _, r := range w.Inbox() {
				if r.AttemptCount > 1 {
					t.Errorf("%s has spent %d attempts", r.ID, r.AttemptCount)
				}
			}
			faults.Clear()
			wantEnd(t, w, map[string]int{"PROCESSED applied": 60})
		})
	}
}

// The same when ingress has no KMS: it cannot seal what it has no data key for,
// says 503, and the provider's retries are accepted afterwards. Proves A2, V11.
func TestAnHourWithoutKMSAtTheFrontDoor(t *testing.T) {
	t.Parallel()
	w, e, faults := troubled(t, "ingress", sim.Options{})
	faults.Add(sim.Fault{Operation: "GenerateDataKey", Times: -1, Err: sim.ErrLost})
	d := w.Event(e, provider.SampleOptions{Type: "payment_intent.succeeded", EventID: "evt_1", Amount: 5, Currency: "EUR"})
	w.Send(d)
	for range 60 {
		w.Minute()
	}
	if d.Acknowledged() || w.Stored() != 0 {
		t.Errorf("acknowledged %v, %d rows; want neither", d.Acknowledged(), w.Stored())
	}
	faults.Clear()
	wantEnd(t, w, map[string]int{"PROCESSED applied": 1})
}

// A chain of services that leads back to where it began is cut after four
// deliveries: each says how many led to it, and the fifth ends DEAD unsent, where
// it is seen.
func TestACircleOfServicesIsCut(t *testing.T) {
	t.Parallel()
	var e *sim.Endpoint
	w := sim.New(t, sim.Options{})
	told(&e, 1, nil)(w)
	var hops []string
	for turn := range webhook.HopsMax + 2 {
		d := w.Event(e, payment(fmt.Sprintf("evt_%d", turn+1)))
		if got := w.Partner.Got(); turn > 0 { // the partner tells us what it was told
			d.Sample.Header[delivery.HeaderHops] = got[len(got)-1].Header.Get(delivery.HeaderHops)
		}
		w.Send(d)
		w.Rest()
	}
	for _, a := range w.Partner.Got() {
		hops = append(hops, a.Header.Get(delivery.HeaderHops))
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4"}, hops); diff != "" {
		t.Errorf("hops that partners were told (-want +got):\n%s", diff)
	}
	var dead []string
	for _, d := range w.Deliveries() {
		if d.Status == delivery.Dead {
			dead = append(dead, fmt.Sprint(d.LastError, " after ", d.AttemptCount))
		}
	}
	if diff := cmp.Diff([]string{"hops_exceeded after 0", "hops_exceeded after 0"}, dead); diff != "" {
		t.Errorf("deliveries that are cut (-want +got):\n%s", diff)
	}
}
