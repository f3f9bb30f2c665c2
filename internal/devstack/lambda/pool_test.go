package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/lambda"
)

var bootstrap string // built once by TestMain

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bootstrap")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bootstrap = filepath.Join(dir, "bootstrap")
	build := exec.Command("go", "build", "-o", bootstrap, "./testdata/bootstrap")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the bootstrap:", err)
		return 1
	}
	return m.Run()
}

// output collects what the sandboxes print; safe for many writers.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// counter hands out request ids that a test can foresee.
func counter() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
	}
}

func config() lambda.Config {
	return lambda.Config{
		Name: "Under", ARN: "arn:aws:lambda:us-east-1:000000000000:function:Under", Handler: "functions/under",
		Bootstrap: bootstrap, TaskRoot: filepath.Dir(bootstrap), Timeout: 20 * time.Second, Now: time.Now, NewID: counter(),
	}
}

func newPool(t *testing.T, change func(*lambda.Config)) (*lambda.Pool, *output) {
	t.Helper()
	log, cfg := &output{}, config()
	cfg.Log = log
	if change != nil {
		change(&cfg)
	}
	pool, err := lambda.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, log
}

// gate is where functions on "gate" orders wait for the test.
type gate struct {
	*httptest.Server
	arrived chan int // pids
	open    chan struct{}
}

func newGate(t *testing.T) *gate {
	g := &gate{arrived: make(chan int, 100), open: make(chan struct{})}
	g.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		pid, err := strconv.Atoi(r.URL.Query().Get("pid"))
		if err != nil {
			t.Errorf("gate: %v", err)
		}
		g.arrived <- pid
		select {
		case <-g.open:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(g.Server.Close)
	return g
}

func (g *gate) order(do string) string { return fmt.Sprintf(`{"do":%q,"gate":%q}`, do, g.URL) }

type answer struct {
	Response      string
	FunctionError string
	Err           error
}

func invoke(t *testing.T, f lambda.Function, payload string) answer {
	t.Helper()
	response, functionError, err := f.Invoke(t.Context(), []byte(payload))
	return answer{string(response), functionError, err}
}

func pidOf(t *testing.T, a answer) int {
	t.Helper()
	var body struct{ PID int }
	if a.Err != nil || a.FunctionError != "" {
		t.Fatalf("invocation failed: %+v", a)
	}
	if err := json.Unmarshal([]byte(a.Response), &body); err != nil {
		t.Fatal(err)
	}
	return body.PID
}

// later runs an invocation beside the test.
func later(t *testing.T, f lambda.Function, payload string) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		response, functionError, err := f.Invoke(t.Context(), []byte(payload))
		done <- answer{string(response), functionError, err}
	}()
	return done
}

func TestASandboxGetsLambdasEnvironmentAndContextAndNothingOfOurs(t *testing.T) {
	t.Setenv("LEAK", "must not reach a sandbox")
	now := time.Now()
	pool, _ := newPool(t, func(c *lambda.Config) {
		c.MemoryMB = 512
		c.Env = map[string]string{"INBOX_TABLE": "local-Inbox", "AWS_ENDPOINT_URL": "http://127.0.0.1:8081"}
		c.Now = func() time.Time { return now }
	})
	var got struct {
		Env                             map[string]string
		RequestID, FunctionARN, TraceID string
		Deadline                        int64
		Directory                       string
	}
	if err := json.Unmarshal([]byte(invoke(t, pool, `{"do":"report"}`).Response), &got); err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(bootstrap)
	delete(got.Env, "AWS_LAMBDA_RUNTIME_API") // a free port
	delete(got.Env, "PWD")                    // set by os/exec from the directory
	trace := fmt.Sprintf("Root=1-%08x-000000000000400080000000;Parent=0000000000004000;Sampled=0", now.Unix())
	want := map[string]string{
		"PATH": os.Getenv("PATH"), "LANG": "en_US.UTF-8", "TZ": ":UTC",
		"_HANDLER": "functions/under", "_X_AMZN_TRACE_ID": trace,
		"LAMBDA_TASK_ROOT": root, "LAMBDA_RUNTIME_DIR": root,
		"AWS_LAMBDA_FUNCTION_NAME": "Under", "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
		"AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand", "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/Under", "AWS_LAMBDA_LOG_STREAM_NAME": "local",
		"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"INBOX_TABLE": "local-Inbox", "AWS_ENDPOINT_URL": "http://127.0.0.1:8081",
	}
	if diff := cmp.Diff(want, got.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if want := now.Add(20 * time.Second).UnixMilli(); got.Deadline != want {
		t.Errorf("deadline %d, want %d", got.Deadline, want)
	}
	if got.RequestID != "00000000-0000-4000-8000-000000000001" || got.FunctionARN != "arn:aws:lambda:us-east-1:000000000000:function:Under" {
		t.Errorf("context: %s %s", got.RequestID, got.FunctionARN)
	}
	if got.TraceID != trace || got.Directory != root {
		t.Errorf("trace %q in %q", got.TraceID, got.Directory)
	}
}

func TestALoneCallerNeverMakesASecondProcess(t *testing.T) {
	pool, _ := newPool(t, func(c *lambda.Config) { c.SettleTime = time.Minute })
	first := pidOf(t, invoke(t, pool, `{}`))
	for range 300 {
		if pid := pidOf(t, invoke(t, pool, `{}`)); pid != first {
			t.Fatalf("process %d answered, want %d", pid, first)
		}
	}
	if got := pool.Processes(); !cmp.Equal(got, []lambda.Process{{PID: first}}) {
		t.Errorf("processes %v", got)
	}
}

func TestConcurrentInvocationsEachHaveAProcessOfTheirOwn(t *testing.T) {
	pool, _ := newPool(t, nil)
	g := newGate(t)
	const n = 6
	answers := make([]<-chan answer, n)
	for i := range answers {
		answers[i] = later(t, pool, g.order("gate"))
	}
	pids := map[int]bool{}
	for range n {
		pids[<-g.arrived] = true
	}
	for _, p := range pool.Processes() {
		if !p.Busy {
			t.Errorf("process %d is idle", p.PID)
		}
	}
	close(g.open)
	for _, a := range answers {
		pidOf(t, <-a)
	}
	if len(pids) != n {
		t.Errorf("%d processes ran %d invocations at once", len(pids), n)
	}
}

func TestBeyondTheMostSandboxesInvocationsWaitTheirTurn(t *testing.T) {
	pool, _ := newPool(t, func(c *lambda.Config) { c.SandboxesMax = 1; c.SettleTime = time.Minute })
	g := newGate(t)
	first := later(t, pool, g.order("gate"))
	pid := <-g.arrived
	second := later(t, pool, `{}`)
	close(g.open)
	if a, b := pidOf(t, <-first), pidOf(t, <-second); a != pid || b != pid {
		t.Errorf("answered by %d and %d, want %d", a, b, pid)
	}
}

func TestBeyondTheEagerSandboxesAnInvocationIsPatient(t *testing.T) {
	pool, _ := newPool(t, func(c *lambda.Config) { c.EagerMax = 1; c.Patience = time.Hour; c.SettleTime = time.Minute })
	g := newGate(t)
	first := later(t, pool, g.order("gate"))
	pid := <-g.arrived
	second := later(t, pool, `{}`)
	close(g.open)
	if a, b := pidOf(t, <-first), pidOf(t, <-second); a != pid || b != pid {
		t.Errorf("answered by %d and %d, want %d", a, b, pid)
	}
}

func TestPatienceEndsWithASandboxOfItsOwn(t *testing.T) {
	pool, _ := newPool(t, func(c *lambda.Config) { c.EagerMax = 1; c.Patience = time.Millisecond; c.SettleTime = time.Minute })
	g := newGate(t)
	first := later(t, pool, g.order("gate"))
	pid := <-g.arrived
	if other := pidOf(t, invoke(t, pool, `{}`)); other == pid {
		t.Error("the process that was busy answered")
	}
	close(g.open)
	<-first
}

func TestReservedConcurrencyRefusesTheNextOne(t *testing.T) {
	one := 1
	pool, _ := newPool(t, func(c *lambda.Config) { c.Reserved = &one })
	g := newGate(t)
	first := later(t, pool, g.order("gate"))
	<-g.arrived
	var throttled *lambda.ThrottledError
	if err := invoke(t, pool, `{}`).Err; !errors.As(err, &throttled) || *throttled != (lambda.ThrottledError{Function: "Under", Reserved: 1}) {
		t.Errorf("error %v, want a ThrottledError", err)
	}
	close(g.open)
	pidOf(t, <-first)
	pidOf(t, invoke(t, pool, `{}`))
}

func TestTheDeadlineKillsTheProcessAndAnswersTheCaller(t *testing.T) {
	pool, log := newPool(t, func(c *lambda.Config) { c.Timeout = time.Second })
	before := pidOf(t, invoke(t, pool, `{}`))
	got := invoke(t, pool, `{"do":"hang"}`)
	want := answer{
		Response:      `{"errorMessage":"RequestId: 00000000-0000-4000-8000-000000000002 Error: Task timed out after 1.00 seconds","errorType":"Sandbox.Timedout"}`,
		FunctionError: "Unhandled",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if after := pidOf(t, invoke(t, pool, `{}`)); after == before {
		t.Error("the process that hung was used again")
	}
	pool.Close()
	if err := syscall.Kill(before, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d lives on: %v", before, err)
	}
	if !strings.Contains(log.String(), "[Under] hanging\n") || !strings.Contains(log.String(), "[Under] RequestId: 00000000-0000-4000-8000-000000000002 Error: Task timed out") {
		t.Errorf("log:\n%s", log)
	}
}

func TestAHandlersErrorKeepsTheProcessAndAPanicReplacesIt(t *testing.T) {
	pool, _ := newPool(t, nil)
	before := pidOf(t, invoke(t, pool, `{}`))
	want := answer{Response: `{"errorMessage":"refused on order","errorType":"errorString"}`, FunctionError: "Unhandled"}
	if diff := cmp.Diff(want, invoke(t, pool, `{"do":"error"}`)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if pid := pidOf(t, invoke(t, pool, `{}`)); pid != before {
		t.Errorf("process %d after an error, want %d", pid, before)
	}
	got := invoke(t, pool, `{"do":"panic"}`)
	var doc struct{ ErrorMessage, ErrorType string }
	if err := json.Unmarshal([]byte(got.Response), &doc); err != nil {
		t.Fatal(err)
	}
	if got.FunctionError != "Unhandled" || doc.ErrorMessage != "on order" || doc.ErrorType != "string" {
		t.Errorf("panic: %+v", got)
	}
	if pid := pidOf(t, invoke(t, pool, `{}`)); pid == before {
		t.Error("the process that panicked was used again")
	}
}

func TestAnExitInTheMiddleFailsOnlyThatInvocation(t *testing.T) {
	pool, log := newPool(t, nil)
	want := answer{
		Response:      `{"errorMessage":"RequestId: 00000000-0000-4000-8000-000000000001 Error: Runtime exited with error: exit status 3","errorType":"Runtime.ExitError"}`,
		FunctionError: "Unhandled",
	}
	if diff := cmp.Diff(want, invoke(t, pool, `{"do":"exit"}`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pidOf(t, invoke(t, pool, `{}`))
	if !strings.Contains(log.String(), "exited: exit status 3") {
		t.Errorf("log:\n%s", log)
	}
}

// Proves T4: a SIGKILL in the middle of an invocation is seen by the caller as a failure.
func TestKillEndsTheChosenSandboxes(t *testing.T) {
	pool, _ := newPool(t, nil)
	g := newGate(t)
	a := later(t, pool, g.order("gate"))
	first := <-g.arrived
	b := later(t, pool, g.order("gate"))
	second := <-g.arrived
	if hit := pool.Kill(first); hit != 1 {
		t.Errorf("hit %d sandboxes, want 1", hit)
	}
	if got := <-a; !strings.Contains(got.Response, "Runtime exited with error: signal: killed") || got.FunctionError != "Unhandled" {
		t.Errorf("killed invocation: %+v", got)
	}
	if got := pool.Processes(); !cmp.Equal(got, []lambda.Process{{PID: second, Busy: true}}) {
		t.Errorf("processes %v", got)
	}
	if hit := pool.Kill(); hit != 1 {
		t.Errorf("hit %d sandboxes, want 1", hit)
	}
	if got := <-b; got.FunctionError != "Unhandled" {
		t.Errorf("killed invocation: %+v", got)
	}
	if pid := pidOf(t, invoke(t, pool, `{}`)); pid == first || pid == second {
		t.Errorf("a killed process answered")
	}
}

func TestAFailedStartIsToldToTheCallerInWords(t *testing.T) {
	for name, test := range map[string]struct {
		start string
		want  answer
		log   string
	}{
		"exit before the first request for work": {
			start: "exit",
			want:  answer{Response: `{"errorMessage":"init failed: Runtime exited with error: exit status 7","errorType":"Runtime.ExitError"}`, FunctionError: "Unhandled"},
			log:   "[Under] cannot read my configuration\n[Under] init failed: Runtime.ExitError: init failed: Runtime exited with error: exit status 7\n",
		},
		"init/error": {
			start: "init-error",
			want:  answer{Response: `{"errorMessage":"INBOX_TABLE is not set","errorType":"Config.Missing"}`, FunctionError: "Unhandled"},
			log:   "[Under] init failed: Config.Missing: INBOX_TABLE is not set\n",
		},
		"never asks for work": {
			start: "hang",
			want:  answer{Response: `{"errorMessage":"Init timed out after 1.00 seconds","errorType":"Sandbox.Timedout"}`, FunctionError: "Unhandled"},
			log:   "[Under] init failed: Sandbox.Timedout: Init timed out after 1.00 seconds\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool, log := newPool(t, func(c *lambda.Config) {
				c.Env = map[string]string{"START": test.start}
				if test.start == "hang" {
					c.InitTimeout = time.Second
				}
			})
			if diff := cmp.Diff(test.want, invoke(t, pool, `{}`)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.log, log.String()); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if got := pool.Processes(); len(got) != 0 {
				t.Errorf("processes %v, want none", got)
			}
		})
	}
}

func TestABinaryThatCannotRunIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "bootstrap")
	pool, _ := newPool(t, func(c *lambda.Config) { c.Bootstrap = missing })
	got := invoke(t, pool, `{}`)
	if got.FunctionError != "Unhandled" || !strings.Contains(got.Response, "Runtime.InvalidEntrypoint") || !strings.Contains(got.Response, missing) {
		t.Errorf("%+v", got)
	}
}

func TestASandboxThatDoesNotAskAgainIsNotWaitedFor(t *testing.T) {
	pool, _ := newPool(t, func(c *lambda.Config) {
		c.Env = map[string]string{"START": "linger"}
		c.SettleTime = time.Millisecond
	})
	g := newGate(t)
	first := pidOf(t, invoke(t, pool, g.order("")))
	if second := pidOf(t, invoke(t, pool, g.order(""))); second == first {
		t.Error("the lingering process answered twice")
	}
	close(g.open)
}

func TestPayloadsOverSixMegabytesAreRefused(t *testing.T) {
	pool, _ := newPool(t, nil)
	if err := invoke(t, pool, strings.Repeat(" ", lambda.PayloadBytesMax+1)).Err; !errors.Is(err, lambda.ErrPayloadTooLarge) {
		t.Errorf("request: error %v", err)
	}
	if got := invoke(t, pool, fmt.Sprintf(`{"do":"big","n":%d}`, lambda.PayloadBytesMax-2)); len(got.Response) != lambda.PayloadBytesMax || got.FunctionError != "" {
		t.Errorf("largest response: %d bytes, %q", len(got.Response), got.FunctionError)
	}
	want := answer{Response: `{"errorMessage":"Response payload size exceeded maximum allowed payload size (6291556 bytes).","errorType":"Function.ResponseSizeTooLarge"}`, FunctionError: "Unhandled"}
	if diff := cmp.Diff(want, invoke(t, pool, fmt.Sprintf(`{"do":"big","n":%d}`, lambda.PayloadBytesMax))); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestACallerWhoLeavesDoesNotStopTheFunction(t *testing.T) {
	pool, _ := newPool(t, nil)
	g := newGate(t)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, _, err := pool.Invoke(ctx, []byte(g.order("gate")))
		left <- err
	}()
	pid := <-g.arrived
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got := pool.Processes(); !cmp.Equal(got, []lambda.Process{{PID: pid, Busy: true}}) {
		t.Errorf("processes %v", got)
	}
	close(g.open)
}

func TestCloseLetsAHookRunAndLeavesNoProcess(t *testing.T) {
	pool, log := newPool(t, func(c *lambda.Config) {
		c.Env = map[string]string{"START": "sigterm"}
		c.Grace = 20 * time.Second
	})
	pid := pidOf(t, invoke(t, pool, `{}`))
	pool.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d lives on: %v", pid, err)
	}
	if got := log.String(); got != "[Under] flushed\n" {
		t.Errorf("log %q", got)
	}
	if err := invoke(t, pool, `{}`).Err; !errors.Is(err, lambda.ErrClosed) {
		t.Errorf("error after Close: %v", err)
	}
}

func TestOutputIsPassedOnLineByLine(t *testing.T) {
	pool, log := newPool(t, nil)
	invoke(t, pool, `{"do":"print"}`)
	pool.Close()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	slices.Sort(lines)
	want := []string{"[Under] a line on stdout", "[Under] a line without an end"}
	if diff := cmp.Diff(want, lines[:2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
