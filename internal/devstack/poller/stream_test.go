package poller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/poller"
)

const streamARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Outbox/stream/2026-11-30T00:00:00.000"

// fakeStream is a stream of shards in memory. An iterator is "shard/position".
type fakeStream struct {
	mu     sync.Mutex
	shards []*fakeShard
	fail   []error // returned by the next GetRecords calls, one each
	reads  int
}

type fakeShard struct {
	name, parent string
	closed       bool
	records      []types.Record
}

func (f *fakeStream) put(shard int, records ...types.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shards[shard].records = append(f.shards[shard].records, records...)
}

func (f *fakeStream) DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := &types.StreamDescription{}
	for _, s := range f.shards {
		shard := types.Shard{ShardId: aws.String(s.name), SequenceNumberRange: &types.SequenceNumberRange{StartingSequenceNumber: aws.String("1")}}
		if s.parent != "" {
			shard.ParentShardId = aws.String(s.parent)
		}
		if s.closed {
			shard.SequenceNumberRange.EndingSequenceNumber = aws.String("9")
		}
		d.Shards = append(d.Shards, shard)
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

func (f *fakeStream) shard(name string) *fakeShard {
	return f.shards[slices.IndexFunc(f.shards, func(s *fakeShard) bool { return s.name == name })]
}

func (f *fakeStream) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, at := f.shard(*in.ShardId), 0
	switch in.ShardIteratorType {
	case types.ShardIteratorTypeLatest:
		at = len(s.records)
	case types.ShardIteratorTypeAfterSequenceNumber:
		at = 1 + slices.IndexFunc(s.records, func(r types.Record) bool { return *r.Dynamodb.SequenceNumber == *in.SequenceNumber })
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String(fmt.Sprintf("%s/%d", s.name, at))}, nil
}

func (f *fakeStream) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if len(f.fail) > 0 {
		err := f.fail[0]
		f.fail = f.fail[1:]
		return nil, err
	}
	name, position, _ := strings.Cut(*in.ShardIterator, "/")
	at, err := strconv.Atoi(position)
	if err != nil {
		return nil, err
	}
	s := f.shard(name)
	out := &dynamodbstreams.GetRecordsOutput{Records: slices.Clone(s.records[at:])}
	if !s.closed {
		out.NextShardIterator = aws.String(fmt.Sprintf("%s/%d", name, len(s.records)))
	}
	return out, nil
}

func change(id string, sequence int, at time.Time) types.Record {
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
	return types.Record{
		EventID: aws.String(fmt.Sprintf("event-%d", sequence)), EventName: types.OperationTypeInsert, EventVersion: aws.String("1.1"),
		EventSource: aws.String("aws:dynamodb"), AwsRegion: aws.String("us-east-1"),
		Dynamodb: &types.StreamRecord{
			Keys: key, NewImage: key, ApproximateCreationDateTime: aws.Time(at), SequenceNumber: aws.String(strconv.Itoa(sequence)),
			SizeBytes: aws.Int64(10), StreamViewType: types.StreamViewTypeNewImage,
		},
	}
}

// numbered makes records 1..n of as many items.
func numbered(n int, at time.Time) []types.Record {
	var out []types.Record
	for i := 1; i <= n; i++ {
		out = append(out, change(fmt.Sprintf("item-%d", i), i, at))
	}
	return out
}

// sink is the function: it notes the sequence numbers of each batch, in the order
// in which the invocations began, and answers as told.
type sink struct {
	mu      sync.Mutex
	batches []string
	answer  func(sequences []string) (response, functionError string, err error)
}

func (s *sink) invoke(_ context.Context, payload []byte) ([]byte, string, error) {
	var event events.DynamoDBEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, "", err
	}
	var sequences []string
	for _, r := range event.Records {
		sequences = append(sequences, r.Change.SequenceNumber)
	}
	s.mu.Lock()
	s.batches = append(s.batches, strings.Join(sequences, " "))
	s.mu.Unlock()
	if s.answer == nil {
		return nil, "", nil
	}
	response, functionError, err := s.answer(sequences)
	return []byte(response), functionError, err
}

// runStream runs a stream inside a bubble for five virtual minutes, in which all
// that is going to happen has happened, and returns the batches.
func runStream(t *testing.T, source *fakeStream, s *sink, change func(*poller.StreamConfig)) []string {
	t.Helper()
	stream := newStream(t, source, s, change)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); stream.Run(ctx) }()
	time.Sleep(5 * time.Minute) // virtual
	cancel()
	<-done
	return s.batches
}

func newStream(t *testing.T, source *fakeStream, s *sink, change func(*poller.StreamConfig)) *poller.Stream {
	t.Helper()
	cfg := poller.StreamConfig{
		Client: source, StreamARN: streamARN, FunctionARN: "arn:function", Region: "us-east-1", Invoke: s.invoke,
		RetriesMax: -1, NewID: func() string { return "request-1" },
		Interval: time.Second, // the clock is virtual, the work of reading is not
	}
	if change != nil {
		change(&cfg)
	}
	stream, err := poller.NewStream(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func oneShard(records ...types.Record) *fakeStream {
	return &fakeStream{shards: []*fakeShard{{name: "shard-1", records: records}}}
}

func TestAStreamEventHasLambdasShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		created := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		r := change("out_1", 7, created)
		r.EventName = types.OperationTypeRemove
		r.UserIdentity = &types.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")}
		r.Dynamodb.NewImage = map[string]types.AttributeValue{
			"s": &types.AttributeValueMemberS{Value: "a<b"}, "n": &types.AttributeValueMemberN{Value: "0.10"},
			"b": &types.AttributeValueMemberB{Value: []byte{0, 255}}, "t": &types.AttributeValueMemberBOOL{Value: true},
			"z":  &types.AttributeValueMemberNULL{Value: true},
			"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "1"}}},
			"m":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"x": &types.AttributeValueMemberS{Value: ""}}},
			"ss": &types.AttributeValueMemberSS{Value: []string{"a"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1"}},
			"bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}}},
		}
		r.Dynamodb.OldImage = r.Dynamodb.Keys
		var payloads [][]byte
		runStream(t, oneShard(r), &sink{}, func(c *poller.StreamConfig) {
			c.Invoke = func(_ context.Context, p []byte) ([]byte, string, error) {
				payloads = append(payloads, p)
				return nil, "", nil
			}
		})
		if len(payloads) != 1 {
			t.Fatalf("%d invocations, want 1", len(payloads))
		}
		want := `{"Records":[{"awsRegion":"us-east-1","dynamodb":{"ApproximateCreationDateTime":1796040000,` +
			`"Keys":{"id":{"S":"out_1"}},"NewImage":{"b":{"B":"AP8="},"bs":{"BS":["AQ=="]},"l":{"L":[{"N":"1"}]},` +
			`"m":{"M":{"x":{"S":""}}},"n":{"N":"0.10"},"ns":{"NS":["1"]},"s":{"S":"a\u003cb"},"ss":{"SS":["a"]},"t":{"BOOL":true},"z":{"NULL":true}},` +
			`"OldImage":{"id":{"S":"out_1"}},"SequenceNumber":"7","SizeBytes":10,"StreamViewType":"NEW_IMAGE"},` +
			`"eventID":"event-7","eventName":"REMOVE","eventSource":"aws:dynamodb","eventSourceARN":"` + streamARN + `","eventVersion":"1.1",` +
			`"userIdentity":{"principalId":"dynamodb.amazonaws.com","type":"Service"}}]}`
		if diff := cmp.Diff(want, string(payloads[0])); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		strict := json.NewDecoder(bytes.NewReader(payloads[0]))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&events.DynamoDBEvent{}); err != nil {
			t.Errorf("not the library's event: %v", err)
		}
	})
}

func TestBatchesAreCutAtTheirSizeAndFilteredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		filter, err := poller.CompileFilter([]string{`{"dynamodb":{"Keys":{"id":{"S":[{"anything-but":["item-2","item-4"]}]}}}}`})
		if err != nil {
			t.Fatal(err)
		}
		got := runStream(t, oneShard(numbered(7, time.Now())...), &sink{}, func(c *poller.StreamConfig) {
			c.BatchSize, c.Filter, c.Window = 2, filter, time.Second
		})
		if diff := cmp.Diff([]string{"1 3", "5 6", "7"}, got); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestAWindowWaitsForAFullBatchOrItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, s := oneShard(), &sink{}
		stream := newStream(t, source, s, func(c *poller.StreamConfig) { c.Window, c.BatchSize, c.Interval = 10*time.Second, 3, 0 })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go stream.Run(ctx)
		batch := func() string {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return strings.Join(s.batches, ", ")
		}
		source.put(0, change("a", 1, time.Now()))
		time.Sleep(9 * time.Second)
		if got := batch(); got != "" {
			t.Errorf("invoked with %s before the window's end", got)
		}
		time.Sleep(2 * time.Second)
		if got := batch(); got != "1" {
			t.Errorf("batches %q at the window's end, want one of 1", got)
		}
		source.put(0, change("a", 2, time.Now()), change("b", 3, time.Now()), change("c", 4, time.Now()))
		time.Sleep(50 * time.Millisecond)
		if got := batch(); got != "1, 2 3 4" {
			t.Errorf("batches %q, want a full one at once", got)
		}
	})
}

// The relay's promise to be quick rests on this: at most one interval from commit to invocation.
func TestARecordReachesTheFunctionWithinOneInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := oneShard()
		var arrived time.Time
		s := &sink{answer: func([]string) (string, string, error) { arrived = time.Now(); return "", "", nil }}
		stream := newStream(t, source, s, func(c *poller.StreamConfig) { c.Interval = 0 }) // the default
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go stream.Run(ctx)
		time.Sleep(time.Minute + time.Millisecond)
		put := time.Now()
		source.put(0, change("a", 1, put))
		time.Sleep(time.Second)
		synctest.Wait()
		if lag := arrived.Sub(put); lag < 0 || lag > 20*time.Millisecond {
			t.Errorf("lag %v, want at most 20 ms", lag)
		}
	})
}

func TestAChangeEndsThePauseOfAnIdleReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, changed := oneShard(), make(chan struct{})
		var arrived time.Time
		s := &sink{answer: func([]string) (string, string, error) { arrived = time.Now(); return "", "", nil }}
		stream := newStream(t, source, s, func(c *poller.StreamConfig) {
			c.Interval = time.Hour
			c.Changed = func() <-chan struct{} { return changed }
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go stream.Run(ctx)
		time.Sleep(time.Minute)
		put := time.Now()
		source.put(0, change("a", 1, put))
		close(changed)
		synctest.Wait()
		if arrived != put {
			t.Errorf("arrived at %v, put at %v", arrived, put)
		}
	})
}

func TestLanesRunBesideEachOtherAndKeepEachItemsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var records []types.Record
		for i := range 60 {
			records = append(records, change(fmt.Sprintf("item-%d", i%6), i+1, time.Now()))
		}
		var mu sync.Mutex
		running, most := 0, 0
		inFlight, last := map[string]bool{}, map[string]int{}
		invoke := func(_ context.Context, payload []byte) ([]byte, string, error) {
			var event events.DynamoDBEvent
			if err := json.Unmarshal(payload, &event); err != nil {
				t.Error(err)
			}
			mu.Lock()
			running++
			most = max(most, running)
			items := map[string]bool{}
			for _, r := range event.Records {
				id := r.Change.Keys["id"].String()
				n, err := strconv.Atoi(r.Change.SequenceNumber)
				if err != nil || n <= last[id] {
					t.Errorf("%s: %d after %d", id, n, last[id])
				}
				last[id] = n
				items[id] = true
			}
			for id := range items {
				if inFlight[id] {
					t.Errorf("%s is in flight twice", id)
				}
				inFlight[id] = true
			}
			mu.Unlock()
			time.Sleep(time.Second) // virtual
			mu.Lock()
			defer mu.Unlock()
			running--
			for id := range items {
				delete(inFlight, id)
			}
			return nil, "", nil
		}
		runStream(t, oneShard(records...), &sink{}, func(c *poller.StreamConfig) {
			c.Invoke, c.Parallelization, c.BatchSize = invoke, 10, 2
		})
		if want := map[string]int{"item-0": 55, "item-1": 56, "item-2": 57, "item-3": 58, "item-4": 59, "item-5": 60}; !cmp.Equal(want, last) {
			t.Errorf("last of each item %v, want %v", last, want)
		}
		if most < 2 {
			t.Errorf("at most %d invocations at once, want several", most)
		}
	})
}

func TestPartialFailureComesBackFromTheLowestSequenceNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := 2
		s := &sink{answer: func(sequences []string) (string, string, error) {
			if fails == 0 || !slices.Contains(sequences, "3") {
				return `{"batchItemFailures":[]}`, "", nil
			}
			fails--
			return `{"batchItemFailures":[{"itemIdentifier":"4"},{"itemIdentifier":"3"}]}`, "", nil
		}}
		got := runStream(t, oneShard(numbered(5, time.Now())...), s, func(c *poller.StreamConfig) {
			c.ReportBatchItemFailures, c.RetriesMax, c.Window = true, 1, time.Second
		})
		if diff := cmp.Diff([]string{"1 2 3 4 5", "3 4 5", "3 4 5"}, got); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestABadPartialResponseFailsTheWholeBatch(t *testing.T) {
	for name, response := range map[string]string{
		"not JSON":           `oops`,
		"not an object":      `["3"]`,
		"unknown identifier": `{"batchItemFailures":[{"itemIdentifier":"99"}]}`,
		"empty identifier":   `{"batchItemFailures":[{"itemIdentifier":""}]}`,
		"null identifier":    `{"batchItemFailures":[{"itemIdentifier":null}]}`,
		"wrong name":         `{"batchItemFailures":[{"ItemIdentifier":"2"}]}`,
		"list of texts":      `{"batchItemFailures":["2"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := true
				s := &sink{answer: func([]string) (string, string, error) {
					if !first {
						return "", "", nil
					}
					first = false
					return response, "", nil
				}}
				got := runStream(t, oneShard(numbered(3, time.Now())...), s, func(c *poller.StreamConfig) {
					c.ReportBatchItemFailures, c.Window = true, time.Second
				})
				if diff := cmp.Diff([]string{"1 2 3", "1 2 3"}, got); diff != "" {
					t.Errorf("batches (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAnEmptyPartialResponseIsSuccess(t *testing.T) {
	for _, response := range []string{"", "null", "{}", `{"batchItemFailures":null}`, `{"batchItemFailures":[]}`} {
		synctest.Test(t, func(t *testing.T) {
			s := &sink{answer: func([]string) (string, string, error) { return response, "", nil }}
			got := runStream(t, oneShard(numbered(2, time.Now())...), s, func(c *poller.StreamConfig) {
				c.ReportBatchItemFailures, c.Window = true, time.Second
			})
			if diff := cmp.Diff([]string{"1 2"}, got); diff != "" {
				t.Errorf("%q: batches (-want +got):\n%s", response, diff)
			}
		})
	}
}

// Proves W5: a poison record is cut out by halves, and what stands beside it passes.
func TestBisectFindsThePoisonAndTellsTheDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		created := time.Now()
		s := &sink{answer: func(sequences []string) (string, string, error) {
			if slices.Contains(sequences, "3") {
				return "", "Unhandled", nil
			}
			return "", "", nil
		}}
		var documents []string
		got := runStream(t, oneShard(numbered(4, created)...), s, func(c *poller.StreamConfig) {
			c.Bisect, c.RetriesMax, c.Window = true, 2, time.Second
			c.OnFailure = func(_ context.Context, doc []byte) error { documents = append(documents, string(doc)); return nil }
		})
		if diff := cmp.Diff([]string{"1 2 3 4", "1 2", "3 4", "3", "3", "3", "4"}, got); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		want := `{"requestContext":{"requestId":"request-1","functionArn":"arn:function:$LATEST","condition":"RetryAttemptsExhausted","approximateInvokeCount":3},` +
			`"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"version":"1.0","timestamp":"2000-01-01T00:00:01.150Z",` +
			`"DDBStreamBatchInfo":{"shardId":"shard-1","startSequenceNumber":"3","endSequenceNumber":"3","approximateArrivalOfFirstRecord":"2000-01-01T00:00:00Z",` +
			`"approximateArrivalOfLastRecord":"2000-01-01T00:00:00Z","batchSize":1,"streamArn":"` + streamARN + `"}}`
		if diff := cmp.Diff([]string{want}, documents); diff != "" {
			t.Errorf("destination (-want +got):\n%s", diff)
		}
	})
}

func TestWithoutBisectTheWholeBatchIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{answer: func(sequences []string) (string, string, error) {
			if slices.Contains(sequences, "2") {
				return "", "Unhandled", nil
			}
			return "", "", nil
		}}
		documents := 0
		got := runStream(t, oneShard(numbered(4, time.Now())...), s, func(c *poller.StreamConfig) {
			c.RetriesMax, c.BatchSize, c.Window = 0, 3, time.Second
			c.OnFailure = func(context.Context, []byte) error { documents++; return nil }
		})
		if diff := cmp.Diff([]string{"1 2 3", "4"}, got); diff != "" || documents != 1 {
			t.Errorf("%d documents, batches (-want +got):\n%s", documents, diff)
		}
	})
}

func TestARefusedInvocationSpendsNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := &sink{answer: func([]string) (string, string, error) {
			if n++; n <= 5 {
				return "", "", errors.New("throttled")
			}
			return "", "", nil
		}}
		got := runStream(t, oneShard(numbered(1, time.Now())...), s, func(c *poller.StreamConfig) { c.RetriesMax = 0 })
		if diff := cmp.Diff([]string{"1", "1", "1", "1", "1", "1"}, got); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestRecordsOverAgeAreGivenUpBeforeAndBetweenInvocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := append(numbered(1, time.Now().Add(-2*time.Minute)), change("fresh", 2, time.Now()))
		s := &sink{answer: func([]string) (string, string, error) { return "", "Unhandled", nil }}
		var conditions []string
		got := runStream(t, oneShard(records...), s, func(c *poller.StreamConfig) {
			c.RecordAgeMax, c.RetryFirst, c.RetryLast, c.Window = time.Minute, 25*time.Second, 25*time.Second, time.Second
			c.OnFailure = func(_ context.Context, doc []byte) error {
				var d struct {
					RequestContext struct {
						Condition              string
						ApproximateInvokeCount int
					}
					DDBStreamBatchInfo struct{ StartSequenceNumber string }
				}
				if err := json.Unmarshal(doc, &d); err != nil {
					t.Error(err)
				}
				conditions = append(conditions, fmt.Sprint(d.DDBStreamBatchInfo.StartSequenceNumber, " ", d.RequestContext.Condition, " ", d.RequestContext.ApproximateInvokeCount))
				return nil
			}
		})
		if diff := cmp.Diff([]string{"2", "2", "2"}, got); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"1 RecordAgeExceeded 0", "2 RecordAgeExceeded 3"}, conditions); diff != "" {
			t.Errorf("destination (-want +got):\n%s", diff)
		}
	})
}

func TestAChildShardWaitsForItsParentToBeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeStream{shards: []*fakeShard{
			{name: "child", parent: "parent", records: []types.Record{change("a", 3, time.Now())}},
			{name: "parent", parent: "trimmed", closed: true, records: []types.Record{change("a", 1, time.Now()), change("a", 2, time.Now())}},
		}}
		n := 0
		s := &sink{answer: func([]string) (string, string, error) {
			if n++; n < 3 {
				return "", "Unhandled", nil // the parent takes its time
			}
			return "", "", nil
		}}
		got := runStream(t, source, s, func(c *poller.StreamConfig) { c.BatchSize, c.Parallelization = 1, 2 })
		if diff := cmp.Diff([]string{"1", "1", "1", "2", "3"}, got); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestLatestBeginsAtPrepareAndMissesNothingAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, s := oneShard(numbered(2, time.Now())...), &sink{}
		source.shards = append(source.shards, &fakeShard{name: "old", closed: true, records: []types.Record{change("x", 9, time.Now())}})
		stream := newStream(t, source, s, func(c *poller.StreamConfig) { c.Latest = true })
		if err := stream.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		source.put(0, change("c", 3, time.Now()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go stream.Run(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"3"}, s.batches); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

// Proves A4 for the relay's source: a stream that fails for a while loses and repeats nothing.
func TestAFailingStreamIsReadOnFromWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, s := oneShard(numbered(2, time.Now())...), &sink{}
		stream := newStream(t, source, s, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go stream.Run(ctx)
		time.Sleep(time.Second)
		source.mu.Lock()
		source.fail = []error{errors.New("stalled"), &types.ExpiredIteratorException{}, errors.New("stalled")}
		source.mu.Unlock()
		source.put(0, change("c", 3, time.Now()))
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"1", "2", "3"}, strings.Fields(strings.Join(s.batches, " "))); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	})
}

func TestAStreamWithoutItsPartsIsRefused(t *testing.T) {
	if _, err := poller.NewStream(poller.StreamConfig{}); err == nil {
		t.Error("no error for an empty configuration")
	}
	s := &sink{}
	_, err := poller.NewStream(poller.StreamConfig{Client: oneShard(), StreamARN: streamARN, Invoke: s.invoke, NewID: func() string { return "" }, Parallelization: 11})
	if err == nil {
		t.Error("no error for eleven lanes")
	}
}
