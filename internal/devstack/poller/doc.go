// Package poller imitates Lambda's event source mappings and EventBridge
// Scheduler: it reads a DynamoDB stream, an SQS queue or a clock and invokes a
// function with events of exactly the shapes in aws-lambda-go/events.
//
// Kept are the semantics that a handler must survive: batches and windows,
// parallel lanes with order per item, filters, partial batch responses, bisection,
// bounds on retries and age, the on-failure destination, maximum concurrency, and
// messages that come back after their visibility timeout.
//
// Invariants:
//   - two records of one item are never in flight at once, and reach the function
//     in the order of the stream (again, after a failure, but never out of order);
//   - a record leaves a Stream only when the function accepted it, a filter
//     dropped it, or a bound on it did, which is told to the destination;
//   - a Queue deletes a message only after the function accepted it.
//
// It keeps no checkpoint: a stack that starts anew reads its streams from the
// configured starting position. It does not know tumbling windows, provisioned
// pollers, FIFO queues or cron expressions.
package poller

import (
	"context"
	"time"
)

// Invoke calls the function, as lambda.Function's method does: functionError is
// "" when the function succeeded; err is for what never reached it.
type Invoke func(ctx context.Context, payload []byte) (response []byte, functionError string, err error)

// Clock is where a poller gets the time from.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now implements Clock.
func (SystemClock) Now() time.Time { return time.Now() }

// After implements Clock.
func (SystemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// pause waits, and reports false when ctx ended first.
func pause(ctx context.Context, clock Clock, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-clock.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff doubles from first to last.
type backoff struct {
	first, last, next time.Duration
}

func (b *backoff) step() time.Duration {
	d := min(max(b.next, b.first), b.last)
	b.next = 2 * d
	return d
}

func (b *backoff) reset() { b.next = 0 }

// Logf writes one line of a log.
type Logf func(format string, args ...any)

func discard(string, ...any) {}
