// Package fault puts trouble between a client and the embedded services: per
// service, operation and table it stalls calls, fails, throttles or delays them,
// drops the connection before or after the call was carried out, so that the
// client cannot know whether it was, or does what the services never do by
// themselves: transactions that conflict, batches that are taken in part, stream
// records that are lost or come twice, calls that arrive late.
//
// Tests drive it through [Injector]'s methods, a person through
// [Injector.Control]. One call suffers at most one fault, the oldest that
// matches it. Nothing is random: what happens to which call follows from the
// order of calls alone. Of the answers that it lets through it changes those of
// Part, Lose and Repeat, which is what these are.
package fault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"dakghar/internal/devstack/s3"
)

// Mode is what happens to a call.
type Mode string

// The modes.
const (
	// Stall holds the call until its client gives up, or until the fault is
	// cleared, which lets it through.
	Stall Mode = "stall"
	// Fail answers an error without carrying the call out: the service's own
	// internal error, HTTP 500, unless Code and HTTPStatus say otherwise.
	Fail Mode = "fail"
	// Throttle answers the service's throttling error.
	Throttle Mode = "throttle"
	// Delay holds the call for the fault's Delay and then lets it through.
	Delay Mode = "delay"
	// DropBefore closes the connection; the call was not carried out.
	DropBefore Mode = "drop-before"
	// DropAfter carries the call out and closes the connection without an answer.
	//
	// The HTTP client of the standard library repeats a GET or a HEAD by itself
	// when its reused connection is dropped: such a call is seen twice.
	DropAfter Mode = "drop-after"
	// Conflict answers that the transaction was cancelled because of another one on
	// its first item. Of DynamoDB's TransactWriteItems only.
	Conflict Mode = "conflict"
	// Part carries every second entry of a batch out, from the first on, and answers
	// that the service failed on the others. Of SQS's SendMessageBatch only.
	Part Mode = "part"
	// Lose takes the records out of an answer of GetRecords: the reader goes on
	// behind them. An answer without records is let through and does not count.
	Lose Mode = "lose"
	// Repeat lets the reader go on where it was, so that it gets the records again.
	// An answer without records is let through and does not count.
	Repeat Mode = "repeat"
	// Late carries the call out after the fault's Delay, whether or not its client
	// has given up, and answers nothing.
	Late Mode = "late"
)

// only are the modes that belong to one operation.
var only = map[Mode]struct{ service, operation string }{
	Conflict: {"dynamodb", "TransactWriteItems"},
	Part:     {"sqs", "SendMessageBatch"},
	Lose:     {"dynamodbstreams", "GetRecords"},
	Repeat:   {"dynamodbstreams", "GetRecords"},
}

// services are the names that a fault may give, by their prefix in X-Amz-Target.
var services = map[string]string{
	"DynamoDB_20120810":        "dynamodb",
	"DynamoDBStreams_20120810": "dynamodbstreams",
	"AmazonSQS":                "sqs",
	"secretsmanager":           "secretsmanager",
	"TrentService":             "kms",
	"":                         "s3",
}

// Fault is one trouble.
type Fault struct {
	// Service is dynamodb, dynamodbstreams, sqs, secretsmanager, kms or s3; empty: all of them.
	Service string
	// Operation is the call's name in the API, such as GetItem; empty: every one.
	Operation string
	// Table is the end of a table's name that the call must give, such as
	// "BusinessTable"; empty: any call.
	Table string
	Mode  Mode
	// After lets that many matching calls through first.
	After int
	// Count is how many calls suffer; 0: all until the fault is cleared.
	Count int
	// Delay is how long Delay and Late hold a call.
	Delay time.Duration
	// Code and HTTPStatus replace the error of Fail.
	Code       string
	HTTPStatus int
}

// Report is a fault and what it has done.
type Report struct {
	Fault
	Seen    int // calls that matched
	Hit     int // calls that suffered
	Waiting int // calls that are held now
}

// Check says what is wrong with a fault.
func (f Fault) Check() error {
	known := slices.Contains([]Mode{Stall, Fail, Throttle, Delay, DropBefore, DropAfter, Conflict, Part, Lose, Repeat, Late}, f.Mode)
	bound, isBound := only[f.Mode]
	service := f.Service == ""
	for _, name := range services {
		service = service || f.Service == name
	}
	switch {
	case !known:
		return errors.New("mode must be stall, fail, throttle, delay, drop-before, drop-after, conflict, part, lose, repeat or late")
	case isBound && (f.Service != bound.service || f.Operation != bound.operation):
		return fmt.Errorf("mode %s belongs to service %s, operation %s", f.Mode, bound.service, bound.operation)
	case !service:
		return errors.New("service must be dynamodb, dynamodbstreams, sqs, secretsmanager, kms, s3 or nothing")
	case f.After < 0 || f.Count < 0:
		return errors.New("after and count must not be negative")
	case (f.Mode == Delay || f.Mode == Late) != (f.Delay > 0):
		return errors.New("a delay belongs to the modes delay and late, and these need one")
	case f.Mode != Fail && (f.Code != "" || f.HTTPStatus != 0):
		return errors.New("code and status belong to the mode fail")
	case f.HTTPStatus != 0 && (f.HTTPStatus < 400 || f.HTTPStatus > 599):
		return errors.New("status must be 400 to 599")
	}
	return nil
}

// Injector is an [http.Handler] in front of the services. It is safe for
// concurrent use.
type Injector struct {
	next  http.Handler
	timer func(time.Duration) (fired <-chan time.Time, stop func())

	mu     sync.Mutex
	faults []*active // oldest first
}

// active is a fault that has not been cleared.
type active struct {
	Report
	cleared chan struct{}
}

// New makes an injector without faults in front of a handler. timer fires once
// after a time: real timers if nil.
func New(next http.Handler, timer func(time.Duration) (fired <-chan time.Time, stop func())) *Injector {
	if timer == nil {
		timer = func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTimer(d)
			return t.C, func() { t.Stop() }
		}
	}
	return &Injector{next: next, timer: timer}
}

// Add puts a fault behind those that there are, or says what is wrong with it.
func (i *Injector) Add(f Fault) error {
	if err := f.Check(); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = append(i.faults, &active{Report: Report{Fault: f}, cleared: make(chan struct{})})
	return nil
}

// Clear removes the faults of a service, or all of them when it is empty, and
// lets the calls through that they hold.
func (i *Injector) Clear(service string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = slices.DeleteFunc(i.faults, func(a *active) bool {
		gone := service == "" || a.Service == service
		if gone {
			close(a.cleared)
		}
		return gone
	})
}

// List returns the faults that were not cleared, oldest first; those whose count
// is used up stay in the list.
func (i *Injector) List() []Report {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := []Report{}
	for _, a := range i.faults {
		all = append(all, a.Report)
	}
	return all
}

// Identify names the service and the operation of a call, as faults do. The
// operation is empty when it cannot be told.
func Identify(r *http.Request) (service, operation string) {
	target := r.Header.Get("X-Amz-Target")
	if target == "" {
		return services[""], s3.Operation(r)
	}
	prefix, operation, _ := strings.Cut(target, ".")
	return services[prefix], operation
}

// ServeHTTP lets a call through, or does to it what its fault says.
func (i *Injector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service, operation := Identify(r)
	var body []byte
	if i.looksInside() {
		var err error
		if body, err = peek(r); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	a := i.match(service, operation, body)
	if a == nil {
		i.next.ServeHTTP(w, r)
		return
	}
	i.trouble(w, r, a, service)
}

func (i *Injector) trouble(w http.ResponseWriter, r *http.Request, a *active, service string) {
	switch a.Mode {
	case Stall:
		i.hold(w, r, a, nil)
	case Delay:
		fired, stop := i.timer(a.Delay)
		defer stop()
		i.hold(w, r, a, fired)
	case DropBefore:
		panic(http.ErrAbortHandler)
	case DropAfter:
		i.next.ServeHTTP(&discarded{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	case Throttle:
		writeError(w, r, service, throttling[service])
	case Fail:
		writeError(w, r, service, a.failure(service))
	case Conflict:
		conflict(w, r)
	case Part:
		i.part(w, r)
	case Lose, Repeat:
		i.records(w, r, a)
	case Late:
		i.late(r, a)
	}
}

// match finds the fault that a call suffers and counts it.
func (i *Injector) match(service, operation string, body []byte) *active {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range i.faults {
		if a.Service != "" && a.Service != service || a.Operation != "" && a.Operation != operation || !names(body, a.Table) {
			continue
		}
		a.Seen++
		if a.Seen > a.After && (a.Count == 0 || a.Hit < a.Count) {
			a.Hit++
			return a
		}
	}
	return nil
}

// bodyBytesMax bounds the body of a call that is held or looked into.
const bodyBytesMax = 16 << 20

// peek reads a call's body and puts it back.
func peek(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyBytesMax+1))
	if err == nil && len(body) > bodyBytesMax {
		err = errors.New("fault: a body is too large to be looked into")
	}
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// names reports whether a call names a table that ends so.
func names(body []byte, table string) bool {
	return table == "" || bytes.Contains(body, []byte(table+`"`))
}

// looksInside reports whether a fault asks for a call's body.
func (i *Injector) looksInside() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(i.faults, func(a *active) bool { return a.Table != "" })
}

// hold keeps a call until its time has come, its fault is cleared or its client
// has gone, and lets it through unless the client has gone.
func (i *Injector) hold(w http.ResponseWriter, r *http.Request, a *active, fired <-chan time.Time) {
	// The server notices that a client has gone only once the body has been read.
	if _, err := peek(r); err != nil {
		panic(http.ErrAbortHandler)
	}
	i.wait(a, 1)
	select {
	case <-fired:
	case <-a.cleared:
	case <-r.Context().Done():
	}
	i.wait(a, -1)
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	i.next.ServeHTTP(w, r)
}

func (i *Injector) wait(a *active, n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a.Waiting += n
}

// discarded is an answer that nobody will get.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d *discarded) WriteHeader(int)             {}
