package dispatcher_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/dispatcher"
	"dakghar/internal/egress"
	"dakghar/internal/fault"
	"dakghar/internal/sim"
)

// sender returns the sender of the running product, which may reach this machine.
func sender() *dispatcher.HTTP {
	client := egress.New(egress.Config{
		AllowLoopback: true, FirstByteTimeout: 2 * time.Second, Timeout: 3 * time.Second, HeaderBytesMax: 16 << 10, BodyBytesMax: 4 << 10,
	})
	return &dispatcher.HTTP{Client: egress.Doer[dispatcher.Request, dispatcher.Response]{Client: client}, Agent: "Dakghar"}
}

func signing(t *testing.T, body []byte, extra map[string]string) func() (map[string]string, error) {
	t.Helper()
	key, err := delivery.ParseSigningKey("k1", sim.SigningText)
	if err != nil {
		t.Fatal(err)
	}
	return func() (map[string]string, error) {
		header, err := delivery.Sign(delivery.Message{Delivery: "dl_1", EventID: "ev_1", Attempt: 1, Body: body}, []delivery.SigningKey{key}, sim.Start)
		for name, value := range extra {
			header[name] = value
		}
		return header, err
	}
}

func subscribed(address string, hosts ...string) delivery.Subscription {
	return delivery.Subscription{ID: "sub_1", Target: delivery.Target{Kind: delivery.HTTP, URL: address, RedirectHosts: hosts}}
}

// The bytes that are signed are the bytes on the wire, whatever they are, captured
// below HTTP. Proves X2, X3, T6.
func TestTheSignedBytesAreTheBytesOnTheWire(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", `{"a":1}`, "\x00\xff\r\n\r\nPOST / HTTP/1.1\r\n", strings.Repeat("ü", 40_000)} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		captured := make(chan []byte, 1)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			captured <- wire(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		}()
		answer, err := sender().Send(t.Context(), subscribed("http://"+listener.Addr().String()+"/hook"), []byte(body), signing(t, []byte(body), nil))
		_ = listener.Close()
		if err != nil || answer.Status != 204 {
			t.Fatalf("answer %+v, error %v", answer, err)
		}
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(<-captured)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(request.Body)
		if err != nil || string(got) != body {
			t.Errorf("%d bytes were signed, %d are on the wire: %v", len(body), len(got), err)
		}
		if _, err := delivery.Verify(sim.Flat(request.Header), got, keys(t), sim.Start, time.Minute); err != nil {
			t.Errorf("what is on the wire does not verify: %v", err)
		}
		if request.URL.String() != "/hook" {
			t.Errorf("the address on the wire is %s", request.URL)
		}
	}
}

// wire reads one whole request as it is.
func wire(conn net.Conn) []byte {
	var raw bytes.Buffer
	reader := bufio.NewReader(io.TeeReader(conn, &raw))
	request, err := http.ReadRequest(reader)
	if err == nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
	return raw.Bytes()
}

// What partners' servers can do to us ends as an attempt with a code, in bounded
// time and memory. Proves X5, X9.
func TestMisbehavingPartners(t *testing.T) {
	t.Parallel()
	bomb := &bytes.Buffer{}
	z := gzip.NewWriter(bomb)
	_, _ = z.Write(make([]byte, 2<<20))
	_ = z.Close()
	tests := []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		status int
		kind   fault.Kind // empty: no error
		code   string
	}{
		{"a body beyond the bound", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 64<<10)) }, 200, fault.Theirs, "egress_body_too_large"},
		{"a compressed bomb is not unpacked", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		}, 200, "", ""},
		{"headers without end", func(w http.ResponseWriter, _ *http.Request) {
			for n := range 2000 {
				w.Header().Set(fmt.Sprint("X-", n), strings.Repeat("x", 100))
			}
		}, 0, fault.Theirs, "egress_headers_too_large"},
		{"a Content-Length that is not its own", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
			_ = conn.Close()
		}, 200, fault.Theirs, "egress_reset"},
		{"a reset before the answer", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_ = conn.Close()
		}, 0, fault.Theirs, "egress_reset"},
		{"a redirect to itself, for ever", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusTemporaryRedirect) }, 307, fault.Permanent, "redirects_too_many"},
		{"a redirect to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1/", http.StatusTemporaryRedirect)
		}, 307, fault.Permanent, "redirect_refused"},
		{"a redirect with credentials", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://u:p@"+r.Host+"/", http.StatusTemporaryRedirect)
		}, 307, fault.Permanent, "redirect_refused"},
		{"a redirect with a token", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/?access_token=1", http.StatusPermanentRedirect)
		}, 308, fault.Permanent, "redirect_refused"},
		{"a redirect that turns POST into GET is an answer", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
		}, 301, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(tt.answer))
			defer server.Close()
			answer, err := sender().Send(t.Context(), subscribed(server.URL), []byte("{}"), signing(t, []byte("{}"), nil))
			got := [3]string{fmt.Sprint(answer.Status), string(fault.KindOf(err)), fault.CodeOf(err)}
			if err == nil {
				got[1], got[2] = "", ""
			}
			if diff := cmp.Diff([3]string{fmt.Sprint(tt.status), string(tt.kind), tt.code}, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

// A redirect that may be followed keeps method, bytes and identity, and is signed
// anew. Proves X3, X9.
func TestAnAllowedRedirectIsFollowedAndSigned(t *testing.T) {
	t.Parallel()
	var arrived []string
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, err := delivery.Verify(sim.Flat(r.Header), body, keys(t), sim.Start, time.Minute)
		arrived = append(arrived, fmt.Sprint(r.Method, " ", string(body), " ", err))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer second.Close()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, second.URL+"/moved", http.StatusPermanentRedirect)
	}))
	defer first.Close()
	host, err := url.Parse(second.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := sender().Send(t.Context(), subscribed(first.URL, host.Host), []byte(`{"a":1}`), signing(t, []byte(`{"a":1}`), nil))
	if err != nil || answer.Status != http.StatusAccepted || answer.Redirects != 1 {
		t.Errorf("answer %+v, error %v", answer, err)
	}
	if diff := cmp.Diff([]string{`POST {"a":1} <nil>`}, arrived); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

// Nothing in a header can become another header, or another request.
func TestAHeaderCannotInjectAnother(t *testing.T) {
	t.Parallel()
	reached := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer server.Close()
	for name, value := range map[string]string{"x-a": "1\r\nx-evil: 1", "x-b": "1\n", "x-c\r\nx-evil": "1", "x d": "1", "": "1"} {
		_, err := sender().Send(t.Context(), subscribed(server.URL), []byte("{}"), signing(t, []byte("{}"), map[string]string{name: value}))
		if err == nil || reached {
			t.Errorf("%q: %q was sent", name, value)
		}
	}
}
