package webhook_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

// Proves R1: when the schedule comes for an endpoint's back-fill.
func TestWhenABackfillIsDue(t *testing.T) {
	t.Parallel()
	done := webhook.Backfill{Endpoint: "demo", Covered: now}
	wanted := done
	wanted.WantedAt = now.Add(time.Minute)
	served := done
	served.WantedAt = now
	open := done.Begin(now, now, now.Add(-time.Hour))
	failed := open.Failed("api_throttled", 10*time.Minute, false, now)
	for _, tt := range []struct {
		name  string
		row   webhook.Backfill
		after time.Duration
		want  bool
	}{
		{"never begun", webhook.Backfill{}, 0, true},
		{"a moment before its time", done, time.Hour - time.Nanosecond, false},
		{"at its time", done, time.Hour, true},
		{"left behind", open, 0, true},
		{"its provider wants to be left alone", failed, 10*time.Minute - time.Nanosecond, false},
		{"its provider was left alone", failed, 10 * time.Minute, true},
		{"asked for, just after the last one", wanted, webhook.BackfillWantedPause - time.Nanosecond, false},
		{"asked for", wanted, webhook.BackfillWantedPause, true},
		{"asked for before the last one began", served, webhook.BackfillWantedPause, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.row.Due(time.Hour, now.Add(tt.after)); got != tt.want {
				t.Errorf("due: %v, want %v", got, tt.want)
			}
		})
	}
}

// Proves R1: no time is left out between two runs, and none is asked for that the
// provider does not list any more.
func TestFromWhenABackfillCompares(t *testing.T) {
	t.Parallel()
	e := webhook.Endpoint{ID: "demo", CreatedAt: now.Add(-100 * day)}
	for _, tt := range []struct {
		name  string
		row   webhook.Backfill
		reach time.Duration
		want  time.Time
	}{
		{"the first, as far as the endpoint goes back", webhook.Backfill{}, 0, now.Add(-100 * day)},
		{"the first, as far as the list goes back", webhook.Backfill{}, 3 * day, now.Add(-3 * day)},
		{"the next, with an overlap", webhook.Backfill{Covered: now.Add(-time.Hour)}, 3 * day, now.Add(-2 * time.Hour)},
		{"the next, after too long a pause", webhook.Backfill{Covered: now.Add(-10 * day)}, 3 * day, now.Add(-3 * day)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.row.From(e, tt.reach, now); !got.Equal(tt.want) {
				t.Errorf("from %s, want %s", got, tt.want)
			}
		})
	}
}

// Proves A6, R1: only a run that leaves no time out counts as the schedule's own,
// and a run begun anew forgets the one that was left behind.
func TestTheLifeOfABackfill(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	row := webhook.Backfill{Endpoint: "demo", Covered: at(-60)}
	whole := row.Begin(at(-120), at(-120), at(0)).Missed("evt_1", at(0)).Turned("0.b", at(1)).Failed("api_unavailable", 0, false, at(2)).Failed("api_refused", 0, true, at(3))
	want := webhook.Backfill{
		Endpoint: "demo", Covered: at(-60), StartedAt: at(0), Since: at(-120), Covers: true, Asked: []webhook.Asked{{ID: "evt_1", First: at(0), Last: at(0)}},
		NotBefore: at(5), LastError: "api_refused", Failures: 2, UpdatedAt: at(3),
	}
	if diff := cmp.Diff(want, whole); diff != "" {
		t.Errorf("after two failures (-want +got):\n%s", diff)
	}
	want = webhook.Backfill{
		Endpoint: "demo", Covered: at(0), CompletedAt: at(4), UpdatedAt: at(4), Asked: []webhook.Asked{{ID: "evt_1", First: at(0), Last: at(0)}},
	}
	if diff := cmp.Diff(want, whole.Turned("", at(4))); diff != "" {
		t.Errorf("at its end (-want +got):\n%s", diff)
	}
	later := whole.Begin(at(-10), at(-120), at(5)).Turned("", at(6))
	want = webhook.Backfill{Endpoint: "demo", Covered: at(-60), CompletedAt: at(6), UpdatedAt: at(6)}
	if diff := cmp.Diff(want, later); diff != "" {
		t.Errorf("a run of an operator that left time out (-want +got):\n%s", diff)
	}
}

// The pauses after failures grow to an hour, or to what the provider asks for.
func TestPausesAfterFailures(t *testing.T) {
	t.Parallel()
	row, pauses := webhook.Backfill{}, []time.Duration{}
	for range 9 {
		row = row.Failed("api_unavailable", 0, false, now)
		pauses = append(pauses, row.NotBefore.Sub(now)/time.Minute)
	}
	pauses = append(pauses, row.Failed("api_throttled", 2*time.Hour, false, now).NotBefore.Sub(now)/time.Minute)
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 120}, pauses); diff != "" {
		t.Errorf("minutes (-want +got):\n%s", diff)
	}
}

// What was asked for is asked for once in a run and for three days in all, and
// forgotten when a run does not miss it any more; the memory is bounded, and not
// shared with the rows before.
func TestWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	none := webhook.Backfill{}.Begin(now, now, now)
	asked := none.Missed("evt_1", now)
	wantAsking := func(what string, row webhook.Backfill, at time.Time, want webhook.Asking) {
		t.Helper()
		if got := row.Asking("evt_1", at); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	wantAsking("not yet", none, now, webhook.AskNow)
	wantAsking("in this run", asked, now.Add(time.Hour), webhook.AskedIt)
	next := asked.Turned("", now).Begin(now, now, now.Add(time.Hour))
	wantAsking("in the next run", next, now.Add(time.Hour), webhook.AskNow)
	next = next.Missed("evt_1", now.Add(time.Hour))
	want := []webhook.Asked{{ID: "evt_1", First: now, Last: now.Add(time.Hour)}}
	if diff := cmp.Diff(want, next.Asked); diff != "" {
		t.Errorf("asked twice (-want +got):\n%s", diff)
	}
	later := now.Add(3 * day)
	last := next.Turned("", later).Begin(now, now, later)
	wantAsking("three days later", last, later, webhook.AskNow)
	wantAsking("a moment after that", last, later.Add(1), webhook.GivenUp)
	if last = last.Missed("evt_1", later.Add(1)).Turned("", later.Add(2)); len(last.Asked) != 1 {
		t.Errorf("what is given up is forgotten while it is still missed: %v", last.Asked)
	}
	if last = last.Begin(now, now, later.Add(3)).Turned("", later.Add(4)); last.Asked != nil {
		t.Errorf("what is missed no more is remembered: %v", last.Asked)
	}
	row := asked
	for n := range webhook.BackfillAskedMax {
		row = row.Missed(webhook.EventID(fmt.Sprint("evt_x", n)), now)
	}
	if len(row.Asked) != webhook.BackfillAskedMax || row.Asking("evt_1", now) != webhook.AskNow || row.Asking("evt_x0", now) != webhook.AskedIt {
		t.Errorf("%d are remembered, from %s on", len(row.Asked), row.Asked[0].ID)
	}
	if len(asked.Asked) != 1 || len(none.Asked) != 0 {
		t.Errorf("an earlier row changed: %v, %v", asked.Asked, none.Asked)
	}
}
