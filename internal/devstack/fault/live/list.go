package live

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dakghar/internal/devstack/fault"
	"dakghar/internal/webhook"
)

// applied is how n events end that all went well in the end.
func applied(n int) map[string]int { return map[string]int{"PROCESSED applied": n} }

// The calls that faults are about.
func accepting(mode fault.Mode, count int) fault.Fault {
	return fault.Fault{Service: "dynamodb", Operation: "TransactWriteItems", Table: "InboxTable", Mode: mode, Count: count}
}

func completing(mode fault.Mode, count int) fault.Fault {
	return fault.Fault{Service: "dynamodb", Operation: "TransactWriteItems", Table: "BusinessTable", Mode: mode, Count: count}
}

func reading(mode fault.Mode, count int) fault.Fault {
	return fault.Fault{Service: "dynamodbstreams", Operation: "GetRecords", Mode: mode, Count: count}
}

// List returns every fault that can be shown.
func List() []Fault {
	return slices.Concat(calls(), sequences(), reads(), deaths(), clocks(), operators())
}

// simply arms faults, sends events and lets all rest: nothing else is needed.
func simply(events int, faults ...fault.Fault) func(context.Context, *Site) error {
	return func(ctx context.Context, s *Site) error {
		if err := s.arm(faults...); err != nil {
			return err
		}
		if err := s.send(ctx, events); err != nil {
			return err
		}
		return errors.Join(s.hit(ctx), s.clear())
	}
}

// calls are the faults of single calls.
func calls() []Fault {
	inProgress := accepting(fault.Fail, 2) // a request's client tries twice
	inProgress.Code, inProgress.HTTPStatus = "TransactionInProgressException", 400
	return []Fault{
		{
			Name: "conflict", Shows: "A2, A3, W2", want: applied(3),
			Says: "Transactions that accept and complete events meet TransactionConflict, and are tried again.",
			show: simply(3, accepting(fault.Conflict, 4), completing(fault.Conflict, 2)),
		},
		{
			Name: "in-progress", Shows: "A2", want: applied(2),
			Says: "A transaction that accepts an event meets itself in progress; the provider's retry finds out.",
			show: simply(2, inProgress),
		},
		{
			Name: "throttled", Shows: "A2, A4, W4", want: applied(3),
			Says: "DynamoDB throttles accepting, claiming and completing for a while; nothing is acknowledged that is not stored.",
			show: simply(3, accepting(fault.Throttle, 3), completing(fault.Throttle, 6), fault.Fault{Service: "dynamodb", Operation: "UpdateItem", Table: "InboxTable", Mode: fault.Throttle, Count: 2}),
		},
		{
			Name: "partial-batch", Shows: "D5", want: applied(8),
			Says: "SQS takes every second wake-up of a batch; the others are sent again.",
			show: partialBatch,
		},
		{
			Name: "timeout-after-commit", Shows: "A2, D4", want: applied(2),
			Says: "An event is committed and the reply is lost, twice: the provider sees 503, and its retry is a duplicate.",
			show: simply(2, accepting(fault.DropAfter, 2)),
		},
		{
			Name: "claim-reply-lost", Shows: "W2, W4", want: applied(1),
			Says: "A worker claims an event and the reply is lost; it recognises its own claim.",
			show: simply(1, fault.Fault{Service: "dynamodb", Operation: "UpdateItem", Table: "InboxTable", Mode: fault.DropAfter, Count: 1}),
		},
		{
			Name: "complete-reply-lost", Shows: "W2", want: applied(1),
			Says: "A worker completes an event and the reply is lost; it recognises its own commit.",
			show: simply(1, completing(fault.DropAfter, 1)),
		},
		{
			Name: "late-write", Shows: "W2", want: applied(1),
			Says: "A completing transaction arrives a second after its worker gave up and wrote it again; the fence refuses it.",
			show: lateWrite,
		},
		{
			Name: "repeated-stream", Shows: "D5, W2", want: applied(3),
			Says: "The stream hands its records out again and again; the wakes find nothing to do.",
			show: simply(3, reading(fault.Repeat, 3)),
		},
		{
			Name: "lost-stream", Shows: "R1, D5", want: applied(3),
			Says: "The stream loses records: nobody is told of the events, and the reconciler comes for them.",
			show: func(ctx context.Context, s *Site) error { return unpublished(ctx, s, 3, s.hurry) },
		},
		{
			Name: "purged-queue", Shows: "R1", want: applied(3),
			Says: "Wakes are published, and the queue is purged; the reconciler looks again, published or not.",
			show: purgedQueue,
		},
		{
			Name: "kms-outage", Shows: "W4, T5", want: applied(2),
			Says: "KMS opens no data key for a while: attempts are given back, and no event fails.",
			show: func(ctx context.Context, s *Site) error {
				// A process that has the key in memory would not ask for it.
				return errors.Join(s.kill("ProcessorFunction"), simply(2, fault.Fault{Service: "kms", Operation: "Decrypt", Mode: fault.Fail, Count: 8})(ctx, s))
			},
		},
		{
			Name: "business-outage", Shows: "W4, T5", want: applied(3),
			Says: "The business table is throttled for a while: attempts are given back, and no event fails.",
			show: simply(3, fault.Fault{Service: "dynamodb", Table: "BusinessTable", Mode: fault.Throttle, Count: 12}),
		},
		{
			Name: "body-expiring", Shows: "D6, A6", want: map[string]int{"FAILED": 1},
			Says: "The body of an event that nobody came for is about to expire: the event fails where it is seen, in time.",
			show: bodyExpiring,
		},
	}
}

// lateWrite delays a commit for longer than the program waits for an answer.
func lateWrite(ctx context.Context, s *Site) error {
	late := completing(fault.Late, 1)
	late.Delay = 4 * time.Second
	if err := s.arm(late); err != nil {
		return err
	}
	if err := s.send(ctx, 1); err != nil {
		return err
	}
	if err := s.stands(ctx, s.sent[0], webhook.Processed); err != nil {
		return err
	}
	s.step("the event is applied, and the first try of its commit is still on its way")
	return errors.Join(s.letGo(ctx), s.clear())
}

// unpublished sends events whose stream records are lost, with those of what is
// done to their promises then.
func unpublished(ctx context.Context, s *Site, events int, then func(context.Context) error) error {
	if err := s.arm(reading(fault.Lose, 0)); err != nil {
		return err
	}
	if err := s.send(ctx, events); err != nil {
		return err
	}
	if err := then(ctx); err != nil {
		return err
	}
	read := s.Stack.Faults().List()[0].Seen
	err := s.await(ctx, "the stream was read to its end", func() (bool, error) {
		// The first of two further reads may have begun before the last event.
		return s.Stack.Faults().List()[0].Seen >= read+2, nil
	})
	if err != nil {
		return err
	}
	s.step("the stream's records of that are lost")
	return s.clear()
}

func partialBatch(ctx context.Context, s *Site) error {
	// Records that come together make a batch.
	stall := fault.Fault{Service: "dynamodbstreams", Operation: "GetRecords", Mode: fault.Stall}
	if err := s.arm(stall, fault.Fault{Service: "sqs", Operation: "SendMessageBatch", Mode: fault.Part, Count: 2}); err != nil {
		return err
	}
	if err := s.send(ctx, 8); err != nil {
		return err
	}
	s.Stack.Faults().Clear("dynamodbstreams")
	return errors.Join(s.hit(ctx), s.clear())
}

func purgedQueue(ctx context.Context, s *Site) error {
	// A purge finds only what nobody has received.
	if err := s.setQueue(ctx, sqstypes.QueueAttributeNameDelaySeconds, "30"); err != nil {
		return err
	}
	if err := s.send(ctx, 3); err != nil {
		return err
	}
	for _, e := range s.sent {
		err := s.await(ctx, "its wake is published", func() (bool, error) {
			promise, _, err := s.store.Outbox(ctx, promiseOf(e))
			return !promise.PublishedAt.IsZero(), err
		})
		if err != nil {
			return err
		}
	}
	if _, err := s.queue.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &s.url}); err != nil {
		return err
	}
	s.step("their wakes are published, and purged")
	return errors.Join(s.setQueue(ctx, sqstypes.QueueAttributeNameDelaySeconds, "0"), s.hurry(ctx))
}

func bodyExpiring(ctx context.Context, s *Site) error {
	return unpublished(ctx, s, 1, func(ctx context.Context) error { return errors.Join(s.expireSoon(ctx), s.hurry(ctx)) })
}

func (s *Site) expireSoon(ctx context.Context) error {
	expires := s.Now().Add(24 * time.Hour)
	update := "SET bx = :at"
	_, err := s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.store.Tables.Inbox, UpdateExpression: &update,
		Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: string(s.sent[0].inboxID())}},
		ExpressionAttributeValues: map[string]types.AttributeValue{":at": &types.AttributeValueMemberN{Value: strconv.FormatInt(expires.UnixMilli(), 10)}},
	})
	s.step("its row is told that the body lives one day more, in place of a wait of 28 days")
	return err
}
