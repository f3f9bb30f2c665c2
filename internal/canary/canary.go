// Package canary sends a synthetic event to each endpoint that asked for it, as
// its provider would, and looks whether the event arrives: through the front door,
// the signature, the acceptance, the stream, the queue and the processor, to the
// end of its row. What does not arrive in time is missing, whatever the reason.
//
// Invariants:
//
//   - It goes in where everybody goes in, signed with the endpoint's newest trusted
//     key, and writes nothing by itself. It is tried again as a provider would,
//     under one id, so that it is one event.
//   - Its event is kept as one that nothing is done about
//     ([provider.Adapter.IsCanary]): no handler sees it, and it does not count as a
//     first match of its key.
//   - A run ends within [Canary.Budget]. An endpoint whose turn did not come by then
//     has not been proved, and is missing.
//   - Every endpoint that asked has a report, and no report carries a secret, a
//     signature or a body.
//
// Where the work on an endpoint is paused, or an operator holds the canary's row,
// to be accepted is enough: that somebody stopped the work is no news. An endpoint
// that is over its own limit refuses its provider too, so a canary that it refuses
// to the end is missing.
//
// It refuses to sign where the endpoint's key cannot: that of a public key. Such an
// endpoint is reported and is not missing.
package canary

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Endpoints reads the registry.
type Endpoints interface {
	EndpointIDs(ctx context.Context) ([]webhook.EndpointID, error)
	Endpoint(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error)
}

// Keys fetches secrets by version.
type Keys interface {
	Secret(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) (string, error)
}

// HTTP makes one request and bounds it in time. Any answer at all is no error.
type HTTP interface {
	Do(ctx context.Context, r Request) (Response, error)
}

// Request is what is sent.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// Response is what came back, whole.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Inbox reads an event's row, strongly consistent.
type Inbox interface {
	Inbox(ctx context.Context, id webhook.InboxID) (webhook.Inbox, bool, error)
}

// Canary sends and looks. All fields are required.
type Canary struct {
	Providers *provider.Registry
	Endpoints Endpoints
	Keys      Keys
	HTTP      HTTP
	Inbox     Inbox
	// URL is the front door's address, before /in/{provider}/{endpoint_id}.
	URL string
	// Budget bounds a run, and so how long a canary may take.
	Budget time.Duration
	// AtOnce bounds the calls of a run that are under way at one time.
	AtOnce int
	Now    func() time.Time
	NewID  func() string
	Wait   func(ctx context.Context, d time.Duration) error
}

// Decision says what became of a canary.
type Decision string

// The decisions.
const (
	Arrived    Decision = "canary_arrived"    // its row is PROCESSED
	Accepted   Decision = "canary_accepted"   // its row is there, and the work is stopped by an operator
	Missing    Decision = "canary_missing"    // neither, by the end of the run
	Unsignable Decision = "canary_unsignable" // the endpoint's key verifies and cannot sign
)

// Decisions lists the decisions.
func Decisions() []Decision { return []Decision{Arrived, Accepted, Missing, Unsignable} }

// Report is what became of one endpoint's canary.
type Report struct {
	Provider webhook.Provider
	Endpoint webhook.EndpointID
	InboxID  webhook.InboxID
	Decision Decision
	// Code says why, for a canary that is missing: the front door's code, that of
	// what stood in the way of sending or looking, or the row's own.
	Code string
	// Row is the state in which the row was last seen, empty if it never was.
	Row webhook.Status
	// HTTP is the status of the last answer, 0 without one, and Sent how many
	// requests were made.
	HTTP, Sent int
	// Took is the time from the first request to the end of the work, by the
	// processor's clock; only of one that arrived.
	Took time.Duration
	Err  error
}

// Run makes one pass and returns a report for each endpoint that asked, in the
// order of their ids. The error says that not all endpoints could be read; whether
// those ask is not known.
func (c *Canary) Run(ctx context.Context) ([]Report, error) {
	bounded, cancel := context.WithTimeout(ctx, c.Budget)
	defer cancel()
	endpoints, err := c.asking(bounded)
	run := &run{Canary: c, slots: make(chan struct{}, c.AtOnce)}
	reports := make([]Report, len(endpoints))
	var wg sync.WaitGroup
	for i, e := range endpoints {
		wg.Go(func() { reports[i] = run.prove(bounded, e) })
	}
	wg.Wait()
	return reports, err
}

// asking returns the endpoints that asked for canaries.
func (c *Canary) asking(ctx context.Context) ([]webhook.Endpoint, error) {
	ids, err := c.Endpoints.EndpointIDs(ctx)
	if err != nil {
		return nil, err
	}
	var asking []webhook.Endpoint
	var unread error
	for _, id := range ids {
		e, found, err := c.Endpoints.Endpoint(ctx, id)
		switch {
		case err != nil:
			unread = errors.Join(unread, err)
		case found && e.Canary:
			asking = append(asking, e)
		}
	}
	return asking, unread
}

// run is one pass over the endpoints.
type run struct {
	*Canary
	slots chan struct{}
}

// call makes a call once there is room for it.
func (r *run) call(ctx context.Context, f func() error) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// prove sends one endpoint's canary and looks for it.
func (r *run) prove(ctx context.Context, e webhook.Endpoint) Report {
	flight := &flight{run: r, endpoint: e, report: Report{Provider: e.Provider, Endpoint: e.ID, Decision: Missing}}
	adapter, ok := r.Providers.Lookup(e.Provider)
	if !ok {
		flight.report.Code = "provider_unknown"
		return flight.report
	}
	id, sample, err := adapter.Canary(webhook.CanaryPrefix + strings.ToLower(r.NewID()))
	if err != nil {
		flight.report.Code, flight.report.Err = "canary_unmade", err
		return flight.report
	}
	flight.adapter, flight.sample = adapter, sample
	flight.report.InboxID = webhook.DeriveInboxID(e.Scope, adapter.Name, id)
	if flight.send(ctx) {
		flight.look(ctx)
	}
	return flight.report
}
