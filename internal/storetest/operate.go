package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

// bringNear writes an open row's promise anew, if it is the one that was read.
func (s suite) bringNear(t *testing.T) {
	row := Row("near", 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	retry := claimed.Retry(now.Add(5*time.Hour), "their_fault", false)
	row = retry.Apply(claimed)
	far := webhook.NewOutbox(row, now.Add(5*time.Hour), now)
	if ok, err := s.Retry(t.Context(), retry, far); err != nil || !ok {
		t.Fatalf("retry: %v, %v", ok, err)
	}
	published := far.Publish(now)
	if ok, err := s.MarkPublished(t.Context(), published); err != nil || !ok {
		t.Fatalf("mark: %v, %v", ok, err)
	}

	at := now.Add(time.Hour) // still four hours too early for the row itself
	near := far.Near(row, at)
	if ok, err := s.BringNear(t.Context(), near); err != nil || !ok {
		t.Fatalf("bring near: %v, %v", ok, err)
	}
	s.wantPromise(t, far.ID, &webhook.Outbox{
		ID: far.ID, InboxID: row.ID, Endpoint: row.Endpoint, Topic: webhook.TopicProcess, CreatedAt: now, Gen: row.Fence,
		DueAt: now.Add(5 * time.Hour), WakeAt: now.Add(5*time.Hour + time.Minute), InDueIndex: true,
	})
	at = now.Add(6 * time.Hour)
	near = near.Near(row, at)
	for range 2 { // the second is the try after a reply that never came
		if ok, err := s.BringNear(t.Context(), near); err != nil || !ok {
			t.Fatalf("bring near: %v, %v", ok, err)
		}
	}
	want := webhook.Outbox{
		ID: far.ID, InboxID: row.ID, Endpoint: row.Endpoint, Topic: webhook.TopicProcess, CreatedAt: now, Gen: row.Fence,
		DueAt: at, WakeAt: at.Add(time.Minute),
	}
	s.wantPromise(t, far.ID, &want)
	if ok, err := s.MarkPublished(t.Context(), near.Publish(at)); err != nil || !ok {
		t.Errorf("the relay's mark of what was brought near: %v, %v; want true", ok, err)
	}

	older := near
	older.Gen--
	if ok, err := s.BringNear(t.Context(), older); err != nil || ok {
		t.Errorf("another generation: %v, %v; want false", ok, err)
	}
	if ok, err := s.DeleteOutbox(t.Context(), far.ID, near.Gen); err != nil || !ok {
		t.Fatalf("delete: %v, %v", ok, err)
	}
	if ok, err := s.BringNear(t.Context(), near); err != nil || ok {
		t.Errorf("a promise that is gone: %v, %v; want false", ok, err)
	}
	s.wantPromise(t, far.ID, nil)
}

// subjects finds the acts on one subject, and whether a job was there.
func (s suite) subjects(t *testing.T) {
	act := func(id, subject, job string, at time.Duration) webhook.Act {
		return webhook.Act{ID: id, At: now.Add(at), Name: "test", Subject: subject, Who: "ada", Why: "a test", Job: job}
	}
	acts := []webhook.Act{
		act("s1", "endpoint subjects", "", 0), act("s2", "endpoint subjects version k1", "", -48*time.Hour),
		act("s3", "event in_subject", "job-1", time.Minute), act("s4", "event in_subject", "", 2*time.Minute), act("s5", "endpoint subjects-2", "", 0),
	}
	for _, a := range acts {
		if err := s.RecordAct(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for subject, want := range map[string][]webhook.Act{
		"endpoint subjects": {acts[0], acts[1]}, "event in_subject": {acts[3], acts[2]}, "event in_nobody": nil,
	} {
		got, err := s.ActsOn(t.Context(), subject)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("acts on %s (-want +got):\n%s", subject, diff)
		}
	}
	for job, want := range map[string]bool{"job-1": true, "job-2": false} {
		if did, err := s.JobDid(t.Context(), job, "event in_subject"); err != nil || did != want {
			t.Errorf("%s did: %v, %v; want %v", job, did, err, want)
		}
	}
	var byDay []webhook.Act
	for a, err := range s.Acts(t.Context(), now.Add(-72*time.Hour), now.Add(-24*time.Hour)) {
		if err != nil {
			t.Fatal(err)
		}
		byDay = append(byDay, a)
	}
	if diff := cmp.Diff([]webhook.Act{acts[1]}, byDay); diff != "" {
		t.Errorf("acts of two days ago (-want +got):\n%s", diff)
	}
}

// jobs change only under their revision.
func (s suite) jobs(t *testing.T) {
	j := webhook.Job{
		ID: "job-20260301t120000-a", Act: "inbox replay", Who: "ada", Why: "a test", Rate: 50, CreatedAt: now, UpdatedAt: now, State: webhook.JobRunning,
		Matched: 3, Left: map[string]int{"moved_on": 1}, Cursor: "2026-03-01T11:00:00Z",
		Filter: webhook.Filter{Endpoint: "demo", Statuses: []webhook.Status{webhook.Failed}, Cause: "schema", Since: now.Add(-time.Hour), Until: now},
	}
	act := webhook.Act{ID: "j", At: now, Name: "inbox replay --all", Subject: "job " + j.ID, Who: "ada"}
	write := func(name string, want bool) func(bool, error) {
		return func(ok bool, err error) {
			t.Helper()
			if err != nil || ok != want {
				t.Fatalf("%s: %v, %v; want %v", name, ok, err, want)
			}
		}
	}
	write("create", true)(s.CreateJobBy(t.Context(), j, act))
	write("create again", false)(s.CreateJobBy(t.Context(), j, act))
	j.Revision, j.Done, j.State = 1, 2, webhook.JobStopped
	write("update", true)(s.UpdateJob(t.Context(), j))
	write("update of what moved on", false)(s.UpdateJob(t.Context(), j))
	write("recorded update of what moved on", false)(s.UpdateJobBy(t.Context(), j, act))
	j.Revision = 2
	write("recorded update", true)(s.UpdateJobBy(t.Context(), j, act))
	j.Revision = 3
	got, found, err := s.Job(t.Context(), j.ID)
	if diff := cmp.Diff(j, got); diff != "" || !found || err != nil {
		t.Errorf("found %v, error %v; job (-want +got):\n%s", found, err, diff)
	}
	if _, found, err := s.Job(t.Context(), "job-none"); found || err != nil {
		t.Errorf("a job that is not there: %v, %v", found, err)
	}
	second := j
	second.ID, second.Revision = "job-20260302t120000-a", 0
	write("create another", true)(s.CreateJobBy(t.Context(), second, act))
	var ids []string
	for j, err := range s.Jobs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, j.ID)
	}
	if diff := cmp.Diff([]string{second.ID, j.ID}, ids); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

// reprocess opens an applied row for its next run, whose mark decides anew.
func (s suite) reprocess(t *testing.T) {
	row := Row("reprocess", 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	complete := claimed.Complete(webhook.Applied, now, keep)
	mark := webhook.Mark{InboxID: row.ID, At: now, ExpiresAt: now.Add(2 * keep)}
	if verdict, err := s.Complete(t.Context(), webhook.Completion{Change: complete, Claim: "c", Mark: &mark}); err != nil || verdict != webhook.Committed {
		t.Fatalf("complete: %s, %v", verdict, err)
	}
	if got, found, err := s.Mark(t.Context(), row.ID, 0); err != nil || !found || !cmp.Equal(mark, got) {
		t.Errorf("mark %+v, found %v, error %v; want %+v", got, found, err, mark)
	}
	if _, found, err := s.Mark(t.Context(), row.ID, 1); err != nil || found {
		t.Errorf("the mark of the next run: found %v, error %v", found, err)
	}
	done := complete.Apply(claimed)
	again := done.Reprocess(now)
	after := again.Apply(done)
	act := webhook.Act{ID: "r", At: now, Name: "inbox reprocess", Subject: "event " + string(row.ID), Who: "ada", Job: "job-1"}
	promise := webhook.NewOutbox(after, now, now)
	for _, want := range []webhook.Verdict{webhook.Committed, webhook.ClaimLost} { // the second is another operator's, of the same row
		if got, err := s.Reopen(t.Context(), again, after.Run, promise, act); err != nil || got != want {
			t.Fatalf("reprocess: %s, %v; want %s", got, err, want)
		}
	}
	s.wantRow(t, after)
	s.wantPromise(t, promise.ID, &promise)
	if did, err := s.JobDid(t.Context(), "job-1", act.Subject); err != nil || !did {
		t.Errorf("its record: %v, %v", did, err)
	}
	second := s.claim(t, row.ID, "d", now)
	mark.Run = 1
	if verdict, err := s.Complete(t.Context(), webhook.Completion{Change: second.Complete(webhook.Applied, now, keep), Claim: "d", Mark: &mark}); err != nil || verdict != webhook.Committed {
		t.Errorf("the second run: %s, %v", verdict, err)
	}
}
