package processor

import (
	"context"
	"errors"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// plansMax bounds how often an event is decided under one claim because rivals were faster.
const plansMax = 3

// storePause is the wait between tries of a commit that the store turned away.
const storePause = 50 * time.Millisecond

// What a claimed event comes to besides the outcomes of a PROCESSED row.
const (
	decisionParked    = "parked"
	decisionClaimLost = "claim_lost"
	decisionAgain     = "" // a rival was faster: decide anew
)

// apply reads, plans and commits a claimed event.
func (p *Processor) apply(ctx context.Context, row webhook.Inbox) (decision string, kind webhook.Kind, err error) {
	adapter, ok := p.Providers.Lookup(row.Provider)
	if !ok {
		return "", "", fault.New(fault.Permanent, "provider_unknown", nil)
	}
	known, ok := adapter.Kind(row.EventType)
	switch {
	case row.Unwanted:
		decision, err = p.finish(ctx, &job{row: row, adapter: adapter}, webhook.Ignored)
		return decision, known.Name, err
	case !ok:
		// Ingress took it: this program is older than the one that did. It waits
		// for its successor, and can be replayed if none comes.
		return "", "", fault.New(fault.Theirs, "kind_unknown", nil)
	}
	j, err := p.prepare(ctx, row, adapter, known)
	if err != nil {
		return "", known.Name, err
	}
	for range plansMax {
		if decision, err = p.try(ctx, j); err != nil || decision != decisionAgain {
			return decision, known.Name, err
		}
	}
	return "", known.Name, fault.New(fault.Ours, "object_contended", nil)
}

// try decides an event once and commits the decision, if nobody was faster.
func (p *Processor) try(ctx context.Context, j *job) (string, error) {
	if j.event.Policy == webhook.BySequence {
		j.turn = nil
		decision, err := p.takeTurn(ctx, j)
		if err != nil || decision != "" || j.turn == nil {
			return decision, err
		}
	}
	plan, err := p.plan(ctx, j)
	switch {
	case err != nil:
		return "", err
	case plan.Outcome != webhook.Applied:
		return p.finish(ctx, j, plan.Outcome)
	}
	promises, err := p.effects(ctx, j, plan.Effects)
	if err != nil {
		return "", err
	}
	verdict, err := p.complete(ctx, j, ending{outcome: webhook.Applied, mark: true, actions: plan.Actions, promises: promises})
	if err != nil {
		return "", err
	}
	switch verdict {
	case webhook.Committed:
		return string(webhook.Applied), nil
	case webhook.ClaimLost:
		return decisionClaimLost, nil
	case webhook.MarkExists:
		return p.finishMarked(ctx, j)
	case webhook.NotNewer:
		return p.finish(ctx, j, webhook.Stale)
	case webhook.RuleRefused:
		j.event.DomainRefused = true
	case webhook.TurnMoved, webhook.RivalWrote:
	}
	return decisionAgain, nil
}

// finish ends a row without business writes, with its mark.
func (p *Processor) finish(ctx context.Context, j *job, outcome webhook.Outcome) (string, error) {
	verdict, err := p.complete(ctx, j, ending{outcome: outcome, mark: true})
	switch {
	case err != nil:
		return "", err
	case verdict == webhook.MarkExists:
		return p.finishMarked(ctx, j)
	case verdict == webhook.ClaimLost:
		return decisionClaimLost, nil
	case verdict == webhook.TurnMoved:
		return decisionAgain, nil
	}
	return string(outcome), nil
}

// finishMarked ends a row whose run was applied before, its turn with it.
func (p *Processor) finishMarked(ctx context.Context, j *job) (string, error) {
	j.turn = nil
	verdict, err := p.complete(ctx, j, ending{outcome: webhook.AlreadyApplied})
	switch {
	case err != nil:
		return "", err
	case verdict == webhook.ClaimLost:
		return decisionClaimLost, nil
	}
	return string(webhook.AlreadyApplied), nil
}

// ending is how a row ends, and what is written with that.
type ending struct {
	outcome  webhook.Outcome
	mark     bool
	actions  []webhook.Action
	promises []webhook.Outbox
}

// complete commits the end of a row. Whether an unanswered try committed is told
// by the row: our own claim id on a PROCESSED row.
func (p *Processor) complete(ctx context.Context, j *job, e ending) (webhook.Verdict, error) {
	now := p.Now()
	c := webhook.Completion{
		Change: j.row.Complete(e.outcome, now, p.Policy.KeepInbox), Claim: j.row.ClaimID,
		Actions: e.actions, Turn: j.turn, Promises: e.promises,
	}
	if e.mark {
		c.Mark = &webhook.Mark{InboxID: j.row.ID, Run: j.row.Run, At: now}
		if j.adapter.Covers.Time {
			c.Mark.ExpiresAt = c.Change.ExpiresAt.Add(webhook.MarkOutlives)
		}
	}
	return p.persist(ctx, j.row, func() (webhook.Verdict, error) { return p.Store.Complete(ctx, c) })
}

// persist repeats a commit while the store turns it away, until shortly before
// the lease ends.
func (p *Processor) persist(ctx context.Context, row webhook.Inbox, commit func() (webhook.Verdict, error)) (webhook.Verdict, error) {
	for pause := storePause; ; pause *= 2 {
		verdict, err := commit()
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
