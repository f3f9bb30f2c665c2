package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"dakghar/internal/webhook"
)

// Events asks for accepted events, newest first.
type Events struct {
	webhook.Filter

	Limit int // at least 1
}

// Events yields the rows. Lists are eventually consistent, rows are not: an
// event of the last second may be missing, what is shown is as it stands.
func (o *Operator) Events(ctx context.Context, q Events) (iter.Seq2[webhook.Inbox, error], error) {
	f, err := o.settle(ctx, q.Filter)
	switch {
	case err != nil:
		return nil, err
	case q.Limit < 1:
		return nil, misuse("--limit is at least 1")
	}
	rows, err := o.list(ctx, f)
	return first(rows, q.Limit), err
}

// listed yields those of a store's rows that are asked for. What the store cannot
// say ends it.
func listed[T any](what string, rows iter.Seq2[T, error], asked func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row, err := range rows {
			switch {
			case err != nil:
				yield(row, unreachable(what, err))
				return
			case asked(row) && !yield(row, nil):
				return
			}
		}
	}
}

func every[T any](T) bool { return true }

// first yields the first of a list, and an error that ends it.
func first[T any](all iter.Seq2[T, error], limit int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for item, err := range all {
			if n++; !yield(item, err) || err != nil || n == limit {
				return
			}
		}
	}
}

// Event returns one accepted event.
func (o *Operator) Event(ctx context.Context, id webhook.InboxID) (webhook.Inbox, error) {
	row, ok, err := o.Inbox.Inbox(ctx, id)
	switch {
	case err != nil:
		return row, unreachable("the inbox", err)
	case !ok:
		if strings.HasPrefix(string(id), "dl_") {
			return row, refuse("event_unknown", fmt.Sprintf("there is no event %q: that is the id of a delivery", id),
				run("see the delivery:", "delivery", "show", string(id)))
		}
		return row, refuse("event_unknown", fmt.Sprintf("there is no event %q", id),
			say("an inbox id begins with in_ and is what the provider was answered with; an event's row is kept for the stack's InboxDays, 400 unless it was set"),
			run("list an endpoint's newest events:", "inbox", "list", "--endpoint", "ENDPOINT"))
	}
	return row, nil
}

// Body returns the raw bytes of an event, exactly as they were signed. Who asked
// for them, and why, is recorded before they are read.
func (o *Operator) Body(ctx context.Context, id webhook.InboxID, why string) ([]byte, error) {
	row, err := o.Event(ctx, id)
	if err != nil {
		return nil, err
	}
	act, err := o.act(ctx, "inbox body", subjectOfEvent(id), why)
	if err != nil {
		return nil, err
	}
	if err := o.Registry.RecordAct(ctx, act); err != nil {
		return nil, unreachable("the registry", err)
	}
	raw, err := o.Bodies.Open(ctx, row.BodyID, row.Tenant, row.Digest)
	if errors.Is(err, ErrNoBody) && row.LegalHold {
		raw, err = o.Bodies.OpenHeld(ctx, id, row.BodyID, row.Tenant, row.Digest)
	}
	switch {
	case errors.Is(err, ErrNoBody) && !row.ErasedAt.IsZero():
		return nil, refuse("body_gone", fmt.Sprintf("the body of %s was erased at %s", id, row.ErasedAt.UTC().Format(time.RFC3339)), o.show(id))
	case errors.Is(err, ErrNoBody):
		return nil, bodyGone(fmt.Sprintf("the body of %s is not kept any more", id))
	case err != nil:
		return nil, unreachable("the body store", err)
	}
	return raw, nil
}

// Acts asks for what operators did, newest first. Empty fields take all.
type Acts struct {
	// Subject is what it was done to: "event in_…", "endpoint demo", or an id alone.
	Subject string
	Who     string // or a part of it
	Since   time.Time
	Until   time.Time
	Limit   int // at least 1
}

// Acts yields the recorded acts.
func (o *Operator) Acts(ctx context.Context, q Acts) (iter.Seq2[webhook.Act, error], error) {
	f, err := o.settle(ctx, webhook.Filter{Since: q.Since, Until: q.Until})
	switch {
	case err != nil:
		return nil, err
	case q.Limit < 1:
		return nil, misuse("--limit is at least 1")
	}
	all := o.Registry.Acts(ctx, f.Since, f.Until)
	if q.Subject != "" {
		all = o.actsOn(ctx, subjectOf(q.Subject))
	}
	return first(listed("the registry", all, func(act webhook.Act) bool {
		return !act.At.Before(f.Since) && !act.At.After(f.Until) && strings.Contains(act.Who, q.Who)
	}), q.Limit), nil
}

// subjectOf completes an id alone to a subject.
func subjectOf(text string) string {
	switch {
	case strings.Contains(text, " "):
		return text
	case strings.HasPrefix(text, "in_"):
		return "event " + text
	case strings.HasPrefix(text, "dl_"):
		return "delivery " + text
	case strings.HasPrefix(text, jobPrefix):
		return "job " + text
	}
	return "endpoint " + text
}

func (o *Operator) actsOn(ctx context.Context, subject string) iter.Seq2[webhook.Act, error] {
	return func(yield func(webhook.Act, error) bool) {
		acts, err := o.Registry.ActsOn(ctx, subject)
		if err != nil {
			yield(webhook.Act{}, err)
			return
		}
		for _, act := range acts {
			// A subject of more words shares its history with the noun and id it begins with.
			if strings.HasPrefix(act.Subject+" ", subject+" ") && !yield(act, nil) {
				return
			}
		}
	}
}
