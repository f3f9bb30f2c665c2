package operator

import (
	"errors"
	"strings"
	"time"
)

// Refusal is an act that was not done: why, and what to do next. Its text never
// holds a secret or a payload.
type Refusal struct {
	// Code is stable, for programs.
	Code    string
	Problem string // a sentence without a full stop
	Next    []Step
	// Usage is set where the words of the command are at fault, not the state of
	// the system.
	Usage bool
	Err   error // what was behind it, may be nil
}

func (r *Refusal) Error() string {
	if r.Err != nil {
		return r.Problem + ": " + r.Err.Error()
	}
	return r.Problem
}

func (r *Refusal) Unwrap() error { return r.Err }

// Step is something to do next: words, a command, or both.
type Step struct {
	Text string
	// Command is arguments of the command, without the stack that it is for.
	Command []string
}

// The facts that the stores are asked for besides values. Adapters' errors are
// turned into these where the parts are put together.
var (
	// ErrOtherSecret is a name or token that the secret store has given to
	// another value.
	ErrOtherSecret = errors.New("operator: the secret store holds another value there")
	// ErrNoVersion is a version that the secret store does not hold.
	ErrNoVersion = errors.New("operator: the secret store has no such version")
	// ErrNoBody is a body that is not kept any more.
	ErrNoBody = errors.New("operator: no such body")
)

func refuse(code, problem string, next ...Step) *Refusal {
	return &Refusal{Code: code, Problem: problem, Next: next}
}

func misuse(problem string, next ...Step) *Refusal {
	return &Refusal{Code: "usage", Problem: problem, Next: next, Usage: true}
}

// Span writes a length of time for a person: 24h, where Go writes 24h0m0s.
func Span(d time.Duration) string {
	text := d.String()
	if s, ok := strings.CutSuffix(text, "m0s"); ok {
		text = s + "m"
	}
	if s, ok := strings.CutSuffix(text, "h0m"); ok {
		text = s + "h"
	}
	return text
}

func say(text string) Step { return Step{Text: text} }

func run(text string, command ...string) Step { return Step{Text: text, Command: command} }

// codeUnavailable is a store that gave no usable answer.
const codeUnavailable = "unavailable"

// codeOf returns the code of a refusal, empty for every other error.
func codeOf(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Code
	}
	return ""
}
