package sim

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dakghar/internal/delivery"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/webhook"
)

// batchMax is how many records or messages a program gets at once.
const batchMax = 10

// streamCursor is the event source mapping's memory: records up to it are done.
type streamCursor struct {
	arn, shard *string
	iterator   *string
	last       *string // sequence number of the last record read
	origin     *string // the last one before this world
	batch      []types.Record
}

func (w *World) openStream() streamCursor {
	w.T.Helper()
	ctx := w.T.Context()
	listed, err := w.streams.ListStreams(ctx, &dynamodbstreams.ListStreamsInput{TableName: &w.tables.Outbox})
	if err != nil || len(listed.Streams) != 1 {
		w.T.Fatalf("streams of the outbox: %v, %v", listed, err)
	}
	c := streamCursor{arn: listed.Streams[0].StreamArn}
	described, err := w.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: c.arn})
	if err != nil || len(described.StreamDescription.Shards) == 0 {
		w.T.Fatalf("shards of the outbox: %v", err)
	}
	c.shard = described.StreamDescription.Shards[0].ShardId
	return c
}

// readStream returns the records behind the cursor. An iterator lives for 15
// minutes, and a record for a day.
func (w *World) readStream(limit int32) []types.Record {
	w.T.Helper()
	ctx := w.T.Context()
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: w.cursor.arn, ShardId: w.cursor.shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	if w.cursor.iterator == nil {
		if w.cursor.last != nil {
			in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, w.cursor.last
		}
		it, err := w.streams.GetShardIterator(ctx, in)
		if trimmed := new(types.TrimmedDataAccessException); errors.As(err, &trimmed) {
			in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeTrimHorizon, nil
			it, err = w.streams.GetShardIterator(ctx, in)
		}
		if err != nil {
			w.T.Fatal(err)
		}
		w.cursor.iterator = it.ShardIterator
	}
	out, err := w.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: w.cursor.iterator, Limit: &limit})
	if expired := new(types.ExpiredIteratorException); errors.As(err, &expired) {
		w.cursor.iterator = nil
		return w.readStream(limit)
	}
	if err != nil {
		w.T.Fatal(err)
	}
	w.cursor.iterator = out.NextShardIterator
	for _, r := range out.Records {
		w.cursor.last = r.Dynamodb.SequenceNumber
	}
	return out.Records
}

// PumpStream hands the next batch of outbox changes to the relay. It reports
// whether there was one. A batch that failed, or whose relay died, comes again.
func (w *World) PumpStream() bool {
	w.T.Helper()
	if len(w.cursor.batch) == 0 {
		records := w.readStream(batchMax)
		for _, r := range records {
			if _, published := newImage(r)["pa"]; r.EventName != types.OperationTypeRemove && !published {
				w.cursor.batch = append(w.cursor.batch, r)
			}
		}
		if len(records) == 0 {
			return false
		}
	}
	if len(w.cursor.batch) == 0 {
		return true
	}
	response, err := w.Stream().Handle(context.WithoutCancel(w.T.Context()), streamEvent(w.cursor.batch))
	if w.Relay.Switch.Dead() {
		w.Relay.restart()
		return true
	}
	if err != nil {
		w.T.Fatal(err)
	}
	w.cursor.batch = afterFailures(w.cursor.batch, response)
	return true
}

// DropStream loses the records that nobody has read, as after a day's outage.
func (w *World) DropStream() {
	w.T.Helper()
	w.cursor.batch = nil
	for len(w.readStream(1000)) > 0 {
	}
}

// RepeatStream hands every record of this world to the relay once more, as a
// mapping does that lost its place.
func (w *World) RepeatStream() {
	w.T.Helper()
	w.cursor.batch, w.cursor.iterator, w.cursor.last = nil, nil, w.cursor.origin
}

func afterFailures(batch []types.Record, response events.DynamoDBEventResponse) []types.Record {
	if len(response.BatchItemFailures) == 0 {
		return nil
	}
	for i, r := range batch {
		if aws.ToString(r.Dynamodb.SequenceNumber) == response.BatchItemFailures[0].ItemIdentifier {
			return batch[i:]
		}
	}
	return batch
}

func newImage(r types.Record) map[string]types.AttributeValue {
	if r.Dynamodb == nil {
		return nil
	}
	return r.Dynamodb.NewImage
}

func streamEvent(batch []types.Record) events.DynamoDBEvent {
	var event events.DynamoDBEvent
	for _, r := range batch {
		image := map[string]events.DynamoDBAttributeValue{}
		for name, v := range newImage(r) {
			switch v := v.(type) {
			case *types.AttributeValueMemberS:
				image[name] = events.NewStringAttribute(v.Value)
			case *types.AttributeValueMemberN:
				image[name] = events.NewNumberAttribute(v.Value)
			}
		}
		event.Records = append(event.Records, events.DynamoDBEventRecord{
			EventName: string(r.EventName),
			Change:    events.DynamoDBStreamRecord{NewImage: image, SequenceNumber: aws.ToString(r.Dynamodb.SequenceNumber)},
		})
	}
	return event
}

// PumpQueue hands the messages that are visible to the processor. It reports
// whether there were any. What is not finished with becomes visible again.
func (w *World) PumpQueue() bool {
	w.T.Helper()
	return w.pumpQueue(w.Queue())
}

// Rival is a second worker, which nothing ends, with a clock of its own.
func (w *World) Rival(skew time.Duration) *lambdaedge.Queue {
	o := w.options
	o.Skew = map[string]time.Duration{"processor": skew}
	return w.newProcessor(w.configOf("processor"), o)
}

// PumpRival hands what is ready now to a second worker, until nothing is left.
func (w *World) PumpRival(rival *lambdaedge.Queue) {
	w.T.Helper()
	for range settleMax {
		if worked := w.PumpStream(); !w.pumpQueue(rival) && !worked {
			return
		}
	}
	w.T.Fatal("stream and queue do not come to rest")
}

func (w *World) pumpQueue(worker *lambdaedge.Queue) bool {
	w.T.Helper()
	return w.pump(w.queue, w.Processor, worker == w.Queue(), worker.Handle)
}

// PumpDeliveries hands the messages that are visible to the dispatcher.
func (w *World) PumpDeliveries() bool {
	w.T.Helper()
	return w.pump(w.deliveryQueue, w.Dispatcher, true, w.Dispatch().Handle)
}

// RivalDispatch is a second dispatcher, which nothing ends.
func (w *World) RivalDispatch() *lambdaedge.Dispatch {
	return w.newDispatcher(w.configOf("dispatcher"), w.options)
}

// PumpRivalDispatch hands what is ready to a second dispatcher, once.
func (w *World) PumpRivalDispatch(rival *lambdaedge.Dispatch) bool {
	w.T.Helper()
	return w.pump(w.deliveryQueue, w.Dispatcher, false, rival.Handle)
}

// pump hands the visible messages of a queue to a worker. What is not finished
// with becomes visible again; own says that the worker is the program itself.
func (w *World) pump(url string, p *Program, own bool, handle func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)) bool {
	w.T.Helper()
	out, err := w.sqs.ReceiveMessage(w.T.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: batchMax})
	if err != nil {
		w.T.Fatal(err)
	}
	if len(out.Messages) == 0 {
		return false
	}
	var batch events.SQSEvent
	for _, m := range out.Messages {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: aws.ToString(m.MessageId), Body: aws.ToString(m.Body)})
	}
	response, err := handle(context.WithoutCancel(w.T.Context()), batch)
	if own && p.Switch.Dead() {
		p.restart()
		return true
	}
	if err != nil {
		w.T.Fatal(err)
	}
	w.finish(url, out.Messages, response)
	return true
}

func (w *World) finish(url string, messages []sqstypes.Message, response events.SQSEventResponse) {
	failed := map[string]bool{}
	for _, f := range response.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	for _, m := range messages {
		if failed[aws.ToString(m.MessageId)] {
			continue
		}
		_, err := w.sqs.DeleteMessage(w.T.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
		if err != nil {
			w.T.Fatal(err)
		}
	}
}

// Waiting counts the messages that the queue holds, those with a delay too.
func (w *World) Waiting() int {
	w.T.Helper()
	out, err := w.sqs.GetQueueAttributes(w.T.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &w.queue, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		w.T.Fatal(err)
	}
	total := 0
	for _, name := range []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages, sqstypes.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	} {
		n, err := strconv.Atoi(out.Attributes[string(name)])
		if err != nil {
			w.T.Fatal(err)
		}
		total += n
	}
	return total
}

// Purge loses every message in the queue.
func (w *World) Purge() {
	w.T.Helper()
	if _, err := w.sqs.PurgeQueue(w.T.Context(), &sqs.PurgeQueueInput{QueueUrl: &w.queue}); err != nil {
		w.T.Fatal(err)
	}
}

// Reconcile makes one scheduled pass.
func (w *World) Reconcile() {
	w.T.Helper()
	err := w.Schedule().Handle(context.WithoutCancel(w.T.Context()))
	if w.Reconciler.Switch.Dead() {
		w.Reconciler.restart()
		return
	}
	w.ReconcileErr = err
}

// Settle works off what is ready now: stream and queue, until both are empty.
func (w *World) Settle() {
	w.T.Helper()
	for range settleMax {
		stream, queue, deliveries := w.PumpStream(), w.PumpQueue(), w.PumpDeliveries()
		if !stream && !queue && !deliveries {
			return
		}
	}
	w.T.Fatal("stream and queue do not come to rest")
}

// Bounds of a rest: what has not ended by then never will.
const (
	settleMax = 10_000
	restMax   = 40
)

// Rest lets the system run until every accepted event is terminal or held and no
// promise is open: providers send again, the schedule passes, time goes by in
// growing steps, at most some days in all.
func (w *World) Rest() {
	w.T.Helper()
	step := time.Minute
	for range restMax {
		w.retryDeliveries()
		w.Settle()
		if w.AtRest() {
			return
		}
		w.Advance(step)
		step = min(step*2, 6*time.Hour)
		w.Reconcile()
	}
}

// Minute is one minute of the system: providers send again what was not
// acknowledged, stream and queue are worked off, time goes by, the schedule passes.
func (w *World) Minute() {
	w.T.Helper()
	w.retryDeliveries()
	w.Settle()
	w.Advance(time.Minute)
	w.Reconcile()
}

func (w *World) retryDeliveries() {
	waiting := w.pending
	w.pending = nil
	for _, d := range waiting {
		w.Send(d)
	}
}

// AtRest reports whether nothing is left to do.
func (w *World) AtRest() bool {
	w.T.Helper()
	if len(w.pending) > 0 {
		return false
	}
	held := map[webhook.InboxID]bool{}
	for _, r := range w.Inbox() {
		held[r.ID] = r.Status == webhook.Held
		if !r.Status.Terminal() && !held[r.ID] {
			return false
		}
	}
	for _, o := range w.Outbox() {
		if !held[o.InboxID] || o.Topic == webhook.TopicEffect {
			return false
		}
	}
	for _, d := range w.Deliveries() {
		if !d.Status.Terminal() && d.Status != delivery.Faulted {
			return false
		}
	}
	return true
}
