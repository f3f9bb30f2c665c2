package ingress

import (
	"context"
	"errors"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// ErrNoKey says that the secret store does not hold a version, or that no other
// version may be looked for now.
var ErrNoKey = errors.New("ingress: no such key version")

func (r *refusal) Error() string { return r.cause }

// trustedKeys returns the endpoint's trusted keys, newest first, and how many
// of them could not be fetched because the store is out of reach.
func (r *Receiver) trustedKeys(ctx context.Context, a *provider.Adapter, e webhook.Endpoint, now time.Time) (keys []signature.Key, unreachable error) {
	for _, v := range e.Trusted(now) {
		secret, err := r.Keys.Secret(ctx, e, v)
		if err != nil {
			if !errors.Is(err, ErrNoKey) {
				unreachable = err
			}
			continue
		}
		if decoded, err := a.Scheme.DecodeKey(secret); err == nil {
			keys = append(keys, signature.Key{Version: string(v), Secret: decoded})
		}
	}
	return keys, unreachable
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

// matchOthers decides what it means that no trusted key matched. A key that is
// out of reach might have: the answer is then retryable, never a refusal. A
// version that was put into the secret store by other means is trusted if it is
// the store's current one and was never retired here.
func (r *Receiver) matchOthers(ctx context.Context, a *provider.Adapter, e webhook.Endpoint, req signature.Request, meta signature.Metadata, unreachable, mismatch error) (webhook.KeyVersion, error) {
	if unreachable != nil {
		return "", unavailable("keys_unavailable", unreachable)
	}
	v, secret, err := r.Keys.Current(ctx, e)
	switch {
	case errors.Is(err, ErrNoKey):
		return "", mismatch
	case err != nil:
		// The listed keys all answered no. The store that might know another one
		// is out of reach, and whether it does is not the sender's fault.
		return "", unavailable("keys_unavailable", err)
	}
	decoded, err := a.Scheme.DecodeKey(secret)
	if err != nil {
		return "", mismatch
	}
	version, err := matchKeys(a, req, meta, []signature.Key{{Version: string(v), Secret: decoded}})
	if err != nil {
		return "", mismatch
	}
	if e.Knows(v) {
		return "", &signature.Refusal{Cause: signature.Retired}
	}
	r.Endpoints.Adopt(ctx, e, v, r.Now())
	return version, nil
}
