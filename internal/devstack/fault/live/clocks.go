package live

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"dakghar/internal/backoff"
	"dakghar/internal/body"
	"dakghar/internal/business"
	"dakghar/internal/directory"
	"dakghar/internal/dynamo"
	"dakghar/internal/limit"
	"dakghar/internal/processor"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/webhook"
)

// skew is how far the clock is off.
const skew = 30 * time.Second

// clocks are the faults of a worker's clock.
func clocks() []Fault {
	return []Fault{{
		Name: "clock-off", Shows: "W1, W2, R1", want: applied(3),
		Says: "A worker's clock is 30 s off. Ahead, it takes an event from a worker whose lease runs, who then writes nothing; behind, it finds an event not due, and leaves it to others.",
		show: clockOff,
	}}
}

func clockOff(ctx context.Context, s *Site) error {
	ahead, err := s.worker(skew)
	if err != nil {
		return err
	}
	behind, err := s.worker(-skew)
	if err != nil {
		return err
	}
	return errors.Join(takenEarly(ctx, s, ahead), doneAlone(ctx, s, ahead), foundEarly(ctx, s, behind))
}

// takenEarly lets the worker ahead take a lease that runs.
func takenEarly(ctx context.Context, s *Site, ahead *processor.Processor) error {
	if _, err := committing(ctx, s); err != nil {
		return err
	}
	e := s.sent[len(s.sent)-1]
	s.step("a worker is about to commit; the one ahead is woken too")
	// To the clock ahead the lease is over: it frees the row, and its next look claims it.
	if err := s.wake(ctx, ahead, e, "lease_freed", "applied"); err != nil {
		return err
	}
	s.step("the first worker's commit goes on")
	return errors.Join(s.clear(), s.idle(ctx))
}

// doneAlone lets the worker ahead do an event that nobody else was told of.
func doneAlone(ctx context.Context, s *Site, ahead *processor.Processor) error {
	return unpublished(ctx, s, 1, func(ctx context.Context) error {
		return s.wake(ctx, ahead, s.sent[len(s.sent)-1], "applied")
	})
}

// foundEarly lets the worker behind look at an event that is due, by others' clocks.
func foundEarly(ctx context.Context, s *Site, behind *processor.Processor) error {
	return unpublished(ctx, s, 1, func(ctx context.Context) error {
		e := s.sent[len(s.sent)-1]
		return errors.Join(s.wake(ctx, behind, e, "not_due"), s.hurryOne(ctx, e))
	})
}

// wake has a worker look at an event as often as there are decisions, and
// compares what it decides.
func (s *Site) wake(ctx context.Context, worker *processor.Processor, e *event, want ...string) error {
	for _, decision := range want {
		promise, open, err := s.store.Outbox(ctx, promiseOf(e))
		if err != nil || !open {
			return errors.Join(err, fmt.Errorf("%s has a promise: %v", e.id, open))
		}
		result := worker.Process(ctx, webhook.NewWake(promise))
		s.step("%s, by the clock that is off: %s", e.id, result.Decision)
		if result.Decision != decision {
			return errors.Join(result.Err, fmt.Errorf("%s: the worker decided %s, want %s", e.id, result.Decision, decision))
		}
	}
	return nil
}

// worker is a processor on the stack's services whose clock is off. What it frees
// is due at once, by that clock.
func (s *Site) worker(off time.Duration) (*processor.Processor, error) {
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		return nil, err
	}
	now := func() time.Time { return s.Now().Add(off) }
	atOnce := backoff.Schedule{First: time.Second, Max: time.Second, Jitter: backoff.Full} // of which chance takes nothing
	declared, cfg := s.Stack.Declared(), s.Stack.Config()
	ref := func(id string) string { return declared.Resources[id].Ref }
	return &processor.Processor{
		Store:     s.store,
		Endpoints: directory.New(s.store),
		Bodies: body.New(body.Config{
			Dynamo: s.db, KMS: kms.NewFromConfig(cfg), S3: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
			Table: ref("BodyTable"), Bucket: ref("BodyBucket"), KeyID: ref("DataKey"), Now: now, Rand: rand.Reader, NewID: rand.Text,
		}),
		Objects:   nothingToRead{},
		Wanted:    directory.NewSubscriptions(s.store),
		Providers: providers,
		Router:    business.Standard(),
		Policy: processor.Policy{
			Lease: lease, AttemptsMax: 2, Theirs: atOnce, Ours: atOnce,
			KeepInbox: 24 * time.Hour, GapWindow: time.Minute,
		},
		Breaker: &limit.Breaker{Trip: 5, Open: atOnce},
		Now:     now,
		NewID:   rand.Text,
		Chance:  func() float64 { return 0 },
		Wait:    dynamo.Sleep,
	}, nil
}

// nothingToRead is for a worker whose events are not read at their provider.
type nothingToRead struct{}

func (nothingToRead) Current(context.Context, webhook.Endpoint, *provider.Adapter, provider.Kind, string) ([]byte, bool, error) {
	return nil, false, errors.New("a payment is not read at its provider")
}
