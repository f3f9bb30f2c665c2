package bench

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"dakghar/internal/devstack"
	"dakghar/internal/devstack/fault"
)

// measureCopies sends 500 copies of one event, 64 at a time, to a system that
// is warm, three times. The figure is the worst share of copies that were told
// to come again.
func measureCopies(t *testing.T, f *figures) {
	const copies, workers, warm, rounds = 500, 64, 256, 3
	s := startSystem(t, devstack.Options{})
	atOnce(workers, 0, warm, s.sendUntilAcknowledged)
	s.awaitDone(time.Minute)
	worst := 0.0
	for n := warm; n < warm+rounds; n++ {
		body, headers := s.event(n)
		var mu sync.Mutex
		answers := map[int]int{}
		atOnce(workers, 0, copies, func(int) {
			status := s.post(t.Context(), body, headers)
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
		})
		t.Logf("answers by status: %v", answers)
		for status := range answers {
			if status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Errorf("a copy was answered %d", status)
			}
		}
		worst = max(worst, float64(answers[http.StatusServiceUnavailable])/copies)
		s.sendUntilAcknowledged(n)
	}
	s.awaitDone(time.Minute)
	s.wantEach(warm + rounds)
	f.set(t, "copies_503_ratio", worst)
}

// measureStall holds every call of one service after the other and notes the
// slowest answer: of new processes, which need every service at once, and of
// those that have what they cache. Bodies go to the bucket, so that the bucket is
// needed too. Starting processes is part of what the figure counts.
func measureStall(t *testing.T, f *figures) {
	var slowest time.Duration
	for _, service := range []string{"dynamodb", "kms", "s3", "secretsmanager"} {
		t.Run(service, func(t *testing.T) { slowest = max(slowest, stall(t, service)) })
	}
	f.set(t, "stall_answer_ms_max", millis(slowest))
}

func stall(t *testing.T, service string) time.Duration {
	t.Helper()
	const workers, requests = 8, 24
	s := startSystem(t, devstack.Options{FunctionEnv: map[string]map[string]string{"IngressFunction": {"BODY_INLINE_BYTES": "1024"}}})
	cold := s.slowestAnswer(service, workers, 0, requests)
	atOnce(workers, 0, requests, s.sendUntilAcknowledged)
	warm := s.slowestAnswer(service, workers, requests, 2*requests)
	atOnce(workers, requests, 2*requests, s.sendUntilAcknowledged)
	s.awaitDone(time.Minute)
	s.wantEach(2 * requests)
	t.Logf("%s is stalled: slowest answer of new processes %.0f ms, of warm ones %.0f ms", service, millis(cold), millis(warm))
	return max(cold, warm)
}

// slowestAnswer sends events while a service is stalled.
func (s *system) slowestAnswer(service string, workers, first, end int) (slowest time.Duration) {
	s.t.Helper()
	if err := s.stack.Faults().Add(fault.Fault{Service: service, Mode: fault.Stall}); err != nil {
		s.t.Fatal(err)
	}
	defer s.stack.Faults().Clear("")
	var mu sync.Mutex
	atOnce(workers, first, end, func(n int) {
		began := time.Now()
		status := s.send(n)
		took := time.Since(began)
		if status != http.StatusOK && status != http.StatusServiceUnavailable {
			s.t.Errorf("event %d: status %d while %s is stalled", n, status, service)
		}
		mu.Lock()
		defer mu.Unlock()
		slowest = max(slowest, took)
	})
	return slowest
}
