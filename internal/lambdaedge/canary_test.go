package lambdaedge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/canary"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/telemetry"
	"dakghar/internal/webhook"
)

// yard is two endpoints whose canaries are accepted, of which one is worked on,
// and a third of a public key.
type yard struct {
	err   error
	empty bool
}

var errYard = errors.New("down")

func (y yard) EndpointIDs(context.Context) ([]webhook.EndpointID, error) {
	if y.empty {
		return nil, y.err
	}
	return []webhook.EndpointID{"a", "b", "c"}, y.err
}

func (yard) Endpoint(_ context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error) {
	p := webhook.Provider("stripe")
	if id == "c" {
		p = "standard-webhooks"
	}
	return webhook.Endpoint{ID: id, Provider: p, Scope: webhook.Scope(id), Canary: true, Keys: []webhook.TrustedKey{{Version: "v1"}}}, true, nil
}

func (yard) Secret(_ context.Context, e webhook.Endpoint, _ webhook.KeyVersion) (string, error) {
	if e.ID == "c" {
		return "whpk_O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=", nil
	}
	return "whsec_test_secret_for_the_edges", nil
}

func (yard) Do(context.Context, canary.Request) (canary.Response, error) {
	return canary.Response{Status: 200}, nil
}

func (yard) Inbox(_ context.Context, id webhook.InboxID) (webhook.Inbox, bool, error) {
	if id == webhook.DeriveInboxID("a", "stripe", webhook.CanaryPrefix+"x") {
		return webhook.Inbox{Status: webhook.Processed, ProcessedAt: time.Now()}, true, nil
	}
	return webhook.Inbox{Status: webhook.Received}, true, nil
}

func canaryLines(t *testing.T, y yard) (lines []map[string]any, err error) {
	t.Helper()
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	edge := &lambdaedge.Canary{
		Canary: &canary.Canary{
			Providers: providers, Endpoints: y, Keys: y, HTTP: y, Inbox: y, URL: "https://door.test", Budget: 2 * time.Second, AtOnce: 4, Now: time.Now,
			NewID: func() string { return "x" },
			Wait: func(ctx context.Context, d time.Duration) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		},
		Log: telemetry.New(&log, "canary", time.Now),
	}
	err = edge.Handle(t.Context())
	for text := range bytes.Lines(log.Bytes()) {
		var line map[string]any
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatal(err)
		}
		delete(line, "_aws")
		delete(line, "inbox_id")
		lines = append(lines, line)
	}
	return lines, err
}

// Proves M2, M3: a line for each canary, and one for the run that counts none
// missing, so that an alarm can tell silence from a good run.
func TestEachCanaryHasItsLineAndSoHasTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines, err := canaryLines(t, yard{})
		if err != nil {
			t.Fatal(err)
		}
		want := []map[string]any{
			{"function": "canary", "provider": "stripe", "decision": "canary_arrived", "endpoint_id": "a", "status": "PROCESSED", "requests": "1", "http_status": "200",
				"canary_sent": 1.0, "canary_arrived": 1.0, "canary_missing": 0.0, "canary_ms": 250.0},
			{"function": "canary", "provider": "stripe", "decision": "canary_missing", "endpoint_id": "b", "status": "RECEIVED", "code": "not_processed", "requests": "1", "http_status": "200",
				"canary_sent": 1.0, "canary_missing": 1.0},
			{"function": "canary", "provider": "standard-webhooks", "decision": "canary_unsignable", "endpoint_id": "c", "code": "key_public", "requests": "0",
				"canary_unsignable": 1.0, "canary_missing": 0.0},
			{"function": "canary", "decision": "canary_run", "canary_endpoints": 3.0, "canary_missing": 0.0},
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		lines, err := canaryLines(t, yard{empty: true})
		want := []map[string]any{{"function": "canary", "decision": "canary_run", "canary_endpoints": 0.0, "canary_missing": 0.0}}
		if diff := cmp.Diff(want, lines); err != nil || diff != "" {
			t.Errorf("without endpoints: error %v, lines (-want +got):\n%s", err, diff)
		}
	})
}

// Without the list of endpoints nobody knows whether one is missing: no count, and
// an error that is counted as the function's.
func TestARunThatCannotReadTheEndpointsCountsNothing(t *testing.T) {
	t.Parallel()
	lines, err := canaryLines(t, yard{err: errYard})
	want := []map[string]any{{"function": "canary", "decision": "canary_run", "error": "down"}}
	if diff := cmp.Diff(want, lines); !errors.Is(err, errYard) || diff != "" {
		t.Errorf("error %v, lines (-want +got):\n%s", err, diff)
	}
}
