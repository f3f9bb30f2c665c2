package stack

import (
	"time"

	"dakghar/internal/devstack/iam"
)

// Stack is what was created: resources with their names, and what is to be run.
type Stack struct {
	Name      string              `json:"name"`
	Region    string              `json:"region"`
	Resources map[string]Resource `json:"resources"` // by logical id
	Outputs   map[string]string   `json:"outputs"`
	Functions map[string]Function `json:"functions"` // by logical id
	Routes    []Route             `json:"-"`
	Streams   []StreamSource      `json:"-"`
	Queues    []QueueSource       `json:"-"`
	Schedules []Schedule          `json:"-"`

	// What package guard wants to know: the roles by function, the ARNs of tables by
	// name, the partition keys by table and by table/index, the keys that buckets are
	// sealed with.
	Roles         map[string]iam.Role `json:"-"`
	TableARNs     map[string]string   `json:"-"`
	PartitionKeys map[string]string   `json:"-"`
	BucketKeys    map[string]string   `json:"-"`
}

// Resource is one created resource.
type Resource struct {
	Type       string            `json:"type"`
	Ref        string            `json:"ref"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

func (r Resource) value(attribute string) (string, bool) {
	if attribute == "" {
		return r.Ref, true
	}
	v, ok := r.Attributes[attribute]
	return v, ok
}

// Function is a function to run. Its local name is its logical id.
type Function struct {
	ARN      string            `json:"arn"`
	Alias    string            `json:"alias,omitempty"` // by which it may be called too; "" none
	Handler  string            `json:"handler"`
	MemoryMB int               `json:"memoryMB"`
	Timeout  time.Duration     `json:"timeoutNanoseconds"`
	Env      map[string]string `json:"environment"`
	Reserved *int              `json:"reservedConcurrency,omitempty"`
}

// Route is a route of the front door.
type Route struct {
	Key           string // "POST /in/stripe/{endpoint_id}"
	Function      string // logical id
	Timeout       time.Duration
	RatePerSecond float64 // 0 none
	Burst         int
}

// StreamSource is an event source mapping from a table's stream.
type StreamSource struct {
	Function                string // logical id
	StreamARN               string
	BatchSize               int
	Window                  time.Duration
	Parallelization         int
	Latest                  bool
	Patterns                []string // of the filter
	ReportBatchItemFailures bool
	Bisect                  bool
	RetriesMax              int           // -1 without bound
	RecordAgeMax            time.Duration // 0 without bound
	OnFailureQueueARN       string        // "" none
}

// QueueSource is an event source mapping from a queue.
type QueueSource struct {
	Function                string // logical id
	QueueARN                string
	BatchSize               int
	Window                  time.Duration
	ConcurrencyMax          int // 0 without bound
	ReportBatchItemFailures bool
}

// Schedule is a schedule of EventBridge Scheduler.
type Schedule struct {
	Function string // logical id
	ARN      string
	Every    time.Duration
	Input    string
}

// QueueURL finds the URL of a queue of this stack by its ARN.
func (s *Stack) QueueURL(arn string) (string, bool) {
	for _, r := range s.Resources {
		if r.Type == typeQueue && r.Attributes["Arn"] == arn {
			return r.Ref, true
		}
	}
	return "", false
}
