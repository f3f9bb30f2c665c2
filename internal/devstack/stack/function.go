package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"dakghar/internal/devstack/poller"
)

const typeFunction = "AWS::Serverless::Function"

type functionProperties struct {
	Handler, Runtime, PackageType text
	AutoPublishAlias, Role        text
	MemorySize, Timeout           *number
	ReservedConcurrentExecutions  *number
	Environment                   struct{ Variables map[string]text }
	Events                        map[string]struct {
		Type       text
		Properties any
	}

	Architectures, CodeUri, Description, Tags                     ignored // built for this machine, found by its logical id
	Policies, PermissionsBoundary, KmsKeyArn                      ignored // only the policies of roles are read
	Tracing, LoggingConfig                                        ignored // logs go to the terminal
	AutoPublishAliasAllProperties, DeploymentPreference           ignored // there is one version
	ProvisionedConcurrencyConfig, EphemeralStorage, RecursiveLoop ignored // sandboxes start in milliseconds
}

func (c *creation) makeFunction(_ context.Context, id string, properties any) (Resource, error) {
	var p functionProperties
	if err := decode(properties, &p); err != nil {
		return Resource{}, err
	}
	if p.Runtime != "provided.al2023" {
		return Resource{}, fmt.Errorf("runtime %q: the local stack runs provided.al2023 only", p.Runtime)
	}
	f := Function{
		ARN:      fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", c.options.Region, Account, id),
		Alias:    string(p.AutoPublishAlias),
		Handler:  string(p.Handler),
		MemoryMB: orElse(p.MemorySize, 128),
		Timeout:  seconds(orElse(p.Timeout, 3)),
		Env:      map[string]string{},
	}
	for name, value := range p.Environment.Variables {
		f.Env[name] = string(value)
	}
	if p.ReservedConcurrentExecutions != nil {
		f.Reserved = new(int)
		*f.Reserved = int(*p.ReservedConcurrentExecutions)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Events)) {
		if err := c.addSource(id, name, string(p.Events[name].Type), p.Events[name].Properties); err != nil {
			return Resource{}, fmt.Errorf("event %s: %w", name, err)
		}
	}
	if p.Role != "" {
		c.roleARNs[id] = string(p.Role)
	}
	c.stack.Functions[id] = f
	return Resource{Ref: id, Attributes: map[string]string{"Arn": f.ARN}}, nil
}

func orElse(n *number, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return int(*n)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func (c *creation) addSource(function, name, kind string, properties any) error {
	switch kind {
	case "DynamoDB":
		return c.addStream(function, properties)
	case "SQS":
		return c.addQueue(function, properties)
	case "ScheduleV2":
		return c.addSchedule(function, name, properties)
	}
	return fmt.Errorf("the local stack does not know events of type %s", kind)
}

// responseTypes is FunctionResponseTypes; there is one.
type responseTypes []text

func (r responseTypes) reportBatchItemFailures() (bool, error) {
	for _, t := range r {
		if t != "ReportBatchItemFailures" {
			return false, fmt.Errorf("function response type %q is unknown", t)
		}
	}
	return len(r) > 0, nil
}

type streamProperties struct {
	Stream, StartingPosition                        text
	BatchSize, MaximumBatchingWindowInSeconds       number
	ParallelizationFactor                           number
	MaximumRetryAttempts, MaximumRecordAgeInSeconds *number
	BisectBatchOnFunctionError                      flag
	Enabled                                         *flag
	FunctionResponseTypes                           responseTypes
	DestinationConfig                               struct {
		OnFailure struct{ Type, Destination text }
	}
	FilterCriteria struct{ Filters []struct{ Pattern text } }
}

func (c *creation) addStream(function string, properties any) error {
	var p streamProperties
	if err := decode(properties, &p); err != nil {
		return err
	}
	if p.Enabled != nil && !bool(*p.Enabled) {
		return nil
	}
	report, err := p.FunctionResponseTypes.reportBatchItemFailures()
	if err != nil {
		return err
	}
	s := StreamSource{
		Function: function, StreamARN: string(p.Stream), BatchSize: int(p.BatchSize), Window: seconds(int(p.MaximumBatchingWindowInSeconds)),
		Parallelization: int(p.ParallelizationFactor), Latest: p.StartingPosition == "LATEST", ReportBatchItemFailures: report,
		Bisect: bool(p.BisectBatchOnFunctionError), RetriesMax: orElse(p.MaximumRetryAttempts, -1),
		RecordAgeMax: max(0, seconds(orElse(p.MaximumRecordAgeInSeconds, -1))), OnFailureQueueARN: string(p.DestinationConfig.OnFailure.Destination),
	}
	for _, f := range p.FilterCriteria.Filters {
		s.Patterns = append(s.Patterns, string(f.Pattern))
	}
	if err := s.check(c.stack, p); err != nil {
		return err
	}
	c.stack.Streams = append(c.stack.Streams, s)
	return nil
}

// check refuses what Lambda would refuse, or what would fail in silence there.
func (s *StreamSource) check(stack *Stack, p streamProperties) error {
	_, ours := stack.QueueURL(s.OnFailureQueueARN)
	age := orElse(p.MaximumRecordAgeInSeconds, -1)
	switch _, err := poller.CompileFilter(s.Patterns); {
	case err != nil:
		return err
	case s.StreamARN == "":
		return errors.New("Stream is missing; has its table a StreamSpecification?")
	case p.StartingPosition != "TRIM_HORIZON" && p.StartingPosition != "LATEST":
		return fmt.Errorf("StartingPosition %q is neither TRIM_HORIZON nor LATEST", p.StartingPosition)
	case age >= 0 && age < 60:
		return fmt.Errorf("MaximumRecordAgeInSeconds %d is under 60", age)
	case s.OnFailureQueueARN != "" && p.DestinationConfig.OnFailure.Type != "SQS":
		return errors.New("on-failure destination without Type: SQS: SAM would give it no permission")
	case s.OnFailureQueueARN != "" && !ours:
		return fmt.Errorf("on-failure destination %s is no queue of this stack", s.OnFailureQueueARN)
	}
	return nil
}

type queueSourceProperties struct {
	Queue                                     text
	BatchSize, MaximumBatchingWindowInSeconds number
	Enabled                                   *flag
	FunctionResponseTypes                     responseTypes
	ScalingConfig                             struct{ MaximumConcurrency number }
}

func (c *creation) addQueue(function string, properties any) error {
	var p queueSourceProperties
	if err := decode(properties, &p); err != nil {
		return err
	}
	if p.Enabled != nil && !bool(*p.Enabled) {
		return nil
	}
	report, err := p.FunctionResponseTypes.reportBatchItemFailures()
	if err != nil {
		return err
	}
	if _, ours := c.stack.QueueURL(string(p.Queue)); !ours {
		return fmt.Errorf("Queue %q is no ARN of a queue of this stack", p.Queue)
	}
	c.stack.Queues = append(c.stack.Queues, QueueSource{
		Function: function, QueueARN: string(p.Queue), BatchSize: int(p.BatchSize), Window: seconds(int(p.MaximumBatchingWindowInSeconds)),
		ConcurrencyMax: int(p.ScalingConfig.MaximumConcurrency), ReportBatchItemFailures: report,
	})
	return nil
}

type scheduleProperties struct {
	Name, ScheduleExpression, Input, State text

	Description, OmitName                              ignored // for people
	FlexibleTimeWindow                                 ignored // all the time windows there are include now
	RetryPolicy, DeadLetterConfig                      ignored // the next run is the retry
	RoleArn, PermissionsBoundary, GroupName, KmsKeyArn ignored // the local stack itself invokes
	ScheduleExpressionTimezone                         ignored // a rate has no time zone
}

func (c *creation) addSchedule(function, name string, properties any) error {
	var p scheduleProperties
	if err := decode(properties, &p); err != nil {
		return err
	}
	if p.State == "DISABLED" {
		return nil
	}
	every, err := poller.ParseRate(string(p.ScheduleExpression))
	if err != nil {
		return err
	}
	id := cmp.Or(string(p.Name), c.options.Name+"-"+function+name)
	c.stack.Schedules = append(c.stack.Schedules, Schedule{
		Function: function, Every: every, Input: string(p.Input),
		ARN: fmt.Sprintf("arn:aws:scheduler:%s:%s:schedule/default/%s", c.options.Region, Account, id),
	})
	return nil
}
