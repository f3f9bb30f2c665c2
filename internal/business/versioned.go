package business

import (
	"context"

	"dakghar/internal/webhook"
)

// Versioned handles objects whose provider numbers their versions: an event is
// applied only if its version is greater than the stored one. The store decides
// that inside the write, so nothing is read and no rival can come between; the
// ledger is part of the same transaction and stands or falls with it.
type Versioned struct{}

// Plan implements [Handler].
func (Versioned) Plan(_ context.Context, ev webhook.Event, _ Reader) (webhook.Plan, error) {
	if ev.Policy != webhook.ByVersion {
		return webhook.Plan{}, permanent("policy_mismatch")
	}
	if err := checkObject(ev.Facts); err != nil {
		return webhook.Plan{}, err
	}
	if !ev.Facts.HasVersion || ev.Facts.Version < 0 {
		return webhook.Plan{}, permanent("no_version")
	}
	m, err := effect(ev.Facts)
	if err != nil {
		return webhook.Plan{}, err
	}
	newer := webhook.Condition{Attribute: AttrVersion, Relation: webhook.ElseLess, Value: ev.Facts.Version}
	return applied(ev, project(ev).If(webhook.Newer, newer), ledger(ev, m)), nil
}
