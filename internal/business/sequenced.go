package business

import (
	"context"

	"dakghar/internal/webhook"
)

// Sequenced handles objects whose events are numbered without gaps and applied
// one after the other, so that each may also add to a sum. The turn itself is
// kept by the processor and committed in the same transaction; by the time an
// event comes here, it is the next one.
type Sequenced struct{}

// Plan implements [Handler].
func (Sequenced) Plan(_ context.Context, ev webhook.Event, _ Reader) (webhook.Plan, error) {
	if ev.Policy != webhook.BySequence {
		return webhook.Plan{}, permanent("policy_mismatch")
	}
	if err := checkObject(ev.Facts); err != nil {
		return webhook.Plan{}, err
	}
	m, err := effect(ev.Facts)
	if err != nil {
		return webhook.Plan{}, err
	}
	return applied(ev, project(ev), ledger(ev, m)), nil
}
