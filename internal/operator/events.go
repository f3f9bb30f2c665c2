package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"dakghar/internal/webhook"
)

// Events asks for accepted events, newest first.
type Events struct {
	// Endpoint may be empty only together with [webhook.Failed].
	Endpoint webhook.EndpointID
	Status   webhook.Status // empty for all
	Since    time.Duration  // how far back, at most [SinceMax]
	Limit    int            // at least 1
}

// SinceMax bounds how far back a list reaches: each day is 16 index reads.
const SinceMax = 400 * 24 * time.Hour

// Events yields the rows. Lists are eventually consistent, rows are not: an
// event of the last second may be missing, what is shown is as it stands.
func (o *Operator) Events(ctx context.Context, q Events) (iter.Seq2[webhook.Inbox, error], error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.Endpoint != "" {
		if _, err := o.endpoint(ctx, q.Endpoint); err != nil {
			return nil, err
		}
	}
	now := o.Now()
	rows := o.Inbox.RecentInbox(ctx, q.Endpoint, now.Add(-q.Since), now)
	if q.Status == webhook.Failed {
		rows = o.Inbox.FailedInbox(ctx, now.Add(-q.Since))
	}
	return q.pick(rows), nil
}

func (q Events) check() error {
	switch {
	case q.Status != "" && !slices.Contains(webhook.Statuses(), q.Status):
		return misuse(fmt.Sprintf("--status %q is none of %v", q.Status, webhook.Statuses()))
	case q.Endpoint == "" && q.Status != webhook.Failed:
		return misuse("--endpoint says whose events to list; only --status FAILED lists those of all endpoints",
			run("list the endpoints:", "endpoint", "list"))
	case q.Since <= 0 || q.Since > SinceMax:
		return misuse(fmt.Sprintf("--since is more than 0 and at most %.0fh", SinceMax.Hours()))
	case q.Limit < 1:
		return misuse("--limit is at least 1")
	}
	return nil
}

// pick yields the first rows that were asked for.
func (q Events) pick(rows iter.Seq2[webhook.Inbox, error]) iter.Seq2[webhook.Inbox, error] {
	return func(yield func(webhook.Inbox, error) bool) {
		picked := 0
		for row, err := range rows {
			if err != nil {
				yield(row, unreachable("the inbox", err))
				return
			}
			if q.Status != "" && row.Status != q.Status || q.Endpoint != "" && row.Endpoint != q.Endpoint {
				continue
			}
			picked++
			if !yield(row, nil) || picked == q.Limit {
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
		return row, refuse("event_unknown", fmt.Sprintf("there is no event %q", id),
			say("an inbox id begins with in_ and is what the provider was answered with; rows go when their life is over"),
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
	act, err := o.act(ctx, "inbox body", "event "+string(id), why)
	if err != nil {
		return nil, err
	}
	if err := o.Registry.RecordAct(ctx, act); err != nil {
		return nil, unreachable("the registry", err)
	}
	raw, err := o.Bodies.Open(ctx, row.BodyID, row.Tenant, row.Digest)
	switch {
	case errors.Is(err, ErrNoBody):
		return nil, refuse("body_gone", fmt.Sprintf("the body of %s is not kept any more", id),
			say("bodies are kept for a bounded time; the provider may be able to send the event again"))
	case err != nil:
		return nil, unreachable("the body store", err)
	}
	return raw, nil
}

// Acts yields what operators did, newest first.
func (o *Operator) Acts(ctx context.Context, since time.Duration, limit int) (iter.Seq2[webhook.Act, error], error) {
	if err := (Events{Status: webhook.Failed, Since: since, Limit: limit}).check(); err != nil {
		return nil, err
	}
	now := o.Now()
	return func(yield func(webhook.Act, error) bool) {
		shown := 0
		for act, err := range o.Registry.Acts(ctx, now.Add(-since), now) {
			if err != nil {
				yield(act, unreachable("the registry", err))
				return
			}
			shown++
			if !yield(act, nil) || shown == limit {
				return
			}
		}
	}, nil
}
