package ingress

import (
	"context"
	"errors"
	"slices"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

func (r *refusal) Error() string { return r.cause }

// trustedKeys returns the endpoint's trusted keys, newest first. Missing is why
// one of them could not be had: it might have matched, so that a request that
// no other key matches is not refused for it.
func (r *Receiver) trustedKeys(ctx context.Context, a *provider.Adapter, e webhook.Endpoint, now time.Time) (keys []signature.Key, missing error) {
	for _, v := range e.Trusted(now) {
		key, err := r.key(ctx, a, e, v)
		if err != nil {
			missing = err
			continue
		}
		keys = append(keys, key)
	}
	return keys, missing
}

func (r *Receiver) key(ctx context.Context, a *provider.Adapter, e webhook.Endpoint, v webhook.KeyVersion) (signature.Key, error) {
	secret, err := r.Keys.Secret(ctx, e, v)
	if err != nil {
		return signature.Key{}, err
	}
	decoded, err := a.Scheme.DecodeKey(secret)
	return signature.Key{Version: string(v), Secret: decoded}, err
}

func matchKeys(a *provider.Adapter, req signature.Request, meta signature.Metadata, keys []signature.Key) (webhook.KeyVersion, error) {
	if len(keys) == 0 {
		return "", &signature.Refusal{Cause: signature.Mismatch}
	}
	match, err := a.Scheme.Verify(req, meta, keys)
	return webhook.KeyVersion(match.Version), err
}

func mismatched(err error) bool {
	r, ok := errors.AsType[*signature.Refusal](err)
	return ok && r.Cause == signature.Mismatch
}

// matchOthers decides what it means that no trusted key matched. A key that
// could not be had might have: the answer is then retryable, never a refusal. A
// version that was put into the secret store by other means is trusted if it is
// the store's current one and was never listed here.
func (r *Receiver) matchOthers(ctx context.Context, a *provider.Adapter, e webhook.Endpoint, req signature.Request, meta signature.Metadata, missing, mismatch error) (webhook.KeyVersion, error) {
	if missing != nil {
		return "", unavailable("keys_unavailable", missing)
	}
	v, secret, err := r.Keys.Current(ctx, e)
	if err != nil || e.Knows(v) {
		// The listed keys were all asked and said no. A store that is out of reach
		// does not change that: the list decides, so that a retirement holds
		// whatever the store's state.
		return "", r.whyRefused(ctx, a, e, req, meta, mismatch)
	}
	decoded, err := a.Scheme.DecodeKey(secret)
	if err != nil {
		r.Keys.Found(false)
		return "", mismatch
	}
	version, err := matchKeys(a, req, meta, []signature.Key{{Version: string(v), Secret: decoded}})
	r.Keys.Found(err == nil)
	if err != nil {
		return "", r.whyRefused(ctx, a, e, req, meta, mismatch)
	}
	r.Endpoints.Adopt(ctx, e, v, r.Now())
	return version, nil
}

// retiredLooked is how many retired versions are tried for the sake of a better cause.
const retiredLooked = 2

// whyRefused tells an operator whether a version made the signature that is no
// longer trusted. The stranger's answer is the same.
func (r *Receiver) whyRefused(ctx context.Context, a *provider.Adapter, e webhook.Endpoint, req signature.Request, meta signature.Metadata, mismatch error) error {
	now := r.Now()
	untrusted := slices.Clone(e.Retired[max(0, len(e.Retired)-retiredLooked):])
	for _, k := range e.Keys {
		if !e.Trusts(k.Version, now) {
			untrusted = append(untrusted, k.Version)
		}
	}
	for _, v := range untrusted {
		key, err := r.key(ctx, a, e, v)
		if err != nil {
			continue
		}
		if _, err := matchKeys(a, req, meta, []signature.Key{key}); err == nil {
			return &signature.Refusal{Cause: signature.Retired}
		}
	}
	return mismatch
}
