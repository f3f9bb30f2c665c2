package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dakghar/internal/devstack/fault"
	"dakghar/internal/webhook"
)

// canaryLines returns the lines of the canary function about the endpoint with a
// decision.
func (s *system) canaryLines(decision string) []map[string]any {
	s.t.Helper()
	var lines []map[string]any
	for text := range strings.Lines(s.log.String()) {
		text, ours := strings.CutPrefix(text, "[CanaryFunction] ")
		var line map[string]any
		if !ours || json.Unmarshal([]byte(text), &line) != nil {
			continue
		}
		if line["endpoint_id"] == "demo" && line["decision"] == decision {
			lines = append(lines, line)
		}
	}
	return lines
}

// ask has canaries sent to the endpoint.
func (s *system) ask() {
	s.t.Helper()
	e, _, err := s.store.Endpoint(s.t.Context(), "demo")
	if err != nil {
		s.t.Fatal(err)
	}
	e.Canary = true
	if written, err := s.store.UpdateEndpoint(s.t.Context(), e); err != nil || !written {
		s.t.Fatalf("written %v, %v", written, err)
	}
}

// TestACanaryArrivesOrIsMissed has real programs send canaries through the whole
// path. While nobody takes messages from the queue they are missing; once somebody
// does again, the next one arrives, and so do those that were missing. Proves M3.
func TestACanaryArrivesOrIsMissed(t *testing.T) {
	t.Parallel()
	s := startWith(t, nil, map[string]string{"Canary": "true", "CanarySeconds": "3"})
	s.ask()
	s.await("a canary arrives", 60*time.Second, func() bool { return len(s.canaryLines("canary_arrived")) > 0 })
	line := s.canaryLines("canary_arrived")[0]
	if took, _ := line["canary_ms"].(float64); took <= 0 || line["canary_missing"] != 0.0 || line["status"] != string(webhook.Processed) {
		t.Errorf("line %v", line)
	}

	if err := s.stack.Faults().Add(fault.Fault{Service: "sqs", Operation: "ReceiveMessage", Mode: fault.Stall}); err != nil {
		t.Fatal(err)
	}
	s.await("one is missing", 60*time.Second, func() bool { return len(s.canaryLines("canary_missing")) > 0 })
	missing := s.canaryLines("canary_missing")[0]
	if missing["canary_missing"] != 1.0 || missing["code"] != "not_processed" || missing["status"] != string(webhook.Received) {
		t.Errorf("line %v", missing)
	}

	before := len(s.canaryLines("canary_arrived"))
	s.stack.Faults().Clear("")
	s.await("the next one arrives", 90*time.Second, func() bool { return len(s.canaryLines("canary_arrived")) > before })
	id, _ := missing["inbox_id"].(string)
	s.await("and so does the one that was missing", 90*time.Second, func() bool {
		row, _, err := s.store.Inbox(t.Context(), webhook.InboxID(id))
		return err == nil && row.Status == webhook.Processed && row.Outcome == webhook.Ignored
	})
}

// TestACanaryIsMissingWhereTheProcessorDies has a processor that ends at every
// start. Proves M3.
func TestACanaryIsMissingWhereTheProcessorDies(t *testing.T) {
	t.Parallel()
	s := startWith(t, map[string]map[string]string{"ProcessorFunction": {"LEASE_SECONDS": "1"}}, map[string]string{"Canary": "true", "CanarySeconds": "3"})
	s.ask()
	s.await("a canary is missing", 60*time.Second, func() bool { return len(s.canaryLines("canary_missing")) > 0 })
	if line := s.canaryLines("canary_missing")[0]; line["canary_missing"] != 1.0 || line["code"] != "not_processed" {
		t.Errorf("line %v", line)
	}
	if n := len(s.canaryLines("canary_arrived")); n != 0 {
		t.Errorf("%d arrived", n)
	}
}
