package operator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Trust is what a key version is worth at an endpoint.
type Trust string

// The grades of trust.
const (
	Trusted Trust = "trusted" // it verifies
	Ended   Trust = "ended"   // it is listed, and its overlap is over
	Retired Trust = "retired" // it must never verify again
)

// Key is one version of an endpoint's secret, without its value.
type Key struct {
	Version webhook.KeyVersion
	Trust   Trust
	Newest  bool
	// Adopted marks one that was put into the secret store by other means.
	Adopted                           bool
	AddedAt, FirstMatch, TrustedUntil time.Time // zero where there is none
	// Matches counts the events that it signed among the newest [MatchesLooked];
	// LastMatch is the newest of them. Only [Operator.Keys] looks.
	Matches   int
	LastMatch time.Time
}

// keysOf lists the endpoint's keys, newest first, then those that were retired.
func keysOf(e webhook.Endpoint, now time.Time) []Key {
	keys := make([]Key, 0, len(e.Keys)+len(e.Retired))
	for i, k := range e.Keys {
		trust := Ended
		if e.Trusts(k.Version, now) {
			trust = Trusted
		}
		keys = append(keys, Key{
			Version: k.Version, Trust: trust, Newest: i == 0, Adopted: k.Adopted,
			AddedAt: k.AddedAt, FirstMatch: k.FirstMatch, TrustedUntil: trustedUntil(e, k),
		})
	}
	for _, v := range e.Retired {
		keys = append(keys, Key{Version: v, Trust: Retired})
	}
	return keys
}

// trustedUntil returns when trust in a key ends, zero for never. The rule is the
// endpoint's own: here are only the moments at which its answer can change.
func trustedUntil(e webhook.Endpoint, k webhook.TrustedKey) time.Time {
	moments := []time.Time{k.NotAfter}
	for _, other := range e.Keys {
		moments = append(moments, other.AddedAt.Add(webhook.OverlapMax), other.FirstMatch.Add(e.Overlap))
	}
	slices.SortFunc(moments, time.Time.Compare)
	for _, at := range moments {
		if !e.Trusts(k.Version, at) {
			return at
		}
	}
	return time.Time{}
}

// MatchesLooked and matchesSince bound how far [Operator.Keys] looks for matches.
const (
	MatchesLooked = 200
	matchesSince  = 7 * 24 * time.Hour
)

// Keys returns the endpoint's keys with their matches among its newest events.
func (o *Operator) Keys(ctx context.Context, id webhook.EndpointID) ([]Key, error) {
	e, err := o.endpoint(ctx, id)
	if err != nil {
		return nil, err
	}
	keys := keysOf(e, o.Now())
	return keys, o.countMatches(ctx, e, keys)
}

func (o *Operator) countMatches(ctx context.Context, e webhook.Endpoint, keys []Key) error {
	looked := 0
	now := o.Now()
	for row, err := range o.Inbox.RecentInbox(ctx, e.ID, now.Add(-matchesSince), now.Add(clockAhead)) {
		if err != nil {
			return unreachable("the inbox", err)
		}
		if row.Canary() {
			continue
		}
		if at := slices.IndexFunc(keys, func(k Key) bool { return k.Version == row.MatchedVersion }); at >= 0 {
			keys[at].Matches++
			if row.ReceivedAt.After(keys[at].LastMatch) {
				keys[at].LastMatch = row.ReceivedAt
			}
		}
		if looked++; looked == MatchesLooked {
			break
		}
	}
	return nil
}

// Added is a key that the endpoint trusts now.
type Added struct {
	Endpoint webhook.Endpoint
	Version  webhook.KeyVersion
	// Existed is set when it was the newest key before.
	Existed bool
	Next    []Step
}

// Rotate adds a key beside those in use; both are trusted until the overlap
// after the new one's first match. Repeated, it changes nothing.
func (o *Operator) Rotate(ctx context.Context, id webhook.EndpointID, s Secret, why string) (Added, error) {
	return o.addKey(ctx, "secret rotate", id, s, why)
}

// PutFirst gives a key to an endpoint that trusts none, after every key was
// retired. Repeated, it changes nothing.
func (o *Operator) PutFirst(ctx context.Context, id webhook.EndpointID, s Secret, why string) (Added, error) {
	return o.addKey(ctx, "secret put", id, s, why)
}

func (o *Operator) addKey(ctx context.Context, name string, id webhook.EndpointID, s Secret, why string) (Added, error) {
	e, err := o.endpoint(ctx, id)
	if err != nil {
		return Added{}, err
	}
	adapter, err := o.adapter(e.Provider)
	if err != nil {
		return Added{}, err
	}
	if err := checkSecret(adapter, s); err != nil {
		return Added{}, err
	}
	at, err := o.find(ctx, e, s)
	if err != nil {
		return Added{}, err
	}
	if at.version == "" {
		if err := o.mayAdd(name, e); err != nil {
			return Added{}, err
		}
		act, err := o.act(ctx, name, "endpoint "+string(id), why)
		if err != nil {
			return Added{}, err
		}
		return o.storeKey(ctx, adapter, e, s, act)
	}
	if !at.newest {
		return Added{}, notAgain(e, at)
	}
	return Added{Endpoint: e, Version: at.version, Existed: true, Next: o.afterAdding(adapter, e)}, nil
}

// mayAdd refuses what the endpoint's list has no place for.
func (o *Operator) mayAdd(name string, e webhook.Endpoint) error {
	trusted := e.Trusted(o.Now())
	switch id := string(e.ID); {
	case name == "secret put" && len(trusted) > 0:
		return refuse("key_trusted", "endpoint "+id+" trusts a key already",
			run("to add another beside it:", "secret", "rotate", "--endpoint", id, "--secret-file", "FILE"))
	case name == "secret rotate" && len(trusted) == 0:
		return refuse("no_key_trusted", "endpoint "+id+" trusts no key, so there is nothing to rotate from",
			run("to give it one:", "secret", "put", "--endpoint", id, "--secret-file", "FILE"))
	case len(e.Keys) >= webhook.KeysMax:
		return refuse("keys_full", fmt.Sprintf("endpoint %s lists %d keys, and more are not tried", id, len(e.Keys)),
			run("see which are in use:", "secret", "list", "--endpoint", id),
			run("retire one:", "secret", "retire", "--endpoint", id, "--version", string(e.Keys[len(e.Keys)-1].Version)))
	}
	return nil
}

// storeKey writes the value first and then the list: a key that is listed can be fetched.
func (o *Operator) storeKey(ctx context.Context, a *provider.Adapter, e webhook.Endpoint, s Secret, act webhook.Act) (Added, error) {
	version, err := o.storeValue(ctx, e, s)
	if err != nil {
		return Added{}, err
	}
	e, err = o.change(ctx, e.ID, act, func(now webhook.Endpoint) (webhook.Endpoint, bool, error) {
		if slices.ContainsFunc(now.Keys, func(k webhook.TrustedKey) bool { return k.Version == version }) {
			return now, true, nil
		}
		to, ok := now.Add(webhook.TrustedKey{Version: version, AddedAt: act.At})
		if !ok {
			return now, false, refuse("keys_full", "endpoint "+string(now.ID)+" has no place for another key any more",
				run("see which are in use:", "secret", "list", "--endpoint", string(now.ID)))
		}
		return to, false, nil
	})
	if err != nil {
		return Added{}, err
	}
	return Added{Endpoint: e, Version: version, Next: o.afterAdding(a, e)}, nil
}

// tokenTries bounds how many abandoned rotations in a row are stepped over.
const tokenTries = 8

// storeValue puts the value under the first token that is free or has it. A
// token with another value is left from a rotation that somebody abandoned.
func (o *Operator) storeValue(ctx context.Context, e webhook.Endpoint, s Secret) (webhook.KeyVersion, error) {
	next := len(e.Keys) + len(e.Retired) + 1
	for n := next; n < next+tokenTries; n++ {
		token := keyToken(e.ID, n)
		if e.Knows(webhook.KeyVersion(token)) {
			continue
		}
		version, err := o.Secrets.Put(ctx, e, s, token)
		if errors.Is(err, ErrNoVersion) {
			version, err = o.Secrets.Create(ctx, e, s, token)
		}
		switch {
		case err == nil:
			return version, nil
		case !errors.Is(err, ErrOtherSecret):
			return "", unreachable("the secret store", err)
		}
	}
	return "", refuse("tokens_taken", fmt.Sprintf("the secret %s holds %d versions of rotations that were never finished", e.Secret, tokenTries),
		say("finish one of them by running rotate with its secret"))
}

// keyToken names the n-th key of an endpoint. It says nothing about the secret:
// version ids stand in rows and logs, where a digest would let a reader try out
// guesses of a weak secret. It is the same on every run, so that a repeated
// command finds what it had written.
func keyToken(id webhook.EndpointID, n int) string {
	sum := sha256.Sum256([]byte("dakghar key\x00" + string(id) + "\x00" + strconv.Itoa(n)))
	return fmt.Sprintf("k%d-%s", n, strings.ToLower(base32.StdEncoding.EncodeToString(sum[:25])))
}

// place is where a secret stands in an endpoint's lists.
type place struct {
	version webhook.KeyVersion // empty: nowhere
	trusted bool               // it is listed and not retired
	newest  bool
}

// find looks for a secret among the endpoint's versions, retired ones too. Two
// texts that decode to one key are one secret.
func (o *Operator) find(ctx context.Context, e webhook.Endpoint, s Secret) (place, error) {
	adapter, err := o.adapter(e.Provider)
	if err != nil {
		return place{}, err
	}
	same := func(text string) bool {
		a, errA := adapter.Scheme.DecodeKey(text)
		b, errB := adapter.Scheme.DecodeKey(s.Reveal())
		return errA == nil && errB == nil && bytes.Equal(a, b)
	}
	for _, k := range keysOf(e, o.Now()) {
		value, err := o.Secrets.Value(ctx, e, k.Version)
		if errors.Is(err, ErrNoVersion) {
			continue
		}
		if err != nil {
			return place{}, unreachable("the secret store", err)
		}
		if same(value.Reveal()) {
			return place{version: k.Version, trusted: k.Trust != Retired, newest: k.Newest}, nil
		}
	}
	return place{}, nil
}

func notAgain(e webhook.Endpoint, at place) error {
	if !at.trusted {
		return refuse("secret_retired", fmt.Sprintf("this secret was retired at endpoint %s, as version %s, and is never trusted again", e.ID, at.version),
			say("have the provider make a new one"))
	}
	return refuse("secret_listed", fmt.Sprintf("endpoint %s lists this secret already, as version %s, and a newer one beside it", e.ID, at.version),
		run("see its keys:", "secret", "list", "--endpoint", string(e.ID)))
}

func (o *Operator) afterAdding(a *provider.Adapter, e webhook.Endpoint) []Step {
	id := string(e.ID)
	steps := []Step{
		say("the front door knows the new key within 30 s; make " + a.Title + " sign with it after that"),
		run("then see that it matches:", "secret", "list", "--endpoint", id),
	}
	if len(e.Keys) > 1 {
		previous := string(e.Keys[1].Version)
		steps = append(steps,
			say(fmt.Sprintf("the previous key stays trusted until %s after the new one's first match", Span(e.Overlap))),
			run("end it sooner, once nothing is signed with it:", "secret", "retire", "--endpoint", id, "--version", previous))
	}
	return steps
}
