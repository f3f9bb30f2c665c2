// Command reconciler comes, once a minute, for what was left behind.
package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dakghar/internal/awsconfig"
	"dakghar/internal/body"
	"dakghar/internal/config"
	"dakghar/internal/dynamo"
	"dakghar/internal/egress"
	"dakghar/internal/ingress"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/limit"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/provider/remote"
	"dakghar/internal/queue"
	"dakghar/internal/reconciler"
	"dakghar/internal/secret"
	"dakghar/internal/telemetry"
	"dakghar/internal/webhook"
)

// The shape of a run: its lease outlasts the function's timeout of 60 s.
const (
	segments  = 4
	pageRows  = 1000
	atOnce    = 4
	auditTime = 25 * time.Second
	lease     = 90 * time.Second
	slack     = 5 * time.Second
)

// What looking for silent endpoints may take of a run.
const (
	silenceTime  = 5 * time.Second
	silenceDays  = 200
	silenceRows  = 2000
	silenceLines = 100
)

// The shape of a back-fill's part of a run.
const (
	secretCall   = 3 * time.Second  // of one read of a provider's credential
	acceptTime   = 10 * time.Second // of one event
	redeliverMax = 60               // a minute; GitHub bears 80 calls that make something
	recentEvents = 64               // each is looked up before it is accepted
)

func main() {
	ctx := context.Background()
	schedule, err := wire(os.Getenv)
	if err != nil {
		slog.Error("reconciler cannot start", "error", err)
		os.Exit(1)
	}
	lambda.StartWithOptions(schedule.Handle, lambda.WithContext(ctx))
}

func wire(getenv func(string) string) (*lambdaedge.Schedule, error) {
	env := config.From(getenv)
	name := env.Text("AWS_LAMBDA_FUNCTION_NAME")
	life, work := config.ReadLife(env), config.ReadWork(env)
	tables := dynamo.Tables{
		Inbox: env.Text("INBOX_TABLE"), Outbox: env.Text("OUTBOX_TABLE"), Registry: env.Text("REGISTRY_TABLE"),
		Business: env.Text("BUSINESS_TABLE"), Body: env.Text("BODY_TABLE"), Delivery: env.Text("DELIVERY_TABLE"),
	}
	events, deliveries := env.Text("EVENT_QUEUE_URL"), env.Text("DELIVERY_QUEUE_URL")
	bodies := body.Config{
		Table: tables.Body, Bucket: env.Text("BODY_BUCKET"), KeyID: env.Text("DATA_KEY_ID"),
		InlineBytes: env.Int("BODY_INLINE_BYTES", 1024, 300<<10, 32<<10), Life: life.Body,
		Now: time.Now, Rand: rand.Reader, NewID: rand.Text,
	}
	standIn := config.ReadProviderBase(env)
	if err := env.Err(); err != nil {
		return nil, err
	}
	cfg, err := awsconfig.Load(getenv, awsconfig.Background())
	if err != nil {
		return nil, err
	}
	client := sqs.NewFromConfig(cfg)
	store := &dynamo.Store{DB: dynamodb.NewFromConfig(cfg), Tables: tables, Chance: mathrand.Float64, Wait: dynamo.Sleep}
	backfill, err := newBackfill(cfg, store, bodies, standIn)
	if err != nil {
		return nil, err
	}
	return &lambdaedge.Schedule{
		Backfill: backfill,
		Reconciler: &reconciler.Reconciler{
			Store: store,
			Queue: queue.Topics{Events: &queue.Queue{Client: client, URL: events}, Deliveries: &queue.Queue{Client: client, URL: deliveries}},
			Policy: reconciler.Policy{
				AttemptsMax: work.AttemptsMax, Retry: work.Theirs, KeepInbox: life.Inbox,
				Segments: segments, PageRows: pageRows, AtOnce: atOnce, AuditTime: auditTime, Lease: lease, Slack: slack,
				Silence: reconciler.SilenceBounds{Time: silenceTime, Days: silenceDays, Rows: silenceRows, Lines: silenceLines},
			},
			Now:    time.Now,
			NewID:  rand.Text,
			Chance: mathrand.Float64,
		},
		Log: telemetry.New(os.Stdout, name, time.Now),
	}, nil
}

// newBackfill puts the front door's own acceptance behind what providers list.
func newBackfill(cfg aws.Config, store *dynamo.Store, bodies body.Config, standIn func(webhook.Provider) string) (*ingress.Backfill, error) {
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		return nil, err
	}
	bodies.Dynamo, bodies.KMS = store.DB, kms.NewFromConfig(cfg)
	bodies.S3 = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil // another host than AWS's has no name per bucket
	})
	return &ingress.Backfill{
		Receiver: &ingress.Receiver{
			Providers: providers, Bodies: body.New(bodies), Inbox: store, Recent: ingress.NewRecent(recentEvents),
			Limits: limit.NewLimiter(store, limit.SettleTimeout), Budget: acceptTime, Now: time.Now, NewID: rand.Text,
		},
		Listing: &remote.Client{
			Secrets: secret.NewNamed(secret.Config{Client: secretsmanager.NewFromConfig(cfg), Now: time.Now, CallTimeout: secretCall}),
			HTTP:    egress.Doer[remote.Request, remote.Response]{Client: egress.New(egress.Config{AllowLoopback: standIn != nil})},
			Now:     time.Now, Base: standIn,
		},
		Rows: store, Lease: lease, Slack: slack, RedeliverMax: redeliverMax, Wait: dynamo.Sleep,
	}, nil
}
