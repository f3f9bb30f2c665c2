package sqs_test

import (
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

var sendChecks = []check{
	{name: "a message arrives whole, with the digests of its parts", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		attributes := map[string]types.MessageAttributeValue{
			"kind":     {DataType: aws.String("String"), StringValue: aws.String("payment")},
			"attempt":  {DataType: aws.String("Number"), StringValue: aws.String("2")},
			"checksum": {DataType: aws.String("Binary.sha"), BinaryValue: []byte{0, 1, 254, 255}},
		}
		sent, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{
			QueueUrl: url, MessageBody: aws.String("hello डाक"), MessageAttributes: attributes,
		})
		c.must(err)
		// Digests computed with another implementation (Python's hashlib) from the
		// rule in the developer guide.
		want := &sdk.SendMessageOutput{
			MD5OfMessageBody:       aws.String("59a524c4e53e03cb8353e6f1ffd93dd9"),
			MD5OfMessageAttributes: aws.String("b7f100bcd443d2d4a40af3f83095db05"),
		}
		if diff := cmp.Diff(want, sent, ignoreSent); diff != "" {
			t.Errorf("answer to the send (-want +got):\n%s", diff)
		}
		got := c.receiveOne(url)
		wantMessage := types.Message{
			MessageId:              sent.MessageId,
			Body:                   aws.String("hello डाक"),
			MD5OfBody:              want.MD5OfMessageBody,
			MessageAttributes:      attributes,
			MD5OfMessageAttributes: want.MD5OfMessageAttributes,
			Attributes:             map[string]string{"ApproximateReceiveCount": "1"},
		}
		if diff := cmp.Diff(wantMessage, got, ignoreReceived); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	}},
	{name: "a message group makes a standard queue fair and comes back as an attribute", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		for _, group := range []string{"tenant-1", "tenant-1", "tenant-2"} {
			_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: &group, MessageGroupId: &group})
			c.must(err)
		}
		var got []string
		for _, m := range c.receive(url, 10) {
			got = append(got, m.Attributes["MessageGroupId"])
		}
		// Unlike a FIFO queue, one group's messages are in flight together.
		if diff := cmp.Diff([]string{"tenant-1", "tenant-1", "tenant-2"}, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("groups (-want +got):\n%s", diff)
		}
	}},
	{name: "a message group with a space is refused", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("x"), MessageGroupId: aws.String("no spaces")})
		c.mustRefuse(err, "InvalidParameterValue")
	}},
	{name: "a trace header is kept and summed", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		header := aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")
		sent, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{
			QueueUrl: url, MessageBody: aws.String("x"),
			MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
				"AWSTraceHeader": {DataType: aws.String("String"), StringValue: header},
			},
		})
		c.must(err)
		if got := c.receiveOne(url).Attributes["AWSTraceHeader"]; got != *header {
			t.Errorf("the header came back as %q", got)
		}
		if got := aws.ToString(sent.MD5OfMessageSystemAttributes); got != "62a56dd927315f2b2e12832b84617ea5" {
			t.Errorf("the digest is %q", got)
		}
	}},
	{name: "a delayed message is hidden until its delay is over", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("later"), DelaySeconds: 2})
		c.must(err)
		c.send(url, "now")
		if diff := cmp.Diff([]string{"now"}, bodies(c.receive(url, 10))); diff != "" {
			t.Errorf("at once (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(counts{"0", "1", "1"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		wiretest.Wait(2100 * time.Millisecond)
		if diff := cmp.Diff([]string{"later"}, bodies(c.receive(url, 10))); diff != "" {
			t.Errorf("after the delay (-want +got):\n%s", diff)
		}
	}},
	{name: "a queue's delay holds for messages that name none, and zero overrides it", run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"DelaySeconds": "1"})
		c.send(url, "by the queue")
		out, err := c.SendMessageBatch(c.ctx, &sdk.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("a"), MessageBody: aws.String("by itself"), DelaySeconds: 2},
		}})
		c.must(err)
		if len(out.Failed) != 0 {
			t.Fatalf("failed: %v", out.Failed)
		}
		if got := c.receive(url, 10); len(got) != 0 {
			t.Errorf("received %v at once", bodies(got))
		}
		wiretest.Wait(1100 * time.Millisecond)
		if diff := cmp.Diff([]string{"by the queue"}, bodies(c.receive(url, 10))); diff != "" {
			t.Errorf("after 1 s (-want +got):\n%s", diff)
		}
		wiretest.Wait(time.Second)
		if diff := cmp.Diff([]string{"by itself"}, bodies(c.receive(url, 10))); diff != "" {
			t.Errorf("after 2 s (-want +got):\n%s", diff)
		}
	}},
	{name: "the longest delay is 15 minutes", slow: true, run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("x"), DelaySeconds: 900})
		c.must(err)
		wiretest.Wait(900*time.Second - time.Millisecond)
		if got := c.receive(url, 1); len(got) != 0 {
			t.Errorf("received %v too early", bodies(got))
		}
		wiretest.Wait(time.Millisecond)
		c.receiveOne(url)
	}},
	{name: "a message of 1 MiB is taken, one byte more is refused", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, strings.Repeat("x", 1<<20))
		if got := len(*c.receiveOne(url).Body); got != 1<<20 {
			t.Errorf("received %d bytes", got)
		}
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String(strings.Repeat("x", 1<<20+1))})
		c.mustRefuse(err, "InvalidParameterValue")
	}},
	{name: "attributes count towards a message's size: name, type and value", run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"MaximumMessageSize": "1024"})
		in := &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String(strings.Repeat("x", 1024-len("name")-len("String")-len("val"))),
			MessageAttributes: map[string]types.MessageAttributeValue{"name": {DataType: aws.String("String"), StringValue: aws.String("val")}}}
		_, err := c.SendMessage(c.ctx, in)
		c.must(err)
		in.MessageAttributes["name"] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("vals")}
		_, err = c.SendMessage(c.ctx, in)
		c.mustRefuse(err, "InvalidParameterValue")
	}},
	{name: "a batch of 1 MiB is taken, one byte more is refused whole", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		half := aws.String(strings.Repeat("x", 1<<19))
		entries := []types.SendMessageBatchRequestEntry{{Id: aws.String("a"), MessageBody: half}, {Id: aws.String("b"), MessageBody: half}}
		out, err := c.SendMessageBatch(c.ctx, &sdk.SendMessageBatchInput{QueueUrl: url, Entries: entries})
		c.must(err)
		if len(out.Successful) != 2 {
			t.Errorf("%d of 2 succeeded", len(out.Successful))
		}
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String("c"), MessageBody: aws.String("x")})
		_, err = c.SendMessageBatch(c.ctx, &sdk.SendMessageBatchInput{QueueUrl: url, Entries: entries})
		c.mustRefuse(err, "AWS.SimpleQueueService.BatchRequestTooLong")
		if diff := cmp.Diff(counts{"2", "0", "0"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}},
	{name: "a batch of ten is taken with attributes, eleven are refused whole", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		entries := entriesOf(10)
		out, err := c.SendMessageBatch(c.ctx, &sdk.SendMessageBatchInput{QueueUrl: url, Entries: entries})
		c.must(err)
		var ids []string
		for _, e := range out.Successful {
			ids = append(ids, *e.Id)
			if e.MessageId == nil || e.MD5OfMessageAttributes == nil {
				t.Errorf("entry %s has no message id or no digest of its attributes", *e.Id)
			}
		}
		if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, ids); diff != "" || len(out.Failed) != 0 {
			t.Errorf("successful (-want +got):\n%s\nfailed: %v", diff, out.Failed)
		}
		_, err = c.SendMessageBatch(c.ctx, &sdk.SendMessageBatchInput{QueueUrl: url, Entries: entriesOf(11)})
		c.mustRefuse(err, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest")
		if diff := cmp.Diff(counts{"10", "0", "0"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}},
	{name: "a batch that is malformed as a whole is refused whole", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		entry := func(id string) types.SendMessageBatchRequestEntry {
			return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: aws.String("x")}
		}
		tests := []struct {
			entries []types.SendMessageBatchRequestEntry
			code    string
		}{
			{[]types.SendMessageBatchRequestEntry{}, "AWS.SimpleQueueService.EmptyBatchRequest"},
			{[]types.SendMessageBatchRequestEntry{entry("a"), entry("a")}, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"},
			{[]types.SendMessageBatchRequestEntry{entry("a"), entry("b c")}, "AWS.SimpleQueueService.InvalidBatchEntryId"},
			{[]types.SendMessageBatchRequestEntry{entry("a"), entry(strings.Repeat("i", 81))}, "AWS.SimpleQueueService.InvalidBatchEntryId"},
		}
		for _, tt := range tests {
			_, err := c.SendMessageBatch(c.ctx, &sdk.SendMessageBatchInput{QueueUrl: url, Entries: tt.entries})
			c.mustRefuse(err, tt.code)
		}
		if diff := cmp.Diff(counts{"0", "0", "0"}, c.counts(url)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}},
	{name: "a bad entry of a batch fails alone", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		out, err := c.SendMessageBatch(c.ctx, &sdk.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("good"), MessageBody: aws.String("1")},
			{Id: aws.String("late"), MessageBody: aws.String("2"), DelaySeconds: 901},
			{Id: aws.String("odd"), MessageBody: aws.String("\x01")},
			{Id: aws.String("fine"), MessageBody: aws.String("3")},
		}})
		c.must(err)
		var succeeded []string
		for _, e := range out.Successful {
			succeeded = append(succeeded, *e.Id)
		}
		failed := map[string]string{}
		for _, e := range out.Failed {
			failed[*e.Id] = *e.Code
			if !e.SenderFault {
				t.Errorf("entry %s is not the sender's fault", *e.Id)
			}
		}
		if diff := cmp.Diff([]string{"good", "fine"}, succeeded); diff != "" {
			t.Errorf("successful (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"late": "InvalidParameterValue", "odd": "InvalidMessageContents"}, failed); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
	}},
	{name: "a message that cannot be sent is refused", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		text := func(s string) types.MessageAttributeValue {
			return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
		}
		many := map[string]types.MessageAttributeValue{}
		for i := range 11 {
			many["a"+strconv.Itoa(i)] = text("x")
		}
		tests := []struct {
			name string
			in   sdk.SendMessageInput
			code string
		}{
			{"delay over 15 minutes", sdk.SendMessageInput{DelaySeconds: 901}, "InvalidParameterValue"},
			{"negative delay", sdk.SendMessageInput{DelaySeconds: -1}, "InvalidParameterValue"},
			{"control character", sdk.SendMessageInput{MessageBody: aws.String("a\x00b")}, "InvalidMessageContents"},
			{"character outside of XML", sdk.SendMessageInput{MessageBody: aws.String("a\uFFFFb")}, "InvalidMessageContents"},
			{"eleven attributes", sdk.SendMessageInput{MessageAttributes: many}, "InvalidParameterValue"},
			{"attribute of an unknown type", sdk.SendMessageInput{MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("Date"), StringValue: aws.String("x")}}}, "InvalidParameterValue"},
			{"attribute without a value", sdk.SendMessageInput{MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("String")}}}, "InvalidParameterValue"},
			{"attribute with an empty value", sdk.SendMessageInput{MessageAttributes: map[string]types.MessageAttributeValue{"a": text("")}}, "InvalidParameterValue"},
			{"number that is none", sdk.SendMessageInput{MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("Number"), StringValue: aws.String("two")}}}, "InvalidParameterValue"},
			{"reserved attribute name", sdk.SendMessageInput{MessageAttributes: map[string]types.MessageAttributeValue{"AWS.kind": text("x")}}, "InvalidParameterValue"},
			{"attribute name with two periods", sdk.SendMessageInput{MessageAttributes: map[string]types.MessageAttributeValue{"a..b": text("x")}}, "InvalidParameterValue"},
		}
		for _, tt := range tests {
			tt.in.QueueUrl = url
			if tt.in.MessageBody == nil {
				tt.in.MessageBody = aws.String("x")
			}
			if _, err := c.SendMessage(c.ctx, &tt.in); err == nil {
				t.Errorf("%s: accepted", tt.name)
			} else {
				c.mustRefuse(err, tt.code)
			}
		}
	}},
	{name: "an empty body is refused", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("")})
		c.mustRefuse(err, "MissingParameter")
	}},
	{name: "deduplication is for FIFO queues and is refused", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("x"), MessageDeduplicationId: aws.String("d")})
		if err == nil {
			t.Error("accepted")
		}
	}},
}

func entriesOf(n int) []types.SendMessageBatchRequestEntry {
	var entries []types.SendMessageBatchRequestEntry
	for i := range n {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String("body " + strconv.Itoa(i)),
			MessageAttributes: map[string]types.MessageAttributeValue{"n": {DataType: aws.String("Number"), StringValue: aws.String(strconv.Itoa(i))}},
		})
	}
	return entries
}

var ignoreSent = cmp.Options{
	cmpopts.IgnoreUnexported(sdk.SendMessageOutput{}),
	cmpopts.IgnoreFields(sdk.SendMessageOutput{}, "MessageId", "ResultMetadata"),
}

var ignoreReceived = cmp.Options{
	cmpopts.IgnoreUnexported(types.Message{}, types.MessageAttributeValue{}),
	cmpopts.IgnoreFields(types.Message{}, "ReceiptHandle"),
	cmpopts.IgnoreMapEntries(func(name, _ string) bool {
		return name == "SenderId" || name == "SentTimestamp" || name == "ApproximateFirstReceiveTimestamp"
	}),
}
