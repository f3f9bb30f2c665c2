// Package relay hands outbox rows to the queue and marks them. It is the fast
// way from acceptance to work; the reconciler is the sure one.
//
// Invariants:
//
//   - A row is marked only after the queue took its message, and only if it is
//     still the generation that was sent. Dying in between sends it twice, which
//     consumers absorb.
//   - A row that is due later than the queue can delay is left to the due index.
//
// The package never reads or changes the subject of a row, and never deletes.
package relay

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"dakghar/internal/webhook"
)

// Queue takes wake-ups. Send returns one error per wake-up, nil where it was
// taken; a wake-up whose fate is unknown counts as not taken.
type Queue interface {
	Send(ctx context.Context, wakes []webhook.Wake, delays []time.Duration) []error
}

// Outbox marks what was published.
type Outbox interface {
	MarkPublished(ctx context.Context, p webhook.Published) (bool, error)
}

// Relay publishes outbox rows.
type Relay struct {
	Queue  Queue
	Outbox Outbox
	Now    func() time.Time
}

// marksAtOnce bounds the marks under way.
const marksAtOnce = 16

// Result says what became of each row.
type Result struct {
	// Errs has one entry per row: nil when it was published or left to the due
	// index. A failed one is to be handed in again.
	Errs      []error
	Published int
	Left      int // due later than the queue can carry
	Unmarked  int // published, and the mark failed: the reconciler looks again
}

// Publish sends the rows and marks them.
func (r *Relay) Publish(ctx context.Context, rows []webhook.Outbox) Result {
	now := r.Now()
	result := Result{Errs: make([]error, len(rows))}
	var near []int
	var wakes []webhook.Wake
	var delays []time.Duration
	for i, row := range rows {
		// A row is left only if the due index has it: by another clock it may have
		// looked near when it was written.
		if row.InDueIndex && row.Far(now) {
			result.Left++
			continue
		}
		near = append(near, i)
		wakes = append(wakes, webhook.NewWake(row))
		delays = append(delays, row.Delay(now))
	}
	if len(near) == 0 {
		return result
	}

	marks := make([]bool, len(near))
	var group errgroup.Group
	group.SetLimit(marksAtOnce)
	for j, err := range r.Queue.Send(ctx, wakes, delays) {
		if result.Errs[near[j]] = err; err != nil {
			marks[j] = true // nothing to mark
			continue
		}
		result.Published++
		group.Go(func() error {
			_, err := r.Outbox.MarkPublished(ctx, rows[near[j]].Publish(now))
			marks[j] = err == nil
			return nil
		})
	}
	_ = group.Wait() // its functions return no error
	for _, marked := range marks {
		if !marked {
			result.Unmarked++
		}
	}
	return result
}
