package lambdaedge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/sim"
)

// The sample's first message fans an effect out and its second delivers it;
// garbage, a message of a version to come and one of the processor's are given
// back. Handed in again and again, it delivers once. Proves X8, W5.
func TestSampleDeliveries(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := sim.New(t, sim.Options{Log: &log})
	w.Advance(signedAt.Sub(w.Now()))
	w.AddEndpoint("stripe", "demo", "whsec_synthetic")
	w.Subscribe("demo", nil)
	w.Advance(signedAt.Sub(w.Now()))
	w.Invoke(json.RawMessage(sample(t, "http-post-json.json")))
	if _, err := w.Queue().Handle(context.Background(), decode[events.SQSEvent](t, "queue-batch.json")); err != nil {
		t.Fatal(err)
	}
	want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{
		{ItemIdentifier: "00000000-0000-4000-8000-000000000003"}, {ItemIdentifier: "00000000-0000-4000-8000-000000000004"},
		{ItemIdentifier: "00000000-0000-4000-8000-000000000005"},
	}}
	for range 3 {
		got, err := w.Dispatch().Handle(context.Background(), decode[events.SQSEvent](t, "queue-deliveries.json"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("response (-want +got):\n%s", diff)
		}
	}
	var ended []delivery.Status
	for _, d := range w.Deliveries() {
		ended = append(ended, d.Status)
	}
	if diff := cmp.Diff([]delivery.Status{delivery.Delivered}, ended); diff != "" || len(w.Partner.Got()) != 1 {
		t.Errorf("the partner was told %d times; deliveries (-want +got):\n%s", len(w.Partner.Got()), diff)
	}
	for _, metric := range []string{`"fanned_out":1`, `"deliveries_created":1`, `"delivered":1`, `"attempt_ms":`, `"delivery_age_ms":`, `"not_a_wake":1`, `"newer_wake":1`} {
		if !strings.Contains(log.String(), metric) {
			t.Errorf("no line has %s:\n%s", metric, log.String())
		}
	}
}
