package operator_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// crowd makes n failed events of the demo endpoint, the i-th failed i seconds ago.
func crowd(t *testing.T, n int) (*operatortest.World, *operator.Operator) {
	t.Helper()
	w, o := create(t)
	o.Workers = 8
	for i := range n {
		id := webhook.InboxID(fmt.Sprintf("in_%03d", i))
		w.Rows[id] = webhook.Inbox{
			ID: id, Provider: "stripe", Endpoint: "demo", EventType: "charge.failed", Status: webhook.Failed, Fence: 3, AttemptCount: 8, LastError: "partner_503",
			ReceivedAt: w.Clock.Add(-time.Hour), ProcessedAt: w.Clock.Add(-time.Duration(i) * time.Second), BodyExpiresAt: w.Clock.Add(29 * 24 * time.Hour),
		}
	}
	return w, o
}

func bulk(w *operatortest.World, act string) operator.Bulk {
	return operator.Bulk{Act: act, Filter: webhook.Filter{Endpoint: "demo", Since: w.Clock.Add(-24 * time.Hour)}, Why: "ticket 7", Rate: 50}
}

func planned(t *testing.T, o *operator.Operator, b operator.Bulk) operator.Plan {
	t.Helper()
	p, err := o.PlanBulk(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func quiet(webhook.Job) {}

// Proves R3 (bulk): a plan counts, samples, and says what it costs; it writes nothing.
func TestAPlanSaysWhatAJobWouldDo(t *testing.T) {
	t.Parallel()
	w, o := crowd(t, 7)
	change := func(id webhook.InboxID, do func(*webhook.Inbox)) {
		row := w.Rows[id]
		do(&row)
		w.Rows[id] = row
	}
	change("in_001", func(r *webhook.Inbox) { r.BodyExpiresAt = w.Clock.Add(time.Hour) })
	change("in_002", func(r *webhook.Inbox) { r.EventType = "customer.unheard_of" })
	change("in_003", func(r *webhook.Inbox) { r.LastError = "schema" })
	kind, _ := stripe(t, w).Kind("charge.failed")

	b := bulk(w, "inbox replay")
	b.Filter.Cause = "partner_503"
	got := planned(t, o, b)
	want := operator.Plan{
		Job: webhook.Job{
			Act: "inbox replay", Why: "ticket 7", Rate: 50, CreatedAt: w.Clock, UpdatedAt: w.Clock, State: webhook.JobRunning, Matched: 6,
			Filter: webhook.Filter{
				Endpoint: "demo", Statuses: []webhook.Status{webhook.Failed}, Cause: "partner_503",
				Since: w.Clock.Add(-24 * time.Hour), Until: w.Clock.Add(5 * time.Minute),
			},
		},
		Matched: 6, ByStatus: map[webhook.Status]int{webhook.Failed: 6}, ByKind: map[string]int{string(kind.Name): 5, "customer.unheard_of": 1},
		Refused: map[string]int{"body_gone": 1}, Units: 55, Takes: 120 * time.Millisecond,
		Sample: []webhook.Inbox{w.Rows["in_000"], w.Rows["in_001"], w.Rows["in_002"], w.Rows["in_004"], w.Rows["in_005"]},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if len(w.Jobs) > 0 || len(w.Acts) != 1 {
		t.Error("planning wrote something")
	}
}

func TestBulksThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, code string
		change     func(*operator.Bulk)
	}{
		{"no reason", "usage", func(b *operator.Bulk) { b.Why = "" }},
		{"no rate", "usage", func(b *operator.Bulk) { b.Rate = 0 }},
		{"too high a rate", "usage", func(b *operator.Bulk) { b.Rate = operator.RateMax + 1 }},
		{"a state that is not replayed", "usage", func(b *operator.Bulk) { b.Filter.Statuses = []webhook.Status{webhook.Held} }},
		{"a state that there is not", "usage", func(b *operator.Bulk) { b.Filter.Statuses = []webhook.Status{"LOST"} }},
		{"a second run of what is not replayed", "usage", func(b *operator.Bulk) { b.Act, b.Handler = "inbox hold", "search-index" }},
		{"an act that there is not", "usage", func(b *operator.Bulk) { b.Act = "inbox eat" }},
		{"an unknown endpoint", "endpoint_unknown", func(b *operator.Bulk) { b.Filter.Endpoint = "nobody" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, o := crowd(t, 1)
			b := bulk(w, "inbox replay")
			tt.change(&b)
			_, err := o.PlanBulk(t.Context(), b)
			wantRefusal(t, err, tt.code)
		})
	}
	w, o := crowd(t, 1)
	b := bulk(w, "inbox replay")
	b.Why, b.PlanOnly = "", true
	if p := planned(t, o, b); p.Matched != 1 {
		t.Errorf("a plan alone needs no reason; matched %d", p.Matched)
	}
}

// Proves R3 (bulk): every event is done once, each with a record of its own that
// names the job, at the rate that was asked for.
func TestAJobDoesItsDeedToEveryEvent(t *testing.T) {
	t.Parallel()
	w, o := crowd(t, 120)
	w.Applied["in_007"] = true
	began := w.Clock
	var told []int
	j, err := o.Start(t.Context(), planned(t, o, bulk(w, "inbox replay")), func(j webhook.Job) { told = append(told, j.Handled()) })
	if err != nil {
		t.Fatal(err)
	}
	want := webhook.Job{
		ID: j.ID, Act: "inbox replay", Filter: j.Filter, Who: "ada", Why: "ticket 7", Rate: 50, CreatedAt: began, UpdatedAt: w.Clock,
		State: webhook.JobDone, Matched: 120, Done: 119, Left: map[string]int{"already_applied": 1}, Cursor: j.Cursor, Revision: 5,
	}
	if diff := cmp.Diff(want, j); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(j, w.Jobs[j.ID]); diff != "" {
		t.Errorf("stored job (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{50, 100, 120}, told); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if took := w.Clock.Sub(began); took < 119*time.Second/50 || took > 3*time.Second {
		t.Errorf("took %s for 120 events at 50 a second", took)
	}
	for id, row := range w.Rows {
		acts, _ := o.Registry.ActsOn(t.Context(), "event "+string(id))
		if id == "in_007" {
			if row.Status != webhook.Failed || len(acts) != 0 {
				t.Errorf("%s is %s with %d acts, want it left alone", id, row.Status, len(acts))
			}
			continue
		}
		if row.Status != webhook.Received || row.Fence != 4 || len(acts) != 1 || acts[0].Job != j.ID || acts[0].Why != "ticket 7" || acts[0].Name != "inbox replay" {
			t.Errorf("%s is %s at fence %d with acts %v", id, row.Status, row.Fence, acts)
		}
	}
	last := w.Acts[1]
	if last.Name != "inbox replay --all" || last.Subject != "job "+j.ID {
		t.Errorf("the job's own record is %+v", last)
	}
}

// power ends all calls from a certain write on, before or after it is done.
type power struct {
	mu     sync.Mutex
	left   int
	after  bool
	dead   bool
	writes int
}

var jobWrites = []string{"CreateJobBy", "UpdateJob", "UpdateJobBy", "Reopen", "Hold", "FailBy", "BringNear", "UpdateEndpointBy"}

func (p *power) spend(call string, after bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return operatortest.ErrDown
	}
	if !slices.Contains(jobWrites, call) || p.after != after {
		return nil
	}
	if p.writes++; p.writes == p.left {
		p.dead = true
		return operatortest.ErrDown
	}
	return nil
}

// plug makes the power's end the world's.
func plug(w *operatortest.World, p *power) {
	w.Fail = func(call string) error { return p.spend(call, false) }
	w.Lose = func(call string) error { return p.spend(call, true) }
}

// Proves R3, T5: a command that dies at any write leaves a job that another
// finishes, and no event is done twice, even one that failed again meanwhile.
func TestAJobSurvivesADeathAtEveryWrite(t *testing.T) {
	t.Parallel()
	const events = 57
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			w, o := crowd(t, events)
			p := &power{left: n, after: after}
			plan := planned(t, o, bulk(w, "inbox replay"))
			plug(w, p)
			_, err := o.Start(t.Context(), plan, quiet)
			w.Fail, w.Lose = func(string) error { return nil }, func(string) error { return nil }
			if !p.dead {
				if err != nil || n < events {
					t.Fatalf("ended after %d writes with error %v", n, err)
				}
				break
			}
			if err == nil {
				t.Fatalf("death at write %d (after: %t) went unnoticed", n, after)
			}
			for id, row := range w.Rows {
				if row.Status == webhook.Received { // a worker takes it, and it fails once more, by a clock that is behind
					row.Status, row.ProcessedAt = webhook.Failed, w.Clock.Add(-time.Minute)
					w.Rows[id] = row
				}
			}
			finish(t, o, w, plan)
			for id, row := range w.Rows {
				acts, _ := o.Registry.ActsOn(t.Context(), "event "+string(id))
				if len(acts) != 1 || row.Fence != 4 {
					t.Fatalf("death at write %d (after: %t): %s has %d acts and fence %d, want 1 and 4", n, after, id, len(acts), row.Fence)
				}
			}
		}
	}
}

// finish does what a person does after a death: resume the job that is there, or
// start it if it was never made.
func finish(t *testing.T, o *operator.Operator, w *operatortest.World, plan operator.Plan) {
	t.Helper()
	for id, j := range maps.Clone(w.Jobs) {
		if j.State.Over() {
			return
		}
		done, err := o.ResumeJob(t.Context(), id, "after the crash", quiet)
		if err != nil || done.State != webhook.JobDone {
			t.Fatalf("resumed: %s, error %v", done.State, err)
		}
		return
	}
	if _, err := o.Start(t.Context(), plan, quiet); err != nil {
		t.Fatal(err)
	}
}

// Proves R3: an interrupted job has finished what it had in hand, and says where
// it stopped; it goes on there.
func TestAnInterruptedJobGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	w, o := crowd(t, 130)
	ctx, cancel := context.WithCancel(t.Context())
	j, err := o.Start(ctx, planned(t, o, bulk(w, "inbox replay")), func(j webhook.Job) {
		if j.Done == 50 {
			cancel()
		}
	})
	wantRefusal(t, err, "interrupted")
	if j.State != webhook.JobStopped || w.Jobs[j.ID].State != webhook.JobStopped {
		t.Errorf("the job is %s, stored %s", j.State, w.Jobs[j.ID].State)
	}
	replayed := 0
	for _, row := range w.Rows {
		if row.Status == webhook.Received {
			replayed++
		}
	}
	if replayed != j.Done || j.Done < 50 || j.Done == 130 {
		t.Errorf("%d replayed, %d counted", replayed, j.Done)
	}
	done, err := o.ResumeJob(t.Context(), j.ID, "", quiet)
	if err != nil || done.Done != 130 || done.State != webhook.JobDone {
		t.Errorf("resumed: %d done, %s, error %v", done.Done, done.State, err)
	}
	_, err = o.ResumeJob(t.Context(), j.ID, "", quiet)
	wantRefusal(t, err, "job_over")
}

// A command learns at its next write that its job was cancelled, or taken over.
func TestAJobThatIsTakenFromACommandStopsIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		take func(ctx context.Context, o *operator.Operator, id string) error
		want webhook.JobState
	}{
		{"cancelled", func(ctx context.Context, o *operator.Operator, id string) error {
			_, err := o.CancelJob(ctx, id, "a mistake")
			return err
		}, webhook.JobCancelled},
		{"resumed by another", func(ctx context.Context, o *operator.Operator, id string) error {
			_, err := o.ResumeJob(ctx, id, "", quiet)
			return err
		}, webhook.JobDone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, o := crowd(t, 130)
			taken := false
			j, err := o.Start(t.Context(), planned(t, o, bulk(w, "inbox replay")), func(j webhook.Job) {
				if taken {
					return
				}
				taken = true
				if err := tt.take(t.Context(), o, j.ID); err != nil {
					t.Error(err)
				}
			})
			wantRefusal(t, err, "job_taken")
			if j.State != tt.want || w.Jobs[j.ID].State != tt.want {
				t.Errorf("the job is %s, stored %s; want %s", j.State, w.Jobs[j.ID].State, tt.want)
			}
			for id := range w.Rows {
				if acts, _ := o.Registry.ActsOn(t.Context(), "event "+string(id)); len(acts) > 1 {
					t.Errorf("%s was done %d times", id, len(acts))
				}
			}
		})
	}
}

// An event that changes between the list and its turn is left alone, and so is
// one that does not match any more.
func TestAJobLeavesAloneWhatHasMovedOn(t *testing.T) {
	t.Parallel()
	w, o := crowd(t, 1)
	plan := planned(t, o, bulk(w, "inbox replay"))
	row := w.Rows["in_000"]
	w.Fail = func(call string) error {
		if call == "JobDid" && w.Rows["in_000"].Fence == 3 { // a rival, between the read and the write
			row.Fence++
			w.Rows["in_000"] = row
		}
		return nil
	}
	j, err := o.Start(t.Context(), plan, quiet)
	if err != nil || j.Done != 0 || j.Left["moved_on"] != 1 {
		t.Errorf("job %+v, error %v", j, err)
	}
	if acts, _ := o.Registry.ActsOn(t.Context(), "event in_000"); len(acts) != 0 {
		t.Errorf("acts %v on what had moved on", acts)
	}
}

// Proves R3: a job over applied events counts what their handlers do not allow.
func TestASecondRunOfManyIsPlannedByHandler(t *testing.T) {
	t.Parallel()
	w, _ := crowd(t, 4)
	w.Router = w.Router.With(webhook.Payment, index{})
	o := w.Operator()
	for i, id := range []webhook.InboxID{"in_000", "in_001", "in_002"} {
		row := w.Rows[id]
		row.Status, row.Outcome = webhook.Processed, webhook.Applied
		row.EventType = []webhook.EventType{"payment_intent.succeeded", "charge.refunded", "payment_intent.succeeded"}[i]
		w.Rows[id] = row
		w.Applied[id] = true
	}
	b := bulk(w, "inbox replay")
	b.Handler = "search-index"
	plan := planned(t, o, b)
	_, declared := w.Router.Handler(webhook.Event{Facts: webhook.Facts{ObjectType: webhook.Payment}})
	object := func(typ webhook.EventType) webhook.ObjectType {
		k, _ := stripe(t, w).Kind(typ)
		return k.Object
	}
	if !declared || object("payment_intent.succeeded") != webhook.Payment || object("charge.refunded") == webhook.Payment {
		t.Skip("the catalogue has changed: this test wants one declared and one other object")
	}
	if diff := cmp.Diff(map[string]int{"not_reprocessable": 1}, plan.Refused); diff != "" || plan.Matched != 3 {
		t.Errorf("%d matched; refused (-want +got):\n%s", plan.Matched, diff)
	}
	j, err := o.Start(t.Context(), plan, quiet)
	if err != nil || j.Done != 2 || j.Left["not_reprocessable"] != 1 || w.Rows["in_000"].Run != 1 || w.Rows["in_001"].Run != 0 {
		t.Errorf("job %+v, error %v", j, err)
	}
}

func TestJobsAreListedAndShown(t *testing.T) {
	t.Parallel()
	w, o := crowd(t, 1)
	var want []string
	for range 3 {
		w.Advance(time.Second)
		j, err := o.Start(t.Context(), planned(t, o, bulk(w, "inbox hold")), quiet)
		if err != nil {
			t.Fatal(err)
		}
		want = append([]string{j.ID}, want...)
	}
	jobs, err := o.JobList(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for j, err := range jobs {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, j.ID)
	}
	if diff := cmp.Diff(want[:2], got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	_, err = o.JobList(t.Context(), 0)
	wantRefusal(t, err, "usage")
	_, err = o.Job(t.Context(), "job-nothing")
	wantRefusal(t, err, "job_unknown")
}

// waitingWorld builds what a paused endpoint has: events of every state, with their promises far away.
func waitingWorld(t *testing.T) (*operatortest.World, *operator.Operator) {
	t.Helper()
	w, o := create(t)
	if _, err := o.Pause(t.Context(), "demo", "maintenance"); err != nil {
		t.Fatal(err)
	}
	for i, s := range webhook.Statuses() {
		for _, e := range []webhook.EndpointID{"demo", "other"} {
			row := webhook.Inbox{
				ID: webhook.InboxID(fmt.Sprintf("in_%s_%d", e, i)), Provider: "stripe", Endpoint: e, EventType: "charge.failed", Status: s, Fence: 5,
				ReceivedAt: w.Clock, NextAttemptAt: w.Clock,
			}
			if s == webhook.Retry {
				row.NextAttemptAt = w.Clock.Add(time.Hour)
			}
			if s == webhook.Processing {
				row.LeaseUntil = w.Clock.Add(-time.Minute)
			}
			w.Rows[row.ID] = row
			far := webhook.NewOutbox(row, w.Clock.Add(24*time.Hour), w.Clock)
			far.PublishedAt, far.Wakes = w.Clock, 6
			if e == "demo" && i == 0 {
				far.Endpoint = "" // a row of before it was kept there
			}
			w.Promises[far.ID] = far
		}
	}
	return w, o
}

// Proves R3: resuming brings exactly the endpoint's waiting events near, once
// every process knows that the pause is over.
func TestResumeBringsWaitingEventsNear(t *testing.T) {
	t.Parallel()
	w, o := waitingWorld(t)
	before := maps.Clone(w.Promises)
	plan, err := o.PlanResume(t.Context(), "demo", 50, "done")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[webhook.Status]int{webhook.Received: 1, webhook.Retry: 1, webhook.Processing: 1}, plan.ByStatus); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if w.Endpoints["demo"].PausedAt.IsZero() {
		t.Error("planning ended the pause")
	}
	cleared := w.Clock
	j, err := o.Resume(t.Context(), plan, quiet)
	if err != nil || j.Done != 3 || j.State != webhook.JobDone {
		t.Fatalf("job %+v, error %v", j, err)
	}
	if !w.Endpoints["demo"].PausedAt.IsZero() {
		t.Error("the endpoint is paused still")
	}
	if j.NotBefore.Sub(cleared) < operator.PauseWithin {
		t.Errorf("began %s after the pause ended: a worker may not know yet", j.NotBefore.Sub(cleared))
	}
	want := before
	for id, due := range map[string]time.Time{"in_demo_0": {}, "in_demo_1": {}, "in_demo_3": cleared.Add(time.Hour)} {
		key := webhook.NewOutboxID(webhook.InboxID(id), webhook.TopicProcess, 0)
		o := want[key]
		if o.DueAt = due; due.IsZero() {
			o.DueAt = w.Promises[key].DueAt // the moment of its turn
			if o.DueAt.Before(j.NotBefore) || o.DueAt.After(w.Clock) {
				t.Errorf("%s is due at %s", id, o.DueAt)
			}
		}
		o.WakeAt, o.PublishedAt, o.Wakes, o.InDueIndex = o.DueAt.Add(time.Minute), time.Time{}, 0, !due.IsZero()
		want[key] = o
	}
	if diff := cmp.Diff(want, w.Promises); diff != "" {
		t.Errorf("promises (-want +got):\n%s", diff)
	}
	var names []string
	for _, a := range w.Acts {
		names = append(names, a.Name)
	}
	if diff := cmp.Diff([]string{"endpoint create", "endpoint pause", "endpoint resume", "endpoint resume --all"}, names); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
}

// Proves R3, T5: a resume that dies anywhere is finished by running it, or its job, again.
func TestAResumeSurvivesADeathAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			w, o := waitingWorld(t)
			plan, err := o.PlanResume(t.Context(), "demo", 50, "done")
			if err != nil {
				t.Fatal(err)
			}
			p := &power{left: n, after: after}
			plug(w, p)
			_, err = o.Resume(t.Context(), plan, quiet)
			w.Fail, w.Lose = func(string) error { return nil }, func(string) error { return nil }
			if !p.dead {
				if err != nil || n < 6 {
					t.Fatalf("ended after %d writes with error %v", n, err)
				}
				break
			}
			again := func() error { _, err := o.Resume(t.Context(), plan, quiet); return err }
			for id, j := range w.Jobs {
				again = func() error { _, err := o.ResumeJob(t.Context(), id, "", quiet); return err }
				if j.State.Over() {
					again = func() error { return nil }
				}
			}
			if err := again(); err != nil {
				t.Fatalf("death at write %d (after: %t): %v", n, after, err)
			}
			for id, o := range w.Promises {
				row := w.Rows[o.InboxID]
				near := row.Endpoint == "demo" && slices.Contains([]webhook.Status{webhook.Received, webhook.Retry, webhook.Processing}, row.Status)
				if near != o.PublishedAt.IsZero() {
					t.Errorf("death at write %d (after: %t): %s, %s, published %s", n, after, id, row.Status, o.PublishedAt)
				}
			}
			if !w.Endpoints["demo"].PausedAt.IsZero() {
				t.Errorf("death at write %d (after: %t): still paused", n, after)
			}
		}
	}
}

func TestPauseIsRecordedOnceAndEndsAResume(t *testing.T) {
	t.Parallel()
	w, o := waitingWorld(t)
	p, err := o.Pause(t.Context(), "demo", "again")
	if err != nil || !p.Existed || !p.Endpoint.PausedAt.Equal(w.Clock) || len(w.Acts) != 2 {
		t.Errorf("%+v, error %v, %d acts", p, err, len(w.Acts))
	}
	plan, err := o.PlanResume(t.Context(), "demo", 50, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Resume(t.Context(), plan, func(webhook.Job) {
		if _, err := o.Pause(t.Context(), "demo", "not yet"); err != nil {
			t.Error(err)
		}
	})
	wantRefusal(t, err, "job_stopped")
	_, err = o.PlanResume(t.Context(), "nobody", 50, "")
	wantRefusal(t, err, "endpoint_unknown")
	_, err = o.PlanResume(t.Context(), "demo", 0, "")
	wantRefusal(t, err, "usage")
}

var _ business.Reprocessable = index{}
