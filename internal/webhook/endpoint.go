package webhook

import (
	"encoding/json"
	"slices"
	"time"
)

// Endpoint is one configured receiving address of one provider.
type Endpoint struct {
	ID       EndpointID
	Provider Provider
	Tenant   Tenant
	// Scope is the boundary of event ids; the endpoint's own id unless shared.
	Scope Scope
	// Secret names the Secrets Manager secret whose versions are the keys.
	Secret string
	// Types, when not empty, narrows the adapter's allowed event types.
	Types []EventType
	// KeepUnknown accepts event types that are not allowed as durable rows with
	// outcome ignored, in place of answering 422.
	KeepUnknown bool
	// Policies overrides the catalogue's choice for some kinds of events.
	Policies map[Kind]Policy `json:",omitempty"`
	// Rate is how many verified requests a second the endpoint takes in the long
	// run, and Burst how many at once; 0 is no limit.
	Rate  int `json:",omitempty"`
	Burst int `json:",omitempty"`
	// AllowFrom is where requests may come from; the zero value is anywhere.
	AllowFrom AllowFrom `json:",omitzero"`
	// PausedAt is when work on the endpoint's events was paused; zero while it
	// goes on. Events are accepted all the same.
	PausedAt time.Time `json:",omitzero"`
	// API is how the provider's own API is asked about this endpoint's objects and
	// events; nil where it is not.
	API *API `json:",omitempty"`
	// BackfillEvery is how often the events that the provider lists are compared
	// with those accepted; 0 is never.
	BackfillEvery time.Duration `json:",omitempty"`
	// Canary has a synthetic event sent to the endpoint again and again, to see that
	// events arrive.
	Canary bool `json:",omitempty"`
	// ExpectEvery is how long the endpoint may be without an event of its provider's
	// before somebody is told; 0 is for ever.
	ExpectEvery time.Duration `json:",omitempty"`
	// Overlap is how long a previous key stays trusted after the first match of
	// the newer one.
	Overlap time.Duration
	// Keys are the trusted key versions, newest first, at most [KeysMax].
	Keys []TrustedKey
	// Retired are versions that must never be trusted again, whatever the secret store says.
	Retired   []KeyVersion
	CreatedAt time.Time
	// Unknown are settings that a newer program keeps in the row. They are written
	// back as they were read.
	Unknown map[string]json.RawMessage `json:"-"`
	// Revision is raised by every change of the row; a change is guarded by the one it read.
	Revision int64
}

// API is an endpoint's access to its provider's own API.
type API struct {
	// Secret names the Secrets Manager secret with the credential.
	Secret string
	// Account holds what the provider's addresses need besides, by the names that
	// its adapter declares: a shop, a repository, a hook.
	Account map[string]string `json:",omitempty"`
}

// PolicyFor returns what decides the order of a kind's events at this endpoint.
func (e Endpoint) PolicyFor(k Kind, catalogue Policy) Policy {
	if p, ok := e.Policies[k]; ok {
		return p
	}
	return catalogue
}

// KeysMax bounds the trusted versions of an endpoint, and so the MACs that one
// unverified request can ask for.
const KeysMax = 4

// TrustedKey is one version that an endpoint trusts.
type TrustedKey struct {
	Version KeyVersion
	AddedAt time.Time
	// FirstMatch is when a signature of this version was first seen; zero before.
	FirstMatch time.Time
	// NotAfter is an explicit end of trust; zero for none.
	NotAfter time.Time
	// Adopted marks a version that was found current in the secret store, put
	// there by other means than our own command.
	Adopted bool
}

// OverlapMax is the hard limit of an overlap whose newer key never matched: a
// rotation that was forgotten ends by itself, after an alarm.
const OverlapMax = 90 * 24 * time.Hour

// Trusted returns the versions that verify at now, newest first. A previous
// version is trusted until its explicit end, or until the overlap after the
// first match of the next newer one, whichever comes first.
func (e Endpoint) Trusted(now time.Time) []KeyVersion {
	var trusted []KeyVersion
	for i, k := range e.Keys {
		if until := e.trustedUntil(i); until.IsZero() || now.Before(until) {
			trusted = append(trusted, k.Version)
		}
	}
	return trusted
}

// trustedUntil returns when trust in the i-th newest key ends; zero for never.
func (e Endpoint) trustedUntil(i int) time.Time {
	until := e.Keys[i].NotAfter
	for _, newer := range e.Keys[:i] {
		end := newer.AddedAt.Add(OverlapMax)
		if !newer.FirstMatch.IsZero() {
			end = newer.FirstMatch.Add(e.Overlap)
		}
		if until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return until
}

// RotationOpen returns since when a rotation waits for somebody: an older key is
// still trusted, and none that followed it was ever seen matching. Once one was, or
// once the older key has an end of its own, it finishes by itself.
func (e Endpoint) RotationOpen(now time.Time) (since time.Time, open bool) {
	for i := len(e.Keys) - 1; i > 0; i-- {
		followed := slices.ContainsFunc(e.Keys[:i], func(k TrustedKey) bool { return !k.FirstMatch.IsZero() })
		until := e.trustedUntil(i)
		if !followed && e.Keys[i].NotAfter.IsZero() && now.Before(until) {
			return e.Keys[i-1].AddedAt, true
		}
	}
	return time.Time{}, false
}

// Trusts reports whether a version verifies at now.
func (e Endpoint) Trusts(v KeyVersion, now time.Time) bool {
	return slices.Contains(e.Trusted(now), v)
}

// WithFirstMatch returns the endpoint with the first match of a version noted.
// False means that there is nothing to note.
func (e Endpoint) WithFirstMatch(v KeyVersion, now time.Time) (Endpoint, bool) {
	for i, k := range e.Keys {
		if k.Version == v && k.FirstMatch.IsZero() {
			e.Keys = slices.Clone(e.Keys)
			e.Keys[i].FirstMatch = now
			return e, true
		}
	}
	return e, false
}

// Add returns the endpoint with a version as its newest key. False means that
// the version is known already, was retired, or that the list is full: an older
// one must be retired first, so that no key in use is dropped by surprise.
func (e Endpoint) Add(k TrustedKey) (Endpoint, bool) {
	if e.Knows(k.Version) || len(e.Keys) >= KeysMax {
		return e, false
	}
	e.Keys = append([]TrustedKey{k}, e.Keys...)
	return e, true
}

// Knows reports whether a version is or was listed: one that no longer verifies
// does not come back by being the secret store's current one.
func (e Endpoint) Knows(v KeyVersion) bool {
	listed := slices.ContainsFunc(e.Keys, func(k TrustedKey) bool { return k.Version == v })
	return listed || slices.Contains(e.Retired, v)
}

// Retire returns the endpoint without a version, which is never trusted again.
// What had ended because of that version stays ended: an older key that was over
// does not come back when the one that followed it goes. False means that the
// endpoint does not list the version.
func (e Endpoint) Retire(v KeyVersion, now time.Time) (Endpoint, bool) {
	i := slices.IndexFunc(e.Keys, func(k TrustedKey) bool { return k.Version == v })
	if i < 0 {
		return e, false
	}
	keys := slices.Clone(e.Keys)
	for j := i + 1; j < len(keys); j++ {
		if until := e.trustedUntil(j); !until.IsZero() && !now.Before(until) {
			keys[j].NotAfter = until
		}
	}
	e.Keys = slices.Delete(keys, i, i+1)
	e.Retired = append(slices.Clone(e.Retired), v)
	return e, true
}

// Finish returns the endpoint with trust in every version but the newest ended at
// now. Unlike a retired one, such a version stays listed. False means that none
// of them is trusted any more.
func (e Endpoint) Finish(now time.Time) (Endpoint, bool) {
	keys := slices.Clone(e.Keys)
	ended := false
	for i := 1; i < len(keys); i++ {
		if e.Trusts(keys[i].Version, now) {
			keys[i].NotAfter, ended = now, true
		}
	}
	e.Keys = keys
	return e, ended
}
