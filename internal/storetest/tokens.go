package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

// tokens walks one row of a limit through its life: 10 requests a second, 30 at most.
func (s suite) tokens(t *testing.T) {
	settlement := func(spent int, now time.Time, last webhook.Settled) webhook.Settlement {
		return webhook.Settlement{Rate: 10, Most: 30, Spent: spent, Seen: spent + 1, Now: now, Last: last.Tokens, Alone: last.Alone}
	}
	row := func(level int64, at time.Time, seen int64) webhook.Tokens {
		return webhook.Tokens{Level: level * 1000, At: at, Seen: seen}
	}
	var one, two webhook.Settled
	for _, step := range []struct {
		name  string
		who   *webhook.Settled
		spent int
		now   time.Time
		want  webhook.Settled
	}{
		{"the first to ask makes it, full", &one, 4, now, webhook.Settled{Tokens: row(26, now, 5), Alone: true, Writes: 1}},
		{"alone, the same goes on with one write", &one, 6, now.Add(300 * time.Millisecond), webhook.Settled{Tokens: row(23, now.Add(300*time.Millisecond), 12), Alone: true, Writes: 1}},
		{"another is charged, and leaves the time alone while it is fresh", &two, 3, now.Add(time.Second), webhook.Settled{Tokens: row(20, now.Add(300*time.Millisecond), 16), Writes: 2}},
		{"it is charged below zero", &two, 45, now.Add(1200 * time.Millisecond), webhook.Settled{Tokens: row(-25, now.Add(300*time.Millisecond), 62), Writes: 1}},
		{"whoever finds it stale moves its time", &two, 0, now.Add(1300 * time.Millisecond), webhook.Settled{Tokens: row(-15, now.Add(1300*time.Millisecond), 63), Alone: true, Writes: 2}},
		{"the first was overtaken, is charged all the same, and its clock moves nothing back", &one, 5, now.Add(-30 * time.Second), webhook.Settled{Tokens: row(-20, now.Add(1300*time.Millisecond), 69), Writes: 2}},
		{"it fills up to what it may hold, but for what rivals took since this one looked", &two, 1, now.Add(time.Hour), webhook.Settled{Tokens: row(24, now.Add(time.Hour), 71), Alone: true, Writes: 1}},
	} {
		got, err := s.Settle(t.Context(), "limited", settlement(step.spent, step.now, *step.who))
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.name, diff)
		}
		*step.who = got
	}
}

func (s suite) tokensBesideRivals(t *testing.T) {
	const rivals, rounds = 20, 5
	var wg sync.WaitGroup
	for range rivals {
		wg.Go(func() {
			var last webhook.Settled
			for range rounds {
				got, err := s.Settle(t.Context(), "rivals", webhook.Settlement{
					Rate: 10, Most: 30, Spent: 2, Seen: 3, Now: now, Last: last.Tokens, Alone: last.Alone,
				})
				if err != nil {
					t.Error(err)
					return
				}
				last = got
			}
		})
	}
	wg.Wait()
	got, err := s.Settle(t.Context(), "rivals", webhook.Settlement{Rate: 10, Most: 30, Now: now, Last: webhook.Tokens{At: now}})
	if err != nil {
		t.Fatal(err)
	}
	want := webhook.Tokens{Level: (30 - 2*rivals*rounds) * 1000, At: now, Seen: 3 * rivals * rounds}
	if diff := cmp.Diff(want, got.Tokens); diff != "" {
		t.Errorf("the row after all (-want +got):\n%s", diff)
	}
}
