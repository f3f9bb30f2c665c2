package sim

import (
	"fmt"
	"testing"

	"dakghar/internal/crashtest"
)

// Scenario is a piece of work that must come out right wherever a program dies.
type Scenario struct {
	Name    string
	Options Options
	// Arrange makes what the work begins with. No program dies in it.
	Arrange func(w *World)
	// Act is the work. What follows it, until everything rests, is explored as well.
	Act func(w *World)
	// Want checks the end, beyond what every end must fulfil.
	Want func(w *World) []string
}

// Point is one place to die: before or after the n-th call of a program.
type Point struct {
	Program   string
	N         int
	Operation string
	Side      crashtest.Side
}

func (p Point) String() string {
	return fmt.Sprintf("%s %s call %d, %s", p.Side, p.Program, p.N, p.Operation)
}

// Points runs the scenario once, unharmed, and returns every place to die. It
// fails the test if even this run comes out wrong.
func (s Scenario) Points(t *testing.T) []Point {
	t.Helper()
	w := s.begin(t)
	from := map[string]int{}
	for _, p := range w.Programs() {
		from[p.Name] = len(p.Switch.Calls())
	}
	s.end(t, w, "unharmed")
	var points []Point
	for _, p := range w.Programs() {
		for i, call := range p.Switch.Calls()[from[p.Name]:] {
			for _, side := range []crashtest.Side{crashtest.Before, crashtest.After} {
				points = append(points, Point{p.Name, i + 1, call.Operation, side})
			}
		}
	}
	return points
}

// Die runs the scenario with deaths at the given points, and reports what is
// wrong afterwards. A point that this run never reaches is no death.
func (s Scenario) Die(t *testing.T, points ...Point) {
	t.Helper()
	w := s.begin(t)
	for _, point := range points {
		for _, p := range w.Programs() {
			if p.Name == point.Program {
				p.Switch.KillAt(point.N, point.Side)
			}
		}
	}
	s.end(t, w, fmt.Sprint(points))
}

func (s Scenario) begin(t *testing.T) *World {
	t.Helper()
	w := New(t, s.Options)
	if s.Arrange != nil {
		s.Arrange(w)
	}
	return w
}

func (s Scenario) end(t *testing.T, w *World, how string) {
	t.Helper()
	s.Act(w)
	w.Rest()
	wrong := w.Check()
	if s.Want != nil {
		wrong = append(wrong, s.Want(w)...)
	}
	for _, line := range wrong {
		t.Errorf("%s, %s: %s", s.Name, how, line)
	}
}
