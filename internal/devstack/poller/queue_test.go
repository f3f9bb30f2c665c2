package poller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/poller"
)

// fakeQueue is a queue with a visibility timeout of 30 s.
type fakeQueue struct {
	mu       sync.Mutex
	messages []*fakeMessage
	changed  chan struct{}
	fail     []error
}

type fakeMessage struct {
	id      string
	visible time.Time
	message types.Message
}

func newQueue(ids ...string) *fakeQueue {
	q := &fakeQueue{changed: make(chan struct{}, 100)}
	for _, id := range ids {
		q.send(id)
	}
	return q
}

func (q *fakeQueue) send(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, &fakeMessage{id: id, message: types.Message{
		MessageId: aws.String(id), Body: aws.String("body of " + id), ReceiptHandle: aws.String("handle of " + id), MD5OfBody: aws.String("md5"),
		Attributes: map[string]string{"ApproximateReceiveCount": "1"},
	}})
	q.changed <- struct{}{}
}

func (q *fakeQueue) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	wait := time.After(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		out, err := q.take(int(in.MaxNumberOfMessages))
		if err != nil || len(out.Messages) > 0 || in.WaitTimeSeconds == 0 {
			return out, err
		}
		select {
		case <-q.changed:
		case <-time.After(time.Second): // a message may become visible
		case <-wait:
			return out, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q *fakeQueue) take(n int) (*sqs.ReceiveMessageOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.fail) > 0 {
		err := q.fail[0]
		q.fail = q.fail[1:]
		return nil, err
	}
	out := &sqs.ReceiveMessageOutput{}
	for _, m := range q.messages {
		if len(out.Messages) < n && !m.visible.After(time.Now()) {
			m.visible = time.Now().Add(30 * time.Second)
			out.Messages = append(out.Messages, m.message)
		}
	}
	return out, nil
}

func (q *fakeQueue) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(in.Entries) > 10 {
		return nil, errors.New("TooManyEntriesInBatchRequest")
	}
	for _, e := range in.Entries {
		q.messages = slices.DeleteFunc(q.messages, func(m *fakeMessage) bool { return "handle of "+m.id == *e.ReceiptHandle })
	}
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func (q *fakeQueue) left() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	ids := []string{}
	for _, m := range q.messages {
		ids = append(ids, m.id)
	}
	return ids
}

// worker is the function: it notes the message ids of each batch and answers as told.
type worker struct {
	mu            sync.Mutex
	batches       []string
	running, most int
	work          time.Duration
	answer        func(n int, ids []string) (response, functionError string, err error)
}

func (w *worker) invoke(_ context.Context, payload []byte) ([]byte, string, error) {
	var event events.SQSEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, "", err
	}
	var ids []string
	for _, m := range event.Records {
		ids = append(ids, m.MessageId)
	}
	w.mu.Lock()
	w.batches = append(w.batches, strings.Join(ids, " "))
	n := len(w.batches)
	w.running++
	w.most = max(w.most, w.running)
	w.mu.Unlock()
	time.Sleep(w.work) // virtual
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	if w.answer == nil {
		return nil, "", nil
	}
	response, functionError, err := w.answer(n, ids)
	return []byte(response), functionError, err
}

// runQueue runs a queue poller in a bubble for a virtual while.
func runQueue(t *testing.T, q *fakeQueue, w *worker, d time.Duration, change func(*poller.QueueConfig)) {
	t.Helper()
	cfg := poller.QueueConfig{Client: q, QueueURL: "http://queue", QueueARN: "arn:queue", Region: "us-east-1", Invoke: w.invoke}
	if change != nil {
		change(&cfg)
	}
	p, err := poller.NewQueue(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	time.Sleep(d)
	cancel()
	<-done
}

func ids(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("m%d", i+1))
	}
	return list
}

func TestAnSQSEventHasLambdasShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue("m1")
		q.messages[0].message.MD5OfMessageAttributes = aws.String("md5a")
		q.messages[0].message.MessageAttributes = map[string]types.MessageAttributeValue{"trace": {DataType: aws.String("String"), StringValue: aws.String("x")}}
		var payload []byte
		runQueue(t, q, &worker{}, time.Second, func(c *poller.QueueConfig) {
			c.Invoke = func(_ context.Context, p []byte) ([]byte, string, error) { payload = p; return nil, "", nil }
		})
		want := `{"Records":[{"messageId":"m1","receiptHandle":"handle of m1","body":"body of m1","md5OfBody":"md5","md5OfMessageAttributes":"md5a",` +
			`"attributes":{"ApproximateReceiveCount":"1"},"messageAttributes":{"trace":{"stringValue":"x","stringListValues":[],"binaryListValues":[],"dataType":"String"}},` +
			`"eventSourceARN":"arn:queue","eventSource":"aws:sqs","awsRegion":"us-east-1"}]}`
		if diff := cmp.Diff(want, string(payload)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if left := q.left(); len(left) != 0 {
			t.Errorf("left in the queue: %v", left)
		}
	})
}

func TestAnErrorBringsTheWholeBatchBackAfterItsVisibility(t *testing.T) {
	for name, fail := range map[string]func(n int, ids []string) (string, string, error){
		"function error": func(n int, _ []string) (string, string, error) {
			if n == 1 {
				return "", "Unhandled", nil
			}
			return "", "", nil
		},
		"throttled": func(n int, _ []string) (string, string, error) {
			if n == 1 {
				return "", "", errors.New("throttled")
			}
			return "", "", nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, w := newQueue(ids(3)...), &worker{answer: fail}
				start := time.Now()
				var second time.Time
				runQueue(t, q, w, time.Minute, func(c *poller.QueueConfig) {
					c.Invoke = func(ctx context.Context, p []byte) ([]byte, string, error) {
						second = time.Now()
						return w.invoke(ctx, p)
					}
				})
				if diff := cmp.Diff([]string{"m1 m2 m3", "m1 m2 m3"}, w.batches); diff != "" {
					t.Errorf("batches (-want +got):\n%s", diff)
				}
				if after := second.Sub(start); after < 30*time.Second || len(q.left()) != 0 {
					t.Errorf("came back after %v, left %v", after, q.left())
				}
			})
		})
	}
}

func TestOnlyReportedFailuresComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(ids(4)...)
		w := &worker{answer: func(n int, _ []string) (string, string, error) {
			if n == 1 {
				return `{"batchItemFailures":[{"itemIdentifier":"m2"},{"itemIdentifier":"m4"}]}`, "", nil
			}
			return `{"batchItemFailures":[]}`, "", nil
		}}
		runQueue(t, q, w, time.Minute, func(c *poller.QueueConfig) { c.ReportBatchItemFailures = true })
		if diff := cmp.Diff([]string{"m1 m2 m3 m4", "m2 m4"}, w.batches); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if left := q.left(); len(left) != 0 {
			t.Errorf("left in the queue: %v", left)
		}
	})
}

func TestABadIdentifierBringsTheWholeBatchBack(t *testing.T) {
	for _, response := range []string{`{"batchItemFailures":[{"itemIdentifier":""}]}`, `{"batchItemFailures":[{"itemIdentifier":"m9"}]}`, `{"batchItemFailures":[{"id":"m1"}]}`, `failed`} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(ids(2)...)
			w := &worker{answer: func(int, []string) (string, string, error) { return response, "", nil }}
			runQueue(t, q, w, 10*time.Second, func(c *poller.QueueConfig) { c.ReportBatchItemFailures = true })
			if diff := cmp.Diff([]string{"m1", "m2"}, q.left()); diff != "" {
				t.Errorf("%s: left (-want +got):\n%s", response, diff)
			}
		})
	}
}

// Proves the bound that T5 saturates: never more batches at once than MaximumConcurrency.
func TestMaximumConcurrencyIsReachedAndNeverPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := newQueue(ids(60)...), &worker{work: 3 * time.Second}
		runQueue(t, q, w, time.Minute, func(c *poller.QueueConfig) { c.BatchSize, c.ConcurrencyMax = 1, 8 })
		if w.most != 8 || len(w.batches) != 60 || len(q.left()) != 0 {
			t.Errorf("most at once %d, batches %d, left %d; want 8, 60, 0", w.most, len(w.batches), len(q.left()))
		}
	})
}

func TestConcurrencyBeginsWithFive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := newQueue(ids(60)...), &worker{work: 900 * time.Millisecond}
		runQueue(t, q, w, 800*time.Millisecond, func(c *poller.QueueConfig) { c.BatchSize = 1 })
		if w.most != 5 {
			t.Errorf("most at once %d, want 5", w.most)
		}
	})
}

func TestAWindowGathersABatchLargerThanSQSGives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := newQueue(ids(12)...), &worker{}
		go func() {
			time.Sleep(2 * time.Second)
			q.send("m13")
		}()
		runQueue(t, q, w, 30*time.Second, func(c *poller.QueueConfig) { c.BatchSize, c.Window = 25, 5*time.Second })
		if diff := cmp.Diff([]string{strings.Join(ids(13), " ")}, w.batches); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if left := q.left(); len(left) != 0 {
			t.Errorf("left in the queue: %v", left)
		}
	})
}

func TestAFailingQueueIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := newQueue("m1"), &worker{}
		q.fail = []error{errors.New("stalled"), errors.New("stalled")}
		var log bytes.Buffer
		runQueue(t, q, w, time.Minute, func(c *poller.QueueConfig) {
			c.Logf = func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }
		})
		if diff := cmp.Diff([]string{"m1"}, w.batches); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if want := "queue: receive: stalled; next try in 50ms\nqueue: receive: stalled; next try in 100ms\n"; log.String() != want {
			t.Errorf("log %q, want %q", &log, want)
		}
	})
}

func TestALargeBatchWithoutAWindowIsRefused(t *testing.T) {
	w := &worker{}
	if _, err := poller.NewQueue(poller.QueueConfig{Client: newQueue(), QueueURL: "u", Invoke: w.invoke, BatchSize: 11}); err == nil {
		t.Error("no error")
	}
}
