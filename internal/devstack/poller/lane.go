package poller

import (
	"context"
	"slices"
	"time"
)

// batchBytesMax is Lambda's limit on an invocation's payload, less the frame
// round the records.
const batchBytesMax = 6_291_556 - 1024

// lane takes records in order, and the next batch only when the last is dealt with.
type lane struct {
	cfg     StreamConfig
	shardID string
	in      chan record

	pending []record // read from in, not yet in a batch
	ended   bool     // in is closed
}

func (l *lane) run(ctx context.Context) {
	for l.fill(ctx) {
		l.deliver(ctx, l.take())
	}
}

// fill waits for a record and then, at most for the window, for a full batch. It
// reports false when there will be no more.
func (l *lane) fill(ctx context.Context) bool {
	if len(l.pending) == 0 && !l.ended {
		select {
		case r, ok := <-l.in:
			l.add(r, ok)
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil || len(l.pending) == 0 {
		return false
	}
	if l.cfg.Window > 0 {
		l.wait(ctx)
	}
	l.drain()
	return ctx.Err() == nil
}

func (l *lane) wait(ctx context.Context) {
	window := l.cfg.Clock.After(l.cfg.Window)
	for len(l.pending) < l.cfg.BatchSize && !l.ended {
		select {
		case r, ok := <-l.in:
			l.add(r, ok)
		case <-window:
			return
		case <-ctx.Done():
			return
		}
	}
}

// drain adds what is there without waiting.
func (l *lane) drain() {
	for len(l.pending) < l.cfg.BatchSize && !l.ended {
		select {
		case r, ok := <-l.in:
			l.add(r, ok)
		default:
			return
		}
	}
}

func (l *lane) add(r record, ok bool) {
	if ok {
		l.pending = append(l.pending, r)
	} else {
		l.ended = true
	}
}

// take cuts a batch: at least one record, then what fits in count and bytes.
func (l *lane) take() []record {
	n, size := 0, 0
	for n < len(l.pending) && n < l.cfg.BatchSize {
		size += len(l.pending[n].encoded) + 1
		if n > 0 && size > batchBytesMax {
			break
		}
		n++
	}
	batch := slices.Clone(l.pending[:n])
	l.pending = slices.Delete(l.pending, 0, n)
	return batch
}

// outcome is what one invocation did for its batch.
type outcome struct {
	accepted      int // records from the start of the batch that are done
	failed        bool
	unreached     bool // the function was not called: no retry is spent
	functionError string
}

// deliver brings a batch to its end: accepted, or given up at a bound. A failed
// batch is bisected where that is asked for, which spends no retry; the halves
// then go one after the other, in order.
func (l *lane) deliver(ctx context.Context, batch []record) {
	retry := backoff{first: l.cfg.RetryFirst, last: l.cfg.RetryLast}
	retries, invocations := 0, 0
	var last outcome
	for len(batch) > 0 && ctx.Err() == nil {
		if batch = l.giveUpOld(ctx, batch, invocations, last); len(batch) == 0 {
			return
		}
		last = l.invoke(ctx, batch)
		if !last.unreached {
			invocations++
		}
		batch = batch[last.accepted:]
		switch {
		case len(batch) == 0 || ctx.Err() != nil:
			return
		case last.accepted > 0:
			// The checkpoint moved: what is left is a new batch.
			retries, invocations = 0, 0
			retry.reset()
		case last.unreached:
		case last.failed && l.cfg.Bisect && len(batch) > 1:
			l.deliver(ctx, batch[:len(batch)/2])
			batch = batch[len(batch)/2:]
			continue
		case l.cfg.RetriesMax >= 0 && retries >= l.cfg.RetriesMax:
			l.giveUp(ctx, "RetryAttemptsExhausted", batch, invocations, last)
			return
		default:
			retries++
		}
		pause(ctx, l.cfg.Clock, retry.step())
	}
}

func (l *lane) invoke(ctx context.Context, batch []record) outcome {
	response, functionError, err := l.cfg.Invoke(ctx, payload(batch))
	switch {
	case err != nil:
		if ctx.Err() == nil {
			l.cfg.Logf("stream: invocation refused: %v", err)
		}
		return outcome{unreached: true}
	case functionError != "":
		return outcome{failed: true, functionError: functionError}
	case !l.cfg.ReportBatchItemFailures:
		return outcome{accepted: len(batch)}
	}
	return checkpoint(response, batch)
}

// checkpoint is the first record that the response says failed: the lowest
// sequence number, as a batch is in that order. All before it are done, all from
// it on come again.
func checkpoint(response []byte, batch []record) outcome {
	known := make([]string, len(batch))
	for i, r := range batch {
		known[i] = r.sequence
	}
	p := readPartial(response, known)
	switch {
	case p.whole:
		return outcome{}
	case len(p.failed) == 0:
		return outcome{accepted: len(batch)}
	}
	return outcome{accepted: slices.IndexFunc(known, func(id string) bool { return slices.Contains(p.failed, id) })}
}

// giveUpOld gives up the records at the head of the batch that are over age.
func (l *lane) giveUpOld(ctx context.Context, batch []record, invocations int, last outcome) []record {
	if l.cfg.RecordAgeMax <= 0 {
		return batch
	}
	oldest := l.cfg.Clock.Now().Add(-l.cfg.RecordAgeMax)
	n := 0
	for n < len(batch) && batch[n].created.Before(oldest) {
		n++
	}
	if n > 0 {
		l.giveUp(ctx, "RecordAgeExceeded", batch[:n], invocations, last)
	}
	return batch[n:]
}

// giveUp drops records, and tells the destination which.
func (l *lane) giveUp(ctx context.Context, condition string, batch []record, invocations int, last outcome) {
	first, end := batch[0], batch[len(batch)-1]
	l.cfg.Logf("stream: gave up %d records from %s to %s: %s", len(batch), first.sequence, end.sequence, condition)
	if l.cfg.OnFailure == nil {
		return
	}
	doc := l.failureDocument(condition, batch, invocations, last)
	if err := l.cfg.OnFailure(ctx, doc); err != nil {
		l.cfg.Logf("stream: on-failure destination: %v", err)
	}
}

func utcMillis(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
func utcSecond(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
