package bench

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"math"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"dakghar/internal/awsconfig"
	"dakghar/internal/delivery"
	"dakghar/internal/dynamo"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/webhook"
)

// Rounds of the figure, and the attempts of one.
const (
	attemptRounds = 40
	attemptsEach  = 200
)

// measureDispatchCPU compares the process's CPU time, garbage collection
// included, of attempts that a dispatcher makes with that of the bare work: a
// POST that is signed as Standard Webhooks signs, over net/http, between the same
// two transactions that claim the delivery and record the answer. The partner is
// a process of its own. The services' own time is not counted: a wire answers
// writes with "{}", and reads with what it has answered before, so that each
// delivery is due again and again.
//
// The design's figure is against work whose claim is the dispatcher's own: whoever
// is told an id alone reads the delivery and then takes it. An effect is told to
// ten subscriptions, and its bytes are given to the bare side. The other figures
// are against work that is given the delivery too, and with one subscription an
// effect, where the dispatcher reads and opens the bytes for each attempt.
func measureDispatchCPU(t *testing.T, f *figures) {
	many := compareAttempts(t, "bench-dispatch-cpu", effectTold)
	f.set(t, "dispatch_cpu_ratio", many.ours.ratio(many.claiming))
	f.set(t, "dispatch_cpu_ratio_delivery_given", many.ours.ratio(many.least))
	one := compareAttempts(t, "bench-dispatch-cpu-one", 1)
	f.set(t, "dispatch_cpu_ratio_one_subscription", one.ours.ratio(one.claiming))
	f.set(t, "dispatch_cpu_ratio_bytes_read", one.ours.ratio(one.reading))
}

// compared are the dispatcher, bare work that reads nothing, such that reads the
// delivery, and such that reads its bytes as well.
type compared struct{ ours, least, claiming, reading *attempts }

func compareAttempts(t *testing.T, name string, told int) compared {
	t.Helper()
	w := &memory{wire: newWire(), known: map[string][]byte{}}
	cfg := config(t, "http://127.0.0.1", awsconfig.Background())
	cfg.HTTPClient = w
	o := newOutbound(t, name, cfg)
	p := startPartner(t)
	for range told {
		o.subscribe(p.url + "/hooks")
	}
	due := o.deliveries(0, attemptsEach, told)
	seen := &witness{Client: o.store.DB}
	d := o.open(&dynamo.Store{DB: seen, Tables: o.store.Tables, Chance: o.store.Chance, Wait: o.store.Wait}, nobody{}, 25*time.Second)

	w.quiet.Store(true)
	seen.watch = true
	dispatchAll(t, d, due) // brings subscription, keys and reads; its transactions are the bare side's
	seen.watch = false
	b := newBareAttempt(t, o, seen.sorted(t, due), p.url+"/hooks", told)
	c := compared{
		ours:     &attempts{work: func() { dispatchAll(t, d, due) }},
		least:    &attempts{work: func() { b.all(t, due, false, false) }},
		claiming: &attempts{work: func() { b.all(t, due, true, false) }},
		reading:  &attempts{work: func() { b.all(t, due, true, true) }},
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // an idle processor would spend its time on collecting, for whichever side
	all := []*attempts{c.ours, c.least, c.claiming, c.reading}
	for range attemptRounds {
		for _, x := range all {
			o.forget()
			x.round(t, w)
		}
	}
	t.Logf("median CPU for an attempt: dispatcher %.1f µs, bare %.1f µs, which reads the delivery %.1f µs, and its bytes %.1f µs",
		median(c.ours.micros), median(c.least.micros), median(c.claiming.micros), median(c.reading.micros))
	for _, x := range all {
		if x.calls != 2*attemptsEach || math.Abs(float64(x.sent-c.ours.sent)) > 0.01*float64(c.ours.sent) {
			t.Errorf("a side makes %d writes with %d bytes, the dispatcher %d with %d", x.calls, x.sent, c.ours.calls, c.ours.sent)
		}
	}
	if want := (len(all)*attemptRounds + 1) * attemptsEach; p.count(t) != want {
		t.Errorf("the partner was told %d times, want %d", p.count(t), want)
	}
	return c
}

// dispatchAll hands deliveries to a dispatcher in batches.
func dispatchAll(t *testing.T, d *lambdaedge.Dispatch, due []delivery.Delivery) {
	t.Helper()
	for i := 0; i < len(due); i += dispatchBatch {
		var wakes []webhook.Wake
		for _, dl := range due[i : i+dispatchBatch] {
			wakes = append(wakes, dl.Wake())
		}
		if _, err := d.Handle(t.Context(), batchOf(t, wakes...)); err != nil {
			t.Fatal(err)
		}
	}
}

// attempts is one of the sides.
type attempts struct {
	work        func()
	micros      []float64 // of an attempt, in each round
	calls, sent int64     // of the last round
}

func (x *attempts) round(t *testing.T, w *memory) {
	t.Helper()
	runtime.GC()
	w.calls.Store(0)
	w.bytes.Store(0)
	began := usage(t, syscall.RUSAGE_SELF)
	x.work()
	took := usage(t, syscall.RUSAGE_SELF) - began
	x.micros = append(x.micros, float64(took.Nanoseconds())/1000/attemptsEach)
	x.calls, x.sent = w.calls.Load(), w.bytes.Load()
}

func (x *attempts) ratio(to *attempts) float64 {
	return (&side{micros: x.micros}).ratio(&side{micros: to.micros})
}

// memory is a wire that, while it is quiet, answers a read as it did before.
type memory struct {
	*wire
	mu    sync.Mutex
	known map[string][]byte // answers, by request
}

func (m *memory) Do(req *http.Request) (*http.Response, error) {
	if !m.quiet.Load() || req.Header.Get("X-Amz-Target") != "DynamoDB_20120810.GetItem" {
		return m.wire.Do(req)
	}
	asked, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	answer, ok := m.known[string(asked)]
	m.mu.Unlock()
	if ok {
		return &http.Response{
			StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
			Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)), Request: req,
		}, nil
	}
	req.Body = io.NopCloser(bytes.NewReader(asked))
	resp, err := m.wire.Do(req)
	if err != nil {
		return nil, err
	}
	if answer, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.known[string(asked)] = answer
	m.mu.Unlock()
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}

// witness remembers the transactions that pass it, and the reads.
type witness struct {
	dynamo.Client
	watch bool
	mu    sync.Mutex
	saw   map[string][]*dynamodb.TransactWriteItemsInput // by the delivery's id
}

func (w *witness) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, with ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if w.watch {
		w.mu.Lock()
		if w.saw == nil {
			w.saw = map[string][]*dynamodb.TransactWriteItemsInput{}
		}
		id := textOf(in.TransactItems[0].Update.Key["id"])
		w.saw[id] = append(w.saw[id], in)
		w.mu.Unlock()
	}
	return w.Client.TransactWriteItems(ctx, in, with...)
}

// sorted returns the claim and the record of each delivery.
func (w *witness) sorted(t *testing.T, due []delivery.Delivery) [][]*dynamodb.TransactWriteItemsInput {
	t.Helper()
	var all [][]*dynamodb.TransactWriteItemsInput
	for _, d := range due {
		if len(w.saw[string(d.ID)]) != 2 {
			t.Fatalf("%s made %d transactions, want 2", d.ID, len(w.saw[string(d.ID)]))
		}
		all = append(all, w.saw[string(d.ID)])
	}
	return all
}

// bareAttempt does by hand, and without any care, what an attempt cannot do without.
type bareAttempt struct {
	o       *outbound
	client  *http.Client
	key     []byte
	url     string
	commits [][]*dynamodb.TransactWriteItemsInput
	bodies  [][]byte
	opener  interface {
		Open(ctx context.Context, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error)
	}
}

func newBareAttempt(t *testing.T, o *outbound, commits [][]*dynamodb.TransactWriteItemsInput, url string, told int) *bareAttempt {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signingText, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	b := &bareAttempt{
		o: o, key: key, url: url, commits: commits, opener: o.bodies(),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: dispatchBatch}, Timeout: 25 * time.Second},
	}
	for n := range commits {
		b.bodies = append(b.bodies, effect(n/told))
	}
	return b
}

// all makes the attempts, as many side by side as a batch has.
func (b *bareAttempt) all(t *testing.T, due []delivery.Delivery, claiming, reading bool) {
	t.Helper()
	for from := 0; from < len(due); from += dispatchBatch {
		var wg sync.WaitGroup
		for i := from; i < from+dispatchBatch; i++ {
			wg.Go(func() {
				if err := b.attempt(t.Context(), i, due[i], claiming, reading); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func (b *bareAttempt) attempt(ctx context.Context, n int, d delivery.Delivery, claiming, reading bool) error {
	raw := b.bodies[n]
	var err error
	if claiming {
		if d, _, err = b.o.store.Delivery(ctx, d.ID); err != nil {
			return err
		}
	}
	if reading {
		if raw, err = b.opener.Open(ctx, d.Effect.BodyID, d.Tenant, d.Effect.Digest); err != nil {
			return err
		}
	}
	if _, err := b.o.db.TransactWriteItems(ctx, b.commits[n][0]); err != nil {
		return err
	}
	if err := b.post(ctx, string(d.ID), raw); err != nil {
		return err
	}
	_, err = b.o.db.TransactWriteItems(ctx, b.commits[n][1])
	return err
}

func (b *bareAttempt) post(ctx context.Context, id string, raw []byte) error {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, b.key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(raw)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
