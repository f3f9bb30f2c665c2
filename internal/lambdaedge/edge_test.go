package lambdaedge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// signedAt is when the sample requests were signed; see events/README.md.
var signedAt = time.Unix(1_796_040_000, 0).UTC()

func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "events", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// world is where the samples arrive: their endpoints, at their time.
func world(t testing.TB) *sim.World {
	t.Helper()
	w := sim.New(t, sim.Options{})
	w.Advance(signedAt.Sub(w.Now()))
	w.AddEndpoint("stripe", "demo", "whsec_synthetic")
	w.AddEndpoint("slack", "team", "synthetic_slack_signing_secret")
	return w
}

// The samples that `sam local invoke` uses are answered as events/README.md
// says. Proves V1–V8.
func TestSampleRequests(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"http-post-json.json": 200, "http-post-base64.json": 200, "http-headers-as-sam-local.json": 200,
		"http-content-type-missing.json": 415, "http-content-type-twice.json": 415, "http-signature-repeated.json": 401,
		"http-get.json": 405, "http-endpoint-unknown.json": 404, "http-oversize-declared.json": 413,
		"http-body-altered.json": 401, "http-base64-broken.json": 400, "http-slack-url-verification.json": 200,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world(t)
			if status, body := w.Invoke(json.RawMessage(sample(t, name))); status != want {
				t.Errorf("status %d %s, want %d", status, body, want)
			}
		})
	}
}

// Proves M1: a wrong signature and a stale one are answered alike and counted apart.
func TestRefusedSignaturesAreCountedByCause(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := sim.New(t, sim.Options{Log: &log})
	w.Advance(signedAt.Sub(w.Now()))
	w.AddEndpoint("stripe", "demo", "whsec_synthetic")
	for _, step := range []struct{ name, metric string }{
		{"http-body-altered.json", `"refused_signature_mismatch":1`}, {"http-post-json.json", `"refused_signature_stale":1`},
	} {
		if step.name == "http-post-json.json" {
			w.Advance(time.Hour)
		}
		if status, _ := w.Invoke(json.RawMessage(sample(t, step.name))); status != http.StatusUnauthorized {
			t.Errorf("%s: status %d", step.name, status)
		}
		if !strings.Contains(log.String(), step.metric) {
			t.Errorf("%s: the line lacks %s: %s", step.name, step.metric, log.String())
		}
	}
}

// Proves M2: what KMS does not do is counted as such, wherever it is missed.
func TestAKeyThatCannotBeUsedIsCounted(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"ingress", "processor"} {
		var log bytes.Buffer
		faults := &sim.Faults{}
		w := sim.New(t, sim.Options{Log: &log, Middleware: map[string]func(*middleware.Stack) error{program: faults.Middleware}})
		w.Advance(signedAt.Sub(w.Now()))
		w.AddEndpoint("stripe", "demo", "whsec_synthetic")
		for _, operation := range []string{"GenerateDataKey", "Decrypt"} {
			faults.Add(sim.Fault{Operation: operation, Times: -1, Err: sim.ErrDenied})
		}
		w.Invoke(json.RawMessage(sample(t, "http-post-json.json")))
		w.Settle()
		if n := strings.Count(log.String(), `"kms_failed":1`); n != 1 {
			t.Errorf("%s counts %d, want 1: %s", program, n, log.String())
		}
	}
}

// Three spellings of one request are one event.
func TestSampleSpellingsAreOneEvent(t *testing.T) {
	t.Parallel()
	w := world(t)
	for _, name := range []string{"http-post-json.json", "http-post-base64.json", "http-headers-as-sam-local.json"} {
		w.Invoke(json.RawMessage(sample(t, name)))
	}
	if n := len(w.Inbox()); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func decode[T any](t *testing.T, name string) T {
	t.Helper()
	var event T
	if err := json.Unmarshal(sample(t, name), &event); err != nil {
		t.Fatal(err)
	}
	return event
}

// Proves D5: a stream record is published or left alone by what it is.
func TestSampleStreamRecords(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"stream-insert.json": 1, "stream-modify.json": 1, "stream-modify-published.json": 0, "stream-remove-by-ttl.json": 0,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world(t)
			response, err := w.Stream().Handle(context.Background(), decode[events.DynamoDBEvent](t, name))
			if err != nil || len(response.BatchItemFailures) > 0 {
				t.Errorf("failures %v, error %v", response.BatchItemFailures, err)
			}
			if got := w.Waiting(); got != want {
				t.Errorf("%d messages, want %d", got, want)
			}
		})
	}
}

// A record that cannot be read delays no neighbour. Proves W5.
func TestAnUnreadableStreamRecordIsPassedOver(t *testing.T) {
	t.Parallel()
	w := world(t)
	event := decode[events.DynamoDBEvent](t, "stream-insert.json")
	garbage := event.Records[0]
	garbage.Change.NewImage = map[string]events.DynamoDBAttributeValue{"odd": events.NewBooleanAttribute(true)}
	garbage.Change.SequenceNumber = "1"
	event.Records = append([]events.DynamoDBEventRecord{garbage}, event.Records...)
	response, err := w.Stream().Handle(context.Background(), event)
	if err != nil || len(response.BatchItemFailures) > 0 || w.Waiting() != 1 {
		t.Errorf("failures %v, error %v, %d messages; want the neighbour published", response.BatchItemFailures, err, w.Waiting())
	}
}

// Proves W5: garbage and messages of a version to come are given back, and the
// wake-up beside them is worked on.
func TestSampleQueueBatch(t *testing.T) {
	t.Parallel()
	w := world(t)
	w.Invoke(json.RawMessage(sample(t, "http-post-json.json")))
	response, err := w.Queue().Handle(context.Background(), decode[events.SQSEvent](t, "queue-batch.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{
		{ItemIdentifier: "00000000-0000-4000-8000-000000000002"}, {ItemIdentifier: "00000000-0000-4000-8000-000000000003"},
	}}
	if diff := cmp.Diff(want, response); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	if row := w.Row(webhook.DeriveInboxID("demo", "stripe", "evt_synthetic_0001")); row.Status != webhook.Processed {
		t.Errorf("the event is %s", row.Status)
	}
}

// FuzzInvoke hands anything to the front door: it always answers, never with a
// success, and stores nothing.
func FuzzInvoke(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("..", "..", "events", "http-*.json"))
	if err != nil || len(names) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, name := range names {
		f.Add(sample(f, filepath.Base(name)))
	}
	w := sim.New(f, sim.Options{})
	w.AddEndpoint("stripe", "demo", "a secret that the samples were not signed with")
	w.AddEndpoint("slack", "team", "another secret that they were not signed with")
	f.Fuzz(func(t *testing.T, payload []byte) {
		w.T = t
		answer, err := w.HTTP().Invoke(context.Background(), payload)
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			StatusCode int `json:"statusCode"`
		}
		if err := json.Unmarshal(answer, &said); err != nil {
			t.Fatalf("the answer is no answer: %v", err)
		}
		if said.StatusCode < http.StatusBadRequest || said.StatusCode == http.StatusInternalServerError {
			t.Errorf("status %d", said.StatusCode)
		}
		if n := w.Stored(); n != 0 {
			t.Errorf("%d rows are stored", n)
		}
	})
}
