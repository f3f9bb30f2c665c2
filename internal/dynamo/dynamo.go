// Package dynamo keeps the rows of the protocol in DynamoDB: inbox, outbox,
// business, deliveries and registry; bodies are package body's. Every write carries the condition that the protocol
// states for it, and every refusal comes back as a fact of the domain, never as
// a service's code.
//
// Invariants:
//
//   - An inbox row is inserted only together with its outbox row, and changed
//     only by a [webhook.Change], whose guard becomes the write's condition.
//   - An outbox row is marked or deleted only under a generation.
//   - A reply that was lost is never taken for a refusal: the row itself says
//     who wrote it.
//
// The package decides nothing: which change is due is computed by the words in
// package webhook and by the stages. It caches nothing and never logs.
package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"dakghar/internal/awsfault"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Client is what the package needs of DynamoDB.
type Client interface {
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Tables names the tables. A stage that does not use one leaves it empty.
type Tables struct {
	Inbox, Outbox, Business, Registry, Delivery string
	// Body is needed only to look whether a body is kept.
	Body string
}

// Store reads and writes the protocol's rows.
type Store struct {
	DB     Client
	Tables Tables
	// Chance returns a number in [0,1) for the jitter between conflicting tries.
	Chance func() float64
	// Wait sleeps, or returns the context's error.
	Wait func(ctx context.Context, d time.Duration) error
}

// Sleep waits for d, or returns the context's error; the Wait of a running process.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d) //nolint:forbidigo // this is the real clock that callers pass in
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Get reads one business row, strongly consistent.
func (s *Store) Get(ctx context.Context, k webhook.Key) (webhook.Item, bool, error) {
	item, err := s.read(ctx, s.Tables.Business, keyOf(k))
	if err != nil || item == nil {
		return nil, false, err
	}
	row, err := decodeItem(item)
	return row, err == nil, err
}

// Inbox reads one inbox row, strongly consistent.
func (s *Store) Inbox(ctx context.Context, id webhook.InboxID) (webhook.Inbox, bool, error) {
	item, err := s.read(ctx, s.Tables.Inbox, attributes{"id": str(string(id))})
	if err != nil || item == nil {
		return webhook.Inbox{}, false, err
	}
	row, err := decodeInbox(item)
	return row, err == nil, err
}

// Outbox reads one outbox row, strongly consistent.
func (s *Store) Outbox(ctx context.Context, id webhook.OutboxID) (webhook.Outbox, bool, error) {
	item, err := s.read(ctx, s.Tables.Outbox, attributes{"id": str(string(id))})
	if err != nil || item == nil {
		return webhook.Outbox{}, false, err
	}
	row, err := decodeOutbox(item)
	return row, err == nil, err
}

func (s *Store) read(ctx context.Context, table string, key attributes) (attributes, error) {
	out, err := s.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, unavailable("GetItem", err)
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return out.Item, nil
}

// unavailable is the fact that the store gave no usable answer. It is our
// fault, whatever the service called it: a throttle, a conflict, a time-out.
// Only a call that the service refuses as malformed will be refused the next
// time as well.
func unavailable(operation string, err error) error {
	if awsfault.Code(err) == "ValidationException" {
		return fault.New(fault.Permanent, "store_refused", awsfault.Summary(operation, err))
	}
	return fault.NewOutage("store_"+awsfault.Cause(err), awsfault.Summary(operation, err))
}

// contended is the fact that a transaction was turned away without an answer to
// its conditions.
func contended(reason string) error {
	return fault.New(fault.Ours, "store_contended", errors.New("TransactWriteItems: "+reason))
}
