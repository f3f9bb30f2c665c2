package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// figure is one measured number. Most or least is the design's bound (section
// 13), both zero where it states none.
type figure struct {
	name, unit  string
	most, least float64
	value       float64
	measured    bool
}

// figures holds all of them in the order in which they are printed.
type figures struct{ all []figure }

func newFigures() *figures {
	return &figures{all: []figure{
		{name: "ingress_cpu_ratio", unit: "ratio", most: 1.25},
		{name: "ingress_cpu_ratio_id_read", unit: "ratio"},
		{name: "ingress_cpu_ratio_typed_event", unit: "ratio"},
		{name: "ack_p99_ratio_dynamodb_local", unit: "ratio", most: 1.15},
		{name: "write_units_per_event", unit: "units", most: 17},
		{name: "write_units_per_event_builtin_payment", unit: "units"},
		{name: "write_units_per_event_digest_filled", unit: "units"},
		{name: "zip_mb_arm64", unit: "MB", most: 4.5},
		{name: "first_poll_ms", unit: "ms", most: 20},
		{name: "copies_503_ratio", unit: "ratio", most: 0.01},
		{name: "stall_answer_ms_max", unit: "ms", most: 1500},
		{name: "rate_limit_overgrant", unit: "ratio", most: 0.10},
		{name: "reconcile_rows_per_s", unit: "rows/s"},
		{name: "reconcile_run_s", unit: "s", most: 60},
		{name: "reconcile_rss_mb", unit: "MB"},
		{name: "audit_rows_per_s", unit: "rows/s"},
		{name: "dispatch_per_s", unit: "1/s", least: 1000},
		{name: "dispatch_cpu_ratio", unit: "ratio", most: 1.5},
		{name: "dispatch_cpu_ratio_delivery_given", unit: "ratio"},
		{name: "dispatch_cpu_ratio_one_subscription", unit: "ratio"},
		{name: "dispatch_cpu_ratio_bytes_read", unit: "ratio"},
		{name: "dispatch_slow_partner_ratio", unit: "ratio", most: 1.5},
		{name: "soak_ack_p99_ms", unit: "ms", most: 100},
		{name: "soak_drain_s", unit: "s", most: 10},
		{name: "soak_errors", unit: "count"},
	}}
}

// set reports a figure.
func (f *figures) set(t *testing.T, name string, value float64) {
	t.Helper()
	i := slices.IndexFunc(f.all, func(g figure) bool { return g.name == name })
	if i < 0 {
		t.Fatalf("no figure is named %s", name)
	}
	f.all[i].value, f.all[i].measured = value, true
	t.Logf("%s = %.4g %s", name, value, f.all[i].unit)
}

// verdict says how a figure stands to its bound.
func (g figure) verdict() (bound, verdict string) {
	switch {
	case g.least > 0:
		bound = fmt.Sprintf("≥ %g", g.least)
	case g.most > 0:
		bound = fmt.Sprintf("≤ %g", g.most)
	default:
		bound = "-"
	}
	switch {
	case !g.measured:
		verdict = "not measured"
	case g.most == 0 && g.least == 0:
		verdict = "-"
	case g.least > 0 && g.value >= g.least, g.most > 0 && g.value <= g.most:
		verdict = "met"
	default:
		verdict = "missed"
	}
	return bound, verdict
}

func (f *figures) table() string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tvalue\tunit\tbound\t")
	for _, g := range f.all {
		bound, verdict := g.verdict()
		fmt.Fprintf(w, "%s\t%.4g\t%s\t%s\t%s\n", g.name, g.value, g.unit, bound, verdict)
	}
	w.Flush()
	return b.String()
}

// write stores what was measured as {"name": {"value": 1.0, "unit": "ratio"}}.
func (f *figures) write(path string) error {
	type value struct {
		Value float64 `json:"value"`
		Unit  string  `json:"unit"`
	}
	out := map[string]value{}
	for _, g := range f.all {
		if g.measured {
			out[g.name] = value{g.value, g.unit}
		}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// TestFigures measures everything that section 13 of the design bounds.
func TestFigures(t *testing.T) {
	path := os.Getenv("BENCH_JSON")
	if path == "" {
		t.Skip("BENCH_JSON is not set: figures take minutes and an idle machine; `make bench` takes them")
	}
	f := newFigures()
	for _, group := range []struct {
		name    string
		measure func(*testing.T, *figures)
	}{
		{"program", measureProgram},
		{"units", measureUnits},
		{"cpu", measureCPU},
		{"ack", measureAck},
		{"copies", measureCopies},
		{"stall", measureStall},
		{"limit", measureLimit},
		{"reconcile", measureReconcile},
		{"dispatch", measureDispatch},
		{"dispatch cpu", measureDispatchCPU},
		{"slow partner", measureSlowPartner},
		{"soak", measureSoak},
	} {
		t.Run(group.name, func(t *testing.T) {
			began, load := time.Now(), loadAverage()
			group.measure(t, f)
			t.Logf("took %.0f s; load average %s before, %s after", time.Since(began).Seconds(), load, loadAverage())
		})
	}
	t.Logf("\n%s", f.table())
	if err := f.write(path); err != nil {
		t.Error(err)
	}
}

// loadAverage is the machine's load, for the reader of the log.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}

// percentile returns the least value that the share p of all values does not exceed.
func percentile[T float64 | time.Duration](values []T, p float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(p*float64(len(sorted))))-1, 0)]
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
