package bench

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dakghar/internal/devstack"
	"dakghar/internal/dynamo"
)

// The soak's load.
const (
	soakRate    = 300 // events a second
	soakSeconds = 60
	soakEvents  = soakRate * soakSeconds
)

// measureSoak sends events at a steady rate, whatever the answers do, through
// the whole pipeline: front door, four programs, all services, on this machine,
// sender included. An answer's time counts from when its event was due to be
// sent. The system has answered one event before.
//
// A function has at most two processes a processor: on Lambda each brings its
// own share of one, here more of them only take it from each other.
func measureSoak(t *testing.T, f *figures) {
	defer debug.SetGCPercent(debug.SetGCPercent(devstack.GCPercent)) // as a local stack's own process does
	s := startSystem(t, devstack.Options{SandboxesMax: 2 * runtime.NumCPU()})
	s.sendUntilAcknowledged(0)
	s.awaitDone(time.Minute)
	began, machine := usage(t, syscall.RUSAGE_SELF), machineUsage()

	took, refused, last := s.soak(1, soakEvents, soakRate)
	s.awaitDone(5 * time.Minute)
	drain := time.Since(last)
	own, busy, seconds := usage(t, syscall.RUSAGE_SELF)-began, machineUsage()-machine, time.Since(last).Seconds()+soakSeconds
	var programs time.Duration
	for _, id := range []string{"IngressFunction", "RelayFunction", "ProcessorFunction"} {
		n, cpu := s.processes(id)
		t.Logf("%s: %d processes, which used %.2f ms of CPU for an event", id, n, millis(cpu)/soakEvents)
		programs += cpu
	}
	t.Logf("the local stack and the sender used %.2f ms of CPU for an event", millis(own)/soakEvents)
	t.Logf("processors in use: %.2f by all of these, %.2f by the whole machine, of %d", (programs+own).Seconds()/seconds, busy.Seconds()/seconds, runtime.NumCPU())

	atOnce(8, 0, len(refused), func(i int) { s.sendUntilAcknowledged(refused[i]) })
	s.awaitDone(time.Minute)
	s.wantEach(1 + soakEvents)
	for from := 0; from < soakEvents; from += 10 * soakRate {
		part := took[from:min(from+10*soakRate, soakEvents)]
		t.Logf("answers from second %d on: p50 %.1f ms, p99 %.1f ms, slowest %.1f ms", from/soakRate, millis(percentile(part, 0.5)), millis(percentile(part, 0.99)), millis(percentile(part, 1)))
	}
	f.set(t, "soak_ack_p99_ms", millis(percentile(took, 0.99)))
	f.set(t, "soak_drain_s", drain.Seconds())
	f.set(t, "soak_errors", float64(len(refused)))
}

// soak sends the events from first on, each at its time, so many a second. It
// returns when all are answered: how long each answer took, the events without a
// success, and when the last event was due.
func (s *system) soak(first, events, rate int) (took []time.Duration, refused []int, last time.Time) {
	took = make([]time.Duration, events)
	var mu sync.Mutex
	var sending sync.WaitGroup
	start := time.Now()
	for i := range events {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if err := dynamo.Sleep(s.t.Context(), time.Until(due)); err != nil {
			s.t.Fatal(err)
		}
		sending.Go(func() {
			status := s.send(first + i)
			took[i] = time.Since(due)
			if status != http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				refused = append(refused, first+i)
			}
		})
		last = due
	}
	sending.Wait()
	return took, refused, last
}

// processes returns how many processes a function has, and their CPU time so
// far: none where the machine has no /proc.
func (s *system) processes(id string) (n int, cpu time.Duration) {
	function, _ := s.stack.Function(id)
	for _, p := range function.Processes() {
		n++
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 12 { // utime and stime, in hundredths of a second
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			cpu += time.Duration(user+system) * 10 * time.Millisecond
		}
	}
	return n, cpu
}

// machineUsage is the CPU time that all programs of the machine have used since
// it started; 0 where the machine has no /proc.
func machineUsage() (busy time.Duration) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) { // cpu user nice system idle iowait irq softirq …, in hundredths of a second
		if n, err := strconv.Atoi(field); err == nil && i != 4 && i != 5 {
			busy += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return busy
}
