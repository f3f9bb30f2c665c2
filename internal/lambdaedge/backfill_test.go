package lambdaedge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/sim"
)

// backfillLines returns the lines about back-fills, without the metrics' frames.
func backfillLines(t *testing.T, log *bytes.Buffer) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for text := range bytes.Lines(log.Bytes()) {
		var line map[string]any
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatal(err)
		}
		if line["endpoint_id"] == "demo" && line["function"] == "reconciler" {
			delete(line, "_aws")
			lines = append(lines, line)
		}
	}
	log.Reset()
	return lines
}

// Proves R1, M2: each endpoint's back-fill has a line that says what became of the
// items, and a provider that cannot be asked is no failure of the function.
func TestABackfillHasItsLine(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	api := fakeprovider.New()
	w := sim.New(t, sim.Options{API: api, Log: &log})
	e := w.AddEndpoint("stripe", "demo", "whsec_test_secret_for_the_edges")
	w.Provide(e, "rk_test_made_up_for_the_edges", nil, time.Hour)
	event := func(id string) {
		api.Event(fmt.Appendf(nil, `{"id":%q,"type":"payment_intent.succeeded","created":%d,"data":{"object":{"id":"pi_1","amount":1,"amount_received":1,"currency":"usd","status":"succeeded"}}}`, id, w.Now().Unix()))
	}
	event("evt_1")
	api.Next("stripe", fakeprovider.Fault{Status: http.StatusBadGateway})
	pass := func(what string, want ...map[string]any) {
		t.Helper()
		w.Reconcile()
		if w.ReconcileErr != nil {
			t.Errorf("%s: the pass failed: %v", what, w.ReconcileErr)
		}
		if diff := cmp.Diff(want, backfillLines(t, &log)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	line := func(more map[string]any) map[string]any {
		l := map[string]any{"function": "reconciler", "provider": "stripe", "endpoint_id": "demo"}
		for name, value := range more {
			l[name] = value
		}
		return l
	}
	pass("its provider is down", line(map[string]any{
		"decision": "backfill_stopped", "error": "api_unavailable", "code": "api_unavailable", "fault": "theirs", "backfill_failed": 1.0,
	}))
	w.Advance(time.Minute)
	pass("up again", line(map[string]any{"decision": "backfill_done", "backfill_accepted": 1.0}))
	w.Advance(time.Minute)
	pass("nothing is due")
	w.Advance(time.Hour)
	event("evt_2")
	pass("the next run", line(map[string]any{"decision": "backfill_done", "backfill_accepted": 1.0, "backfill_duplicate": 1.0}))
}

// What a provider lists ends no pass: the reconciler's work is done, and said.
func TestABackfillThatPanicsEndsNoPass(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := sim.New(t, sim.Options{API: fakeprovider.New(), Log: &log})
	w.Schedule().Backfill.Rows = nil // a call through it panics
	w.Reconcile()
	if w.ReconcileErr == nil {
		t.Error("nobody is told")
	}
	for _, want := range []string{`"heartbeat":1`, `"backfill_failed":1`, `backfill_panic: a runtime`} {
		if !bytes.Contains(log.Bytes(), []byte(want)) {
			t.Errorf("the log lacks %s:\n%s", want, &log)
		}
	}
}
