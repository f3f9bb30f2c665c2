package business_test

import (
	"context"
	"fmt"

	"dakghar/internal/business"
	"dakghar/internal/webhook"
)

// bookings gives a seat to the first booking that is confirmed for it. The seat
// is a row that two bookings fight over, so the rule is a condition of the write
// itself: a seat that somebody has is not given away, whoever read what before.
type bookings struct{}

func (bookings) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	seat := business.TenantKey(ev.Tenant, []string{"seat", ev.Facts.ParentID}, "seat")
	holder, _, err := r.Get(ctx, seat)
	if err != nil {
		return webhook.Plan{}, err
	}
	state, take := "confirmed", holder["booking"] != ev.Facts.ObjectID
	if ev.DomainRefused { // somebody has the seat: that is an outcome, not an error
		state, take = "overbooked", false
	}
	booking := webhook.UpdateItem(business.ProjectionKey(ev), webhook.Item{"state": state})
	plan := webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{booking}}
	if take {
		plan.Actions = append(plan.Actions,
			webhook.PutItem(seat, webhook.Item{"booking": ev.Facts.ObjectID}).If(webhook.Domain, webhook.IfAbsent()))
	}
	return plan, nil
}

// A handler for an object type of your own is added to the built-in ones. It
// returns what should be written; the processor writes it, together with the
// mark that the event was applied, or not at all.
func ExampleRouter() {
	router := business.Standard().With("booking", bookings{})

	table := newMemory() // stands in for the processor and its table
	for i, id := range []string{"b_1", "b_2", "b_1"} {
		ev := webhook.Event{
			InboxID: webhook.InboxID(fmt.Sprint("in_", i)), Tenant: "theatre", Provider: "standard-webhooks",
			Facts: webhook.Facts{ObjectType: "booking", ObjectID: id, ParentID: "row F 7"},
		}
		outcome, err := table.process(router, ev)
		fmt.Println(id, outcome, table.rows[business.ProjectionKey(ev)]["state"], err)
	}
	// Output:
	// b_1 applied confirmed <nil>
	// b_2 applied overbooked <nil>
	// b_1 applied confirmed <nil>
}
