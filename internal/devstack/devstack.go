// Package devstack runs the whole product on one machine: embedded AWS services,
// the resources that template.yaml declares, the real function binaries behind a
// real Lambda Runtime API, pollers for streams, queues and schedules, and a front
// door that behaves as API Gateway.
//
// The parts are packages of their own below this one; here they are put together.
// Functions, pollers and the operator's command reach the services in one way
// only, over HTTP with the AWS SDK, so each service can be replaced by another
// implementation of its wire protocol, and DynamoDB is by an option.
//
// Each function is held to its role in the template, by its access key; see
// package guard. Signatures are not checked, so everything listens on the
// loopback interface and nowhere else. Nothing survives the process.
package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	embedded "dakghar/internal/devstack/dynamodb"
	"dakghar/internal/devstack/fault"
	"dakghar/internal/devstack/frontdoor"
	"dakghar/internal/devstack/guard"
	"dakghar/internal/devstack/lambda"
	"dakghar/internal/devstack/poller"
	"dakghar/internal/devstack/stack"
)

// Options describe a local stack. Zero values mean the default named beside them.
type Options struct {
	TemplatePath string            // default template.yaml
	BuildDir     string            // where <LogicalId>/bootstrap lies; default build
	HTTPAddr     string            // of the front door; default 127.0.0.1:8080, port 0 takes a free one
	AWSAddr      string            // of the services; default 127.0.0.1:8081
	StackName    string            // default dakghar-local
	Parameters   map[string]string // of the template, instead of its defaults

	// DynamoDBEndpoint is another DynamoDB, such as DynamoDB Local at
	// http://127.0.0.1:8000, behind the same address as the embedded one, which it
	// replaces.
	DynamoDBEndpoint string

	// ProviderAPI stands in for the providers' own APIs: each below its provider's
	// name. Empty for the real ones.
	ProviderAPI string

	// InProcess runs these functions, by logical id, inside this process.
	InProcess map[string]Factory

	// FunctionEnv are further variables of functions, by logical id, such as the
	// crash points of a test.
	FunctionEnv map[string]map[string]string

	// NoTriggers has streams, queues and schedules call no function: what waits
	// there waits for whoever invokes a function by hand. Requests are served.
	NoTriggers bool

	ScheduleEvery  time.Duration // interval of every schedule; default as the template declares
	StreamInterval time.Duration // pause between two reads of a busy stream; default 100 ms, Lambda's is about 250 ms. Longer makes larger batches
	SandboxesMax   int           // processes a function, and batches at once of a queue; default 64
	Log            io.Writer     // default nowhere
	FunctionLog    io.Writer     // what the functions' processes write, line by line; default Log
	Clock          poller.Clock  // default the machine's
}

// OwnParameters are what a stack on somebody's own machine has in place of the
// template's defaults: canaries, for the endpoints that ask for them.
func OwnParameters() map[string]string { return map[string]string{"Canary": "true"} }

// Factory makes a handler once the stack exists. getenv gives the function's
// variables as its binary would find them in its environment. The AWS SDK reads
// the environment of this process: a factory gives its clients AWS_ENDPOINT_URL
// and credentials from getenv.
type Factory func(ctx context.Context, getenv func(string) string) (lambda.Handler, error)

func (o Options) withDefaults() Options {
	o.TemplatePath = orDefault(o.TemplatePath, "template.yaml")
	o.BuildDir = orDefault(o.BuildDir, "build")
	o.HTTPAddr = orDefault(o.HTTPAddr, "127.0.0.1:8080")
	o.AWSAddr = orDefault(o.AWSAddr, "127.0.0.1:8081")
	o.StackName = orDefault(o.StackName, "dakghar-local")
	o.SandboxesMax = orDefault(o.SandboxesMax, 64)
	o.StreamInterval = orDefault(o.StreamInterval, 100*time.Millisecond)
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Clock == nil {
		o.Clock = poller.SystemClock{}
	}
	o.Log = &syncWriter{out: o.Log}
	if o.FunctionLog == nil {
		o.FunctionLog = o.Log
	} else {
		o.FunctionLog = &syncWriter{out: o.FunctionLog}
	}
	return o
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Stack is a running local stack.
type Stack struct {
	options  Options
	services *services
	door     *http.Server
	aws      *http.Server
	doorURL  string
	awsURL   string

	declared  *stack.Stack
	functions map[string]lambda.Function // by logical id
	live      atomic.Pointer[live]       // what requests to AWSAddr may see
	guard     atomic.Pointer[guard.Guard]

	stop     context.CancelFunc // of everything below
	running  sync.WaitGroup
	stopOnce sync.Once
}

// live is the created stack with its functions; there is none while it starts.
type live struct {
	declared  *stack.Stack
	functions map[string]lambda.Function
}

// GCPercent is the garbage collector's target (see [debug.SetGCPercent]) for a
// process that runs a local stack. The stack shares its processors with the
// programs that it runs, and memory is what the machine has more of.
const GCPercent = 400

// Run runs a local stack until ctx ends, in a process that does nothing else.
func Run(ctx context.Context, o Options) error {
	debug.SetGCPercent(GCPercent)
	s, err := Start(ctx, o)
	if err != nil {
		return err
	}
	<-ctx.Done()
	s.Stop()
	return nil
}

// Start starts a local stack and returns when it takes requests, having written
// "ready http://…" to the log. ctx bounds the start; Stop ends the stack.
func Start(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{options: o.withDefaults(), functions: map[string]lambda.Function{}}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	if err := s.start(ctx, background); err != nil {
		s.Stop()
		return nil, err
	}
	s.logf("ready %s", s.doorURL)
	return s, nil
}

// start brings the parts up in the order in which data needs them: the services,
// the resources in them, the functions, what calls the functions, the front door.
func (s *Stack) start(ctx, background context.Context) error {
	doorListener, awsListener, err := s.listen()
	if err != nil {
		return err
	}
	defer closeUnless(&s.door, doorListener)
	defer closeUnless(&s.aws, awsListener)
	s.doorURL, s.awsURL = "http://"+doorListener.Addr().String(), "http://"+awsListener.Addr().String()
	if s.services, err = newServices(s.options, s.awsURL); err != nil {
		return err
	}
	s.aws = s.serve(awsListener, s.router())
	if err := s.createResources(ctx); err != nil {
		return err
	}
	s.guard.Store(s.newGuard())
	if err := s.createFunctions(ctx); err != nil {
		return err
	}
	s.live.Store(&live{declared: s.declared, functions: s.functions})
	if err := s.startSources(ctx, background); err != nil {
		return err
	}
	door, err := s.newDoor()
	if err != nil {
		return err
	}
	s.door = s.serve(doorListener, door)
	return nil
}

func (s *Stack) listen() (door, services net.Listener, err error) {
	if door, err = listenLoopback(s.options.HTTPAddr); err != nil {
		return nil, nil, err
	}
	if services, err = listenLoopback(s.options.AWSAddr); err != nil {
		return nil, nil, errors.Join(err, door.Close())
	}
	return door, services, nil
}

// closeUnless closes a listener that no server has taken over.
func closeUnless(server **http.Server, l net.Listener) {
	if *server == nil {
		_ = l.Close()
	}
}

func (s *Stack) serve(l net.Listener, h http.Handler) *http.Server {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	s.running.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.logf("server on %s: %v", l.Addr(), err)
		}
	})
	return server
}

func (s *Stack) createResources(ctx context.Context) error {
	cfg := s.Config()
	if err := s.services.reachable(ctx); err != nil {
		return err
	}
	declared, err := stack.Create(ctx, stack.Options{
		TemplatePath: s.options.TemplatePath, Name: s.options.StackName, Region: region, Parameters: s.options.Parameters, Logf: s.logf,
		Clients: stack.Clients{
			DynamoDB: dynamodb.NewFromConfig(cfg), SQS: sqs.NewFromConfig(cfg), KMS: kms.NewFromConfig(cfg),
			S3: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
		},
	})
	s.declared = declared
	return err
}

// newGuard holds each function to its role.
func (s *Stack) newGuard() *guard.Guard {
	for _, id := range slices.Sorted(maps.Keys(s.declared.Functions)) {
		if _, restricted := s.declared.Roles[id]; !restricted {
			s.logf("[%s] has no Role in the template: whatever it calls is allowed here", id)
		}
	}
	return guard.New(s.declared.Guard(s.logf))
}

func (s *Stack) newDoor() (http.Handler, error) {
	var routes []frontdoor.Route
	for _, r := range s.declared.Routes {
		routes = append(routes, frontdoor.Route{
			Key: r.Key, Invoke: s.functions[r.Function].Invoke, Timeout: r.Timeout, RatePerSecond: r.RatePerSecond, Burst: r.Burst,
		})
	}
	return frontdoor.New(frontdoor.Config{Routes: routes, Now: s.options.Clock.Now, NewID: newID, Logf: s.logf})
}

// Stop ends the stack: no new request is taken, pollers and functions end, and
// every sandbox is gone when it returns.
func (s *Stack) Stop() {
	s.stopOnce.Do(func() {
		shutdown(s.door)
		s.stop()
		for _, f := range s.functions {
			f.Close()
		}
		shutdown(s.aws)
		if s.services != nil {
			s.services.close()
		}
		s.running.Wait()
	})
}

// shutdown gives requests in flight a moment, then cuts them off.
func shutdown(server *http.Server) {
	if server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}

// FrontDoorURL is where requests go, "http://127.0.0.1:8080".
func (s *Stack) FrontDoorURL() string { return s.doorURL }

// AWSURL is where the services answer, "http://127.0.0.1:8081".
func (s *Stack) AWSURL() string { return s.awsURL }

// Declared is the stack as it was created from the template.
func (s *Stack) Declared() *stack.Stack { return s.declared }

// Function is a running function, by logical id.
func (s *Stack) Function(id string) (lambda.Function, bool) {
	f, ok := s.functions[id]
	return f, ok
}

// Faults puts trouble before the services.
func (s *Stack) Faults() *fault.Injector { return s.services.Injector }

// DynamoDB is the embedded one, or nil with another.
func (s *Stack) DynamoDB() *embedded.Server { return s.services.embedded }

// Denied are the first calls that functions' roles did not allow, as the log has
// them: a template that grants what its functions need denies none.
func (s *Stack) Denied() []string {
	g := s.guard.Load()
	if g == nil {
		return nil
	}
	return g.Denied()
}

// Config is an SDK configuration for the services of the stack. S3 clients need
// UsePathStyle.
func (s *Stack) Config() aws.Config { return localConfig(s.awsURL) }

func (s *Stack) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.options.Log, format+"\n", args...)
}
