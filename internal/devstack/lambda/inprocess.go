package lambda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// InProcessConfig describes a function that runs inside this process.
type InProcessConfig struct {
	Name     string
	ARN      string
	Timeout  time.Duration // default 3 s
	Reserved *int          // as in Config
	Handler  Handler
	Log      io.Writer
	NewID    func() string
}

// InProcess is a function that runs inside this process, for a debugger. A panic
// fails the invocation and the process lives on; a missed deadline answers the
// caller, and the handler is only told through its context.
type InProcess struct {
	cfg  InProcessConfig
	log  *lineWriter
	stop context.CancelFunc
	base context.Context

	mu       sync.Mutex
	closed   bool
	inFlight int
	running  sync.WaitGroup
}

var _ Function = (*InProcess)(nil)

// NewInProcess makes a function of a handler.
func NewInProcess(cfg InProcessConfig) (*InProcess, error) {
	if cfg.Name == "" || cfg.Handler == nil || cfg.NewID == nil {
		return nil, fmt.Errorf("lambda: in-process function %q: Name, Handler and NewID must be set", cfg.Name)
	}
	cfg.Timeout = orDefault(cfg.Timeout, 3*time.Second)
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	base, stop := context.WithCancel(context.Background())
	return &InProcess{cfg: cfg, log: newLineWriter(cfg.Log, "["+cfg.Name+"] "), base: base, stop: stop}, nil
}

// Name is the function's name.
func (f *InProcess) Name() string { return f.cfg.Name }

// Invoke implements Function.
func (f *InProcess) Invoke(ctx context.Context, payload []byte) ([]byte, string, error) {
	if len(payload) > PayloadBytesMax {
		return nil, "", ErrPayloadTooLarge
	}
	if err := f.enter(); err != nil {
		return nil, "", err
	}
	id := f.cfg.NewID()
	// The handler gets a context of its own: a caller that leaves does not stop it.
	run, cancel := context.WithTimeout(f.base, f.cfg.Timeout)
	done := make(chan result, 1)
	go func() {
		defer f.leave()
		defer cancel()
		done <- f.call(run, id, payload)
	}()
	select {
	case r := <-done:
		return r.response, r.functionError, r.err
	case <-ctx.Done():
		return nil, "", ctx.Err()
	case <-run.Done():
	}
	select {
	case r := <-done: // it made it, just
		return r.response, r.functionError, r.err
	default:
	}
	if errors.Is(run.Err(), context.DeadlineExceeded) {
		r := timedOut(id, f.cfg.Timeout).result()
		return r.response, r.functionError, nil
	}
	return nil, "", ErrClosed
}

func (f *InProcess) enter() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if f.cfg.Reserved != nil && f.inFlight >= *f.cfg.Reserved {
		return &ThrottledError{Function: f.cfg.Name, Reserved: *f.cfg.Reserved}
	}
	f.inFlight++
	f.running.Add(1)
	return nil
}

func (f *InProcess) leave() {
	f.mu.Lock()
	f.inFlight--
	f.mu.Unlock()
	f.running.Done()
}

func (f *InProcess) call(ctx context.Context, id string, payload []byte) (r result) {
	defer func() {
		if v := recover(); v != nil {
			f.log.printf("panic: %v", v)
			r = failure{Type: errorType(v), Message: fmt.Sprint(v)}.result()
		}
	}()
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: id, InvokedFunctionArn: f.cfg.ARN})
	response, err := f.cfg.Handler(ctx, payload)
	if err != nil {
		return failure{Type: errorType(err), Message: err.Error()}.result()
	}
	if len(response) > PayloadBytesMax {
		return responseTooLarge().result()
	}
	return result{response: response}
}

// errorType names an error as aws-lambda-go does: its Go type without package
// and pointer.
func errorType(v any) string {
	name := strings.TrimLeft(reflect.TypeOf(v).String(), "*")
	return name[strings.LastIndexByte(name, '.')+1:]
}

// Processes implements Function: there are none.
func (f *InProcess) Processes() []Process { return []Process{} }

// Kill implements Function: there is nothing to kill.
func (f *InProcess) Kill(...int) int { return 0 }

// Close implements Function: it cancels running handlers and waits for them.
func (f *InProcess) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stop()
	f.running.Wait()
}
