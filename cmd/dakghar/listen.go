package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"dakghar/internal/delivery"
	"dakghar/internal/operator"
	"dakghar/internal/signature"
)

type listenFlags struct {
	port, status, failFirst int
	verify                  bool
	files, ids              []string
	slow                    time.Duration
}

func (a *app) listenCommand() *cobra.Command {
	var f listenFlags
	c := a.command(&cobra.Command{
		Use:   "listen",
		Short: "Be a partner: print the deliveries that arrive, and verify them",
		Long: `Listen on the loopback interface as a partner's receiver does, and print each
request. It needs no stack. With --verify it checks dakghar-signature and
webhook-signature, and answers 401 to what does not verify.

A delivery that comes again is told by its id: that is how a partner knows a
repeat from a new one. Ctrl-C ends it with the totals.`,
		Example: `  dakghar listen
  dakghar listen --verify --secret-file secret.txt
  dakghar listen --verify --secret-file new.txt --key-id k2 --secret-file old.txt --key-id k1
  dakghar listen --port 9001 --fail-first 2
  dakghar listen --status 410
  dakghar listen --slow 30s`,
	}, func(ctx context.Context, _ []string) error { return a.listen(ctx, f) })
	flags := c.Flags()
	flags.IntVar(&f.port, "port", 9000, "port on 127.0.0.1, 0 for any that is free")
	flags.BoolVar(&f.verify, "verify", false, "verify the signatures; needs --secret-file")
	flags.StringArrayVar(&f.files, "secret-file", nil, "file with a secret, whsec_… or whpk_…, - for standard input; give it again for each key")
	flags.StringArrayVar(&f.ids, "key-id", nil, "id of each secret's key, in the same order (default: a secret is tried for every id)")
	flags.IntVar(&f.status, "status", http.StatusOK, "answer with this status, 200 to 599")
	flags.IntVar(&f.failFirst, "fail-first", 0, "answer 503 to the first N requests of each delivery")
	flags.DurationVar(&f.slow, "slow", 0, "wait so long before each answer")
	return c
}

func (f listenFlags) check() error {
	var problem string
	switch {
	case f.port < 0 || f.port > 65535:
		problem = "--port is 0 to 65535"
	case f.status < 200 || f.status > 599:
		problem = "--status is 200 to 599"
	case f.failFirst < 0 || f.slow < 0:
		problem = "--fail-first and --slow are not negative"
	case f.verify && len(f.files) == 0:
		problem = "--verify needs the secret: give --secret-file"
	case !f.verify && len(f.files)+len(f.ids) > 0:
		problem = "a secret is used with --verify only"
	case len(f.ids) > 0 && len(f.ids) != len(f.files):
		problem = "give one --key-id for each --secret-file, or none"
	default:
		return nil
	}
	return &operator.Refusal{Code: "usage", Usage: true, Problem: problem}
}

// partnerKeys reads the secrets.
func (a *app) partnerKeys(f listenFlags) ([]delivery.VerifyingKey, error) {
	var keys []delivery.VerifyingKey
	for i, file := range f.files {
		secret, err := a.readSecret(file)
		if err != nil {
			return nil, err
		}
		id := ""
		if len(f.ids) > 0 {
			id = f.ids[i]
		}
		key, err := delivery.ParseVerifyingKey(id, secret.Reveal())
		if err != nil {
			return nil, &operator.Refusal{
				Code: "secret_refused", Problem: "this key cannot be used: " + strings.TrimPrefix(err.Error(), "delivery: "),
				Next: []operator.Step{{Text: `into the file goes what "dakghar subscription create" or "rotate" printed as the secret, alone; its key id is for --key-id`}},
			}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Bounds of the listener.
const (
	listenBodyMax    = 1 << 20  // of a request; an event is a quarter of it at most
	listenShownMax   = 16 << 10 // of a body in words
	listenHeaderWait = 10 * time.Second
)

func (a *app) listen(ctx context.Context, f listenFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	keys, err := a.partnerKeys(f)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return &operator.Refusal{
			Code: "port_taken", Problem: "cannot listen", Err: err, Next: []operator.Step{{Text: "choose another port with --port"}},
		}
	}
	profile, _ := delivery.ProfileNamed(delivery.Standard)
	p := &partner{app: a, flags: f, keys: keys, skew: profile.Skew, requests: map[delivery.ID]int{}}
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: listenHeaderWait,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	p.greet("http://" + socket.Addr().String() + "/")
	if err := server.Serve(socket); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return p.total()
}

// partner is a receiver of deliveries.
type partner struct {
	app   *app
	flags listenFlags
	keys  []delivery.VerifyingKey // nil: nothing is verified
	skew  time.Duration

	mu       sync.Mutex // of what follows, and of the output
	requests map[delivery.ID]int
	totals   listenTotals
}

// listenTotals is the last line.
type listenTotals struct {
	Requests   int `json:"requests"`
	Deliveries int `json:"deliveries"`
	Again      int `json:"again"`
	Refused    int `json:"refused"`
	Accepted   int `json:"accepted"` // answered 2xx
}

// arrival is one request, and what is said to it. Times, ids and the like are as
// its headers state them.
type arrival struct {
	At             stamp           `json:"at"`
	Method         string          `json:"method"`
	Path           string          `json:"path"`
	Delivery       word            `json:"delivery_id"`
	Event          word            `json:"event_id"`
	Attempt        int             `json:"attempt"` // 0: none that is a number
	KeyID          word            `json:"key_id"`
	IdempotencyKey word            `json:"idempotency_key,omitempty"`
	Verified       *bool           `json:"verified"` // nil: not checked
	Cause          word            `json:"cause"`
	Detail         string          `json:"detail,omitempty"`
	Count          int             `json:"request"` // of this delivery
	Again          bool            `json:"again"`
	Status         int             `json:"status"`
	Bytes          int             `json:"bytes"`
	Body           json.RawMessage `json:"body"` // a string where it is not JSON

	raw []byte
}

func (p *partner) greet(url string) {
	if p.app.json {
		_ = p.app.printJSON(map[string]string{"listening": url})
		return
	}
	checks := "verifying nothing (see --verify)"
	if p.keys != nil {
		checks = "verifying with " + count(len(p.keys), "key")
	}
	p.app.printf("Listening on %s, %s. Ctrl-C ends it.\n", url, checks)
}

func (p *partner) total() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totals.Deliveries = len(p.requests)
	t := p.totals
	if p.app.json {
		return p.app.printJSON(t)
	}
	p.app.printf("\n")
	return p.app.table("", [][]string{
		{"requests", number(t.Requests)}, {"deliveries", number(t.Deliveries)}, {"again", number(t.Again)},
		{"refused", number(t.Refused)}, {"accepted", number(t.Accepted)},
	})
}

// ServeHTTP prints a request before it answers.
func (p *partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, listenBodyMax))
	got := p.judge(r, body, err)
	p.mu.Lock()
	p.answer(&got)
	p.show(got)
	p.mu.Unlock()
	if p.flags.slow > 0 {
		wait := time.NewTimer(p.flags.slow)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // to return would be to answer 200
		}
	}
	if got.Status < http.StatusMultipleChoices {
		p.mu.Lock()
		p.totals.Accepted++
		p.mu.Unlock()
	}
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(got.Status)
	_, _ = fmt.Fprintf(w, "{\"status\":%d}\n", got.Status)
}

// judge reads a request and verifies it.
func (p *partner) judge(r *http.Request, body []byte, failed error) arrival {
	h := lowered(r.Header)
	attempt, err := strconv.Atoi(h[delivery.HeaderAttempt])
	if err != nil {
		attempt = 0
	}
	got := arrival{
		At: stamp(p.app.now()), Method: r.Method, Path: r.URL.Path, Delivery: word(h[delivery.HeaderID]), Event: word(h[delivery.HeaderEventID]),
		Attempt: attempt, KeyID: word(h[delivery.HeaderKeyID]), IdempotencyKey: word(h["idempotency-key"]),
		Bytes: len(body), Body: quoted(body), raw: body,
	}
	switch tooLarge, _ := errors.AsType[*http.MaxBytesError](failed); {
	case tooLarge != nil:
		got.Status, got.Cause = http.StatusRequestEntityTooLarge, "too_large"
	case failed != nil:
		got.Status, got.Cause = http.StatusBadRequest, "cut_short"
	case r.Method != http.MethodPost:
		got.Status, got.Cause = http.StatusMethodNotAllowed, "not_a_post"
	case p.keys != nil:
		p.verify(&got, h, body)
	}
	return got
}

// verify checks both signatures: a partner may rely on either.
func (p *partner) verify(got *arrival, h map[string]string, body []byte) {
	now := p.app.now()
	v, err := delivery.Verify(h, body, p.keys, now, p.skew)
	where := delivery.HeaderSignature
	if err == nil {
		_, err = delivery.VerifyStandard(h, body, p.keys, now, p.skew)
		where = delivery.HeaderStandard
	}
	ok := err == nil
	got.Verified = &ok
	if ok {
		got.KeyID = word(v.KeyID)
		return
	}
	got.Status, got.Cause, got.Detail = http.StatusUnauthorized, "failed", where+": "+err.Error()
	if refusal, is := errors.AsType[*signature.Refusal](err); is {
		got.Cause, got.Detail = word(refusal.Cause), where+": "+refusal.Detail
	}
}

// answer counts a request, and decides what is said to it.
func (p *partner) answer(got *arrival) {
	p.totals.Requests++
	if got.Status != 0 {
		p.totals.Refused++
		return
	}
	got.Status, got.Count = p.flags.status, 1
	if id := delivery.ID(got.Delivery); id != "" {
		p.requests[id]++
		got.Count = p.requests[id]
	}
	if got.Again = got.Count > 1; got.Again {
		p.totals.Again++
	}
	if got.Count <= p.flags.failFirst {
		got.Status = http.StatusServiceUnavailable
	}
}

func (p *partner) show(got arrival) {
	if p.app.json {
		_ = p.app.printJSON(got)
		return
	}
	again := ""
	if got.Again {
		again = fmt.Sprintf("  again: request %d of this delivery", got.Count)
	}
	p.app.printf("\n%s  %s %s  %d%s\n", when(time.Time(got.At)), shown(got.Method), shown(got.Path), got.Status, again)
	rows := [][]string{
		{"  delivery", string(got.Delivery)}, {"  event", string(got.Event)}, {"  attempt", number(got.Attempt)}, {"  key", string(got.KeyID)},
		{"  signature", got.verdict()}, {"  bytes", number(got.Bytes)},
	}
	if got.IdempotencyKey != "" {
		rows = append(rows, []string{"  idempotency key", string(got.IdempotencyKey)})
	}
	_ = p.app.table("", rows)
	p.app.printf("%s", pretty(got.raw))
}

func (got arrival) verdict() string {
	switch {
	case got.Cause != "" && got.Detail != "":
		return string(got.Cause) + ": " + got.Detail
	case got.Cause != "":
		return string(got.Cause)
	case got.Verified != nil:
		return "verified"
	}
	return "not checked"
}

// lowered is a header as a partner behind a proxy sees it: one value a name, with
// those of a header that came twice joined.
func lowered(h http.Header) map[string]string {
	out := map[string]string{}
	for name, values := range h {
		out[strings.ToLower(name)] = strings.Join(values, ",")
	}
	return out
}

// quoted is a body as it stands in a line of JSON.
func quoted(body []byte) json.RawMessage {
	var line bytes.Buffer
	if json.Compact(&line, body) == nil && utf8.Valid(body) {
		return line.Bytes()
	}
	text, err := json.Marshal(string(body))
	if err != nil {
		return nil // a string can be written
	}
	return text
}

// pretty indents a body for a person. Nothing in it steers the terminal.
func pretty(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	var indented bytes.Buffer
	text := strconv.Quote(string(body[:min(len(body), listenShownMax)]))
	if utf8.Valid(body) && json.Indent(&indented, body, "  ", "  ") == nil {
		text = strings.TrimSpace(indented.String())
	}
	var b strings.Builder
	b.WriteString("  ")
	for i, r := range text {
		if i >= listenShownMax {
			b.WriteString("…")
			break
		}
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String() + "\n"
}
