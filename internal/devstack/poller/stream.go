package poller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// StreamsAPI is the part of DynamoDB Streams that a Stream reads with.
type StreamsAPI interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// callTimeout ends a call to a stalled store, so that it is tried again.
const callTimeout = 10 * time.Second

// StreamConfig describes an event source mapping from a DynamoDB stream. Zero
// values mean the default named beside them.
type StreamConfig struct {
	Client      StreamsAPI
	StreamARN   string
	FunctionARN string
	Region      string
	Invoke      Invoke

	BatchSize               int           // records an invocation; default 100
	Window                  time.Duration // how long a batch may wait to fill; default none
	Parallelization         int           // lanes a shard, 1 to 10; default 1
	Latest                  bool          // start at the stream's end; default its beginning
	Filter                  *Filter       // nil passes everything
	ReportBatchItemFailures bool
	Bisect                  bool                                        // split a batch in two on a function error
	RetriesMax              int                                         // -1 without bound
	RecordAgeMax            time.Duration                               // 0 without bound
	OnFailure               func(ctx context.Context, doc []byte) error // nil: what is given up is only logged

	// Interval is the pause between two reads of a shard; default 20 ms, Lambda's is
	// about 250 ms. Changed, if there is one, ends the pause after a read that found
	// nothing: it returns a channel, taken before the read, that is closed by the
	// next record of the stream.
	Interval time.Duration
	Changed  func() <-chan struct{}

	Refresh    time.Duration // between looks for new shards; default 10 s
	RetryFirst time.Duration // pause before the first retry, then doubling; default 50 ms
	RetryLast  time.Duration // longest pause; default 5 s
	Clock      Clock
	NewID      func() string
	Logf       Logf
}

func (c StreamConfig) withDefaults() StreamConfig {
	c.BatchSize = orDefault(c.BatchSize, 100)
	c.Parallelization = orDefault(c.Parallelization, 1)
	c.Interval = orDefault(c.Interval, 20*time.Millisecond)
	c.Refresh = orDefault(c.Refresh, 10*time.Second)
	c.RetryFirst = orDefault(c.RetryFirst, 50*time.Millisecond)
	c.RetryLast = orDefault(c.RetryLast, 5*time.Second)
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Logf == nil {
		c.Logf = discard
	}
	return c
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Stream reads one DynamoDB stream for one function.
type Stream struct {
	cfg    StreamConfig
	closed chan string // names of shards that are read to their end

	shards   map[string]*shard
	prepared bool
}

// shard is what a Stream knows of one.
type shard struct {
	started, finished bool
	iterator          string // taken by Prepare, "" for a shard found later
}

// NewStream makes a Stream; Prepare and then Run start it.
func NewStream(cfg StreamConfig) (*Stream, error) {
	if cfg.Client == nil || cfg.StreamARN == "" || cfg.Invoke == nil || cfg.NewID == nil {
		return nil, errors.New("poller: a stream needs Client, StreamARN, Invoke and NewID")
	}
	if cfg.Parallelization < 0 || cfg.Parallelization > 10 {
		return nil, fmt.Errorf("poller: ParallelizationFactor %d is not within 1 and 10", cfg.Parallelization)
	}
	return &Stream{cfg: cfg.withDefaults(), closed: make(chan string), shards: map[string]*shard{}}, nil
}

// Prepare fixes the starting position: once it has returned, no later change of
// the table is missed, even if Run begins later.
func (s *Stream) Prepare(ctx context.Context) error {
	list, err := s.describe(ctx)
	if err != nil {
		return err
	}
	s.prepared = true
	for _, sh := range list {
		known := &shard{}
		s.shards[aws.ToString(sh.ShardId)] = known
		ended := sh.SequenceNumberRange != nil && sh.SequenceNumberRange.EndingSequenceNumber != nil
		if s.cfg.Latest && ended {
			known.started, known.finished = true, true
			continue
		}
		known.iterator, err = s.iterator(ctx, aws.ToString(sh.ShardId), s.position(), "")
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Stream) position() types.ShardIteratorType {
	if s.cfg.Latest {
		return types.ShardIteratorTypeLatest
	}
	return types.ShardIteratorTypeTrimHorizon
}

// Run reads until ctx ends, and returns when no invocation of its own runs any
// more. Failures of the stream are logged and tried again.
func (s *Stream) Run(ctx context.Context) {
	var readers sync.WaitGroup
	defer readers.Wait()
	retry := backoff{first: s.cfg.RetryFirst, last: s.cfg.RetryLast}
	for ctx.Err() == nil {
		wait := s.cfg.Refresh
		if err := s.discover(ctx, &readers); err != nil {
			wait = retry.step()
			s.cfg.Logf("stream: %v; next try in %v", err, wait)
		} else {
			retry.reset()
		}
		select {
		case <-s.cfg.Clock.After(wait):
		case id := <-s.closed:
			s.shards[id].finished = true
		case <-ctx.Done():
		}
	}
}

// discover starts a reader for every shard whose parent is read to its end or
// gone: that keeps the order of an item over a split.
func (s *Stream) discover(ctx context.Context, readers *sync.WaitGroup) error {
	if !s.prepared {
		if err := s.Prepare(ctx); err != nil {
			return err
		}
	}
	list, err := s.describe(ctx)
	if err != nil {
		return err
	}
	for _, sh := range list {
		id := aws.ToString(sh.ShardId)
		known := s.shards[id]
		if known == nil {
			known = &shard{}
			s.shards[id] = known
		}
		parent := s.shards[aws.ToString(sh.ParentShardId)]
		if known.started || parent != nil && !parent.finished {
			continue
		}
		known.started = true
		reader := s.newReader(id, known.iterator)
		readers.Go(func() {
			reader.run(ctx)
			select {
			case s.closed <- id:
			case <-ctx.Done():
			}
		})
	}
	return nil
}

func (s *Stream) describe(ctx context.Context) ([]types.Shard, error) {
	var list []types.Shard
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &s.cfg.StreamARN}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for {
		out, err := s.cfg.Client.DescribeStream(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", s.cfg.StreamARN, err)
		}
		list = append(list, out.StreamDescription.Shards...)
		if out.StreamDescription.LastEvaluatedShardId == nil {
			return list, nil
		}
		in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId
	}
}

func (s *Stream) iterator(ctx context.Context, shardID string, at types.ShardIteratorType, sequence string) (string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &s.cfg.StreamARN, ShardId: &shardID, ShardIteratorType: at}
	if sequence != "" {
		in.SequenceNumber = &sequence
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.cfg.Client.GetShardIterator(ctx, in)
	if err != nil {
		return "", fmt.Errorf("iterator of %s: %w", shardID, err)
	}
	return aws.ToString(out.ShardIterator), nil
}
