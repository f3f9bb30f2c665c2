package dynamo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// expression gathers placeholders for one request. Every name is aliased, so no
// attribute can ever meet a reserved word.
type expression struct {
	names  map[string]string
	values attributes
	err    error
}

func newExpression() *expression {
	return &expression{names: map[string]string{}, values: attributes{}}
}

func (e *expression) name(attribute string) string {
	alias := "#" + attribute
	e.names[alias] = attribute
	return alias
}

func (e *expression) value(v types.AttributeValue) string {
	alias := fmt.Sprintf(":%d", len(e.values))
	e.values[alias] = v
	return alias
}

func (e *expression) any(v any) string {
	encoded, err := encodeValue(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	return e.value(encoded)
}

// valuesOrNil returns the values, nil when there are none: an empty map is refused by the service.
func (e *expression) valuesOrNil() attributes {
	if len(e.values) == 0 {
		return nil
	}
	return e.values
}

func (e *expression) namesOrNil() map[string]string {
	if len(e.names) == 0 {
		return nil
	}
	return e.names
}

// guard renders what must be true of an inbox row.
func (e *expression) guard(g webhook.Guard) string {
	var states []string
	for _, from := range g.From {
		state := e.name("st") + " = " + e.value(str(string(from)))
		switch {
		case from.Waiting() && !g.DueBy.IsZero():
			state += " AND " + e.name("na") + " <= " + e.value(ms(g.DueBy))
		case from == webhook.Processing && !g.LeaseOverAt.IsZero():
			state += " AND " + e.name("lu") + " < " + e.value(ms(g.LeaseOverAt))
		}
		states = append(states, state)
	}
	conditions := []string{anyOf(states)}
	if !g.AnyFence {
		conditions = append(conditions, e.name("f")+" = "+e.value(num(int64(g.Fence))))
	}
	if g.AttemptsBelow > 0 {
		conditions = append(conditions, e.name("ac")+" < "+e.value(num(int64(g.AttemptsBelow))))
	}
	if !g.BodyAliveAt.IsZero() {
		conditions = append(conditions, e.name("bx")+" > "+e.value(ms(g.BodyAliveAt)))
	}
	if g.Free {
		conditions = append(conditions, "attribute_not_exists("+e.name("ea")+")", "attribute_not_exists("+e.name("lh")+")")
	}
	return strings.Join(conditions, " AND ")
}

// anyOf joins alternatives. The service refuses parentheses that do nothing.
func anyOf(alternatives []string) string {
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	return "((" + strings.Join(alternatives, ") OR (") + "))"
}

// change renders what an inbox row becomes.
func (e *expression) change(c webhook.Change) string {
	set := []string{e.name("st") + " = " + e.value(str(string(c.To)))}
	var remove []string
	put := func(name string, v types.AttributeValue) { set = append(set, e.name(name)+" = "+e.value(v)) }

	if c.Outcome != "" {
		put("oc", str(string(c.Outcome)))
	}
	if !c.NextAttemptAt.IsZero() {
		put("na", ms(c.NextAttemptAt))
	}
	if c.LastError != "" {
		put("le", str(c.LastError))
	}
	if !c.ProcessedAt.IsZero() {
		put("pr", ms(c.ProcessedAt))
	}
	if !c.ExpiresAt.IsZero() {
		put("x", num(c.ExpiresAt.Unix()))
	}
	if c.LeaseUntil.IsZero() {
		remove = append(remove, e.name("lu"))
	} else {
		put("lu", ms(c.LeaseUntil))
	}
	switch {
	case c.ClaimID != "":
		put("ci", str(string(c.ClaimID)))
	case !c.KeepClaim:
		remove = append(remove, e.name("ci"))
	}
	switch {
	case c.Slot != (webhook.Slot{}):
		put("sl", str(c.Slot.String()))
	case slices.Contains(c.Guard.From, webhook.Parked):
		remove = append(remove, e.name("sl"))
	}
	if c.To == webhook.Failed {
		put("fk", str(failedKey(webhook.ShardOf(string(c.ID)))))
		put("fa", ms(c.ProcessedAt))
	}
	if c.Reopen {
		put("ac", num(0))
		remove = append(remove, e.name("pr"), e.name("x"), e.name("fk"), e.name("fa"))
	}
	if c.NextRun {
		remove = append(remove, e.name("oc"))
	}
	if !c.ErasedAt.IsZero() {
		put("ea", ms(c.ErasedAt))
		put("bx", ms(c.ErasedAt))
	}
	switch {
	case c.HoldByLaw:
		put("lh", &types.AttributeValueMemberBOOL{Value: true})
		remove = append(remove, e.name("x"))
	case c.LetGo:
		remove = append(remove, e.name("lh"))
	}
	add := []string{e.name("f") + " " + e.value(num(1))}
	if c.Attempts != 0 {
		add = append(add, e.name("ac")+" "+e.value(num(int64(c.Attempts))))
	}
	if c.NextRun {
		add = append(add, e.name("rn")+" "+e.value(num(1)))
	}
	update := "SET " + strings.Join(set, ", ") + " ADD " + strings.Join(add, ", ")
	if len(remove) > 0 {
		update += " REMOVE " + strings.Join(remove, ", ")
	}
	return update
}

// conditions renders what a business action requires of its row.
func (e *expression) conditions(when []webhook.Condition) *string {
	var all []string
	for _, c := range when {
		name := e.name(c.Attribute)
		switch c.Relation {
		case webhook.Absent:
			all = append(all, "attribute_not_exists("+name+")")
		case webhook.Equal:
			all = append(all, name+" = "+e.any(c.Value))
		case webhook.Less:
			all = append(all, name+" < "+e.any(c.Value))
		case webhook.ElseLess:
			all = append(all, "(attribute_not_exists("+name+") OR "+name+" < "+e.any(c.Value)+")")
		}
	}
	if len(all) == 0 {
		return nil
	}
	joined := strings.Join(all, " AND ")
	return &joined
}

// update renders what a business action sets, adds and drops.
func (e *expression) update(a webhook.Action) string {
	var parts []string
	clause := func(word string, items []string) {
		if len(items) > 0 {
			parts = append(parts, word+" "+strings.Join(items, ", "))
		}
	}
	var set, add, drop []string
	for _, name := range sortedKeys(a.Item) {
		set = append(set, e.name(name)+" = "+e.any(a.Item[name]))
	}
	for _, name := range sortedKeys(a.Add) {
		add = append(add, e.name(name)+" "+e.value(num(a.Add[name])))
	}
	for _, name := range a.Drop {
		drop = append(drop, e.name(name))
	}
	clause("SET", set)
	clause("ADD", add)
	clause("REMOVE", drop)
	return strings.Join(parts, " ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
