package poller

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// laneBuffer bounds the records that are read ahead of each lane.
const laneBuffer = 1000

// reader reads one shard and deals its records to lanes by item key.
type reader struct {
	stream   *Stream
	shardID  string
	iterator string // "" until there is one
	last     string // sequence number of the last record read, "" before the first
	lanes    []*lane
}

func (s *Stream) newReader(shardID, iterator string) *reader {
	r := &reader{stream: s, shardID: shardID, iterator: iterator}
	for range s.cfg.Parallelization {
		r.lanes = append(r.lanes, &lane{cfg: s.cfg, shardID: shardID, in: make(chan record, laneBuffer)})
	}
	return r
}

// run returns when the shard is closed and all its records are dealt with, or
// when ctx ends.
func (r *reader) run(ctx context.Context) {
	var lanes sync.WaitGroup
	for _, l := range r.lanes {
		lanes.Go(func() { l.run(ctx) })
	}
	r.read(ctx)
	for _, l := range r.lanes {
		close(l.in)
	}
	lanes.Wait()
}

func (r *reader) read(ctx context.Context) {
	cfg := r.stream.cfg
	retry := backoff{first: cfg.RetryFirst, last: cfg.RetryLast}
	for ctx.Err() == nil {
		changed := r.changed()
		records, open, err := r.next(ctx)
		if err != nil {
			wait := retry.step()
			if ctx.Err() == nil {
				cfg.Logf("stream: %v; next try in %v", err, wait)
			}
			pause(ctx, cfg.Clock, wait)
			continue
		}
		retry.reset()
		if !r.deal(ctx, records) || !open {
			return
		}
		if len(records) > 0 {
			changed = nil // under load a pause makes batches
		}
		r.rest(ctx, changed)
	}
}

func (r *reader) changed() <-chan struct{} {
	if r.stream.cfg.Changed == nil {
		return nil
	}
	return r.stream.cfg.Changed()
}

// rest pauses between two reads, at most until the stream changes.
func (r *reader) rest(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-changed:
	case <-r.stream.cfg.Clock.After(r.stream.cfg.Interval):
	case <-ctx.Done():
	}
}

// next reads once. It reports open false when the shard has no more.
func (r *reader) next(ctx context.Context) (records []types.Record, open bool, err error) {
	if r.iterator == "" {
		if r.iterator, err = r.resume(ctx); err != nil {
			return nil, true, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := r.stream.cfg.Client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: &r.iterator})
	if err != nil {
		var expired *types.ExpiredIteratorException
		var trimmed *types.TrimmedDataAccessException
		if errors.As(err, &expired) || errors.As(err, &trimmed) {
			r.iterator = ""
		}
		return nil, true, err
	}
	if out.NextShardIterator == nil {
		return out.Records, false, nil
	}
	r.iterator = *out.NextShardIterator
	return out.Records, true, nil
}

// resume finds the place after the last record that was read.
func (r *reader) resume(ctx context.Context) (string, error) {
	if r.last != "" {
		iterator, err := r.stream.iterator(ctx, r.shardID, types.ShardIteratorTypeAfterSequenceNumber, r.last)
		var trimmed *types.TrimmedDataAccessException
		if !errors.As(err, &trimmed) {
			return iterator, err
		}
	}
	return r.stream.iterator(ctx, r.shardID, types.ShardIteratorTypeTrimHorizon, "")
}

// deal gives every record that passes the filter to the lane of its item. It
// waits for a lane that is full, and reports false when ctx ended first.
func (r *reader) deal(ctx context.Context, records []types.Record) bool {
	cfg := r.stream.cfg
	for _, raw := range records {
		rec, err := newRecord(raw, cfg.StreamARN, cfg.Region)
		if err != nil {
			cfg.Logf("stream: record dropped: %v", err)
			continue
		}
		r.last = rec.sequence
		if !cfg.Filter.Match(rec.event) {
			continue
		}
		rec.event = nil
		select {
		case r.laneOf(rec.key).in <- rec:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (r *reader) laneOf(key string) *lane {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return r.lanes[int(h.Sum32()%uint32(len(r.lanes)))]
}
