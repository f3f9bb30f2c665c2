package operator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

var object = operator.Sequenced{Endpoint: "demo", Type: webhook.Object, ID: "obj_1"}

// gapAt returns a world with an object's sequence at 2, the numbers given waiting.
func gapAt(numbers ...int64) (*operatortest.World, webhook.SequenceID) {
	w := operatortest.New()
	w.Endpoints["demo"] = webhook.Endpoint{ID: "demo", Provider: "standard-webhooks", Tenant: "acme", Scope: "demo"}
	id := webhook.DeriveSequenceID("acme", "demo", webhook.Object, "obj_1")
	seq := webhook.Sequence{ID: id, Last: 2, Parked: map[int64]webhook.InboxID{}}
	for _, n := range numbers {
		row := parkedAt(w, id, n)
		w.Rows[row.ID], seq.Parked[n] = row, row.ID
	}
	w.Sequences[id] = seq
	return w, id
}

func parkedAt(w *operatortest.World, id webhook.SequenceID, n int64) webhook.Inbox {
	return webhook.Inbox{
		ID: webhook.InboxID(fmt.Sprint("in_", n)), Provider: "standard-webhooks", Endpoint: "demo", Tenant: "acme", EventType: "object.updated", Status: webhook.Parked,
		Fence: 4, Slot: webhook.Slot{Sequence: id, Number: n}, ReceivedAt: w.Clock.Add(-time.Hour), NextAttemptAt: w.Clock.Add(time.Hour),
		BodyExpiresAt: w.Clock.Add(29 * 24 * time.Hour),
	}
}

// Proves R3, O4: the missing numbers count as passed, the event behind them goes
// on with its promise, the others wait on, and all of it is recorded.
func TestSkipLetsTheEventBehindAGapGoOn(t *testing.T) {
	t.Parallel()
	w, id := gapAt(5, 6, 9)
	before := w.Rows["in_6"]
	got, err := w.Operator().Skip(t.Context(), object, 4, "3 and 4 were tests")
	if err != nil {
		t.Fatal(err)
	}
	want := webhook.Sequence{ID: id, Last: 4, Parked: map[int64]webhook.InboxID{6: "in_6", 9: "in_9"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sequence (-want +got):\n%s", diff)
	}
	let := parkedAt(w, id, 5)
	let.Status, let.Fence, let.NextAttemptAt, let.Slot = webhook.Received, 5, w.Clock, webhook.Slot{}
	promise := webhook.NewOutbox(let, w.Clock, w.Clock)
	if diff := cmp.Diff(map[webhook.InboxID]webhook.Inbox{"in_5": let, "in_6": before, "in_9": parkedAt(w, id, 9)}, w.Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[webhook.OutboxID]webhook.Outbox{promise.ID: promise}, w.Promises); diff != "" {
		t.Errorf("promises (-want +got):\n%s", diff)
	}
	acts := []webhook.Act{{ID: "act-1", At: w.Clock, Name: "sequence skip", Subject: "object demo/object/obj_1 to 4", Who: "ada", Why: "3 and 4 were tests"}}
	if diff := cmp.Diff(acts, w.Acts); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

// Proves R3, O4: a sequence may begin in the middle, where nobody waits, and past
// an event that has left without its slot.
func TestSkipWhereNobodyCanGoOn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*operatortest.World, webhook.SequenceID)
		to     int64
		want   map[int64]webhook.InboxID
	}{
		{"an object that we never had", func(w *operatortest.World, id webhook.SequenceID) { delete(w.Sequences, id); clear(w.Rows) }, 40, map[int64]webhook.InboxID{}},
		{"a gap with nobody right behind it", func(*operatortest.World, webhook.SequenceID) {}, 3, map[int64]webhook.InboxID{5: "in_5"}},
		{"an event that has ended", func(w *operatortest.World, _ webhook.SequenceID) {
			row := w.Rows["in_5"]
			row.Status, row.Slot = webhook.Failed, webhook.Slot{}
			w.Rows["in_5"] = row
		}, 4, map[int64]webhook.InboxID{}},
		{"an event whose row is gone", func(w *operatortest.World, _ webhook.SequenceID) { clear(w.Rows) }, 4, map[int64]webhook.InboxID{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, id := gapAt(5)
			tt.change(w, id)
			got, err := w.Operator().Skip(t.Context(), object, tt.to, "why")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(webhook.Sequence{ID: id, Last: tt.to, Parked: tt.want}, got); diff != "" {
				t.Errorf("sequence (-want +got):\n%s", diff)
			}
			if len(w.Promises) != 0 || len(w.Acts) != 1 {
				t.Errorf("promises %v, acts %v; want none and one", w.Promises, w.Acts)
			}
		})
	}
}

// Proves R3, O4: what would lose an event, or happen beside others, is not done.
func TestSkipRefuses(t *testing.T) {
	t.Parallel()
	applies := func(w *operatortest.World, id webhook.SequenceID) {
		seq := w.Sequences[id]
		seq.Last++
		w.Sequences[id] = seq
	}
	tests := []struct {
		name, code string
		of         operator.Sequenced
		to         int64
		prepare    func(*operatortest.World, webhook.SequenceID)
	}{
		{name: "a number that was passed", code: "passed", of: object, to: 2},
		{name: "a number before the first", code: "passed", of: object, to: -1},
		{name: "an event that waits below", code: "waiting", of: object, to: 7},
		{name: "an event that waits at the number", code: "waiting", of: object, to: 5},
		{name: "an endpoint that is not there", code: "endpoint_unknown", of: operator.Sequenced{Endpoint: "nobody", Type: webhook.Object, ID: "obj_1"}, to: 4},
		{name: "a type that is none", code: "usage", of: operator.Sequenced{Endpoint: "demo", Type: "objekt", ID: "obj_1"}, to: 4},
		{name: "no object", code: "usage", of: operator.Sequenced{Endpoint: "demo", Type: webhook.Object}, to: 4},
		{name: "an event that passes meanwhile, every time", code: "moved", of: object, to: 4, prepare: func(w *operatortest.World, id webhook.SequenceID) {
			var rival func(*operatortest.World)
			last := int64(2)
			rival = func(w *operatortest.World) {
				seq := w.Sequences[id]
				last--
				seq.Last = last // whichever way it moves, it is not as it was read
				w.Sequences[id], w.Rival = seq, rival
			}
			w.Rival = rival
		}},
		{name: "the gap that closes meanwhile", code: "passed", of: object, to: 3, prepare: func(w *operatortest.World, id webhook.SequenceID) {
			w.Rival = func(w *operatortest.World) { applies(w, id) }
		}},
		{name: "an event that parks below meanwhile", code: "waiting", of: object, to: 4, prepare: func(w *operatortest.World, id webhook.SequenceID) {
			w.Rival = func(w *operatortest.World) {
				seq := w.Sequences[id]
				seq.Parked[4] = "in_4"
				w.Sequences[id] = seq
			}
		}},
		{name: "a table that does not answer", code: "unavailable", of: object, to: 4, prepare: func(w *operatortest.World, _ webhook.SequenceID) {
			w.Fail = operatortest.Down("Skip")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, id := gapAt(5)
			if tt.prepare != nil {
				tt.prepare(w, id)
			}
			_, err := w.Operator().Skip(t.Context(), tt.of, tt.to, "why")
			wantRefusal(t, err, tt.code)
			if len(w.Acts) != 0 || w.Rows["in_5"].Status != webhook.Parked {
				t.Errorf("something was done: %v, %v", w.Acts, w.Rows["in_5"])
			}
		})
	}
}

// Proves R3, O4: a skip that a neighbour's step comes before is decided anew.
func TestSkipBesideAStep(t *testing.T) {
	t.Parallel()
	w, id := gapAt(5)
	w.Rival = func(w *operatortest.World) {
		seq := w.Sequences[id]
		seq.Last = 3
		w.Sequences[id] = seq
	}
	got, err := w.Operator().Skip(t.Context(), object, 4, "why")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(webhook.Sequence{ID: id, Last: 4, Parked: map[int64]webhook.InboxID{}}, got); diff != "" {
		t.Errorf("sequence (-want +got):\n%s", diff)
	}
	if len(w.Acts) != 1 || w.Rows["in_5"].Status != webhook.Received {
		t.Errorf("acts %v, row %v; want one, and a row that goes on", w.Acts, w.Rows["in_5"])
	}
}

// Proves R3, O4: a skip whose answer was lost has happened once; the same command
// again says where the sequence stands.
func TestSkipWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	w, id := gapAt(5)
	w.Lose = operatortest.Down("Skip")
	for _, want := range []string{"unavailable", "passed"} {
		_, err := w.Operator().Skip(t.Context(), object, 4, "why")
		wantRefusal(t, err, want)
	}
	if seq := w.Sequences[id]; seq.Last != 4 || len(w.Acts) != 1 || w.Rows["in_5"].Fence != 5 {
		t.Errorf("sequence %v, acts %v, row %v; want one skip", seq, w.Acts, w.Rows["in_5"])
	}
}
