package lambdaedge

import (
	"context"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

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
	return each(ctx, batch, q.handle), nil
}

func (q *Dispatch) handle(ctx context.Context, message events.SQSMessage) (finished bool) {
	line := &telemetry.Line{}
	defer func() {
		if v := recover(); v != nil {
			recovered(v, line)
			finished = true
		}
		q.Log.Write(line)
	}()
	wake, ok := wakeOf(message, line, dispatched)
	if !ok {
		return false
	}
	r := q.Dispatcher.Handle(ctx, wake)
	line.Str("decision", r.Decision).Str("topic", string(r.Topic)).Str("effect_id", string(r.Effect)).Str("delivery_id", string(r.Delivery)).
		Str("subscription_id", string(r.Subscription)).Str("event_type", r.Type).Str("code", r.Code).Err(r.Err).Count(r.Decision, 1)
	sealed(line, r.Code)
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
	return true
}

// dispatched reports whether a wake-up is for the dispatcher.
func dispatched(w webhook.Wake) bool {
	return w.Topic == webhook.TopicEffect || w.Topic == webhook.TopicDeliver && w.Delivery != ""
}
