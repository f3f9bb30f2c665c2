package bench

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"dakghar/internal/devstack"
	"dakghar/internal/devstack/lambda"
	"dakghar/internal/webhook"
)

// measureReconcile lets the reconciler's own program look through a full outbox,
// of which a hundredth is due, in one run; then compare a day's events. Nothing
// else runs on the stack. Filling the tables is not counted; the embedded
// services' share of the machine is.
func measureReconcile(t *testing.T, f *figures) {
	const promises, dueEvery, events = 100_000, 100, 50_000
	r := startReconciler(t)
	empty := r.run()
	idle := r.rssMB()
	r.fillOutbox(promises, dueEvery)
	took := r.run()
	if left := r.due(); left != 0 {
		t.Errorf("%d due promises were not woken in one run", left)
	}
	f.set(t, "reconcile_rows_per_s", promises/took.Seconds())
	f.set(t, "reconcile_run_s", took.Seconds())
	f.set(t, "reconcile_rss_mb", r.rssMB())
	t.Logf("a run over nothing took %s, with %.1f MB resident at most", empty, idle)

	r.fillDay(events)
	cpu := r.cpu()
	took = r.run()
	t.Logf("the reconciler's own processor time for an event compared: %.0f µs", float64((r.cpu()-cpu).Microseconds())/events)
	if age := r.auditedUpTo(); age > 25*time.Hour+time.Minute {
		t.Errorf("the comparison stopped at events that are %s old", age)
	}
	f.set(t, "audit_rows_per_s", events/took.Seconds())
	t.Logf("with the comparison, %.1f MB resident at most", r.rssMB())
}

// reconcilerBench is a stack on which nothing but the reconciler works.
type reconcilerBench struct {
	*system
	function lambda.Function
}

func startReconciler(t *testing.T) *reconcilerBench {
	t.Helper()
	idle := func(context.Context, func(string) string) (lambda.Handler, error) {
		return func(context.Context, []byte) ([]byte, error) { return []byte(`{}`), nil }, nil
	}
	s := startSystem(t, devstack.Options{
		ScheduleEvery: 24 * time.Hour,
		InProcess:     map[string]devstack.Factory{"IngressFunction": idle, "RelayFunction": idle, "ProcessorFunction": idle},
	})
	function, ok := s.stack.Function("ReconcilerFunction")
	if !ok {
		t.Fatal("the stack has no reconciler")
	}
	return &reconcilerBench{system: s, function: function}
}

// run invokes the reconciler once, as its schedule does.
func (r *reconcilerBench) run() time.Duration {
	r.t.Helper()
	began := time.Now()
	answer, failed, err := r.function.Invoke(r.t.Context(), []byte(`{}`))
	if err != nil || failed != "" {
		r.t.Fatalf("%s %s, error %v", failed, answer, err)
	}
	return time.Since(began)
}

// rssMB returns the most that a process of the reconciler ever had resident. The
// schedule begins with a run of its own, so there may be two.
func (r *reconcilerBench) rssMB() float64 {
	r.t.Helper()
	most := 0.0
	for _, p := range r.function.Processes() {
		most = max(most, r.highWater(p.PID))
	}
	return most
}

func (r *reconcilerBench) highWater(pid int) float64 {
	r.t.Helper()
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		r.t.Skipf("this system does not tell a process's memory: %v", err)
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, " kB")), 64)
			if err != nil {
				r.t.Fatal(err)
			}
			return kb / 1024
		}
	}
	r.t.Fatal("no VmHWM in the process's status")
	return 0
}

// cpu returns the processor time that the reconciler's processes have used, as
// the system counts it: in ticks of 10 ms.
func (r *reconcilerBench) cpu() time.Duration {
	r.t.Helper()
	var ticks int64
	for _, p := range r.function.Processes() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		if err != nil {
			r.t.Skipf("this system does not tell a process's time: %v", err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		for _, field := range strings.Fields(rest)[11:13] { // utime and stime
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				r.t.Fatal(err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// fillOutbox puts promises of which one in every so many is due, with its event.
func (r *reconcilerBench) fillOutbox(n, dueEvery int) {
	r.t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	var rows []map[string]types.AttributeValue
	for i := range n {
		row := r.row(i, now.Add(-time.Hour), webhook.Received)
		wake := now.Add(6 * time.Hour)
		if i%dueEvery == 0 {
			wake = now.Add(-time.Minute)
			r.accept(row)
		}
		rows = append(rows, storedPromise(row, wake))
	}
	r.putAll(r.store.Tables.Outbox, rows)
}

// row is the n-th event of a name that no other event has.
func (r *reconcilerBench) row(n int, at time.Time, status webhook.Status) webhook.Inbox {
	event := webhook.EventID(fmt.Sprintf("evt_%s_%d", status, n))
	digest := webhook.DigestOf([]byte(event))
	return webhook.Inbox{
		ID: webhook.DeriveInboxID(webhook.Scope(endpoint), "stripe", event), Provider: "stripe", Endpoint: endpoint, Tenant: "acme", EventID: event,
		EventType: "payment_intent.succeeded", ObjectID: "pi_" + strconv.Itoa(n), ReceivedAt: at, Digest: digest,
		BodyID: webhook.DeriveBodyID(endpoint, digest), BodyExpiresAt: at.Add(30 * 24 * time.Hour), Status: status, NextAttemptAt: at,
	}
}

func (r *reconcilerBench) accept(row webhook.Inbox) {
	r.t.Helper()
	if existing, err := r.store.Accept(r.t.Context(), row, nil); err != nil || existing != nil {
		r.t.Fatalf("accept: existing %v, error %v", existing, err)
	}
}

// storedPromise is an outbox row as the store keeps it.
func storedPromise(row webhook.Inbox, wake time.Time) map[string]types.AttributeValue {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	at := func(t time.Time) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(t.UnixMilli(), 10)}
	}
	zero := &types.AttributeValueMemberN{Value: "0"}
	return map[string]types.AttributeValue{
		"id": text(string(webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0))), "ii": text(string(row.ID)), "e": text(string(row.Endpoint)),
		"tp": text(string(webhook.TopicProcess)), "ca": at(row.ReceivedAt), "g": zero, "du": at(row.ReceivedAt), "wa": at(wake), "w": zero,
	}
}

// putAll writes rows 25 at a time.
func (r *reconcilerBench) putAll(table string, rows []map[string]types.AttributeValue) {
	r.t.Helper()
	for from := 0; from < len(rows); from += 25 {
		var puts []types.WriteRequest
		for _, item := range rows[from:min(from+25, len(rows))] {
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
		_, err := r.db.BatchWriteItem(r.t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: puts}})
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// due counts the promises whose wake time has come.
func (r *reconcilerBench) due() int {
	r.t.Helper()
	n := 0
	for after, more := "", true; more; more = after != "" {
		page, err := r.store.ScanOutbox(r.t.Context(), 0, 1, time.Now(), after, 10_000)
		if err != nil {
			r.t.Fatal(err)
		}
		n, after = n+len(page.Rows), page.Next
	}
	return n
}

// fillDay accepts events of an hour, a day ago, and applies them: each has its
// mark, and no promise any more. The comparison stands right before them.
func (r *reconcilerBench) fillDay(n int) {
	r.t.Helper()
	first := time.Now().UTC().Add(-26 * time.Hour).Truncate(time.Millisecond)
	var group errgroup.Group
	group.SetLimit(8)
	marks := make([]map[string]types.AttributeValue, n)
	for i := range n {
		row := r.row(i, first.Add(time.Duration(rand.Int64N(int64(time.Hour)))), webhook.Processed)
		group.Go(func() error {
			_, err := r.store.Accept(r.t.Context(), row, nil)
			return err
		})
		marks[i] = map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: fmt.Sprintf("mark#%s#0", row.ID)}, "sk": &types.AttributeValueMemberS{Value: "mark"},
			"at": &types.AttributeValueMemberN{Value: strconv.FormatInt(first.UnixMilli(), 10)},
		}
	}
	if err := group.Wait(); err != nil {
		r.t.Fatal(err)
	}
	r.putAll(r.store.Tables.Business, marks)
	r.leaveAudit(fmt.Sprintf(`{"from":%d}`, first.UnixMilli()))
}

const auditLease = "audit"

func (r *reconcilerBench) leaveAudit(state string) {
	r.t.Helper()
	now := time.Now()
	if _, ok, err := r.store.Lease(r.t.Context(), auditLease, "bench", now, now.Add(time.Second)); err != nil || !ok {
		r.t.Fatalf("lease: %v, error %v", ok, err)
	}
	if err := r.store.Release(r.t.Context(), auditLease, "bench", state); err != nil {
		r.t.Fatal(err)
	}
}

// auditedUpTo returns the age of the oldest event that was not compared.
func (r *reconcilerBench) auditedUpTo() time.Duration {
	r.t.Helper()
	now := time.Now()
	state, ok, err := r.store.Lease(r.t.Context(), auditLease, "bench", now, now.Add(time.Second))
	if err != nil || !ok {
		r.t.Fatalf("lease: %v, error %v", ok, err)
	}
	_, rest, _ := strings.Cut(state, `"from":`)
	digits, _, _ := strings.Cut(rest, ",")
	from, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		r.t.Fatalf("state %s: %v", state, err)
	}
	return now.Sub(time.UnixMilli(from))
}
