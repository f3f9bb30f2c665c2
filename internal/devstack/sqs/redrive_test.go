package sqs_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/devstack/wiretest"
)

// pair makes a queue that gives messages up after one receive, with a visibility
// timeout of one second, and its dead-letter queue.
func (c *client) pair(name string) (work, dead *string) {
	c.t.Helper()
	dead = c.create(name+"-dead", nil)
	work = c.create(name, map[string]string{
		"VisibilityTimeout": "1",
		"RedrivePolicy":     `{"deadLetterTargetArn":"` + c.arn(dead) + `","maxReceiveCount":1}`,
	})
	return work, dead
}

// fail sends messages and receives them often enough for them to be given up.
func (c *client) fail(work *string, bodies ...string) {
	c.t.Helper()
	c.send(work, bodies...)
	for range (len(bodies) + 9) / 10 {
		c.receive(work, 10)
	}
	wiretest.Wait(1100 * time.Millisecond)
	if got := c.receive(work, 10); len(got) != 0 {
		c.t.Fatalf("received %d messages again", len(got))
	}
}

var redriveChecks = []check{
	{name: "a message received often enough goes to the dead-letter queue instead", run: func(t testing.TB, c *client) {
		dead := c.create("dead", nil)
		work := c.create("work", map[string]string{
			"VisibilityTimeout": "1",
			"RedrivePolicy":     `{"deadLetterTargetArn":"` + c.arn(dead) + `","maxReceiveCount":2}`,
		})
		c.send(work, "poison", "poison", "poison")
		for count := range 2 {
			got := c.receive(work, 10)
			if len(got) != 3 {
				t.Fatalf("receive %d gave %d messages", count+1, len(got))
			}
			wiretest.Wait(1100 * time.Millisecond)
		}
		if got := c.receive(work, 10); len(got) != 0 {
			t.Errorf("a third receive gave %v", bodies(got))
		}
		if diff := cmp.Diff([]counts{{"0", "0", "0"}, {"3", "0", "0"}}, []counts{c.counts(work), c.counts(dead)}); diff != "" {
			t.Errorf("queue and dead letters (-want +got):\n%s", diff)
		}
	}},
	{name: "a good message behind a poisonous one is delivered", run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		c.send(work, "poison")
		c.receiveOne(work)
		wiretest.Wait(1100 * time.Millisecond)
		c.send(work, "good")
		if diff := cmp.Diff([]string{"good"}, bodies(c.receive(work, 10))); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"poison"}, bodies(c.receive(dead, 10))); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
	}},
	{name: "a dead letter keeps its id, its content, its age and its count", run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: work, MessageBody: aws.String("x"), MessageGroupId: aws.String("tenant-1"),
			MessageAttributes: map[string]types.MessageAttributeValue{"kind": {DataType: aws.String("String"), StringValue: aws.String("v")}}})
		c.must(err)
		want := c.receiveOne(work)
		wiretest.Wait(1100 * time.Millisecond)
		c.receive(work, 1)
		got := c.receiveOne(dead)
		want.Attributes["ApproximateReceiveCount"] = "2"
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(types.Message{}, types.MessageAttributeValue{}),
			cmpopts.IgnoreFields(types.Message{}, "ReceiptHandle"),
			cmpopts.IgnoreMapEntries(func(name, _ string) bool { return name == "DeadLetterQueueSourceArn" })); diff != "" {
			t.Errorf("dead letter (-want +got):\n%s", diff)
		}
	}},
	{name: "a dead letter names the queue it came from", run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		c.fail(work, "x")
		if got := c.receiveOne(dead).Attributes["DeadLetterQueueSourceArn"]; got != c.arn(work) {
			t.Errorf("DeadLetterQueueSourceArn is %q", got)
		}
	}},
	{name: "a dead letter is as old as its first send", slow: true, run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		_, err := c.SetQueueAttributes(c.ctx, &sdk.SetQueueAttributesInput{QueueUrl: dead, Attributes: map[string]string{"MessageRetentionPeriod": "60"}})
		c.must(err)
		c.send(work, "x")
		wiretest.Wait(50 * time.Second)
		c.receiveOne(work)
		wiretest.Wait(time.Second)
		c.receive(work, 1)
		if diff := cmp.Diff(counts{"1", "0", "0"}, c.counts(dead)); diff != "" {
			t.Errorf("after 51 s (-want +got):\n%s", diff)
		}
		wiretest.Wait(9 * time.Second)
		if diff := cmp.Diff(counts{"0", "0", "0"}, c.counts(dead)); diff != "" {
			t.Errorf("after 60 s (-want +got):\n%s", diff)
		}
	}},
	{name: "a long poll on the dead-letter queue wakes when a letter dies", run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		c.send(work, "x")
		c.receiveOne(work)
		got, _ := c.poll(dead, 5)
		wiretest.Wait(1100 * time.Millisecond)
		c.receive(work, 1)
		if diff := cmp.Diff([]string{"x"}, bodies(<-got)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	}},
	{name: "a removed redrive policy gives nothing up any more", run: func(t testing.TB, c *client) {
		work, _ := c.pair("work")
		c.send(work, "x")
		c.receiveOne(work)
		_, err := c.SetQueueAttributes(c.ctx, &sdk.SetQueueAttributesInput{QueueUrl: work, Attributes: map[string]string{"RedrivePolicy": ""}})
		c.must(err)
		wiretest.Wait(1100 * time.Millisecond)
		c.receiveOne(work)
	}},
	{name: "a dead-letter queue lists its sources", run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		other := c.create("other", c.attributes(work, "RedrivePolicy"))
		out, err := c.ListDeadLetterSourceQueues(c.ctx, &sdk.ListDeadLetterSourceQueuesInput{QueueUrl: dead})
		c.must(err)
		if diff := cmp.Diff([]string{*other, *work}, out.QueueUrls, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
			t.Errorf("sources (-want +got):\n%s", diff)
		}
		out, err = c.ListDeadLetterSourceQueues(c.ctx, &sdk.ListDeadLetterSourceQueuesInput{QueueUrl: work})
		c.must(err)
		if len(out.QueueUrls) != 0 {
			t.Errorf("a queue without sources lists %v", out.QueueUrls)
		}
	}},
}

var moveChecks = []check{
	{name: "a move task brings dead letters back to where each came from", run: func(t testing.TB, c *client) {
		dead := c.create("dead", nil)
		policy := map[string]string{"VisibilityTimeout": "1", "RedrivePolicy": `{"deadLetterTargetArn":"` + c.arn(dead) + `","maxReceiveCount":1}`}
		one, two := c.create("one", policy), c.create("two", policy)
		c.fail(one, "from one")
		c.fail(two, "from two")
		c.move(dead, nil, 0)
		got := [][]string{bodies(c.receiveFor(one, 10, 5)), bodies(c.receiveFor(two, 10, 5)), bodies(c.receive(dead, 10))}
		if diff := cmp.Diff([][]string{{"from one"}, {"from two"}, {}}, got); diff != "" {
			t.Errorf("one, two and dead letters (-want +got):\n%s", diff)
		}
		c.mustHaveTask(dead, types.ListMessageMoveTasksResultEntry{Status: aws.String("COMPLETED"), ApproximateNumberOfMessagesMoved: 2, ApproximateNumberOfMessagesToMove: aws.Int64(2)})
	}},
	{name: "a moved message is a new one: new id, new age, count from one", run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		c.fail(work, "x")
		c.move(dead, nil, 0)
		got := c.receiveFor(work, 1, 5)
		if len(got) != 1 {
			t.Fatalf("received %d messages", len(got))
		}
		if a := got[0].Attributes; a["ApproximateReceiveCount"] != "1" || a["DeadLetterQueueSourceArn"] != "" {
			t.Errorf("attributes are %v", a)
		}
	}},
	{name: "a move task may name another destination", run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		other := c.create("other", nil)
		c.fail(work, "x")
		c.move(dead, aws.String(c.arn(other)), 0)
		if diff := cmp.Diff([]string{"x"}, bodies(c.receiveFor(other, 10, 5))); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		c.mustHaveTask(dead, types.ListMessageMoveTasksResultEntry{
			Status: aws.String("COMPLETED"), DestinationArn: aws.String(c.arn(other)),
			ApproximateNumberOfMessagesMoved: 1, ApproximateNumberOfMessagesToMove: aws.Int64(1),
		})
	}},
	{name: "a move task keeps to its rate, and only one runs at a time", slow: true, run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		c.fail(work, "1", "2", "3", "4", "5")
		handle := c.move(dead, nil, 2)
		wiretest.Wait(500 * time.Millisecond)
		c.mustHaveTask(dead, types.ListMessageMoveTasksResultEntry{
			Status: aws.String("RUNNING"), TaskHandle: handle, MaxNumberOfMessagesPerSecond: aws.Int32(2),
			ApproximateNumberOfMessagesMoved: 2, ApproximateNumberOfMessagesToMove: aws.Int64(5),
		})
		_, err := c.StartMessageMoveTask(c.ctx, &sdk.StartMessageMoveTaskInput{SourceArn: aws.String(c.arn(dead))})
		c.mustRefuse(err, "AWS.SimpleQueueService.UnsupportedOperation")
		wiretest.Wait(2 * time.Second)
		c.mustHaveTask(dead, types.ListMessageMoveTasksResultEntry{
			Status: aws.String("COMPLETED"), MaxNumberOfMessagesPerSecond: aws.Int32(2),
			ApproximateNumberOfMessagesMoved: 5, ApproximateNumberOfMessagesToMove: aws.Int64(5),
		})
		c.move(dead, nil, 0)
	}},
	{name: "a move task ends although its messages keep failing", slow: true, run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		c.fail(work, "1", "2", "3", "4", "5")
		c.move(dead, nil, 2)
		for range 8 { // the consumer fails everything at once, so letters come back while the task runs
			wiretest.Wait(550 * time.Millisecond)
			c.receive(work, 10)
		}
		c.mustHaveTask(dead, types.ListMessageMoveTasksResultEntry{
			Status: aws.String("COMPLETED"), MaxNumberOfMessagesPerSecond: aws.Int32(2),
			ApproximateNumberOfMessagesMoved: 5, ApproximateNumberOfMessagesToMove: aws.Int64(5),
		})
	}},
	{name: "a letter sent straight to the dead-letter queue has no way back", run: func(t testing.TB, c *client) {
		_, dead := c.pair("work")
		c.send(dead, "x")
		c.move(dead, nil, 0)
		wiretest.Wait(100 * time.Millisecond)
		c.mustHaveTask(dead, types.ListMessageMoveTasksResultEntry{
			Status: aws.String("FAILED"), FailureReason: aws.String("CouldNotDetermineMessageSource"),
			ApproximateNumberOfMessagesToMove: aws.Int64(1),
		})
		if diff := cmp.Diff(counts{"1", "0", "0"}, c.counts(dead)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}},
	{name: "the newest ten tasks are listed, newest first", slow: true, run: func(t testing.TB, c *client) {
		_, dead := c.pair("work")
		for i := range 12 {
			c.move(dead, nil, int32(i+1))
			wiretest.Wait(time.Second)
		}
		var got []string
		out, err := c.ListMessageMoveTasks(c.ctx, &sdk.ListMessageMoveTasksInput{SourceArn: aws.String(c.arn(dead)), MaxResults: aws.Int32(10)})
		c.must(err)
		for _, task := range out.Results {
			got = append(got, strconv.Itoa(int(*task.MaxNumberOfMessagesPerSecond)))
		}
		if diff := cmp.Diff([]string{"12", "11", "10", "9", "8", "7", "6", "5", "4", "3"}, got); diff != "" {
			t.Errorf("rates of the tasks (-want +got):\n%s", diff)
		}
	}},
	{name: "a move that cannot be is refused", run: func(t testing.TB, c *client) {
		work, dead := c.pair("work")
		from, to := aws.String(c.arn(dead)), aws.String(c.arn(work))
		tests := []struct {
			name string
			in   sdk.StartMessageMoveTaskInput
			code string
		}{
			// A queue that only a function's failures go to has no source queue.
			{"not a dead-letter queue", sdk.StartMessageMoveTaskInput{SourceArn: to}, "InvalidParameterValue"},
			{"no such source", sdk.StartMessageMoveTaskInput{SourceArn: aws.String(*from + "er")}, "ResourceNotFoundException"},
			{"no such destination", sdk.StartMessageMoveTaskInput{SourceArn: from, DestinationArn: aws.String(*to + "er")}, "ResourceNotFoundException"},
			{"onto itself", sdk.StartMessageMoveTaskInput{SourceArn: from, DestinationArn: from}, "InvalidParameterValue"},
			{"rate too low", sdk.StartMessageMoveTaskInput{SourceArn: from, MaxNumberOfMessagesPerSecond: aws.Int32(0)}, "InvalidParameterValue"},
			{"rate too high", sdk.StartMessageMoveTaskInput{SourceArn: from, MaxNumberOfMessagesPerSecond: aws.Int32(501)}, "InvalidParameterValue"},
		}
		for _, tt := range tests {
			if _, err := c.StartMessageMoveTask(c.ctx, &tt.in); err == nil {
				t.Errorf("%s: accepted", tt.name)
			} else {
				c.mustRefuse(err, tt.code)
			}
		}
		_, err := c.ListMessageMoveTasks(c.ctx, &sdk.ListMessageMoveTasksInput{SourceArn: from, MaxResults: aws.Int32(11)})
		c.mustRefuse(err, "InvalidParameterValue")
		_, err = c.ListMessageMoveTasks(c.ctx, &sdk.ListMessageMoveTasksInput{SourceArn: aws.String("arn:aws:sqs:us-east-1:1:x")})
		c.mustRefuse(err, "ResourceNotFoundException")
	}},
}

// move starts a move task and returns its handle.
func (c *client) move(dead, destination *string, rate int32) *string {
	c.t.Helper()
	in := &sdk.StartMessageMoveTaskInput{SourceArn: aws.String(c.arn(dead)), DestinationArn: destination}
	if rate > 0 {
		in.MaxNumberOfMessagesPerSecond = &rate
	}
	out, err := c.StartMessageMoveTask(c.ctx, in)
	c.must(err)
	return out.TaskHandle
}

// mustHaveTask compares the newest move task of a queue.
func (c *client) mustHaveTask(dead *string, want types.ListMessageMoveTasksResultEntry) {
	c.t.Helper()
	out, err := c.ListMessageMoveTasks(c.ctx, &sdk.ListMessageMoveTasksInput{SourceArn: aws.String(c.arn(dead))})
	c.must(err)
	want.SourceArn = aws.String(c.arn(dead))
	if diff := cmp.Diff([]types.ListMessageMoveTasksResultEntry{want}, out.Results,
		cmpopts.IgnoreUnexported(want), cmpopts.IgnoreFields(want, "StartedTimestamp")); diff != "" {
		c.t.Errorf("newest move task (-want +got):\n%s", diff)
	}
}
