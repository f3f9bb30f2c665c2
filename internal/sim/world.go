// Package sim is the whole product in one process: the real edges, stages and
// adapters over the embedded services, with a clock that a test moves by hand
// and programs that can be stopped at any of their AWS calls.
//
// What drives the programs is what drives them on AWS, with its worst habits: a
// provider that sends again until it sees a 2xx, a stream that hands a failed
// batch in again, a queue whose messages come back, a schedule. Nothing runs by
// itself; a test decides what happens next.
package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"dakghar/internal/backoff"
	"dakghar/internal/body"
	"dakghar/internal/business"
	"dakghar/internal/crashtest"
	devdynamo "dakghar/internal/devstack/dynamodb"
	devkms "dakghar/internal/devstack/kms"
	devs3 "dakghar/internal/devstack/s3"
	devsecrets "dakghar/internal/devstack/secretsmanager"
	devsqs "dakghar/internal/devstack/sqs"
	"dakghar/internal/devstack/stack"
	"dakghar/internal/directory"
	"dakghar/internal/dynamo"
	"dakghar/internal/ingress"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/limit"
	"dakghar/internal/processor"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/queue"
	"dakghar/internal/reconciler"
	"dakghar/internal/relay"
	"dakghar/internal/secret"
	"dakghar/internal/telemetry"
	"dakghar/internal/webhook"
)

// Start is when every world begins.
var Start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// World is one running system.
type World struct {
	T         testing.TB
	DynamoDB  *devdynamo.Server
	SQS       *devsqs.Server
	Secrets   *devsecrets.Server
	KMS       *devkms.Server
	Providers *provider.Registry
	Handlers  *business.Router
	// Partner is who gets what subscriptions ask for.
	Partner *Partner
	// Objects is what the providers have when they are asked.
	Objects Objects
	// Outside is a store that no switch stops: the eyes of the test.
	Outside *dynamo.Store
	Log     io.Writer
	spy     *spy

	// The programs, each with its own switch. The operator is the command that
	// somebody runs.
	Ingress, Relay, Processor, Dispatcher, Reconciler, Operator *Program

	options                         Options
	clock                           clock
	wire                            *wire
	ids                             int
	random                          *rand.Rand
	mu                              sync.Mutex
	tables                          dynamo.Tables
	bodyTable, bucket, queue, keyID string
	deliveryQueue                   string
	secretsMade                     int
	db                              *dynamodb.Client
	streams                         *dynamodbstreams.Client
	sqs                             *sqs.Client
	secrets                         *secretsmanager.Client
	cursor                          streamCursor
	grounds                         *Grounds // nil on the embedded DynamoDB
	ground                          *ground
	// ReconcileErr is what the last pass of the reconciler returned.
	ReconcileErr error

	endpoints map[webhook.EndpointID]*Endpoint
	pending   []*Delivery
	accepted  map[webhook.InboxID]bool
}

// Program is one function: what it does, and the switch that ends it. Starting
// it anew loses everything it remembered, as on AWS.
type Program struct {
	Name   string
	Switch *crashtest.Switch
	start  func(aws.Config) any
	run    any
	config aws.Config
}

// restart brings a dead program back with an empty memory.
func (p *Program) restart() {
	p.Switch.Revive()
	p.run = p.start(p.config)
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Now is the world's time.
func (w *World) Now() time.Time { return w.clock.Now() }

// Advance moves the world's time on.
func (w *World) Advance(d time.Duration) {
	w.clock.mu.Lock()
	defer w.clock.mu.Unlock()
	w.clock.now = w.clock.now.Add(d)
}

// Options choose what a world is made of.
type Options struct {
	Seed     uint64
	Handlers *business.Router // business.Standard() when nil
	Log      io.Writer        // discarded when nil
	// Middleware is added to every program's clients, by program name.
	Middleware map[string]func(*middleware.Stack) error
	// AttemptsMax is 5 when zero.
	AttemptsMax int
	// SourceRate is how many requests a second, and at once, ingress takes from one
	// source before it verifies; 0 is no limit.
	SourceRate int
	// InlineBytes is 32 KiB when zero.
	InlineBytes int
	// API is what stands in for the providers' APIs: the reconciler compares their
	// lists. Without it there are no back-fills.
	API *fakeprovider.Server
	// AskAPI lets the processor ask API about objects, in place of Objects.
	AskAPI bool
	// Skew is how far a program's clock is ahead of the world's, by program name.
	Skew map[string]time.Duration
	// Grounds lends the tables, in a DynamoDB outside of this process. The world
	// gives them back when it is closed; nil means the embedded DynamoDB.
	Grounds *Grounds
	// Parameters are the template's, instead of their defaults.
	Parameters map[string]string
	// Use gathers what the programs' roles allowed, when it is not nil.
	Use *Use
	// Denied gets each call that a role does not allow; when nil, one fails the test.
	Denied func(line string)
	// TemplatePath is another template than the repository's.
	TemplatePath string
}

// New returns a world with its tables, queue, key and bucket, and no endpoint.
func New(t testing.TB, o Options) *World {
	t.Helper()
	spy := &spy{next: o.Log}
	o.Log = spy
	t.Cleanup(func() { spy.check(t) })
	if o.Handlers == nil {
		o.Handlers = business.Standard()
	}
	if o.AttemptsMax == 0 {
		o.AttemptsMax = 5
	}
	if o.InlineBytes == 0 {
		o.InlineBytes = 32 << 10
	}
	w := &World{
		T: t, Log: o.Log, spy: spy, Handlers: o.Handlers, clock: clock{now: Start}, random: rand.New(rand.NewPCG(o.Seed, 1)), //nolint:gosec // a world is repeatable
		endpoints: map[webhook.EndpointID]*Endpoint{}, accepted: map[webhook.InboxID]bool{},
	}
	w.DynamoDB = devdynamo.New(devdynamo.Config{Now: w.Now})
	w.SQS = devsqs.New(devsqs.Config{Now: w.Now, BaseURL: "http://127.0.0.1"})
	w.Secrets = devsecrets.New(devsecrets.Config{Now: w.Now})
	w.KMS = devkms.New(devkms.Config{Now: w.Now})
	w.wire = &wire{targets: handlers(w), other: devs3.New(devs3.Config{Now: w.Now})}
	if o.Grounds != nil {
		w.stand(o.Grounds)
	}
	registry, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		t.Fatal(err)
	}
	w.Providers = registry
	w.Partner = &Partner{world: w}
	w.options = o
	w.build(o)
	return w
}

// config returns an SDK configuration over the wire.
func (w *World) config(hooks ...func(*middleware.Stack) error) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1"), HTTPClient: w.wire, APIOptions: hooks,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		Retryer:     func() aws.Retryer { return retry.AddWithMaxAttempts(aws.NopRetryer{}, 1) },
	}
}

func (w *World) build(o Options) {
	open := w.config()
	w.db = dynamodb.NewFromConfig(open)
	w.streams, w.sqs = dynamodbstreams.NewFromConfig(open), sqs.NewFromConfig(open)
	w.secrets = secretsmanager.NewFromConfig(open)
	w.createResources(stack.Clients{DynamoDB: w.db, SQS: w.sqs, S3: s3.NewFromConfig(open), KMS: kms.NewFromConfig(open)})
	w.Outside = w.store(open)

	w.Ingress = w.program("ingress", o, func(cfg aws.Config) any { return w.newIngress(cfg, o) })
	w.Relay = w.program("relay", o, func(cfg aws.Config) any { return w.newRelay(cfg, o) })
	w.Processor = w.program("processor", o, func(cfg aws.Config) any { return w.newProcessor(cfg, o) })
	w.Dispatcher = w.program("dispatcher", o, func(cfg aws.Config) any { return w.newDispatcher(cfg, o) })
	w.Reconciler = w.program("reconciler", o, func(cfg aws.Config) any { return w.newReconciler(cfg, o) })
	w.Operator = w.program("operator", o, func(cfg aws.Config) any { return w.store(cfg) })
}

func (w *World) program(name string, o Options, start func(aws.Config) any) *Program {
	p := &Program{Name: name, Switch: &crashtest.Switch{}, start: start}
	hooks := []func(*middleware.Stack) error{p.Switch.Middleware}
	if extra := o.Middleware[name]; extra != nil {
		hooks = append(hooks, extra)
	}
	p.config = w.configOf(name, hooks...)
	p.run = start(p.config)
	return p
}

// HTTP is the ingress as it runs now.
func (w *World) HTTP() *lambdaedge.HTTP { return running[*lambdaedge.HTTP](w.Ingress) }

// Stream is the relay as it runs now.
func (w *World) Stream() *lambdaedge.Stream { return running[*lambdaedge.Stream](w.Relay) }

// Queue is the processor as it runs now.
func (w *World) Queue() *lambdaedge.Queue { return running[*lambdaedge.Queue](w.Processor) }

// Dispatch is the dispatcher as it runs now.
func (w *World) Dispatch() *lambdaedge.Dispatch { return running[*lambdaedge.Dispatch](w.Dispatcher) }

// Schedule is the reconciler as it runs now.
func (w *World) Schedule() *lambdaedge.Schedule { return running[*lambdaedge.Schedule](w.Reconciler) }

func running[T any](p *Program) T { return p.run.(T) }

// Programs returns all of them.
func (w *World) Programs() []*Program {
	return []*Program{w.Ingress, w.Relay, w.Processor, w.Dispatcher, w.Reconciler, w.Operator}
}

// clockOf is a program's own clock.
func (w *World) clockOf(program string, o Options) func() time.Time {
	return func() time.Time { return w.Now().Add(o.Skew[program]) }
}

func (w *World) store(cfg aws.Config) *dynamo.Store {
	return &dynamo.Store{
		DB: dynamodb.NewFromConfig(cfg), Tables: w.tables, Chance: w.chance, Wait: w.wait,
	}
}

// wait lets the world's time pass in place of sleeping.
func (w *World) wait(ctx context.Context, d time.Duration) error {
	w.Advance(d)
	return ctx.Err()
}

func (w *World) chance() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Float64()
}

// NewID numbers the ids of a world.
func (w *World) NewID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("id-%06d", w.ids)
}

func (w *World) bodies(cfg aws.Config, o Options, now func() time.Time) *body.Store {
	return body.New(body.Config{
		Dynamo: dynamodb.NewFromConfig(cfg), S3: s3.NewFromConfig(cfg), KMS: kms.NewFromConfig(cfg),
		Table: w.bodyTable, Bucket: w.bucket, KeyID: w.keyID, InlineBytes: o.InlineBytes, Now: now, NewID: w.NewID,
		KeyTimeout: patience,
	})
}

// patience is in real time, which must not decide anything here: a busy machine
// would change what a test sees. What a stalled store does is tested on the real
// binaries.
const patience = time.Minute

// GapWindow is how long a world's events wait for those before them.
const GapWindow = time.Hour

const life = 400 * 24 * time.Hour

func (w *World) newIngress(cfg aws.Config, o Options) *lambdaedge.HTTP {
	store, now := w.store(cfg), w.clockOf("ingress", o)
	keys := secret.New(secret.Config{Client: secretsmanager.NewFromConfig(cfg), Now: now, CallTimeout: patience})
	return &lambdaedge.HTTP{
		Receiver: &ingress.Receiver{
			Providers: w.Providers, Endpoints: directory.New(store), Keys: secret.Texts{Cache: keys},
			Bodies: w.bodies(cfg, o, now), Inbox: store, Recent: ingress.NewRecent(64), Budget: patience,
			Sources: limit.NewSources(o.SourceRate, o.SourceRate), Limits: limit.NewLimiter(store, patience),
			Now: now, NewID: w.NewID,
		},
		Log: telemetry.New(w.Log, "ingress", now), Now: now, KeyAge: keys.Oldest,
	}
}

func (w *World) newRelay(cfg aws.Config, o Options) *lambdaedge.Stream {
	now := w.clockOf("relay", o)
	return &lambdaedge.Stream{
		Relay:  &relay.Relay{Queue: w.wakes(cfg), Outbox: w.store(cfg), Now: now},
		Outbox: dynamo.OutboxOf, Log: telemetry.New(w.Log, "relay", now), Now: now,
	}
}

func (w *World) wakes(cfg aws.Config) queue.Topics {
	client := sqs.NewFromConfig(cfg)
	return queue.Topics{Events: &queue.Queue{Client: client, URL: w.queue}, Deliveries: &queue.Queue{Client: client, URL: w.deliveryQueue}}
}

func (w *World) newProcessor(cfg aws.Config, o Options) *lambdaedge.Queue {
	store, now := w.store(cfg), w.clockOf("processor", o)
	return &lambdaedge.Queue{
		Processor: &processor.Processor{
			Store: store, Endpoints: directory.New(store), Bodies: w.bodies(cfg, o, now), Objects: w.objects(cfg, o, now), Wanted: directory.NewSubscriptions(store),
			Providers: w.Providers, Router: w.Handlers,
			Policy: processor.Policy{
				Lease: time.Minute, AttemptsMax: o.AttemptsMax, KeepInbox: life, GapWindow: GapWindow,
				Theirs: backoff.Schedule{First: 15 * time.Second, Max: time.Hour},
				Ours:   backoff.Schedule{First: 2 * time.Second, Max: 5 * time.Minute},
			},
			Gaps:    processor.NewGaps(store),
			Breaker: &limit.Breaker{Trip: 5, Open: backoff.Schedule{First: 5 * time.Second, Max: time.Minute}},
			Now:     now, NewID: w.NewID, Chance: w.chance, Wait: w.wait,
		},
		Log: telemetry.New(w.Log, "processor", now),
	}
}

func (w *World) newReconciler(cfg aws.Config, o Options) *lambdaedge.Schedule {
	now := w.clockOf("reconciler", o)
	return &lambdaedge.Schedule{
		Backfill: w.backfill(cfg, o, now, func() bool { return w.Reconciler.Switch.Dead() }),
		Reconciler: &reconciler.Reconciler{
			Store: w.store(cfg), Queue: w.wakes(cfg), Now: now, NewID: w.NewID, Chance: w.chance,
			Policy: reconciler.Policy{
				AttemptsMax: o.AttemptsMax, Retry: backoff.Schedule{First: 15 * time.Second, Max: time.Hour}, KeepInbox: life,
				Segments: 2, PageRows: 10, AtOnce: 1, AuditTime: 25 * time.Second, Lease: 90 * time.Second, Slack: 5 * time.Second,
				Silence: reconciler.SilenceBounds{Time: time.Minute, Days: 200, Rows: 2000, Lines: 100},
			},
		},
		Log: telemetry.New(w.Log, "reconciler", now),
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
