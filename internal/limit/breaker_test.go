package limit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/backoff"
	"dakghar/internal/limit"
	"dakghar/internal/sim"
)

// Proves W4: outages in a row open the breaker, one probe goes through at a time,
// a fruitless one opens it for longer, and the first answer closes it.
func TestTheBreakerOpensProbesAndCloses(t *testing.T) {
	t.Parallel()
	b := &limit.Breaker{Trip: 2, Open: backoff.Schedule{First: 10 * time.Second, Max: time.Minute, Jitter: backoff.None}}
	now := sim.Start
	allowed := func() bool { ok, _ := b.Allow(now); return ok }
	var got []bool
	step := func(act func()) { act(); got = append(got, allowed()) }

	step(func() { b.Note(true, now, 0) })                        // one outage: closed
	step(func() { b.Note(false, now, 0); b.Note(true, now, 0) }) // not in a row: closed
	step(func() { b.Note(true, now, 0) })                        // two in a row: open
	step(func() { now = now.Add(9 * time.Second) })
	step(func() { now = now.Add(time.Second) }) // the probe
	step(func() {})                             // nobody beside the probe
	step(func() { b.Note(true, now, 0); now = now.Add(19 * time.Second) })
	step(func() { now = now.Add(time.Second) }) // the second probe, after twice as long
	step(func() { b.Note(false, now, 0) })      // it was answered

	if diff := cmp.Diff([]bool{true, true, false, false, true, false, false, true, true}, got); diff != "" {
		t.Errorf("allowed (-want +got):\n%s", diff)
	}
}

// A probe that dies without an answer does not keep the breaker open for ever.
func TestALostProbeIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	b := &limit.Breaker{Trip: 1, Open: backoff.Schedule{First: time.Second, Max: time.Minute, Jitter: backoff.None}}
	b.Note(true, sim.Start, 0)
	if ok, _ := b.Allow(sim.Start.Add(time.Second)); !ok {
		t.Fatal("the probe is not let through")
	}
	if ok, until := b.Allow(sim.Start.Add(2 * time.Second)); ok || !until.Equal(sim.Start.Add(61*time.Second)) {
		t.Errorf("allowed %v until %s, want the next probe a minute after the first", ok, until)
	}
	if ok, _ := b.Allow(sim.Start.Add(61 * time.Second)); !ok {
		t.Error("the second probe is not let through")
	}
}

// One failure that is worth as many as the breaker bears opens it, and for no
// longer than a first one.
func TestAHeavyFailureOpensTheBreakerAtOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	b := &limit.Breaker{Trip: 5, Open: backoff.Schedule{First: 10 * time.Second, Max: 5 * time.Minute}}
	b.NoteFailure(4, now, 1)
	if ok, _ := b.Allow(now); !ok {
		t.Error("four failures' worth opened it")
	}
	b.NoteFailure(6, now, 1)
	ok, until := b.Allow(now)
	if wait := until.Sub(now); ok || wait <= 0 || wait > 10*time.Second {
		t.Errorf("allowed %v, the next probe after %s", ok, wait)
	}
}
