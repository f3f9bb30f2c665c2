package operator

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Settings are an endpoint's settings that may change during its life. A nil
// field stays as it is.
type Settings struct {
	Types       []webhook.EventType // empty and not nil: all that the adapter knows
	KeepUnknown *bool
	Overlap     *time.Duration
	Rate, Burst *int
	Canary      *bool
	// AllowFrom is where requests may come from, in place of what was chosen before.
	AllowFrom *webhook.AllowFrom
	// Policies are laid over those that the endpoint has; [CataloguePolicy] takes
	// one away.
	Policies map[webhook.Kind]webhook.Policy
	// Credential is for the provider's API; empty leaves the one that is there.
	Credential Secret
	// Account is laid over the values that the endpoint has; an empty one goes.
	Account map[string]string
	// BackfillEvery is how often the provider's events are compared; 0 is never.
	BackfillEvery *time.Duration
	// ExpectEvery is how long the endpoint may be without an event; 0 is for ever.
	ExpectEvery *time.Duration
}

// CataloguePolicy stands for the policy that the adapter's catalogue has.
const CataloguePolicy webhook.Policy = "catalogue"

// Bounds of an endpoint's settings.
const (
	EndpointRateMax  = 100_000 // requests a second
	BackfillEveryMin = 15 * time.Minute
)

// Updated is an endpoint with its new settings.
type Updated struct {
	Endpoint webhook.Endpoint
	// Existed is set when it was like this before.
	Existed bool
	Next    []Step
}

// Update changes the settings of an endpoint. The provider's credential goes to
// the secret store first, then the row changes; repeated after a crash between
// the two it goes on, repeated after success it changes nothing.
func (o *Operator) Update(ctx context.Context, id webhook.EndpointID, s Settings, why string) (Updated, error) {
	e, err := o.endpoint(ctx, id)
	if err != nil {
		return Updated{}, err
	}
	a, err := o.adapter(e.Provider)
	if err != nil {
		return Updated{}, err
	}
	if err := checkSettings(a, s.over(e, o.apiSecret(id)), s.Credential); err != nil {
		return Updated{}, err
	}
	act, err := o.act(ctx, "endpoint update", "endpoint "+string(id), why)
	if err != nil {
		return Updated{}, err
	}
	turned, err := o.putCredential(ctx, e.ID, s.Credential, why)
	if err != nil {
		return Updated{}, err
	}
	var u Updated
	u.Endpoint, err = o.change(ctx, id, act, func(now webhook.Endpoint) (webhook.Endpoint, bool, error) {
		to := s.over(now, o.apiSecret(id))
		same := difference(now, to) == ""
		u.Existed = same && !turned
		return to, same, checkSettings(a, to, s.Credential)
	})
	u.Next = []Step{say("every process knows the new settings within 30 s"), run("see them:", "endpoint", "show", string(id))}
	if s.Canary != nil && *s.Canary {
		u.Next = append(u.Next, canaryStep(id))
	}
	u.Next = append(u.Next, allowSteps(a, u.Endpoint.AllowFrom)...)
	return u, err
}

// canaryStep says when an endpoint that asked for canaries has one, since the
// command does not know whether its stack sends any.
func canaryStep(id webhook.EndpointID) Step {
	return run("within 5 minutes the first canary is there, if the stack has the parameter Canary; without it none is sent:",
		"inbox", "list", "--endpoint", string(id), "--kind", string(webhook.CanaryType))
}

// over returns an endpoint with the settings laid over its own.
func (s Settings) over(e webhook.Endpoint, apiSecret string) webhook.Endpoint {
	if s.Types != nil {
		e.Types = slices.Clone(s.Types)
		if len(e.Types) == 0 {
			e.Types = nil
		}
	}
	set(&e.KeepUnknown, s.KeepUnknown)
	set(&e.Overlap, s.Overlap)
	set(&e.Rate, s.Rate)
	set(&e.Burst, s.Burst)
	set(&e.Canary, s.Canary)
	set(&e.AllowFrom, s.AllowFrom)
	set(&e.BackfillEvery, s.BackfillEvery)
	set(&e.ExpectEvery, s.ExpectEvery)
	e.Policies = laidOver(e.Policies, s.Policies, CataloguePolicy)
	if s.Credential.Empty() && len(s.Account) == 0 {
		return e
	}
	api := webhook.API{}
	if e.API != nil {
		api = *e.API
	}
	if !s.Credential.Empty() {
		api.Secret = apiSecret
	}
	api.Account = laidOver(api.Account, s.Account, "")
	e.API = &api
	return e
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// laidOver returns a map with another's entries laid over it; what the other has
// as none is taken away. An empty result is nil.
func laidOver[K, V comparable](under, over map[K]V, none V) map[K]V {
	all := maps.Clone(under)
	if all == nil {
		all = map[K]V{}
	}
	for k, v := range over {
		if all[k] = v; v == none {
			delete(all, k)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func sameAPI(a, b *webhook.API) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Secret == b.Secret && maps.Equal(a.Account, b.Account)
}

// checkSettings refuses settings that make no sense, with everything that is wrong.
func checkSettings(a *provider.Adapter, e webhook.Endpoint, credential Secret) error {
	if problems := settingsProblems(a, e, credential); len(problems) > 0 {
		return misuse(strings.Join(problems, "; "), run("see what the flags mean:", "endpoint", "update", "--help"))
	}
	return nil
}

// settingsProblems returns everything that is wrong with the settings of an endpoint.
func settingsProblems(a *provider.Adapter, e webhook.Endpoint, credential Secret) []string {
	var problems []string
	wrong := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	wrong(e.Overlap <= 0 || e.Overlap > webhook.OverlapMax, "--overlap is more than 0 and at most %s", Span(webhook.OverlapMax))
	wrong(e.Rate < 0 || e.Rate > EndpointRateMax, "--rate is 0 (no limit) to %d requests a second", EndpointRateMax)
	wrong(e.Burst < 0 || e.Burst > 60*EndpointRateMax, "--burst is 0 to %d requests", 60*EndpointRateMax)
	wrong(e.Burst > 0 && e.Rate == 0, "--burst goes with --rate: without a rate there is no limit")
	wrong(e.BackfillEvery != 0 && e.BackfillEvery < BackfillEveryMin, "--backfill-every is 0 (never) or at least %s", Span(BackfillEveryMin))
	wrong(e.ExpectEvery != 0 && (e.ExpectEvery < webhook.ExpectEveryMin || e.ExpectEvery > webhook.ExpectEveryMax),
		"--expect-every is 0 (nothing is expected) or %s to %s", Span(webhook.ExpectEveryMin), Span(webhook.ExpectEveryMax))
	for _, t := range e.Types {
		_, ok := a.Kind(t)
		wrong(!ok, "%s", noType(a, t))
	}
	wrong(e.Canary && !e.AllowFrom.IsZero(), "--canary does not go with --allow-from: a canary comes from an address of Lambda's, which changes, and would be refused")
	problems = append(problems, allowProblems(a, e.AllowFrom)...)
	problems = append(problems, apiProblems(a, e, credential)...)
	for _, kind := range slices.Sorted(maps.Keys(e.Policies)) {
		if problem := policyProblem(a, e, kind, e.Policies[kind]); problem != "" {
			problems = append(problems, "--policy "+string(kind)+"="+string(e.Policies[kind])+": "+problem)
		}
	}
	return problems
}

// apiProblems returns what is wrong with an endpoint's access to its provider's API.
func apiProblems(a *provider.Adapter, e webhook.Endpoint, credential Secret) []string {
	if e.API == nil {
		if e.BackfillEvery != 0 {
			return []string{"--backfill-every needs a credential for the provider's API: give it with --api-secret-file"}
		}
		return nil
	}
	if a.API == nil {
		return []string{"the " + string(a.Name) + " adapter does not use its provider's API: leave out --api-secret-file and --api-account"}
	}
	var problems []string
	if e.API.Secret == "" {
		problems = append(problems, "--api-account goes with a credential: give it with --api-secret-file")
	}
	if !credential.Empty() {
		// The header is thrown away: this asks only whether the credential has the form.
		if a.API.Authorise(http.Header{}, credential.Reveal()) != nil {
			problems = append(problems, "what --api-secret-file holds cannot be a credential of "+a.Title+"'s API: copy all of it and nothing else; the webhook's signing secret is another one")
		}
	}
	if err := a.CheckAccount(e.API.Account); err != nil {
		problems = append(problems, accountProblem(a, err))
	}
	if e.BackfillEvery != 0 && len(a.API.Histories) == 0 {
		problems = append(problems, a.Title+" has no list of past events to compare with: leave out --backfill-every")
	}
	return problems
}

func accountProblem(a *provider.Adapter, err error) string {
	var known []string
	for _, p := range a.API.Account {
		known = append(known, p.Name+" ("+p.About+")")
	}
	what := fault.CodeOf(err)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Unwrap() != nil {
		what = f.Unwrap().Error()
	}
	if len(known) == 0 {
		return "--api-account " + what + ": " + a.Title + " needs no account values"
	}
	return "--api-account " + what + " is unknown, has a value that cannot be right, or is one too many; " + a.Title + " takes " + strings.Join(known, ", ")
}

// policyProblem returns why a policy cannot decide the order of a kind, empty if
// it can.
func policyProblem(a *provider.Adapter, e webhook.Endpoint, name webhook.Kind, policy webhook.Policy) string {
	var kinds []provider.Kind
	for _, t := range a.Types() {
		if k := a.Catalogue[t]; k.Name == name {
			kinds = append(kinds, k)
		}
	}
	if a.Pattern != nil && a.PatternKind.Name == name {
		kinds = append(kinds, a.PatternKind)
	}
	if len(kinds) == 0 {
		return "the " + string(a.Name) + " adapter has no such kind"
	}
	for _, k := range kinds {
		if problem := policyOf(k, e, policy); policy != k.Policy && problem != "" {
			return problem
		}
	}
	return ""
}

func policyOf(k provider.Kind, e webhook.Endpoint, policy webhook.Policy) string {
	numbered := k.Read != nil && len(k.Read.Version) > 0
	switch policy {
	case webhook.ByVersion:
		switch {
		case !numbered:
			return "its events carry no version"
		case k.Delta:
			return "its events add up, and one that is older than the last would be left out: only sequence keeps them all"
		}
	case webhook.BySequence:
		if !numbered {
			return "its events carry no number"
		}
	case webhook.ByFetch:
		switch {
		case k.Current == nil:
			return "the adapter does not know how to fetch its objects"
		case k.Delta:
			return "its events add up, and a fetched state would leave some out: only sequence keeps them all"
		case e.API == nil || e.API.Secret == "":
			return "fetching needs a credential for the provider's API: give it with --api-secret-file"
		}
	case webhook.Monotonic:
		return "the states of its objects are not ordered, so there is nothing monotonic about them"
	default:
		return "a policy is version, fetch, sequence, or catalogue for the adapter's own"
	}
	return ""
}

// apiSecret names the secret with an endpoint's credential for its provider's
// API: <stack>/api/<id>, beside <stack>/endpoint/<id>. The two are apart so that
// the front door, which strangers reach, may not read credentials.
func (o *Operator) apiSecret(id webhook.EndpointID) string {
	return strings.TrimSuffix(o.SecretPrefix, "endpoint/") + "api/" + string(id)
}

// putCredential keeps an endpoint's credential for its provider's API; see
// [Operator.keepCurrent].
func (o *Operator) putCredential(ctx context.Context, id webhook.EndpointID, s Secret, why string) (bool, error) {
	return o.keepCurrent(ctx, webhook.Endpoint{ID: id, Secret: o.apiSecret(id)}, "endpoint credential", "endpoint "+string(id), s, why)
}

// keepCurrent keeps a credential as the current version of its secret, and records
// that first. False means that it was the current one before, or that there is
// none to keep.
func (o *Operator) keepCurrent(ctx context.Context, at webhook.Endpoint, name, subject string, s Secret, why string) (bool, error) {
	if s.Empty() {
		return false, nil
	}
	previous, value, err := o.Secrets.Current(ctx, at)
	put := o.Secrets.Put
	switch {
	case err == nil && value.Reveal() == s.Reveal():
		return false, nil
	case errors.Is(err, ErrNoVersion):
		put = o.Secrets.Create
	case err != nil:
		return false, unreachable("the secret store", err)
	}
	act, err := o.act(ctx, name, subject, why)
	if err != nil {
		return false, err
	}
	if err := o.Registry.RecordAct(ctx, act); err != nil {
		return false, unreachable("the registry", err)
	}
	// A token is used once: the value that it names may come and go again.
	sum := sha256.Sum256([]byte(act.ID))
	token := "a-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:25]))
	if _, err := put(ctx, at, s, token); err != nil {
		return false, unreachable("the secret store", err)
	}
	if previous != "" {
		// The store may forget the one before; should it not hear of this, it keeps it.
		_ = o.Secrets.Retire(ctx, at, previous)
	}
	return true, nil
}
