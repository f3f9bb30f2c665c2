package ordering_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/ordering"
)

// parcel is the life of a parcel: posted, carried, then handed over or lost.
func parcel() ordering.Declaration {
	return ordering.Declaration{
		Initial: []string{"posted"},
		Steps: map[string][]string{
			"posted":  {"carried"},
			"carried": {"handed_over", "lost"},
		},
	}
}

// Proves O5: a step is forward whether or not the steps between were seen.
func TestForwardFollowsTheArrowsAndNothingElse(t *testing.T) {
	t.Parallel()
	g := ordering.Must(parcel())

	got := map[string][]string{}
	for _, from := range g.States() {
		for _, to := range g.States() {
			if g.Forward(from, to) {
				got[from] = append(got[from], to)
			}
		}
	}
	want := map[string][]string{
		"posted":  {"carried", "handed_over", "lost"},
		"carried": {"handed_over", "lost"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("forward steps (-want +got):\n%s", diff)
	}
	if g.Forward("posted", "eaten") || g.Forward("eaten", "posted") || g.Known("eaten") || g.Final("eaten") {
		t.Error("an undeclared state has a place in the graph")
	}
}

// Proves O5.
func TestWrongDeclarationsAreRefusedWithEverySentence(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		declaration ordering.Declaration
		want        string
	}{
		{
			name: "an empty declaration has no beginning",
			want: "ordering: no initial state",
		},
		{
			name: "a cycle",
			declaration: ordering.Declaration{
				Initial: []string{"on"}, Steps: map[string][]string{"on": {"off"}, "off": {"on"}},
			},
			want: "ordering: \"off\" comes after itself\n\"on\" comes after itself",
		},
		{
			name: "two branches that the first arrival would choose between",
			declaration: ordering.Declaration{
				Initial: []string{"a"}, Steps: map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}},
			},
			want: `ordering: "b" and "c" are not ordered: the first to arrive would decide`,
		},
		{
			name: "an end that only some branches reach",
			declaration: ordering.Declaration{
				Initial: []string{"a"}, Steps: map[string][]string{"a": {"b", "lost"}, "b": {"done"}},
			},
			want: `ordering: "b" and "lost" are not ordered: the first to arrive would decide`,
		},
		{
			name: "a state that nothing leads to",
			declaration: ordering.Declaration{
				Initial: []string{"a"}, Steps: map[string][]string{"a": {"c"}, "b": {"a"}},
			},
			want: `ordering: "b" cannot be reached from an initial state`,
		},
		{
			name: "names that the store could not carry",
			declaration: ordering.Declaration{
				Initial: []string{"past due"}, Steps: map[string][]string{"past due": {""}},
			},
			want: "ordering: \"\" is not a name of small letters, digits and underscores\n" +
				"\"past due\" is not a name of small letters, digits and underscores",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := ordering.New(tt.declaration)
			if err == nil {
				t.Fatal("the declaration was accepted")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMustPanicsOnAWrongDeclaration(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a wrong declaration was accepted")
		}
	}()
	ordering.Must(ordering.Declaration{})
}

// Proves O5.
func TestStepSaysWhereAPositionLies(t *testing.T) {
	t.Parallel()
	at := func(round int64, state string) ordering.Position {
		return ordering.Position{Round: round, State: state}
	}
	tests := []struct {
		name      string
		recurring bool
		from, to  ordering.Position
		want      ordering.Step
	}{
		{"the next state is ahead", false, at(0, "posted"), at(0, "carried"), ordering.Ahead},
		{"the same state is repeated", false, at(0, "posted"), at(0, "posted"), ordering.Repeated},
		{"an earlier state is behind", false, at(0, "carried"), at(0, "posted"), ordering.Behind},
		{"nothing follows an end", false, at(0, "lost"), at(0, "carried"), ordering.Behind},
		{"the same end is repeated", false, at(0, "lost"), at(0, "lost"), ordering.Repeated},
		{"two ends are rivals", false, at(0, "lost"), at(0, "handed_over"), ordering.Rival},
		{"without rounds a round is not looked at", false, at(1, "carried"), at(2, "posted"), ordering.Behind},
		{"without rounds the same state of another round is repeated", false, at(1, "carried"), at(2, "carried"), ordering.Repeated},
		{"a later round is ahead whatever its state", true, at(1, "carried"), at(2, "posted"), ordering.Ahead},
		{"an earlier round is behind whatever its state", true, at(2, "posted"), at(1, "carried"), ordering.Behind},
		{"the same state of a later round is ahead", true, at(1, "carried"), at(2, "carried"), ordering.Ahead},
		{"within a round the graph decides", true, at(2, "posted"), at(2, "carried"), ordering.Ahead},
		{"no round is before every round", true, at(0, "posted"), at(ordering.NoRound, "carried"), ordering.Behind},
		{"an end is ahead even from an earlier round", true, at(5, "carried"), at(ordering.NoRound, "lost"), ordering.Ahead},
		{"an end of another round is the same end", true, at(5, "lost"), at(6, "lost"), ordering.Repeated},
		{"no later round follows an end", true, at(5, "lost"), at(6, "posted"), ordering.Behind},
		{"two ends of different rounds are rivals", true, at(5, "lost"), at(6, "handed_over"), ordering.Rival},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := parcel()
			d.Recurring = tt.recurring
			if got := ordering.Must(d).Step(tt.from, tt.to); got != tt.want {
				t.Errorf("Step(%v, %v) = %s, want %s", tt.from, tt.to, got, tt.want)
			}
		})
	}
}

// Proves O5: what makes every order of arrival end alike. Ahead is a strict
// order: nothing is ahead of itself, of two positions at most one is ahead, and
// ahead of ahead is ahead.
func TestAheadIsAStrictOrder(t *testing.T) {
	t.Parallel()
	d := parcel()
	d.Recurring = true
	g := ordering.Must(d)

	var all []ordering.Position
	for _, state := range g.States() {
		for round := ordering.NoRound; round <= 2; round++ {
			all = append(all, ordering.Position{Round: round, State: state})
		}
	}
	ahead := func(from, to ordering.Position) bool { return g.Step(from, to) == ordering.Ahead }
	for _, a := range all {
		for _, b := range all {
			if ahead(a, b) && ahead(b, a) {
				t.Errorf("%v and %v are each ahead of the other", a, b)
			}
			if s := g.Step(a, b); s != ordering.Rival && s != ordering.Repeated && !ahead(a, b) && !ahead(b, a) {
				t.Errorf("%v and %v are not ordered", a, b)
			}
			for _, c := range all {
				if ahead(a, b) && ahead(b, c) && !ahead(a, c) {
					t.Errorf("%v, %v and %v are ahead of one another in turn only", a, b, c)
				}
			}
		}
	}
}
