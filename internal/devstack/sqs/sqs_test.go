package sqs_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"dakghar/internal/devstack/sqs"
	"dakghar/internal/devstack/wiretest"
)

// The suite is the acceptance list of the embedded queue: what the relay, the
// processor and the operator's redrive rest on (requirements D5, W4, W5, T4).

func TestEmbedded(t *testing.T) {
	wiretest.Embedded(t, func(t testing.TB) http.Handler {
		s := sqs.New(sqs.Config{})
		t.Cleanup(s.Close)
		return s
	}, checks())
}

func TestMoto(t *testing.T) { wiretest.Moto(t, checks(), motoDiffers) }

// motoDiffers lists what moto 5.2.1 answers differently, and why we do not follow it.
var motoDiffers = map[string]string{
	"queues are listed by prefix, in pages":                            "ListQueues ignores MaxResults",
	"what a queue cannot have is refused by name":                      "most limits of attributes are not checked",
	"changed attributes hold, and count as a modification":             "SetQueueAttributes checks no limits",
	"a second purge within a minute is refused":                        "PurgeQueue is never refused",
	"a redrive policy that cannot work is refused":                     "an absent target is NonExistentQueue, other faults are accepted",
	"a dead-letter queue decides whose dead letters it takes":          "RedriveAllowPolicy is stored and not used",
	"what the local stack does not do is refused, not ignored":         "moto has FIFO queues and all calls",
	"a message group with a space is refused":                          "the characters are not checked",
	"a trace header is kept and summed":                                "there is no digest of the system attributes",
	"attributes count towards a message's size: name, type and value":  "only the body counts",
	"a bad entry of a batch fails alone":                               "SenderFault is a string, which the SDK cannot read",
	"a message that cannot be sent is refused":                         "most contents are not checked",
	"an empty body is refused":                                         "it is accepted",
	"deduplication is for FIFO queues and is refused":                  "it is accepted on a standard queue",
	"a caller that gives up takes no message with it":                  "an abandoned poll goes on and takes the message",
	"a receive outside of the limits is refused":                       "only the upper limits are checked",
	"an old handle deletes nothing, and that is no error":              "every handle of a message deletes it; the API reference says only the newest does",
	"a visibility timeout of zero gives a message back at once":        "polls look again once a second",
	"the timeout of a message that is not in flight cannot be changed": "it is changed",
	"the timeout of a deleted message cannot be changed":               "refused with ReceiptHandleIsInvalid; the service says that the value is invalid",
	"a dead letter names the queue it came from":                       "there is no DeadLetterQueueSourceArn",
	"a move task brings dead letters back to where each came from":     "StartMessageMoveTask is HTTP 500",
	"a moved message is a new one: new id, new age, count from one":    "StartMessageMoveTask is HTTP 500",
	"a move task may name another destination":                         "StartMessageMoveTask is HTTP 500",
	"a letter sent straight to the dead-letter queue has no way back":  "StartMessageMoveTask is HTTP 500",
	"a move that cannot be is refused":                                 "StartMessageMoveTask is HTTP 500",
}

func checks() []wiretest.Check {
	var all []wiretest.Check
	for _, part := range [][]check{queueChecks, sendChecks, receiveChecks, receiptChecks, redriveChecks, moveChecks} {
		for _, c := range part {
			all = append(all, wiretest.Check{Name: c.name, Slow: c.slow, Run: func(t testing.TB, e wiretest.Endpoint) {
				c.run(t, newClient(t, e))
			}})
		}
	}
	return all
}

type check struct {
	name string
	slow bool
	run  func(t testing.TB, c *client)
}

// client is the SDK's client with short forms for what the checks say often.
type client struct {
	*sdk.Client
	t   testing.TB
	ctx context.Context
}

func newClient(t testing.TB, e wiretest.Endpoint) *client {
	return &client{t: t, ctx: t.Context(), Client: sdk.New(sdk.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(e.URL),
		HTTPClient:   e.Client,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		Retryer:      aws.NopRetryer{},
	})}
}

func (c *client) create(name string, attributes map[string]string) *string {
	c.t.Helper()
	out, err := c.CreateQueue(c.ctx, &sdk.CreateQueueInput{QueueName: &name, Attributes: attributes})
	c.must(err)
	return out.QueueUrl
}

func (c *client) send(url *string, bodies ...string) {
	c.t.Helper()
	for _, body := range bodies {
		_, err := c.SendMessage(c.ctx, &sdk.SendMessageInput{QueueUrl: url, MessageBody: &body})
		c.must(err)
	}
}

// receive takes up to most messages, without waiting, with all their attributes.
func (c *client) receive(url *string, most int32) []types.Message {
	c.t.Helper()
	return c.receiveFor(url, most, 0)
}

func (c *client) receiveFor(url *string, most, wait int32) []types.Message {
	c.t.Helper()
	out, err := c.ReceiveMessage(c.ctx, &sdk.ReceiveMessageInput{
		QueueUrl:                    url,
		MaxNumberOfMessages:         most,
		WaitTimeSeconds:             wait,
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	})
	c.must(err)
	return out.Messages
}

// receiveOne takes the one message that must be there.
func (c *client) receiveOne(url *string) types.Message {
	c.t.Helper()
	got := c.receive(url, 1)
	if len(got) != 1 {
		c.t.Fatalf("received %d messages, want 1", len(got))
	}
	return got[0]
}

func (c *client) delete(url, handle *string) {
	c.t.Helper()
	_, err := c.DeleteMessage(c.ctx, &sdk.DeleteMessageInput{QueueUrl: url, ReceiptHandle: handle})
	c.must(err)
}

func (c *client) attributes(url *string, names ...types.QueueAttributeName) map[string]string {
	c.t.Helper()
	out, err := c.GetQueueAttributes(c.ctx, &sdk.GetQueueAttributesInput{QueueUrl: url, AttributeNames: names})
	c.must(err)
	return out.Attributes
}

func (c *client) arn(url *string) string {
	c.t.Helper()
	return c.attributes(url, "QueueArn")["QueueArn"]
}

// counts is how many messages are visible, in flight and delayed.
type counts struct{ Visible, InFlight, Delayed string }

func (c *client) counts(url *string) counts {
	c.t.Helper()
	a := c.attributes(url, "All")
	return counts{a["ApproximateNumberOfMessages"], a["ApproximateNumberOfMessagesNotVisible"], a["ApproximateNumberOfMessagesDelayed"]}
}

func (c *client) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("unexpected error: %v", err)
	}
}

// mustRefuse fails unless the service refused with the code.
func (c *client) mustRefuse(err error, code string) {
	c.t.Helper()
	var refused smithy.APIError
	if !errors.As(err, &refused) {
		c.t.Fatalf("got %v, want a refusal with %s", err, code)
	}
	if refused.ErrorCode() != code {
		c.t.Errorf("refused with %s (%s), want %s", refused.ErrorCode(), refused.ErrorMessage(), code)
	}
}

func bodies(messages []types.Message) []string {
	all := []string{}
	for _, m := range messages {
		all = append(all, *m.Body)
	}
	return all
}

const nonExistentQueue = "AWS.SimpleQueueService.NonExistentQueue"
