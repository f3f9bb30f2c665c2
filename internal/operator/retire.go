package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dakghar/internal/webhook"
)

// Retirement is the end of trust in a key, planned or done.
type Retirement struct {
	Endpoint webhook.EndpointID
	Version  webhook.KeyVersion
	// Warnings say what speaks against it.
	Warnings []string
	// Existed is set when it was retired before.
	Existed bool
	// LabelKept is set when the secret store could not be told. Trust ended all
	// the same; the version stays in the store until retire is run again.
	LabelKept bool
}

// RetireWithin is how long it takes until every process refuses a retired key:
// the age at which endpoints are read again.
const RetireWithin = 30 * time.Second

// PlanRetire resolves a version, by its id or the beginning of it, and says what
// speaks against retiring it. Where anything does, a planned retirement is
// refused, as still_in_use; an emergency is not, and asks nothing of the inbox.
func (o *Operator) PlanRetire(ctx context.Context, id webhook.EndpointID, version string, emergency bool) (Retirement, error) {
	e, err := o.endpoint(ctx, id)
	if err != nil {
		return Retirement{}, err
	}
	keys := keysOf(e, o.Now())
	key, err := resolve(e, keys, version)
	if err != nil {
		return Retirement{}, err
	}
	plan := Retirement{Endpoint: id, Version: key.Version, Existed: key.Trust == Retired}
	if plan.Existed {
		return plan, nil
	}
	if emergency {
		plan.Warnings = warnings(keys, key.Version, o.Now())
		return plan, nil
	}
	if err := o.countMatches(ctx, e, keys); err != nil {
		plan.Warnings = append(plan.Warnings, "the inbox cannot be read, so it is not known what still signs with this key")
	}
	plan.Warnings = append(plan.Warnings, warnings(keys, key.Version, o.Now())...)
	if len(plan.Warnings) > 0 {
		return plan, refuse("still_in_use", fmt.Sprintf("nothing was retired: %s", strings.Join(plan.Warnings, "; and ")),
			run("see what signs with which key:", "secret", "list", "--endpoint", string(id)),
			run("a planned change adds the next key first, and ends this one when that matches:", "secret", "finish", "--endpoint", string(id)),
			run("if it leaked, end it at once, whatever is refused then:", "secret", "retire", "--endpoint", string(id), "--version", string(key.Version), "--now"))
	}
	return plan, nil
}

// resolve finds the one key that a version or its beginning names.
func resolve(e webhook.Endpoint, keys []Key, version string) (Key, error) {
	var found []Key
	for _, k := range keys {
		if string(k.Version) == version {
			return k, nil
		}
		if version != "" && strings.HasPrefix(string(k.Version), version) {
			found = append(found, k)
		}
	}
	list := run("see its versions:", "secret", "list", "--endpoint", string(e.ID))
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Key{}, refuse("version_unknown", fmt.Sprintf("endpoint %s has no key version %q", e.ID, version), list)
	}
	return Key{}, refuse("version_ambiguous", fmt.Sprintf("%d key versions of endpoint %s begin with %q", len(found), e.ID, version), list)
}

func warnings(keys []Key, version webhook.KeyVersion, now time.Time) []string {
	var (
		self, last, newest Key
		others             int
		say                []string
	)
	for _, k := range keys {
		switch {
		case k.Version == version:
			self = k
		case k.Trust == Trusted:
			others++
		}
		if k.Newest {
			newest = k
		}
		if k.LastMatch.After(last.LastMatch) {
			last = k
		}
	}
	if self.Trust == Trusted && others == 0 {
		say = append(say, "it is the only trusted key: every request will be refused until another is put")
	}
	if self.Matches > 0 && last.Version == version {
		say = append(say, fmt.Sprintf("the newest event, received %s ago, was signed with it", now.Sub(self.LastMatch).Round(time.Second)))
	}
	if others > 0 && !self.Newest && newest.FirstMatch.IsZero() {
		say = append(say, fmt.Sprintf("the newest key, %s, has not matched yet: the provider may not sign with it", newest.Version))
	}
	return say
}

// Retire ends trust in a version, by its whole id: in the registry first, which
// is what the front door reads, then in the secret store.
func (o *Operator) Retire(ctx context.Context, id webhook.EndpointID, version webhook.KeyVersion, why string) (Retirement, error) {
	done := Retirement{Endpoint: id, Version: version}
	act, err := o.act(ctx, "secret retire", "endpoint "+string(id)+" version "+string(version), why)
	if err != nil {
		return done, err
	}
	e, err := o.change(ctx, id, act, func(now webhook.Endpoint) (webhook.Endpoint, bool, error) {
		to, ok := now.Retire(version, o.Now())
		if !ok && !now.Knows(version) {
			_, err := resolve(now, keysOf(now, o.Now()), string(version))
			return now, false, err
		}
		done.Existed = !ok
		return to, !ok, nil
	})
	if err != nil {
		return done, err
	}
	done.LabelKept = o.Secrets.Retire(ctx, e, version) != nil
	return done, nil
}

// LetIn says how the events that a key let in are found and held.
func LetIn(id webhook.EndpointID, version webhook.KeyVersion) []Step {
	by := []string{"--endpoint", string(id), "--matched-secret-version", string(version), "--since", "720h"}
	return []Step{
		run("see what it let in, and compare it with the provider's own list:", append([]string{"inbox", "list"}, append(by, "--limit", "100000")...)...),
		run("take what is not worked on yet out of the work until you have looked:", append([]string{"inbox", "hold", "--all"}, append(by, "--reason", "leaked key")...)...),
	}
}

// Finished is a rotation that is over.
type Finished struct {
	Endpoint webhook.EndpointID
	// Newest is the key that is trusted; Ended are those whose overlap was ended.
	Newest webhook.KeyVersion
	Ended  []webhook.KeyVersion
	// Warnings say what speaks against it.
	Warnings []string
	// Existed is set when no other key was trusted before.
	Existed bool
}

// PlanFinish says which keys would end, and what speaks against it. It is refused
// while the newest key has not matched: the provider may not sign with it.
func (o *Operator) PlanFinish(ctx context.Context, id webhook.EndpointID) (Finished, error) {
	e, err := o.endpoint(ctx, id)
	if err != nil {
		return Finished{}, err
	}
	plan, err := o.mayFinish(e)
	if err != nil || plan.Existed {
		return plan, err
	}
	keys := keysOf(e, o.Now())
	if err := o.countMatches(ctx, e, keys); err != nil {
		plan.Warnings = append(plan.Warnings, "the inbox cannot be read, so it is not known what still signs with the older key")
	}
	for _, k := range keys {
		if slices.Contains(plan.Ended, k.Version) && k.LastMatch.After(keys[0].FirstMatch) {
			plan.Warnings = append(plan.Warnings, fmt.Sprintf("an event received %s ago was signed with %s, after the newest key first matched", o.Now().Sub(k.LastMatch).Round(time.Second), k.Version))
		}
	}
	return plan, nil
}

// mayFinish refuses to end what the newest key does not follow yet.
func (o *Operator) mayFinish(e webhook.Endpoint) (Finished, error) {
	f := Finished{Endpoint: e.ID, Existed: true}
	now := o.Now()
	for i, k := range e.Keys {
		switch {
		case i == 0:
			f.Newest = k.Version
		case e.Trusts(k.Version, now):
			f.Ended, f.Existed = append(f.Ended, k.Version), false
		}
	}
	id := string(e.ID)
	switch {
	case f.Newest == "" || !e.Trusts(f.Newest, now):
		return f, refuse("no_key_trusted", "endpoint "+id+" does not trust its newest key", run("to give it one:", "secret", "put", "--endpoint", id, "--secret-file", "FILE"))
	case !f.Existed && e.Keys[0].FirstMatch.IsZero():
		return f, refuse("not_matched", fmt.Sprintf("the newest key, %s, has not matched yet: the provider may still sign with the older one", f.Newest),
			say("make the provider sign with the new key; both verify until then, so nothing is refused"),
			run("see when it matches:", "secret", "list", "--endpoint", id))
	}
	return f, nil
}

// Finish ends the overlap of every key but the newest, within [RetireWithin]. The
// ended ones stay listed. Repeated, it changes nothing.
func (o *Operator) Finish(ctx context.Context, id webhook.EndpointID, why string) (Finished, error) {
	act, err := o.act(ctx, "secret finish", "endpoint "+string(id), why)
	if err != nil {
		return Finished{}, err
	}
	var f Finished
	_, err = o.change(ctx, id, act, func(e webhook.Endpoint) (webhook.Endpoint, bool, error) {
		var err error
		if f, err = o.mayFinish(e); err != nil || f.Existed {
			return e, f.Existed, err
		}
		to, _ := e.Finish(act.At)
		return to, false, nil
	})
	return f, err
}
