package secret

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"golang.org/x/sync/singleflight"
)

// Named reads plain secrets by their names: credentials for the APIs of
// providers, of which the store's current version is the one that counts. It is
// safe for concurrent use.
//
// A value is read again once it is older than [Config.Soft], so that a new
// credential is used within that time. While the store is silent, the value
// serves to its hard age; a definite no takes it away at once. Values rest sealed
// like those of a [Cache], and a failed call is not repeated before a pause.
type Named struct {
	cfg   Config
	vault *vault
	calls singleflight.Group // by name

	mu      sync.Mutex // guards entries; never held over a call
	entries map[string]*entry
}

// NewNamed returns a reader that has read nothing yet.
func NewNamed(cfg Config) *Named {
	cfg = cfg.withDefaults()
	return &Named{cfg: cfg, vault: newVault(cfg.Rand), entries: map[string]*entry{}}
}

// Format prints [redacted].
func (n *Named) Format(f fmt.State, _ rune) { redact(f) }

// Text returns the present value of the secret of a name. Errors are of kind
// ours: [ErrNoVersion], [ErrEmpty], or what became of the call.
func (n *Named) Text(ctx context.Context, name string) (string, error) {
	return n.text(ctx, name, n.cfg.Soft)
}

// newestAge bounds how often one process asks for a secret that somebody refuses.
const newestAge = 30 * time.Second

// Newest is [Named.Text], read again once it is older than half a minute: for a
// value that was just refused.
func (n *Named) Newest(ctx context.Context, name string) (string, error) {
	return n.text(ctx, name, min(newestAge, n.cfg.Soft))
}

func (n *Named) text(ctx context.Context, name string, soft time.Duration) (string, error) {
	value, fresh, err := n.look(name, soft)
	if fresh || err != nil {
		return string(value.borrow()), err
	}
	call := n.calls.DoChan(name, func() (any, error) { return n.fetch(context.WithoutCancel(ctx), name, soft) })
	select {
	case r := <-call:
		got, _ := r.Val.(Value)
		return string(got.borrow()), r.Err
	case <-ctx.Done():
		return "", storeFault("GetSecretValue", ctx.Err())
	}
}

// look returns what may be served without asking the store; fresh is false and
// err nil where it should be asked.
func (n *Named) look(name string, soft time.Duration) (value Value, fresh bool, err error) {
	now := n.cfg.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.entries[name]
	if e == nil {
		return Value{}, false, nil
	}
	e.used = now
	age := now.Sub(e.confirmed)
	pausing := now.Before(e.retryAt)
	if e.sealed != nil && age < n.cfg.Hard && (age < soft || pausing) {
		return ownValue(n.vault.open(key{secret: name}, e.sealed)), true, nil
	}
	if pausing {
		return Value{}, false, e.err
	}
	return Value{}, false, nil
}

// fetch is the one call at a time for a name.
func (n *Named) fetch(ctx context.Context, name string, soft time.Duration) (Value, error) {
	// Who looked before the previous call ended and joined after it needs no call of his own.
	if value, fresh, err := n.look(name, soft); fresh || err != nil {
		return value, err
	}
	bounded, cancel := context.WithTimeout(ctx, n.cfg.CallTimeout)
	defer cancel()
	_, value, err := getValue(bounded, n.cfg.Client, &secretsmanager.GetSecretValueInput{
		SecretId: aws.String(name), VersionStage: aws.String(stageCurrent),
	})
	if err != nil {
		return n.failed(name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.entry(name)
	e.sealed, e.confirmed = n.vault.seal(key{secret: name}, value.borrow()), e.used
	e.failures, e.retryAt, e.err = 0, time.Time{}, nil
	return value, nil
}

// failed remembers a failure, and returns the older value where that may still serve.
func (n *Named) failed(name string, err error) (Value, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.entry(name)
	longest := retrySilentMax
	if definite(err) {
		e.sealed, longest = nil, retryAbsentMax
	}
	e.err = err
	e.retryAt = e.used.Add(min(retryMin<<min(e.failures, 10), longest))
	e.failures++
	if e.sealed != nil && e.used.Sub(e.confirmed) < n.cfg.Hard {
		return ownValue(n.vault.open(key{secret: name}, e.sealed)), nil
	}
	e.sealed = nil
	return Value{}, err
}

// entry returns the entry of a name as used now, making room for it. Callers hold
// the lock.
func (n *Named) entry(name string) *entry {
	now := n.cfg.Now()
	e := n.entries[name]
	if e == nil {
		makeRoom(n.entries, n.cfg.EntriesMax, func(e *entry) time.Time { return e.used })
		e = &entry{}
		n.entries[name] = e
	}
	e.used = now
	return e
}
