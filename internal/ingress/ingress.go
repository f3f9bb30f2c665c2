// Package ingress turns an untrusted HTTP request into a durable event, and
// answers only then. It works in one order, and each step may refuse:
//
//	admission     source, method, headers, type, size      nothing of the body is read
//	address       where the endpoint takes requests from   where its operator chose
//	verification  signature metadata, MAC, freshness       over the exact raw bytes
//	envelope      strict JSON: event id, type, object      only a verified body is parsed
//	limit         the endpoint's rate                      only what is verified is counted
//	acceptance    body, then inbox and outbox together     only then the answer
//
// Invariants:
//
//   - A 2xx means that this event, or an accepted duplicate of it, is durable.
//     Whatever is unknown (a lost reply, a stalled store) is answered 503.
//   - An unverified body is stored nowhere.
//   - A request over a limit is answered 429 and leaves nothing: sent again, it is
//     new. A store that cannot say how a limit stands refuses nobody.
//   - Every request is answered within [Receiver.Budget].
//   - A stranger learns a stable code and nothing else; causes go to the report.
//
// Beside the front door there is one other way to the same acceptance: [Backfill]
// takes in what a provider lists. Read from the provider's pinned host with our
// credential, that counts as verified, and its row says so.
//
// The package performs no side effect but acceptance, and what a back-fill writes
// about itself, and never logs.
package ingress

import (
	"context"
	"time"

	"dakghar/internal/directory"
	"dakghar/internal/limit"
	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Request is one HTTP request, as the edge received it.
type Request struct {
	Method   string
	Provider webhook.Provider
	Endpoint string
	// Header has lower-case names. A name that came in several spellings makes
	// the request ambiguous: the edge lists it in Ambiguous.
	Header    signature.Header
	Ambiguous []string
	Body      []byte
	// BodyError is set when the edge could not recover the exact bytes.
	BodyError error
	// Source is the address that the request came from; empty where there is none.
	Source string
}

// Answer is what the caller is told.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte
	Header      map[string]string
}

// Report is what happened, for the log line and the metrics. It carries no
// payload, secret or signature.
type Report struct {
	Answer   Answer
	Decision Decision
	// Cause says why, in more detail than the answer: for operators only.
	Cause    string
	Provider webhook.Provider
	Endpoint webhook.EndpointID
	InboxID  webhook.InboxID
	Type     webhook.EventType
	Matched  webhook.KeyVersion
	Bytes    int
	Commit   time.Duration // of the acceptance transaction
	// Wait is how long a request that was over a limit should stay away.
	Wait time.Duration
	// Source is where the request came from, where it was refused for that alone.
	Source string
	// LimiterErr is why the row of the endpoint's limit could not be asked. The
	// request was decided without it.
	LimiterErr error
	Err        error
}

// Decision names how a request ended; each is counted apart.
type Decision string

// The decisions that are answered with a success.
const (
	Accepted        Decision = "accepted"
	Duplicate       Decision = "duplicate"
	DuplicateVaried Decision = "duplicate_varied" // a duplicate whose body differs, as this provider's may
	Conflict        Decision = "conflict"         // a known id with another body: kept, held for an operator
	Handshake       Decision = "handshake"
)

// Successes lists the decisions that are answered with a success. All others are
// "refused_" and one of [RefusalCodes].
func Successes() []Decision {
	return []Decision{Accepted, Duplicate, DuplicateVaried, Conflict, Handshake}
}

// Keys fetches secrets by version.
type Keys interface {
	Secret(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) (string, error)
	// Current looks for a version that was put there by other means. It limits
	// itself over all endpoints, and fails when it may not ask yet.
	Current(ctx context.Context, e webhook.Endpoint) (webhook.KeyVersion, string, error)
	// Found says whether what Current gave verified, which paces further look-ups.
	Found(yes bool)
}

// Bodies stores raw bodies, content-addressed.
type Bodies interface {
	Put(ctx context.Context, b webhook.Body) (webhook.Placed, error)
	Renew(ctx context.Context, b webhook.Body) (webhook.Placed, bool, error)
	Remove(ctx context.Context, id webhook.BodyID, putID string) error
}

// Inbox commits accepted events.
type Inbox interface {
	Accept(ctx context.Context, row webhook.Inbox, promise *webhook.Outbox) (*webhook.Inbox, error)
	Inbox(ctx context.Context, id webhook.InboxID) (webhook.Inbox, bool, error)
}

// Receiver is the pipeline. All fields are required.
type Receiver struct {
	Providers *provider.Registry
	Endpoints *directory.Directory
	Keys      Keys
	Bodies    Bodies
	Inbox     Inbox
	Recent    *Recent
	Sources   *limit.Sources
	Limits    *limit.Limiter
	// Budget bounds the whole request: what is not durable by then is answered 503.
	Budget time.Duration
	Now    func() time.Time
	NewID  func() string
}

// BudgetMax keeps the promise that every request is answered within 1.5 s, with
// room for the runtime on both sides.
const BudgetMax = 1200 * time.Millisecond

// Receive answers one request.
func (r *Receiver) Receive(ctx context.Context, req Request) Report {
	ctx, cancel := context.WithTimeout(ctx, r.Budget)
	defer cancel()
	now := r.Now()

	report := Report{Bytes: len(req.Body)}
	if a, ok := r.Providers.Lookup(req.Provider); ok {
		report.Provider = a.Name // a stranger's own word must not become a metric's dimension
	}
	if wait, ok := r.Sources.Take(req.Source, now); !ok {
		return report.limit("source_limited", wait)
	}
	adapter, refusal := r.admit(req)
	if refusal != nil {
		return report.refuse(refusal)
	}
	// The metadata is read before the registry: a request without a signature
	// costs a stranger more than us.
	meta, err := adapter.Scheme.Metadata(req.Header)
	if err != nil {
		return report.refuse(refuseSignature(err))
	}
	endpoint, refusal := r.endpoint(ctx, adapter, req, now)
	if refusal != nil {
		return report.refuse(refusal)
	}
	report.Endpoint = endpoint.ID
	if !endpoint.AllowFrom.Admits(req.Source, adapter.Addresses.List()) {
		report.Source = req.Source
		return report.refuse(&refusalSource)
	}

	match, refusal := r.verify(ctx, adapter, endpoint, req, meta, now)
	if refusal != nil {
		return report.refuse(refusal)
	}
	report.Matched = match

	envelope, err := adapter.Envelope(req.Header, req.Body)
	if err != nil {
		return report.refuse(refuseBody(err))
	}
	if envelope.Handshake != nil {
		return report.shake(envelope.Handshake)
	}
	report.Type = envelope.Type
	// A canary is taken whatever the endpoint takes, and never acted on.
	canary := adapter.IsCanary(envelope, req.Body)
	allowed := !canary && acts(adapter, endpoint, envelope.Type)
	if !allowed && !canary && !endpoint.KeepUnknown {
		return report.refuse(&refusal422)
	}
	return r.accept(ctx, event{
		adapter: adapter, endpoint: endpoint, envelope: envelope, unwanted: !allowed, canary: canary, body: req.Body,
		hops: webhook.ParseHops(req.Header[webhook.HopsHeader]), matched: match, now: now,
	}, report)
}

// acts reports whether an endpoint acts on events of a type.
func acts(a *provider.Adapter, e webhook.Endpoint, t webhook.EventType) bool {
	_, known := a.Kind(t)
	return known && endpointAllows(e, t)
}

func endpointAllows(e webhook.Endpoint, t webhook.EventType) bool {
	for _, allowed := range e.Types {
		if allowed == t {
			return true
		}
	}
	return len(e.Types) == 0
}
