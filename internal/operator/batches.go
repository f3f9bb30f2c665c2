package operator

import (
	"context"
	"fmt"
	"iter"
	"time"

	"dakghar/internal/webhook"
)

// backFrom cuts a list, which goes back in time, into batches. The cursor is the
// time of the last one: going on, those of the same time are met again.
func backFrom[T any](
	ctx context.Context, f webhook.Filter, cursor string,
	list func(context.Context, webhook.Filter) (iter.Seq2[T, error], error), place func(webhook.Filter, T) (candidate, time.Time),
) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		to, err := from(f.Until, cursor)
		if err != nil {
			yield(batch{}, err)
			return
		}
		f.Until = to
		rows, err := list(ctx, f)
		if err != nil {
			yield(batch{}, err)
			return
		}
		var b batch
		for row, err := range rows {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(b, err)
				return
			}
			c, at := place(f, row)
			if at.Before(to) {
				to = at
			}
			b.cursor = to.UTC().Format(time.RFC3339Nano)
			c.cursor = b.cursor
			if b.events = append(b.events, c); len(b.events) < jobBatch {
				continue
			}
			if !yield(b, nil) {
				return
			}
			b = batch{}
		}
		if len(b.events) > 0 {
			yield(b, nil)
		}
	}
}

func from(until time.Time, cursor string) (time.Time, error) {
	if cursor == "" {
		return until, nil
	}
	t, err := time.Parse(time.RFC3339Nano, cursor)
	if err != nil {
		return until, fmt.Errorf("the job's cursor cannot be read: %w", err)
	}
	return t, nil
}
