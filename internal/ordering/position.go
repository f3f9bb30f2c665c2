package ordering

// Position is where an object stands.
type Position struct {
	// Round numbers the passage through a recurring graph, by evidence that the
	// object itself carries and that only grows: the number of paid cycles, the
	// billing period. [NoRound] where the event carries none, which is before
	// every round. Other graphs do not look at it.
	Round int64
	State string
}

// NoRound is the round of an event that carries no evidence of one.
const NoRound int64 = -1

// Step says where one position lies, seen from another.
type Step int

// The steps.
const (
	// Ahead: the object has moved on.
	Ahead Step = iota + 1
	// Repeated: the same position again.
	Repeated
	// Behind: the object has been there, or has passed it.
	Behind
	// Rival: another end than the one that was reached. A provider does not say
	// both of one object; if it does, the first one stands.
	Rival
)

func (s Step) String() string {
	return [...]string{"", "ahead", "repeated", "behind", "rival"}[s]
}

// Step returns where to lies, seen from from. Both states must be known to the
// graph. A final state is ahead of every state of every round, and nothing is
// ahead of it; below that the round decides, and within a round the graph.
func (g *Graph) Step(from, to Position) Step {
	final := g.Final(from.State)
	switch {
	case final && g.Final(to.State) && from.State != to.State:
		return Rival
	case from.State == to.State && (final || g.round(from) == g.round(to)):
		return Repeated
	case final:
		return Behind
	case g.Final(to.State):
		return Ahead
	case g.round(from) != g.round(to):
		return when(g.round(to) > g.round(from))
	}
	return when(g.Forward(from.State, to.State))
}

func (g *Graph) round(p Position) int64 {
	if g.recurring {
		return p.Round
	}
	return 0
}

func when(ahead bool) Step {
	if ahead {
		return Ahead
	}
	return Behind
}
