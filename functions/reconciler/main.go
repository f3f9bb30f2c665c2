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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dakghar/internal/awsconfig"
	"dakghar/internal/config"
	"dakghar/internal/dynamo"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/queue"
	"dakghar/internal/reconciler"
	"dakghar/internal/telemetry"
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
		Business: env.Text("BUSINESS_TABLE"), Body: env.Text("BODY_TABLE"),
	}
	url := env.Text("EVENT_QUEUE_URL")
	if err := env.Err(); err != nil {
		return nil, err
	}
	cfg, err := awsconfig.Load(getenv, awsconfig.Background())
	if err != nil {
		return nil, err
	}
	return &lambdaedge.Schedule{
		Reconciler: &reconciler.Reconciler{
			Store: &dynamo.Store{DB: dynamodb.NewFromConfig(cfg), Tables: tables, Chance: mathrand.Float64, Wait: dynamo.Sleep},
			Queue: &queue.Queue{Client: sqs.NewFromConfig(cfg), URL: url},
			Policy: reconciler.Policy{
				AttemptsMax: work.AttemptsMax, Retry: work.Theirs, KeepInbox: life.Inbox,
				Segments: segments, PageRows: pageRows, AtOnce: atOnce, AuditTime: auditTime, Lease: lease, Slack: slack,
			},
			Now:    time.Now,
			NewID:  rand.Text,
			Chance: mathrand.Float64,
		},
		Log: telemetry.New(os.Stdout, name, time.Now),
	}, nil
}
