package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/egress"
	"dakghar/internal/fault"
)

// verdict is what a test compares of an error: whose fault, and which.
func verdict(err error) string {
	if err == nil {
		return "fine"
	}
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return "not a fault: " + err.Error()
	}
	return string(e.Kind) + " " + e.Code
}

// get asks for an address, with what must never show in an error. Every test here
// therefore proves M4 beside its own claim.
func get(ctx context.Context, c *egress.Client, address string) (egress.Response, error) {
	answer, err := c.Do(ctx, egress.Request{Method: "GET", URL: address, Header: http.Header{"Authorization": {"Bearer hunter2"}}})
	for _, secret := range []string{"hunter2", "token=", "127.0.0.1"} {
		if err != nil && strings.Contains(err.Error(), secret) {
			panic("the error repeats " + secret)
		}
	}
	return answer, err
}

// local returns a client for this machine, with short patience.
func local(t *testing.T, change ...func(*egress.Config)) *egress.Client {
	t.Helper()
	cfg := egress.Config{AllowLoopback: true, ConnectTimeout: 2 * time.Second, FirstByteTimeout: 2 * time.Second, Timeout: 5 * time.Second}
	for _, f := range change {
		f(&cfg)
	}
	c := egress.New(cfg)
	t.Cleanup(c.CloseIdle)
	return c
}

// raw serves connections by hand, so that a server can misbehave.
func raw(t *testing.T, serve func(conn net.Conn, gone <-chan struct{})) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone); l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn, gone)
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/?token=1"
}

// request reads a request's head off a connection.
func request(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			return
		}
	}
}

// Every form of an address inside is refused when it is dialled, and
// for good.
func TestAddressesInsideAreRefused(t *testing.T) {
	t.Parallel()
	c := egress.New(egress.Config{})
	for _, host := range []string{
		"127.0.0.1", "127.255.255.254", "[::1]", "localhost", "0.0.0.0", "[::]", "0.1.2.3",
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "[fc00::1]", "[fd00:ec2::254]",
		"169.254.169.254", "169.254.170.2", "[fe80::1]", "[fe80::1%25lo]", "[fec0::1]",
		"100.64.0.1", "100.100.100.200", "100.127.255.255", "168.63.129.16", "192.0.0.192", "192.0.2.1", "192.88.99.1",
		"198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"[ff02::1]", "[::ffff:127.0.0.1]", "[::ffff:8.8.8.8]", "[::ffff:a9fe:a9fe]", "[::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]",
		"[2001::1]", "[2001:db8::1]", "[2002:7f00:1::]", "[3fff::1]", "[100::1]", "[4000::1]",
	} {
		_, err := get(t.Context(), c, "https://"+host+"/?token=1")
		if diff := cmp.Diff("permanent egress_address_refused", verdict(err)); diff != "" {
			t.Errorf("%s: %s", host, diff)
		}
	}
}

// A name is checked by what it leads to: localhost is one that leads inside, and
// the listener behind it never sees a connection.
func TestANameThatLeadsInsideReachesNobody(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	address := raw(t, func(net.Conn, <-chan struct{}) { reached.Add(1) })
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/?token=1"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = get(t.Context(), egress.New(egress.Config{}), "https://localhost:"+port+"/")
	if got := verdict(err); got != "permanent egress_address_refused" || reached.Load() != 0 {
		t.Errorf("%s, %d connections", got, reached.Load())
	}
}

// Loopback that is allowed allows nothing else, least of all without TLS.
func TestLoopbackAllowsNothingElse(t *testing.T) {
	t.Parallel()
	c := local(t)
	for _, address := range []string{"http://8.8.8.8/", "http://10.0.0.1/", "http://169.254.169.254/", "https://10.0.0.1/", "https://169.254.169.254/"} {
		if _, err := get(t.Context(), c, address); verdict(err) != "permanent egress_address_refused" {
			t.Errorf("%s: %s", address, verdict(err))
		}
	}
}

func TestAddressesThatAreNotForUsAreRefused(t *testing.T) {
	t.Parallel()
	c := egress.New(egress.Config{})
	for _, address := range []string{
		"", "://", "example.com/", "/path", "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "https:///path", "https:example.com",
		"https://user@example.com/", "https://user:hunter2@example.com/", "https://example.com/#part", "https://example.com:0/", "https://example.com:70000/",
		"https://exa mple.com/", "https://example.com/\x00", "https://example.com/?" + strings.Repeat("a", 9000),
	} {
		if _, err := get(t.Context(), c, address); verdict(err) != "permanent egress_url_refused" {
			t.Errorf("%.40q: %s", address, verdict(err))
		}
	}
}

// Proves X9 as far as it is the client's: an answer comes back as it is. A redirect is an answer, cookies are not kept,
// and a second request goes over the same connection.
func TestAnAnswerIsReturnedAsItIs(t *testing.T) {
	t.Parallel()
	var peers []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peers = append(peers, r.RemoteAddr)
		body, _ := io.ReadAll(r.Body)
		http.SetCookie(w, &http.Cookie{Name: "kept", Value: "no"})
		w.Header().Set("Location", "http://127.0.0.1:1/inside")
		w.WriteHeader(http.StatusTemporaryRedirect)
		fmt.Fprintf(w, "%s %s %s %s %q", r.Method, r.URL.RawQuery, r.Header.Get("Authorization"), body, r.Header.Get("Cookie")+r.Header.Get("Accept-Encoding"))
	}))
	defer s.Close()
	c := local(t)
	want := egress.Response{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/inside"}}, Body: []byte(`POST a=1 Bearer k body ""`)}
	for range 2 {
		got, err := c.Do(t.Context(), egress.Request{
			Method: "POST", URL: s.URL + "/?a=1", Header: http.Header{"Authorization": {"Bearer k"}}, Body: []byte("body"),
		})
		if err != nil {
			t.Fatal(err)
		}
		got.Header = http.Header{"Location": got.Header["Location"]}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if len(peers) != 2 || peers[0] != peers[1] {
		t.Errorf("the connection was not used again: %v", peers)
	}
}

// The environment does not choose the way.
func TestNoProxyIsUsed(t *testing.T) {
	var used atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { used.Add(1) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	_, err := get(t.Context(), local(t), "http://127.0.0.2:1/")
	if verdict(err) != "theirs egress_unreachable" || used.Load() != 0 {
		t.Errorf("%s, the proxy was used %d times", verdict(err), used.Load())
	}
}

// Whatever the other side does, the answer is an error of its own, of
// kind theirs, in bounded time and memory.
func TestMisbehavingServers(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\n"
	soon := func(c *egress.Config) { c.FirstByteTimeout, c.Timeout = 100*time.Millisecond, 200*time.Millisecond }
	whole := func(c *egress.Config) { c.Timeout = 100 * time.Millisecond }
	for name, tt := range map[string]struct {
		serve  func(conn net.Conn, gone <-chan struct{})
		change func(*egress.Config)
		want   string
	}{
		"no first byte": {func(conn net.Conn, gone <-chan struct{}) { request(conn); <-gone }, soon, "theirs egress_timeout"},
		"headers that come too slowly": {func(conn net.Conn, gone <-chan struct{}) {
			request(conn)
			io.WriteString(conn, head+"X-Slow: ")
			<-gone
		}, soon, "theirs egress_timeout"},
		"a body that comes too slowly": {func(conn net.Conn, gone <-chan struct{}) {
			request(conn)
			io.WriteString(conn, head+"Content-Length: 5\r\n\r\nab")
			<-gone
		}, whole, "theirs egress_timeout"},
		"endless headers": {func(conn net.Conn, _ <-chan struct{}) {
			request(conn)
			io.WriteString(conn, head)
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(conn, "X-%d: %s\r\n", i, strings.Repeat("a", 1000)); err != nil {
					return
				}
			}
		}, nil, "theirs egress_headers_too_large"},
		"endless interim answers": {func(conn net.Conn, _ <-chan struct{}) {
			request(conn)
			for {
				if _, err := io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"); err != nil {
					return
				}
			}
		}, soon, "theirs egress_headers_too_large"},
		"an endless body": {func(conn net.Conn, _ <-chan struct{}) {
			request(conn)
			io.WriteString(conn, head+"Transfer-Encoding: chunked\r\n\r\n")
			for {
				if _, err := io.WriteString(conn, "400\r\n"+strings.Repeat("a", 1024)+"\r\n"); err != nil {
					return
				}
			}
		}, nil, "theirs egress_body_too_large"},
		"a body that is announced as huge": {func(conn net.Conn, _ <-chan struct{}) {
			request(conn)
			io.WriteString(conn, head+"Content-Length: 99999999999\r\n\r\n")
		}, nil, "theirs egress_body_too_large"},
		"a body that ends early": {func(conn net.Conn, _ <-chan struct{}) {
			request(conn)
			io.WriteString(conn, head+"Content-Length: 5\r\n\r\nab")
		}, nil, "theirs egress_reset"},
		"closed before an answer": {func(conn net.Conn, _ <-chan struct{}) { request(conn) }, nil, "theirs egress_reset"},
		"closed at once":          {func(net.Conn, <-chan struct{}) {}, nil, "theirs egress_reset"},
		"reset before an answer":  {func(conn net.Conn, _ <-chan struct{}) { request(conn); reset(conn) }, nil, "theirs egress_reset"},
		"reset within an answer": {func(conn net.Conn, _ <-chan struct{}) {
			request(conn)
			io.WriteString(conn, head+"Content-Length: 5\r\n\r\nab")
			reset(conn)
		}, nil, "theirs egress_reset"},
		"not HTTP": {func(conn net.Conn, _ <-chan struct{}) { request(conn); io.WriteString(conn, "220 mail ready\r\n\r\n") }, nil, "theirs egress_protocol"},
		"another protocol from here on": {func(conn net.Conn, _ <-chan struct{}) {
			request(conn)
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		}, nil, "theirs egress_protocol"},
		"two lengths": {func(conn net.Conn, _ <-chan struct{}) {
			request(conn)
			io.WriteString(conn, head+"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc")
		}, nil, "theirs egress_protocol"},
		"a status that is none": {func(conn net.Conn, _ <-chan struct{}) {
			request(conn)
			io.WriteString(conn, "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n")
		}, nil, "theirs egress_protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := func(*egress.Config) {}
			if tt.change != nil {
				change = tt.change
			}
			_, err := get(t.Context(), local(t, change), raw(t, tt.serve))
			if diff := cmp.Diff(tt.want, verdict(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// reset has the other side see a reset and not an end.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
}

// A body of exactly the bound is taken, one byte more is not.
func TestTheBoundOfABody(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // in chunks: nothing announces the length
		io.WriteString(w, strings.Repeat("a", len(r.URL.Path)))
	}))
	defer s.Close()
	c := local(t, func(c *egress.Config) { c.BodyBytesMax = 10 })
	for path, want := range map[string]string{"/123456789": "fine", "/1234567890": "theirs egress_body_too_large"} {
		if _, err := get(t.Context(), c, s.URL+path); verdict(err) != want {
			t.Errorf("%s: %s, want %s", path, verdict(err), want)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if _, err := get(t.Context(), local(t), "http://"+address+"/"); verdict(err) != "theirs egress_unreachable" {
		t.Error(verdict(err))
	}
}

// A name that nobody has is the other side's trouble, not ours for good: it may
// be known tomorrow.
func TestANameThatNobodyHas(t *testing.T) {
	t.Parallel()
	_, err := get(t.Context(), local(t), "https://nobody.invalid/")
	if got := verdict(err); got != "theirs egress_name_unknown" && got != "theirs egress_timeout" {
		t.Error(got)
	}
}

// TLS that is old, meant for another name or vouched for by nobody is
// refused, and so is a server that speaks none.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	defer s.Close()
	old := httptest.NewUnstartedServer(s.Config.Handler)
	old.Config.ErrorLog = quiet()
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	defer old.Close()
	plain := httptest.NewServer(s.Config.Handler)
	defer plain.Close()

	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	known := local(t, func(c *egress.Config) { c.Roots = roots })
	for name, tt := range map[string]struct {
		client  *egress.Client
		address string
		want    string
	}{
		"as it should be":        {known, s.URL, "fine"},
		"vouched for by nobody":  {local(t), s.URL, "theirs egress_tls"},
		"meant for another name": {known, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), "theirs egress_tls"},
		"too old":                {known, old.URL, "theirs egress_tls"},
		"none":                   {known, "https://" + strings.TrimPrefix(plain.URL, "http://"), "theirs egress_tls"},
	} {
		got, err := get(t.Context(), tt.client, tt.address)
		if diff := cmp.Diff(tt.want, verdict(err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err == nil && string(got.Body) != "HTTP/1.1" {
			t.Errorf("%s: spoke %s", name, got.Body)
		}
	}
}

// A caller that stops is no fault of the other side.
func TestACallerThatStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	address := raw(t, func(conn net.Conn, gone <-chan struct{}) { request(conn); cancel(); <-gone })
	_, err := get(ctx, local(t), address)
	if verdict(err) != "ours egress_stopped" || !errors.Is(err, context.Canceled) {
		t.Errorf("%s: %v", verdict(err), err)
	}
}

// A connection that the other side closed while it lay idle is replaced, for a
// request that may be repeated.
func TestAClosedConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	address := raw(t, func(conn net.Conn, _ <-chan struct{}) {
		connections.Add(1)
		request(conn)
		io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n") // and closes without a word
	})
	c := local(t)
	for range 3 {
		if _, err := get(t.Context(), c, address); verdict(err) != "fine" {
			t.Error(verdict(err))
		}
	}
	if connections.Load() != 3 {
		t.Errorf("%d connections", connections.Load())
	}
}

// What a part of the pipeline declares for itself, a client serves.
func TestADoerSpeaksItsCallersWords(t *testing.T) {
	t.Parallel()
	type question struct {
		Method, URL string
		Header      http.Header
		Body        []byte
	}
	type answer struct {
		Status int
		Header http.Header
		Body   []byte
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer s.Close()
	got, err := egress.Doer[question, answer]{Client: local(t)}.Do(t.Context(), question{Method: "GET", URL: s.URL})
	if err != nil || got.Status != http.StatusTeapot {
		t.Errorf("%+v, %v", got, err)
	}
}

// A host that the caller refuses is never asked, however its name is written and
// whatever it resolves to; another port of it may be.
func TestARefusedHostIsNeverAsked(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	served := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(served.Close)
	own := strings.TrimPrefix(served.URL, "http://")
	c := local(t, func(cfg *egress.Config) { cfg.Refused = []string{"hooks.own.test", own} })
	for _, address := range []string{
		"https://hooks.own.test/in/stripe/live", "https://HOOKS.own.test:8443/", "https://hooks.own.test./in", "https://hooks.own.test../in", served.URL, served.URL + "/in/stripe/live",
	} {
		if _, err := get(t.Context(), c, address); verdict(err) != "permanent egress_host_refused" {
			t.Errorf("%s: %s", address, verdict(err))
		}
	}
	// A name that the resolver would be asked for in another form is no name.
	for _, address := range []string{"https://\uff48ooks.own.test/", "https://%EF%BD%88ooks.own.test/", "https://hooks\u3002own.test/", "https://hoo\u00adks.own.test/"} {
		if _, err := get(t.Context(), c, address); verdict(err) != "permanent egress_url_refused" {
			t.Errorf("%q: %s", address, verdict(err))
		}
	}
	if reached.Load() != 0 {
		t.Errorf("%d requests arrived", reached.Load())
	}
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(other.Close)
	if _, err := get(t.Context(), c, other.URL); err != nil {
		t.Errorf("another port: %s", verdict(err))
	}
}
