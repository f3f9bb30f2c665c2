// Package pipeline holds the functions of the test stack: front puts a row, relay
// sends it to a queue, worker puts what it received into another table, and ticker
// notes that it ran.
package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Handler is a function on bytes.
type Handler func(ctx context.Context, payload []byte) ([]byte, error)

type parts struct {
	rows, done, queue string
	db                *dynamodb.Client
	sqs               *sqs.Client
}

// New makes the function of this name.
func New(name string, getenv func(string) string) (Handler, error) {
	cfg := aws.Config{
		Region: getenv("AWS_REGION"), BaseEndpoint: aws.String(getenv("AWS_ENDPOINT_URL")),
		Credentials: credentials.NewStaticCredentialsProvider(getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY"), ""),
	}
	p := parts{rows: getenv("ROWS"), done: getenv("DONE"), queue: getenv("QUEUE_URL"), db: dynamodb.NewFromConfig(cfg), sqs: sqs.NewFromConfig(cfg)}
	switch name {
	case "FrontFunction":
		return p.front, nil
	case "RelayFunction":
		return p.relay, nil
	case "WorkerFunction":
		return p.worker, nil
	case "TickerFunction":
		return p.ticker, nil
	}
	return nil, fmt.Errorf("no function %q", name)
}

func (p parts) put(ctx context.Context, table, id string) error {
	_, err := p.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}})
	return err
}

func (p parts) front(ctx context.Context, payload []byte) ([]byte, error) {
	var r events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, err
	}
	if err := p.put(ctx, p.rows, r.PathParameters["id"]); err != nil {
		return nil, err
	}
	return json.Marshal(events.APIGatewayV2HTTPResponse{StatusCode: 202, Body: r.PathParameters["id"]})
}

func (p parts) relay(ctx context.Context, payload []byte) ([]byte, error) {
	var e events.DynamoDBEvent
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	var failed events.DynamoDBEventResponse
	for _, r := range e.Records {
		id := r.Change.Keys["id"].String()
		if strings.HasPrefix(id, "poison") {
			return nil, fmt.Errorf("poison")
		}
		if _, err := p.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &p.queue, MessageBody: &id}); err != nil {
			failed.BatchItemFailures = append(failed.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: r.Change.SequenceNumber})
			break
		}
	}
	return json.Marshal(failed)
}

func (p parts) worker(ctx context.Context, payload []byte) ([]byte, error) {
	var e events.SQSEvent
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	for _, m := range e.Records {
		if err := p.put(ctx, p.done, m.Body); err != nil {
			return nil, err
		}
	}
	return []byte(`{"batchItemFailures":[]}`), nil
}

func (p parts) ticker(ctx context.Context, _ []byte) ([]byte, error) {
	return nil, p.put(ctx, p.done, "tick")
}
