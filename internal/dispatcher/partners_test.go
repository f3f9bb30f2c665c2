package dispatcher_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/sim"
)

// Many deliveries that wait for one slow partner ask for their turn less and less
// often, and all have it.
func TestAQueueBeforeASlowPartnerAsksSeldom(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, e := world(t, sim.Options{Log: &log}, func(s *delivery.Subscription) { s.Rate, s.Burst = 1, 1 })
	const many = 60
	for n := range many {
		pay(t, w, e, n)
	}
	delivered := func() (n int) {
		for _, d := range w.Deliveries() {
			if d.Status == delivery.Delivered {
				n++
			}
		}
		return n
	}
	seconds := 0
	for ; delivered() < many && seconds < 600; seconds++ {
		w.Advance(time.Second)
		w.Settle()
	}
	waits := strings.Count(log.String(), `"decision":"waits"`)
	if delivered() < many || waits > 18*many || seconds > 150 {
		t.Errorf("%d of %d delivered in %d s, turned away %d times", delivered(), many, seconds, waits)
	}
	check(t, w)
}

// A partner that is silent for a whole attempt holds a worker for as long: one
// such attempt opens its breaker, five that fail at once do. What waits spends no
// attempt, and all is delivered when the partner is back.
func TestAPartnerThatHoldsAWorkerIsGivenUpSooner(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		held time.Duration
		want []int // attempts of the first deliveries, each sent as the one before has failed
	}{
		"at once":    {0, []int{1, 1, 1, 1, 1, 0}},
		"after 9 s":  {9 * time.Second, []int{1, 1, 1, 0, 0, 0}},
		"after 25 s": {25 * time.Second, []int{1, 0, 0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, e := world(t, sim.Options{}, func(s *delivery.Subscription) { s.ProfileName = "patient" }) // no retry within the test's half minute
			w.Partner.Always(sim.PartnerAnswer{Status: 504, Before: func() { w.Advance(tt.held) }})
			for n := range tt.want {
				pay(t, w, e, n)
			}
			got := map[int]int{}
			for _, d := range w.Deliveries() {
				got[d.AttemptCount]++
			}
			want := map[int]int{}
			for _, n := range tt.want {
				want[n]++
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("deliveries by attempts (-want +got):\n%s", diff)
			}
			w.Partner.Always(sim.PartnerAnswer{})
			w.Rest()
			check(t, w)
			for _, d := range w.Deliveries() {
				if d.Status != delivery.Delivered {
					t.Errorf("%s ended %s", d.ID, d.Status)
				}
			}
		})
	}
}
