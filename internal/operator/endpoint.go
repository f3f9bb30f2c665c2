package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// NewEndpoint is the wish for an endpoint. Empty fields take the defaults named
// beside them.
type NewEndpoint struct {
	Provider webhook.Provider
	ID       webhook.EndpointID
	Secret   Secret
	Tenant   webhook.Tenant // "default"
	Scope    webhook.Scope  // the endpoint's own id
	Types    []webhook.EventType
	// KeepUnknown keeps events of other types as ignored rows, in place of a 422.
	KeepUnknown bool
	Overlap     time.Duration      // the provider's
	Rate, Burst int                // no limit
	AllowFrom   *webhook.AllowFrom // anywhere
	Canary      bool               // none is sent
	Policies    map[webhook.Kind]webhook.Policy
	// Credential is for the provider's API, and Account what its addresses need.
	Credential    Secret
	Account       map[string]string
	BackfillEvery time.Duration // never
	ExpectEvery   time.Duration // nothing is expected
	Why           string
}

// DefaultTenant owns what nobody else does.
const DefaultTenant = "default"

// Created is an endpoint that is there now.
type Created struct {
	Endpoint webhook.Endpoint
	URL      string
	// Existed is set when it was there before, exactly as asked for.
	Existed bool
	Next    []Step
}

// Create makes an endpoint: first its secret, then its registry row. Repeated
// after a crash between the two it goes on; repeated after success it changes
// nothing. An id that is taken by anything else is refused.
func (o *Operator) Create(ctx context.Context, n NewEndpoint) (Created, error) {
	adapter, e, err := o.plan(n)
	if err != nil {
		return Created{}, err
	}
	if err := checkSecret(adapter, n.Secret); err != nil {
		return Created{}, err
	}
	if existing, ok, err := o.Registry.Endpoint(ctx, e.ID); err != nil {
		return Created{}, unreachable("the registry", err)
	} else if ok {
		return o.existing(ctx, adapter, e, existing, n)
	}
	act, err := o.act(ctx, "endpoint create", "endpoint "+string(e.ID), n.Why)
	if err != nil {
		return Created{}, err
	}
	version, err := o.Secrets.Create(ctx, e, n.Secret, keyToken(e.ID, 1))
	if err != nil {
		return Created{}, o.notStored(e, err)
	}
	if _, err := o.putCredential(ctx, e.ID, n.Credential, n.Why); err != nil {
		return Created{}, err
	}
	e.Keys = []webhook.TrustedKey{{Version: version, AddedAt: act.At}}
	written, err := o.Registry.CreateEndpointBy(ctx, e, act)
	if err != nil {
		return Created{}, unreachable("the registry", err)
	}
	if written {
		e.Revision = 1
		return o.created(adapter, e, false), nil
	}
	existing, err := o.endpoint(ctx, e.ID)
	if err != nil {
		return Created{}, err
	}
	return o.existing(ctx, adapter, e, existing, n)
}

// plan turns a wish into a row, or says everything that is wrong with it.
func (o *Operator) plan(n NewEndpoint) (*provider.Adapter, webhook.Endpoint, error) {
	adapter, err := o.adapter(n.Provider)
	if err != nil {
		return nil, webhook.Endpoint{}, err
	}
	e := webhook.Endpoint{
		ID: n.ID, Provider: n.Provider, Tenant: or(n.Tenant, DefaultTenant), Scope: or(n.Scope, webhook.Scope(n.ID)),
		Secret: o.SecretPrefix + string(n.ID), KeepUnknown: n.KeepUnknown,
		Overlap: or(n.Overlap, adapter.Overlap), CreatedAt: o.Now(),
	}
	e = Settings{
		Types: n.Types, Rate: &n.Rate, Burst: &n.Burst, AllowFrom: n.AllowFrom, Canary: &n.Canary, BackfillEvery: &n.BackfillEvery, Policies: n.Policies, Credential: n.Credential, Account: n.Account,
		ExpectEvery: &n.ExpectEvery,
	}.over(e, o.apiSecret(e.ID))
	var problems []string
	wrong := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	const word = "lower-case letters, digits and inner hyphens"
	wrong(!webhook.ValidEndpointID(string(e.ID)), "--id is 1 to %d %s", webhook.EndpointIDBytesMax, word)
	wrong(n.Scope != "" && !webhook.ValidEndpointID(string(e.Scope)), "--scope is 1 to %d %s", webhook.EndpointIDBytesMax, word)
	wrong(!webhook.ValidEndpointID(string(e.Tenant)) || len(e.Tenant) > webhook.TenantBytesMax, "--tenant is 1 to %d %s", webhook.TenantBytesMax, word)
	problems = append(problems, settingsProblems(adapter, e, n.Credential)...)
	if len(problems) > 0 {
		return nil, e, misuse(strings.Join(problems, "; "), run("see what the flags mean:", "endpoint", "create", "--help"))
	}
	return adapter, e, nil
}

// adapter finds the adapter of a provider.
func (o *Operator) adapter(name webhook.Provider) (*provider.Adapter, error) {
	if a, ok := o.Providers.Lookup(name); ok {
		return a, nil
	}
	var names []string
	for _, a := range o.Providers.All() {
		names = append(names, string(a.Name))
	}
	return nil, misuse(fmt.Sprintf("--provider %q is none of %s", name, strings.Join(names, ", ")))
}

// noType says that an adapter does not know a type, and which it knows about the
// same thing.
func noType(a *provider.Adapter, t webhook.EventType) string {
	const no = "--type %q is no event type that the %[2]s adapter knows: %[3]sdakghar provider show %[2]s lists all"
	near := typesLike(a, t)
	if len(near) == 0 {
		return fmt.Sprintf(no, t, a.Name, "")
	}
	return fmt.Sprintf(no, t, a.Name, "perhaps "+strings.Join(near, ", ")+"; ")
}

// typesLike returns the types that begin with the same word, up to a full stop or a slash.
func typesLike(a *provider.Adapter, t webhook.EventType) []string {
	end := strings.IndexAny(string(t), "./")
	if end < 0 {
		return nil
	}
	var near []string
	for _, known := range a.Types() {
		if strings.HasPrefix(string(known), string(t)[:end+1]) {
			near = append(near, string(known))
		}
	}
	return near
}

// checkSecret holds a secret to the provider's form, before anything is stored.
func checkSecret(a *provider.Adapter, s Secret) error {
	if _, err := a.Scheme.DecodeKey(s.Reveal()); err != nil {
		// The engine's errors are a closed list of sentences, none of which repeats the secret.
		return refuse("secret_refused", "this cannot be a signing secret of "+a.Title+": "+strings.TrimPrefix(err.Error(), "signature: "),
			say("copy the signing secret from the provider's webhook settings, all of it and nothing else, into a file, and name it with --secret-file"))
	}
	return nil
}

// existing answers for an id that is taken: fine if it is taken by the very same
// endpoint, with the very same secret.
func (o *Operator) existing(ctx context.Context, a *provider.Adapter, want, have webhook.Endpoint, n NewEndpoint) (Created, error) {
	differs := difference(want, have)
	if differs == "" && !n.Credential.Empty() {
		_, value, err := o.Secrets.Current(ctx, webhook.Endpoint{ID: have.ID, Secret: o.apiSecret(have.ID)})
		switch {
		case err != nil && !errors.Is(err, ErrNoVersion):
			return Created{}, unreachable("the secret store", err)
		case value.Reveal() != n.Credential.Reveal():
			differs = "credential for the provider's API"
		}
	}
	if differs != "" {
		return Created{}, refuse("endpoint_exists", fmt.Sprintf("endpoint %s exists with another %s; ids are never used again", have.ID, differs),
			run("see what it is:", "endpoint", "show", string(have.ID)), run("see what can be changed about it:", "endpoint", "update", "--help"),
			say("or choose another --id"))
	}
	at, err := o.find(ctx, have, n.Secret)
	switch {
	case err != nil:
		return Created{}, err
	case at.trusted:
		return o.created(a, have, true), nil
	}
	return Created{}, refuse("endpoint_exists", fmt.Sprintf("endpoint %s exists with another secret", have.ID),
		run("if this is the provider's new secret, add it beside the old one:", "secret", "rotate", "--endpoint", string(have.ID), "--secret-file", "FILE"))
}

// difference names the first setting in which two endpoints differ.
func difference(a, b webhook.Endpoint) string {
	switch {
	case a.Provider != b.Provider:
		return "provider"
	case a.Tenant != b.Tenant:
		return "tenant"
	case a.Scope != b.Scope:
		return "scope"
	case !slices.Equal(a.Types, b.Types):
		return "list of types"
	case a.KeepUnknown != b.KeepUnknown:
		return "choice of --keep-unknown"
	case a.Overlap != b.Overlap:
		return "overlap"
	case a.Rate != b.Rate, a.Burst != b.Burst:
		return "rate or burst"
	case !a.AllowFrom.Equal(b.AllowFrom):
		return "choice of --allow-from"
	case !maps.Equal(a.Policies, b.Policies):
		return "choice of policies"
	case !sameAPI(a.API, b.API):
		return "access to the provider's API"
	case a.BackfillEvery != b.BackfillEvery:
		return "back-fill"
	case a.Canary != b.Canary:
		return "choice of --canary"
	case a.ExpectEvery != b.ExpectEvery:
		return "choice of --expect-every"
	}
	return ""
}

func (o *Operator) created(a *provider.Adapter, e webhook.Endpoint, existed bool) Created {
	c := Created{Endpoint: e, URL: o.URL(e.Provider, e.ID), Existed: existed}
	c.Next = append(c.Next, say("give "+c.URL+" to "+a.Title+" as the address of the webhook, with the secret that you gave here"))
	send := []string{"send", "--provider", string(e.Provider), "--endpoint", string(e.ID), "--type", string(sampleType(a, e))}
	c.Next = append(c.Next, run("or send a sample event to it:", send...))
	if e.Canary {
		c.Next = append(c.Next, canaryStep(e.ID))
	}
	c.Next = append(c.Next, allowSteps(a, e.AllowFrom)...)
	return c
}

// sampleType is an event type to show in an example: one that money comes in
// with, if there is one.
func sampleType(a *provider.Adapter, e webhook.Endpoint) webhook.EventType {
	types := e.Types
	if len(types) == 0 {
		types = a.Types()
	}
	for _, t := range types {
		if k, _ := a.Kind(t); k.Object == webhook.Payment && k.Credit > 0 {
			return t
		}
	}
	if len(types) > 0 {
		return types[0]
	}
	return patternType(a)
}

// patternType is the type that an adapter's sample for a pattern shows.
func patternType(a *provider.Adapter) webhook.EventType {
	header := signature.Header{}
	for _, id := range a.ID {
		for _, p := range id.Parts {
			if p.Header != "" {
				header[p.Header] = "sample"
			}
		}
	}
	if a.Pattern != nil {
		if e, err := a.Envelope(header, a.PatternKind.Read.Sample); err == nil {
			return e.Type
		}
	}
	return "TYPE"
}

func (o *Operator) notStored(e webhook.Endpoint, err error) error {
	if errors.Is(err, ErrOtherSecret) {
		return refuse("secret_exists", "the secret store has another value under the name "+e.Secret+", without an endpoint: perhaps an earlier create that died",
			say("run create again with the secret of that time, then rotate to this one; or delete that secret, or choose another --id"))
	}
	return unreachable("the secret store", err)
}

// Endpoints returns every endpoint, in the order of their ids.
func (o *Operator) Endpoints(ctx context.Context) ([]webhook.Endpoint, error) {
	ids, err := o.Registry.EndpointIDs(ctx)
	if err != nil {
		return nil, unreachable("the registry", err)
	}
	var all []webhook.Endpoint
	for _, id := range ids {
		e, ok, err := o.Registry.Endpoint(ctx, id)
		if err != nil {
			return nil, unreachable("the registry", err)
		}
		if ok {
			all = append(all, e)
		}
	}
	return all, nil
}

// Endpoint returns one endpoint with its keys.
func (o *Operator) Endpoint(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, []Key, error) {
	e, err := o.endpoint(ctx, id)
	if err != nil {
		return e, nil, err
	}
	return e, keysOf(e, o.Now()), nil
}

// lastEventRows bounds the canaries and back-filled events that [Operator.LastEvent]
// reads through.
const lastEventRows = 2000

// LastEvent returns when an endpoint's provider last sent an event that was
// accepted, within [webhook.ExpectEveryMax]; zero where none is found, or where more
// canaries and back-filled events are newer than are worth reading.
func (o *Operator) LastEvent(ctx context.Context, e webhook.Endpoint) (time.Time, error) {
	now := o.Now()
	since := now.Add(-webhook.ExpectEveryMax)
	if since.Before(e.CreatedAt) {
		since = e.CreatedAt
	}
	looked := 0
	for row, err := range o.Inbox.RecentInbox(ctx, e.ID, since, now.Add(clockAhead)) {
		if err != nil {
			return time.Time{}, unreachable("the inbox", err)
		}
		if row.Heard() {
			return row.ReceivedAt, nil
		}
		if looked++; looked == lastEventRows {
			break
		}
	}
	return time.Time{}, nil
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
