package sqs_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/devstack/wiretest"
)

var receiveChecks = []check{
	{name: "a received message is hidden for the visibility timeout, and its count rises", run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"VisibilityTimeout": "1"})
		c.send(url, "x")
		first := c.receiveOne(url)
		if got := c.receive(url, 10); len(got) != 0 {
			t.Errorf("received %v while it was in flight", bodies(got))
		}
		if diff := cmp.Diff(counts{"0", "1", "0"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		wiretest.Wait(1100 * time.Millisecond)
		second := c.receiveOne(url)
		if got := []string{first.Attributes["ApproximateReceiveCount"], second.Attributes["ApproximateReceiveCount"]}; !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("receive counts are %v", got)
		}
		if *first.MessageId != *second.MessageId || *first.ReceiptHandle == *second.ReceiptHandle {
			t.Error("the same message must come back under a new receipt handle")
		}
		for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp", "SenderId"} {
			if first.Attributes[name] == "" || first.Attributes[name] != second.Attributes[name] {
				t.Errorf("%s went from %q to %q", name, first.Attributes[name], second.Attributes[name])
			}
		}
	}},
	{name: "a receive may name its own visibility timeout", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, "x")
		_, err := c.ReceiveMessage(c.ctx, &sdk.ReceiveMessageInput{QueueUrl: url, VisibilityTimeout: 1})
		c.must(err)
		wiretest.Wait(1100 * time.Millisecond)
		c.receiveOne(url)
	}},
	{name: "a receive gives at most as many as asked for, and none twice", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		var want []string
		for i := range 14 {
			want = append(want, strconv.Itoa(i))
		}
		c.send(url, want...)
		var got []string
		for _, most := range []int32{0, 3, 10, 10} {
			messages := c.receive(url, most)
			if len(messages) > max(int(most), 1) {
				t.Errorf("asked for %d, received %d", most, len(messages))
			}
			got = append(got, bodies(messages)...)
		}
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	}},
	{name: "an empty queue answers at once", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		start := time.Now()
		if got := c.receive(url, 10); len(got) != 0 {
			t.Errorf("received %v", bodies(got))
		}
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("a short poll took %v", took)
		}
	}},
	{name: "a long poll waits its whole time when nothing comes", run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"ReceiveMessageWaitTimeSeconds": "2"})
		start := time.Now()
		out, err := c.ReceiveMessage(c.ctx, &sdk.ReceiveMessageInput{QueueUrl: url})
		c.must(err)
		if len(out.Messages) != 0 {
			t.Errorf("received %v", bodies(out.Messages))
		}
		if took := time.Since(start); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("the queue's wait of 2 s took %v", took)
		}
		start = time.Now()
		c.receiveFor(url, 1, 1)
		if took := time.Since(start); took < time.Second || took > 1900*time.Millisecond {
			t.Errorf("the call's own wait of 1 s took %v", took)
		}
	}},
	{name: "a long poll wakes when a message is sent", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		got, at := c.poll(url, 10)
		wiretest.Wait(time.Second)
		c.send(url, "x")
		if diff := cmp.Diff([]string{"x"}, bodies(<-got)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		if took := <-at; took < time.Second || took > 1500*time.Millisecond {
			t.Errorf("woke after %v, want 1 s", took)
		}
	}},
	{name: "a long poll wakes when a delay ends, even one sent while it waits", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		got, at := c.poll(url, 10)
		wiretest.Wait(500 * time.Millisecond)
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("x"), DelaySeconds: 1})
		c.must(err)
		if diff := cmp.Diff([]string{"x"}, bodies(<-got)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		if took := <-at; took < 1500*time.Millisecond || took > 2200*time.Millisecond {
			t.Errorf("woke after %v, want 1.5 s", took)
		}
	}},
	{name: "a long poll wakes when a visibility timeout ends", run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"VisibilityTimeout": "1"})
		c.send(url, "x")
		c.receiveOne(url)
		got, at := c.poll(url, 10)
		if diff := cmp.Diff([]string{"x"}, bodies(<-got)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		if took := <-at; took > 1500*time.Millisecond {
			t.Errorf("woke after %v, want 1 s", took)
		}
	}},
	{name: "one message goes to one of many long polls", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		var polls []<-chan []types.Message
		for range 5 {
			got, _ := c.poll(url, 2)
			polls = append(polls, got)
		}
		wiretest.Wait(100 * time.Millisecond)
		c.send(url, "x")
		total := 0
		for _, got := range polls {
			total += len(<-got)
		}
		if total != 1 {
			t.Errorf("%d polls got the message", total)
		}
	}},
	{name: "a caller that gives up takes no message with it", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		ctx, cancel := context.WithTimeout(c.ctx, 500*time.Millisecond)
		defer cancel()
		_, err := c.ReceiveMessage(ctx, &sdk.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 20})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the abandoned poll returned %v", err)
		}
		wiretest.Wait(100 * time.Millisecond) // for the server to see that the caller has gone
		c.send(url, "x")
		if m := c.receiveOne(url); m.Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("the message was received %s times", m.Attributes["ApproximateReceiveCount"])
		}
	}},
	{name: "only the attributes that are asked for come back", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		text := types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("v")}
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("x"),
			MessageAttributes: map[string]types.MessageAttributeValue{"trace.a": text, "trace.b": text, "tracer": text, "kind": text}})
		c.must(err)
		tests := []struct{ wanted, want []string }{
			{nil, nil},
			{[]string{"kind"}, []string{"kind"}},
			{[]string{"trace.*"}, []string{"trace.a", "trace.b", "tracer"}},
			{[]string{"trace..*"}, []string{"trace.a", "trace.b"}},
			{[]string{"trace.*", "kind", "absent"}, []string{"kind", "trace.a", "trace.b", "tracer"}},
			{[]string{".*"}, []string{"kind", "trace.a", "trace.b", "tracer"}},
			{[]string{"All"}, []string{"kind", "trace.a", "trace.b", "tracer"}},
		}
		for _, tt := range tests {
			out, err := c.ReceiveMessage(c.ctx, &sdk.ReceiveMessageInput{QueueUrl: url, MessageAttributeNames: tt.wanted})
			c.must(err)
			m := out.Messages[0]
			var got []string
			for name := range m.MessageAttributes {
				got = append(got, name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("asked for %v (-want +got):\n%s", tt.wanted, diff)
			}
			if (m.MD5OfMessageAttributes != nil) != (len(tt.want) > 0) {
				t.Errorf("asked for %v: the digest is %v", tt.wanted, m.MD5OfMessageAttributes)
			}
			if len(m.Attributes) != 0 {
				t.Errorf("system attributes came unasked: %v", m.Attributes)
			}
			_, err = c.ChangeMessageVisibility(c.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle})
			c.must(err)
		}
	}},
	{name: "both lists of system attribute names count", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, "x")
		out, err := c.ReceiveMessage(c.ctx, &sdk.ReceiveMessageInput{QueueUrl: url,
			AttributeNames:              []types.QueueAttributeName{"ApproximateReceiveCount"}, //nolint:staticcheck // old clients send it
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"SentTimestamp"}})
		c.must(err)
		var got []string
		for name := range out.Messages[0].Attributes {
			got = append(got, name)
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"ApproximateReceiveCount", "SentTimestamp"}, got); diff != "" {
			t.Errorf("attributes (-want +got):\n%s", diff)
		}
	}},
	{name: "a receive outside of the limits is refused", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		for _, in := range []sdk.ReceiveMessageInput{
			{MaxNumberOfMessages: 11}, {MaxNumberOfMessages: -1},
			{WaitTimeSeconds: 21}, {WaitTimeSeconds: -1},
			{VisibilityTimeout: 43201}, {VisibilityTimeout: -1},
		} {
			in.QueueUrl = url
			_, err := c.ReceiveMessage(c.ctx, &in)
			c.mustRefuse(err, "InvalidParameterValue")
		}
	}},
}

// poll receives in the background and says what came and after how long.
func (c *client) poll(url *string, wait int32) (<-chan []types.Message, <-chan time.Duration) {
	got, took := make(chan []types.Message, 1), make(chan time.Duration, 1)
	start := time.Now()
	go func() {
		out, err := c.ReceiveMessage(c.ctx, &sdk.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: wait})
		if err != nil {
			c.t.Errorf("poll: %v", err)
			out = &sdk.ReceiveMessageOutput{}
		}
		took <- time.Since(start)
		got <- out.Messages
	}()
	return got, took
}
