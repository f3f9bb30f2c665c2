package ordering_test

import (
	"math/rand/v2"
	"testing"

	"dakghar/internal/ordering"
	"dakghar/internal/webhook"
)

// Proves O4.
func TestWhereANumberStands(t *testing.T) {
	t.Parallel()
	full := map[int64]webhook.InboxID{}
	for n := int64(3); len(full) < webhook.ParkedMax; n++ {
		full[n] = "other"
	}
	tests := []struct {
		name string
		seq  webhook.Sequence
		n    int64
		want ordering.Place
	}{
		{"the first of all", webhook.Sequence{}, 1, ordering.Next},
		{"the one after the last", webhook.Sequence{Last: 4}, 5, ordering.Next},
		{"the last again", webhook.Sequence{Last: 4}, 4, ordering.Passed},
		{"one long ago", webhook.Sequence{Last: 4}, 1, ordering.Passed},
		{"one too early", webhook.Sequence{Last: 4}, 6, ordering.Early},
		{"the first comes second", webhook.Sequence{}, 2, ordering.Early},
		{"its place is taken", webhook.Sequence{Parked: map[int64]webhook.InboxID{2: "other"}}, 2, ordering.Crowded},
		{"its place is its own", webhook.Sequence{Parked: map[int64]webhook.InboxID{2: "me"}}, 2, ordering.Early},
		{"no place is left", webhook.Sequence{Last: 1, Parked: full}, 99, ordering.Crowded},
		{"its turn needs no place", webhook.Sequence{Last: 1, Parked: full}, 2, ordering.Next},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := ordering.PlaceOf(tt.seq, tt.n, "me"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Whatever the order of arrival, every number is applied once and in order, and
// no more than the bound wait. Proves O4.
func TestEveryArrivalEndsInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		arrivals := r.Perm(60)
		seq := webhook.Sequence{Parked: map[int64]webhook.InboxID{}}
		for len(arrivals) > 0 {
			n := int64(arrivals[0]) + 1
			arrivals = arrivals[1:]
			switch ordering.PlaceOf(seq, n, "e") {
			case ordering.Next:
				for seq.Last = n; seq.Parked[seq.Last+1] != ""; seq.Last++ {
					delete(seq.Parked, seq.Last+1)
				}
			case ordering.Early:
				seq.Parked[n] = "e"
			case ordering.Crowded:
				arrivals = append(arrivals, int(n)-1)
			case ordering.Passed:
				t.Fatalf("seed %d: %d was passed by", seed, n)
			}
			if len(seq.Parked) > webhook.ParkedMax {
				t.Fatalf("seed %d: %d wait", seed, len(seq.Parked))
			}
		}
		if seq.Last != 60 || len(seq.Parked) != 0 {
			t.Fatalf("seed %d ends at %d with %d waiting", seed, seq.Last, len(seq.Parked))
		}
	}
}
