package sink_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/fault"
	"dakghar/internal/sink"
)

const (
	queueURL = "https://sqs.us-east-1.amazonaws.com/111122223333/partner"
	busARN   = "arn:aws:events:us-east-1:111122223333:event-bus/partner"
)

var event = []byte(`{"type":"payment.succeeded","timestamp":"2026-03-01T12:00:00Z","data":{"n":1}}`)

func headers() (map[string]string, error) {
	return map[string]string{delivery.HeaderID: "dl_1", delivery.HeaderAttempt: "2", delivery.HeaderSignature: "kid=k1,v1=AA=="}, nil
}

type sqsFake struct {
	sent []*sqs.SendMessageInput
	err  error
}

func (f *sqsFake) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	f.sent = append(f.sent, in)
	return &sqs.SendMessageOutput{}, f.err
}

type busFake struct {
	sent []ebtypes.PutEventsRequestEntry
	out  *eventbridge.PutEventsOutput
	err  error
}

func (f *busFake) PutEvents(_ context.Context, in *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	f.sent = append(f.sent, in.Entries...)
	return f.out, f.err
}

func to(kind delivery.TargetKind, url, bus string) delivery.Subscription {
	return delivery.Subscription{ID: "sub_1", Target: delivery.Target{Kind: kind, URL: url, Bus: bus}}
}

// The exact bytes travel, with the headers beside them. Proves X2, X3.
func TestAQueueGetsTheBytesAndTheHeaders(t *testing.T) {
	t.Parallel()
	fake := &sqsFake{}
	q := &sink.Queue{Client: fake, Allowed: []string{queueURL, queueURL + ".fifo"}}
	for _, url := range q.Allowed {
		answer, err := q.Send(t.Context(), to(delivery.Queue, url, ""), event, headers)
		if err != nil || answer.Status != 200 {
			t.Fatalf("answer %+v, error %v", answer, err)
		}
	}
	for i, in := range fake.sent {
		if aws.ToString(in.MessageBody) != string(event) {
			t.Errorf("body %q", aws.ToString(in.MessageBody))
		}
		got := map[string]string{}
		for name, v := range in.MessageAttributes {
			got[name] = aws.ToString(v.StringValue)
		}
		want, _ := headers()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("attributes (-want +got):\n%s", diff)
		}
		if fifo := aws.ToString(in.MessageDeduplicationId) == "dl_1" && aws.ToString(in.MessageGroupId) == "sub_1"; fifo != (i == 1) {
			t.Errorf("queue %d: told the delivery's id %t", i, fifo)
		}
	}
}

func TestABusGetsTheEventItsBytesAndTheHeaders(t *testing.T) {
	t.Parallel()
	fake := &busFake{out: &eventbridge.PutEventsOutput{Entries: []ebtypes.PutEventsResultEntry{{EventId: aws.String("e")}}}}
	b := &sink.Bus{Client: fake, Allowed: []string{busARN}}
	if answer, err := b.Send(t.Context(), to(delivery.Bus, "", busARN), event, headers); err != nil || answer.Status != 200 {
		t.Fatalf("answer %+v, error %v", answer, err)
	}
	got := fake.sent[0]
	want := `{"event":` + string(event) + `,"headers":{"dakghar-attempt":"2","dakghar-signature":"kid=k1,v1=AA==","webhook-id":"dl_1"},"body":` +
		`"{\"type\":\"payment.succeeded\",\"timestamp\":\"2026-03-01T12:00:00Z\",\"data\":{\"n\":1}}"}`
	if diff := cmp.Diff(want, aws.ToString(got.Detail)); diff != "" {
		t.Errorf("detail (-want +got):\n%s", diff)
	}
	if aws.ToString(got.DetailType) != "payment.succeeded" || aws.ToString(got.EventBusName) != busARN || aws.ToString(got.Source) != "dakghar" {
		t.Errorf("entry %s to %s from %s", aws.ToString(got.DetailType), aws.ToString(got.EventBusName), aws.ToString(got.Source))
	}
}

// A target that the operator did not list gets nothing, whatever a row says. A
// service that does not take an event is tried again. Proves X5, X9.
func TestWhatIsNotTaken(t *testing.T) {
	t.Parallel()
	queue, bus := &sqsFake{}, &busFake{}
	failing := errors.New("the service is away")
	tests := []struct {
		name string
		send func() (delivery.Answer, error)
		kind fault.Kind
		code string
	}{
		{"a queue that is not listed", func() (delivery.Answer, error) {
			return (&sink.Queue{Client: queue, Allowed: []string{queueURL}}).Send(t.Context(), to(delivery.Queue, queueURL+"2", ""), event, headers)
		}, fault.Permanent, "target_not_allowed"},
		{"a bus that is not listed", func() (delivery.Answer, error) {
			return (&sink.Bus{Client: bus}).Send(t.Context(), to(delivery.Bus, "", busARN), event, headers)
		}, fault.Permanent, "target_not_allowed"},
		{"a queue that is away", func() (delivery.Answer, error) {
			return (&sink.Queue{Client: &sqsFake{err: failing}, Allowed: []string{queueURL}}).Send(t.Context(), to(delivery.Queue, queueURL, ""), event, headers)
		}, fault.Theirs, "queue_unreachable"},
		{"a bus that does not take the entry", func() (delivery.Answer, error) {
			fake := &busFake{out: &eventbridge.PutEventsOutput{FailedEntryCount: 1, Entries: []ebtypes.PutEventsResultEntry{{ErrorCode: aws.String("InternalFailure")}}}}
			return (&sink.Bus{Client: fake, Allowed: []string{busARN}}).Send(t.Context(), to(delivery.Bus, "", busARN), event, headers)
		}, fault.Theirs, "bus_refused"},
		{"no key", func() (delivery.Answer, error) {
			return (&sink.Queue{Client: queue, Allowed: []string{queueURL}}).Send(t.Context(), to(delivery.Queue, queueURL, ""), event,
				func() (map[string]string, error) { return nil, delivery.ErrKeyMissing })
		}, fault.Ours, "key_missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.send()
			if fault.KindOf(err) != tt.kind || err == nil || fault.CodeOf(err) != tt.code {
				t.Errorf("error %v, want %s %s", err, tt.kind, tt.code)
			}
		})
	}
	t.Cleanup(func() {
		if len(queue.sent)+len(bus.sent) != 0 {
			t.Error("something was sent")
		}
	})
}
