package bench

import (
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Rounds of the CPU figure: each side works on a batch in turns.
const (
	cpuRounds = 60
	cpuBatch  = 200
)

// measureCPU compares the process's CPU time, garbage collection included, of
// events accepted by ingress with that of the bare work. The two calls end in a
// wire that reads the request and answers "{}": the network's and the service's
// own time would only bring the two sides closer together.
//
// The design's figure is against the least decoding there is: the same library,
// the members that are needed, and the event's id given. The other two are
// against bare work that reads the id from the body, as every receiver must, and
// against the decoding of aws-lambda-go's own event type.
func measureCPU(t *testing.T, f *figures) {
	s := newSite(t, "bench-cpu", "")
	s.accept(t.Context(), t, s.payload(0)) // brings endpoint, secret and data key
	s.wire.quiet.Store(true)
	b := newBare(t, s)
	plain := func(read decode) func([]byte, int) {
		return func(payload []byte, n int) {
			if err := b.accept(t.Context(), payload, n, read); err != nil {
				t.Error(err)
			}
		}
	}
	sides := []*side{
		{work: func(payload []byte, _ int) { s.accept(t.Context(), t, payload) }},
		{work: plain(decodeAlike)},
		{name: "ingress_cpu_ratio_id_read", work: plain(decodeWithID)},
		{name: "ingress_cpu_ratio_typed_event", work: plain(decodeTyped)},
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // an idle processor would spend its time on collecting, for whichever side
	n := 0
	for range cpuRounds {
		for _, x := range sides {
			n += cpuBatch
			x.batch(t, s, n)
		}
	}
	ingress, least := sides[0], sides[1]
	t.Logf("median CPU for an event: ingress %.1f µs, bare %.1f µs, with the id read %.1f µs, with the typed event %.1f µs",
		median(ingress.micros), median(least.micros), median(sides[2].micros), median(sides[3].micros))
	least.wantSameCalls(t, ingress)
	f.set(t, "ingress_cpu_ratio", ingress.ratio(least))
	for _, other := range sides[2:] {
		other.wantSameCalls(t, ingress)
		f.set(t, other.name, ingress.ratio(other))
	}
}

// side is one of those that are compared.
type side struct {
	name   string // of its figure
	work   func(payload []byte, n int)
	micros []float64 // of an event, in each round
	// Of an event, in the last round.
	calls, sent float64
}

// batch lets a side work on a batch of events that ends with the n-th.
func (x *side) batch(t *testing.T, s *site, n int) {
	t.Helper()
	payloads := make([][]byte, cpuBatch)
	for i := range payloads {
		payloads[i] = s.payload(n - i)
	}
	runtime.GC()
	s.wire.calls.Store(0)
	s.wire.bytes.Store(0)
	began := usage(t, syscall.RUSAGE_SELF)
	for i, payload := range payloads {
		x.work(payload, n-i)
	}
	took := usage(t, syscall.RUSAGE_SELF) - began
	x.micros = append(x.micros, float64(took.Nanoseconds())/1000/cpuBatch)
	x.calls, x.sent = float64(s.wire.calls.Load())/cpuBatch, float64(s.wire.bytes.Load())/cpuBatch
}

// wantSameCalls checks that a side is compared with one that asks as much of the store.
func (x *side) wantSameCalls(t *testing.T, as *side) {
	t.Helper()
	if x.calls != as.calls || math.Abs(x.sent-as.sent) > 0.01*as.sent {
		t.Errorf("for an event one side makes %g calls with %g bytes, the other %g with %g", x.calls, x.sent, as.calls, as.sent)
	}
}

// ratio returns the median of the rounds' ratios.
func (x *side) ratio(to *side) float64 {
	ratios := make([]float64, len(x.micros))
	for i := range ratios {
		ratios[i] = x.micros[i] / to.micros[i]
	}
	return median(ratios)
}

// usage is the CPU time, in user and in system mode, of this process or of the
// children that it has waited for.
func usage(t *testing.T, who int) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
