// Command ingress is the public front door. It answers a webhook only once it
// is durable, and leaves everything after that to the stream.
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
	"dakghar/internal/config"
	"dakghar/internal/directory"
	"dakghar/internal/dynamo"
	"dakghar/internal/ingress"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/limit"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/secret"
	"dakghar/internal/telemetry"
)

// recentEvents is how many accepted events a process remembers.
const recentEvents = 4096

func main() {
	ctx := context.Background()
	handler, err := wire(os.Getenv)
	if err != nil {
		slog.Error("ingress cannot start", "error", err)
		os.Exit(1)
	}
	lambda.StartWithOptions(handler, lambda.WithContext(ctx))
}

// wire lists the receiver's parts in the order a request meets them. It makes
// clients and no call.
func wire(getenv func(string) string) (*lambdaedge.HTTP, error) {
	env := config.From(getenv)
	name := env.Text("AWS_LAMBDA_FUNCTION_NAME")
	life, coarse := config.ReadLife(env), config.ReadCoarse(env)
	tables := dynamo.Tables{Inbox: env.Text("INBOX_TABLE"), Outbox: env.Text("OUTBOX_TABLE"), Registry: env.Text("REGISTRY_TABLE")}
	bodies := body.Config{
		Table: env.Text("BODY_TABLE"), Bucket: env.Text("BODY_BUCKET"), KeyID: env.Text("DATA_KEY_ID"),
		InlineBytes: env.Int("BODY_INLINE_BYTES", 1024, 300<<10, 32<<10), Life: life.Body,
		Now: time.Now, Rand: rand.Reader, NewID: rand.Text,
	}
	if err := env.Err(); err != nil {
		return nil, err
	}
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		return nil, err
	}
	cfg, err := awsconfig.Load(getenv, awsconfig.Request())
	if err != nil {
		return nil, err
	}
	db := dynamodb.NewFromConfig(cfg)
	bodies.Dynamo, bodies.KMS = db, kms.NewFromConfig(cfg)
	bodies.S3 = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil // another host than AWS's has no name per bucket
	})
	store := &dynamo.Store{DB: db, Tables: tables, Chance: mathrand.Float64, Wait: dynamo.Sleep}
	keys := secret.New(secret.Config{Client: secretsmanager.NewFromConfig(cfg), Now: time.Now})

	return &lambdaedge.HTTP{
		Receiver: &ingress.Receiver{
			Providers: providers,
			Endpoints: directory.New(store),
			Keys:      secret.Texts{Cache: keys},
			Bodies:    body.New(bodies),
			Inbox:     store,
			Recent:    ingress.NewRecent(recentEvents),
			Sources:   limit.NewSources(coarse.Rate, coarse.Burst),
			Limits:    limit.NewLimiter(store, limit.SettleTimeout),
			Budget:    ingress.BudgetMax,
			Now:       time.Now,
			NewID:     rand.Text,
		},
		Log:    telemetry.New(os.Stdout, name, time.Now),
		Now:    time.Now,
		KeyAge: keys.Oldest,
	}, nil
}
