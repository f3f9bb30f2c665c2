package business

import "dakghar/internal/webhook"

// Attributes of a projection: what an object is now, as the newest event says.
const (
	AttrState    = "state"    // the state in the words of its object type
	AttrVersion  = "version"  // the provider's version, or the round of a recurring life cycle
	AttrCurrency = "currency" // ISO 4217, capitals
	AttrParent   = "parent"   // the object it belongs to
	AttrProvider = "provider"
	AttrKind     = "kind"   // the kind of the event that wrote it last
	AttrInbox    = "inbox"  // that event's inbox id
	AttrEvents   = "events" // how many events were applied to it
	// AttrCredited is what the object's steps have added to its balance so far, in
	// minor units of AttrCreditedIn; kept only where a later step may take it back.
	AttrCredited   = "credited"
	AttrCreditedIn = "credited_in"
)

// project returns the update that makes an object's projection what the event
// says. Attributes that the event does not have go: a projection is the newest
// event's and no mixture, or the order of arrival would show in it.
func project(ev webhook.Event) webhook.Action {
	f := ev.Facts
	set := webhook.Item{
		AttrProvider: string(ev.Provider), AttrKind: string(ev.Kind), AttrInbox: string(ev.InboxID),
	}
	var drop []string
	keep := func(attribute string, value any, there bool) {
		if there {
			set[attribute] = value
		} else {
			drop = append(drop, attribute)
		}
	}
	keep(AttrState, f.State, f.State != "")
	keep(AttrVersion, f.Version, f.HasVersion)
	keep(AttrAmount, f.Amount, f.Currency != "")
	keep(AttrCurrency, f.Currency, f.Currency != "")
	keep(AttrParent, f.ParentID, f.ParentID != "")

	a := webhook.UpdateItem(ProjectionKey(ev), set).Adding(AttrEvents, 1)
	a.Drop = drop
	return a
}
