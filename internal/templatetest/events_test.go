package templatetest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
)

const eventsDir = "../../events/"

// decode reads a sample as the type of its trigger; a member that the type does not know is a mistake in the sample.
func decode[T any](t *testing.T, name string) T {
	t.Helper()
	data, err := os.ReadFile(eventsDir + name)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var event T
	if err := decoder.Decode(&event); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return event
}

func samples(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(eventsDir + pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sample %s: %v", pattern, err)
	}
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

func TestSamplesHaveTheShapeOfTheirTrigger(t *testing.T) {
	for _, name := range samples(t, "http-*.json") {
		event := decode[events.APIGatewayV2HTTPRequest](t, name)
		if event.Version != "2.0" || event.RawPath != event.RequestContext.HTTP.Path || event.RouteKey != event.RequestContext.RouteKey {
			t.Errorf("%s is no consistent event of payload format 2.0", name)
		}
	}
	for _, name := range samples(t, "stream-*.json") {
		if event := decode[events.DynamoDBEvent](t, name); len(event.Records) != 1 {
			t.Errorf("%s has %d records", name, len(event.Records))
		}
	}
	if batch := decode[events.SQSEvent](t, "queue-batch.json"); len(batch.Records) != 3 {
		t.Errorf("queue-batch.json has %d messages", len(batch.Records))
	}
	if batch := decode[events.SQSEvent](t, "queue-deliveries.json"); len(batch.Records) != 5 {
		t.Errorf("queue-deliveries.json has %d messages", len(batch.Records))
	}
	decode[events.EventBridgeEvent](t, "schedule.json")
}

func TestEverySampleIsExplained(t *testing.T) {
	readme, err := os.ReadFile(eventsDir + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(readme)) {
		if cells := strings.Split(line, "`"); strings.HasPrefix(line, "| `") {
			got = append(got, cells[1])
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(samples(t, "*.json"), got); diff != "" {
		t.Errorf("events/README.md (-files +explained):\n%s", diff)
	}
}

// The signatures are real, so that a test with its clock at the stated time can accept the good ones.
func TestTheSamplesAreSignedAsTheReadmeSays(t *testing.T) {
	for name, valid := range map[string]bool{
		"http-post-json.json":              true,
		"http-post-base64.json":            true,
		"http-headers-as-sam-local.json":   true,
		"http-content-type-missing.json":   true,
		"http-content-type-twice.json":     true,
		"http-signature-repeated.json":     true,
		"http-endpoint-unknown.json":       true,
		"http-oversize-declared.json":      true,
		"http-body-altered.json":           false,
		"http-slack-url-verification.json": true,
	} {
		event := decode[events.APIGatewayV2HTTPRequest](t, name)
		body := []byte(event.Body)
		if event.IsBase64Encoded {
			var err error
			if body, err = base64.StdEncoding.DecodeString(event.Body); err != nil {
				t.Fatal(err)
			}
		}
		secret, prefix, header := "whsec_synthetic", "1796040000.", "stripe-signature"
		if strings.Contains(name, "slack") {
			secret, prefix, header = "synthetic_slack_signing_secret", "v0:1796040000:", "x-slack-signature"
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(prefix))
		mac.Write(body)
		var signature string
		for key, value := range event.Headers {
			if strings.EqualFold(key, header) {
				signature = value
			}
		}
		if got := strings.Contains(signature, hex.EncodeToString(mac.Sum(nil))); got != valid {
			t.Errorf("%s is signed with the stated secret: %v, want %v", name, got, valid)
		}
	}
}
