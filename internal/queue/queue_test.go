package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/queue"
	"dakghar/internal/webhook"
)

// client answers batches as it is told, and remembers them.
type client struct {
	batches [][]types.SendMessageBatchRequestEntry
	answer  func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error)
}

func (c *client) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	c.batches = append(c.batches, in.Entries)
	return c.answer(in)
}

func allTaken(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func wakes(n int) ([]webhook.Wake, []time.Duration) {
	w, d := make([]webhook.Wake, n), make([]time.Duration, n)
	for i := range w {
		w[i] = webhook.Wake{Version: 1, OutboxID: webhook.OutboxID(fmt.Sprint("o", i)), InboxID: "in_1", Topic: "process", Gen: 2}
	}
	return w, d
}

// Proves D5: batches of ten, whole seconds rounded up so that nothing wakes too
// early, and the message that readers rely on.
func TestSendInBatchesOfTen(t *testing.T) {
	t.Parallel()
	c := &client{answer: allTaken}
	w, d := wakes(21)
	d[0], d[1], d[2] = time.Millisecond, 15*time.Minute, 1500*time.Millisecond
	for i, err := range (&queue.Queue{Client: c, URL: "u"}).Send(t.Context(), w, d) {
		if err != nil {
			t.Errorf("wake %d: %v", i, err)
		}
	}
	var sizes []int
	for _, b := range c.batches {
		sizes = append(sizes, len(b))
	}
	if diff := cmp.Diff([]int{10, 10, 1}, sizes); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	first := c.batches[0]
	if got := []int32{first[0].DelaySeconds, first[1].DelaySeconds, first[2].DelaySeconds, first[3].DelaySeconds}; !cmp.Equal([]int32{1, 900, 2, 0}, got) {
		t.Errorf("delays %v", got)
	}
	if want := `{"v":1,"outbox_id":"o0","inbox_id":"in_1","topic":"process","gen":2}`; aws.ToString(first[0].MessageBody) != want {
		t.Errorf("message %s, want %s", aws.ToString(first[0].MessageBody), want)
	}
}

// Each entry of an answer counts for itself; one that is not answered was not sent.
func TestOnlyWhatTheQueueTookCountsAsSent(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error){
		"an entry fails": func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			out, err := allTaken(in)
			out.Successful = append(out.Successful[:1], out.Successful[2:]...)
			out.Failed = []types.BatchResultErrorEntry{{Id: in.Entries[1].Id, Code: aws.String("InternalError")}}
			return out, err
		},
		"an entry is not answered": func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			out, err := allTaken(in)
			out.Successful = append(out.Successful[:1], out.Successful[2:]...)
			return out, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := wakes(3)
			errs := (&queue.Queue{Client: &client{answer: answer}, URL: "u"}).Send(t.Context(), w, d)
			if errs[0] != nil || errs[1] == nil || errs[2] != nil || fault.KindOf(errs[1]) != fault.Ours {
				t.Errorf("errors %v", errs)
			}
		})
	}
	t.Run("the call fails", func(t *testing.T) {
		t.Parallel()
		down := errors.New("down")
		w, d := wakes(2)
		c := &client{answer: func(*sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) { return nil, down }}
		for i, err := range (&queue.Queue{Client: c, URL: "u"}).Send(t.Context(), w, d) {
			if fault.KindOf(err) != fault.Ours || fault.CodeOf(err) != "queue_unreachable" || strings.Contains(err.Error(), "down") {
				t.Errorf("wake %d: %v", i, err)
			}
		}
	})
}
