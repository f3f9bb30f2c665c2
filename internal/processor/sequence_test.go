package processor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

const standardSecret = "whsec_c2ltdWxhdGlvbiBzZWNyZXQgb2YgMzIgYnl0ZXMhISE="

// An event whose gap never closed is counted for an alarm, whichever program
// ends it: by its own name in the processor's lines, among what was given up in
// the reconciler's. Proves M1, O4.
func TestAnExpiredGapIsCounted(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, e := sequenced(t, sim.Options{Log: &log})
	send(t, w, numbered(w, e, 1))
	send(t, w, numbered(w, e, 3))
	send(t, w, numbered(w, e, 4))
	w.Settle()
	w.Rest()
	counted := 0
	for line := range strings.Lines(log.String()) {
		var said struct {
			Function   string `json:"function"`
			GapExpired int    `json:"gap_expired"`
			Failed     int    `json:"failed"`
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			t.Fatal(err)
		}
		if said.Function == "reconciler" {
			counted += said.Failed
		} else {
			counted += said.GapExpired
		}
	}
	if counted != 2 {
		t.Errorf("%d expired gaps are counted, want 2:\n%s", counted, log.String())
	}
}

// sequenced returns a world whose objects' events are numbered.
func sequenced(t *testing.T, o sim.Options) (*sim.World, *sim.Endpoint) {
	t.Helper()
	w := sim.New(t, o)
	e := w.AddEndpoint("standard-webhooks", "demo", standardSecret)
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.Policies = map[webhook.Kind]webhook.Policy{"object.changed": webhook.BySequence}
		return e
	})
	return w, e
}

// numbered is the event with a number of the one object.
func numbered(w *sim.World, e *sim.Endpoint, n int64) *sim.Delivery {
	return w.Event(e, provider.SampleOptions{Type: "object.updated", EventID: fmt.Sprint("n", n), ObjectID: "obj_1", Version: n})
}

func numberedID(n int64) webhook.InboxID {
	return webhook.DeriveInboxID("demo", "standard-webhooks", webhook.EventID(fmt.Sprint("n", n)))
}

func send(t *testing.T, w *sim.World, d *sim.Delivery) {
	t.Helper()
	if status := w.Send(d); status != 200 {
		t.Fatalf("status %d", status)
	}
}

// sequenceOf reads the one object's sequence.
func sequenceOf(t *testing.T, w *sim.World) webhook.Sequence {
	t.Helper()
	seq, err := w.Outside.Sequence(t.Context(), webhook.DeriveSequenceID("acme", "demo", webhook.Object, "obj_1"))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// Events that come in any order are applied in the order of their numbers, each
// once. Proves O4, T7.
func TestASequenceIsAppliedInItsOrderWhateverTheArrival(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int64{{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 4, 1, 3}, {3, 1, 4, 2}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			var seen []int64
			w, e := sequenced(t, sim.Options{Handlers: business.NewRouter(nil).WithPolicy("", webhook.BySequence, watching(&seen))})
			for _, n := range order {
				send(t, w, numbered(w, e, n))
				w.Settle()
			}
			w.Rest()
			check(t, w)
			if diff := cmp.Diff([]int64{1, 2, 3, 4}, seen); diff != "" {
				t.Errorf("planned (-want +got):\n%s", diff)
			}
			want := webhook.Sequence{ID: sequenceOf(t, w).ID, Last: 4, Parked: map[int64]webhook.InboxID{}}
			if diff := cmp.Diff(want, sequenceOf(t, w)); diff != "" {
				t.Errorf("sequence (-want +got):\n%s", diff)
			}
			if got := w.Projected("obj_1", business.AttrVersion); got != int64(4) {
				t.Errorf("version %v, want 4", got)
			}
		})
	}
}

// watching notes the numbers in the order in which they are planned.
func watching(seen *[]int64) business.Handler {
	return watched{seen}
}

type watched struct{ seen *[]int64 }

func (h watched) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	*h.seen = append(*h.seen, ev.Facts.Version)
	return business.Sequenced{}.Plan(ctx, ev, r)
}

// An event before its turn waits, spends no attempt and is seen to wait. Proves
// O4, W5.
func TestAnEventBeforeItsTurnIsParked(t *testing.T) {
	t.Parallel()
	w, e := sequenced(t, sim.Options{})
	send(t, w, numbered(w, e, 3))
	w.Settle()
	row := w.Row(numberedID(3))
	if diff := cmp.Diff(end{webhook.Parked, "", 0, ""}, endOf(row)); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(w.Now().Add(sim.GapWindow), row.NextAttemptAt); diff != "" {
		t.Errorf("deadline (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int64]webhook.InboxID{3: row.ID}, sequenceOf(t, w).Parked); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
}

// A gap that never closes ends its events as FAILED at the deadline, and gives
// their places back. An operator who lets the missing one be sent again can then
// replay them. Proves O4, A6, R3, W5.
func TestAGapThatNeverClosesFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	w, e := sequenced(t, sim.Options{})
	send(t, w, numbered(w, e, 1))
	send(t, w, numbered(w, e, 3))
	send(t, w, numbered(w, e, 4))
	other := w.Event(e, provider.SampleOptions{Type: "object.updated", EventID: "other", ObjectID: "obj_2", Version: 1})
	send(t, w, other)
	w.Settle()
	w.Rest()
	check(t, w)
	for n, want := range map[int64]end{
		1: {webhook.Processed, webhook.Applied, 1, ""},
		3: {webhook.Failed, "", 0, "gap_expired"},
		4: {webhook.Failed, "", 0, "gap_expired"},
	} {
		if diff := cmp.Diff(want, endOf(w.Row(numberedID(n)))); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", n, diff)
		}
	}
	if got := w.Projected("obj_2", business.AttrVersion); got != int64(1) {
		t.Errorf("the neighbour stands at %v, want 1", got)
	}
	if parked := sequenceOf(t, w).Parked; len(parked) != 0 {
		t.Errorf("slots are left: %v", parked)
	}
	send(t, w, numbered(w, e, 2))
	w.Replay(numberedID(4))
	w.Replay(numberedID(3))
	w.Rest()
	check(t, w)
	if seq := sequenceOf(t, w); seq.Last != 4 {
		t.Errorf("the sequence stands at %d, want 4", seq.Last)
	}
}

// A number that was passed is stale, a second event with a number that waits is
// put back until the first one is through. Proves O2, O4.
func TestASecondEventWithANumberIsNeverAppliedBesideTheFirst(t *testing.T) {
	t.Parallel()
	w, e := sequenced(t, sim.Options{})
	send(t, w, numbered(w, e, 2))
	w.Settle()
	twin := w.Event(e, provider.SampleOptions{Type: "object.updated", EventID: "twin", ObjectID: "obj_1", Version: 2})
	send(t, w, twin)
	w.Settle()
	twinID := webhook.DeriveInboxID("demo", "standard-webhooks", "twin")
	if diff := cmp.Diff(end{webhook.Retry, "", 0, "gap_crowded"}, endOf(w.Row(twinID))); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
	send(t, w, numbered(w, e, 1))
	w.Rest()
	check(t, w)
	if got := w.Row(twinID); got.Status != webhook.Processed || got.Outcome != webhook.Stale {
		t.Errorf("the twin ended %s %s, want PROCESSED stale", got.Status, got.Outcome)
	}
}

// The gap buffer is bounded: what finds no place is put back and tried again, and
// all is applied once the gap closes. Proves O4, W5.
func TestAFullBufferPutsBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	w, e := sequenced(t, sim.Options{})
	const last = webhook.ParkedMax + 4
	for n := int64(2); n <= last; n++ {
		send(t, w, numbered(w, e, n))
		w.Settle()
	}
	if parked := len(sequenceOf(t, w).Parked); parked != webhook.ParkedMax {
		t.Errorf("%d events are parked, want %d", parked, webhook.ParkedMax)
	}
	send(t, w, numbered(w, e, 1))
	w.Rest()
	check(t, w)
	if seq := sequenceOf(t, w); seq.Last != last {
		t.Errorf("the sequence stands at %d, want %d", seq.Last, last)
	}
}

// Holding a parked event gives its place back. Proves R3, O4.
func TestAHeldEventLeavesItsPlace(t *testing.T) {
	t.Parallel()
	w, e := sequenced(t, sim.Options{})
	send(t, w, numbered(w, e, 2))
	w.Settle()
	w.Hold(numberedID(2))
	if parked := sequenceOf(t, w).Parked; len(parked) != 0 {
		t.Errorf("slots are left: %v", parked)
	}
	send(t, w, numbered(w, e, 1))
	w.Settle()
	w.Release(numberedID(2))
	w.Rest()
	check(t, w)
	if seq := sequenceOf(t, w); seq.Last != 2 {
		t.Errorf("the sequence stands at %d, want 2", seq.Last)
	}
}

// A number that is no number of a sequence is the event's own failure. Proves W4.
func TestAnEventWithoutANumberFails(t *testing.T) {
	t.Parallel()
	w, e := sequenced(t, sim.Options{})
	d := numbered(w, e, 1)
	d.Sample.Body = []byte(`{"type":"object.updated","timestamp":"2026-03-01T12:00:00Z","data":{"id":"obj_1","version":0}}`)
	send(t, w, d)
	w.Rest()
	check(t, w)
	if diff := cmp.Diff(end{webhook.Failed, "", 1, "no_sequence_number"}, endOf(w.Row(numberedID(1)))); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

// Slots that a restore has brought back, and rows that it took away, keep nobody
// from going on. Proves A6, R1.
func TestASlotWithoutItsRowIsPassedOver(t *testing.T) {
	t.Parallel()
	w, e := sequenced(t, sim.Options{})
	send(t, w, numbered(w, e, 2))
	w.Settle()
	w.Forget(numberedID(2))
	send(t, w, numbered(w, e, 1))
	w.Settle()
	if seq := sequenceOf(t, w); seq.Last != 1 || len(seq.Parked) != 0 {
		t.Errorf("the sequence is %+v, want 1 and no slot", seq)
	}
	again := w.Event(e, provider.SampleOptions{Type: "object.updated", EventID: "again", ObjectID: "obj_1", Version: 2})
	send(t, w, again)
	w.Settle()
	if seq := sequenceOf(t, w); seq.Last != 2 {
		t.Errorf("the sequence stands at %d, want 2", seq.Last)
	}
}
