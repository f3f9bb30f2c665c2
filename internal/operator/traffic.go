package operator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Traffic says which sample events are sent, how often, and how fast.
type Traffic struct {
	Provider webhook.Provider // empty: the endpoint's
	Endpoint webhook.EndpointID
	Type     webhook.EventType

	// Count is the number of requests in all; 0 for one event and its copies.
	Count int
	// Duplicates is how many more copies follow each event.
	Duplicates int
	// Versions, if any, sends one event of one object for each, in this order.
	Versions []int64
	// Shuffle mixes the order of the requests.
	Shuffle     bool
	Concurrency int
	// Rate is requests a second, sent at their times whether or not the earlier
	// ones were answered, as far as Concurrency allows; 0 for as fast as answers come.
	Rate float64
	// Retries is how often a request is sent again that was answered with a 5xx, or
	// not at all: such an event may not be stored, and its provider would come again.
	// The first one waits 250 ms, each later one twice as long.
	Retries int
	// Seed numbers the events: the same traffic with the same seed is the same
	// events again.
	Seed uint64

	EventID, ObjectID, State, Currency string
	Version, Amount                    int64
	BodyBytes                          int
	// At is the event's time by the provider's clock and the time that is signed;
	// zero signs the present.
	At time.Time

	// KeyVersion signs with this version, by its id or the beginning of it;
	// empty for the newest trusted one.
	KeyVersion string
	// Secret, if not empty, signs in place of any stored key.
	Secret Secret
	// URL replaces the endpoint's own address.
	URL string
}

// Bounds of one traffic, and of how often each of its requests is sent again.
const (
	RequestsMax = 10_000_000
	RetriesMax  = 10
)

// check returns everything that is wrong with a traffic.
func (t Traffic) check() error {
	var problems []string
	wrong := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	wrong(t.Count < 0 || t.Count > RequestsMax, "--count is 1 to %d", RequestsMax)
	wrong(t.Duplicates < 0 || t.Duplicates > RequestsMax, "--duplicates is 0 to %d", RequestsMax)
	wrong(t.Count == 1 && t.Duplicates > 0, "--count is the number of requests in all, and 1 leaves no room for duplicates: leave it out")
	wrong(t.Concurrency < 1 || t.Concurrency > 4096, "--concurrency is 1 to 4096")
	wrong(t.Retries < 0 || t.Retries > RetriesMax, "--retries is 0 to %d", RetriesMax)
	wrong(t.Rate < 0 || t.Rate > 1e6, "--rate is 0 to 1000000")
	wrong(len(t.Versions) > 0 && (t.Count > 0 || t.Version != 0 || t.EventID != ""), "--versions says how many events there are and which: leave out --count, --version and --event-id")
	wrong(t.Version < 0 || t.Amount < 0, "--version and --amount are not negative")
	for _, v := range t.Versions {
		wrong(v < 1, "--versions are at least 1")
	}
	wrong(t.BodyBytes < 0 || t.BodyBytes > provider.BodyBytesMax+1, "--body-bytes is 0 to %d", provider.BodyBytesMax+1)
	wrong(t.EventID != "" && t.distinct() > 1, "--event-id names one event, and this sends %d: add --duplicates %d to send copies of it", t.distinct(), t.Count-1)
	if len(problems) > 0 {
		return misuse(strings.Join(problems, "; "), run("see what the flags mean:", "send", "--help"))
	}
	return nil
}

// requests returns how many requests there are.
func (t Traffic) requests() int {
	switch {
	case len(t.Versions) > 0:
		return len(t.Versions) * (1 + t.Duplicates)
	case t.Count > 0:
		return t.Count
	}
	return 1 + t.Duplicates
}

// distinct returns how many different events they carry.
func (t Traffic) distinct() int {
	return (t.requests() + t.Duplicates) / (1 + t.Duplicates)
}

// order returns which event each request carries.
func (t Traffic) order(mixed func(seed uint64, n int) []int) []int {
	events := make([]int, t.requests())
	if t.Shuffle {
		events = mixed(t.Seed, len(events))
	} else {
		for i := range events {
			events[i] = i
		}
	}
	for i := range events {
		events[i] /= 1 + t.Duplicates
	}
	return events
}

// Sending is a traffic that is ready to go.
type Sending struct {
	Requests, Events int
	URL              string
	// KeyVersion signs; empty for a secret of the caller's own.
	KeyVersion webhook.KeyVersion

	operator *Operator
	traffic  Traffic
	sampler  *sampler
	key      signature.Key
}

// Prepare finds the endpoint, its key and the sample, and refuses what cannot be sent.
func (o *Operator) Prepare(ctx context.Context, t Traffic) (*Sending, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	e, err := o.target(ctx, t)
	if err != nil {
		return nil, err
	}
	adapter, err := o.adapter(e.Provider)
	if err != nil {
		return nil, err
	}
	s := &Sending{
		Requests: t.requests(), Events: t.distinct(), URL: or(t.URL, o.URL(e.Provider, e.ID)),
		operator: o, traffic: t,
	}
	if s.sampler, err = newSampler(adapter, e, t); err != nil {
		return nil, err
	}
	if s.key, err = o.signingKey(ctx, adapter, e, t); err != nil {
		return nil, err
	}
	s.KeyVersion = webhook.KeyVersion(s.key.Version)
	return s, nil
}

// target returns the endpoint to send to. One that does not exist can be sent to
// with a secret of the caller's own, to see the refusal.
func (o *Operator) target(ctx context.Context, t Traffic) (webhook.Endpoint, error) {
	e, err := o.endpoint(ctx, t.Endpoint)
	refusal, refused := errors.AsType[*Refusal](err)
	switch {
	case refused && refusal.Code == "endpoint_unknown" && t.Provider != "" && !t.Secret.Empty():
		return webhook.Endpoint{ID: t.Endpoint, Provider: t.Provider, Scope: webhook.Scope(t.Endpoint)}, nil
	case err != nil:
		return e, err
	case t.Provider != "" && t.Provider != e.Provider:
		return e, misuse(fmt.Sprintf("endpoint %s is of provider %s, not %s", e.ID, e.Provider, t.Provider))
	}
	return e, nil
}

// signingKey returns the key that signs.
func (o *Operator) signingKey(ctx context.Context, a *provider.Adapter, e webhook.Endpoint, t Traffic) (signature.Key, error) {
	secret, version := t.Secret, webhook.KeyVersion("")
	if secret.Empty() {
		var err error
		if version, err = o.keyVersion(e, t.KeyVersion); err != nil {
			return signature.Key{}, err
		}
		if secret, err = o.Secrets.Value(ctx, e, version); errors.Is(err, ErrNoVersion) {
			return signature.Key{}, refuse("key_missing", fmt.Sprintf("the secret store does not hold version %s any more", version),
				run("see the endpoint's keys:", "secret", "list", "--endpoint", string(e.ID)))
		} else if err != nil {
			return signature.Key{}, unreachable("the secret store", err)
		}
	}
	decoded, err := a.Scheme.DecodeSigningKey(secret.Reveal())
	if err != nil {
		return signature.Key{}, refuse("secret_refused", "this secret cannot sign for "+a.Title+": "+strings.TrimPrefix(err.Error(), "signature: "))
	}
	key := signature.Key{Version: string(version), Secret: decoded}
	// An endpoint of a public key cannot sign: try once, on nothing.
	probe := signature.Header{}
	if _, err := a.Scheme.Sign(signature.Request{Header: probe}, key, o.Now()); errors.Is(err, signature.ErrNoKey) {
		return key, refuse("key_public", "the endpoint's key is a public one, which verifies and cannot sign",
			say("give the private key with --secret-file"))
	}
	return key, nil
}

func (o *Operator) keyVersion(e webhook.Endpoint, wanted string) (webhook.KeyVersion, error) {
	keys := keysOf(e, o.Now())
	if wanted != "" {
		k, err := resolve(e, keys, wanted)
		return k.Version, err
	}
	for _, k := range keys {
		if k.Trust == Trusted {
			return k.Version, nil
		}
	}
	return "", refuse("no_key_trusted", "endpoint "+string(e.ID)+" trusts no key to sign with",
		run("give it one:", "secret", "put", "--endpoint", string(e.ID), "--secret-file", "FILE"))
}

// statusText names a refusal in a summary: its status, or that there was none.
func statusText(status int) string {
	if status == 0 {
		return "no answer"
	}
	return strconv.Itoa(status)
}
