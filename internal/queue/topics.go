package queue

import (
	"context"
	"time"

	"dakghar/internal/webhook"
)

// Topics sends each wake-up to its topic's queue: events to the one that the
// processor works off, effects and deliveries to the dispatcher's, so that a slow
// partner keeps no event waiting.
type Topics struct {
	Events, Deliveries *Queue
}

// Send is [Queue.Send] over both queues.
func (t Topics) Send(ctx context.Context, wakes []webhook.Wake, delays []time.Duration) []error {
	errs := make([]error, len(wakes))
	for _, q := range []*Queue{t.Events, t.Deliveries} {
		var at []int
		var some []webhook.Wake
		var after []time.Duration
		for i, w := range wakes {
			if (w.Topic == webhook.TopicProcess) == (q == t.Events) {
				at, some, after = append(at, i), append(some, w), append(after, delays[i])
			}
		}
		for i, err := range q.Send(ctx, some, after) {
			errs[at[i]] = err
		}
	}
	return errs
}
