package business

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"dakghar/internal/ordering"
	"dakghar/internal/webhook"
)

// Lifecycle handles objects that pass through known states and whose provider
// gives them no version: a step ahead in the graph is applied, on the condition
// that the projection is still what was read; a repeated step, a step behind and
// a rival end are stale. Events that say nothing about the state are recorded in
// the ledger alone, in any order.
//
// Money does not get lost to order: a step that carries money and was overtaken
// before it arrived leaves the state alone and is still credited, once.
type Lifecycle struct {
	Graph *ordering.Graph
	// Voids lists the states that undo what earlier steps did to the balance: a
	// refund that fails after it succeeded. Their own events carry no credit.
	Voids []string
}

// Plan implements [Handler].
func (l Lifecycle) Plan(ctx context.Context, ev webhook.Event, r Reader) (webhook.Plan, error) {
	if ev.Policy != webhook.Monotonic {
		return webhook.Plan{}, permanent("policy_mismatch")
	}
	if err := checkObject(ev.Facts); err != nil {
		return webhook.Plan{}, err
	}
	if ev.Facts.State == "" {
		return recordOnly(ev)
	}
	s, err := l.read(ctx, ev, r)
	if err != nil {
		return webhook.Plan{}, err
	}
	return l.decide(ev, s)
}

// step is an event that sets a state, beside the projection that was read.
type step struct {
	there  bool // whether there was a projection
	stored ordering.Position
	to     ordering.Position
	effect money // what the event does to the balance
	// credited is what earlier steps did to the balance, as far as it may be undone.
	credited money
	// counted lists the attributes that say whose money was counted.
	counted []string
	// unchanged are the conditions under which the projection is still the one read.
	unchanged []webhook.Condition
}

func (l Lifecycle) read(ctx context.Context, ev webhook.Event, r Reader) (step, error) {
	s, err := l.incoming(ev)
	if err != nil {
		return step{}, err
	}
	row, there, err := r.Get(ctx, ProjectionKey(ev))
	if err != nil {
		return step{}, fmt.Errorf("read projection: %w", err)
	}
	if !there {
		s.unchanged = []webhook.Condition{webhook.IfAbsent()}
		return s, nil
	}
	err = s.load(row, l.Graph)
	return s, err
}

// incoming takes over what the event says.
func (l Lifecycle) incoming(ev webhook.Event) (step, error) {
	s := step{to: ordering.Position{Round: ordering.NoRound, State: ev.Facts.State}}
	if ev.Facts.HasVersion {
		s.to.Round = ev.Facts.Version
	}
	var err error
	s.effect, err = effect(ev.Facts)
	switch {
	case err != nil:
		return step{}, err
	case !l.Graph.Known(s.to.State):
		return step{}, permanent("unknown_state")
	case ev.Facts.HasVersion && ev.Facts.Version < 0:
		return step{}, permanent("bad_version")
	case s.effect.amount == 0:
		return s, nil
	case l.voids(s.to.State):
		return step{}, permanent("void_with_credit")
	case l.Graph.Recurring() && !ev.Facts.HasVersion && !l.Graph.Final(s.to.State):
		// One round's charge could not be told from another's.
		return step{}, permanent("no_round")
	}
	return s, nil
}

// load takes over what the stored projection says.
func (s *step) load(row webhook.Item, g *ordering.Graph) error {
	s.there = true
	s.stored = ordering.Position{Round: ordering.NoRound}
	s.stored.State, _ = row[AttrState].(string)
	if !g.Known(s.stored.State) {
		return permanent("unknown_stored_state")
	}
	if round, ok := row[AttrVersion].(int64); ok {
		s.stored.Round = round
	}
	s.credited.amount, _ = row[AttrCredited].(int64)
	s.credited.currency, _ = row[AttrCreditedIn].(string)

	for _, state := range g.States() {
		if _, ok := row[countedAttribute(state)]; ok {
			s.counted = append(s.counted, countedAttribute(state))
		}
	}
	// Every write of a projection counts an event, so the count is its revision.
	events, ok := row[AttrEvents].(int64)
	if !ok {
		return permanent("foreign_projection")
	}
	s.unchanged = []webhook.Condition{
		{Attribute: AttrState, Relation: webhook.Equal, Value: s.stored.State},
		{Attribute: AttrEvents, Relation: webhook.Equal, Value: events},
	}
	return nil
}

func (l Lifecycle) decide(ev webhook.Event, s step) (webhook.Plan, error) {
	where := ordering.Ahead
	if s.there {
		where = l.Graph.Step(s.stored, s.to)
	}
	overtaken := where == ordering.Behind || where == ordering.Repeated
	counted := slices.Contains(s.counted, countedAttribute(s.to.State))
	switch {
	case where == ordering.Ahead && l.voids(s.to.State):
		return l.void(ev, s), nil
	case where == ordering.Ahead:
		return l.apply(ev, s, l.project(ev))
	case overtaken && s.effect.amount != 0 && !counted && !l.voids(s.stored.State):
		return l.apply(ev, s, webhook.UpdateItem(ProjectionKey(ev), nil).Adding(AttrEvents, 1))
	}
	return webhook.Plan{Outcome: webhook.Stale}, nil
}

// apply commits a change of the projection together with the step's money.
func (l Lifecycle) apply(ev webhook.Event, s step, change webhook.Action) (webhook.Plan, error) {
	if s.effect.amount == 0 {
		return applied(ev, change.If(webhook.Unchanged, s.unchanged...), ledger(ev, s.effect)), nil
	}
	if s.credited.amount != 0 && s.credited.currency != s.effect.currency {
		return webhook.Plan{}, permanent("currency_changed")
	}
	if len(l.Voids) > 0 {
		change = setting(change, AttrCreditedIn, s.effect.currency).Adding(AttrCredited, s.effect.amount)
	}
	if l.Graph.Recurring() {
		once := webhook.PutItem(l.onceKey(ev, s), webhook.Item{AttrInbox: string(ev.InboxID)}).If(webhook.Newer, webhook.IfAbsent())
		return applied(ev, change.If(webhook.Unchanged, s.unchanged...), append(ledger(ev, s.effect), once)), nil
	}
	change = setting(change, countedAttribute(s.to.State), true)
	return applied(ev, change.If(webhook.Unchanged, s.unchanged...), ledger(ev, s.effect)), nil
}

// onceKey addresses the row that says that the money of one step of a recurring
// object was counted. Other objects say so on their projection; rounds have no
// end, and a projection must not grow with them. An end has no round.
func (l Lifecycle) onceKey(ev webhook.Event, s step) webhook.Key {
	round := s.to.Round
	if l.Graph.Final(s.to.State) {
		round = ordering.NoRound
	}
	return Key(ev, "once", strconv.FormatInt(round, 10), s.to.State)
}

// void commits a step that undoes the money of those before it. What is taken
// back was read, which is safe since the projection must still say so.
func (l Lifecycle) void(ev webhook.Event, s step) webhook.Plan {
	change := l.project(ev).If(webhook.Unchanged, s.unchanged...)
	change.Drop = append(append(change.Drop, AttrCredited, AttrCreditedIn), s.counted...)
	return applied(ev, change, ledger(ev, money{-s.credited.amount, s.credited.currency}))
}

// project makes the projection what the event says. The end of a recurring
// object has no round: it may be told with several.
func (l Lifecycle) project(ev webhook.Event) webhook.Action {
	if l.Graph.Recurring() && l.Graph.Final(ev.Facts.State) {
		ev.Facts.Version, ev.Facts.HasVersion = 0, false
	}
	return project(ev)
}

// applied is the plan of an event that changes its object, and of which partners
// are told.
func applied(ev webhook.Event, change webhook.Action, more []webhook.Action) webhook.Plan {
	return webhook.Plan{
		Outcome: webhook.Applied, Actions: append([]webhook.Action{change}, more...),
		Effects: []webhook.Announcement{Announce(ev)},
	}
}

func (l Lifecycle) voids(state string) bool { return slices.Contains(l.Voids, state) }

// countedAttribute names the attribute of a projection that says that the money
// of the step to a state was counted.
func countedAttribute(state string) string { return "counted_" + state }

// setting returns a copy of an update that also sets an attribute.
func setting(a webhook.Action, attribute string, value any) webhook.Action {
	item := webhook.Item{attribute: value}
	maps.Copy(item, a.Item)
	a.Item = item
	return a
}
