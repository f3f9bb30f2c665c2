// Command dispatcher tells partners what was committed: it fans effects out to
// subscriptions and makes the deliveries' attempts, woken by the delivery queue.
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
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dakghar/internal/awsconfig"
	"dakghar/internal/body"
	"dakghar/internal/config"
	"dakghar/internal/delivery"
	"dakghar/internal/directory"
	"dakghar/internal/dispatcher"
	"dakghar/internal/dynamo"
	"dakghar/internal/egress"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/limit"
	"dakghar/internal/queue"
	"dakghar/internal/secret"
	"dakghar/internal/sink"
	"dakghar/internal/telemetry"
)

const (
	// breakerTrip is how many failures of one partner in a row keep a process from
	// asking more of it.
	breakerTrip = 5
	// answerBytesMax bounds a partner's answer: what is kept of it is far less.
	answerBytesMax = 64 << 10
	// recentBytes bounds the effects that a process remembers for their next partner.
	recentBytes = 8 << 20
	// connectionsPerPartner bounds the connections of one process to one host.
	connectionsPerPartner = 32
	// secretCall bounds one read of a signing key or of a partner's credential.
	secretCall = 3 * time.Second
	// agent is told to partners.
	agent = "Dakghar/1"
)

func main() {
	ctx := context.Background()
	dispatch, err := wire(os.Getenv)
	if err != nil {
		slog.Error("dispatcher cannot start", "error", err)
		os.Exit(1)
	}
	lambda.StartWithOptions(dispatch.Handle, lambda.WithContext(ctx))
}

func wire(getenv func(string) string) (*lambdaedge.Dispatch, error) {
	env := config.From(getenv)
	name := env.Text("AWS_LAMBDA_FUNCTION_NAME")
	work, life, sinks := config.ReadDelivery(env), config.ReadLife(env), config.ReadSinks(env)
	tables := dynamo.Tables{Outbox: env.Text("OUTBOX_TABLE"), Delivery: env.Text("DELIVERY_TABLE"), Registry: env.Text("REGISTRY_TABLE")}
	bodies := body.Config{
		Table: env.Text("BODY_TABLE"), Bucket: env.Text("BODY_BUCKET"), KeyID: env.Text("DATA_KEY_ID"), Life: life.Body,
		Now: time.Now, Rand: rand.Reader, NewID: rand.Text,
	}
	url := env.Text("DELIVERY_QUEUE_URL")
	within := work.Attempt * 19 / 20 // so that it is told as the partner's silence, before the attempt itself ends
	outside := egress.Config{
		AllowLoopback: config.ReadLoopback(env), FirstByteTimeout: within, Timeout: within,
		BodyBytesMax: answerBytesMax, ConnectionsPerHost: connectionsPerPartner, HTTP2: true,
		Refused: config.ReadOwnHosts(env),
	}
	if err := env.Err(); err != nil {
		return nil, err
	}
	cfg, err := awsconfig.Load(getenv, awsconfig.Background())
	if err != nil {
		return nil, err
	}
	db, queues, secrets := dynamodb.NewFromConfig(cfg), sqs.NewFromConfig(cfg), secretsmanager.NewFromConfig(cfg)
	bodies.Dynamo, bodies.KMS = db, kms.NewFromConfig(cfg)
	bodies.S3 = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil // another host than AWS's has no name per bucket
	})
	store := &dynamo.Store{DB: db, Tables: tables, Chance: mathrand.Float64, Wait: dynamo.Sleep}
	// A delivery that waits its turn wakes its worker over and over; what goes to a partner's queue may be a loop indeed.
	ownQueue := sqs.NewFromConfig(cfg, sqs.WithAPIOptions(awsconfig.OutOfLine))
	partners := egress.Doer[dispatcher.Request, dispatcher.Response]{Client: egress.New(outside)}

	return &lambdaedge.Dispatch{
		Dispatcher: &dispatcher.Dispatcher{
			Store:         store,
			Subscriptions: directory.NewSubscriptions(store),
			Bodies:        &body.Recent{Store: body.New(bodies), BytesMax: recentBytes, Now: time.Now},
			Keys: secret.Signing{
				Keys:  secret.New(secret.Config{Client: secrets, Now: time.Now, CallTimeout: secretCall}),
				Named: secret.NewNamed(secret.Config{Client: secrets, Now: time.Now, CallTimeout: secretCall}),
			},
			Senders: map[delivery.TargetKind]dispatcher.Sender{
				delivery.HTTP:  &dispatcher.HTTP{Client: partners, Agent: agent},
				delivery.Queue: &sink.Queue{Client: queues, Allowed: sinks.Queues},
				delivery.Bus:   &sink.Bus{Client: eventbridge.NewFromConfig(cfg), Allowed: sinks.Buses},
			},
			// It promises work to dispatchers alone.
			Queue: &queue.Queue{Client: ownQueue, URL: url},
			Partners: &dispatcher.Partners{
				Rates: limit.NewLimiter(store, limit.SettleTimeout), Trip: breakerTrip, Open: work.Breaker, Chance: mathrand.Float64,
			},
			Policy: dispatcher.Policy{Attempt: work.Attempt, Lease: work.Lease, Ours: work.Ours},
			Now:    time.Now,
			NewID:  rand.Text,
			Chance: mathrand.Float64,
			Wait:   dynamo.Sleep,
		},
		Log: telemetry.New(os.Stdout, name, time.Now),
	}, nil
}
