package business

import (
	"context"

	"dakghar/internal/webhook"
)

// Notices handles events that report something without order and without state
// that we keep: account notices. Every one is applied, as a ledger entry and
// one more on the count; any order of arrival ends in the same rows. There is no
// "latest" notice, since nothing trustworthy says which one that is.
type Notices struct{}

// Plan implements [Handler].
func (Notices) Plan(_ context.Context, ev webhook.Event, _ Reader) (webhook.Plan, error) {
	if err := checkObject(ev.Facts); err != nil {
		return webhook.Plan{}, err
	}
	return recordOnly(ev)
}

// recordOnly is the plan of an event that says nothing about its object's state.
func recordOnly(ev webhook.Event) (webhook.Plan, error) {
	m, err := effect(ev.Facts)
	if err != nil {
		return webhook.Plan{}, err
	}
	return webhook.Plan{Outcome: webhook.Applied, Actions: ledger(ev, m), Effects: []webhook.Announcement{Announce(ev)}}, nil
}
