package business_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/webhook"
)

var update = flag.Bool("update", false, "write the golden plans anew")

// sampled returns an adapter's sample of a type as a handler sees it.
func sampled(t *testing.T, a *provider.Adapter, o provider.SampleOptions) webhook.Event {
	t.Helper()
	k, ok := a.Kind(o.Type)
	if !ok {
		t.Fatalf("%s has no type %s", a.Name, o.Type)
	}
	s, err := a.Sample(o)
	if err != nil {
		t.Fatalf("sample of %s: %v", o.Type, err)
	}
	f, err := a.Facts(k, o.Type, s.Body)
	if err != nil {
		t.Fatalf("facts of %s: %v", o.Type, err)
	}
	return webhook.Event{
		InboxID: webhook.DeriveInboxID("main", a.Name, webhook.EventID(o.EventID)), Tenant: "shop", Provider: a.Name, Endpoint: "main",
		EventID: webhook.EventID(o.EventID), Type: o.Type, Kind: k.Name, Policy: k.Policy, Facts: f, Body: s.Body,
	}
}

// types returns the types that samples can be made of.
func types(a *provider.Adapter) []webhook.EventType {
	if a.Pattern != nil {
		return append(a.Types(), "thing.changed")
	}
	return a.Types()
}

// Proves W2, P4: for every provider and kind, what a sample event is read as and
// the whole plan that follows on an empty table.
func TestGoldenPlans(t *testing.T) {
	t.Parallel()
	for _, a := range all.Adapters() {
		kinds := map[webhook.Kind][]webhook.EventType{}
		for _, of := range types(a) {
			k, _ := a.Kind(of)
			kinds[k.Name] = append(kinds[k.Name], of)
		}
		for kind, of := range kinds {
			t.Run(fmt.Sprintf("%s/%s", a.Name, kind), func(t *testing.T) {
				t.Parallel()
				var got strings.Builder
				for _, eventType := range of {
					ev := sampled(t, a, provider.SampleOptions{Type: eventType, EventID: "evt_golden"})
					describe(&got, ev, plan(t, ev, newMemory()))
				}
				compareGolden(t, filepath.Join("testdata", "plans", string(a.Name), string(kind)+".txt"), got.String())
			})
		}
	}
}

// describe writes an event and its plan, an action a line.
func describe(w *strings.Builder, ev webhook.Event, p webhook.Plan) {
	f := ev.Facts
	fmt.Fprintf(w, "%s (%s, by %s)\n", ev.Type, ev.Kind, ev.Policy)
	fmt.Fprintf(w, "  reads   %s %s state=%q version=%d,%t credit=%+d amount=%d%s parent=%q created=%s\n", f.ObjectType, f.ObjectID,
		f.State, f.Version, f.HasVersion, f.Credit, f.Amount, f.Currency, f.ParentID, f.CreatedAt.UTC().Format(time.RFC3339))
	fmt.Fprintf(w, "  ends    %s\n", p.Outcome)
	for _, a := range p.Actions {
		fmt.Fprintf(w, "  %-7s %s | %s", [...]string{"", "puts", "updates", "deletes", "checks"}[a.Op], a.Key.PK, a.Key.SK)
		writeValues(w, "set", a.Item)
		writeValues(w, "add", a.Add)
		if len(a.Drop) > 0 {
			fmt.Fprintf(w, " drop %s", strings.Join(a.Drop, ","))
		}
		for _, c := range a.When {
			fmt.Fprintf(w, " if %s %s", c.Attribute, [...]string{"", "absent", "equal", "less", "else-less"}[c.Relation])
			if c.Value != nil {
				fmt.Fprintf(w, " %#v", c.Value)
			}
		}
		if len(a.When) > 0 {
			fmt.Fprintf(w, " else %s", [...]string{"", "rival", "stale", "domain"}[a.Tag])
		}
		w.WriteString("\n")
	}
	for _, e := range p.Effects {
		fmt.Fprintf(w, "  tells   %s %s\n", e.Type, e.Data)
	}
}

// writeValues writes attributes in the order of their names, texts in quotes.
func writeValues[M ~map[string]V, V any](w *strings.Builder, what string, values M) {
	for i, name := range slices.Sorted(maps.Keys(values)) {
		if i == 0 {
			fmt.Fprintf(w, " %s", what)
		}
		fmt.Fprintf(w, " %s=%#v", name, values[name])
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("plan (-golden +got):\n%s", diff)
	}
}

// A golden plan whose kind is gone would never be compared again.
func TestEveryGoldenPlanHasItsKind(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, a := range all.Adapters() {
		for _, of := range types(a) {
			k, _ := a.Kind(of)
			known[filepath.Join("testdata", "plans", string(a.Name), string(k.Name)+".txt")] = true
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "plans", "*", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file] {
			t.Errorf("%s belongs to no kind", file)
		}
	}
}

// Proves O1: the time at which a provider made an event reaches no plan by any
// way, not as a version of any adapter's making either.
func TestNoAdaptersClockReachesAPlan(t *testing.T) {
	t.Parallel()
	for _, a := range all.Adapters() {
		for _, of := range types(a) {
			early := sampled(t, a, provider.SampleOptions{Type: of, EventID: "e", At: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
			late := sampled(t, a, provider.SampleOptions{Type: of, EventID: "e", At: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)})
			if early.Facts.CreatedAt.Equal(late.Facts.CreatedAt) && a.Created != nil && !early.Facts.CreatedAt.IsZero() {
				t.Errorf("%s %s: the sample does not show the time that was asked for", a.Name, of)
			}
			if diff := cmp.Diff(plan(t, early, newMemory()), plan(t, late, newMemory())); diff != "" {
				t.Errorf("%s %s (-early +late):\n%s", a.Name, of, diff)
			}
		}
	}
}

// Proves O1, O5, T3: of every provider's own catalogue, all events of one object,
// each several times and in any order, end in the same state and balance.
func TestEveryCatalogueConverges(t *testing.T) {
	t.Parallel()
	const runs, seed = 15, 20261130
	for _, a := range all.Adapters() {
		for object, events := range byObject(t, a) {
			t.Run(fmt.Sprintf("%s/%s", a.Name, object), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(seed, uint64(len(events))))
				for _, life := range oneEnd(events) {
					first := newMemory()
					first.processAll(t, business.Standard(), life...)
					for run := range runs {
						rnd.Shuffle(len(life), func(i, j int) { life[i], life[j] = life[j], life[i] })
						m := newMemory()
						m.processAll(t, business.Standard(), life...)
						m.processAll(t, business.Standard(), life...)
						if diff := cmp.Diff(first.state(), m.state()); diff != "" {
							t.Fatalf("seed %d, run %d (-one order +another):\n%s", seed, run, diff)
						}
					}
				}
			})
		}
	}
}

// byObject returns events of one object for each object type of an adapter, each
// type in every state and round that its body can show.
func byObject(t *testing.T, a *provider.Adapter) map[webhook.ObjectType][]webhook.Event {
	t.Helper()
	events := map[webhook.ObjectType][]webhook.Event{}
	for _, of := range types(a) {
		k, _ := a.Kind(of)
		states := []string{""}
		for _, rule := range k.Read.States {
			if k.State == "" && !slices.Contains(states, rule.State) {
				states = append(states, rule.State)
			}
		}
		for _, state := range states {
			versions := int64(1)
			if len(k.Read.Version)+len(k.Read.Round) > 0 {
				versions = 3
			}
			for version := range versions {
				o := provider.SampleOptions{
					Type: of, State: state, Version: version, ObjectID: "o1", ParentID: "p1",
					EventID: fmt.Sprintf("%s.%s.%d", of, state, version),
				}
				if _, err := a.Sample(o); err != nil && state != "" {
					continue // this type's body shows something that outranks the state
				}
				ev := sampled(t, a, o)
				again := ev
				again.InboxID += "_again"
				events[k.Object] = append(events[k.Object], ev, again)
			}
		}
	}
	return events
}

// oneEnd returns the events once for each end that they tell of, without the
// other ends: an object has one.
func oneEnd(events []webhook.Event) [][]webhook.Event {
	h, _ := business.Standard().Handler(events[0])
	l, ok := h.(business.Lifecycle)
	if !ok {
		return [][]webhook.Event{events}
	}
	ends := map[string]bool{"": true}
	for _, ev := range events {
		if l.Graph.Final(ev.Facts.State) {
			ends[ev.Facts.State] = true
		}
	}
	var lives [][]webhook.Event
	for end := range ends {
		var life []webhook.Event
		for _, ev := range events {
			if !l.Graph.Final(ev.Facts.State) || ev.Facts.State == end {
				life = append(life, ev)
			}
		}
		lives = append(lives, life)
	}
	return lives
}
