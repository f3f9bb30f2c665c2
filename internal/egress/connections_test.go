package egress_test

import (
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/egress"
)

const shortWait = 100 * time.Millisecond

// secure serves https, with HTTP/2 if asked, and returns a client that knows it.
func secure(t *testing.T, http2 bool, serve http.HandlerFunc, change func(*egress.Config)) (*httptest.Server, *egress.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(serve)
	s.EnableHTTP2, s.Config.ErrorLog = http2, quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, local(t, func(c *egress.Config) { c.Roots = roots; change(c) })
}

// HTTP/2 is spoken where it is asked for and the other side offers it; nothing
// else changes: the answer, its headers and its bounds are the same.
func TestHTTP2WhereBothSpeakIt(t *testing.T) {
	t.Parallel()
	serve := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, r.Proto+" "+r.Header.Get("Webhook-Id")+" "+string(body))
	}
	for name, tt := range map[string]struct {
		client, server bool
		want           string
	}{
		"both":             {true, true, "HTTP/2.0 dl_1 body"},
		"the server alone": {false, true, "HTTP/1.1 dl_1 body"},
		"the client alone": {true, false, "HTTP/1.1 dl_1 body"},
	} {
		s, c := secure(t, tt.server, serve, func(c *egress.Config) { c.HTTP2 = tt.client })
		got, err := c.Do(t.Context(), egress.Request{Method: "POST", URL: s.URL, Header: http.Header{"Webhook-Id": {"dl_1"}}, Body: []byte("body")})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got.Header = http.Header{"Retry-After": got.Header["Retry-After"]}
		want := egress.Response{Status: 429, Header: http.Header{"Retry-After": {"7"}}, Body: []byte(tt.want)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The bounds hold over HTTP/2, and its errors are the other side's.
func TestMisbehavingServersOverHTTP2(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"headers beyond the bound": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 6 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("a", 1<<10))
			}
		}, "theirs egress_headers_too_large"},
		"headers far beyond the bound": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 64<<10))
		}, "theirs egress_protocol"},
		"a body beyond the bound": {func(w http.ResponseWriter, _ *http.Request) {
			for range 64 {
				if _, err := io.WriteString(w, strings.Repeat("a", 1<<10)); err != nil {
					return
				}
			}
		}, "theirs egress_body_too_large"},
		"no answer":            {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "theirs egress_timeout"},
		"given up by a stream": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "theirs egress_protocol"},
	} {
		s, c := secure(t, true, tt.serve, func(c *egress.Config) {
			c.HTTP2, c.HeaderBytesMax, c.BodyBytesMax = true, 4<<10, 32<<10
			if name == "no answer" {
				c.FirstByteTimeout = shortWait
			}
		})
		if _, err := get(t.Context(), c, s.URL+"/?token=1"); verdict(err) != tt.want {
			t.Errorf("%s: %s, want %s", name, verdict(err), tt.want)
		}
	}
}

// A host sees at most so many connections; what finds none waits and gets through.
func TestConnectionsToAHostAreBounded(t *testing.T) {
	t.Parallel()
	const most, all = 3, 12
	var mu sync.Mutex
	inside, peak, peers := 0, 0, map[string]bool{}
	full, release := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		inside++
		peak, peers[r.RemoteAddr] = max(peak, inside), true
		if inside == most && len(peers) == most {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-release
		mu.Lock()
		inside--
		mu.Unlock()
	}))
	defer s.Close()
	c := local(t, func(c *egress.Config) { c.ConnectionsPerHost = most })
	var wg sync.WaitGroup
	for range all {
		wg.Go(func() {
			if _, err := get(t.Context(), c, s.URL+"/"); err != nil {
				t.Error(verdict(err))
			}
		})
	}
	<-full
	close(release)
	wg.Wait()
	if peak != most || len(peers) != most {
		t.Errorf("%d side by side over %d connections, want %d", peak, len(peers), most)
	}
}
