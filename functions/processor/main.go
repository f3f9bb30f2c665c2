// Command processor applies accepted events to the business state, woken by the
// event queue.
package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/awsconfig"
	"dakghar/internal/body"
	"dakghar/internal/business"
	"dakghar/internal/config"
	"dakghar/internal/directory"
	"dakghar/internal/dynamo"
	"dakghar/internal/egress"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/limit"
	"dakghar/internal/processor"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/provider/remote"
	"dakghar/internal/secret"
	"dakghar/internal/telemetry"
)

// breakerTrip is how many outages in a row keep a process from claiming more.
const breakerTrip = 5

// secretCall bounds one read of a provider's credential.
const secretCall = 3 * time.Second

func main() {
	ctx := context.Background()
	queue, err := wire(os.Getenv)
	if err != nil {
		slog.Error("processor cannot start", "error", err)
		os.Exit(1)
	}
	lambda.StartWithOptions(queue.Handle, lambda.WithContext(ctx))
}

func wire(getenv func(string) string) (*lambdaedge.Queue, error) {
	env := config.From(getenv)
	name := env.Text("AWS_LAMBDA_FUNCTION_NAME")
	life, work := config.ReadLife(env), config.ReadWork(env)
	tables := dynamo.Tables{
		Inbox: env.Text("INBOX_TABLE"), Outbox: env.Text("OUTBOX_TABLE"), Business: env.Text("BUSINESS_TABLE"), Registry: env.Text("REGISTRY_TABLE"),
	}
	bodies := body.Config{
		Table: env.Text("BODY_TABLE"), Bucket: env.Text("BODY_BUCKET"), KeyID: env.Text("DATA_KEY_ID"),
		InlineBytes: env.Int("BODY_INLINE_BYTES", 1024, 300<<10, 32<<10), Life: life.Body,
		Now: time.Now, Rand: rand.Reader, NewID: rand.Text,
	}
	standIn := config.ReadProviderBase(env)
	if err := env.Err(); err != nil {
		return nil, err
	}
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		return nil, err
	}
	cfg, err := awsconfig.Load(getenv, awsconfig.Background())
	if err != nil {
		return nil, err
	}
	db := dynamodb.NewFromConfig(cfg)
	bodies.Dynamo, bodies.KMS = db, kms.NewFromConfig(cfg)
	bodies.S3 = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil // another host than AWS's has no name per bucket
	})
	store := &dynamo.Store{DB: db, Tables: tables, Chance: mathrand.Float64, Wait: dynamo.Sleep}

	return &lambdaedge.Queue{
		Processor: &processor.Processor{
			Store:     store,
			Endpoints: directory.New(store),
			Bodies:    body.New(bodies),
			Objects: &remote.Client{
				Secrets: secret.NewNamed(secret.Config{Client: secretsmanager.NewFromConfig(cfg), Now: time.Now, CallTimeout: secretCall}),
				HTTP:    egress.Doer[remote.Request, remote.Response]{Client: egress.New(egress.Config{AllowLoopback: standIn != nil})},
				Now:     time.Now, Base: standIn,
			},
			Wanted:    directory.NewSubscriptions(store),
			Providers: providers,
			Router:    business.Standard(),
			Policy: processor.Policy{
				Lease: work.Lease, AttemptsMax: work.AttemptsMax, Theirs: work.Theirs, Ours: work.Ours,
				KeepInbox: life.Inbox, GapWindow: work.GapWindow,
			},
			Gaps:    processor.NewGaps(store),
			Breaker: &limit.Breaker{Trip: breakerTrip, Open: work.Breaker},
			Now:     time.Now,
			NewID:   rand.Text,
			Chance:  mathrand.Float64,
			Wait:    dynamo.Sleep,
		},
		Log: telemetry.New(os.Stdout, name, time.Now),
	}, nil
}
