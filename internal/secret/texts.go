package secret

import (
	"context"

	"dakghar/internal/webhook"
)

// Texts hands a cache's values out as text, which is what an adapter's key rule
// reads. It exists so that the receiver needs to know nothing of this package.
type Texts struct{ Cache *Cache }

// Secret is [Cache.Secret].
func (t Texts) Secret(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) (string, error) {
	value, err := t.Cache.Secret(ctx, e, v)
	return string(value.Bytes()), err
}

// Current is [Cache.Current].
func (t Texts) Current(ctx context.Context, e webhook.Endpoint) (webhook.KeyVersion, string, error) {
	version, value, err := t.Cache.Current(ctx, e)
	return version, string(value.Bytes()), err
}

// Found is [Cache.Fruitful] or [Cache.Fruitless].
func (t Texts) Found(yes bool) {
	if yes {
		t.Cache.Fruitful()
	} else {
		t.Cache.Fruitless()
	}
}
