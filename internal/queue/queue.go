// Package queue sends wake-ups to SQS. A wake-up says that somebody should look
// at a row; losing or repeating one is harmless, because the row decides. The
// package looks at every entry of a batch's answer, and counts an entry without
// an answer as not sent.
//
// For an operator it also reads dead-letter queues, which takes nothing out of
// them, and gives back, removes or moves what lies there.
package queue

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dakghar/internal/awsfault"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Client is what the package needs of SQS.
type Client interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// batchMax is the service's limit of entries in one call.
const batchMax = 10

// Queue is one SQS queue of wake-ups.
type Queue struct {
	Client Client
	URL    string
}

var (
	errNotSent  = errors.New("queue: the service did not take the entry")
	errNotTaken = errors.New("queue: the service did not take every entry")
)

// Send sends each wake-up with its delay, in calls of ten. It returns one error
// per wake-up, nil where the queue took it.
func (q *Queue) Send(ctx context.Context, wakes []webhook.Wake, delays []time.Duration) []error {
	errs := make([]error, len(wakes))
	for from := 0; from < len(wakes); from += batchMax {
		to := min(from+batchMax, len(wakes))
		q.sendBatch(ctx, wakes[from:to], delays[from:to], errs[from:to])
	}
	return errs
}

func (q *Queue) sendBatch(ctx context.Context, wakes []webhook.Wake, delays []time.Duration, errs []error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(wakes))
	for i, w := range wakes {
		body, err := json.Marshal(w)
		if err != nil {
			panic("queue: a wake does not encode: " + err.Error())
		}
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body)),
			DelaySeconds: int32((delays[i] + time.Second - 1) / time.Second), //nolint:gosec // at most 900
		}
		errs[i] = fault.New(fault.Ours, "queue_refused", errNotSent)
	}
	out, err := q.Client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &q.URL, Entries: entries})
	if err != nil {
		for i := range errs {
			errs[i] = fault.New(fault.Ours, "queue_"+awsfault.Cause(err), awsfault.Summary("SendMessageBatch", err))
		}
		return
	}
	for _, sent := range out.Successful {
		if i, err := strconv.Atoi(aws.ToString(sent.Id)); err == nil && i >= 0 && i < len(errs) {
			errs[i] = nil
		}
	}
}
