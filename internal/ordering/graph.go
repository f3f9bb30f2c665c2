// Package ordering decides whether an event is newer than what is stored, where
// the provider gives no version: by a declared graph of the states that an
// object passes through.
//
// Invariants it keeps:
//
//   - A graph is acyclic, and any two of its states are ordered, unless both are
//     final. So the last position does not depend on the order of arrival: of
//     any set of events, every order ends at the same one.
//   - Nothing follows a final state.
//   - What was read is never guessed: a state that the graph does not declare
//     has no place in it.
//
// It refuses to look at a clock: neither arrival, nor receipt, nor the
// provider's own creation time ever takes part.
package ordering

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Declaration is a state graph as data.
type Declaration struct {
	// Initial lists the states that an object can begin in.
	Initial []string
	// Steps maps a state to the states that may follow it directly. A state that
	// nothing follows is final, and needs no entry of its own.
	Steps map[string][]string
	// Recurring says that an object runs through its states again and again, in
	// numbered rounds: a subscription and its billing periods. See [Position].
	Recurring bool
}

// Graph is a valid state graph. It is immutable and safe for concurrent use.
type Graph struct {
	// after holds, for every state, all the states that can be reached from it.
	after     map[string]map[string]bool
	recurring bool
}

// New checks a declaration and returns its graph, or all that is wrong with it.
func New(d Declaration) (*Graph, error) {
	g := &Graph{after: map[string]map[string]bool{}, recurring: d.Recurring}
	states := d.states()
	for _, state := range states {
		g.after[state] = reach(d.Steps, state)
	}
	problems := append(d.problems(), g.problems(states)...)
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("ordering: %w", err)
	}
	return g, nil
}

// Must is New for declarations that are part of the program. It panics when the
// declaration is wrong.
func Must(d Declaration) *Graph {
	g, err := New(d)
	if err != nil {
		panic(err)
	}
	return g
}

// Forward reports whether to comes after from, directly or with steps between
// that were not seen. A state does not come after itself.
func (g *Graph) Forward(from, to string) bool { return g.after[from][to] }

// Known reports whether the graph declares a state.
func (g *Graph) Known(state string) bool { return g.after[state] != nil }

// Final reports whether nothing follows a state.
func (g *Graph) Final(state string) bool { return g.Known(state) && len(g.after[state]) == 0 }

// Recurring reports whether objects run through the graph in rounds.
func (g *Graph) Recurring() bool { return g.recurring }

// States lists the declared states in alphabetical order.
func (g *Graph) States() []string { return slices.Sorted(maps.Keys(g.after)) }

// states lists every state that the declaration names, once, in order.
func (d Declaration) states() []string {
	named := map[string]bool{}
	for _, state := range d.Initial {
		named[state] = true
	}
	for from, nexts := range d.Steps {
		named[from] = true
		for _, next := range nexts {
			named[next] = true
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// reach returns the states that steps lead to from one state, itself only if it
// lies on a cycle.
func reach(steps map[string][]string, from string) map[string]bool {
	found := map[string]bool{}
	open := slices.Clone(steps[from])
	for len(open) > 0 {
		state := open[len(open)-1]
		open = open[:len(open)-1]
		if !found[state] {
			found[state] = true
			open = append(open, steps[state]...)
		}
	}
	return found
}

// problems returns what is wrong with the words of a declaration.
func (d Declaration) problems() []error {
	var problems []error
	if len(d.Initial) == 0 {
		problems = append(problems, errors.New("no initial state"))
	}
	begun := map[string]bool{}
	for _, state := range d.Initial {
		begun[state] = true
		maps.Copy(begun, reach(d.Steps, state))
	}
	for _, state := range d.states() {
		if !isName(state) {
			problems = append(problems, fmt.Errorf("%q is not a name of small letters, digits and underscores", state))
		}
		if !begun[state] {
			problems = append(problems, fmt.Errorf("%q cannot be reached from an initial state", state))
		}
	}
	return problems
}

// problems returns what is wrong with the shape of a graph.
func (g *Graph) problems(states []string) []error {
	var problems []error
	for i, a := range states {
		if g.after[a][a] {
			problems = append(problems, fmt.Errorf("%q comes after itself", a))
		}
		for _, b := range states[i+1:] {
			ordered := g.Forward(a, b) || g.Forward(b, a)
			if !ordered && !(g.Final(a) && g.Final(b)) {
				problems = append(problems, fmt.Errorf("%q and %q are not ordered: the first to arrive would decide", a, b))
			}
		}
	}
	return problems
}

// isName keeps state names fit for attribute names in the store.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != ""
}
