package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dakghar/internal/crashtest"
)

// Scenario is a piece of work that must come out right wherever a program dies.
type Scenario struct {
	// Name is short, and stands on a command line.
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
	Program string
	N       int
	Side    crashtest.Side
}

func (p Point) String() string { return fmt.Sprintf("%s %s call %d", p.Side, p.Program, p.N) }

// ParsePoints reads what [Where] writes behind the scenario's name:
// "before relay call 2, after processor call 3".
func ParsePoints(text string) ([]Point, error) {
	var points []Point
	for _, one := range strings.Split(text, ",") {
		words := strings.Fields(one)
		if len(words) != 4 || words[2] != "call" {
			return nil, fmt.Errorf("%q is no point such as %q", strings.TrimSpace(one), Point{"processor", 3, crashtest.Before})
		}
		n, err := strconv.Atoi(words[3])
		side := crashtest.Side(words[0])
		if err != nil || n < 1 || side != crashtest.Before && side != crashtest.After {
			return nil, fmt.Errorf("%q does not say before or after which call", strings.TrimSpace(one))
		}
		points = append(points, Point{Program: words[1], N: n, Side: side})
	}
	return points, nil
}

// Where names a run: "process: before processor call 3".
func (s Scenario) Where(points ...Point) string {
	texts := make([]string, len(points))
	for i, p := range points {
		texts[i] = p.String()
	}
	return s.Name + ": " + strings.Join(texts, ", ")
}

// Points runs the scenario once, unharmed, and returns every place to die. It
// fails the test if even this run comes out wrong.
func (s Scenario) Points(t *testing.T) []Point {
	t.Helper()
	w := s.begin(t)
	defer w.Close()
	from := map[string]int{}
	for _, p := range w.Programs() {
		from[p.Name] = len(p.Switch.Calls())
	}
	for _, wrong := range s.end(w) {
		t.Errorf("%s, unharmed: %s", s.Name, wrong)
	}
	var points []Point
	for _, p := range w.Programs() {
		for i := range p.Switch.Calls()[from[p.Name]:] {
			for _, side := range []crashtest.Side{crashtest.Before, crashtest.After} {
				points = append(points, Point{p.Name, i + 1, side})
			}
		}
	}
	return points
}

// Death is what a run with deaths came to.
type Death struct {
	Deaths int      // how many of the points the run reached
	Calls  []string // what each dead program was calling, in words
	Wrong  []string // what is wrong afterwards; nothing when all recovered
}

// Die runs the scenario with deaths at the given points. A point that this run
// never reaches is no death.
func (s Scenario) Die(t *testing.T, points ...Point) Death {
	t.Helper()
	w := s.begin(t)
	defer w.Close()
	at := map[string][]int{}
	for _, point := range points {
		i := slices.IndexFunc(w.Programs(), func(p *Program) bool { return p.Name == point.Program })
		if i < 0 {
			t.Fatalf("there is no program %q", point.Program)
		}
		p := w.Programs()[i]
		at[p.Name] = append(at[p.Name], len(p.Switch.Calls())+point.N)
		p.Switch.KillAt(point.N, point.Side)
	}
	d := Death{Wrong: s.end(w)}
	for _, p := range w.Programs() {
		d.Deaths += p.Switch.Deaths()
		calls := p.Switch.Calls()
		for _, n := range at[p.Name] {
			if n <= len(calls) {
				d.Calls = append(d.Calls, fmt.Sprintf("%s in %s", p.Name, calls[n-1].Operation))
			}
		}
	}
	return d
}

func (s Scenario) begin(t *testing.T) *World {
	t.Helper()
	w := New(t, s.Options)
	if s.Arrange != nil {
		s.Arrange(w)
	}
	return w
}

// end does the work, lets everything come to rest, and returns what is wrong.
func (s Scenario) end(w *World) []string {
	s.Act(w)
	w.Rest()
	wrong := w.Check()
	if s.Want != nil {
		wrong = append(wrong, s.Want(w)...)
	}
	if len(wrong) > 0 {
		for _, r := range w.Inbox() {
			wrong = append(wrong, fmt.Sprintf("%s stands at %s %s %q after %d attempts, fence %d, %s after the start",
				r.ID, r.Status, r.Outcome, r.LastError, r.AttemptCount, r.Fence, w.Now().Sub(Start)))
		}
	}
	return wrong
}
