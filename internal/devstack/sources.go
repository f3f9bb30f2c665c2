package devstack

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dakghar/internal/devstack/poller"
	"dakghar/internal/devstack/stack"
)

// startSources starts what calls the functions, unless nothing is to. Streams are
// positioned before this returns, so that no change after "ready" is missed.
func (s *Stack) startSources(ctx, background context.Context) error {
	if s.options.NoTriggers {
		s.logf("streams, queues and schedules call no function")
		return nil
	}
	for _, source := range s.declared.Streams {
		stream, err := s.newStream(source)
		if err != nil {
			return fmt.Errorf("%s: %w", source.Function, err)
		}
		if err := stream.Prepare(ctx); err != nil {
			return fmt.Errorf("%s: %w", source.Function, err)
		}
		s.running.Go(func() { stream.Run(background) })
	}
	for _, source := range s.declared.Queues {
		queue, err := s.newQueue(source)
		if err != nil {
			return fmt.Errorf("%s: %w", source.Function, err)
		}
		s.running.Go(func() { queue.Run(background) })
	}
	for _, source := range s.declared.Schedules {
		schedule, err := poller.NewSchedule(poller.ScheduleConfig{
			ARN: source.ARN, Every: orDefault(s.options.ScheduleEvery, source.Every), Input: source.Input, Region: region,
			Invoke: s.functions[source.Function].Invoke, Clock: s.options.Clock, NewID: newID, Logf: s.sourceLog(source.Function),
		})
		if err != nil {
			return fmt.Errorf("%s: %w", source.Function, err)
		}
		s.running.Go(func() { schedule.Run(background) })
	}
	return nil
}

func (s *Stack) sourceLog(function string) poller.Logf {
	return func(format string, args ...any) { s.logf("["+function+"] "+format, args...) }
}

func (s *Stack) newStream(source stack.StreamSource) (*poller.Stream, error) {
	filter, err := poller.CompileFilter(source.Patterns)
	if err != nil {
		return nil, err
	}
	cfg := poller.StreamConfig{
		Client: dynamodbstreams.NewFromConfig(s.Config()), StreamARN: source.StreamARN, FunctionARN: s.declared.Functions[source.Function].ARN,
		Region: region, Invoke: s.functions[source.Function].Invoke,
		BatchSize: source.BatchSize, Window: source.Window, Parallelization: source.Parallelization, Latest: source.Latest, Filter: filter,
		ReportBatchItemFailures: source.ReportBatchItemFailures, Bisect: source.Bisect, RetriesMax: source.RetriesMax, RecordAgeMax: source.RecordAgeMax,
		Interval: s.options.StreamInterval, Clock: s.options.Clock, NewID: newID, Logf: s.sourceLog(source.Function),
	}
	if s.services.changed != nil {
		table := tableOf(source.StreamARN)
		cfg.Changed = func() <-chan struct{} { return s.services.changed(table) }
	}
	if source.OnFailureQueueARN != "" {
		cfg.OnFailure = s.destination(source.OnFailureQueueARN)
	}
	return poller.NewStream(cfg)
}

// tableOf is the table's name in a stream's ARN, arn:…:table/NAME/stream/LABEL.
func tableOf(streamARN string) string {
	_, rest, _ := strings.Cut(streamARN, ":table/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// destination sends to a queue that the template check found to be ours.
func (s *Stack) destination(queueARN string) func(context.Context, []byte) error {
	url, _ := s.declared.QueueURL(queueARN)
	client := sqs.NewFromConfig(s.Config())
	return func(ctx context.Context, doc []byte) error {
		body := string(doc)
		_, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
		return err
	}
}

func (s *Stack) newQueue(source stack.QueueSource) (*poller.Queue, error) {
	url, _ := s.declared.QueueURL(source.QueueARN)
	// More batches at once than sandboxes would only wait, and spend their visibility.
	most := s.options.SandboxesMax
	if source.ConcurrencyMax > 0 {
		most = min(most, source.ConcurrencyMax)
	}
	return poller.NewQueue(poller.QueueConfig{
		Client: sqs.NewFromConfig(s.Config()), QueueURL: url, QueueARN: source.QueueARN, Region: region,
		Invoke: s.functions[source.Function].Invoke, BatchSize: source.BatchSize, Window: source.Window, ConcurrencyMax: most,
		ReportBatchItemFailures: source.ReportBatchItemFailures, Clock: s.options.Clock, Logf: s.sourceLog(source.Function),
	})
}
