// Command relay turns outbox rows from the table's stream into queue messages,
// and marks them.
package main

import (
	"context"
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
	"dakghar/internal/relay"
	"dakghar/internal/telemetry"
)

func main() {
	ctx := context.Background()
	stream, err := wire(os.Getenv)
	if err != nil {
		slog.Error("relay cannot start", "error", err)
		os.Exit(1)
	}
	lambda.StartWithOptions(stream.Handle, lambda.WithContext(ctx))
}

func wire(getenv func(string) string) (*lambdaedge.Stream, error) {
	env := config.From(getenv)
	name := env.Text("AWS_LAMBDA_FUNCTION_NAME")
	outbox, events, deliveries := env.Text("OUTBOX_TABLE"), env.Text("EVENT_QUEUE_URL"), env.Text("DELIVERY_QUEUE_URL")
	if err := env.Err(); err != nil {
		return nil, err
	}
	cfg, err := awsconfig.Load(getenv, awsconfig.Background())
	if err != nil {
		return nil, err
	}
	client := sqs.NewFromConfig(cfg)
	return &lambdaedge.Stream{
		Relay: &relay.Relay{
			Queue: queue.Topics{Events: &queue.Queue{Client: client, URL: events}, Deliveries: &queue.Queue{Client: client, URL: deliveries}},
			Outbox: &dynamo.Store{
				DB: dynamodb.NewFromConfig(cfg), Tables: dynamo.Tables{Outbox: outbox},
				Chance: mathrand.Float64, Wait: dynamo.Sleep,
			},
			Now: time.Now,
		},
		Outbox: dynamo.OutboxOf,
		Log:    telemetry.New(os.Stdout, name, time.Now),
		Now:    time.Now,
	}, nil
}
