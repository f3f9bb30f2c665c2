package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/telemetry"
)

func clock() time.Time { return time.UnixMilli(1_772_366_400_000) }

// Proves M1, M2, M4: one line is both the log entry and the metrics.
func TestALineIsALogEntryAndItsMetrics(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.New(&out, "ingress", clock)
	line := &telemetry.Line{Provider: "stripe"}
	log.Write(line.Str("inbox_id", "in_1").Str("empty", "").Err(errors.New("a \"quoted\"\nline")).
		Count("accepted", 1).Millis("ack_ms", 1500*time.Microsecond).Seconds("age_s", 2.5))

	if strings.Count(out.String(), "\n") != 1 || !strings.HasSuffix(out.String(), "\n") {
		t.Fatalf("not one line: %q", out.String())
	}
	var got, want map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	const expected = `{
		"_aws": {"Timestamp": 1772366400000, "CloudWatchMetrics": [{
			"Namespace": "Dakghar", "Dimensions": [["function"], ["function", "provider"]],
			"Metrics": [{"Name": "accepted", "Unit": "Count"}, {"Name": "ack_ms", "Unit": "Milliseconds"}, {"Name": "age_s", "Unit": "Seconds"}]
		}]},
		"function": "ingress", "provider": "stripe", "inbox_id": "in_1", "error": "a \"quoted\"\nline",
		"accepted": 1, "ack_ms": 1.5, "age_s": 2.5
	}`
	if err := json.Unmarshal([]byte(expected), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

// A line without metrics is plain JSON, an error is cut, and bytes that are not
// text do not break the line.
func TestLinesAreAlwaysJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.New(&out, "relay", clock)
	log.Write((&telemetry.Line{}).Str("odd", "a\xffb\x00").Err(errors.New(strings.Repeat("e", 1000))))
	var got map[string]string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %q", err, out.String())
	}
	if got["odd"] != "a\ufffdb\x00" || len(got["error"]) != 300 || got["function"] != "relay" {
		t.Errorf("line %v", got)
	}
}
