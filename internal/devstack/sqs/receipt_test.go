package sqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/wiretest"
)

var receiptChecks = []check{
	{name: "a deleted message is gone, and deleting it again succeeds", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, "x")
		m := c.receiveOne(url)
		c.delete(url, m.ReceiptHandle)
		c.delete(url, m.ReceiptHandle)
		if diff := cmp.Diff(counts{"0", "0", "0"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}},
	{name: "a message whose timeout is over can still be deleted by its newest handle", run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"VisibilityTimeout": "1"})
		c.send(url, "x")
		m := c.receiveOne(url)
		wiretest.Wait(1100 * time.Millisecond)
		c.delete(url, m.ReceiptHandle)
		if diff := cmp.Diff(counts{"0", "0", "0"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}},
	{name: "an old handle deletes nothing, and that is no error", run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"VisibilityTimeout": "1"})
		c.send(url, "x")
		old := c.receiveOne(url)
		wiretest.Wait(1100 * time.Millisecond)
		c.receiveOne(url)
		c.delete(url, old.ReceiptHandle)
		if diff := cmp.Diff(counts{"0", "1", "0"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}},
	{name: "a handle that was never given out is refused", run: func(t testing.TB, c *client) {
		url, other := c.create("work", nil), c.create("other", nil)
		c.send(other, "x")
		for _, handle := range []*string{aws.String("nonsense"), c.receiveOne(other).ReceiptHandle} {
			_, err := c.DeleteMessage(c.ctx, &sdk.DeleteMessageInput{QueueUrl: url, ReceiptHandle: handle})
			c.mustRefuse(err, "ReceiptHandleIsInvalid")
			_, err = c.ChangeMessageVisibility(c.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: handle, VisibilityTimeout: 1})
			c.mustRefuse(err, "ReceiptHandleIsInvalid")
		}
	}},
	{name: "a batch of deletes reports each entry", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, "1", "2")
		got := c.receive(url, 10)
		out, err := c.DeleteMessageBatch(c.ctx, &sdk.DeleteMessageBatchInput{QueueUrl: url, Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("a"), ReceiptHandle: got[0].ReceiptHandle},
			{Id: aws.String("b"), ReceiptHandle: aws.String("nonsense")},
			{Id: aws.String("c"), ReceiptHandle: got[1].ReceiptHandle},
		}})
		c.must(err)
		var done, failed []string
		for _, e := range out.Successful {
			done = append(done, *e.Id)
		}
		for _, e := range out.Failed {
			failed = append(failed, *e.Id+" "+*e.Code)
		}
		if diff := cmp.Diff([][]string{{"a", "c"}, {"b ReceiptHandleIsInvalid"}}, [][]string{done, failed}); diff != "" {
			t.Errorf("successful and failed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(counts{"0", "0", "0"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}},
	{name: "a visibility timeout of zero gives a message back at once", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, "x")
		m := c.receiveOne(url)
		got, took := c.poll(url, 5)
		wiretest.Wait(200 * time.Millisecond)
		_, err := c.ChangeMessageVisibility(c.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0})
		c.must(err)
		if diff := cmp.Diff([]string{"x"}, bodies(<-got)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		if after := <-took; after > time.Second {
			t.Errorf("the poll woke after %v, want 200 ms", after)
		}
	}},
	{name: "a longer visibility timeout keeps a message hidden, this once", slow: true, run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"VisibilityTimeout": "1"})
		c.send(url, "x")
		m := c.receiveOne(url)
		_, err := c.ChangeMessageVisibility(c.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 10})
		c.must(err)
		wiretest.Wait(9999 * time.Millisecond)
		if got := c.receive(url, 1); len(got) != 0 {
			t.Error("the message came back too early")
		}
		wiretest.Wait(time.Millisecond)
		c.receiveOne(url)
		wiretest.Wait(time.Second)
		c.receiveOne(url)
	}},
	{name: "a message stays hidden for twelve hours at most", slow: true, run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, "x")
		m := c.receiveOne(url)
		change := func(seconds int32) error {
			_, err := c.ChangeMessageVisibility(c.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
			return err
		}
		c.must(change(43200))
		wiretest.Wait(time.Hour)
		c.mustRefuse(change(11*3600+1), "InvalidParameterValue")
		c.must(change(11 * 3600))
		c.mustRefuse(change(43201), "InvalidParameterValue")
		c.mustRefuse(change(-1), "InvalidParameterValue")
	}},
	{name: "the timeout of a message that is not in flight cannot be changed", run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"VisibilityTimeout": "1"})
		c.send(url, "x")
		m := c.receiveOne(url)
		wiretest.Wait(1100 * time.Millisecond)
		_, err := c.ChangeMessageVisibility(c.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 5})
		c.mustRefuse(err, "AWS.SimpleQueueService.MessageNotInflight")
	}},
	{name: "the timeout of a deleted message cannot be changed", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, "x")
		m := c.receiveOne(url)
		c.delete(url, m.ReceiptHandle)
		_, err := c.ChangeMessageVisibility(c.ctx, &sdk.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 5})
		c.mustRefuse(err, "InvalidParameterValue")
	}},
	{name: "a batch of visibility changes reports each entry", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, "1", "2")
		got := c.receive(url, 10)
		out, err := c.ChangeMessageVisibilityBatch(c.ctx, &sdk.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("back"), ReceiptHandle: got[0].ReceiptHandle, VisibilityTimeout: 0},
			{Id: aws.String("bad"), ReceiptHandle: aws.String("nonsense"), VisibilityTimeout: 0},
			{Id: aws.String("long"), ReceiptHandle: got[1].ReceiptHandle, VisibilityTimeout: 43201},
		}})
		c.must(err)
		if len(out.Successful) != 1 || *out.Successful[0].Id != "back" {
			t.Errorf("successful: %v", out.Successful)
		}
		failed := map[string]string{}
		for _, e := range out.Failed {
			failed[*e.Id] = *e.Code
		}
		if diff := cmp.Diff(map[string]string{"bad": "ReceiptHandleIsInvalid", "long": "InvalidParameterValue"}, failed); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(counts{"1", "1", "0"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}},
}
