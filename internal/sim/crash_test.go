package sim_test

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"dakghar/internal/sim"
)

// The environment chooses what is explored:
//
//	CRASH                unset: a sample of every scenario, the same in every run;
//	                     all: every point, and pairs of points up to a budget;
//	                     "process: before processor call 3": that death alone
//	CRASH_SEED           another sample (1)
//	DYNAMODB_LOCAL_URL   where DynamoDB Local listens; without it, its part is left out
const (
	chooseVariable = "CRASH"
	seedVariable   = "CRASH_SEED"
	localVariable  = "DYNAMODB_LOCAL_URL"
)

// place is one implementation of DynamoDB.
type place struct {
	name    string
	grounds *sim.Grounds // nil: the embedded one
	repeat  string       // what stands before `go test` in the command that repeats a run
	// How many runs a scenario gets: with CRASH=all, and else.
	all, sample budget
}

// budget bounds the runs of a scenario; points below zero are all of them.
type budget struct{ points, pairs int }

// places returns where the scenarios run. A run takes about ten times as long on
// DynamoDB Local, which gets every point and no pairs.
func places() []place {
	here := place{name: "embedded", all: budget{-1, 100}, sample: budget{6, 3}}
	url := os.Getenv(localVariable)
	if url == "" {
		return []place{here}
	}
	return []place{here, {
		name: "DynamoDB Local", grounds: &sim.Grounds{URL: url}, repeat: "scripts/with-oracles.sh --only dynamodb ",
		all: budget{-1, 0}, sample: budget{2, 0},
	}}
}

// TestCrash kills each program before and after each of its AWS calls, in every
// scenario, and lets the rest of the system come to rest.
//
// Proves A2, A6, D4, D5, W2, W4, R1, R2, S4, T4, T7.
func TestCrash(t *testing.T) {
	t.Parallel()
	checkChoice(t)
	table := &table{}
	t.Cleanup(func() { t.Logf("\n%s", table) })
	for _, p := range places() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for i, s := range scenarios() {
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					explore(t, p, i, table)
				})
			}
		})
	}
}

// checkChoice refuses to pass by exploring nothing.
func checkChoice(t *testing.T) {
	t.Helper()
	chosen := os.Getenv(chooseVariable)
	name, _, one := strings.Cut(chosen, ":")
	known := slices.ContainsFunc(scenarios(), func(s sim.Scenario) bool { return s.Name == name })
	if chosen != "" && chosen != "all" && !(one && known) {
		t.Fatalf("%s=%q is neither all nor the death in a scenario, such as %q", chooseVariable, chosen, "process: before processor call 3")
	}
}

// explore runs the i-th scenario as the environment asks for, and tells the table.
func explore(t *testing.T, p place, i int, tell *table) {
	t.Helper()
	fresh := func() sim.Scenario {
		s := scenarios()[i]
		s.Options.Grounds = p.grounds
		return s
	}
	result := row{order: i, scenario: fresh().Name}
	defer func() {
		result.failed = t.Failed()
		tell.add(p.name, result)
	}()
	for _, points := range choose(t, p, fresh) {
		d := dieAt(t, p, fresh(), points)
		result.note(d, points)
		if d.Deaths == 0 && strings.Contains(os.Getenv(chooseVariable), ":") {
			t.Errorf("%s: nothing died there; calls that a program makes at once come in any order, so try again", fresh().Where(points...))
		}
	}
}

// choose returns the deaths to explore, each one point or two.
func choose(t *testing.T, p place, fresh func() sim.Scenario) [][]sim.Point {
	t.Helper()
	chosen := os.Getenv(chooseVariable)
	if name, points, one := strings.Cut(chosen, ":"); one {
		if name != fresh().Name {
			t.SkipNow()
		}
		parsed, err := sim.ParsePoints(points)
		if err != nil {
			t.Fatal(err)
		}
		return [][]sim.Point{parsed}
	}
	within := p.sample
	if chosen == "all" {
		within = p.all
	}
	points := fresh().Points(t)
	var singles [][]sim.Point
	for _, one := range points {
		singles = append(singles, []sim.Point{one})
	}
	chance := chanceOf(t, p.name+fresh().Name)
	return append(some(singles, within.points, chance), some(pairs(points), within.pairs, chance)...)
}

// chanceOf draws the same sample in every run.
func chanceOf(t *testing.T, name string) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), "1"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// pairs returns every two deaths that one run can have: in two programs, or in
// one that lives again in between.
func pairs(points []sim.Point) (all [][]sim.Point) {
	for i, a := range points {
		for _, b := range points[i+1:] {
			if a.Program != b.Program || a.N != b.N {
				all = append(all, []sim.Point{a, b})
			}
		}
	}
	return all
}

// some draws n of them, all when n is negative or more than there are.
func some(all [][]sim.Point, n int, chance *rand.Rand) [][]sim.Point {
	if n < 0 || n >= len(all) {
		return all
	}
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// dieAt runs one death, and says with which command it can be seen again.
func dieAt(t *testing.T, p place, s sim.Scenario, points []sim.Point) sim.Death {
	t.Helper()
	again := fmt.Sprintf("%s='%s' %sgo test -count=1 -run '^TestCrash$/^%s$' ./internal/sim",
		chooseVariable, s.Where(points...), p.repeat, strings.ReplaceAll(p.name, " ", "_"))
	returned := false
	defer func() {
		if !returned {
			t.Errorf("repeat: %s", again) // the world gave up, or something panicked
		}
	}()
	d := s.Die(t, points...)
	returned = true
	if len(d.Wrong) > 0 {
		t.Errorf("%s (%s):\n  %s\nrepeat: %s", s.Where(points...), strings.Join(d.Calls, ", "), strings.Join(d.Wrong, "\n  "), again)
	}
	return d
}

// row is what a scenario came to in one place.
type row struct {
	order         int
	scenario      string
	points, pairs int // with all their deaths
	shorter       int // runs that ended before their last death
	failed        bool
}

// note counts a run. The second death of a pair may lie on a way that the first
// one kept the program from; and calls that are made at once come in any order.
func (r *row) note(d sim.Death, points []sim.Point) {
	switch {
	case d.Deaths < len(points):
		r.shorter++
	case len(points) == 1:
		r.points++
	default:
		r.pairs++
	}
}

func (r row) runs() int { return r.points + r.pairs + r.shorter }

// table collects what the places found. It is safe for concurrent use.
type table struct {
	mu     sync.Mutex
	places []string
	rows   []map[string]row // by order, then by place
}

func (b *table) add(place string, r row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.places, place) {
		b.places = append(b.places, place)
	}
	for len(b.rows) <= r.order {
		b.rows = append(b.rows, map[string]row{})
	}
	b.rows[r.order][place] = r
}

// String prints scenario × crash points × pairs × result, per place.
func (b *table) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "scenario")
	for _, p := range b.places {
		fmt.Fprintf(w, "\t%s: points\tpairs\tresult", p)
	}
	fmt.Fprintln(w)
	sums := map[string]row{}
	for _, byPlace := range b.rows {
		name, runs := "", 0
		for _, r := range byPlace {
			name, runs = r.scenario, runs+r.runs()
		}
		if runs == 0 {
			continue // not asked for
		}
		fmt.Fprint(w, name)
		for _, p := range b.places {
			r := byPlace[p]
			fmt.Fprint(w, r.cells())
			sum := sums[p]
			sums[p] = row{points: sum.points + r.points, pairs: sum.pairs + r.pairs, shorter: sum.shorter + r.shorter, failed: sum.failed || r.failed}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "all")
	for _, p := range b.places {
		fmt.Fprint(w, sums[p].cells())
	}
	fmt.Fprintln(w)
	w.Flush()
	for _, p := range b.places {
		fmt.Fprintf(&out, "%s: %d runs, of which %d ended before their last death and are not counted above\n", p, sums[p].runs(), sums[p].shorter)
	}
	return out.String()
}

func (r row) cells() string {
	result := "recovered"
	switch {
	case r.failed:
		result = "FAILED"
	case r.runs() == 0:
		result = "not run"
	}
	return fmt.Sprintf("\t%d\t%d\t%s", r.points, r.pairs, result)
}
