package processor

import (
	"context"

	"dakghar/internal/fault"
	"dakghar/internal/ordering"
	"dakghar/internal/webhook"
)

// Codes of events that wait for others of their object's sequence.
const (
	// GapExpired is the code of an event whose predecessors in its sequence never came.
	GapExpired   = "gap_expired"
	codeNoNumber = "no_sequence_number"
)

// takeTurn decides whether it is the event's turn in its object's sequence. An
// empty decision means that it is, and that the job carries the step.
func (p *Processor) takeTurn(ctx context.Context, j *job) (string, error) {
	facts := j.event.Facts
	if !facts.HasVersion || facts.Version < 1 {
		return "", fault.New(fault.Permanent, codeNoNumber, nil)
	}
	n := facts.Version
	id := webhook.DeriveSequenceID(j.row.Tenant, j.row.Endpoint, facts.ObjectType, facts.ObjectID)
	seq, err := p.Store.Sequence(ctx, id)
	if err != nil {
		return "", err
	}
	switch ordering.PlaceOf(seq, n, j.row.ID) {
	case ordering.Passed:
		return p.finish(ctx, j, webhook.Stale)
	case ordering.Early:
		return p.park(ctx, j, seq, n)
	case ordering.Crowded:
		if !p.Now().Before(j.row.ReceivedAt.Add(p.Policy.GapWindow)) {
			return "", fault.New(fault.Permanent, GapExpired, nil)
		}
		return "", fault.New(fault.Ours, "gap_crowded", nil)
	case ordering.Next:
	}
	j.turn, err = p.step(ctx, seq, n)
	return "", err
}

// step is the sequence's next step, with whoever waits behind it. One that has
// left its place without clearing it, as after a restore, is passed over.
func (p *Processor) step(ctx context.Context, seq webhook.Sequence, n int64) (*webhook.Turn, error) {
	turn := &webhook.Turn{Sequence: seq.ID, Last: seq.Last, Number: n, Next: seq.Parked[n+1]}
	if turn.Next == "" {
		return turn, nil
	}
	next, found, err := p.Store.Inbox(ctx, turn.Next)
	if err != nil {
		return nil, err
	}
	if found {
		turn.LetGo(next, p.Now())
	}
	return turn, nil
}

// park puts the event aside until its turn or its deadline.
func (p *Processor) park(ctx context.Context, j *job, seq webhook.Sequence, n int64) (string, error) {
	now := p.Now()
	deadline := now.Add(p.Policy.GapWindow)
	change := j.row.Park(webhook.Slot{Sequence: seq.ID, Number: n}, deadline)
	verdict, err := p.persist(ctx, j.row, func() (webhook.Verdict, error) {
		return p.Store.Park(ctx, change, seq, webhook.NewOutbox(change.Apply(j.row), deadline, now))
	})
	switch {
	case err != nil:
		return "", err
	case verdict == webhook.Committed:
		if e, found, err := p.Endpoints.Find(ctx, j.row.Endpoint, now); err == nil && found {
			p.Gaps.met(ctx, e, now)
		}
		return decisionParked, nil
	case verdict == webhook.ClaimLost:
		return decisionClaimLost, nil
	}
	return decisionAgain, nil // the sequence moved: it may be next by now
}
