package operator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// wakeOf is the message that wakes somebody for an event.
func wakeOf(t *testing.T, id webhook.InboxID) string {
	t.Helper()
	body, err := json.Marshal(webhook.Wake{Version: 1, OutboxID: webhook.NewOutboxID(id, webhook.TopicProcess, 0), InboxID: id, Endpoint: "demo", Topic: webhook.TopicProcess})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// buried makes a world with one dead letter of each fate, named by it.
func buried(t *testing.T) (*operatortest.World, *operator.Operator) {
	t.Helper()
	w, o := create(t)
	paused := w.Endpoints["demo"]
	paused.ID, paused.PausedAt = "paused", w.Clock
	w.Endpoints["paused"] = paused
	far, soon, past := w.Clock.Add(time.Hour), w.Clock.Add(4*time.Second), w.Clock.Add(-time.Hour)
	for id, row := range map[webhook.InboxID]webhook.Inbox{
		"in_due":       {Status: webhook.Received, NextAttemptAt: past},
		"in_retry":     {Status: webhook.Retry, NextAttemptAt: soon, LastError: "partner_503"},
		"in_later":     {Status: webhook.Retry, NextAttemptAt: far},
		"in_working":   {Status: webhook.Processing, LeaseUntil: far},
		"in_abandoned": {Status: webhook.Processing, LeaseUntil: past},
		"in_parked":    {Status: webhook.Parked, NextAttemptAt: far},
		"in_gap":       {Status: webhook.Parked, NextAttemptAt: past},
		"in_held":      {Status: webhook.Held},
		"in_failed":    {Status: webhook.Failed, BodyExpiresAt: w.Clock.Add(48 * time.Hour)},
		"in_processed": {Status: webhook.Processed},
		"in_paused":    {Status: webhook.Received, NextAttemptAt: past, Endpoint: "paused"},
	} {
		row.ID, row.Provider = id, "stripe"
		if row.Endpoint == "" {
			row.Endpoint = "demo"
		}
		w.Rows[id] = row
		w.EventLetters.Put("m-"+string(id), wakeOf(t, id), past)
	}
	w.EventLetters.Put("m-gone", wakeOf(t, "in_gone"), past)
	w.EventLetters.Put("m-new", `{"v":2,"inbox_id":"in_due","topic":"process"}`, past)
	w.EventLetters.Put("m-odd", `hello`, past)
	w.EventLetters.Put("m-other", `{"v":1,"inbox_id":"in_due","topic":"call"}`, past)
	return w, o
}

func fates(letters []operator.DeadLetter) map[string]operator.Fate {
	got := map[string]operator.Fate{}
	for _, l := range letters {
		got[l.ID] = l.Fate
	}
	return got
}

// Proves R3, D5: what becomes of a dead letter is told by its row, as the protocol has it.
func TestALettersFateIsWhatItsRowSays(t *testing.T) {
	t.Parallel()
	w, o := buried(t)
	before := len(w.EventLetters.Letters)
	got, err := o.Letters(t.Context(), operator.QueueEvents, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]operator.Fate{
		"m-in_due": operator.FateClaimed, "m-in_retry": operator.FateClaimed, "m-in_abandoned": operator.FateClaimed, "m-in_gap": operator.FateExpired,
		"m-in_later": operator.FateNotDue, "m-in_working": operator.FateWorking, "m-in_parked": operator.FateParked, "m-in_held": operator.FateHeld,
		"m-in_failed": operator.FateFailed, "m-in_processed": operator.FateProcessed, "m-in_paused": operator.FatePaused,
		"m-gone": operator.FateMissing, "m-new": operator.FateNewer, "m-odd": operator.FateForeign, "m-other": operator.FateForeign,
	}
	if diff := cmp.Diff(want, fates(got.Found)); diff != "" {
		t.Errorf("fates (-want +got):\n%s", diff)
	}
	if want := (webhook.Depth{Waiting: before}); got.Depth != want || got.Move != nil {
		t.Errorf("depth %+v, move %v; want %+v and none", got.Depth, got.Move, want)
	}
	again, err := o.Letters(t.Context(), operator.QueueEvents, 100)
	if err != nil || len(again.Found) != before || len(w.EventLetters.Letters) != before {
		t.Errorf("looked again: %d letters, error %v; want all %d", len(again.Found), err, before)
	}
	if len(w.Acts) != 1 { // the endpoint's
		t.Errorf("acts %v: a look is no act", w.Acts)
	}
}

func TestALookIsBounded(t *testing.T) {
	t.Parallel()
	_, o := buried(t)
	got, err := o.Letters(t.Context(), operator.QueueEvents, 3)
	if err != nil || len(got.Found) != 3 {
		t.Errorf("%d letters, error %v; want 3", len(got.Found), err)
	}
	for _, limit := range []int{0, operator.LettersMax + 1} {
		_, err = o.Letters(t.Context(), operator.QueueEvents, limit)
		wantRefusal(t, err, "usage")
	}
}

// Whatever call of a look fails, every letter is there for the next reader: at
// once, or where giving back failed, when its time is over.
func TestALookThatFailsTakesNothingOut(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Depth", "Receive", "GiveBack", "LastMove", "Inbox", "Endpoint", "OpenPromises"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w, o := buried(t)
			w.RelayLetters.Put("r", report("1", "2"), w.Clock)
			w.Fail = operatortest.Down(call)
			_, events := o.Letters(t.Context(), operator.QueueEvents, 100)
			_, _, relay := o.RelayReports(t.Context(), 100)
			if err := errors.Join(events, relay); call != "GiveBack" {
				wantRefusal(t, err, "unavailable")
			}
			w.Fail = func(string) error { return nil }
			w.Advance(time.Minute)
			if got, err := o.Letters(t.Context(), operator.QueueEvents, 100); err != nil || len(got.Found) != 15 {
				t.Errorf("%d letters, error %v; want 15", len(got.Found), err)
			}
			if got, _, err := o.RelayReports(t.Context(), 100); err != nil || len(got.Found) != 1 {
				t.Errorf("%d reports, error %v; want 1", len(got.Found), err)
			}
		})
	}
}

// report is what Lambda sends for a stretch of the stream that was given up.
func report(first, last string) string {
	return fmt.Sprintf(`{"requestContext":{"requestId":"r","functionArn":"f","condition":"RetryAttemptsExhausted","approximateInvokeCount":21},
		"version":"1.0","timestamp":"2026-03-01T11:00:00.000Z","DDBStreamBatchInfo":{"shardId":"shardId-1","startSequenceNumber":%q,"endSequenceNumber":%q,
		"approximateArrivalOfFirstRecord":"2026-03-01T05:00:00Z","approximateArrivalOfLastRecord":"2026-03-01T05:00:02Z","batchSize":3,"streamArn":"s"}}`, first, last)
}

// gaveUp makes a world in which the relay gave up: due promises are unpublished.
func gaveUp(t *testing.T) (*operatortest.World, *operator.Operator) {
	t.Helper()
	w, o := create(t)
	paused := w.Endpoints["demo"]
	paused.ID, paused.PausedAt = "paused", w.Clock
	w.Endpoints["paused"] = paused
	past := w.Clock.Add(-time.Hour)
	for id, row := range map[webhook.InboxID]webhook.Inbox{
		"in_1": {Status: webhook.Received, NextAttemptAt: past}, "in_2": {Status: webhook.Retry, NextAttemptAt: past},
		"in_3": {Status: webhook.Received, NextAttemptAt: past}, "in_4": {Status: webhook.Received, NextAttemptAt: past},
		"in_fresh":     {Status: webhook.Received, NextAttemptAt: w.Clock.Add(-time.Second)},
		"in_published": {Status: webhook.Received, NextAttemptAt: past},
		"in_processed": {Status: webhook.Processed, NextAttemptAt: past},
		"in_paused":    {Status: webhook.Received, NextAttemptAt: past, Endpoint: "paused"},
	} {
		row.ID = id
		if row.Endpoint == "" {
			row.Endpoint = "demo"
		}
		p := webhook.NewOutbox(row, row.NextAttemptAt, row.NextAttemptAt)
		if id == "in_published" {
			p.PublishedAt = past
		}
		w.Rows[id], w.Promises[p.ID] = row, p
	}
	w.RelayLetters.Put("r1", report("100", "102"), past)
	w.RelayLetters.Put("r2", report("103", "103"), past)
	w.RelayLetters.Put("r3", "hello", past)
	return w, o
}

// Proves R3, D5: a report names no row, so the promises that are behind are counted.
func TestReportsOfTheStreamAreShownWithThePromisesThatAreBehind(t *testing.T) {
	t.Parallel()
	w, o := gaveUp(t)
	got, behind, err := o.RelayReports(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	if want := (operator.Behind{Unpublished: 6, OldestDue: w.Clock.Add(-time.Hour), LastWake: w.Clock.Add(-59 * time.Minute)}); behind != want {
		t.Errorf("behind %+v, want %+v", behind, want)
	}
	if len(got.Found) != 3 {
		t.Fatalf("%d reports, want 3", len(got.Found))
	}
	five := time.Date(2026, time.March, 1, 5, 0, 0, 0, time.UTC)
	want := operator.Report{
		Letter: got.Found[0].Letter, Readable: true, Shard: "shardId-1", First: "100", Last: "102", Records: 3,
		From: five, To: five.Add(2 * time.Second), Condition: "RetryAttemptsExhausted", Tries: 21,
	}
	if diff := cmp.Diff(want, got.Found[0]); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(operator.Report{Letter: got.Found[2].Letter}, got.Found[2]); diff != "" {
		t.Errorf("what is no report (-want +got):\n%s", diff)
	}
}

// bodiesOf lists what is left in a queue.
func bodiesOf(q operatortest.LetterQueue) []string {
	ids := []string{}
	for _, l := range q.Letters {
		ids = append(ids, l.ID)
	}
	slices.Sort(ids)
	return ids
}

// near lists the events whose promises were brought near: due now, not published.
func near(w *operatortest.World, at time.Time) []webhook.InboxID {
	var ids []webhook.InboxID
	for _, p := range w.Promises {
		if !p.DueAt.Before(at) && p.PublishedAt.IsZero() {
			ids = append(ids, p.InboxID)
		}
	}
	slices.Sort(ids)
	return ids
}

func unheard(operator.Redriven) {}

func only(q operator.Queue) []operator.Queue { return []operator.Queue{q} }

// redrive plans and does it.
func redrive(t *testing.T, o *operator.Operator, r operator.Redrive) (operator.Redriven, error) {
	t.Helper()
	p, err := o.PlanRedrive(t.Context(), r)
	if err != nil {
		return operator.Redriven{}, err
	}
	return o.Redrive(t.Context(), p, unheard)
}

// Proves R3: the plan counts by what becomes of the letters, and writes nothing.
func TestAPlanOfARedriveCountsByFateAndChangesNothing(t *testing.T) {
	t.Parallel()
	w, o := buried(t)
	undispatched(t, w)
	r := operator.Redrive{Queues: operator.Queues(), Rate: 50, PlanOnly: true}
	got, err := o.PlanRedrive(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := operator.RedrivePlan{Redrive: r, Wakes: []operator.WakePlan{
		{Queue: operator.QueueEvents, Depth: webhook.Depth{Waiting: 15}, Sampled: 15, ByFate: map[operator.Fate]int{
			operator.FateClaimed: 3, operator.FateExpired: 1, operator.FateNotDue: 1, operator.FateWorking: 1, operator.FateParked: 1, operator.FateHeld: 1, operator.FatePaused: 1,
			operator.FateFailed: 1, operator.FateProcessed: 1, operator.FateMissing: 1, operator.FateNewer: 1, operator.FateForeign: 2,
		}},
		{Queue: operator.QueueDeliveries, Depth: webhook.Depth{Waiting: 29}, Sampled: 29, ByFate: map[operator.Fate]int{
			operator.FateClaimed: 7, operator.FateExpired: 2, operator.FateCancelled: 2, operator.FateDead: 2, operator.FateNotDue: 1, operator.FateWorking: 1, operator.FatePaused: 1,
			operator.FateFaulted: 1, operator.FateUnaddressed: 2, operator.FateEnded: 3, operator.FateMissing: 3, operator.FateNewer: 1, operator.FateForeign: 3,
		}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if len(w.EventLetters.Letters) != 15 || w.EventLetters.Task != nil || len(w.Acts) != 1 {
		t.Errorf("after a plan: %d letters, move %v, acts %v", len(w.EventLetters.Letters), w.EventLetters.Task, w.Acts)
	}
}

func TestARedriveIsRefusedWhereItMakesNoSense(t *testing.T) {
	t.Parallel()
	_, o := buried(t)
	for name, r := range map[string]operator.Redrive{
		"no queue":              {Rate: 1, Why: "x"},
		"no reason":             {Queues: only(operator.QueueEvents), Rate: 1},
		"no rate":               {Queues: only(operator.QueueEvents), Why: "x"},
		"more than SQS moves":   {Queues: only(operator.QueueEvents), Why: "x", Rate: operator.RedriveRateMax + 1},
		"an unknown queue":      {Queues: only("both"), Why: "x", Rate: 1},
		"pruning the relay's":   {Queues: only(operator.QueueRelay), Why: "x", Rate: 1, Prune: true},
		"replaying the relay's": {Queues: only(operator.QueueRelay), Why: "x", Rate: 1, ReplayFailed: true},
		"replaying deliveries":  {Queues: only(operator.QueueDeliveries), Why: "x", Rate: 1, ReplayFailed: true},
	} {
		_, err := o.PlanRedrive(t.Context(), r)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		wantRefusal(t, err, "usage")
	}
}

// Proves R3: all letters are moved by the queue's own service, and the act is recorded.
func TestEventLettersAreMovedByTheQueueItself(t *testing.T) {
	t.Parallel()
	w, o := buried(t)
	got, err := redrive(t, o, operator.Redrive{Queues: only(operator.QueueEvents), Rate: 50, Why: "ticket 7"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Redriven{Moved: 15}, got); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if len(w.EventLetters.Letters) != 0 || len(w.EventLetters.Sent) != 15 {
		t.Errorf("%d letters left, %d sent; want 0 and 15", len(w.EventLetters.Letters), len(w.EventLetters.Sent))
	}
	act := w.Acts[len(w.Acts)-1]
	if act.Name != "dlq redrive" || act.Subject != "queue events" || act.Who != "ada" || act.Why != "ticket 7" {
		t.Errorf("act %+v", act)
	}
}

// Proves R3: useless letters go, FAILED events are replayed by the audited replay,
// and only the rest is moved.
func TestPruningAndReplayingLeaveOnlyWhatIsToBeMoved(t *testing.T) {
	t.Parallel()
	w, o := buried(t)
	got, err := redrive(t, o, operator.Redrive{Queues: only(operator.QueueEvents), Rate: 50, Why: "ticket 7", Prune: true, ReplayFailed: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Redriven{Replayed: 1, Removed: 8, Moved: 7}, got); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	want := []string{wakeOf(t, "in_due"), wakeOf(t, "in_retry"), wakeOf(t, "in_abandoned"), wakeOf(t, "in_gap"),
		`{"v":2,"inbox_id":"in_due","topic":"process"}`, "hello", `{"v":1,"inbox_id":"in_due","topic":"call"}`}
	slices.Sort(want)
	slices.Sort(w.EventLetters.Sent)
	if diff := cmp.Diff(want, w.EventLetters.Sent); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
	if row := w.Rows["in_failed"]; row.Status != webhook.Received {
		t.Errorf("the FAILED event is %s", row.Status)
	}
	names := map[string]string{}
	for _, a := range w.Acts[1:] {
		names[a.Name] = a.Subject
	}
	if diff := cmp.Diff(map[string]string{"dlq redrive": "queue events", "inbox replay": "event in_failed"}, names); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
}

func TestAnEventThatCannotBeReplayedKeepsItsLetter(t *testing.T) {
	t.Parallel()
	w, o := buried(t)
	row := w.Rows["in_failed"]
	row.BodyExpiresAt = w.Clock.Add(time.Hour)
	w.Rows["in_failed"] = row
	got, err := redrive(t, o, operator.Redrive{Queues: only(operator.QueueEvents), Rate: 50, Why: "ticket 7", ReplayFailed: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Redriven{Left: map[string]int{"body_gone": 1}, Moved: 15}, got); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

func TestAMoveThatRunsAlreadyIsFollowedAndNothingElseIsDone(t *testing.T) {
	t.Parallel()
	w, o := buried(t)
	w.EventLetters.Task = &webhook.Move{StartedAt: w.Clock, Running: true, ToMove: 4}
	got, err := redrive(t, o, operator.Redrive{Queues: only(operator.QueueEvents), Rate: 50, Why: "ticket 7", Prune: true, ReplayFailed: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Redriven{Moved: 4}, got); diff != "" || len(w.EventLetters.Letters) != 11 || w.Rows["in_failed"].Status != webhook.Failed {
		t.Errorf("%d letters left; done (-want +got):\n%s", len(w.EventLetters.Letters), diff)
	}
}

// A move whose answer was lost, or that somebody else began a moment before, is
// followed like our own.
func TestAMoveThatWasBegunAllTheSameIsFollowed(t *testing.T) {
	t.Parallel()
	w, o := buried(t)
	w.Lose = operatortest.Down("Move")
	got, err := redrive(t, o, operator.Redrive{Queues: only(operator.QueueEvents), Rate: 50, Why: "ticket 7"})
	if err != nil || !cmp.Equal(operator.Redriven{Moved: 15}, got) {
		t.Errorf("done %+v, error %v; want 15 moved", got, err)
	}
}

func TestAMoveThatFailsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w, o := buried(t)
	w.Lose = func(call string) error {
		if call == "Move" {
			w.EventLetters.Task = &webhook.Move{Moved: 2, Failure: "CouldNotDetermineMessageSource"}
		}
		return nil
	}
	_, err := redrive(t, o, operator.Redrive{Queues: only(operator.QueueEvents), Rate: 50, Why: "ticket 7"})
	if r := wantRefusal(t, err, "move_failed"); len(r.Next) == 0 {
		t.Error("it does not say what to do next")
	}
}

// Proves R3, D5: what the stream gave up is published again, and only then is
// its report deleted.
func TestWhatTheStreamGaveUpIsBroughtNear(t *testing.T) {
	t.Parallel()
	w, o := gaveUp(t)
	now := w.Clock
	got, err := redrive(t, o, operator.Redrive{Queues: only(operator.QueueRelay), Rate: 50, Why: "ticket 7"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.Redriven{Near: 4, Reports: 3}, got); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]webhook.InboxID{"in_1", "in_2", "in_3", "in_4"}, near(w, now)); diff != "" {
		t.Errorf("brought near (-want +got):\n%s", diff)
	}
	if act := w.Acts[len(w.Acts)-1]; act.Subject != "queue relay" || len(w.RelayLetters.Letters) != 0 {
		t.Errorf("act %+v, %d reports left", act, len(w.RelayLetters.Letters))
	}
	again, err := redrive(t, o, operator.Redrive{Queues: only(operator.QueueRelay), Rate: 50, Why: "ticket 7"})
	if err != nil || !cmp.Equal(operator.Redriven{}, again) {
		t.Errorf("done again: %+v, error %v", again, err)
	}
}

// Proves R3, T5: a redrive that dies before or after any of its calls has lost
// nothing, and the same command, run again, does the rest.
func TestARedriveThatDiesAnywhereIsFinishedByTheSameCommand(t *testing.T) {
	t.Parallel()
	r := operator.Redrive{Queues: operator.Queues(), Rate: 50, Why: "ticket 7", Prune: true, ReplayFailed: true}
	for _, after := range []bool{false, true} {
		n := 1
		for dies(t, r, n, after) {
			n++
		}
		if least := 10; n < least {
			t.Errorf("after %v: only %d calls were met", after, n)
		}
	}
}

// all is the world of the dead letters of every queue.
func all(t *testing.T) (*operatortest.World, *operator.Operator) {
	t.Helper()
	w, o := buried(t)
	undispatched(t, w)
	relayed, _ := gaveUp(t)
	for id, row := range relayed.Rows {
		if _, taken := w.Rows[id]; !taken {
			w.Rows[id] = row
		}
	}
	maps.Copy(w.Promises, relayed.Promises)
	for _, l := range relayed.RelayLetters.Letters {
		w.RelayLetters.Put(l.ID, l.Body, l.SentAt)
	}
	return w, o
}

// dies does a redrive that dies at its n-th call, and then again what is left. It
// returns false if there is no such call.
func dies(t *testing.T, r operator.Redrive, n int, after bool) bool {
	t.Helper()
	w, o := all(t)
	start := w.Clock
	reached := dying(w, n, after)
	_, err := redrive(t, o, r)
	if !reached() {
		if err != nil {
			t.Fatalf("call %d, after %v: %v", n, after, err)
		}
		return false
	}
	alive(w)
	w.Advance(11 * time.Minute) // what it held is shown again
	if _, err := redrive(t, o, r); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("call %d, after %v", n, after)
	if left := slices.Concat(bodiesOf(w.EventLetters), bodiesOf(w.DeliveryLetters), bodiesOf(w.RelayLetters)); len(left) != 0 {
		t.Errorf("%s: left: %v", name, left)
	}
	if row := w.Rows["in_failed"]; row.Status != webhook.Received {
		t.Errorf("%s: the FAILED event is %s", name, row.Status)
	}
	// In the eleven minutes the fresh promise has fallen behind as well.
	got := slices.DeleteFunc(near(w, start), func(id webhook.InboxID) bool { return id == "in_fresh" || id == "in_failed" })
	if diff := cmp.Diff([]webhook.InboxID{"in_1", "in_2", "in_3", "in_4"}, got); diff != "" {
		t.Errorf("%s: brought near (-want +got):\n%s", name, diff)
	}
	for _, id := range []webhook.InboxID{"in_due", "in_retry", "in_abandoned", "in_gap"} {
		if !slices.Contains(w.EventLetters.Sent, wakeOf(t, id)) {
			t.Errorf("%s: the letter of %s was lost", name, id)
		}
	}
	for _, id := range []delivery.ID{"dl_due", "dl_retry", "dl_abandoned", "dl_before", "dl_late", "dl_lapsed", "dl_stopped", "dl_deserted", "dl_dead"} {
		if !slices.Contains(w.DeliveryLetters.Sent, wakeOfDelivery(t, id)) {
			t.Errorf("%s: the letter of %s was lost", name, id)
		}
	}
	return true
}
