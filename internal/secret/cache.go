package secret

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"golang.org/x/sync/singleflight"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Getter is the one call that reading needs.
type Getter interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Config is what a [Cache] is built from. Zero durations and counts take the
// defaults named beside them.
type Config struct {
	Client Getter
	// Now is the clock for ages and pauses; time.Now when nil.
	Now func() time.Time
	// Rand feeds the sealing key and its nonces; crypto/rand when nil.
	Rand io.Reader
	// Soft is the age from which a use asks for confirmation: 5 minutes.
	Soft time.Duration
	// Hard is the age from which nothing is served: 1 hour.
	Hard time.Duration
	// CallTimeout bounds each call to the store, the SDK's own retries included: 300 ms.
	CallTimeout time.Duration
	// EntriesMax bounds the versions kept: 4,096.
	EntriesMax int
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default of the argument
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	c.Soft = or(c.Soft, 5*time.Minute)
	c.Hard = or(c.Hard, time.Hour)
	c.CallTimeout = or(c.CallTimeout, 300*time.Millisecond)
	c.EntriesMax = or(c.EntriesMax, 4096)
	return c
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// Cache serves the values of key versions. It is safe for concurrent use.
type Cache struct {
	cfg   Config
	vault *vault
	calls singleflight.Group // by key

	mu         sync.Mutex // guards what follows; never held over a call
	entries    map[key]*entry
	allowances map[string]*allowance // by secret name
	candidates map[string]candidate  // by secret name
	pace       pace
}

// key is the place of a value: a version of a named secret.
type key struct {
	secret  string
	version webhook.KeyVersion
}

// String is unambiguous: Secrets Manager allows no colon in a version id.
func (k key) String() string { return string(k.version) + ":" + k.secret }

// entry is what is known of one version: a sealed value, a failure, or both
// while the store is silent.
type entry struct {
	sealed    []byte    // nil while there is none to serve
	confirmed time.Time // when the store last said yes
	used      time.Time
	servedAge time.Duration // the age at which it was last served

	failures int
	retryAt  time.Time // no call before this
	err      error     // what the last call came to; nil after a yes
}

// New returns an empty cache.
func New(cfg Config) *Cache {
	cfg = cfg.withDefaults()
	return &Cache{
		cfg:        cfg,
		vault:      newVault(cfg.Rand),
		entries:    map[key]*entry{},
		allowances: map[string]*allowance{},
		candidates: map[string]candidate{},
		pace:       pace{interval: paceMin},
	}
}

// Format prints [redacted]: the cache's insides are nobody's to see.
func (c *Cache) Format(f fmt.State, _ rune) { redact(f) }

// Secret returns the value of one version of the endpoint's secret. It does not
// ask whether the endpoint trusts that version. Errors are of kind ours:
// [ErrNoVersion], [ErrEmpty], [ErrThrottled], or what became of the call.
func (c *Cache) Secret(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) (Value, error) {
	k := key{secret: e.Secret, version: v}
	found := c.look(k)
	switch {
	case found.have && found.call:
		c.start(ctx, k) // in the background; whatever comes of it, this answer stands
		return found.value, nil
	case found.have:
		return found.value, nil
	case found.call:
		return c.await(ctx, c.start(ctx, k))
	}
	return Value{}, found.err
}

// finding is what the cache says about a version now.
type finding struct {
	value Value
	have  bool  // value may be served
	call  bool  // the store should be asked
	err   error // why neither
}

func (c *Cache) look(k key) finding {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[k]
	if e == nil {
		return finding{call: true}
	}
	e.used = now
	age := now.Sub(e.confirmed)
	mayCall := !now.Before(e.retryAt)
	if e.sealed != nil && age < c.cfg.Hard {
		e.servedAge = age
		return finding{value: ownValue(c.vault.open(k, e.sealed)), have: true, call: age >= c.cfg.Soft && mayCall}
	}
	e.sealed, e.servedAge = nil, 0
	if mayCall {
		return finding{call: true}
	}
	return finding{err: e.err}
}

// start joins the call for k, or begins one that outlives the caller.
func (c *Cache) start(ctx context.Context, k key) <-chan singleflight.Result {
	ctx = context.WithoutCancel(ctx)
	return c.calls.DoChan(k.String(), func() (any, error) { return c.fetch(ctx, k) })
}

func (c *Cache) await(ctx context.Context, call <-chan singleflight.Result) (Value, error) {
	select {
	case r := <-call:
		value, _ := r.Val.(Value)
		return value, r.Err
	case <-ctx.Done():
		return Value{}, storeFault("GetSecretValue", ctx.Err())
	}
}

// fetch is the one call at a time for k.
func (c *Cache) fetch(ctx context.Context, k key) (Value, error) {
	// Who looked before the previous call ended and joined after it needs no call of his own.
	if now := c.look(k); !now.call {
		return now.value, now.err
	}
	if !c.spend(k.secret) {
		return Value{}, ErrThrottled
	}
	value, frozen, err := c.read(ctx, k)
	if frozen {
		value, _, err = c.read(ctx, k)
	}
	if err != nil {
		c.failed(k, err)
		return Value{}, err
	}
	c.confirmed(k, value)
	return value, nil
}

// read makes one call for k. Frozen means that the process stood still during
// it, as Lambda lets it between two requests: the time that ran out says nothing
// of the store, and must not be remembered against it.
func (c *Cache) read(ctx context.Context, k key) (value Value, frozen bool, err error) {
	began := c.cfg.Now()
	version, value, err := c.get(ctx, &secretsmanager.GetSecretValueInput{
		SecretId: aws.String(k.secret), VersionId: aws.String(string(k.version)),
	})
	switch {
	case err != nil:
		return Value{}, !definite(err) && c.cfg.Now().Sub(began) > 2*c.cfg.CallTimeout, err
	case version != k.version:
		return Value{}, false, fault.New(fault.Ours, "secret_other_version", nil)
	}
	return value, false, nil
}

// get makes one bounded call.
func (c *Cache) get(ctx context.Context, in *secretsmanager.GetSecretValueInput) (webhook.KeyVersion, Value, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	return getValue(ctx, c.cfg.Client, in)
}

func getValue(ctx context.Context, client Getter, in *secretsmanager.GetSecretValueInput) (webhook.KeyVersion, Value, error) {
	out, err := client.GetSecretValue(ctx, in)
	switch {
	case gone(err):
		return "", Value{}, ErrNoVersion
	case err != nil:
		return "", Value{}, storeFault("GetSecretValue", err)
	}
	value := ownValue(out.SecretBinary)
	if out.SecretString != nil {
		value = ownValue([]byte(*out.SecretString))
	}
	if value.Empty() {
		return "", Value{}, ErrEmpty
	}
	return webhook.KeyVersion(aws.ToString(out.VersionId)), value, nil
}

func (c *Cache) confirmed(k key, value Value) {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(k, now)
	e.sealed, e.confirmed, e.servedAge = c.vault.seal(k, value.borrow()), now, 0
	e.failures, e.retryAt, e.err = 0, time.Time{}, nil
	c.refund(k.secret)
}

// failed remembers a failure. Only a definite answer takes the value away.
func (c *Cache) failed(k key, err error) {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(k, now)
	longest := retrySilentMax
	if definite(err) {
		e.sealed, e.servedAge = nil, 0
		longest = retryAbsentMax
	}
	e.err = err
	e.retryAt = now.Add(min(retryMin<<min(e.failures, 10), longest))
	e.failures++
}

// Pauses between calls for one version that failed. A silent store is asked
// again soon, so that its return is noticed; one that said no is asked about as
// often as the registry row is read anew.
const (
	retryMin       = 250 * time.Millisecond
	retrySilentMax = 4 * time.Second
	retryAbsentMax = 30 * time.Second
)

// entry returns the entry for k, making room for it. Callers hold the lock.
func (c *Cache) entry(k key, now time.Time) *entry {
	if e := c.entries[k]; e != nil {
		return e
	}
	makeRoom(c.entries, c.cfg.EntriesMax, func(e *entry) time.Time { return e.used })
	e := &entry{used: now}
	c.entries[k] = e
	return e
}

// makeRoom drops the item with the earliest time once m is full. It looks at
// all of them, which is little beside the network call that precedes it.
func makeRoom[K comparable, V any](m map[K]V, most int, when func(V) time.Time) {
	if len(m) < most {
		return
	}
	var oldest K
	var at time.Time
	first := true
	for k, v := range m {
		if t := when(v); first || t.Before(at) {
			oldest, at, first = k, t, false
		}
	}
	delete(m, oldest)
}

// Age returns how long ago the store last confirmed a version that would be
// served now; zero where there is none.
func (c *Cache) Age(e webhook.Endpoint, v webhook.KeyVersion) time.Duration {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.entries[key{secret: e.Secret, version: v}]
	if found == nil || found.sealed == nil || now.Sub(found.confirmed) >= c.cfg.Hard {
		return 0
	}
	return now.Sub(found.confirmed)
}

// Oldest returns the greatest age at which any value was last served. It stays
// under the soft age and a little while the store answers, and rises to the
// hard age during an outage. Values that nobody uses do not count.
func (c *Cache) Oldest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var oldest time.Duration
	for _, e := range c.entries {
		oldest = max(oldest, e.servedAge)
	}
	return oldest
}
