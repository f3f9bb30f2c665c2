package provider

import (
	"slices"

	"dakghar/internal/webhook"
)

// Kind is what an event type means in our words.
type Kind struct {
	Name   webhook.Kind
	Object webhook.ObjectType
	Policy webhook.Policy
	// State is what the object has become. Empty where the body decides, by
	// [Reading.States], or where the event says nothing about the state.
	State string
	// Credit is the effect on the object's balance: +1, -1 or 0. Where the body
	// decides the state, it decides this too.
	Credit int
	// Delta marks an event that changes a sum and cannot be repeated.
	Delta bool
	// Shape is what the body of this type looks like. It is required where the
	// signature does not cover the type: without it, a captured body could be
	// sent again under another type.
	Shape []Check
	// Read says where the facts stand.
	Read *Reading
	// Example is what a sample's body shows besides.
	Example []Check
	// Current says how the object's present state is read from the sender; nil
	// where it cannot be.
	Current *Current
}

// Reading says where the facts of an object stand in the body. Each list of
// paths is tried in order; the first one that is there counts.
type Reading struct {
	ID []string
	// IDPrefix is put before the id, where several kinds of objects are kept as one.
	IDPrefix string
	// Version is the sender's authoritative version of the object.
	Version []string
	// Round is the number of the object's passage through a recurring life
	// cycle: a count of paid cycles, or the billing period. A period that is named
	// by a time in RFC 3339 counts by its whole seconds.
	Round []string
	// Amount is a number in minor units; if Text, the same as text; if Decimal,
	// decimal text in major units.
	Amount        []string
	Text, Decimal bool
	// Sum, if set, replaces Amount and Currency by a sum over an array.
	Sum      *Sum
	Currency []string
	Parent   []string
	// States are tried in order where the kind itself sets no state.
	States []StateRule
	// Sample is the body that samples begin with.
	Sample []byte
}

// Sum adds amounts, decimal text in major units, over the elements of an array.
type Sum struct {
	Array            string  // path
	Amount, Currency string  // paths inside an element
	Where            []Check // the elements that count
}

// StateRule maps what a body shows to a state in our words.
type StateRule struct {
	When   []Check
	State  string
	Credit int
	// Amount, if set, replaces [Reading.Amount] in this state.
	Amount []string
}

// Check is a requirement on one place in the body.
type Check struct {
	Path string
	// Is lists the allowed texts of a string, integer, true or false. Empty
	// means: there, and not null.
	Is []string
	// Absent means: not there, or null.
	Absent bool
}

// Is requires one of the texts at a path.
func Is(path string, texts ...string) Check { return Check{Path: path, Is: texts} }

// Has requires something other than null at a path.
func Has(path string) Check { return Check{Path: path} }

// Lacks requires nothing, or null, at a path.
func Lacks(path string) Check { return Check{Path: path, Absent: true} }

// Statuses maps the texts at one path to states, in the order given: pairs of
// the sender's word and ours.
func Statuses(path string, pairs ...string) []StateRule {
	var rules []StateRule
	for pair := range slices.Chunk(pairs, 2) {
		rules = append(rules, StateRule{When: []Check{Is(path, pair[0])}, State: pair[1]})
	}
	return rules
}

// Crediting returns a copy of the rules in which a state has a credit.
func Crediting(rules []StateRule, state string, credit int) []StateRule {
	rules = slices.Clone(rules)
	for i := range rules {
		if rules[i].State == state {
			rules[i].Credit = credit
		}
	}
	return rules
}

// state returns what the body says that the object has become.
func (r *Reading) state(v values) (StateRule, bool) {
	for _, rule := range r.States {
		if v.all(rule.When) {
			return rule, true
		}
	}
	return StateRule{}, false
}
