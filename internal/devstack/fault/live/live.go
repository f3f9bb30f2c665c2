// Package live shows faults on a running local stack, one after the other: it
// arms a fault, sends events of its own through an endpoint of its own, does what
// the fault needs beside (a kill, an operator's act, a purge), lets everything
// come to rest, and says what became of each event and whether that is right.
//
// Invariants:
//
//   - The functions are the real programs, and so is the operator. The package
//     takes part only where a person's patience would be asked for: it shortens
//     the queue's visibility, the lease and the pauses between attempts, and brings
//     the reconciler's next look forward. It says so in what it prints.
//   - Two things are its own: a provider's API, and a worker with another clock,
//     which no program of ours would agree to be. The worker runs the same stage
//     on the same services, inside this process.
//   - A fault that met no call is an error, and so is an end that is not as it
//     must be: one durable row and one credit for an event that was acknowledged.
//   - Faults are cleared when a showing ends, whatever it came to.
//
// It changes no stack but a local one, and no endpoint but its own.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"dakghar/internal/devstack"
	"dakghar/internal/devstack/fault"
	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

// Fault is one trouble that can be shown.
type Fault struct {
	Name string
	Says string // one sentence: what goes wrong, and what is seen
	// Shows are the requirements that the end fulfils.
	Shows string
	// Slow is set when a showing takes tens of seconds: a lease has to run out.
	Slow bool

	want map[string]int // how its events end: "PROCESSED applied"
	show func(ctx context.Context, s *Site) error
}

// Lookup finds a fault by its name.
func Lookup(name string) (Fault, bool) {
	for _, f := range List() {
		if f.Name == name {
			return f, true
		}
	}
	return Fault{}, false
}

// Operator acts on one event, for the record.
type Operator interface {
	Replay(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error)
	Release(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error)
	Hold(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error)
	Fail(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error)
}

// The times that a showing shortens. The lease must end before the queue hands a
// message out again, as in the template.
const (
	lease             = 20 * time.Second
	visibilitySeconds = "25"
	gapMinutes        = "1"
	scheduleEvery     = 2 * time.Second
	profile           = "brisk"
)

// Prepare makes the options of a stack fit to show faults. providers is where the
// stand-in for providers' APIs is ([Provider.URL]).
func Prepare(o devstack.Options, providers string) devstack.Options {
	seconds := strconv.Itoa(int(lease / time.Second))
	o.ScheduleEvery = scheduleEvery
	o.ProviderAPI = providers
	o.FunctionEnv = map[string]map[string]string{
		"ProcessorFunction":  {"LEASE_SECONDS": seconds, "GAP_MINUTES": gapMinutes, "RETRY_PROFILE": profile},
		"ReconcilerFunction": {"LEASE_SECONDS": seconds, "RETRY_PROFILE": profile},
	}
	return o
}

// Config is what a Site works with. All fields are required.
type Config struct {
	Stack    *devstack.Stack // started with options that [Prepare] has seen
	Provider *Provider       // whose address [Prepare] was told
	Operator Operator
	Out      io.Writer
	Now      func() time.Time
	Chance   func() float64
}

// Site is a stack on which faults are shown, one at a time.
type Site struct {
	Config
	store *dynamo.Store
	db    *dynamodb.Client
	queue *sqs.Client
	url   string // of the event queue

	payments, objects, orders *source

	shown int      // numbers the events' ids
	sent  []*event // of the fault that is shown
}

// Row is what became of one event.
type Row struct {
	Endpoint  webhook.EndpointID
	Event     webhook.EventID
	Answers   []int // to the provider, in their order; 0 where none came
	Status    webhook.Status
	Outcome   webhook.Outcome
	Attempts  int
	LastError string
	Credited  bool // the ledger has its entry
	InboxID   webhook.InboxID
}

// Times of a showing, in real time.
const (
	showMax  = time.Minute
	slowMax  = 3 * time.Minute
	lookEach = 20 * time.Millisecond
)

// Show shows one fault, prints what became of its events, and returns it. An
// error means that something is not as it must be.
func (s *Site) Show(ctx context.Context, f Fault) ([]Row, error) {
	most := showMax
	if f.Slow {
		most = slowMax
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	s.shown++
	s.sent = nil
	s.say("fault %s: %s", f.Name, f.Says)
	shown := f.show(ctx, s)
	s.Stack.Faults().Clear("")
	if err := errors.Join(shown, s.rest(ctx)); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	rows, err := s.rows(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	s.print(rows)
	if err := check(rows, f.want); err != nil {
		return rows, fmt.Errorf("%s: %w", f.Name, err)
	}
	s.say("as it must be (requirements %s: docs/understand/requirements.md)\n", f.Shows)
	return rows, nil
}

// check compares how events ended, and that each was credited as often as its
// row says.
func check(rows []Row, want map[string]int) error {
	got := map[string]int{}
	var wrong []error
	for _, r := range rows {
		end := string(r.Status)
		if r.Outcome != "" {
			end += " " + string(r.Outcome)
		}
		got[end]++
		if applied := r.Status == webhook.Processed && r.Outcome == webhook.Applied; applied != r.Credited {
			wrong = append(wrong, fmt.Errorf("%s is %s, and its credit is there: %v", r.Event, end, r.Credited))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) { // maps print in the order of their keys
		wrong = append(wrong, fmt.Errorf("events ended as %v, want %v", got, want))
	}
	return errors.Join(wrong...)
}

func (s *Site) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...)
}

// step says what happens in the middle of a showing.
func (s *Site) step(format string, args ...any) { s.say("  - "+format, args...) }

// Open makes the endpoint that the events go to, and shortens the queue's
// visibility.
func Open(ctx context.Context, c Config) (*Site, error) {
	declared := c.Stack.Declared()
	ref := func(id string) string { return declared.Resources[id].Ref }
	s := &Site{Config: c, db: dynamodb.NewFromConfig(c.Stack.Config()), queue: sqs.NewFromConfig(c.Stack.Config()), url: ref("EventQueue")}
	s.store = &dynamo.Store{
		DB: s.db, Chance: c.Chance, Wait: dynamo.Sleep,
		Tables: dynamo.Tables{Inbox: ref("InboxTable"), Outbox: ref("OutboxTable"), Business: ref("BusinessTable"), Registry: ref("RegistryTable")},
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	err := s.setQueue(ctx, sqstypes.QueueAttributeNameVisibilityTimeout, visibilitySeconds)
	s.say("for this run a lease lasts %s, a message comes back after %s s, a gap may stay open for %s min, attempts follow the profile %s, and the reconciler runs every %s",
		lease, visibilitySeconds, gapMinutes, profile, scheduleEvery)
	return s, err
}

func (s *Site) setQueue(ctx context.Context, name sqstypes.QueueAttributeName, value string) error {
	_, err := s.queue.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &s.url, Attributes: map[string]string{string(name): value}})
	return err
}

// arm puts faults before the services.
func (s *Site) arm(faults ...fault.Fault) error {
	for _, f := range faults {
		if err := s.Stack.Faults().Add(f); err != nil {
			return err
		}
	}
	return nil
}

// clear ends all faults, and says if one of them met no call.
func (s *Site) clear() error {
	var idle []error
	for _, f := range s.Stack.Faults().List() {
		if f.Hit == 0 {
			idle = append(idle, fmt.Errorf("the fault on %s %s met no call", f.Service, f.Operation))
		}
	}
	s.Stack.Faults().Clear("")
	return errors.Join(idle...)
}

// await looks until a fact holds.
func (s *Site) await(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		ok, err := holds()
		if err != nil || ok {
			return err
		}
		if err := dynamo.Sleep(ctx, lookEach); err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
	}
}

// held waits until so many calls are held by faults.
func (s *Site) held(ctx context.Context, n int) error {
	return s.await(ctx, "a call is held", func() (bool, error) { return s.waiting() >= n, nil })
}

// letGo waits until no call is held any more.
func (s *Site) letGo(ctx context.Context) error {
	return s.await(ctx, "no call is held", func() (bool, error) { return s.waiting() == 0, nil })
}

func (s *Site) waiting() (n int) {
	for _, f := range s.Stack.Faults().List() {
		n += f.Waiting
	}
	return n
}

// hit waits until every fault has met as many calls as it counts.
func (s *Site) hit(ctx context.Context) error {
	return s.await(ctx, "the fault has met its calls", func() (bool, error) {
		for _, f := range s.Stack.Faults().List() {
			if f.Hit < max(f.Count, 1) {
				return false, nil
			}
		}
		return true, nil
	})
}

// kill ends the processes of a function with SIGKILL.
func (s *Site) kill(function string) error {
	f, ok := s.Stack.Function(function)
	if !ok {
		return fmt.Errorf("there is no function %s", function)
	}
	s.step("%d processes of %s are killed", f.Kill(), function)
	return nil
}
