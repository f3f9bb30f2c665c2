package reconciler

import (
	"context"
	"time"

	"dakghar/internal/webhook"
)

// look decides about a page of outbox rows: each one's subject is read after
// the row was, and the state of the subject alone says what is done.
func (r *Reconciler) look(ctx context.Context, rows []webhook.Outbox, report *Report) {
	var wake []webhook.Outbox
	for _, o := range rows {
		if ctx.Err() != nil {
			return
		}
		report.Looked++
		subject, found, err := r.Store.Inbox(ctx, o.InboxID)
		if err != nil {
			report.note(err)
			continue
		}
		now := r.Now()
		if !found {
			report.count(r.orphan(ctx, o, now))
			continue
		}
		if !subject.Status.Terminal() {
			report.OldestS = max(report.OldestS, now.Sub(subject.ReceivedAt).Seconds())
		}
		if !subject.Status.Terminal() && bodyEnds(subject, now.Add(bodyWarnAhead)) {
			report.count(BodyWarning, nil)
		}
		if r.wakes(subject, now) {
			wake = append(wake, o)
			continue
		}
		report.count(r.act(ctx, o, subject, now))
	}
	r.wake(ctx, wake, report)
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
	case row.Status.Terminal():
		return did(PromiseKept)(r.Store.DeleteOutbox(ctx, o.ID, row.Fence))
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
	for i, err := range r.Queue.Send(ctx, wakes, delays) {
		if err != nil {
			report.count(NotSent, err)
			continue
		}
		report.count(did(Woken)(r.Store.MarkPublished(ctx, rows[i].Rewake(now))))
	}
}

func (r *Report) count(act string, err error) {
	if err != nil {
		r.note(err)
		return
	}
	r.Acts[act]++
}
