package dispatcher_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/sim"
)

// A drain lets out what was made before, retries included, and holds what is made
// later. Proves X7 and the protection of partners.
func TestADrainLetsOutWhatWasMadeBefore(t *testing.T) {
	t.Parallel()
	w, e := world(t, sim.Options{}, nil)
	w.Partner.Answer(sim.PartnerAnswer{Status: 500})
	pay(t, w, e, 1)
	w.ChangeSubscription("sub_1", func(s *delivery.Subscription) { s.State, s.StateAt = delivery.Draining, w.Now() })
	w.Advance(time.Second)
	pay(t, w, e, 2)
	w.Rest() // to the end of the second one's time
	check(t, w)
	var before, after []end
	for _, d := range w.Deliveries() {
		if s, _, _ := w.Outside.Subscription(t.Context(), "sub_1"); d.CreatedAt.After(s.StateAt) {
			after = append(after, endOf(d))
			continue
		}
		before = append(before, endOf(d))
	}
	if diff := cmp.Diff([]end{{delivery.Delivered, 2, 204, "status_500"}}, before); diff != "" {
		t.Errorf("made before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]end{{delivery.Expired, 0, 0, "deadline_passed"}}, after); diff != "" {
		t.Errorf("made after (-want +got):\n%s", diff)
	}
	if n := len(w.Partner.Got()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}
