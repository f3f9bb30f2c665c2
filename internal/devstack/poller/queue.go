package poller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// What SQS gives and takes at once, and how long it waits for a message.
const (
	sqsBatchMax  = 10
	longPollTime = 20 * time.Second
)

// QueueAPI is the part of SQS that a Queue reads with.
type QueueAPI interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// QueueConfig describes an event source mapping from an SQS queue. Zero values
// mean the default named beside them.
type QueueConfig struct {
	Client   QueueAPI
	QueueURL string
	QueueARN string
	Region   string
	Invoke   Invoke

	BatchSize               int           // messages an invocation; default 10
	Window                  time.Duration // how long a batch may wait to fill; default none
	ConcurrencyMax          int           // batches at once; default 1,000, Lambda's own bound
	ConcurrencyFirst        int           // batches at once in the beginning; default 5, as Lambda's
	ReportBatchItemFailures bool

	RetryFirst time.Duration // pause after the first failed receive, then doubling; default 50 ms
	RetryLast  time.Duration // longest pause; default 5 s
	Clock      Clock
	Logf       Logf
}

func (c QueueConfig) withDefaults() QueueConfig {
	c.BatchSize = orDefault(c.BatchSize, 10)
	c.ConcurrencyMax = orDefault(c.ConcurrencyMax, 1000)
	c.ConcurrencyFirst = min(orDefault(c.ConcurrencyFirst, 5), c.ConcurrencyMax)
	c.RetryFirst = orDefault(c.RetryFirst, 50*time.Millisecond)
	c.RetryLast = orDefault(c.RetryLast, 5*time.Second)
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Logf == nil {
		c.Logf = discard
	}
	return c
}

// Queue reads one SQS queue for one function.
type Queue struct {
	cfg   QueueConfig
	slots chan struct{} // one token for each batch that may run now
}

// NewQueue makes a Queue; Run starts it.
func NewQueue(cfg QueueConfig) (*Queue, error) {
	if cfg.Client == nil || cfg.QueueURL == "" || cfg.Invoke == nil {
		return nil, errors.New("poller: a queue needs Client, QueueURL and Invoke")
	}
	if cfg.BatchSize > sqsBatchMax && cfg.Window < time.Second {
		return nil, fmt.Errorf("poller: a BatchSize of %d needs a window of 1 s or more, as on Lambda", cfg.BatchSize)
	}
	cfg = cfg.withDefaults()
	q := &Queue{cfg: cfg, slots: make(chan struct{}, cfg.ConcurrencyMax)}
	for range cfg.ConcurrencyFirst {
		q.slots <- struct{}{}
	}
	return q, nil
}

// Run reads until ctx ends, and returns when no invocation of its own runs any
// more. Failures of the queue are logged and tried again.
func (q *Queue) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { q.grow(ctx) })
	retry := backoff{first: q.cfg.RetryFirst, last: q.cfg.RetryLast}
	for q.acquire(ctx) {
		batch, err := q.receive(ctx)
		if len(batch) == 0 {
			q.slots <- struct{}{}
		} else {
			running.Go(func() {
				defer func() { q.slots <- struct{}{} }()
				q.deliver(ctx, batch)
			})
		}
		switch {
		case err == nil:
			retry.reset()
		case ctx.Err() == nil:
			wait := retry.step()
			q.cfg.Logf("queue: receive: %v; next try in %v", err, wait)
			pause(ctx, q.cfg.Clock, wait)
		}
	}
}

func (q *Queue) acquire(ctx context.Context) bool {
	select {
	case <-q.slots:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// grow allows five more batches at once for every second in which all were in
// use: Lambda's 300 a minute.
func (q *Queue) grow(ctx context.Context) {
	for limit := q.cfg.ConcurrencyFirst; limit < q.cfg.ConcurrencyMax && pause(ctx, q.cfg.Clock, time.Second); {
		if len(q.slots) > 0 {
			continue
		}
		more := min(5, q.cfg.ConcurrencyMax-limit)
		for range more {
			q.slots <- struct{}{}
		}
		limit += more
	}
}

// receive waits for a message, and then for more of them until the batch is full
// or the window over.
func (q *Queue) receive(ctx context.Context) ([]types.Message, error) {
	batch, err := q.receiveOnce(ctx, q.cfg.BatchSize, longPollTime)
	if len(batch) == 0 || err != nil {
		return batch, err
	}
	end := q.cfg.Clock.Now().Add(q.cfg.Window)
	for len(batch) < q.cfg.BatchSize {
		left := end.Sub(q.cfg.Clock.Now())
		if left <= 0 {
			break
		}
		wait := left.Truncate(time.Second) // SQS waits whole seconds
		more, err := q.receiveOnce(ctx, q.cfg.BatchSize-len(batch), min(wait, longPollTime))
		batch = append(batch, more...)
		if err != nil {
			return batch, err
		}
		if len(more) == 0 && wait == 0 && !pause(ctx, q.cfg.Clock, min(left, 50*time.Millisecond)) {
			break
		}
	}
	return batch, nil
}

func (q *Queue) receiveOnce(ctx context.Context, n int, wait time.Duration) ([]types.Message, error) {
	// A queue that is stalled must not hold us longer than its own longest wait.
	ctx, cancel := context.WithTimeout(ctx, longPollTime+10*time.Second)
	defer cancel()
	out, err := q.cfg.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    &q.cfg.QueueURL,
		MaxNumberOfMessages:         int32(min(n, sqsBatchMax)),
		WaitTimeSeconds:             int32(wait / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// deliver invokes the function once. What it did not accept stays in the queue
// and comes back after its visibility timeout.
func (q *Queue) deliver(ctx context.Context, batch []types.Message) {
	response, functionError, err := q.cfg.Invoke(ctx, q.event(batch))
	switch {
	case err != nil:
		if ctx.Err() == nil {
			q.cfg.Logf("queue: invocation refused: %v", err)
		}
		return
	case functionError != "":
		return // the function's own log says why
	case q.cfg.ReportBatchItemFailures:
		batch = accepted(response, batch)
	}
	for chunk := range slices.Chunk(batch, sqsBatchMax) {
		q.remove(ctx, chunk)
	}
}

// accepted is the part of the batch that the response does not say failed.
func accepted(response []byte, batch []types.Message) []types.Message {
	known := make([]string, len(batch))
	for i, m := range batch {
		known[i] = aws.ToString(m.MessageId)
	}
	p := readPartial(response, known)
	if p.whole {
		return nil
	}
	return slices.DeleteFunc(batch, func(m types.Message) bool { return slices.Contains(p.failed, aws.ToString(m.MessageId)) })
}

// remove deletes messages, also while the stack shuts down: a message whose work
// is done should not come back.
func (q *Queue) remove(ctx context.Context, batch []types.Message) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &q.cfg.QueueURL}
	for i, m := range batch {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	out, err := q.cfg.Client.DeleteMessageBatch(ctx, in)
	if err != nil {
		q.cfg.Logf("queue: delete: %v", err)
		return
	}
	for _, f := range out.Failed {
		q.cfg.Logf("queue: delete of a message: %s", aws.ToString(f.Code))
	}
}

func (q *Queue) event(batch []types.Message) []byte {
	event := events.SQSEvent{Records: make([]events.SQSMessage, len(batch))}
	for i, m := range batch {
		event.Records[i] = events.SQSMessage{
			MessageId:              aws.ToString(m.MessageId),
			ReceiptHandle:          aws.ToString(m.ReceiptHandle),
			Body:                   aws.ToString(m.Body),
			Md5OfBody:              aws.ToString(m.MD5OfBody),
			Md5OfMessageAttributes: aws.ToString(m.MD5OfMessageAttributes),
			Attributes:             m.Attributes,
			MessageAttributes:      messageAttributes(m.MessageAttributes),
			EventSource:            "aws:sqs",
			EventSourceARN:         q.cfg.QueueARN,
			AWSRegion:              q.cfg.Region,
		}
	}
	encoded, err := json.Marshal(event)
	if err != nil {
		panic(fmt.Sprintf("poller: encoding an SQS event: %v", err))
	}
	return encoded
}

func messageAttributes(in map[string]types.MessageAttributeValue) map[string]events.SQSMessageAttribute {
	out := make(map[string]events.SQSMessageAttribute, len(in))
	for name, v := range in {
		out[name] = events.SQSMessageAttribute{
			StringValue: v.StringValue, BinaryValue: v.BinaryValue, DataType: aws.ToString(v.DataType),
			StringListValues: []string{}, BinaryListValues: [][]byte{},
		}
	}
	return out
}
