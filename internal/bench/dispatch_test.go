package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dakghar/internal/awsconfig"
	"dakghar/internal/backoff"
	"dakghar/internal/body"
	"dakghar/internal/delivery"
	"dakghar/internal/devstack"
	"dakghar/internal/devstack/stack"
	"dakghar/internal/directory"
	"dakghar/internal/dispatcher"
	"dakghar/internal/dynamo"
	"dakghar/internal/egress"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/limit"
	"dakghar/internal/secret"
	"dakghar/internal/telemetry"
	"dakghar/internal/webhook"
)

const (
	signingText   = "whsec_b3V0Ym91bmQgc2VjcmV0IG9mIHRoaXJ0eS10d28h"
	effectBytes   = 2 << 10
	effectTold    = 10 // subscriptions that an effect is told to
	dispatchBatch = 10 // messages of one invocation, as the template has it
)

// outbound is what dispatchers work on: tables, bodies, keys and subscriptions in
// embedded services, reached as cfg says.
type outbound struct {
	t         *testing.T
	cfg       aws.Config
	db        *dynamodb.Client
	store     *dynamo.Store
	bodyTable string
	bucket    string
	key       string
	all       []delivery.Subscription
	// age is how much older than it is what a dispatcher remembers of effects takes itself for.
	age atomic.Int64
}

func newOutbound(t *testing.T, name string, cfg aws.Config) *outbound {
	t.Helper()
	o := &outbound{t: t, cfg: cfg, db: dynamodb.NewFromConfig(cfg)}
	made, err := stack.Create(t.Context(), stack.Options{
		TemplatePath: "../../template.yaml", Name: name,
		Clients: stack.Clients{DynamoDB: o.db, SQS: sqs.NewFromConfig(cfg), S3: s3.NewFromConfig(cfg), KMS: kms.NewFromConfig(cfg)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ref := func(id string) string { return made.Resources[id].Ref }
	o.store = &dynamo.Store{
		DB: o.db, Chance: mathrand.Float64, Wait: dynamo.Sleep,
		Tables: dynamo.Tables{Outbox: ref("OutboxTable"), Registry: ref("RegistryTable"), Delivery: ref("DeliveryTable")},
	}
	o.bodyTable, o.bucket, o.key = ref("BodyTable"), ref("BodyBucket"), ref("DataKey")
	return o
}

func (o *outbound) bodies() *body.Store {
	return body.New(body.Config{
		Dynamo: o.db, S3: s3.NewFromConfig(o.cfg), KMS: kms.NewFromConfig(o.cfg), Table: o.bodyTable, Bucket: o.bucket, KeyID: o.key,
		Now: time.Now, Rand: rand.Reader, NewID: rand.Text,
	})
}

// subscribe makes a subscription to an address, with a key of its own.
func (o *outbound) subscribe(url string) {
	o.t.Helper()
	id := fmt.Sprintf("sub_%03d", len(o.all))
	name, now := "bench/subscription/"+id, time.Now()
	made, err := secretsmanager.NewFromConfig(o.cfg).CreateSecret(o.t.Context(), &secretsmanager.CreateSecretInput{Name: &name, SecretString: aws.String(signingText)})
	if err != nil {
		o.t.Fatal(err)
	}
	s := delivery.Subscription{
		ID: delivery.SubscriptionID(id), Tenant: tenant, Target: delivery.Target{Kind: delivery.HTTP, URL: url}, Types: []string{"*"},
		ProfileName: delivery.Standard, Secret: name, State: delivery.Active, CreatedAt: now,
		Keys: []delivery.Key{{ID: "k1", Version: webhook.KeyVersion(aws.ToString(made.VersionId)), AddedAt: now}},
	}
	ok, err := o.store.CreateSubscriptionBy(o.t.Context(), s, webhook.Act{ID: rand.Text(), At: now, Name: "subscription create", Subject: id, Who: "bench"})
	if err != nil || !ok {
		o.t.Fatalf("subscription: %v, %v", ok, err)
	}
	o.all = append(o.all, s)
}

// deliveries makes n deliveries to the subscriptions in turn. An effect is told to
// so many of them.
func (o *outbound) deliveries(first, n, told int) []delivery.Delivery {
	o.t.Helper()
	bodies := o.bodies()
	made := make([]delivery.Delivery, n)
	var wg sync.WaitGroup
	lanes := make(chan struct{}, 16)
	for i := range n {
		wg.Go(func() {
			lanes <- struct{}{}
			defer func() { <-lanes }()
			made[i] = o.delivery(bodies, first+i, (first+i)/told)
		})
	}
	wg.Wait()
	return made
}

func (o *outbound) delivery(bodies *body.Store, n, of int) delivery.Delivery {
	raw := effect(of)
	digest, now := webhook.DigestOf(raw), time.Now()
	inbox := webhook.DeriveInboxID("demo", "stripe", webhook.EventID(strconv.Itoa(of)))
	b := webhook.Body{
		ID: webhook.BodyID(webhook.DeriveID("bd_", "bench", strconv.Itoa(of))), Tenant: tenant, Raw: raw, InboxID: inbox, PutID: rand.Text(), At: now,
	}
	placed, err := bodies.Put(o.t.Context(), b)
	if err != nil {
		o.t.Error(err)
	}
	d := delivery.New(webhook.Effect{
		ID: webhook.DeriveEffectID(inbox, 0, 0), InboxID: inbox, Tenant: tenant, Type: "payment.succeeded",
		BodyID: b.ID, Digest: digest, BodyExpiresAt: placed.ExpiresAt, CreatedAt: now,
	}, o.all[n%len(o.all)], now)
	if ok, err := o.store.CreateDelivery(o.t.Context(), d); err != nil || !ok {
		o.t.Errorf("delivery: %v, %v", ok, err)
	}
	return d
}

// effect is the n-th effect's canonical bytes.
func effect(n int) []byte {
	head := fmt.Sprintf(`{"type":"payment.succeeded","timestamp":"2026-03-01T12:00:00Z","data":{"id":"pi_%012d","amount":1250,"currency":"EUR","note":"`, n)
	const tail = `"}}`
	return []byte(head + strings.Repeat("paid in full. ", effectBytes)[:effectBytes-len(head)-len(tail)] + tail)
}

// open builds a dispatcher as functions/dispatcher does.
func (o *outbound) open(store dispatcher.Store, wakes dispatcher.Queue, attempt time.Duration) *lambdaedge.Dispatch {
	secrets := secretsmanager.NewFromConfig(o.cfg)
	client := egress.New(egress.Config{
		AllowLoopback: true, FirstByteTimeout: attempt, Timeout: attempt, BodyBytesMax: 64 << 10, ConnectionsPerHost: 32, HTTP2: true,
	})
	o.t.Cleanup(client.CloseIdle)
	return &lambdaedge.Dispatch{
		Dispatcher: &dispatcher.Dispatcher{
			Store: store, Subscriptions: directory.NewSubscriptions(o.store),
			Bodies: &body.Recent{Store: o.bodies(), BytesMax: 8 << 20, Now: func() time.Time { return time.Now().Add(time.Duration(o.age.Load())) }},
			Keys:   secret.Signing{Keys: secret.New(secret.Config{Client: secrets, Now: time.Now}), Named: secret.NewNamed(secret.Config{Client: secrets, Now: time.Now})},
			Senders: map[delivery.TargetKind]dispatcher.Sender{delivery.HTTP: &dispatcher.HTTP{
				Client: egress.Doer[dispatcher.Request, dispatcher.Response]{Client: client}, Agent: "Dakghar/1",
			}},
			Queue: wakes,
			Partners: &dispatcher.Partners{
				Rates: limit.NewLimiter(o.store, limit.SettleTimeout), Trip: 5, Open: backoff.Schedule{First: 10 * time.Second, Max: 5 * time.Minute}, Chance: mathrand.Float64,
			},
			Policy: dispatcher.Policy{Attempt: attempt, Lease: attempt + 35*time.Second, Ours: backoff.Schedule{First: 2 * time.Second, Max: 5 * time.Minute}},
			Now:    time.Now, NewID: rand.Text, Chance: mathrand.Float64, Wait: dynamo.Sleep,
		},
		Log: telemetry.New(io.Discard, "dispatcher", time.Now),
	}
}

// forget has dispatchers read every effect anew.
func (o *outbound) forget() { o.age.Add(int64(body.RecentAge)) }

// batchOf is what Lambda hands in for wake-ups.
func batchOf(t *testing.T, wakes ...webhook.Wake) events.SQSEvent {
	t.Helper()
	var batch events.SQSEvent
	for _, w := range wakes {
		text, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: rand.Text(), Body: string(text)})
	}
	return batch
}

// nobody takes wake-ups and does nothing with them.
type nobody struct{}

func (nobody) Send(_ context.Context, wakes []webhook.Wake, _ []time.Duration) []error {
	return make([]error, len(wakes))
}

// servicesOverLoopback are the embedded services behind a socket.
func servicesOverLoopback(t *testing.T) aws.Config {
	t.Helper()
	w := newWire()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		prefix, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if h, ok := w.targets[prefix]; ok {
			h.ServeHTTP(rw, r)
			return
		}
		w.other.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	return config(t, server.URL, awsconfig.Background())
}

// measureDispatch lets one dispatcher, in this process beside the embedded
// services, deliver what is due to a partner in a process of its own, with all
// sockets and every byte written. Batches come one after the other, as Lambda
// hands them to a process.
func measureDispatch(t *testing.T, f *figures) {
	defer debug.SetGCPercent(debug.SetGCPercent(devstack.GCPercent)) // as in the process that runs the services
	o := newOutbound(t, "bench-dispatch", servicesOverLoopback(t))
	p := startPartner(t)
	for range effectTold {
		o.subscribe(p.url + "/hooks")
	}
	const rounds, each = 4, 2000
	d := o.open(o.store, nobody{}, 25*time.Second)
	var rates, micros []float64
	for round := range rounds + 1 {
		due := o.deliveries(round*each, each, effectTold)
		began, worked := time.Now(), usage(t, syscall.RUSAGE_SELF)
		dispatchAll(t, d, due)
		took := time.Since(began)
		work := usage(t, syscall.RUSAGE_SELF) - worked
		o.wantAll(due, delivery.Delivered)
		if round > 0 { // the first brings keys and connections
			rates = append(rates, each/took.Seconds())
			micros = append(micros, float64(work.Microseconds())/each)
		}
	}
	if got := p.count(t); got != (rounds+1)*each {
		t.Errorf("the partner was told %d times, want %d", got, (rounds+1)*each)
	}
	t.Logf("deliveries a second in each round: %.0f; CPU of one in µs, the embedded services' included: %.0f", rates, micros)
	f.set(t, "dispatch_per_s", median(rates))
}

// wantAll checks how deliveries ended.
func (o *outbound) wantAll(all []delivery.Delivery, want delivery.Status) {
	o.t.Helper()
	for _, d := range all {
		if got, _, err := o.store.Delivery(o.t.Context(), d.ID); err != nil || got.Status != want || got.AttemptCount != 1 {
			o.t.Fatalf("%s is %s after %d attempts, %v; want %s", d.ID, got.Status, got.AttemptCount, err, want)
		}
	}
}

// partner is a server in a process of its own, so that its work is not counted.
type partner struct{ url string }

// partnerVariable makes this test binary a partner.
const partnerVariable = "DAKGHAR_BENCH_PARTNER"

func startPartner(t *testing.T) partner {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPartner$")
	cmd.Env = append(os.Environ(), partnerVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	})
	var p partner
	if _, err := fmt.Fscanln(out, &p.url); err != nil {
		t.Fatalf("the partner does not say where it is: %v", err)
	}
	return p
}

// count asks how often the partner was told anything.
func (p partner) count(t *testing.T) int {
	t.Helper()
	resp, err := http.Get(p.url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPartner is no test: it is the partner's process.
func TestPartner(t *testing.T) {
	if os.Getenv(partnerVariable) == "" {
		t.Skip("this is a helper's process")
	}
	var got atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintln(w, got.Load())
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		got.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	fmt.Println(server.URL)
	<-t.Context().Done() // it is killed
	select {}
}
