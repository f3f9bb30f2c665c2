// Command canary sends a synthetic event to each endpoint that asked for it, once
// in five minutes, and says which did not arrive.
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
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/awsconfig"
	"dakghar/internal/canary"
	"dakghar/internal/config"
	"dakghar/internal/dynamo"
	"dakghar/internal/egress"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/secret"
	"dakghar/internal/telemetry"
)

// The shape of a run.
const (
	atOnce      = 16
	answerTime  = 5 * time.Second // of one request; the front door gives up after 3
	answerBytes = 64 << 10
	secretCall  = 3 * time.Second
)

func main() {
	ctx := context.Background()
	handler, err := wire(os.Getenv)
	if err != nil {
		slog.Error("canary cannot start", "error", err)
		os.Exit(1)
	}
	lambda.StartWithOptions(handler.Handle, lambda.WithContext(ctx))
}

func wire(getenv func(string) string) (*lambdaedge.Canary, error) {
	env := config.From(getenv)
	name := env.Text("AWS_LAMBDA_FUNCTION_NAME")
	tables := dynamo.Tables{Inbox: env.Text("INBOX_TABLE"), Registry: env.Text("REGISTRY_TABLE")}
	door, seconds := env.Text("FRONT_DOOR_URL"), env.Int("CANARY_SECONDS", 1, 50, 45)
	loopback := config.ReadLoopback(env)
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
	store := &dynamo.Store{DB: dynamodb.NewFromConfig(cfg), Tables: tables, Chance: mathrand.Float64, Wait: dynamo.Sleep}
	keys := secret.New(secret.Config{Client: secretsmanager.NewFromConfig(cfg), Now: time.Now, CallTimeout: secretCall})
	way := egress.New(egress.Config{AllowLoopback: loopback, Timeout: answerTime, BodyBytesMax: answerBytes})
	return &lambdaedge.Canary{
		Canary: &canary.Canary{
			Providers: providers, Endpoints: store, Keys: secret.Texts{Cache: keys},
			HTTP:  egress.Doer[canary.Request, canary.Response]{Client: way},
			Inbox: store, URL: door, Budget: time.Duration(seconds) * time.Second, AtOnce: atOnce,
			Now: time.Now, NewID: rand.Text, Wait: dynamo.Sleep,
		},
		Log: telemetry.New(os.Stdout, name, time.Now),
	}, nil
}
