package operator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	devsqs "dakghar/internal/devstack/sqs"
	"dakghar/internal/devstack/wiretest"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/queue"
	"dakghar/internal/webhook"
)

// local is a heap whose letters lie in the embedded queue, in a bubble with a clock
// of its own.
type local struct {
	*operatortest.World

	op     *operator.Operator
	dead   *queue.DeadLetters
	client *sqs.Client
	work   string // the queue that gave them up
}

func onLocalQueue(t *testing.T, n int, test func(t *testing.T, l *local)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := devsqs.New(devsqs.Config{})
		t.Cleanup(server.Close)
		at := wiretest.Serve(t, server)
		w, o := heap(t, n)
		l := &local{World: w, op: o, client: sqs.New(sqs.Options{
			Region: "us-east-1", BaseEndpoint: &at.URL, HTTPClient: at.Client, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		})}
		l.dead = &queue.DeadLetters{Client: l.client, URL: l.queue(t, "dead", nil)}
		out, err := l.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &l.dead.URL, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
		if err != nil {
			t.Fatal(err)
		}
		l.work = l.queue(t, "work", map[string]string{"VisibilityTimeout": "0", "RedrivePolicy": `{"deadLetterTargetArn":"` + out.Attributes["QueueArn"] + `","maxReceiveCount":1}`})
		for _, letter := range w.EventLetters.Letters {
			if _, err := l.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &l.work, MessageBody: &letter.Body}); err != nil {
				t.Fatal(err)
			}
		}
		l.receive(t, 0) // hides nothing, so each is given up when it is met again
		o.EventDeadLetters = l.dead
		o.Wait = func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		l.wantDepth(t, "at first", webhook.Depth{Waiting: n})
		test(t, l)
	})
}

func (l *local) queue(t *testing.T, name string, attributes map[string]string) string {
	t.Helper()
	out, err := l.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.QueueUrl)
}

// receive takes what the work queue shows until it shows nothing, and returns the
// bodies. 0 is the queue's own time, which is none.
func (l *local) receive(t *testing.T, hidden int32) []string {
	t.Helper()
	var bodies []string
	for {
		out, err := l.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &l.work, MaxNumberOfMessages: 10, VisibilityTimeout: hidden})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			slices.Sort(bodies)
			return bodies
		}
		for _, m := range out.Messages {
			bodies = append(bodies, aws.ToString(m.Body))
		}
	}
}

func (l *local) depth(t *testing.T) webhook.Depth {
	t.Helper()
	d, err := l.dead.Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (l *local) wantDepth(t *testing.T, when string, want webhook.Depth) {
	t.Helper()
	if got := l.depth(t); got != want {
		t.Errorf("%s: depth %+v, want %+v", when, got, want)
	}
}

// wantSifted is [wantSifted], of the letters in the embedded queue.
func (l *local) wantSifted(t *testing.T, name string, n int) {
	t.Helper()
	l.wantDepth(t, name, webhook.Depth{})
	l.EventLetters = operatortest.LetterQueue{Sent: l.receive(t, 30)}
	wantSifted(t, name, l.World, n)
}

// Proves R3 on the embedded queue: a sift in portions removes what is useless,
// replays what FAILED, and hides a portion at a time until the last.
func TestASiftInPortionsOfTheEmbeddedQueue(t *testing.T) {
	t.Parallel()
	const n = 150
	onLocalQueue(t, n, func(t *testing.T, l *local) {
		p, err := l.op.PlanRedrive(t.Context(), slowly())
		if err != nil {
			t.Fatal(err)
		}
		hidden := 0
		got, err := l.op.Redrive(t.Context(), p, func(d operator.Redriven) {
			if d.Judged > 0 && d.Judged < n {
				hidden = max(hidden, l.depth(t).Hidden)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(operator.Redriven{Replayed: n / 5, Removed: 2 * n / 5, Moved: 3 * n / 5}, got); diff != "" || hidden > slowPortion {
			t.Errorf("%d hidden at most; done (-want +got):\n%s", hidden, diff)
		}
		l.wantSifted(t, "done", n)
	})
}

// Proves R3, T5 on the embedded queue: a sift that is interrupted in any of its
// portions shows at once what it held, and the same command does the rest.
func TestASiftOfTheEmbeddedQueueIsInterruptedInEachPortion(t *testing.T) {
	t.Parallel()
	const n = 100
	for judged := 10; judged <= n; judged += 10 { // three receives a portion
		onLocalQueue(t, n, func(t *testing.T, l *local) {
			p, err := l.op.PlanRedrive(t.Context(), slowly())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got, err := l.op.Redrive(ctx, p, func(d operator.Redriven) {
				if d.Judged == judged {
					cancel()
				}
			})
			name := fmt.Sprint("interrupted after ", judged)
			wantRefusal(t, err, "interrupted")
			l.wantDepth(t, name, webhook.Depth{Waiting: n - got.Removed})
			if want := 2 * judged / 5; got.Removed != want || got.Judged != 0 {
				t.Errorf("%s: %+v, want %d removed", name, got, want)
			}
			if _, err := redrive(t, l.op, slowly()); err != nil {
				t.Fatal(err)
			}
			l.wantSifted(t, name, n)
		})
	}
}

// killed is a queue whose calls get no answer any more, in either direction.
type killed struct {
	operator.DeadLetters

	receives int
}

func (k *killed) Receive(ctx context.Context, hidden time.Duration) ([]webhook.Letter, error) {
	if k.receives--; k.receives < 0 {
		return nil, operatortest.ErrDown
	}
	return k.DeadLetters.Receive(ctx, hidden)
}

func (k *killed) GiveBack(ctx context.Context, letters []webhook.Letter) error {
	if k.receives < 0 {
		return operatortest.ErrDown
	}
	return k.DeadLetters.GiveBack(ctx, letters)
}

// Proves R3, T5 on the embedded queue: what a killed sift hid is shown after two minutes.
func TestASiftOfTheEmbeddedQueueThatIsKilled(t *testing.T) {
	t.Parallel()
	const n = 50
	onLocalQueue(t, n, func(t *testing.T, l *local) {
		p, err := l.op.PlanRedrive(t.Context(), slowly())
		if err != nil {
			t.Fatal(err)
		}
		l.op.EventDeadLetters = &killed{DeadLetters: l.dead, receives: 4} // in the second portion
		got, err := l.op.Redrive(t.Context(), p, unheard)
		wantRefusal(t, err, "unavailable")
		if diff := cmp.Diff(operator.Redriven{Replayed: 8, Removed: 16}, got); diff != "" {
			t.Errorf("done (-want +got):\n%s", diff)
		}
		l.wantDepth(t, "killed", webhook.Depth{Waiting: 28, Hidden: 6})
		wiretest.Wait(2 * time.Minute)
		l.wantDepth(t, "two minutes later", webhook.Depth{Waiting: 34})
		l.op.EventDeadLetters = l.dead
		if _, err := redrive(t, l.op, slowly()); err != nil {
			t.Fatal(err)
		}
		l.wantSifted(t, "killed", n)
	})
}
