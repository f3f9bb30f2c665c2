package poller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/poller"
)

func TestRatesAreReadAndOthersRefused(t *testing.T) {
	for expression, want := range map[string]time.Duration{
		"rate(1 minute)": time.Minute, "rate(5 minutes)": 5 * time.Minute, "rate(2 hours)": 2 * time.Hour, "rate(1 day)": 24 * time.Hour,
		"rate(0 minutes)": 0, "rate(1 second)": 0, "rate(1 minute": 0, "rate(minute)": 0, "cron(0 12 * * ? *)": 0, "at(2026-11-30T00:00:00)": 0, "": 0,
	} {
		got, err := poller.ParseRate(expression)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %v, %v; want %v", expression, got, err, want)
		}
	}
}

func TestAScheduleRunsAtOnceAndThenEveryIntervalWhateverTheLastRunTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex // runs overlap
		var at []time.Duration
		var payload []byte
		s, err := poller.NewSchedule(poller.ScheduleConfig{
			ARN: "arn:schedule", Every: time.Minute, Region: "us-east-1", NewID: func() string { return "id-1" },
			Invoke: func(ctx context.Context, p []byte) ([]byte, string, error) {
				mu.Lock()
				at = append(at, time.Since(start))
				payload = p
				mu.Unlock()
				pauseOr(ctx, 90*time.Second)
				return nil, "", nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		time.Sleep(2*time.Minute + time.Second)
		cancel()
		<-done
		if diff := cmp.Diff([]time.Duration{0, time.Minute, 2 * time.Minute}, at); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		want := `{"version":"0","id":"id-1","detail-type":"Scheduled Event","source":"aws.scheduler","account":"000000000000","time":"2000-01-01T00:02:00Z",` +
			`"region":"us-east-1","resources":["arn:schedule"],"detail":"{}"}`
		if diff := cmp.Diff(want, string(payload)); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
		strict := json.NewDecoder(bytes.NewReader(payload))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&events.EventBridgeEvent{}); err != nil {
			t.Errorf("not the library's event: %v", err)
		}
	})
}

func pauseOr(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func TestAScheduleSendsItsInputAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var payload string
		s, err := poller.NewSchedule(poller.ScheduleConfig{
			Every: time.Minute, Input: `{"sweep":true}`, NewID: func() string { return "" },
			Invoke: func(_ context.Context, p []byte) ([]byte, string, error) {
				payload = string(p)
				return nil, "Unhandled", nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(ctx)
		synctest.Wait()
		if payload != `{"sweep":true}` {
			t.Errorf("payload %s", payload)
		}
	})
}
