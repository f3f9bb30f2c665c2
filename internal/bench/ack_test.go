package bench

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// The acknowledgement figure's blocks are short, so that a pause of the server or
// of the machine meets both sides alike.
const (
	ackAtOnce = 16
	ackBlock  = 8 // requests of each worker
	ackBlocks = 80
	ackTime   = 60 * time.Second // of all blocks, on a machine that is too busy for so many
)

// measureAck compares how long events wait for their answer with how long the
// two storage calls alone take, on DynamoDB Local, with one client. Neither side
// is cut off by a time limit, so that a slow answer is not left out.
func measureAck(t *testing.T, f *figures) {
	url := os.Getenv("DYNAMODB_LOCAL_URL")
	if url == "" {
		t.Skip("DYNAMODB_LOCAL_URL is not set: scripts/with-oracles.sh sets it")
	}
	s := newSite(t, fmt.Sprintf("bench-%d", time.Now().UnixNano()), url)
	s.door.Receiver.Budget = time.Minute
	b := newBare(t, s)
	sealed, err := b.seal(s.body)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ingress := func() func() {
		n++
		payload := s.payload(n)
		return func() { s.accept(t.Context(), t, payload) }
	}
	plain := func() func() {
		n++
		r := newRows(n, sealed)
		return func() {
			if err := b.store(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
	}
	for range 10 { // the server compiles what it runs often
		block(ingress)
		block(plain)
	}
	var ours, theirs []time.Duration
	began := time.Now()
	for i := 0; i < ackBlocks && time.Since(began) < ackTime; i++ {
		if i%2 == 0 {
			ours = append(ours, block(ingress)...)
			theirs = append(theirs, block(plain)...)
		} else {
			theirs = append(theirs, block(plain)...)
			ours = append(ours, block(ingress)...)
		}
	}
	t.Logf("%d requests of each side", len(ours))
	for _, p := range []float64{0.5, 0.9, 0.95, 0.99} {
		a, b := percentile(ours, p), percentile(theirs, p)
		t.Logf("p%g: %.1f ms against %.1f ms, %.3f", 100*p, millis(a), millis(b), float64(a)/float64(b))
	}
	f.set(t, "ack_p99_ratio_dynamodb_local", float64(percentile(ours, 0.99))/float64(percentile(theirs, 0.99)))
}

// block makes requests, as many at once as the figure wants, and returns how
// long each took. They are prepared beforehand.
func block(prepare func() (request func())) []time.Duration {
	requests := make([]func(), ackAtOnce*ackBlock)
	for i := range requests {
		requests[i] = prepare()
	}
	took := make([]time.Duration, len(requests))
	var workers sync.WaitGroup
	for w := range ackAtOnce {
		workers.Go(func() {
			for i := w * ackBlock; i < (w+1)*ackBlock; i++ {
				began := time.Now()
				requests[i]()
				took[i] = time.Since(began)
			}
		})
	}
	workers.Wait()
	return took
}
