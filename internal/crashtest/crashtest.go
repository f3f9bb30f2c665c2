// Package crashtest stops a program before or after any of its AWS calls, so
// that every gap between two writes can be visited by a test.
//
// There are two ways to die. A [Switch] ends a program that runs inside the
// test's own process: from the chosen call on, no call of it reaches a service
// any more, which is all that the world can see of a dead process. [Hooks] ends
// a real process with SIGKILL; it exists only in programs built with the
// crashtest tag.
//
// The package decides nothing about what should happen afterwards.
package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// Side says on which side of a call a program dies.
type Side string

// The sides. After means that the service did the work and the answer was lost.
const (
	Before Side = "before"
	After  Side = "after"
)

// ErrDead is what a dead program's calls return.
var ErrDead = errors.New("crashtest: the program is dead")

// Call is one AWS call a program made.
type Call struct {
	N         int    // counted from 1
	Operation string // "DynamoDB.TransactWriteItems"
}

// Switch watches one program's calls and ends it at chosen ones. The zero value
// only watches.
type Switch struct {
	mu     sync.Mutex
	calls  []Call
	at     map[int]Side // by a call's number
	dead   bool
	deaths int
}

// KillAt chooses the n-th call from now on, counted from 1, beside those chosen
// before. What a dead program tries is not counted; the count goes on when it
// lives again, so that one program can die more than once.
func (s *Switch) KillAt(n int, side Side) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[int]Side{}
	}
	s.at[len(s.calls)+n] = side
}

// Revive starts the program again; the next call reaches its service.
func (s *Switch) Revive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = false
}

// Dead reports whether the program has died.
func (s *Switch) Dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// Deaths counts how often the program has died.
func (s *Switch) Deaths() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths
}

// Calls returns the calls so far.
func (s *Switch) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// enter notes a call. It reports whether the program is dead before it, and
// whether it dies after it.
func (s *Switch) enter(operation string) (dead, diesAfter bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return true, false
	}
	s.calls = append(s.calls, Call{len(s.calls) + 1, operation})
	side, chosen := s.at[len(s.calls)]
	if !chosen {
		return false, false
	}
	if side == Before {
		s.dead = true
		s.deaths++
	}
	return s.dead, side == After
}

func (s *Switch) die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dead {
		s.dead = true
		s.deaths++
	}
}

// Middleware installs the switch into a client's configuration.
func (s *Switch) Middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("crashtest", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		dead, diesAfter := s.enter(operationOf(ctx))
		if dead {
			return middleware.InitializeOutput{}, middleware.Metadata{}, ErrDead
		}
		out, meta, err := next.HandleInitialize(ctx, in)
		if diesAfter {
			s.die()
			return middleware.InitializeOutput{}, meta, ErrDead
		}
		return out, meta, err
	}), middleware.After)
}

func operationOf(ctx context.Context) string {
	return strings.ReplaceAll(awsmiddleware.GetServiceID(ctx), " ", "") + "." + awsmiddleware.GetOperationName(ctx)
}

// The variables that [Hooks] reads.
const (
	// PointVariable names the point: "before:DynamoDB.UpdateItem" or
	// "after:DynamoDB.TransactWriteItems#2" for the second such call of the process.
	PointVariable = "DAKGHAR_CRASH_POINT"
	// MarkVariable names a file that is made at the crash. While it is there,
	// nothing dies: the next process lives.
	MarkVariable = "DAKGHAR_CRASH_MARK"
)

// Hooks returns the middleware that ends this very process with SIGKILL at the
// point that the environment names; none where it names none.
func Hooks(getenv func(string) string) []func(*middleware.Stack) error {
	point, mark := getenv(PointVariable), getenv(MarkVariable)
	if point == "" {
		return nil
	}
	k, err := parsePoint(point, mark)
	if err != nil {
		panic(err)
	}
	return []func(*middleware.Stack) error{k.middleware}
}

type killer struct {
	side      Side
	operation string
	nth       int
	mark      string

	mu   sync.Mutex
	seen int
}

func parsePoint(point, mark string) (*killer, error) {
	side, rest, ok := strings.Cut(point, ":")
	operation, nth, counted := strings.Cut(rest, "#")
	k := &killer{side: Side(side), operation: operation, nth: 1, mark: mark}
	if counted {
		n, err := strconv.Atoi(nth)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("crashtest: %s is %q, want a number after #", PointVariable, point)
		}
		k.nth = n
	}
	if !ok || k.side != Before && k.side != After || operation == "" || mark == "" {
		return nil, fmt.Errorf("crashtest: want %s=before|after:Service.Operation[#n] and %s=FILE", PointVariable, MarkVariable)
	}
	return k, nil
}

func (k *killer) middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("crashtest", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		dies := operationOf(ctx) == k.operation && k.reached()
		if dies && k.side == Before {
			k.kill()
		}
		out, meta, err := next.HandleInitialize(ctx, in)
		if dies {
			k.kill()
		}
		return out, meta, err
	}), middleware.After)
}

func (k *killer) reached() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	return k.seen == k.nth
}

// kill ends the process, unless one before it has died here already.
func (k *killer) kill() {
	f, err := os.OpenFile(k.mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_ = f.Close()
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // nothing after this point may run
}
