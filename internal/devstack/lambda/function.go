package lambda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
)

// PayloadBytesMax is the largest request or response of a synchronous
// invocation. Source: Lambda quotas, 6 MB plus Lambda's own margin, as its
// error message states it.
const PayloadBytesMax = 6_291_556

// Unhandled is the value of X-Amz-Function-Error for every failure of a function
// on a custom runtime.
const Unhandled = "Unhandled"

// ErrPayloadTooLarge is returned for a request over PayloadBytesMax; Lambda calls
// it RequestTooLargeException (413). The function was not called.
var ErrPayloadTooLarge = errors.New("lambda: request payload exceeds 6 MB")

// ErrClosed is returned for an invocation of a function that was shut down.
var ErrClosed = errors.New("lambda: function is shut down")

// ThrottledError says that the reserved concurrency is in use; Lambda calls it
// TooManyRequestsException (429). The function was not called.
type ThrottledError struct {
	Function string
	Reserved int
}

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("lambda: %s: rate exceeded: all %d of its reserved concurrency in use", e.Function, e.Reserved)
}

// Handler is a function's code: the payload in, the response out. It must stop
// when ctx does.
type Handler func(ctx context.Context, payload []byte) ([]byte, error)

// Function can be invoked as Lambda's Invoke with type RequestResponse.
type Function interface {
	Name() string

	// Invoke calls the function and waits for its answer. functionError is "" or
	// Unhandled; then response is Lambda's error document. err is for what never
	// reached the function (throttled, too large, shut down) and for ctx, whose
	// end abandons the answer but does not stop a running invocation, as on Lambda.
	Invoke(ctx context.Context, payload []byte) (response []byte, functionError string, err error)

	// Processes lists the live sandboxes, oldest first. In-process: none.
	Processes() []Process

	// Kill sends SIGKILL to the sandboxes with these process ids, to all of them
	// when none is given, and returns how many it hit. Their invocations fail; new
	// ones get new sandboxes.
	Kill(pids ...int) int

	// Close kills all sandboxes and waits for them to be gone.
	Close()
}

// Process is one sandbox at one moment.
type Process struct {
	PID  int  `json:"pid"`
	Busy bool `json:"busy"`
}

// Config describes a function to run as processes. Zero durations and counts
// mean the default named beside them.
type Config struct {
	Name      string            // AWS_LAMBDA_FUNCTION_NAME
	ARN       string            // sent as Lambda-Runtime-Invoked-Function-Arn
	Handler   string            // _HANDLER
	Bootstrap string            // absolute path of the binary
	TaskRoot  string            // LAMBDA_TASK_ROOT and working directory
	Region    string            // AWS_REGION
	MemoryMB  int               // AWS_LAMBDA_FUNCTION_MEMORY_SIZE; told, not enforced
	Env       map[string]string // the function's own variables and AWS_ENDPOINT_URL; wins over the runtime's

	Timeout     time.Duration // of one invocation; default 3 s, as on Lambda
	InitTimeout time.Duration // from start to the first request for work; default 10 s, as on Lambda
	SettleTime  time.Duration // how long an answered sandbox may take to ask again and still count as supply; default 20 ms
	Grace       time.Duration // between SIGTERM and SIGKILL for a sandbox that registered for it; default 500 ms

	Reserved     *int // reserved concurrency; nil none, 0 refuses every invocation
	SandboxesMax int  // beyond it invocations wait; default 200. Lambda would refuse at the account's limit
	StartsMax    int  // sandboxes starting at once; default 4, so that a burst does not starve the running ones

	// On Lambda every sandbox brings its own processor; here it takes from those that
	// run. Up to EagerMax of them start at once; beyond it an invocation first waits for
	// Patience, in which a busy machine catches up and a stalled service does not.
	EagerMax int           // default 4 a processor
	Patience time.Duration // default 100 ms

	// Background sandboxes give way to others on this machine's processors: nobody
	// waits for what they do, as somebody does for the front door's answer.
	Background bool

	Log   io.Writer        // the sandboxes' output, line by line after the function's name
	Now   func() time.Time // wall clock for deadlines told to sandboxes
	NewID func() string    // request ids: UUIDs
}

func (c Config) withDefaults() Config {
	c.Timeout = orDefault(c.Timeout, 3*time.Second)
	c.InitTimeout = orDefault(c.InitTimeout, 10*time.Second)
	c.SettleTime = orDefault(c.SettleTime, 20*time.Millisecond)
	c.Grace = orDefault(c.Grace, 500*time.Millisecond)
	c.SandboxesMax = orDefault(c.SandboxesMax, 200)
	c.StartsMax = orDefault(c.StartsMax, 4)
	c.EagerMax = orDefault(c.EagerMax, 4*runtime.NumCPU())
	c.Patience = orDefault(c.Patience, 100*time.Millisecond)
	c.MemoryMB = orDefault(c.MemoryMB, 128)
	if c.Log == nil {
		c.Log = io.Discard
	}
	return c
}

func (c Config) validate() error {
	missing := func(what string) error { return fmt.Errorf("lambda: function %q: %s is not set", c.Name, what) }
	switch {
	case c.Name == "":
		return missing("Name")
	case c.Bootstrap == "":
		return missing("Bootstrap")
	case c.Now == nil:
		return missing("Now")
	case c.NewID == nil:
		return missing("NewID")
	}
	return nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
