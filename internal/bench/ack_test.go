package bench

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Rounds of the acknowledgement figure, and how many requests are under way at once.
const (
	ackRounds = 12
	ackEach   = 32
	ackAtOnce = 16
)

// measureAck compares how long events wait for their answer with how long the
// two storage calls alone take, on DynamoDB Local, with ingress's own client
// and its time limits.
func measureAck(t *testing.T, f *figures) {
	url := os.Getenv("DYNAMODB_LOCAL_URL")
	if url == "" {
		t.Skip("DYNAMODB_LOCAL_URL is not set: scripts/with-oracles.sh sets it")
	}
	s := newSite(t, fmt.Sprintf("bench-%d", time.Now().UnixNano()), url)
	b := newBare(t, s)
	sealed, err := b.seal(s.body)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	// round returns how long each of a round's requests took.
	round := func(prepare func(n int) (request func())) []time.Duration {
		took := make([]time.Duration, ackAtOnce*ackEach)
		var wg sync.WaitGroup
		for w := range ackAtOnce {
			first := n + w*ackEach
			wg.Go(func() {
				for i := range ackEach {
					request := prepare(first + i)
					began := time.Now()
					request()
					took[w*ackEach+i] = time.Since(began)
				}
			})
		}
		wg.Wait()
		n += len(took)
		return took
	}
	ingress := func(n int) func() {
		payload := s.payload(n)
		return func() { s.accept(t.Context(), t, payload) }
	}
	plain := func(n int) func() {
		r := newRows(n, sealed)
		return func() {
			if err := b.store(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
	}
	round(ingress)
	round(plain)
	var ratios []float64
	var ours, theirs []time.Duration
	for i := range ackRounds {
		var a, p []time.Duration
		if i%2 == 0 {
			a, p = round(ingress), round(plain)
		} else {
			p, a = round(plain), round(ingress)
		}
		ratios = append(ratios, float64(percentile(a, 0.99))/float64(percentile(p, 0.99)))
		ours, theirs = append(ours, a...), append(theirs, p...)
	}
	t.Logf("p50 %.1f ms against %.1f ms, p99 of all rounds %.1f ms against %.1f ms; ratios of the rounds %.2f",
		millis(percentile(ours, 0.5)), millis(percentile(theirs, 0.5)), millis(percentile(ours, 0.99)), millis(percentile(theirs, 0.99)), ratios)
	f.set(t, "ack_p99_ratio_dynamodb_local", median(ratios))
}
