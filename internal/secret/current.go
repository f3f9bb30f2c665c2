package secret

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/webhook"
)

// candidate is a version that a look-up found and the endpoint did not list. It
// is remembered, since until the registry lists it every request signed with it
// comes here.
type candidate struct {
	version webhook.KeyVersion
	at      time.Time
}

// candidateFresh is how long a candidate is offered without looking again.
const candidateFresh = 10 * time.Second

// Current returns the version that the store itself calls current, for a
// request that none of the endpoint's versions verifies: somebody may have put
// a key there by other means. The caller verifies with it and reports
// [Cache.Fruitful] or [Cache.Fruitless].
//
// At most one look-up a second leaves the process, over all endpoints, and
// fewer while they are fruitless; in between, a version that was found before
// is offered again, else the error is [ErrThrottled], at once. A version that
// the endpoint trusts or has retired is [ErrNothingNew], with the version and
// no value. All other errors are those of [Cache.Secret].
func (c *Cache) Current(ctx context.Context, e webhook.Endpoint) (webhook.KeyVersion, Value, error) {
	version, value, fresh := c.remembered(e)
	if fresh {
		return version, value, nil
	}
	if !c.takePace() {
		if value.Empty() {
			return "", Value{}, ErrThrottled
		}
		return version, value, nil
	}
	found, foundValue, err := c.lookUp(ctx, e)
	if err != nil && !definite(err) && !value.Empty() {
		return version, value, nil // silence says nothing against what was found before
	}
	return found, foundValue, err
}

func (c *Cache) lookUp(ctx context.Context, e webhook.Endpoint) (webhook.KeyVersion, Value, error) {
	version, value, err := c.get(ctx, &secretsmanager.GetSecretValueInput{
		SecretId: aws.String(e.Secret), VersionStage: aws.String(stageCurrent),
	})
	if err == nil && known(e, version) {
		value, err = Value{}, ErrNothingNew
	}
	if err != nil {
		c.Fruitless()
		if definite(err) {
			c.forget(e.Secret)
		}
		return version, value, err
	}
	c.confirmed(key{secret: e.Secret, version: version}, value)
	c.remember(e.Secret, version)
	return version, value, nil
}

// Fruitful reports that a version from [Cache.Current] verified a request: the
// next look-up may come a second after the last one.
func (c *Cache) Fruitful() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace.fruitful()
}

// Fruitless reports that it did not: the time to the next look-up doubles, up
// to a minute, once per look-up.
func (c *Cache) Fruitless() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace.fruitless()
}

// known reports whether the endpoint's row already says what the version is worth.
func known(e webhook.Endpoint, v webhook.KeyVersion) bool {
	listed := func(k webhook.TrustedKey) bool { return k.Version == v }
	return slices.ContainsFunc(e.Keys, listed) || slices.Contains(e.Retired, v)
}

// remembered returns the candidate of e that can still be served, and whether
// it is young enough to be offered without another look-up.
func (c *Cache) remembered(e webhook.Endpoint) (webhook.KeyVersion, Value, bool) {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.candidates[e.Secret]
	if !ok || known(e, found.version) {
		return "", Value{}, false
	}
	k := key{secret: e.Secret, version: found.version}
	kept := c.entries[k]
	if kept == nil || kept.sealed == nil || now.Sub(kept.confirmed) >= c.cfg.Hard {
		return "", Value{}, false
	}
	kept.used, kept.servedAge = now, now.Sub(kept.confirmed)
	return found.version, ownValue(c.vault.open(k, kept.sealed)), now.Sub(found.at) < candidateFresh
}

func (c *Cache) remember(secret string, v webhook.KeyVersion) {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, replaces := c.candidates[secret]; !replaces {
		makeRoom(c.candidates, c.cfg.EntriesMax, func(o candidate) time.Time { return o.at })
	}
	c.candidates[secret] = candidate{version: v, at: now}
}

// forget drops what an earlier look-up found: the store has another current version now.
func (c *Cache) forget(secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.candidates, secret)
}

func (c *Cache) takePace() bool {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pace.take(now)
}
