package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// plansMax bounds how often a handler runs under one claim because rivals were faster.
const plansMax = 3

// storePause is the wait between tries of a completion that the store turned away.
const storePause = 50 * time.Millisecond

// apply reads, plans and commits a claimed event. An empty outcome means that
// the claim was lost.
func (p *Processor) apply(ctx context.Context, row webhook.Inbox) (webhook.Outcome, webhook.Kind, error) {
	adapter, ok := p.Providers.Lookup(row.Provider)
	if !ok {
		return "", "", fault.New(fault.Permanent, "provider_unknown", nil)
	}
	kind, ok := adapter.Kind(row.EventType)
	switch {
	case row.Unwanted:
		outcome, err := p.finish(ctx, adapter, row, webhook.Ignored)
		return outcome, kind.Name, err
	case !ok:
		// Ingress took it: this program is older than the one that did. It waits
		// for its successor, and can be replayed if none comes.
		return "", "", fault.New(fault.Theirs, "kind_unknown", nil)
	}
	event, err := p.read(ctx, adapter, kind, row)
	if err != nil {
		return "", kind.Name, err
	}
	handler, ok := p.Router.Handler(event)
	if !ok {
		return "", kind.Name, fault.New(fault.Theirs, "handler_unknown", nil)
	}
	for range plansMax {
		plan, err := p.plan(ctx, handler, event)
		if err != nil {
			return "", kind.Name, err
		}
		if plan.Outcome != webhook.Applied {
			outcome, err := p.finish(ctx, adapter, row, plan.Outcome)
			return outcome, kind.Name, err
		}
		verdict, err := p.complete(ctx, adapter, row, webhook.Applied, true, plan.Actions)
		if err != nil {
			return "", kind.Name, err
		}
		switch verdict {
		case webhook.Committed:
			return webhook.Applied, kind.Name, nil
		case webhook.ClaimLost:
			return "", kind.Name, nil
		case webhook.MarkExists:
			outcome, err := p.finishMarked(ctx, adapter, row)
			return outcome, kind.Name, err
		case webhook.NotNewer:
			outcome, err := p.finish(ctx, adapter, row, webhook.Stale)
			return outcome, kind.Name, err
		case webhook.RivalWrote:
		case webhook.RuleRefused:
			event.DomainRefused = true
		}
	}
	return "", kind.Name, fault.New(fault.Ours, "object_contended", nil)
}

// read opens the body and lets the adapter say what it means.
func (p *Processor) read(ctx context.Context, a *provider.Adapter, kind provider.Kind, row webhook.Inbox) (webhook.Event, error) {
	body, err := p.Bodies.Open(ctx, row.BodyID, row.Tenant, row.Digest)
	if err != nil {
		return webhook.Event{}, err
	}
	facts, err := a.Facts(kind, row.EventType, body)
	if err != nil {
		return webhook.Event{}, err
	}
	return webhook.Event{
		InboxID: row.ID, Run: row.Run, Tenant: row.Tenant, Provider: row.Provider, Endpoint: row.Endpoint,
		EventID: row.EventID, Type: row.EventType, Kind: kind.Name, Policy: kind.Policy, Facts: facts, Body: body,
	}, nil
}

// plan runs the handler. A panic is the event's own failure; its text may hold
// anything, so only its type is kept.
func (p *Processor) plan(ctx context.Context, h business.Handler, ev webhook.Event) (plan webhook.Plan, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fault.New(fault.Permanent, "handler_panic", fmt.Errorf("a %T", v))
		}
	}()
	return h.Plan(ctx, ev, p.Store)
}

// finish ends a row without business writes, with its mark.
func (p *Processor) finish(ctx context.Context, a *provider.Adapter, row webhook.Inbox, outcome webhook.Outcome) (webhook.Outcome, error) {
	verdict, err := p.complete(ctx, a, row, outcome, true, nil)
	switch {
	case err != nil:
		return "", err
	case verdict == webhook.MarkExists:
		return p.finishMarked(ctx, a, row)
	case verdict == webhook.ClaimLost:
		return "", nil
	}
	return outcome, nil
}

// finishMarked ends a row whose run was applied before.
func (p *Processor) finishMarked(ctx context.Context, a *provider.Adapter, row webhook.Inbox) (webhook.Outcome, error) {
	verdict, err := p.complete(ctx, a, row, webhook.AlreadyApplied, false, nil)
	if err != nil || verdict == webhook.ClaimLost {
		return "", err
	}
	return webhook.AlreadyApplied, nil
}

// complete commits, and tries again while the store turns it away, until
// shortly before the lease ends. Whether an unanswered try committed is
// told by the row: our own claim id on a PROCESSED row.
func (p *Processor) complete(ctx context.Context, a *provider.Adapter, row webhook.Inbox, outcome webhook.Outcome, withMark bool, actions []webhook.Action) (webhook.Verdict, error) {
	now := p.Now()
	change := row.Complete(outcome, now, p.Policy.KeepInbox)
	var mark *webhook.Mark
	if withMark {
		mark = &webhook.Mark{InboxID: row.ID, Run: row.Run, At: now}
		if a.Covers.Time {
			mark.ExpiresAt = change.ExpiresAt.Add(webhook.MarkOutlives)
		}
	}
	for pause := storePause; ; pause *= 2 {
		verdict, err := p.Store.Complete(ctx, change, row.ClaimID, mark, actions)
		if err == nil || fault.KindOf(err) == fault.Permanent {
			return verdict, err
		}
		wait := pause/2 + time.Duration(p.Chance()*float64(pause/2))
		if p.Now().Add(wait).After(row.LeaseUntil.Add(-leaseSlack)) {
			return 0, err
		}
		if waitErr := p.Wait(ctx, wait); waitErr != nil {
			return 0, errors.Join(err, waitErr)
		}
	}
}
