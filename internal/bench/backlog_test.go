package bench

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"dakghar/internal/devstack"
	"dakghar/internal/devstack/fault"
)

// The backlog's load: a while of health, to compare with, then 20,000 events
// while the workers are slow and then gone. The rate is half the soak's: what is
// compared must not be the machine's own limit.
const (
	backlogRate     = soakRate / 2
	healthyEvents   = 20 * backlogRate
	saturatedEvents = 5_000
	stoppedEvents   = 15_000
)

// TestBacklog saturates the workers, stops them, and restores them: events are
// accepted all the while, and none is lost, failed or credited twice. How soon
// they are acknowledged is reported; the rest is asserted.
//
// Proves A4, A6, L1, T5.
func TestBacklog(t *testing.T) {
	path := os.Getenv("SOAK_JSON")
	if path == "" {
		t.Skip("SOAK_JSON is not set: this takes minutes and an idle machine; `make soak` runs it")
	}
	f := &figures{all: []figure{
		{name: "backlog_ack_p99_ratio", unit: "ratio", most: 1.5},
		{name: "backlog_ack_slowest_ms", unit: "ms", most: 3000}, // the shortest patience of a provider: Slack's
		{name: "backlog_drain_s", unit: "s"},
		{name: "backlog_errors", unit: "count"},
	}}
	measureBacklog(t, f)
	t.Logf("\n%s", f.table())
	if err := f.write(path); err != nil {
		t.Error(err)
	}
}

func measureBacklog(t *testing.T, f *figures) {
	defer debug.SetGCPercent(debug.SetGCPercent(devstack.GCPercent)) // as a local stack's own process does
	s := startSystem(t, devstack.Options{SandboxesMax: 2 * runtime.NumCPU()})
	s.sendUntilAcknowledged(0)
	s.awaitDone(time.Minute)
	next := 1
	load := func(events int) (took []time.Duration, refused []int, last time.Time) {
		took, refused, last = s.soak(next, events, backlogRate)
		next += events
		return took, refused, last
	}

	before, refused, _ := load(healthyEvents)
	s.awaitDone(5 * time.Minute)

	s.saturate()
	slow, more, _ := load(saturatedEvents)
	refused = append(refused, more...)
	t.Logf("with saturated workers: p99 %.1f ms; %d events are open", millis(percentile(slow, 0.99)), s.tally().Open)

	s.stopWorkers()
	stopped, more, last := load(stoppedEvents)
	refused = append(refused, more...)
	t.Logf("without workers: p99 %.1f ms; %d events are open", millis(percentile(stopped, 0.99)), s.tally().Open)

	s.stack.Faults().Clear("")
	s.awaitDone(20 * time.Minute)
	f.set(t, "backlog_drain_s", time.Since(last).Seconds())
	f.set(t, "backlog_errors", float64(len(refused)))
	atOnce(8, 0, len(refused), func(i int) { s.sendUntilAcknowledged(refused[i]) })
	s.awaitDone(5 * time.Minute)
	s.wantEach(next)

	healthy, during := percentile(before, 0.99), percentile(slices.Concat(slow, stopped), 0.99)
	t.Logf("acknowledgement p99: %.1f ms before, %.1f ms over the backlog", millis(healthy), millis(during))
	f.set(t, "backlog_ack_p99_ratio", float64(during)/float64(healthy))
	f.set(t, "backlog_ack_slowest_ms", millis(slices.Max(slices.Concat(slow, stopped))))
}

// saturate makes every handler slow and throttles what it commits: with all
// sandboxes busy, messages wait.
func (s *system) saturate() {
	s.t.Helper()
	for _, f := range []fault.Fault{
		{Service: "dynamodb", Operation: "GetItem", Table: "BusinessTable", Mode: fault.Delay, Delay: 2 * time.Second},
		{Service: "dynamodb", Operation: "TransactWriteItems", Table: "BusinessTable", Mode: fault.Throttle},
	} {
		if err := s.stack.Faults().Add(f); err != nil {
			s.t.Fatal(err)
		}
	}
}

// stopWorkers lets no message reach a worker any more, and kills those that work.
func (s *system) stopWorkers() {
	s.t.Helper()
	if err := s.stack.Faults().Add(fault.Fault{Service: "sqs", Operation: "ReceiveMessage", Mode: fault.Stall}); err != nil {
		s.t.Fatal(err)
	}
	workers, _ := s.stack.Function("ProcessorFunction")
	s.t.Logf("%d workers are killed", workers.Kill())
}
