package operator

import (
	"context"

	"dakghar/internal/webhook"
)

// Story is everything that is kept about one event, but its payload.
type Story struct {
	Row  webhook.Inbox
	Kind webhook.Kind // ours; empty where no adapter knows the type
	// Promise is the outbox row; nil where there is none: the event has ended, or a
	// row is missing that should be there.
	Promise *webhook.Outbox
	// Mark is the processed mark of the row's run; nil where there is none.
	Mark *webhook.Mark
	// Acts are what operators did to it, newest first.
	Acts []webhook.Act
}

// Missing reports whether an open event has nobody who will come for it.
func (s Story) Missing() bool { return !s.Row.Status.Terminal() && s.Promise == nil }

// Story reads an event with all that stands beside it. The reads are consistent,
// one after the other: what changes in between may show in one and not in another.
func (o *Operator) Story(ctx context.Context, id webhook.InboxID) (Story, error) {
	row, err := o.Event(ctx, id)
	if err != nil {
		return Story{}, err
	}
	s := Story{Row: row, Kind: o.Kind(row)}
	promise, found, err := o.Inbox.Outbox(ctx, webhook.NewOutboxID(id, webhook.TopicProcess, 0))
	if err != nil {
		return s, unreachable("the outbox", err)
	}
	if found {
		s.Promise = &promise
	}
	mark, found, err := o.Inbox.Mark(ctx, id, row.Run)
	if err != nil {
		return s, unreachable("the business table", err)
	}
	if found {
		s.Mark = &mark
	}
	if s.Acts, err = o.Registry.ActsOn(ctx, subjectOfEvent(id)); err != nil {
		return s, unreachable("the registry", err)
	}
	return s, nil
}
