package delivery

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"dakghar/internal/webhook"
)

// Subscription is one address of one partner, with what it wants to be told.
type Subscription struct {
	ID     SubscriptionID
	Tenant webhook.Tenant
	Target Target
	// Types are patterns of event types: "payment.succeeded", "payment.*", "*".
	Types []string
	// Filter narrows them further: members of the event's data that must have
	// exactly these texts, by their path: "object.currency": "EUR".
	Filter map[string]string `json:",omitempty"`
	// Calls makes this the address of calls to another service: only effects that
	// name it are delivered, with an Idempotency-Key.
	Calls bool `json:",omitempty"`
	// ProfileName names the retry profile; see [Profiles].
	ProfileName string
	// Header are further headers, not secret. Secret ones are in the secret named
	// by CredentialHeader's value's owner: the secret store.
	Header map[string]string `json:",omitempty"`
	// CredentialHeader, if set, is the header that carries the partner's credential,
	// whose text is the Secrets Manager secret Credential.
	CredentialHeader string `json:",omitempty"`
	Credential       string `json:",omitempty"`
	// Secret names the Secrets Manager secret whose versions are the signing keys.
	Secret string
	// Keys are the signing keys, newest first, at most [KeysMax].
	Keys []Key
	// Rate is how many attempts a second it gets in the long run, Burst how many at
	// once, Concurrency how many side by side in one process; 0 is no limit.
	Rate, Burst, Concurrency int `json:",omitempty"`

	State     State
	StateWhy  string    `json:",omitempty"` // why it is not active
	StateAt   time.Time `json:",omitzero"`
	CreatedAt time.Time
	// FailingSince is when attempts began to fail without one that was accepted.
	FailingSince time.Time `json:",omitzero"`
	// Unknown are settings that a newer program keeps in the row. They are written
	// back as they were read.
	Unknown map[string]json.RawMessage `json:"-"`
	// Revision is raised by every change of the row; a change is guarded by the one it read.
	Revision int64
}

// Target is where a subscription's deliveries go.
type Target struct {
	Kind TargetKind
	// URL is the https address of an HTTP target, or the queue's URL.
	URL string `json:",omitempty"`
	// Bus is the ARN of an EventBridge bus.
	Bus string `json:",omitempty"`
	// RedirectHosts are the hosts that a 307 or 308 may lead to, besides the URL's own.
	RedirectHosts []string `json:",omitempty"`
}

// Is reports whether two targets are the same.
func (t Target) Is(o Target) bool {
	return t.Kind == o.Kind && t.URL == o.URL && t.Bus == o.Bus && slices.Equal(t.RedirectHosts, o.RedirectHosts)
}

// TargetKind is a way to deliver.
type TargetKind string

// The kinds of targets.
const (
	HTTP  TargetKind = "http"
	Bus   TargetKind = "eventbridge"
	Queue TargetKind = "sqs"
)

// State says whether a subscription is served.
type State string

// The states of a subscription.
const (
	Active State = "active"
	// Paused: deliveries are made and wait, by an operator or after days of failure.
	Paused State = "paused"
	// Draining: deliveries that were made before go out, later ones are made and
	// wait. With nothing left from before it is the same as paused.
	Draining State = "draining"
	// Stopped: nothing more is delivered; the partner said so with 410, or an
	// operator deleted it.
	Stopped State = "stopped"
)

// KeysMax bounds the keys that sign at once.
const KeysMax = 2

// Key is one signing key of a subscription.
type Key struct {
	// ID is told to the partner with every signature: 1 to 40 letters, digits,
	// hyphens and underscores.
	ID      string
	Version webhook.KeyVersion // of the Secrets Manager secret
	AddedAt time.Time
	// NotAfter is when the key no longer signs; zero for the newest.
	NotAfter time.Time `json:",omitzero"`
}

// Signing returns the keys that sign at now, the newest first.
func (s Subscription) Signing(now time.Time) []Key {
	return slices.DeleteFunc(slices.Clone(s.Keys), func(k Key) bool {
		return !k.NotAfter.IsZero() && !now.Before(k.NotAfter)
	})
}

// Rotate returns the subscription with a new key. The previous one signs beside
// it for as long as a retry may still be under way.
func (s Subscription) Rotate(k Key, now time.Time) Subscription {
	keys := []Key{k}
	for _, old := range s.Signing(now) {
		if len(keys) < KeysMax && old.Version != k.Version {
			if end := now.Add(s.Profile().Deadline); old.NotAfter.IsZero() || old.NotAfter.After(end) {
				old.NotAfter = end
			}
			keys = append(keys, old)
		}
	}
	s.Keys = keys
	return s
}

// Profile returns the subscription's profile; the default one where its name is
// not known any more.
func (s Subscription) Profile() Profile {
	if p, ok := ProfileNamed(s.ProfileName); ok {
		return p
	}
	p, _ := ProfileNamed(Standard)
	return p
}

// Wants reports whether an effect is for this subscription. members are the
// texts of the event's data by path.
func (s Subscription) Wants(e webhook.Effect, member func(path string) (string, bool)) bool {
	if s.State == Stopped || s.Tenant != e.Tenant {
		return false
	}
	if e.Call != "" || s.Calls {
		return string(s.ID) == e.Call && (s.Calls || e.Type == TestType)
	}
	if !s.WantsType(e.Type) {
		return false
	}
	for at, want := range s.Filter {
		if text, ok := member(at); !ok || text != want {
			return false
		}
	}
	return true
}

// TestType is the type of an event that an operator sends to one subscription, to
// see that it arrives. It names the subscription in place of matching a pattern.
const TestType = "dakghar.test"

// Holds reports whether the subscription's state keeps a delivery waiting.
func (s Subscription) Holds(d Delivery) bool {
	return s.State == Paused || s.State == Draining && d.CreatedAt.After(s.StateAt)
}

// WantsType reports whether one of the patterns matches an event type.
func (s Subscription) WantsType(t string) bool {
	return slices.ContainsFunc(s.Types, func(pattern string) bool { return matchesType(pattern, t) })
}

// matchesType matches * against any run of characters.
func matchesType(pattern, t string) bool {
	if pattern == "*" {
		return true
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "."), t)
	return ok && err == nil
}

// Stop returns the subscription as its partner, or an operator, has ended it.
func (s Subscription) Stop(why string, now time.Time) Subscription {
	s.State, s.StateWhy, s.StateAt = Stopped, why, now
	return s
}

// FailingMax is how long attempts may fail, without one that is accepted, before
// a subscription is paused by itself.
const FailingMax = 5 * 24 * time.Hour

// Judged returns the subscription after an attempt, and whether that changes it:
// the first failure begins a count of days, an acceptance ends it, and a count
// that is too long pauses the subscription.
func (s Subscription) Judged(accepted bool, now time.Time) (Subscription, bool) {
	switch {
	case accepted && !s.FailingSince.IsZero():
		s.FailingSince = time.Time{}
		return s, true
	case accepted:
		return s, false
	case s.FailingSince.IsZero():
		s.FailingSince = now
		return s, true
	case s.State == Active && now.Sub(s.FailingSince) >= FailingMax:
		s.State, s.StateWhy, s.StateAt = Paused, "failing", now
		return s, true
	}
	return s, false
}
