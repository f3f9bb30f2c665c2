package queue

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dakghar/internal/awsfault"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// LetterClient is what [DeadLetters] needs of SQS.
type LetterClient interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	StartMessageMoveTask(context.Context, *sqs.StartMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.StartMessageMoveTaskOutput, error)
	ListMessageMoveTasks(context.Context, *sqs.ListMessageMoveTasksInput, ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error)
}

// DeadLetters is one dead-letter queue. Reading it hides a letter for a while
// and takes nothing away; only Remove and Move do.
type DeadLetters struct {
	Client LetterClient
	URL    string
}

// longPoll makes a receive ask all of the service's servers: a short one may miss
// what lies on the others.
const longPoll = 1

// Receive takes up to ten letters and hides them from every other reader for a
// time, in whole seconds. None means that none was found.
func (d *DeadLetters) Receive(ctx context.Context, hidden time.Duration) ([]webhook.Letter, error) {
	out, err := d.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &d.URL, MaxNumberOfMessages: batchMax, VisibilityTimeout: seconds(hidden), WaitTimeSeconds: longPoll,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameSentTimestamp, types.MessageSystemAttributeNameApproximateReceiveCount,
		},
	})
	if err != nil {
		return nil, failed("ReceiveMessage", err)
	}
	letters := make([]webhook.Letter, len(out.Messages))
	for i, m := range out.Messages {
		letters[i] = letterOf(m)
	}
	return letters, nil
}

func letterOf(m types.Message) webhook.Letter {
	l := webhook.Letter{ID: aws.ToString(m.MessageId), Handle: aws.ToString(m.ReceiptHandle), Body: aws.ToString(m.Body)}
	if n, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		l.SentAt = time.UnixMilli(n).UTC()
	}
	if n, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]); err == nil {
		l.Receives = n
	}
	return l
}

// GiveBack shows letters to other readers at once. One that is gone, or that is not
// ours any more, counts as given back; one that cannot be given back shows itself
// when its time is over.
func (d *DeadLetters) GiveBack(ctx context.Context, letters []webhook.Letter) error {
	return inTens(letters, func(some []webhook.Letter) (int, error) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(some))
		for i, l := range some {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &l.Handle, VisibilityTimeout: 0}
		}
		out, err := d.Client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &d.URL, Entries: entries})
		if err != nil {
			return 0, failed("ChangeMessageVisibilityBatch", err)
		}
		taken := len(out.Successful)
		for _, f := range out.Failed {
			if notOurs(aws.ToString(f.Code)) {
				taken++
			}
		}
		return taken, nil
	})
}

// notOurs tells from the code of an entry that could not be shown that there is
// nothing to show: its time is over, it was received anew, or it was deleted. SQS
// says the first by MessageNotInflight or by success, and the others by
// InvalidParameterValue ("Message does not exist or is not available for visibility
// timeout change"), which a timeout of zero cannot mean otherwise: a handle that it
// cannot read is ReceiptHandleIsInvalid.
func notOurs(code string) bool {
	return strings.HasSuffix(code, "MessageNotInflight") || strings.HasSuffix(code, "InvalidParameterValue")
}

// Remove deletes letters. One that is gone already counts as removed.
func (d *DeadLetters) Remove(ctx context.Context, letters []webhook.Letter) error {
	return inTens(letters, func(some []webhook.Letter) (int, error) {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(some))
		for i, l := range some {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &l.Handle}
		}
		out, err := d.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &d.URL, Entries: entries})
		if err != nil {
			return 0, failed("DeleteMessageBatch", err)
		}
		return len(out.Successful), nil
	})
}

// inTens hands letters to a batch call, ten at a time, all of them even after a
// failure. An entry that the service did not take is an error.
func inTens(letters []webhook.Letter, call func([]webhook.Letter) (taken int, err error)) error {
	var first error
	for from := 0; from < len(letters); from += batchMax {
		some := letters[from:min(from+batchMax, len(letters))]
		taken, err := call(some)
		if err == nil && taken < len(some) {
			err = fault.New(fault.Ours, "queue_refused", errNotTaken)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// Depth tells about how many letters there are.
func (d *DeadLetters) Depth(ctx context.Context) (webhook.Depth, error) {
	waiting, hidden := types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	attributes, err := d.attributes(ctx, waiting, hidden)
	if err != nil {
		return webhook.Depth{}, err
	}
	var depth webhook.Depth
	for name, n := range map[types.QueueAttributeName]*int{waiting: &depth.Waiting, hidden: &depth.Hidden} {
		if *n, err = strconv.Atoi(attributes[string(name)]); err != nil {
			return depth, fault.New(fault.Ours, "queue_unreadable", err)
		}
	}
	return depth, nil
}

// Move has the service bring every letter that waits back to the queue it came
// from, up to rate messages a second, 1 to 500. A move that runs already is an error.
func (d *DeadLetters) Move(ctx context.Context, rate int) error {
	arn, err := d.arn(ctx)
	if err != nil {
		return err
	}
	_, err = d.Client.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{
		SourceArn: &arn, MaxNumberOfMessagesPerSecond: aws.Int32(int32(rate)), //nolint:gosec // at most 500
	})
	if err != nil {
		return failed("StartMessageMoveTask", err)
	}
	return nil
}

// LastMove returns the newest move, and whether there was one.
func (d *DeadLetters) LastMove(ctx context.Context) (webhook.Move, bool, error) {
	arn, err := d.arn(ctx)
	if err != nil {
		return webhook.Move{}, false, err
	}
	out, err := d.Client.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &arn, MaxResults: aws.Int32(1)})
	if err != nil {
		return webhook.Move{}, false, failed("ListMessageMoveTasks", err)
	}
	if len(out.Results) == 0 {
		return webhook.Move{}, false, nil
	}
	task := out.Results[0]
	status := aws.ToString(task.Status)
	m := webhook.Move{
		StartedAt: time.UnixMilli(task.StartedTimestamp).UTC(), Running: status == "RUNNING" || status == "CANCELLING",
		Moved: int(task.ApproximateNumberOfMessagesMoved), ToMove: int(aws.ToInt64(task.ApproximateNumberOfMessagesToMove)),
		Failure: aws.ToString(task.FailureReason),
	}
	if m.Failure == "" && (status == "FAILED" || status == "CANCELLED") {
		m.Failure = status
	}
	return m, true, nil
}

func (d *DeadLetters) arn(ctx context.Context) (string, error) {
	attributes, err := d.attributes(ctx, types.QueueAttributeNameQueueArn)
	return attributes[string(types.QueueAttributeNameQueueArn)], err
}

func (d *DeadLetters) attributes(ctx context.Context, names ...types.QueueAttributeName) (map[string]string, error) {
	out, err := d.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &d.URL, AttributeNames: names})
	if err != nil {
		return nil, failed("GetQueueAttributes", err)
	}
	return out.Attributes, nil
}

func failed(call string, err error) error {
	return fault.New(fault.Ours, "queue_"+awsfault.Cause(err), awsfault.Summary(call, err))
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) } //nolint:gosec // hours at most
