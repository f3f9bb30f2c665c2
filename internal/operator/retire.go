package operator

import (
	"context"
	"fmt"
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
// speaks against retiring it.
func (o *Operator) PlanRetire(ctx context.Context, id webhook.EndpointID, version string) (Retirement, error) {
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
	if err := o.countMatches(ctx, e, keys); err != nil {
		// An emergency must not wait for the inbox.
		plan.Warnings = append(plan.Warnings, "the inbox cannot be read, so it is not known what still signs with this key")
	}
	plan.Warnings = append(plan.Warnings, warnings(keys, key.Version, o.Now())...)
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
