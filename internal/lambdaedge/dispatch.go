package lambdaedge

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"sync"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"dakghar/internal/dispatcher"
	"dakghar/internal/telemetry"
	"dakghar/internal/webhook"
)

// Dispatch serves SQS batches with a dispatcher.
type Dispatch struct {
	Dispatcher *dispatcher.Dispatcher
	Log        *telemetry.Log
}

// Handle works on the messages of a batch side by side, so that none waits for
// another's partner. As in [Queue.Handle], only a message that is no wake-up of
// ours, or a newer one, is given back.
func (q *Dispatch) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	var response events.SQSEventResponse
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, message := range batch.Records {
		wg.Go(func() {
			if q.handle(ctx, message) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: message.MessageId})
		})
	}
	wg.Wait()
	sort.Slice(response.BatchItemFailures, func(i, j int) bool {
		return response.BatchItemFailures[i].ItemIdentifier < response.BatchItemFailures[j].ItemIdentifier
	})
	return response, nil
}

func (q *Dispatch) handle(ctx context.Context, message events.SQSMessage) (finished bool) {
	line := &telemetry.Line{}
	defer func() {
		if v := recover(); v != nil {
			// Our own rule was broken in mid-air. The lease frees the row.
			q.Log.Write(line.Str("decision", "panic").Err(fmt.Errorf("a %T", v)).Count("panic", 1))
			finished = true
		}
	}()
	var wake webhook.Wake
	err := json.Unmarshal([]byte(message.Body), &wake)
	switch {
	case err != nil || wake.Topic != webhook.TopicEffect && wake.Topic != webhook.TopicDeliver || wake.Topic == webhook.TopicDeliver && wake.Delivery == "":
		q.Log.Write(line.Str("decision", "not_a_wake").Str("message_id", message.MessageId).Count("not_a_wake", 1))
		return false
	case wake.Version > webhook.WakeVersion:
		q.Log.Write(line.Str("decision", "newer_wake").Str("message_id", message.MessageId).Count("newer_wake", 1))
		return false
	}
	r := q.Dispatcher.Handle(ctx, wake)
	line.Str("decision", r.Decision).Str("topic", string(r.Topic)).Str("effect_id", string(r.Effect)).Str("delivery_id", string(r.Delivery)).
		Str("subscription_id", string(r.Subscription)).Str("event_type", r.Type).Str("code", r.Code).Err(r.Err).Count(r.Decision, 1)
	if r.Created > 0 {
		line.Count("deliveries_created", r.Created)
	}
	if r.Status > 0 || r.Took > 0 { // something was sent
		line.Str("attempt", strconv.Itoa(r.Attempt)).Str("status", strconv.Itoa(r.Status)).Millis("attempt_ms", r.Took)
	}
	if r.Decision == "delivered" {
		line.Millis("delivery_age_ms", r.Age)
	}
	if r.AutoPaused {
		line.Count("subscription_paused", 1)
	}
	q.Log.Write(line)
	return true
}
