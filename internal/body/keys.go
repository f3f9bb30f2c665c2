package body

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"golang.org/x/sync/singleflight"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// ring holds the data keys of this process: one for sealing per tenant, and
// those it opened lately. No lock is held over a call; there is one call at a
// time per key, which outlives the caller that began it.
type ring struct {
	cfg   *Config
	rows  rows
	calls singleflight.Group

	mu      sync.Mutex
	sealing map[webhook.Tenant]*dataKey
	opening map[place]*dataKey
}

// place is where a data key opens: the tenant is part of it, so that a key
// that was unwrapped for one tenant does not serve another from memory.
type place struct {
	tenant webhook.Tenant
	id     string
}

// dataKey is a data key in use.
type dataKey struct {
	id    string
	aead  cipher.AEAD
	born  time.Time // before KMS was asked for it
	used  time.Time
	seals int
	// renewAt is the earliest next try to replace it; it moves with each failure.
	renewAt time.Time
}

func newRing(cfg *Config, r rows) *ring {
	return &ring{cfg: cfg, rows: r, sealing: map[webhook.Tenant]*dataKey{}, opening: map[place]*dataKey{}}
}

// renewPause is the time between tries to replace a key that still serves.
const renewPause = 5 * time.Second

// forSealing returns a key for one seal, and counts it.
func (r *ring) forSealing(ctx context.Context, tenant webhook.Tenant) (*dataKey, error) {
	for range 3 { // more than once only if others used up the new key first
		k, renew := r.take(tenant)
		if renew {
			call := r.startGenerate(ctx, tenant)
			if k == nil {
				if err := await(ctx, call); err != nil {
					return nil, err
				}
				continue
			}
		}
		return k, nil
	}
	return nil, fault.New(fault.Ours, "body_key_used_up", nil)
}

// take returns the tenant's key if it may seal once more, and whether a new one
// should be asked for.
func (r *ring) take(tenant webhook.Tenant) (k *dataKey, renew bool) {
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	k = r.sealing[tenant]
	if k == nil || now.Sub(k.born) >= r.cfg.KeyHard || k.seals >= r.cfg.KeySealsMax {
		return nil, true
	}
	k.seals++
	k.used = now
	due := r.due(k, now)
	if !due || now.Before(k.renewAt) {
		return k, false
	}
	k.renewAt = now.Add(renewPause)
	return k, true
}

func (r *ring) startGenerate(ctx context.Context, tenant webhook.Tenant) <-chan singleflight.Result {
	ctx = context.WithoutCancel(ctx)
	return r.calls.DoChan("seal:"+string(tenant), func() (any, error) {
		if r.young(tenant) {
			return nil, nil // who looked before the last call ended needs none of his own
		}
		ctx, cancel := context.WithTimeout(ctx, r.cfg.KeyTimeout)
		defer cancel()
		return nil, r.generate(ctx, tenant)
	})
}

// young reports whether the tenant has a key that needs no successor yet.
func (r *ring) young(tenant webhook.Tenant) bool {
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.sealing[tenant]
	return k != nil && !r.due(k, now)
}

// due reports whether a key needs a successor: at half its time or seven eighths
// of its count.
func (r *ring) due(k *dataKey, now time.Time) bool {
	return now.Sub(k.born) >= r.cfg.KeySoft || k.seals >= r.cfg.KeySealsMax-r.cfg.KeySealsMax/8
}

// await waits for a call, no longer than the caller's context.
func await(ctx context.Context, call <-chan singleflight.Result) error {
	select {
	case result := <-call:
		return result.Err
	case <-ctx.Done():
		return ours("key", "wait", ctx.Err())
	}
}

// generate makes a new data key, stores it wrapped, and only then lets it be used.
func (r *ring) generate(ctx context.Context, tenant webhook.Tenant) error {
	k := &dataKey{id: r.cfg.NewID(), born: r.cfg.Now()}
	k.used = k.born
	out, err := r.cfg.KMS.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: aws.String(r.cfg.KeyID), KeySpec: kmstypes.DataKeySpecAes256, EncryptionContext: kmsContext(tenant),
	})
	if err != nil {
		return ours("kms", "GenerateDataKey", err)
	}
	if k.aead, err = newAEAD(out.Plaintext); err != nil {
		return ours("kms", "GenerateDataKey", err)
	}
	expires := k.born.Add(r.cfg.KeyHard + r.cfg.Life + keyRowSlack)
	if err := r.rows.putKey(ctx, k.id, out.CiphertextBlob, expires); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	makeRoom(r.sealing, r.cfg.KeysMax)
	r.sealing[tenant] = k
	r.keep(place{tenant: tenant, id: k.id}, k.aead, k.born)
	return nil
}

// keyRowSlack is how much longer a key row lives than any body it seals.
const keyRowSlack = 7 * 24 * time.Hour

// forOpening returns the AEAD of a stored data key.
func (r *ring) forOpening(ctx context.Context, p place) (cipher.AEAD, error) {
	for range 2 {
		if aead := r.kept(p); aead != nil {
			return aead, nil
		}
		detached := context.WithoutCancel(ctx)
		call := r.calls.DoChan("open:"+p.id+":"+string(p.tenant), func() (any, error) {
			ctx, cancel := context.WithTimeout(detached, r.cfg.KeyTimeout)
			defer cancel()
			return nil, r.unwrap(ctx, p)
		})
		if err := await(ctx, call); err != nil {
			return nil, err
		}
	}
	return nil, fault.New(fault.Ours, "body_key_crowded_out", nil)
}

func (r *ring) kept(p place) cipher.AEAD {
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.opening[p]
	if k == nil {
		return nil
	}
	if now.Sub(k.born) >= r.cfg.KeyHard {
		delete(r.opening, p)
		return nil
	}
	k.used = now
	return k.aead
}

func (r *ring) unwrap(ctx context.Context, p place) error {
	born := r.cfg.Now()
	wrapped, err := r.rows.getKey(ctx, p.id)
	if err != nil {
		return err
	}
	aead, err := r.decrypt(ctx, p.tenant, wrapped)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(p, aead, born)
	return nil
}

// decrypt opens a wrapped data key.
func (r *ring) decrypt(ctx context.Context, tenant webhook.Tenant, wrapped []byte) (cipher.AEAD, error) {
	out, err := r.cfg.KMS.Decrypt(ctx, &kms.DecryptInput{
		CiphertextBlob: wrapped, KeyId: aws.String(r.cfg.KeyID), EncryptionContext: kmsContext(tenant),
	})
	if notOurCiphertext(err) {
		return nil, ErrCorrupt
	}
	if err != nil {
		return nil, ours("kms", "Decrypt", err)
	}
	aead, err := newAEAD(out.Plaintext)
	if err != nil {
		return nil, ErrCorrupt
	}
	return aead, nil
}

// keep remembers an opening key. Callers hold the lock.
func (r *ring) keep(p place, aead cipher.AEAD, born time.Time) {
	if _, replaces := r.opening[p]; !replaces {
		makeRoom(r.opening, r.cfg.KeysMax)
	}
	r.opening[p] = &dataKey{id: p.id, aead: aead, born: born, used: born}
}

// makeRoom drops the least recently used key once m is full. It looks at all of
// them, which is little beside the calls that brought the new one.
func makeRoom[K comparable](m map[K]*dataKey, most int) {
	if len(m) < most {
		return
	}
	var oldest K
	var found *dataKey
	for place, k := range m {
		if found == nil || k.used.Before(found.used) {
			oldest, found = place, k
		}
	}
	delete(m, oldest)
}

func kmsContext(tenant webhook.Tenant) map[string]string {
	return map[string]string{"tenant": string(tenant), "purpose": "body"}
}

// newAEAD takes the key over: the plain bytes are cleared.
func newAEAD(key []byte) (cipher.AEAD, error) {
	defer clear(key)
	if len(key) != 32 {
		return nil, aes.KeySizeError(len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
