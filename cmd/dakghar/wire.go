package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"dakghar/internal/body"
	"dakghar/internal/business"
	"dakghar/internal/config"
	"dakghar/internal/dynamo"
	"dakghar/internal/operator"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/queue"
	"dakghar/internal/secret"
	"dakghar/internal/webhook"
)

// connect finds a stack and puts the operator's parts together over it.
func connect(ctx context.Context, t target, getenv func(string) string) (*operator.Operator, error) {
	s, err := t.find(ctx, getenv)
	if err != nil {
		return nil, err
	}
	return wire(s)
}

// secretCall bounds one call to the secret store; a person can wait longer than a provider.
const secretCall = 10 * time.Second

// jobWorkers is how many events of a job are in hand at once: enough for the usual
// rates from far away.
const jobWorkers = 8

func wire(s stack) (*operator.Operator, error) {
	env := config.From(func(name string) string { return s.env[name] })
	tables := dynamo.Tables{
		Inbox: env.Text("INBOX_TABLE"), Outbox: env.Text("OUTBOX_TABLE"),
		Business: env.Text("BUSINESS_TABLE"), Registry: env.Text("REGISTRY_TABLE"), Delivery: env.Text("DELIVERY_TABLE"),
	}
	db, keys := dynamodb.NewFromConfig(s.aws), secretsmanager.NewFromConfig(s.aws)
	bodies := body.Config{
		Dynamo: db, KMS: kms.NewFromConfig(s.aws), S3: s3.NewFromConfig(s.aws, func(o *s3.Options) { o.UsePathStyle = s.local }),
		Table: env.Text("BODY_TABLE"), Bucket: env.Text("BODY_BUCKET"), KeyID: env.Text("DATA_KEY_ID"),
	}
	letters := sqs.NewFromConfig(s.aws)
	events := queue.DeadLetters{Client: letters, URL: env.Text("EVENT_DEAD_LETTERS_URL")}
	deliveries := queue.DeadLetters{Client: letters, URL: env.Text("DELIVERY_DEAD_LETTERS_URL")}
	relay := queue.DeadLetters{Client: letters, URL: env.Text("RELAY_FAILURES_URL")}
	wakes := queue.Queue{Client: letters, URL: env.Text("DELIVERY_QUEUE_URL")}
	prefix, subscriptions := env.Text("SECRET_PREFIX"), env.Text("SUBSCRIPTION_SECRET_PREFIX")
	own := []string{env.Text("EVENT_QUEUE_URL"), events.URL, wakes.URL, deliveries.URL, relay.URL}
	life := config.ReadLife(env)
	if err := env.Err(); err != nil {
		return nil, fmt.Errorf("the stack does not name all its parts: %w", err)
	}
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		return nil, err
	}
	kept := body.New(bodies)
	store := &dynamo.Store{DB: db, Tables: tables, Chance: mathrand.Float64, Wait: dynamo.Sleep}
	return &operator.Operator{
		Registry:         store,
		Jobs:             store,
		Secrets:          secrets{secret.NewStore(keys, ""), keys},
		Inbox:            store,
		Bodies:           opener{kept},
		Business:         store,
		Sequences:        store,
		Sender:           newSender(),
		Deliveries:       store,
		Keeper:           kept,
		Wakes:            &wakes,
		EventDeadLetters: &events, DeliveryDeadLetters: &deliveries, RelayFailures: &relay,
		Providers:    providers,
		Router:       business.Standard(), // the processor's
		SecretPrefix: prefix, SubscriptionPrefix: subscriptions,
		OwnQueues: own,
		Loopback:  s.local,
		Random:    func(b []byte) { _, _ = rand.Read(b) }, // it never fails
		FrontDoor: s.frontDoor,
		Who:       caller(s),
		Now:       time.Now,
		Workers:   jobWorkers,
		KeepInbox: life.Inbox,
		KeepBody:  life.Body,
		NewID:     rand.Text,
		Wait:      dynamo.Sleep,
		Mixed: func(seed uint64, n int) []int {
			return mathrand.New(mathrand.NewPCG(seed, 0)).Perm(n) //nolint:gosec // an order to be repeated, not a secret
		},
	}, nil
}

// caller names the person: by AWS's word, or as local on one machine.
func caller(s stack) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if s.local {
			return "local", nil
		}
		out, err := sts.NewFromConfig(s.aws).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", err
		}
		return aws.ToString(out.Arn), nil
	}
}

// secrets speaks of values and their errors in the operator's words.
type secrets struct {
	store  *secret.Store
	client secret.Getter
}

func (s secrets) Create(ctx context.Context, e webhook.Endpoint, v operator.Secret, token string) (webhook.KeyVersion, error) {
	version, err := s.store.Create(ctx, e, secret.NewValue([]byte(v.Reveal())), token)
	return version, secretFact(err)
}

func (s secrets) Put(ctx context.Context, e webhook.Endpoint, v operator.Secret, token string) (webhook.KeyVersion, error) {
	version, err := s.store.Put(ctx, e, secret.NewValue([]byte(v.Reveal())), token)
	return version, secretFact(err)
}

func (s secrets) Retire(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) error {
	return secretFact(s.store.Retire(ctx, e, v))
}

func (s secrets) Value(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) (operator.Secret, error) {
	// Each read has a cache of its own: an operator's are few, and the bounds that
	// keep a flood of requests from the store are not meant for them.
	value, err := secret.New(secret.Config{Client: s.client, CallTimeout: secretCall}).Secret(ctx, e, v)
	return operator.NewSecret(string(value.Bytes())), secretFact(err)
}

func (s secrets) Current(ctx context.Context, e webhook.Endpoint) (webhook.KeyVersion, operator.Secret, error) {
	version, value, err := secret.New(secret.Config{Client: s.client, CallTimeout: secretCall}).Current(ctx, e)
	return version, operator.NewSecret(string(value.Bytes())), secretFact(err)
}

func secretFact(err error) error {
	switch {
	case errors.Is(err, secret.ErrOtherSecret):
		return fmt.Errorf("%w: %w", operator.ErrOtherSecret, err)
	case errors.Is(err, secret.ErrNoVersion):
		return fmt.Errorf("%w: %w", operator.ErrNoVersion, err)
	}
	return err
}

// opener speaks of missing bodies in the operator's words.
type opener struct{ *body.Store }

func (o opener) Open(ctx context.Context, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error) {
	raw, err := o.Store.Open(ctx, id, tenant, digest)
	if errors.Is(err, body.ErrMissing) || errors.Is(err, body.ErrKeyMissing) {
		err = fmt.Errorf("%w: %w", operator.ErrNoBody, err)
	}
	return raw, err
}

func (o opener) HoldCopy(ctx context.Context, event webhook.InboxID, id webhook.BodyID) error {
	err := o.Store.HoldCopy(ctx, event, id)
	if errors.Is(err, body.ErrMissing) || errors.Is(err, body.ErrKeyMissing) {
		err = fmt.Errorf("%w: %w", operator.ErrNoBody, err)
	}
	return err
}

func (o opener) OpenHeld(ctx context.Context, event webhook.InboxID, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error) {
	raw, err := o.Store.OpenHeld(ctx, event, id, tenant, digest)
	if errors.Is(err, body.ErrMissing) {
		err = fmt.Errorf("%w: %w", operator.ErrNoBody, err)
	}
	return raw, err
}
