package business

import (
	"context"
	"fmt"
	"strings"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Attributes of a projection that follows its object at the provider.
const (
	// AttrTicket is the ticket of the read that the projection shows.
	AttrTicket = "ticket"
	// AttrUpdated is the provider's own time of the object's last change, as read,
	// in Unix milliseconds: compared with itself alone, never with another clock.
	AttrUpdated = "updated"
	// AttrGone is set when the provider no longer had the object.
	AttrGone = "gone"
)

// Converged handles objects whose current state was read at the provider: the
// event only said that there is something to see. Of concurrent reads the one
// with the higher ticket stands, since it began later; a read that shows an older
// state than the stored one came from a replica that lags, and is made again.
//
// The ledger converges too: an event adds what the object's state is worth, less
// what the balance says was added before, by whatever policy.
type Converged struct{}

// Plan implements [Handler].
func (Converged) Plan(ctx context.Context, ev webhook.Event, r Reader) (webhook.Plan, error) {
	if ev.Policy != webhook.ByFetch || ev.Ticket < 1 {
		return webhook.Plan{}, permanent("policy_mismatch")
	}
	if err := checkObject(ev.Facts); err != nil {
		return webhook.Plan{}, err
	}
	row, there, err := r.Get(ctx, ProjectionKey(ev))
	if err != nil {
		return webhook.Plan{}, fmt.Errorf("read projection: %w", err)
	}
	if ticket, _ := row[AttrTicket].(int64); ticket >= ev.Ticket {
		return webhook.Plan{Outcome: webhook.Stale}, nil
	}
	unchanged, err := unchangedProjection(row, there)
	if err != nil {
		return webhook.Plan{}, err
	}
	if ev.Gone {
		return applied(ev, bury(ev).If(webhook.Unchanged, unchanged), ledger(ev, money{})), nil
	}
	if older(ev.Facts, row) {
		return webhook.Plan{}, fault.New(fault.Theirs, "fetched_older", nil)
	}
	worth, err := effect(ev.Facts)
	if err != nil {
		return webhook.Plan{}, err
	}
	book, err := settle(ctx, ev, worth, r)
	if err != nil {
		return webhook.Plan{}, err
	}
	return applied(ev, converge(ev, worth).If(webhook.Unchanged, unchanged), book), nil
}

// unchangedProjection is the condition under which a projection is the one read.
func unchangedProjection(row webhook.Item, there bool) (webhook.Condition, error) {
	if !there {
		return webhook.IfAbsent(), nil
	}
	events, ok := row[AttrEvents].(int64)
	if !ok {
		return webhook.Condition{}, permanent("foreign_projection")
	}
	return webhook.Condition{Attribute: AttrEvents, Relation: webhook.Equal, Value: events}, nil
}

// older reports whether a read shows less than what is stored, by the object's
// own evidence.
func older(f webhook.Facts, row webhook.Item) bool {
	version, versioned := row[AttrVersion].(int64)
	updated, dated := row[AttrUpdated].(int64)
	return f.HasVersion && versioned && f.Version < version ||
		!f.UpdatedAt.IsZero() && dated && f.UpdatedAt.UnixMilli() < updated
}

// converge makes the projection what the provider showed.
func converge(ev webhook.Event, worth money) webhook.Action {
	change := setting(project(ev), AttrTicket, ev.Ticket)
	change.Drop = append(change.Drop, AttrGone)
	if !ev.Facts.UpdatedAt.IsZero() {
		change = setting(change, AttrUpdated, ev.Facts.UpdatedAt.UnixMilli())
	}
	if worth.amount == 0 {
		change.Drop = append(change.Drop, AttrCredited, AttrCreditedIn)
		return change
	}
	// What a state graph would keep, so that an endpoint can go back to it.
	change = setting(setting(change, AttrCredited, worth.amount), AttrCreditedIn, worth.currency)
	if ev.Facts.State != "" {
		change = setting(change, countedAttribute(ev.Facts.State), true)
	}
	return change
}

// bury marks a projection whose object is gone. What it was, and what it was
// worth, stays: a payment is not undone by its record's disappearance.
func bury(ev webhook.Event) webhook.Action {
	change := setting(webhook.UpdateItem(ProjectionKey(ev), nil).Adding(AttrEvents, 1), AttrTicket, ev.Ticket)
	if ev.Facts.State != "" {
		change = setting(change, AttrState, ev.Facts.State)
	}
	return setting(change, AttrGone, true)
}

// settle returns the ledger's writes that bring the balance to what the object
// is worth. The sum is the balance's own, and must still be what was read.
func settle(ctx context.Context, ev webhook.Event, worth money, r Reader) ([]webhook.Action, error) {
	if ev.Facts.ObjectType == webhook.Account {
		if worth.amount != 0 {
			return nil, permanent("account_with_amount")
		}
		return ledger(ev, money{}), nil
	}
	row, there, err := r.Get(ctx, LedgerBalanceKey(ev))
	if err != nil {
		return nil, fmt.Errorf("read balance: %w", err)
	}
	sum, err := balanceOf(row, worth.currency)
	if err != nil {
		return nil, err
	}
	missing := money{worth.amount - sum.amount, sum.currency}
	if missing.amount == 0 {
		missing = money{}
	}
	book := ledger(ev, missing)
	if missing.amount == 0 {
		return book, nil
	}
	condition := webhook.IfAbsent()
	if there {
		entries, ok := row[AttrEntries].(int64)
		if !ok {
			return nil, permanent("foreign_balance")
		}
		condition = webhook.Condition{Attribute: AttrEntries, Relation: webhook.Equal, Value: entries}
	}
	last := len(book) - 1 // the balance; see ledger
	book[last] = book[last].If(webhook.Unchanged, condition)
	return book, nil
}

// balanceOf returns what was added so far, in the object's one currency.
func balanceOf(row webhook.Item, currency string) (money, error) {
	sum := money{currency: currency}
	for name, value := range row {
		stored, ok := strings.CutPrefix(name, BalanceAttribute(""))
		amount, isNumber := value.(int64)
		switch {
		case !ok || !isNumber || amount == 0:
		case sum.currency != "" && sum.currency != stored:
			return money{}, permanent("currency_changed")
		default:
			sum = money{amount, stored}
		}
	}
	return sum, nil
}
