// Package processor applies each accepted event to the business state, exactly
// once in effect.
//
// A wake-up leads to a claim: a lease with a fence. The claimed event is read
// by its provider's adapter and planned by a handler; the plan, the processed
// mark and the row's PROCESSED commit together, under the fence. Whatever goes
// wrong becomes a retry, a failure, or nothing at all, because the claim was lost.
//
// Invariants:
//
//   - Nothing is written under a claim that another worker, the reconciler or an
//     operator has taken over: every write carries the fence.
//   - A wake-up is never the record. It is finished with in every case; what is
//     left to do is in the rows.
//   - A handler that panics fails its own event and delays no other.
//
// The package knows no provider and no business rule, and never logs a body.
package processor

import (
	"context"
	"time"

	"dakghar/internal/backoff"
	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/limit"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Store reads and writes the rows.
type Store interface {
	business.Reader
	Change(ctx context.Context, c webhook.Change) (*webhook.Inbox, bool, error)
	Complete(ctx context.Context, c webhook.Completion) (webhook.Verdict, error)
	Inbox(ctx context.Context, id webhook.InboxID) (webhook.Inbox, bool, error)
	Sequence(ctx context.Context, id webhook.SequenceID) (webhook.Sequence, error)
	Park(ctx context.Context, c webhook.Change, seq webhook.Sequence, promise webhook.Outbox) (webhook.Verdict, error)
	Ticket(ctx context.Context, k webhook.Key) (int64, error)
	Postpone(ctx context.Context, id webhook.OutboxID, gen webhook.Fence, due, now time.Time) (bool, error)
	Retry(ctx context.Context, c webhook.Change, promise webhook.Outbox) (bool, error)
	Fail(ctx context.Context, c webhook.Change, promise webhook.OutboxID) (bool, error)
	DeleteOutbox(ctx context.Context, id webhook.OutboxID, upTo webhook.Fence) (bool, error)
}

// Bodies opens raw bodies, and keeps the bytes of effects.
type Bodies interface {
	Put(ctx context.Context, b webhook.Body) (webhook.Placed, error)
	Open(ctx context.Context, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error)
}

// Endpoints tells what an endpoint's operator has chosen, at most half a minute old.
type Endpoints interface {
	Find(ctx context.Context, id webhook.EndpointID, now time.Time) (webhook.Endpoint, bool, error)
}

// Objects reads objects at their provider.
type Objects interface {
	// Current returns an object as its provider has it now, in a document that
	// [provider.Adapter.CurrentFacts] reads. False means that the provider says
	// that there is no such object.
	Current(ctx context.Context, e webhook.Endpoint, a *provider.Adapter, k provider.Kind, id string) (doc []byte, found bool, err error)
}

// Processor works on wake-ups. All fields are required but Gaps.
type Processor struct {
	Store     Store
	Endpoints Endpoints
	Bodies    Bodies
	Objects   Objects
	Wanted    Wanted
	Providers *provider.Registry
	Router    *business.Router
	Policy    Policy
	Breaker   *limit.Breaker
	Gaps      *Gaps
	Now       func() time.Time
	NewID     func() string
	Chance    func() float64
	Wait      func(ctx context.Context, d time.Duration) error
}

// Policy holds the numbers that an operator chooses.
type Policy struct {
	Lease       time.Duration // at least twice the function's timeout
	AttemptsMax int
	Theirs      backoff.Schedule // between attempts, when a provider or anything unknown is at fault
	Ours        backoff.Schedule // while we are at fault
	KeepInbox   time.Duration    // how long a terminal row is kept
	GapWindow   time.Duration    // how long an event waits for those before it in its sequence
}

// Result is what became of a wake-up, for the log line and the metrics.
type Result struct {
	InboxID  webhook.InboxID
	Provider webhook.Provider
	Endpoint webhook.EndpointID
	Kind     webhook.Kind
	Attempt  int
	// Decision is one of [Decisions].
	Decision string
	Code     string // of the fault, empty without one
	Fault    fault.Kind
	Age      time.Duration // from receipt to now
	Err      error
}

// Decisions lists every decision; each is counted apart.
func Decisions() []string {
	return []string{
		"applied", "stale", "ignored", "already_applied", // done
		"retry", "failed", "lease_freed", "postponed", // not now, or not any more
		"parked", "waiting", "held", "paused", // it waits for something else
		"claim_lost", "not_due", "terminal", "missing", // nothing to do
		"unavailable", // the store did not answer
	}
}

// Process looks at one row and does what it says. It never returns an error:
// what could not be done is promised again by the rows themselves.
func (p *Processor) Process(ctx context.Context, wake webhook.Wake) Result {
	now := p.Now()
	result := Result{InboxID: wake.InboxID, Endpoint: wake.Endpoint}
	if p.paused(ctx, wake, now) {
		return result.end("paused", nil)
	}
	if ok, until := p.Breaker.Allow(now); !ok {
		return p.postpone(ctx, wake, until, now, result)
	}
	claim := webhook.ClaimID(p.NewID())
	row, claimed, err := p.Store.Change(ctx, webhook.Claim(wake.InboxID, claim, now, p.Policy.Lease, p.Policy.AttemptsMax))
	if err != nil {
		p.note(err)
		return result.end("unavailable", err)
	}
	if row == nil {
		return result.end("missing", nil)
	}
	result.Provider, result.Endpoint, result.Attempt = row.Provider, row.Endpoint, row.AttemptCount
	result.Age = now.Sub(row.ReceivedAt)
	if !claimed && (row.ClaimID != claim || row.Status != webhook.Processing) {
		return p.unclaimed(ctx, wake, *row, now, result)
	}
	return p.work(ctx, wake, *row, result)
}

// paused reports whether work on the event's endpoint is paused. The wake-up is
// dropped then: its promise wakes somebody again and again, and resuming brings
// all of them near. A registry that cannot be read stops the event later, where
// it is put back in its own time.
func (p *Processor) paused(ctx context.Context, wake webhook.Wake, now time.Time) bool {
	if wake.Endpoint == "" {
		return false
	}
	e, _, err := p.Endpoints.Find(ctx, wake.Endpoint, now)
	return err == nil && !e.PausedAt.IsZero()
}

// postpone moves an event's due time behind the breaker's next probe, so that
// the wait is carried by its promise and not by the queue.
func (p *Processor) postpone(ctx context.Context, wake webhook.Wake, until, now time.Time, result Result) Result {
	span := max(until.Sub(now), time.Second)
	due := until.Add(time.Duration(p.Chance() * float64(span)))
	// A store that does not take this either leaves the promise as it is, which
	// wakes somebody in its own time.
	_, err := p.Store.Postpone(ctx, wake.OutboxID, wake.Gen, due, now)
	return result.end("postponed", err)
}

// note tells the breaker how an event ended.
func (p *Processor) note(err error) { p.Breaker.Note(fault.IsOutage(err), p.Now(), p.Chance()) }

// unclaimed decides about a row that could not be claimed.
func (p *Processor) unclaimed(ctx context.Context, wake webhook.Wake, row webhook.Inbox, now time.Time, result Result) Result {
	switch {
	case row.Status.Terminal():
		// Failing to tidy up leaves an orphan, which the reconciler finds.
		_, err := p.Store.DeleteOutbox(ctx, wake.OutboxID, row.Fence)
		return result.end("terminal", err)
	case row.Exhausted(now, p.Policy.AttemptsMax):
		c := row.Fail(now, "attempts_exhausted", p.Policy.KeepInbox)
		if row.Status == webhook.Processing {
			c = row.FailLease(now, p.Policy.KeepInbox)
		}
		return p.fail(ctx, wake, c, result, "attempts_exhausted")
	case row.LeaseOver(now):
		return p.free(ctx, row, now, result)
	case row.GapOver(now):
		return p.fail(ctx, wake, row.Fail(now, GapExpired, p.Policy.KeepInbox), result, GapExpired)
	case row.Status == webhook.Parked:
		return result.end("waiting", nil)
	case row.Status == webhook.Held:
		return result.end("held", nil)
	case row.Status == webhook.Processing:
		return result.end("claim_lost", nil)
	}
	return result.end("not_due", nil)
}

// free puts a row back whose worker has died, to come back by itself and not in
// one batch with the events that died with it.
func (p *Processor) free(ctx context.Context, row webhook.Inbox, now time.Time, result Result) Result {
	next := now.Add(p.Policy.Theirs.Delay(max(row.AttemptCount, 1), p.Chance()))
	change := row.FreeLease(now, next)
	written, err := p.Store.Retry(ctx, change, webhook.NewOutbox(change.Apply(row), next, now))
	switch {
	case err != nil:
		return result.end("unavailable", err)
	case !written:
		return result.end("claim_lost", nil)
	}
	result.Code = "lease_expired"
	return result.end("lease_freed", nil)
}

// work applies a claimed row and settles what is left of it.
func (p *Processor) work(ctx context.Context, wake webhook.Wake, row webhook.Inbox, result Result) Result {
	ctx, cancel := context.WithTimeout(ctx, p.workTime(ctx, row))
	defer cancel()
	decision, kind, err := p.apply(ctx, row)
	result.Kind = kind
	p.note(err)
	// What follows is short, and must not be cut off by the work's own deadline.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	switch {
	case err != nil:
		return p.settle(ctx, wake, row, err, result)
	case decision == decisionClaimLost, decision == decisionParked:
		return result.end(decision, nil)
	}
	// Failing to tidy up leaves an orphan, which the reconciler finds.
	_, _ = p.Store.DeleteOutbox(ctx, wake.OutboxID, row.Fence)
	return result.end(decision, nil)
}

// workTime is what is left of the lease, or of the invocation if that is less,
// with room to settle.
func (p *Processor) workTime(ctx context.Context, row webhook.Inbox) time.Duration {
	left := row.LeaseUntil.Sub(p.Now())
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end)) //nolint:forbidigo // a context's deadline is in real time
	}
	return left - leaseSlack
}

// Times kept free at the end of a lease, or of the invocation if that is sooner.
const (
	leaseSlack = 5 * time.Second
	settleTime = 4 * time.Second
)

// settle turns a fault into what happens next. It is the one place where this
// stage classifies.
func (p *Processor) settle(ctx context.Context, wake webhook.Wake, row webhook.Inbox, cause error, result Result) Result {
	now := p.Now()
	kind, code := fault.KindOf(cause), fault.CodeOf(cause)
	result.Fault, result.Code, result.Err = kind, code, cause
	if kind == fault.Permanent || kind == fault.Theirs && row.AttemptCount >= p.Policy.AttemptsMax {
		return p.fail(ctx, wake, row.Fail(now, code, p.Policy.KeepInbox), result, code)
	}
	delay := p.Policy.Theirs.Delay(row.AttemptCount, p.Chance())
	if kind == fault.Ours {
		// The attempt is given back, so the count stands still; the fence, raised
		// by a claim and a retry each round, tells how long this goes on.
		delay = p.Policy.Ours.Delay(1+int(row.Fence)/2, p.Chance())
	}
	next := now.Add(delay)
	change := row.Retry(next, code, kind == fault.Ours)
	promise := webhook.NewOutbox(change.Apply(row), next, now)
	written, err := p.Store.Retry(ctx, change, promise)
	switch {
	case err != nil:
		result.Err = err
		return result.end("unavailable", err)
	case !written:
		return result.end("claim_lost", nil)
	}
	return result.end("retry", cause)
}

func (p *Processor) fail(ctx context.Context, wake webhook.Wake, c webhook.Change, result Result, code string) Result {
	written, err := p.Store.Fail(ctx, c, wake.OutboxID)
	switch {
	case err != nil:
		return result.end("unavailable", err)
	case !written:
		return result.end("claim_lost", nil)
	}
	result.Code = code
	return result.end("failed", result.Err)
}

func (r Result) end(decision string, err error) Result {
	r.Decision = decision
	if err != nil {
		r.Err, r.Code, r.Fault = err, fault.CodeOf(err), fault.KindOf(err)
	}
	return r
}
