// Package sink delivers to targets inside AWS that are not HTTP: SQS queues and
// EventBridge buses, under the same identity, attempts and signatures as a POST.
//
// Invariants:
//
//   - A target is reached only if the stack's operator has listed it. What a
//     subscription says is not enough: its row could name a queue of our own, and
//     turn deliveries into wake-ups.
//   - The stored bytes travel unchanged, as text beside their headers, so that
//     whoever gets them can verify them.
//
// It decides nothing about retries; an error is a fact for the dispatcher.
package sink

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dakghar/internal/awsfault"
	"dakghar/internal/delivery"
	"dakghar/internal/fault"
)

var errNotAllowed = errors.New("the target is not on the stack's list")

// taken is the answer of a service that took an event.
var taken = delivery.Answer{Status: 200}

// QueueClient is what the package needs of SQS.
type QueueClient interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Queue sends to SQS queues. A message is the event's bytes; its attributes are
// the headers of an HTTP delivery.
type Queue struct {
	Client QueueClient
	// Allowed are the URLs of the queues that may be sent to.
	Allowed []string
}

// Send delivers one attempt. A FIFO queue is told the delivery's id, so that an
// attempt that is repeated within five minutes is one message.
func (q *Queue) Send(ctx context.Context, s delivery.Subscription, body []byte, sign func() (map[string]string, error)) (delivery.Answer, error) {
	if !slices.Contains(q.Allowed, s.Target.URL) {
		return delivery.Answer{}, fault.New(fault.Permanent, "target_not_allowed", errNotAllowed)
	}
	header, err := sign()
	if err != nil {
		return delivery.Answer{}, err
	}
	in := &sqs.SendMessageInput{QueueUrl: &s.Target.URL, MessageBody: aws.String(string(body)), MessageAttributes: map[string]sqstypes.MessageAttributeValue{}}
	for name, value := range header {
		in.MessageAttributes[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	if strings.HasSuffix(s.Target.URL, ".fifo") {
		in.MessageDeduplicationId, in.MessageGroupId = aws.String(header[delivery.HeaderID]), aws.String(string(s.ID))
	}
	if _, err := q.Client.SendMessage(ctx, in); err != nil {
		return delivery.Answer{}, trouble("queue", "SendMessage", err)
	}
	return taken, nil
}

// BusClient is what the package needs of EventBridge.
type BusClient interface {
	PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

// Bus puts events on EventBridge buses. The detail has the event for rules to
// match on, and its exact bytes with their headers for whoever verifies.
type Bus struct {
	Client BusClient
	// Allowed are the ARNs of the buses that may be written to.
	Allowed []string
}

// busSource names us as the source of events.
const busSource = "dakghar"

// detail is what an event on a bus says.
type detail struct {
	Event  json.RawMessage   `json:"event"`
	Header map[string]string `json:"headers"`
	Body   string            `json:"body"`
}

// Send delivers one attempt.
func (b *Bus) Send(ctx context.Context, s delivery.Subscription, body []byte, sign func() (map[string]string, error)) (delivery.Answer, error) {
	if !slices.Contains(b.Allowed, s.Target.Bus) {
		return delivery.Answer{}, fault.New(fault.Permanent, "target_not_allowed", errNotAllowed)
	}
	header, err := sign()
	if err != nil {
		return delivery.Answer{}, err
	}
	var event struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return delivery.Answer{}, fault.New(fault.Permanent, "event_unreadable", nil)
	}
	said, err := json.Marshal(detail{body, header, string(body)})
	if err != nil {
		return delivery.Answer{}, fault.New(fault.Permanent, "event_unreadable", nil)
	}
	out, err := b.Client.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{
		EventBusName: &s.Target.Bus, Source: aws.String(busSource), DetailType: &event.Type, Detail: aws.String(string(said)),
	}}})
	switch {
	case err != nil:
		return delivery.Answer{}, trouble("bus", "PutEvents", err)
	case out.FailedEntryCount > 0 || len(out.Entries) != 1 || aws.ToString(out.Entries[0].EventId) == "":
		return delivery.Answer{}, fault.New(fault.Theirs, "bus_refused", errors.New("the entry was not taken"))
	}
	return taken, nil
}

// trouble is an attempt that the service did not take, as far as is known: it is
// tried again within the profile, under the same identity.
func trouble(what, operation string, err error) error {
	return fault.New(fault.Theirs, what+"_"+awsfault.Cause(err), awsfault.Summary(operation, err))
}
