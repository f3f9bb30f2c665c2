package bench

import (
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
// The bare work is given the event's id. The second figure is against bare work
// that reads id and type from the body, as every receiver must.
func measureCPU(t *testing.T, f *figures) {
	s := newSite(t, "bench-cpu", "")
	b := newBare(t, s)
	n := 0
	s.accept(t.Context(), t, s.payload(n)) // brings endpoint, secret and data key
	s.wire.quiet.Store(true)

	// batch returns what one event cost, in CPU time, calls and bytes sent.
	batch := func(work func(payload []byte, n int)) (cpu time.Duration, calls, sent float64) {
		payloads := make([][]byte, cpuBatch)
		for i := range payloads {
			n++
			payloads[i] = s.payload(n)
		}
		runtime.GC()
		s.wire.calls.Store(0)
		s.wire.bytes.Store(0)
		began := cpuTime(t)
		for i, payload := range payloads {
			work(payload, n-cpuBatch+i)
		}
		cpu = (cpuTime(t) - began) / cpuBatch
		return cpu, float64(s.wire.calls.Load()) / cpuBatch, float64(s.wire.bytes.Load()) / cpuBatch
	}
	ingress := func(payload []byte, _ int) { s.accept(t.Context(), t, payload) }
	plain := func(payload []byte, n int) {
		if err := b.accept(t.Context(), payload, n, false); err != nil {
			t.Error(err)
		}
	}
	reading := func(payload []byte, n int) {
		if err := b.accept(t.Context(), payload, n, true); err != nil {
			t.Error(err)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // an idle processor would spend its time on collecting, for either side
	batch(ingress)
	batch(plain)
	var ratios, readingRatios, ours, theirs []float64
	for range cpuRounds {
		cpu, calls, sent := batch(ingress)
		bareCPU, bareCalls, bareSent := batch(plain)
		if calls != 2 || bareCalls != 2 || sent/bareSent > 1.02 || bareSent/sent > 1.02 {
			t.Fatalf("ingress made %g calls of %g bytes for an event, the bare work %g of %g", calls, sent, bareCalls, bareSent)
		}
		readingCPU, _, _ := batch(reading)
		ratios = append(ratios, float64(cpu)/float64(bareCPU))
		readingRatios = append(readingRatios, float64(cpu)/float64(readingCPU))
		ours, theirs = append(ours, micros(cpu)), append(theirs, micros(bareCPU))
	}
	t.Logf("median CPU for an event: ingress %.1f µs, bare %.1f µs; ratio 10th to 90th percentile %.3f to %.3f",
		median(ours), median(theirs), percentile(ratios, 0.1), percentile(ratios, 0.9))
	f.set(t, "ingress_cpu_ratio", median(ratios))
	f.set(t, "ingress_cpu_ratio_id_read", median(readingRatios))
}

// cpuTime is what this process has used of all processors, in user and in system mode.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
