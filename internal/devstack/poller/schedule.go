package poller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// ScheduleConfig describes a schedule of EventBridge Scheduler.
type ScheduleConfig struct {
	ARN    string        // of the schedule, named in the event
	Every  time.Duration // see ParseRate
	Input  string        // sent as it is; "" sends Scheduler's own event
	Region string
	Invoke Invoke
	Clock  Clock
	NewID  func() string
	Logf   Logf
}

// Schedule invokes a function at a fixed rate.
type Schedule struct {
	cfg ScheduleConfig
}

// NewSchedule makes a Schedule; Run starts it.
func NewSchedule(cfg ScheduleConfig) (*Schedule, error) {
	if cfg.Every <= 0 || cfg.Invoke == nil || cfg.NewID == nil {
		return nil, errors.New("poller: a schedule needs Every, Invoke and NewID")
	}
	if cfg.Clock == nil {
		cfg.Clock = SystemClock{}
	}
	if cfg.Logf == nil {
		cfg.Logf = discard
	}
	return &Schedule{cfg: cfg}, nil
}

// ParseRate reads rate(1 minute), rate(5 minutes), rate(2 hours), rate(1 day). It
// refuses cron and at expressions, which the local stack does not imitate.
func ParseRate(expression string) (time.Duration, error) {
	inner, ok := strings.CutPrefix(expression, "rate(")
	inner, end := strings.CutSuffix(inner, ")")
	fields := strings.Fields(inner)
	if !ok || !end || len(fields) != 2 {
		return 0, fmt.Errorf("schedule %q: the local stack knows rate(N minutes|hours|days) only", expression)
	}
	n, err := strconv.Atoi(fields[0])
	units := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	unit, known := units[strings.TrimSuffix(fields[1], "s")]
	if err != nil || n < 1 || !known {
		return 0, fmt.Errorf("schedule %q: the local stack knows rate(N minutes|hours|days) only", expression)
	}
	return time.Duration(n) * unit, nil
}

// Run invokes at once and then at every interval, as Scheduler does without a
// start date, until ctx ends. An invocation that takes longer than the interval
// does not hold back the next. There are no retries: the next run is the retry.
func (s *Schedule) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		tick := s.cfg.Clock.After(s.cfg.Every) // before the work, which must not shift it
		event := s.event()
		running.Go(func() { s.invoke(ctx, event) })
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Schedule) invoke(ctx context.Context, event []byte) {
	_, functionError, err := s.cfg.Invoke(ctx, event)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.cfg.Logf("schedule: invocation refused: %v", err)
	case functionError != "":
		s.cfg.Logf("schedule: function error: %s", functionError)
	}
}

// event is what Scheduler sends to a target without an input of its own.
func (s *Schedule) event() []byte {
	if s.cfg.Input != "" {
		return []byte(s.cfg.Input)
	}
	encoded, err := json.Marshal(events.EventBridgeEvent{
		Version: "0", ID: s.cfg.NewID(), DetailType: "Scheduled Event", Source: "aws.scheduler",
		AccountID: "000000000000", Time: s.cfg.Clock.Now().UTC().Truncate(time.Second), Region: s.cfg.Region,
		Resources: []string{s.cfg.ARN}, Detail: json.RawMessage(`"{}"`),
	})
	if err != nil {
		panic(fmt.Sprintf("poller: encoding a scheduled event: %v", err))
	}
	return encoded
}
