// Package wiretest lets one conformance suite speak to an embedded service and
// to another implementation of the same service.
//
// The embedded service is served over an in-memory network inside a
// [synctest] bubble: real HTTP, the real SDK client, but the clock is the
// bubble's, so a check that waits twelve hours takes none. The other
// implementation is moto, named by the environment variable MOTO_URL; there the
// same waits are real, so checks keep them to seconds or say that they need the
// bubble's clock. Every known difference is listed with a reason, and a listed
// difference that is gone fails the test, so that the lists stay true.
//
// It is for tests only and holds no test of its own.
package wiretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Endpoint is where a suite sends its calls.
type Endpoint struct {
	URL    string
	Client *http.Client
}

// Check is one statement about a service.
type Check struct {
	// Name is the statement.
	Name string
	// Slow is set when the check waits longer than real time allows: it then
	// runs in the bubble only.
	Slow bool
	// Run fails when the statement is false of the service behind the endpoint.
	Run func(t testing.TB, e Endpoint)
}

// Embedded runs every check on a fresh handler, each in a bubble of its own.
// newHandler is called inside the bubble.
func Embedded(t *testing.T, newHandler func(testing.TB) http.Handler, checks []Check) {
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.Run(t, Serve(t, newHandler(t)))
			})
		})
	}
}

// Serve starts the handler on an in-memory network until the test ends.
func Serve(t testing.TB, h http.Handler) Endpoint {
	l := &listener{conns: make(chan net.Conn), done: make(chan struct{})}
	server := httptest.NewUnstartedServer(h)
	if err := server.Listener.Close(); err != nil {
		t.Fatalf("close the network listener that is not needed: %v", err)
	}
	server.Listener = l
	server.Start()
	transport := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return Endpoint{URL: "http://stack.invalid", Client: &http.Client{Transport: readOnly{transport}}}
}

// Moto runs the checks against the moto server at MOTO_URL, emptied before each
// check. differs maps the names of checks that moto is known to fail to the
// reason. It skips the test when MOTO_URL is not set.
func Moto(t *testing.T, checks []Check, differs map[string]string) {
	url := strings.TrimSuffix(os.Getenv("MOTO_URL"), "/")
	if url == "" {
		t.Skip("MOTO_URL is not set: start moto_server and name its URL to compare the embedded service with it")
	}
	for name := range differs {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == name }) {
			t.Errorf("the list of differences names no check: %q", name)
		}
	}
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			if c.Slow {
				t.Skip("waits longer than a test may with a real clock")
			}
			resetMoto(t, url)
			e := Endpoint{URL: url, Client: &http.Client{Transport: readOnly{http.DefaultTransport}}}
			reason, known := differs[c.Name]
			if !known {
				c.Run(t, e)
				return
			}
			if failure := failureOf(t, func(tb testing.TB) { c.Run(tb, e) }); failure == "" {
				t.Errorf("moto passes now, so the difference is out of date: %s", reason)
			} else {
				t.Skipf("moto differs as listed: %s\n%s", reason, failure)
			}
		})
	}
}

func resetMoto(t *testing.T, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/moto-api/reset", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("empty moto: %v", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("empty moto: HTTP %d", answer.StatusCode)
	}
}

// Wait lets d pass on the clock of the endpoint: at once in a bubble, really
// against another server.
func Wait(d time.Duration) { <-time.After(d) }

// failureOf runs f and returns how it failed, or nothing.
func failureOf(t testing.TB, f func(testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return strings.Join(r.failures, "\n")
}

// recorder is a [testing.TB] that keeps failures instead of reporting them.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Failed() bool { return len(r.failures) > 0 }

func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) FailNow() {
	r.Error("failed")
	runtime.Goexit()
}

// readOnly hides every method of a request's body but Read and Close.
//
// The SDK closes the body as soon as the answer's head is there, and its body's
// WriteTo then returns io.EOF as an error (smithy-go v1.28.9). When the server
// was faster than the client's own last look at the body, net/http takes that
// for a failed request and closes the connection, and an answer longer than its
// buffer of 4 KiB breaks off with "use of closed network connection". Read
// returns io.EOF as it should.
type readOnly struct{ http.RoundTripper }

func (t readOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return t.RoundTripper.RoundTrip(r)
}

// listener hands in-memory connections from dial to Accept.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, errors.New("the in-memory server is closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, io.EOF
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr {
	near, far := net.Pipe()
	_, _ = near.Close(), far.Close()
	return near.LocalAddr()
}
