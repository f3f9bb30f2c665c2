package reconciler

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"dakghar/internal/webhook"
)

// marksAtOnce bounds the marks that are written side by side.
const marksAtOnce = 16

// look decides about a page of outbox rows: each one's subject is read after
// the row was, and the state of the subject alone says what is done. False means
// that time ran out before the whole page was looked at.
func (r *Reconciler) look(ctx context.Context, rows []webhook.Outbox, report *Report) bool {
	subjects := r.subjects(ctx, rows)
	var wake []webhook.Outbox
	for i, o := range rows {
		if ctx.Err() != nil {
			break
		}
		report.Looked++
		s := subjects[i]
		if s.err != nil {
			report.note(unlessOver(ctx, s.err))
			continue
		}
		now := r.Now()
		if o.Topic == webhook.TopicEffect {
			// Only the dispatcher ends it; what its event has become does not matter.
			wake = append(wake, o)
			continue
		}
		if s.unreadable || o.Topic != webhook.TopicProcess { // of a newer program, which keeps it
			report.count(Unreadable, nil)
			continue
		}
		if !s.found {
			report.count(r.orphan(ctx, o, now))
			continue
		}
		if !s.row.Status.Terminal() {
			report.OldestS = max(report.OldestS, now.Sub(s.row.ReceivedAt).Seconds())
			if bodyEnds(s.row, now.Add(bodyWarnAhead)) {
				report.count(BodyWarning, nil)
			}
		}
		if r.wakes(s.row, now) {
			wake = append(wake, o)
			continue
		}
		report.count(r.act(ctx, o, s.row, now))
	}
	finished := ctx.Err() == nil
	// What was found is woken all the same, in the time that is kept free for the end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Policy.Slack)
	defer cancel()
	r.wake(ctx, wake, report)
	return finished
}

// subject is a row as it was read after its promise.
type subject struct {
	row        webhook.Inbox
	found      bool
	unreadable bool
	err        error
}

// subjects reads the rows' subjects, consistently and many at a time.
func (r *Reconciler) subjects(ctx context.Context, rows []webhook.Outbox) []subject {
	read := make([]subject, len(rows))
	var group errgroup.Group
	group.SetLimit(r.Policy.AtOnce)
	for from := 0; from < len(rows); from += comparePage {
		to := min(from+comparePage, len(rows))
		group.Go(func() error {
			r.subjectsOf(ctx, rows[from:to], read[from:to])
			return nil
		})
	}
	_ = group.Wait() // its functions return no error
	return read
}

func (r *Reconciler) subjectsOf(ctx context.Context, rows []webhook.Outbox, read []subject) {
	ids := make([]webhook.InboxID, len(rows))
	for i, o := range rows {
		ids[i] = o.InboxID
	}
	found, unreadable, err := r.Store.InboxRows(ctx, ids)
	for i, id := range ids {
		read[i].row, read[i].found = found[id]
		read[i].unreadable, read[i].err = slices.Contains(unreadable, id), err
	}
}

// wakes reports whether a subject only needs its worker to be told again.
func (r *Reconciler) wakes(row webhook.Inbox, now time.Time) bool {
	return row.Status.Waiting() && !row.Exhausted(now, r.Policy.AttemptsMax) && !bodyEnds(row, now.Add(bodyFailAhead))
}

func bodyEnds(row webhook.Inbox, by time.Time) bool {
	return !row.BodyExpiresAt.IsZero() && row.BodyExpiresAt.Before(by)
}

// act does what a subject's state asks for, other than waking it.
func (r *Reconciler) act(ctx context.Context, o webhook.Outbox, row webhook.Inbox, now time.Time) (string, error) {
	switch {
	case row.Status.Terminal() && o.Gen > row.Fence:
		return did(AheadRemoved)(r.Store.DropPromise(ctx, row, o))
	case row.Status.Terminal():
		return did(PromiseKept)(r.Store.DeleteOutbox(ctx, o.ID, row.Fence))
	case row.Status == webhook.Held && bodyEnds(row, now.Add(bodyFailAhead)):
		return did(BodyExpiring)(r.Store.Fail(ctx, row.Fail(now, "body_expiring", r.Policy.KeepInbox), o.ID))
	case row.GapOver(now):
		return did(GapExpired)(r.Store.Fail(ctx, row.Fail(now, "gap_expired", r.Policy.KeepInbox), o.ID))
	case row.Status == webhook.Parked:
		return did(Sleeping)(r.Store.PushWake(ctx, o, row.NextAttemptAt.Add(time.Second)))
	case row.Status == webhook.Held:
		return did(Sleeping)(r.Store.PushWake(ctx, o, now.Add(heldWake)))
	case row.LeaseOver(now):
		if row.AttemptCount >= r.Policy.AttemptsMax {
			return did(Exhausted)(r.Store.Fail(ctx, row.FailLease(now, r.Policy.KeepInbox), o.ID))
		}
		next := now.Add(r.Policy.Retry.Delay(max(row.AttemptCount, 1), r.Chance()))
		change := row.FreeLease(now, next)
		return did(LeaseFreed)(r.Store.Retry(ctx, change, webhook.NewOutbox(change.Apply(row), next, now)))
	case row.Status == webhook.Processing:
		return did(Sleeping)(r.Store.PushWake(ctx, o, row.LeaseUntil.Add(time.Second)))
	case row.Exhausted(now, r.Policy.AttemptsMax):
		return did(Exhausted)(r.Store.Fail(ctx, row.Fail(now, "attempts_exhausted", r.Policy.KeepInbox), o.ID))
	case !row.Status.Waiting():
		return Unreadable, nil // a newer program's state: it knows what to do
	}
	return did(BodyExpiring)(r.Store.Fail(ctx, row.Fail(now, "body_expiring", r.Policy.KeepInbox), o.ID))
}

// orphan removes a promise whose subject does not exist, once it is old enough
// to be sure that this is no transaction still on its way.
func (r *Reconciler) orphan(ctx context.Context, o webhook.Outbox, now time.Time) (string, error) {
	if now.Sub(o.CreatedAt) < orphanAge {
		return Orphan, nil
	}
	return did(OrphanRemoved)(r.Store.DeleteOrphan(ctx, o))
}

// did names an act by whether its guard held.
func did(act string) func(bool, error) (string, error) {
	return func(written bool, err error) (string, error) {
		if !written {
			return Lost, err
		}
		return act, err
	}
}

// wake sends the wake-ups of a page together and marks each under the wake time
// that was read, so that of two runners only one moves it.
func (r *Reconciler) wake(ctx context.Context, rows []webhook.Outbox, report *Report) {
	if len(rows) == 0 {
		return
	}
	now := r.Now()
	wakes, delays := make([]webhook.Wake, len(rows)), make([]time.Duration, len(rows))
	for i, o := range rows {
		wakes[i], delays[i] = webhook.NewWake(o), o.Delay(now)
	}
	type mark struct {
		written bool
		err     error
	}
	errs := r.Queue.Send(ctx, wakes, delays)
	marks := make([]mark, len(rows))
	var group errgroup.Group
	group.SetLimit(marksAtOnce)
	for i := range rows {
		if errs[i] != nil {
			continue
		}
		group.Go(func() error {
			marks[i].written, marks[i].err = r.Store.MarkPublished(ctx, rows[i].Rewake(now))
			return nil
		})
	}
	_ = group.Wait() // its functions return no error
	for i, err := range errs {
		if err != nil {
			report.count(NotSent, err)
			continue
		}
		report.count(did(Woken)(marks[i].written, marks[i].err))
	}
}

func (r *Report) count(act string, err error) {
	if err != nil {
		r.note(err)
		return
	}
	r.Acts[act]++
}
