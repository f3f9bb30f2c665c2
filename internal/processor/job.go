package processor

import (
	"context"
	"fmt"
	"time"

	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// job is one claimed event with everything that its handler is told.
type job struct {
	row     webhook.Inbox
	adapter *provider.Adapter
	kind    provider.Kind
	event   webhook.Event
	handler business.Handler
	// turn is the step of the object's sequence that is committed with the event;
	// nil under every other policy.
	turn *webhook.Turn
}

// Bounds of a provider that says that it has no such object: its own read may
// lag behind its event.
const (
	missingTries = 3
	missingFor   = 10 * time.Minute
)

// prepare reads a claimed event: what its bytes say, or under the policy fetch
// what the provider says now.
func (p *Processor) prepare(ctx context.Context, row webhook.Inbox, a *provider.Adapter, kind provider.Kind) (*job, error) {
	endpoint, _, err := p.Endpoints.Find(ctx, row.Endpoint, p.Now())
	if err != nil {
		return nil, err
	}
	j := &job{row: row, adapter: a, kind: kind}
	if j.event, err = p.read(ctx, j, endpoint.PolicyFor(kind.Name, kind.Policy)); err != nil {
		return nil, err
	}
	if j.event.Policy == webhook.ByFetch {
		if err := p.fetch(ctx, j, endpoint); err != nil {
			return nil, err
		}
	}
	handler, ok := p.Router.Handler(j.event)
	if !ok {
		return nil, fault.New(fault.Theirs, "handler_unknown", nil)
	}
	j.handler = handler
	return j, nil
}

// read opens the body and lets the adapter say what it means.
func (p *Processor) read(ctx context.Context, j *job, policy webhook.Policy) (webhook.Event, error) {
	row := j.row
	body, err := p.Bodies.Open(ctx, row.BodyID, row.Tenant, row.Digest)
	if err != nil {
		return webhook.Event{}, err
	}
	facts, err := j.adapter.Facts(j.kind, row.EventType, body)
	if err != nil {
		return webhook.Event{}, err
	}
	return webhook.Event{
		InboxID: row.ID, Run: row.Run, Tenant: row.Tenant, Provider: row.Provider, Endpoint: row.Endpoint,
		EventID: row.EventID, Type: row.EventType, Kind: j.kind.Name, Policy: policy, Facts: facts, Body: body,
	}, nil
}

// fetch reads the event's object at its provider. The ticket is drawn first: a
// read with a higher one began after every read with a lower one, and shows no
// less.
func (p *Processor) fetch(ctx context.Context, j *job, endpoint webhook.Endpoint) error {
	if j.kind.Current == nil {
		return fault.New(fault.Permanent, "kind_not_fetchable", nil)
	}
	ticket, err := p.Store.Ticket(ctx, business.TicketKey(j.event))
	if err != nil {
		return err
	}
	j.event.Ticket = ticket
	doc, found, err := p.Objects.Current(ctx, endpoint, j.adapter, j.kind, j.event.Facts.ObjectID)
	switch {
	case err != nil:
		return err
	case !found && !p.believedGone(j):
		return fault.New(fault.Theirs, "object_missing", nil)
	case !found:
		j.event.Gone, j.event.Facts.State, j.event.Facts.Credit = true, j.kind.Current.Gone, 0
		return nil
	}
	facts, err := j.adapter.CurrentFacts(j.kind, j.row.EventType, doc)
	switch {
	case err != nil:
		return err
	case facts.ObjectType != j.event.Facts.ObjectType || facts.ObjectID != j.event.Facts.ObjectID:
		return fault.New(fault.Permanent, "fetched_other_object", fmt.Errorf("a %s", facts.ObjectType))
	}
	facts.CreatedAt = j.event.Facts.CreatedAt // the event's own, for people
	j.event.Facts, j.event.Current = facts, doc
	return nil
}

// believedGone takes a provider at its word at once where the event itself said
// so. Elsewhere the event is tried again first; and where the provider's objects
// have no end of this kind, to miss one means that something is set up wrongly,
// which ends in a failure that somebody sees.
func (p *Processor) believedGone(j *job) bool {
	if j.kind.Current.Gone == "" {
		return false
	}
	return j.kind.Current.Deletes || j.row.AttemptCount >= missingTries && p.Now().Sub(j.row.ReceivedAt) >= missingFor
}

// plan runs the handler. A panic is the event's own failure; its text may hold
// anything, so only its type is kept.
func (p *Processor) plan(ctx context.Context, j *job) (plan webhook.Plan, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fault.New(fault.Permanent, "handler_panic", fmt.Errorf("a %T", v))
		}
	}()
	return j.handler.Plan(ctx, j.event, p.Store)
}
