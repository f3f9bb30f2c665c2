package sqs_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/wiretest"
)

var queueChecks = []check{
	{name: "a queue has the service's defaults", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		got := c.attributes(url, "All")
		for _, stamp := range []string{"CreatedTimestamp", "LastModifiedTimestamp"} {
			if len(got[stamp]) < len("946684800") {
				t.Errorf("%s is %q, want seconds since 1970", stamp, got[stamp])
			}
			delete(got, stamp)
		}
		arn := got["QueueArn"]
		if !strings.HasPrefix(arn, "arn:aws:sqs:us-east-1:") || !strings.HasSuffix(arn, ":work") {
			t.Errorf("QueueArn is %q", arn)
		}
		delete(got, "QueueArn")
		want := map[string]string{
			"ApproximateNumberOfMessages":           "0",
			"ApproximateNumberOfMessagesDelayed":    "0",
			"ApproximateNumberOfMessagesNotVisible": "0",
			"DelaySeconds":                          "0",
			"MaximumMessageSize":                    "1048576",
			"MessageRetentionPeriod":                "345600",
			"ReceiveMessageWaitTimeSeconds":         "0",
			"SqsManagedSseEnabled":                  "true",
			"VisibilityTimeout":                     "30",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("attributes (-want +got):\n%s", diff)
		}
	}},
	{name: "no attribute names give no attributes, and one gives one", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		if got := c.attributes(url); len(got) != 0 {
			t.Errorf("got %v without asking", got)
		}
		if diff := cmp.Diff(map[string]string{"VisibilityTimeout": "30"}, c.attributes(url, "VisibilityTimeout")); diff != "" {
			t.Error(diff)
		}
		_, err := c.GetQueueAttributes(c.ctx, &sdk.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []types.QueueAttributeName{"Colour"}})
		c.mustRefuse(err, "InvalidAttributeName")
	}},
	{name: "a queue is found by name under one URL", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		out, err := c.GetQueueUrl(c.ctx, &sdk.GetQueueUrlInput{QueueName: aws.String("work")})
		c.must(err)
		if *out.QueueUrl != *url {
			t.Errorf("GetQueueUrl says %s, CreateQueue said %s", *out.QueueUrl, *url)
		}
		_, err = c.GetQueueUrl(c.ctx, &sdk.GetQueueUrlInput{QueueName: aws.String("rest")})
		c.mustRefuse(err, nonExistentQueue)
		_, err = c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: aws.String(*url + "er"), MessageBody: aws.String("x")})
		c.mustRefuse(err, nonExistentQueue)
	}},
	{name: "creating a queue again is the same queue, with other attributes it is refused", run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"DelaySeconds": "5"})
		if again := c.create("work", map[string]string{"DelaySeconds": "5"}); *again != *url {
			t.Errorf("got %s, then %s", *url, *again)
		}
		_, err := c.CreateQueue(c.ctx, &sdk.CreateQueueInput{QueueName: aws.String("work"), Attributes: map[string]string{"DelaySeconds": "6"}})
		c.mustRefuse(err, "QueueAlreadyExists")
	}},
	{name: "queues are listed by prefix, in pages", run: func(t testing.TB, c *client) {
		want := []string{*c.create("a-1", nil), *c.create("a-2", nil), *c.create("a-3", nil)}
		c.create("b-1", nil)
		var got []string
		in := &sdk.ListQueuesInput{QueueNamePrefix: aws.String("a-"), MaxResults: aws.Int32(2)}
		for pages := 1; ; pages++ {
			out, err := c.ListQueues(c.ctx, in)
			c.must(err)
			got = append(got, out.QueueUrls...)
			if in.NextToken = out.NextToken; in.NextToken == nil {
				if pages != 2 {
					t.Errorf("3 queues came in %d pages of 2", pages)
				}
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("queues (-want +got):\n%s", diff)
		}
	}},
	{name: "what a queue cannot have is refused by name", run: func(t testing.TB, c *client) {
		tests := []struct{ name, attribute, value, code string }{
			{"no spaces", "", "", "InvalidParameterValue"},
			{strings.Repeat("n", 81), "", "", "InvalidParameterValue"},
			{"q", "DelaySeconds", "901", "InvalidAttributeValue"},
			{"q", "DelaySeconds", "-1", "InvalidAttributeValue"},
			{"q", "DelaySeconds", "soon", "InvalidAttributeValue"},
			{"q", "MaximumMessageSize", "1023", "InvalidAttributeValue"},
			{"q", "MaximumMessageSize", "1048577", "InvalidAttributeValue"},
			{"q", "MessageRetentionPeriod", "59", "InvalidAttributeValue"},
			{"q", "MessageRetentionPeriod", "1209601", "InvalidAttributeValue"},
			{"q", "ReceiveMessageWaitTimeSeconds", "21", "InvalidAttributeValue"},
			{"q", "VisibilityTimeout", "43201", "InvalidAttributeValue"},
			{"q", "Colour", "blue", "InvalidAttributeName"},
		}
		for _, tt := range tests {
			in := &sdk.CreateQueueInput{QueueName: &tt.name}
			if tt.attribute != "" {
				in.Attributes = map[string]string{tt.attribute: tt.value}
			}
			_, err := c.CreateQueue(c.ctx, in)
			c.mustRefuse(err, tt.code)
		}
	}},
	{name: "changed attributes hold, and count as a modification", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		before := c.attributes(url, "CreatedTimestamp", "LastModifiedTimestamp")
		wiretest.Wait(2 * time.Second)
		_, err := c.SetQueueAttributes(c.ctx, &sdk.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"VisibilityTimeout": "7", "DelaySeconds": "1"}})
		c.must(err)
		after := c.attributes(url, "All")
		if after["VisibilityTimeout"] != "7" || after["DelaySeconds"] != "1" || after["MessageRetentionPeriod"] != "345600" {
			t.Errorf("attributes are %v", after)
		}
		if after["CreatedTimestamp"] != before["CreatedTimestamp"] || after["LastModifiedTimestamp"] <= before["LastModifiedTimestamp"] {
			t.Errorf("timestamps went from %v to %v", before, after)
		}
		_, err = c.SetQueueAttributes(c.ctx, &sdk.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"VisibilityTimeout": "43201", "DelaySeconds": "2"}})
		c.mustRefuse(err, "InvalidAttributeValue")
		if got := c.attributes(url, "DelaySeconds")["DelaySeconds"]; got != "1" {
			t.Errorf("a refused change left DelaySeconds at %s, want 1", got)
		}
	}},
	{name: "a purge empties the queue, messages in flight and delayed included", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		c.send(url, "1", "2")
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("later"), DelaySeconds: 100})
		c.must(err)
		c.receiveOne(url)
		if diff := cmp.Diff(counts{"1", "1", "1"}, c.counts(url)); diff != "" {
			t.Fatalf("before the purge (-want +got):\n%s", diff)
		}
		_, err = c.PurgeQueue(c.ctx, &sdk.PurgeQueueInput{QueueUrl: url})
		c.must(err)
		if diff := cmp.Diff(counts{"0", "0", "0"}, c.counts(url)); diff != "" {
			t.Errorf("after the purge (-want +got):\n%s", diff)
		}
	}},
	{name: "a second purge within a minute is refused", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		_, err := c.PurgeQueue(c.ctx, &sdk.PurgeQueueInput{QueueUrl: url})
		c.must(err)
		_, err = c.PurgeQueue(c.ctx, &sdk.PurgeQueueInput{QueueUrl: url})
		c.mustRefuse(err, "AWS.SimpleQueueService.PurgeQueueInProgress")
	}},
	{name: "after a minute a queue may be purged again", slow: true, run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		_, err := c.PurgeQueue(c.ctx, &sdk.PurgeQueueInput{QueueUrl: url})
		c.must(err)
		wiretest.Wait(time.Minute)
		_, err = c.PurgeQueue(c.ctx, &sdk.PurgeQueueInput{QueueUrl: url})
		c.must(err)
	}},
	{name: "a message is gone when the retention period is over, wherever it is", slow: true, run: func(t testing.TB, c *client) {
		url := c.create("work", map[string]string{"MessageRetentionPeriod": "60", "VisibilityTimeout": "300"})
		c.send(url, "in flight")
		c.receiveOne(url)
		c.send(url, "visible")
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: aws.String("delayed"), DelaySeconds: 300})
		c.must(err)
		wiretest.Wait(59 * time.Second)
		if diff := cmp.Diff(counts{"1", "1", "1"}, c.counts(url)); diff != "" {
			t.Errorf("after 59 s (-want +got):\n%s", diff)
		}
		wiretest.Wait(time.Second)
		if diff := cmp.Diff(counts{"0", "0", "0"}, c.counts(url)); diff != "" {
			t.Errorf("after 60 s (-want +got):\n%s", diff)
		}
		if got := c.receive(url, 10); len(got) != 0 {
			t.Errorf("received %v", bodies(got))
		}
	}},
	{name: "a redrive policy is shown as it was set", run: func(t testing.TB, c *client) {
		dead := c.create("dead", nil)
		url := c.create("work", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + c.arn(dead) + `","maxReceiveCount":"3"}`})
		var got struct {
			DeadLetterTargetArn string
			MaxReceiveCount     int
		}
		c.must(json.Unmarshal([]byte(c.attributes(url, "RedrivePolicy")["RedrivePolicy"]), &got))
		if got.DeadLetterTargetArn != c.arn(dead) || got.MaxReceiveCount != 3 {
			t.Errorf("the policy is %+v", got)
		}
	}},
	{name: "a redrive policy that cannot work is refused", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		arn := c.arn(c.create("dead", nil))
		for _, policy := range []string{
			`{"deadLetterTargetArn":"` + arn + `er","maxReceiveCount":3}`,
			`{"deadLetterTargetArn":"` + arn + `","maxReceiveCount":0}`,
			`{"deadLetterTargetArn":"` + arn + `","maxReceiveCount":1001}`,
			`{"deadLetterTargetArn":"` + arn + `"}`,
			`{"deadLetterTargetArn":"` + arn + `","maxReceiveCount":3,"colour":"blue"}`,
			`{"deadLetterTargetArn":"` + c.arn(url) + `","maxReceiveCount":3}`,
			`[]`,
		} {
			_, err := c.SetQueueAttributes(c.ctx, &sdk.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"RedrivePolicy": policy}})
			c.mustRefuse(err, "InvalidAttributeValue")
		}
	}},
	{name: "a dead-letter queue decides whose dead letters it takes", run: func(t testing.TB, c *client) {
		arn := strings.TrimSuffix(c.arn(c.create("x", nil)), "x")
		policy := func(dead string) map[string]string {
			return map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + arn + dead + `","maxReceiveCount":3}`}
		}
		c.create("all", map[string]string{"RedriveAllowPolicy": `{"redrivePermission":"allowAll"}`})
		c.create("none", map[string]string{"RedriveAllowPolicy": `{"redrivePermission":"denyAll"}`})
		c.create("some", map[string]string{"RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["` + arn + `friend"]}`})
		c.create("friend", policy("some"))
		c.create("anyone", policy("all"))
		for _, dead := range []string{"none", "some"} {
			_, err := c.CreateQueue(c.ctx, &sdk.CreateQueueInput{QueueName: aws.String("stranger"), Attributes: policy(dead)})
			c.mustRefuse(err, "InvalidAttributeValue")
		}
		for _, allow := range []string{`{"redrivePermission":"byQueue"}`, `{"redrivePermission":"maybe"}`, `{"redrivePermission":"denyAll","sourceQueueArns":["` + arn + `x"]}`} {
			_, err := c.CreateQueue(c.ctx, &sdk.CreateQueueInput{QueueName: aws.String("odd"), Attributes: map[string]string{"RedriveAllowPolicy": allow}})
			c.mustRefuse(err, "InvalidAttributeValue")
		}
	}},
	{name: "what the local stack does not do is refused, not ignored", run: func(t testing.TB, c *client) {
		url := c.create("work", nil)
		_, err := c.CreateQueue(c.ctx, &sdk.CreateQueueInput{QueueName: aws.String("line.fifo"), Attributes: map[string]string{"FifoQueue": "true"}})
		c.mustRefuse(err, "AWS.SimpleQueueService.UnsupportedOperation")
		_, err = c.CreateQueue(c.ctx, &sdk.CreateQueueInput{QueueName: aws.String("line"), Attributes: map[string]string{"FifoQueue": "true"}})
		c.mustRefuse(err, "AWS.SimpleQueueService.UnsupportedOperation")
		_, err = c.SetQueueAttributes(c.ctx, &sdk.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"Policy": "{}"}})
		c.mustRefuse(err, "AWS.SimpleQueueService.UnsupportedOperation")
		_, err = c.CreateQueue(c.ctx, &sdk.CreateQueueInput{QueueName: aws.String("tagged"), Tags: map[string]string{"a": "b"}})
		c.mustRefuse(err, "UnsupportedParameter")
		_, err = c.DeleteQueue(c.ctx, &sdk.DeleteQueueInput{QueueUrl: url})
		c.mustRefuse(err, "UnknownOperationException")
	}},
}
