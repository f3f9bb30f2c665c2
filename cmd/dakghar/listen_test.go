package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dakghar/internal/delivery"
)

// Keys of these tests, made up.
const (
	partnerOld = "whsec_bGlzdGVuIHRlc3QsIHRoZSBvbGQga2V5IQ=="
	partnerNew = "whsec_bGlzdGVuIHRlc3QsIHRoZSBuZXcga2V5IQ=="
)

// listening is a running "dakghar listen" with what it printed.
type listening struct {
	t     *testing.T
	shell *shell
	url   string
	out   *bytes.Buffer
	lines *bufio.Reader
	stop  context.CancelFunc
	code  chan int
}

// listens starts the command and waits for its first line.
func listens(s *shell, args ...string) *listening {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	reading, writing := io.Pipe()
	l := &listening{t: s.t, shell: s, out: &bytes.Buffer{}, stop: stop, code: make(chan int, 1)}
	l.lines = bufio.NewReader(io.TeeReader(reading, l.out))
	a := &app{in: strings.NewReader(""), out: writing, err: writing, getenv: func(string) string { return "" }, now: s.world.Operator().Now}
	go func() {
		l.code <- a.run(ctx, append([]string{"listen", "--port", "0"}, args...))
		writing.Close()
	}()
	for !strings.Contains(l.url, "http://") {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("it ended with %q: %v", l.out, err)
		}
		_, rest, _ := strings.Cut(line, "http://")
		l.url = "http://" + strings.SplitN(rest, "/", 2)[0] + "/"
		if rest == "" {
			l.url = ""
		}
	}
	fmt.Fprintf(&s.transcript, "$ dakghar listen %s\n", strings.Join(args, " "))
	return l
}

// send makes a request, and returns the status of its answer. The command prints
// before it answers, so its output is read beside.
func (l *listening) send(method, path string, header map[string]string, body string) int {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode
}

// during runs what sends while the output is read, ends the command and notes
// what it printed.
func (l *listening) during(send func()) {
	l.t.Helper()
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, l.lines)
		read <- err
	}()
	send()
	l.stop()
	if err := <-read; err != nil {
		l.t.Error(err)
	}
	text := strings.ReplaceAll(l.out.String(), l.url, "http://127.0.0.1:PORT/")
	l.shell.transcript.WriteString(text)
	if code := <-l.code; code != exitDone {
		fmt.Fprintf(&l.shell.transcript, "(exit %d)\n", code)
	}
	l.shell.transcript.WriteString("\n")
	for _, secret := range []string{partnerOld, partnerNew} {
		if strings.Contains(text, secret) {
			l.t.Error("it shows a secret")
		}
	}
}

func signedBy(t *testing.T, m delivery.Message, at time.Time, keys ...string) map[string]string {
	t.Helper()
	var signing []delivery.SigningKey
	for _, k := range keys {
		id, text, _ := strings.Cut(k, "=")
		key, err := delivery.ParseSigningKey(id, text)
		if err != nil {
			t.Fatal(err)
		}
		signing = append(signing, key)
	}
	h, err := delivery.Sign(m, signing, at)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Proves X2 and X11 from the partner's side: what is sent verifies, what is
// changed does not, and a repeat is told by its id.
func TestListenVerifies(t *testing.T) {
	s := newShell(t)
	now, body := s.world.Clock, `{"type":"payment.succeeded","data":{"id":"pi_1","note":"डाकघर `+"\u009b"+`"}}`
	m := delivery.Message{Delivery: "dl_1", EventID: "ev_1", Attempt: 1, Body: []byte(body)}
	file := secretFile(t, partnerOld)
	requests := func(l *listening) func() {
		return func() {
			first := signedBy(t, m, now, "k2="+partnerNew, "k1="+partnerOld)
			again := m
			again.Attempt = 2
			changed := signedBy(t, m, now, "k1="+partnerOld)
			changed["dakghar-attempt"] = "3"
			half := signedBy(t, m, now, "k1="+partnerOld)
			half["webhook-signature"] = signedBy(t, m, now, "k1="+partnerNew)["webhook-signature"]
			call := signedBy(t, delivery.Message{Delivery: "dl_2", EventID: "ev_2", Attempt: 1, Body: []byte("{}")}, now, "k1="+partnerOld)
			call["idempotency-key"] = "in_1/0"
			for i, tt := range []struct {
				header map[string]string
				body   string
				want   int
			}{
				{first, body, 200},
				{signedBy(t, again, now.Add(time.Minute), "k1="+partnerOld), body, 200},
				{changed, body, 401},
				{half, body, 401},
				{signedBy(t, m, now, "k2="+partnerNew), body, 401},
				{signedBy(t, m, now.Add(-6*time.Minute), "k1="+partnerOld), body, 401},
				{call, "{}", 200},
				{nil, "not JSON \x1b[2J", 401},
			} {
				if got := l.send("POST", "hook", tt.header, tt.body); got != tt.want {
					t.Errorf("request %d: %d, want %d", i, got, tt.want)
				}
			}
		}
	}
	for _, args := range [][]string{nil, {"--json"}} {
		l := listens(s, append([]string{"--verify", "--secret-file", file, "--key-id", "k1"}, args...)...)
		l.during(requests(l))
	}
	golden := strings.ReplaceAll(s.transcript.String(), file, "secret.txt")
	s.transcript.Reset()
	s.transcript.WriteString(golden)
	s.wantGolden("listen_verify")
}

func TestListenIsAPartnerInTrouble(t *testing.T) {
	s := newShell(t)
	header := func(id string) map[string]string {
		return map[string]string{"webhook-id": id, "dakghar-event-id": "ev_1", "dakghar-attempt": "1", "dakghar-key-id": "k1"}
	}
	l := listens(s, "--fail-first", "1", "--status", "202", "--slow", "1ms")
	l.during(func() {
		for i, tt := range []struct {
			method, path, body string
			header             map[string]string
			want               int
		}{
			{"POST", "", `[1]`, header("dl_1"), 503},
			{"POST", "", `[1]`, header("dl_1"), 202},
			{"POST", "a/b", "", header("dl_2"), 503},
			{"POST", "", `"no id"`, nil, 503},
			{"GET", "", "", nil, 405},
			{"POST", "", strings.Repeat("x", listenBodyMax+1), nil, 413},
		} {
			if got := l.send(tt.method, tt.path, tt.header, tt.body); got != tt.want {
				t.Errorf("request %d: %d, want %d", i, got, tt.want)
			}
		}
	})
	text := s.transcript.String()
	s.transcript.Reset()
	s.transcript.WriteString(strings.ReplaceAll(text, strings.Repeat("x", 100), ""))
	s.wantGolden("listen_trouble")
}

// A slow partner can be ended in the middle of an answer.
func TestListenEndsWhileItIsSlow(t *testing.T) {
	s := newShell(t)
	l := listens(s, "--slow", "1h", "--json")
	ended := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url, strings.NewReader("{}"))
		if err == nil {
			_, err = http.DefaultClient.Do(req)
		}
		ended <- err
	}()
	if line, err := l.lines.ReadString('\n'); err != nil || !strings.Contains(line, `"bytes":2`) {
		t.Fatal(line, err)
	}
	l.during(func() {})
	if err := <-ended; err == nil {
		t.Error("it was answered")
	}
	if !strings.Contains(s.transcript.String(), `{"requests":1,"deliveries":0,"again":0,"refused":0,"accepted":0}`) {
		t.Error(s.transcript.String())
	}
}

func TestListenRefusesWhatMakesNoSense(t *testing.T) {
	s := newShell(t)
	for _, args := range []string{
		"--verify", "--secret-file -", "--key-id k1", "--verify --secret-file - --key-id k1 --key-id k2",
		"--port 70000", "--port -1", "--status 100", "--status 600", "--fail-first -1", "--slow -1s", "--slow soon", "extra",
	} {
		if r := s.run(partnerOld, append([]string{"listen"}, strings.Fields(args)...)...); r.code != exitUsage || r.out != "" {
			t.Errorf("listen %s: %+v", args, r)
		}
	}
	for _, args := range []string{
		"--verify --secret-file /nowhere/secret", "--verify --secret-file -", "--verify --secret-file - --key-id whsec_x",
	} {
		if r := s.run("sk_live_1", append([]string{"listen", "--port", "0"}, strings.Fields(args)...)...); r.code != exitFailed || r.out != "" {
			t.Errorf("listen %s: %+v", args, r)
		}
	}
	s.wantGolden("listen_usage")
}

func TestListenSaysThatItsPortIsTaken(t *testing.T) {
	s := newShell(t)
	l := listens(s)
	l.during(func() {
		port := strings.TrimSuffix(l.url[strings.LastIndex(l.url, ":")+1:], "/")
		r := s.quietly("", "listen", "--port", port, "--json")
		if r.code != exitFailed || !strings.Contains(r.err, `"error":"port_taken"`) || !strings.Contains(r.err, "choose another port") {
			t.Errorf("%+v", r)
		}
	})
}
