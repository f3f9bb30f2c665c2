// Package fault is the short, closed list of what can be wrong, and whose turn
// it is. Packages return facts; one function per stage turns a fact into what
// happens next. An unknown error counts as [Theirs]: it may be tried again, and
// spends an attempt, so nothing is retried for ever without a bound.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// Kind says whose fault an error is.
type Kind string

// The kinds.
const (
	// Ours is a store, key service, queue, throttle, conflict or shutdown: tried
	// again without limit, and the attempt is given back.
	Ours Kind = "ours"
	// Theirs is a provider, a partner or anything unknown: tried again within the budget.
	Theirs Kind = "theirs"
	// Permanent will be wrong the next time as well: the row fails at once.
	Permanent Kind = "permanent"
)

// Error is an error with its kind and a stable code of at most 40 bytes that
// may be shown to operators: it never carries a payload, secret or signature.
type Error struct {
	Kind Kind
	Code string
	// Outage is set where a service that every record needs does not answer, so
	// that the next record would only wait for the same.
	Outage bool
	err    error
}

// New returns an error of a kind, with a code and the underlying error, which may be nil.
func New(kind Kind, code string, err error) *Error { return &Error{Kind: kind, Code: code, err: err} }

// NewOutage returns an error of ours about a service that does not answer.
func NewOutage(code string, err error) *Error {
	return &Error{Kind: Ours, Code: code, Outage: true, err: err}
}

func (e *Error) Error() string {
	if e.err == nil {
		return e.Code
	}
	return fmt.Sprintf("%s: %v", e.Code, e.err)
}

func (e *Error) Unwrap() error { return e.err }

// KindOf returns the kind of err. A cancelled context is ours: we stopped.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Ours
	}
	return Theirs
}

// CodeOf returns the stable code of err, "unknown" where it has none.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "deadline"
	}
	return "unknown"
}

// IsOutage reports whether err says that a service does not answer.
func IsOutage(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Outage
}
