package sqs

import (
	"net/http"
	"time"
)

const (
	// MoveRateMax is how many messages a second one move task moves at most, and
	// how many it moves when the caller names no rate.
	MoveRateMax = 500
	// moveTasksKept is how many tasks of one queue can be listed.
	moveTasksKept = 10
)

// moveTask moves the messages that a dead-letter queue held when it started.
type moveTask struct {
	handle      string
	source      string
	destination string // empty: back to where each message came from
	rate        int    // as asked for, 0 if not
	status      string
	failure     string
	moved       int
	toMove      int
	started     time.Time
}

const (
	taskRunning   = "RUNNING"
	taskCompleted = "COMPLETED"
	taskFailed    = "FAILED"
)

type startMessageMoveTaskInput struct {
	SourceARN                    string `json:"SourceArn"`
	DestinationARN               string `json:"DestinationArn"`
	MaxNumberOfMessagesPerSecond *int
}

type taskHandleOutput struct {
	TaskHandle string
}

func (s *Server) startMessageMoveTask(_ *http.Request, in startMessageMoveTaskInput) (taskHandleOutput, error) {
	task := &moveTask{source: in.SourceARN, destination: in.DestinationARN, status: taskRunning}
	if in.MaxNumberOfMessagesPerSecond != nil {
		task.rate = *in.MaxNumberOfMessagesPerSecond
		if task.rate < 1 || task.rate > MoveRateMax {
			return taskHandleOutput{}, outOfRange("MaxNumberOfMessagesPerSecond", 1, MoveRateMax)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	source, err := s.mayMove(task)
	if err != nil {
		return taskHandleOutput{}, err
	}
	task.handle, task.started = s.cfg.NewID(), s.cfg.Now()
	source.settle(task.started)
	task.toMove = source.ready.Len()
	source.tasks = append([]*moveTask{task}, source.tasks...)
	source.tasks = source.tasks[:min(len(source.tasks), moveTasksKept)]

	s.moving.Go(func() { s.move(source, task) })
	return taskHandleOutput{TaskHandle: task.handle}, nil
}

// mayMove finds the source of a task, or says why the task may not start. The lock is held.
func (s *Server) mayMove(task *moveTask) (*queue, error) {
	source, ok := s.findARN(task.source)
	if !ok {
		return nil, resourceNotFound("The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	if task.destination != "" {
		if _, ok := s.findARN(task.destination); !ok {
			return nil, resourceNotFound("The resource that you specified for the DestinationArn parameter doesn't exist.")
		}
	}
	switch {
	case task.source == task.destination:
		return nil, invalidParameter("SourceArn and DestinationArn must differ.")
	case len(s.sourcesOf(source)) == 0:
		return nil, invalidParameter("The source queue must be the dead-letter queue of another SQS queue.")
	case len(source.tasks) > 0 && source.tasks[0].status == taskRunning:
		return nil, unsupported("A move task is already running for this queue; only one may at a time.")
	}
	return source, nil
}

// move moves a second's worth of messages every second until the task ends.
func (s *Server) move(source *queue, task *moveTask) {
	for s.moveSome(source, task) {
		fired, stop := s.cfg.Timer(time.Second)
		select {
		case <-fired:
		case <-s.closing.Done():
			stop()
			return
		}
	}
}

// moveSome moves up to one second's worth and reports whether the task goes on.
func (s *Server) moveSome(source *queue, task *moveTask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rate := task.rate
	if rate == 0 {
		rate = MoveRateMax
	}
	now := s.cfg.Now()
	source.settle(now)
	for range rate {
		m := source.ready.first()
		// What comes back while the task runs is left for the next task: otherwise
		// a consumer that keeps failing would keep it running for ever.
		if m == nil || task.moved == task.toMove {
			task.status = taskCompleted
			return false
		}
		if !s.moveOne(source, task, m, now) {
			return false
		}
	}
	return true
}

// moveOne sends a message to its destination as a new one, with a new id and
// age, and reports whether it knew where to.
func (s *Server) moveOne(source *queue, task *moveTask, m *message, now time.Time) bool {
	arn := task.destination
	if arn == "" {
		arn = m.source
	}
	destination, ok := s.findARN(arn)
	if !ok {
		task.status, task.failure = taskFailed, "CouldNotDetermineMessageSource"
		return false
	}
	source.remove(m)
	destination.add(&message{
		id: s.cfg.NewID(), order: s.nextOrder(), body: m.body, sum: m.sum, attrs: m.attrs,
		group: m.group, trace: m.trace, sentAt: now, visibleAt: now,
	}, now)
	task.moved++
	return true
}

type listMessageMoveTasksInput struct {
	SourceARN  string `json:"SourceArn"`
	MaxResults *int
}

type taskResult struct {
	TaskHandle     string `json:"TaskHandle,omitempty"`
	Status         string
	SourceARN      string `json:"SourceArn"`
	DestinationARN string `json:"DestinationArn,omitempty"`
	Rate           int    `json:"MaxNumberOfMessagesPerSecond,omitempty"`
	Moved          int    `json:"ApproximateNumberOfMessagesMoved"`
	ToMove         int    `json:"ApproximateNumberOfMessagesToMove"`
	FailureReason  string `json:"FailureReason,omitempty"`
	Started        int64  `json:"StartedTimestamp"` // milliseconds since 1970
}

type taskResultsOutput struct {
	Results []taskResult
}

func (s *Server) listMessageMoveTasks(_ *http.Request, in listMessageMoveTasksInput) (taskResultsOutput, error) {
	limit := 1
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	if limit < 1 || limit > moveTasksKept {
		return taskResultsOutput{}, outOfRange("MaxResults", 1, moveTasksKept)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	source, ok := s.findARN(in.SourceARN)
	if !ok {
		return taskResultsOutput{}, resourceNotFound("The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	out := taskResultsOutput{Results: []taskResult{}}
	for _, task := range source.tasks[:min(limit, len(source.tasks))] {
		out.Results = append(out.Results, task.result())
	}
	return out, nil
}

func (t *moveTask) result() taskResult {
	r := taskResult{
		Status: t.status, SourceARN: t.source, DestinationARN: t.destination, Rate: t.rate,
		Moved: t.moved, ToMove: t.toMove, FailureReason: t.failure, Started: t.started.UnixMilli(),
	}
	if t.status == taskRunning {
		r.TaskHandle = t.handle // only a task that could be cancelled shows it
	}
	return r
}
