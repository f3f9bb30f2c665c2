package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// jobPrefix begins a job's id.
const jobPrefix = "job-"

// Bounds of a running job.
const (
	// jobBatch is how many events are handled between two writes of the job's row.
	jobBatch = 50
	// eventTries bounds the tries of one event whose store gives no answer.
	eventTries = 4
	eventPause = 200 * time.Millisecond
)

// Start records a planned job and its maker, and runs it as [Operator.ResumeJob] does.
func (o *Operator) Start(ctx context.Context, p Plan, tell func(webhook.Job)) (webhook.Job, error) {
	j, err := o.create(ctx, p.Job)
	if err != nil {
		return j, err
	}
	return o.runJob(ctx, j, tell)
}

func (o *Operator) create(ctx context.Context, j webhook.Job) (webhook.Job, error) {
	id := strings.ToLower(o.NewID())
	j.ID = jobPrefix + strings.Replace(j.CreatedAt.UTC().Format("20060102t150405.000"), ".", "", 1) + "-" + id[:min(len(id), 8)]
	act, err := o.act(ctx, j.Act+" --all", "job "+j.ID, j.Why)
	if err != nil {
		return j, err
	}
	j.Who = act.Who
	written, err := o.Jobs.CreateJobBy(ctx, j, act)
	switch {
	case err != nil:
		return j, unreachable("the registry", err)
	case !written:
		return j, refuse("job_exists", "a job of this name is there already", say("run the command again"))
	}
	j.Revision = 1
	return j, nil
}

// ResumeJob goes on with a job where its last command left it. A command that
// still runs it finds out at its next write, and stops. tell hears of the job
// after every batch. An error leaves the job as it returns it: it can be resumed
// unless its state says that it is over.
func (o *Operator) ResumeJob(ctx context.Context, id, why string, tell func(webhook.Job)) (webhook.Job, error) {
	j, err := o.changeJob(ctx, id, "job resume", why, webhook.JobRunning)
	if err != nil {
		return j, err
	}
	return o.runJob(ctx, j, tell)
}

// CancelJob ends a job: nothing more is done, what was done stays. A command that
// runs it stops at its next write.
func (o *Operator) CancelJob(ctx context.Context, id, why string) (webhook.Job, error) {
	return o.changeJob(ctx, id, "job cancel", why, webhook.JobCancelled)
}

// changeJob gives a job another state, with its record, again if its command
// wrote in the meantime.
func (o *Operator) changeJob(ctx context.Context, id, name, why string, to webhook.JobState) (webhook.Job, error) {
	act, err := o.act(ctx, name, "job "+id, why)
	if err != nil {
		return webhook.Job{}, err
	}
	for try := range changeTries {
		if try > 0 {
			if err := o.Wait(ctx, changePause<<try); err != nil {
				return webhook.Job{}, err
			}
		}
		j, err := o.Job(ctx, id)
		switch {
		case err != nil:
			return j, err
		case j.State.Over():
			return j, refuse("job_over", fmt.Sprintf("%s is %s", id, j.State), run("see what it did:", "job", "show", id))
		}
		j.State, j.UpdatedAt, j.Who = to, act.At, act.Who
		written, err := o.Jobs.UpdateJobBy(ctx, j, act)
		switch {
		case err != nil:
			return j, unreachable("the registry", err)
		case written:
			j.Revision++
			return j, nil
		}
	}
	return webhook.Job{}, refuse("moved_on", "the job's row changed on every try", run("see where it stands:", "job", "show", id))
}

// Job returns one job.
func (o *Operator) Job(ctx context.Context, id string) (webhook.Job, error) {
	j, ok, err := o.Jobs.Job(ctx, id)
	switch {
	case err != nil:
		return j, unreachable("the registry", err)
	case !ok:
		return j, refuse("job_unknown", fmt.Sprintf("there is no job %q", id), run("list the jobs:", "job", "list"))
	}
	return j, nil
}

// JobList yields the newest jobs.
func (o *Operator) JobList(ctx context.Context, limit int) (iter.Seq2[webhook.Job, error], error) {
	if limit < 1 {
		return nil, misuse("--limit is at least 1")
	}
	return first(listed("the registry", o.Jobs.Jobs(ctx), every), limit), nil
}

// runner is one run of a job.
type runner struct {
	o       *Operator
	job     webhook.Job
	tell    func(webhook.Job)
	began   time.Time
	started int // events, for the rate
}

// runJob does the job's deed to one event after the other, and writes how far it
// has come after each batch. Its own words for what ended it are in the error.
func (o *Operator) runJob(ctx context.Context, j webhook.Job, tell func(webhook.Job)) (webhook.Job, error) {
	r := &runner{o: o, job: j, tell: tell}
	err := r.wait(ctx, j.NotBefore)
	r.began = o.Now()
	if err == nil {
		err = r.all(ctx)
	}
	switch {
	case err == nil:
		r.job.State = webhook.JobDone
		err = r.save(ctx)
	case codeOf(err) == codeJobTaken:
	default:
		err = r.stop(ctx, err)
	}
	return r.job, err
}

func (r *runner) all(ctx context.Context) error {
	for b, err := range r.o.batches(ctx, r.job) {
		if err == nil {
			err = r.mayGoOn(ctx)
		}
		if err == nil {
			err = r.batch(ctx, b)
		}
		if err == nil {
			err = r.save(ctx)
		}
		if err != nil {
			return err
		}
		r.tell(r.job)
	}
	return nil
}

// mayGoOn refuses to bring events near of an endpoint that was paused again.
func (r *runner) mayGoOn(ctx context.Context) error {
	if r.job.Act == actSubscriptionResume {
		return r.mayBringNear(ctx)
	}
	if r.job.Act != actResume {
		return nil
	}
	e, err := r.o.endpoint(ctx, r.job.Filter.Endpoint)
	if err == nil && !e.PausedAt.IsZero() {
		err = refuse("paused", "endpoint "+string(e.ID)+" was paused again")
	}
	return err
}

// stop writes that the job was interrupted, even if the command was told to end.
func (r *runner) stop(ctx context.Context, cause error) error {
	r.job.State = webhook.JobStopped
	if err := r.save(ctx); err != nil {
		cause = errors.Join(cause, err)
	}
	again := []Step{
		run("to go on where it stopped:", "job", "resume", r.job.ID),
		run("to leave it at that:", "job", "cancel", r.job.ID),
	}
	if ctx.Err() != nil {
		return refuse("interrupted", fmt.Sprintf("interrupted after %s; none is half done", cameTo(r.job)), again...)
	}
	return &Refusal{
		Code: "job_stopped", Problem: "stopped after " + cameTo(r.job), Err: cause, Next: again,
	}
}

// cameTo says how far a job has come.
func cameTo(j webhook.Job) string {
	_, things := Things(j.Act)
	return fmt.Sprintf("%d of %d %s", j.Handled(), j.Matched, things)
}

const codeJobTaken = "job_taken"

// save writes how far the job has come, if no other command has changed it
// since. It does so even if the command was told to end: what was done counts.
func (r *runner) save(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	r.job.UpdatedAt = r.o.Now()
	var last error
	for try := range eventTries {
		if try > 0 {
			if err := r.o.Wait(ctx, eventPause<<try); err != nil {
				return err
			}
		}
		written, err := r.o.Jobs.UpdateJob(ctx, r.job)
		switch {
		case err == nil && written:
			r.job.Revision++
			return nil
		case err == nil:
			return r.taken(ctx)
		}
		last = err
	}
	return unreachable("the registry", last)
}

// taken tells who changed the job: our own write whose answer was lost, or
// somebody else.
func (r *runner) taken(ctx context.Context) error {
	now, err := r.o.Job(ctx, r.job.ID)
	if err != nil {
		return err
	}
	if now.Revision == r.job.Revision+1 && now.State == r.job.State && now.UpdatedAt.Equal(r.job.UpdatedAt) && now.Cursor == r.job.Cursor {
		r.job = now
		return nil
	}
	r.job = now
	problem := fmt.Sprintf("another command goes on with %s, so this one stops", now.ID)
	if now.State == webhook.JobCancelled {
		problem = fmt.Sprintf("%s was cancelled by %s after %s", now.ID, now.Who, cameTo(now))
	}
	return refuse(codeJobTaken, problem, run("see where it stands:", "job", "show", now.ID))
}

func (r *runner) wait(ctx context.Context, until time.Time) error {
	if d := until.Sub(r.o.Now()); d > 0 {
		return r.o.Wait(ctx, d)
	}
	return ctx.Err()
}

// batch handles a batch's events in their order, several at once, and no more
// after the first that could not be handled or after the command was told to
// end. Those in hand are finished.
func (r *runner) batch(ctx context.Context, b batch) error {
	codes, errs := make([]string, len(b.events)), make([]error, len(b.events))
	var wg sync.WaitGroup
	var failed sync.Once
	halt := make(chan struct{})
	slots := make(chan struct{}, r.o.Workers)
	begun := 0
	for ; begun < len(b.events); begun++ {
		slots <- struct{}{}
		if !r.pace(ctx, halt) {
			break
		}
		i := begun
		wg.Go(func() {
			defer func() { <-slots }()
			codes[i], errs[i] = r.event(context.WithoutCancel(ctx), b.events[i])
			if errs[i] != nil {
				failed.Do(func() { close(halt) })
			}
		})
	}
	wg.Wait()
	return r.note(ctx, b, codes[:begun], errs)
}

// pace waits for the next event's time. False means that there is to be none.
func (r *runner) pace(ctx context.Context, halt <-chan struct{}) bool {
	select {
	case <-halt:
		return false
	default:
	}
	due := r.began.Add(time.Duration(r.started) * time.Second / time.Duration(r.job.Rate))
	r.started++
	return r.wait(ctx, due) == nil
}

// note counts what was handled up to the first event that was not, and moves the
// cursor there: what stands behind it is met again when the job goes on.
func (r *runner) note(ctx context.Context, b batch, codes []string, errs []error) error {
	handled := 0
	for handled < len(codes) && errs[handled] == nil {
		handled++
	}
	whole := handled == len(b.events)
	if whole || !b.indivisible {
		r.job.Left = maps.Clone(r.job.Left)
		for _, code := range codes[:handled] {
			r.count(code)
		}
		if handled > 0 {
			r.job.Cursor = b.events[handled-1].cursor
		}
	}
	switch {
	case whole:
		r.job.Cursor = b.cursor
		return nil
	case handled < len(codes):
		return errs[handled]
	}
	return ctx.Err()
}

func (r *runner) count(code string) {
	if code == "" {
		r.job.Done++
		return
	}
	if r.job.Left == nil {
		r.job.Left = map[string]int{}
	}
	r.job.Left[code]++
}

// event does the deed to one event. The code says why it was left as it is; an
// error that the store gave no answer, several times.
func (r *runner) event(ctx context.Context, c candidate) (string, error) {
	var err error
	for try := range eventTries {
		if try > 0 {
			if err := r.o.Wait(ctx, eventPause<<try); err != nil {
				return "", err
			}
		}
		err = r.deedOf()(ctx, c, try > 0)
		if err == nil {
			return "", nil
		}
		if code := codeOf(err); code != "" && code != codeUnavailable {
			return code, nil
		}
	}
	return "", err
}

// deedOf returns what the job does to one of its subjects.
func (r *runner) deedOf() func(ctx context.Context, c candidate, again bool) error {
	switch {
	case r.job.Act == actResume:
		return r.bringNear
	case r.job.Act == actSubscriptionResume:
		return r.deliveryNear
	case ofDeliveries(r.job.Act):
		return r.deliveryDeed
	}
	return r.deed
}

// deed reads the event, then whether this job was here before, and then writes
// under the fence that it read: whatever comes between, the deed is done once.
func (r *runner) deed(ctx context.Context, c candidate, again bool) error {
	row, err := r.o.Event(ctx, c.row.ID)
	if err != nil {
		return err
	}
	subject := subjectOfEvent(row.ID)
	was, err := r.o.Jobs.JobDid(ctx, r.job.ID, subject)
	switch {
	case err != nil:
		return unreachable("the registry", err)
	case was && r.job.Act == actErase: // marked, and perhaps no more than that
		return r.o.finishErasing(ctx, row)
	case was && again: // our own, whose answer was lost
		return nil
	case was:
		return refuse("done_before", string(row.ID)+" was handled by this job before")
	case !r.o.matches(r.job.Filter, row):
		return r.o.moved(row.ID)
	}
	_, err = r.o.perform(ctx, row, webhook.Act{
		ID: r.o.NewID(), At: r.o.Now(), Name: r.job.Act, Subject: subject, Who: r.job.Who, Why: r.job.Why, Job: r.job.ID,
	}, r.job.Handler)
	return err
}

// candidate is an event, or a delivery, whose turn comes.
type candidate struct {
	row      webhook.Inbox
	promise  webhook.Outbox // of a resumed endpoint's event
	delivery delivery.Delivery
	// cursor is where to go on once this event and all before it were handled.
	cursor string
}

// batch is what is handled between two writes of the job's row.
type batch struct {
	events []candidate
	cursor string
	// indivisible is set where no cursor points between the events.
	indivisible bool
}

// batches yields the events of a job from its cursor on.
func (o *Operator) batches(ctx context.Context, j webhook.Job) iter.Seq2[batch, error] {
	switch {
	case j.Act == actResume:
		return o.waitingBatches(ctx, j.Filter, j.Cursor)
	case ofDeliveries(j.Act):
		return o.deliveryBatches(ctx, j.Filter, j.Cursor)
	}
	return o.listBatches(ctx, j.Filter, j.Cursor)
}

// listBatches yields a list's events. A row that failed again since it was listed
// is later than its place.
func (o *Operator) listBatches(ctx context.Context, f webhook.Filter, cursor string) iter.Seq2[batch, error] {
	return backFrom(ctx, f, cursor, o.list, func(f webhook.Filter, row webhook.Inbox) (candidate, time.Time) {
		return candidate{row: row}, at(f, row)
	})
}
