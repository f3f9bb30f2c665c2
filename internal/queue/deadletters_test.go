package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	devsqs "dakghar/internal/devstack/sqs"
	"dakghar/internal/devstack/wiretest"
	"dakghar/internal/fault"
	"dakghar/internal/queue"
	"dakghar/internal/webhook"
)

// dead runs a test on the embedded queue, in a bubble with a clock of its own: a
// work queue that gives a message up after one receive, and its dead letters.
func dead(t *testing.T, test func(t *testing.T, work *sqs.Client, workURL string, d *queue.DeadLetters)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := devsqs.New(devsqs.Config{})
		t.Cleanup(server.Close)
		at := wiretest.Serve(t, server)
		client := sqs.NewFromConfig(aws.Config{
			Region: "us-east-1", BaseEndpoint: &at.URL, HTTPClient: at.Client,
			Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		})
		d := &queue.DeadLetters{Client: client, URL: made(t, client, "dead", nil)}
		out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &d.URL, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
		if err != nil {
			t.Fatal(err)
		}
		work := made(t, client, "work", map[string]string{
			"VisibilityTimeout": "1", "RedrivePolicy": `{"deadLetterTargetArn":"` + out.Attributes["QueueArn"] + `","maxReceiveCount":1}`,
		})
		test(t, client, work, d)
	})
}

func made(t *testing.T, client *sqs.Client, name string, attributes map[string]string) string {
	t.Helper()
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.QueueUrl)
}

// bury lets the work queue give n messages up.
func bury(t *testing.T, client *sqs.Client, work string, n int) {
	t.Helper()
	for i := range n {
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &work, MessageBody: aws.String(fmt.Sprint("letter ", i))}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * (n + 9) / 10 {
		if _, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &work, MaxNumberOfMessages: 10}); err != nil {
			t.Fatal(err)
		}
		wiretest.Wait(1100 * time.Millisecond)
	}
	drained(t, client, work)
}

// drained receives what a queue has, and returns the bodies.
func drained(t *testing.T, client *sqs.Client, url string) []string {
	t.Helper()
	var bodies []string
	for {
		out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
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

// all receives until there is nothing more.
func all(t *testing.T, d *queue.DeadLetters) []webhook.Letter {
	t.Helper()
	var letters []webhook.Letter
	for {
		some, err := d.Receive(t.Context(), 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			return letters
		}
		letters = append(letters, some...)
	}
}

func depth(t *testing.T, d *queue.DeadLetters) webhook.Depth {
	t.Helper()
	got, err := d.Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Proves R3: looking into the dead letters takes nothing out of them.
func TestALookIntoDeadLettersTakesNothingOut(t *testing.T) {
	t.Parallel()
	dead(t, func(t *testing.T, client *sqs.Client, work string, d *queue.DeadLetters) {
		sent := time.Now().UTC().Truncate(time.Millisecond)
		bury(t, client, work, 23)
		if got, want := depth(t, d), (webhook.Depth{Waiting: 23}); got != want {
			t.Fatalf("depth %+v, want %+v", got, want)
		}
		for look := range 2 {
			letters := all(t, d)
			if got, want := depth(t, d), (webhook.Depth{Hidden: 23}); got != want {
				t.Errorf("depth while they are read %+v, want %+v", got, want)
			}
			slices.SortFunc(letters, func(a, b webhook.Letter) int { return strings.Compare(a.Body, b.Body) })
			want := webhook.Letter{Body: "letter 0", SentAt: sent, Receives: 2 + look}
			if diff := cmp.Diff(want, letters[0], cmpopts.IgnoreFields(webhook.Letter{}, "ID", "Handle")); diff != "" || letters[0].ID == "" || len(letters) != 23 {
				t.Errorf("%d letters, the first (-want +got):\n%s", len(letters), diff)
			}
			if err := d.GiveBack(t.Context(), letters); err != nil {
				t.Fatal(err)
			}
			if got, want := depth(t, d), (webhook.Depth{Waiting: 23}); got != want {
				t.Errorf("depth afterwards %+v, want %+v", got, want)
			}
		}
	})
}

// A reader that dies hides its letters for no longer than it asked for.
func TestLettersOfAReaderThatDiedComeBack(t *testing.T) {
	t.Parallel()
	dead(t, func(t *testing.T, client *sqs.Client, work string, d *queue.DeadLetters) {
		bury(t, client, work, 3)
		all(t, d)
		wiretest.Wait(31 * time.Second)
		if got, want := depth(t, d), (webhook.Depth{Waiting: 3}); got != want {
			t.Errorf("depth %+v, want %+v", got, want)
		}
	})
}

func TestRemovedLettersAreGoneAndMayBeRemovedTwice(t *testing.T) {
	t.Parallel()
	dead(t, func(t *testing.T, client *sqs.Client, work string, d *queue.DeadLetters) {
		bury(t, client, work, 12)
		letters := all(t, d)
		for range 2 {
			if err := d.Remove(t.Context(), letters[:11]); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.GiveBack(t.Context(), letters[11:]); err != nil {
			t.Fatal(err)
		}
		if got, want := depth(t, d), (webhook.Depth{Waiting: 1}); got != want {
			t.Errorf("depth %+v, want %+v", got, want)
		}
	})
}

// What a reader holds may go, or be shown and read by another, while it holds it:
// there is nothing to give back then. A handle that never was one is an error.
func TestALetterThatIsNotOursAnyMoreNeedNotBeGivenBack(t *testing.T) {
	t.Parallel()
	dead(t, func(t *testing.T, client *sqs.Client, work string, d *queue.DeadLetters) {
		bury(t, client, work, 3)
		letters := all(t, d)
		if err := d.Remove(t.Context(), letters[:1]); err != nil {
			t.Fatal(err)
		}
		wiretest.Wait(31 * time.Second)
		if again, err := d.Receive(t.Context(), 30*time.Second); err != nil || len(again) != 2 {
			t.Fatalf("%d letters again, error %v; want 2", len(again), err)
		}
		if err := d.GiveBack(t.Context(), letters); err != nil {
			t.Errorf("one is gone, and two are another's: %v", err)
		}
		if got, want := depth(t, d), (webhook.Depth{Hidden: 2}); got != want {
			t.Errorf("depth %+v, want %+v: the other's stay hidden", got, want)
		}
		if err := d.GiveBack(t.Context(), []webhook.Letter{{ID: "x", Handle: "never one"}}); fault.KindOf(err) != fault.Ours || err == nil {
			t.Errorf("a handle that never was one: %v", err)
		}
	})
}

// Proves R3: the queue's own service moves letters back, at a rate, and tells how far it is.
func TestAMoveBringsLettersBackToTheirQueue(t *testing.T) {
	t.Parallel()
	dead(t, func(t *testing.T, client *sqs.Client, work string, d *queue.DeadLetters) {
		if m, found, err := d.LastMove(t.Context()); err != nil || found {
			t.Fatalf("a move before any: %+v, error %v", m, err)
		}
		bury(t, client, work, 5)
		began := time.Now().UTC().Truncate(time.Millisecond)
		if err := d.Move(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		if err := d.Move(t.Context(), 2); fault.KindOf(err) != fault.Ours {
			t.Errorf("a second move at once: %v", err)
		}
		var moves []webhook.Move
		for range 3 {
			wiretest.Wait(time.Second + 100*time.Millisecond)
			m, _, err := d.LastMove(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			moves = append(moves, m)
		}
		want := []webhook.Move{
			{StartedAt: began, Running: true, Moved: 4, ToMove: 5}, {StartedAt: began, Moved: 5, ToMove: 5}, {StartedAt: began, Moved: 5, ToMove: 5},
		}
		if diff := cmp.Diff(want, moves); diff != "" {
			t.Errorf("moves (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"letter 0", "letter 1", "letter 2", "letter 3", "letter 4"}, drained(t, client, work)); diff != "" {
			t.Errorf("in the queue (-want +got):\n%s", diff)
		}
	})
}

func TestALetterThatCameFromNowhereFailsItsMove(t *testing.T) {
	t.Parallel()
	dead(t, func(t *testing.T, client *sqs.Client, _ string, d *queue.DeadLetters) {
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &d.URL, MessageBody: aws.String("by hand")}); err != nil {
			t.Fatal(err)
		}
		if err := d.Move(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
		wiretest.Wait(time.Second)
		m, _, err := d.LastMove(t.Context())
		if err != nil || m.Running || m.Failure != "CouldNotDetermineMessageSource" {
			t.Errorf("move %+v, error %v", m, err)
		}
	})
}

// torn answers every call with an error, or takes no entry.
type torn struct {
	queue.LetterClient

	err error
}

func (c torn) ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return nil, c.err
}

func (c torn) DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return &sqs.DeleteMessageBatchOutput{}, c.err
}

func (c torn) ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return &sqs.ChangeMessageVisibilityBatchOutput{}, c.err
}

func (c torn) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{}, c.err
}

func TestEveryFailureOfTheQueueIsOursAndTellsNothingOfAMessage(t *testing.T) {
	t.Parallel()
	letters := []webhook.Letter{{ID: "1", Handle: "h"}}
	for name, tt := range map[string]struct {
		err  error
		code string
	}{
		"no answer":                {errors.New("down: letter 1"), "queue_unreachable"},
		"not all, or not readable": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &queue.DeadLetters{Client: torn{err: tt.err}, URL: "u"}
			_, look := d.Depth(t.Context())
			got := map[string]error{"give back": d.GiveBack(t.Context(), letters), "remove": d.Remove(t.Context(), letters), "depth": look}
			if tt.err != nil {
				_, receive := d.Receive(t.Context(), time.Second)
				_, _, last := d.LastMove(t.Context())
				got["receive"], got["last move"], got["move"] = receive, last, d.Move(t.Context(), 1)
			}
			for call, err := range got {
				if fault.KindOf(err) != fault.Ours || err == nil || strings.Contains(err.Error(), "letter 1") {
					t.Errorf("%s: %v", call, err)
				}
				if tt.code != "" && fault.CodeOf(err) != tt.code {
					t.Errorf("%s: code %s, want %s", call, fault.CodeOf(err), tt.code)
				}
			}
		})
	}
}
