package reconciler_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// figures reads some metrics of the last run; one that it did not write is missing.
func figures(t *testing.T, log *bytes.Buffer, names ...string) map[string]float64 {
	t.Helper()
	var line map[string]any
	for text := range bytes.Lines(log.Bytes()) {
		line = nil
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]float64{}
	for _, name := range names {
		if v, ok := line[name].(float64); ok {
			got[name] = v
		}
	}
	return got
}

// Proves S2, M2: a rotation that nobody finishes is seen in the registry, run by
// run, and is no more once the provider signs with the new key.
func TestARotationThatNobodyFinishedIsSeen(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	faults := &sim.Faults{}
	w := sim.New(t, sim.Options{Log: &log, Middleware: map[string]func(*middleware.Stack) error{"reconciler": faults.Middleware}})
	w.AddEndpoint("stripe", "other", "whsec_test_secret_of_another_endpoint")
	w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_reconciler")
	look := func(what string, want map[string]float64) {
		t.Helper()
		w.Reconcile()
		if diff := cmp.Diff(want, figures(t, &log, "rotations_open", "rotation_age_s")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	look("no rotation", map[string]float64{"rotations_open": 0, "rotation_age_s": 0})

	update := func(how func(webhook.Endpoint) (webhook.Endpoint, bool)) {
		t.Helper()
		e, _, err := w.Outside.Endpoint(t.Context(), "demo")
		if err != nil {
			t.Fatal(err)
		}
		changed, _ := how(e)
		if ok, err := w.Outside.UpdateEndpoint(t.Context(), changed); !ok || err != nil {
			t.Fatalf("update: %v, %v", ok, err)
		}
	}
	update(func(e webhook.Endpoint) (webhook.Endpoint, bool) {
		return e.Add(webhook.TrustedKey{Version: "k1-new", AddedAt: w.Now()})
	})
	w.Advance(15 * 24 * time.Hour)
	look("after fifteen days", map[string]float64{"rotations_open": 1, "rotation_age_s": 15 * 86400})

	faults.Add(sim.Fault{Operation: "GetItem", Times: 1, Err: sim.ErrDenied})
	look("an endpoint cannot be read: no figure, not a good one", map[string]float64{})

	update(func(e webhook.Endpoint) (webhook.Endpoint, bool) { return e.WithFirstMatch("k1-new", w.Now()) })
	look("once the provider signs with it", map[string]float64{"rotations_open": 0, "rotation_age_s": 0})
}

// Proves M2: for how long the oldest delivery has been due is read from the table.
func TestTheOldestDueDeliveryIsSeen(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	faults := &sim.Faults{}
	w, _ := world(t, sim.Options{Log: &log, Middleware: map[string]func(*middleware.Stack) error{"reconciler": faults.Middleware}})
	w.Subscribe("sub_demo", nil)
	none := map[string]float64{}
	w.Reconcile()
	if diff := cmp.Diff(none, figures(t, &log, "oldest_due_age_s")); diff != "" {
		t.Errorf("with none (-want +got):\n%s", diff)
	}
	for len(w.Deliveries()) == 0 { // until the fan-out; what it tells the queue is not worked on
		w.PumpStream()
		w.PumpQueue()
		w.PumpDeliveries()
	}
	w.Advance(20 * time.Minute)
	w.Reconcile()
	if diff := cmp.Diff(map[string]float64{"oldest_due_age_s": 1200}, figures(t, &log, "oldest_due_age_s")); diff != "" {
		t.Errorf("with one whose wake-up nobody took for 20 minutes (-want +got):\n%s", diff)
	}
	w.Advance(time.Minute)
	w.Reconcile()
	if diff := cmp.Diff(none, figures(t, &log, "oldest_due_age_s")); diff != "" {
		t.Errorf("in a run that does not meet it (-want +got):\n%s", diff)
	}
	w.Advance(time.Hour)
	faults.Add(sim.Fault{Operation: "GetItem", Table: "DeliveryTable", Times: 1, Err: sim.ErrDenied})
	w.Reconcile()
	if diff := cmp.Diff(none, figures(t, &log, "oldest_due_age_s")); diff != "" {
		t.Errorf("in a run that cannot read it (-want +got):\n%s", diff)
	}
}
