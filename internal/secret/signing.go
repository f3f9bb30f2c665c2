package secret

import (
	"context"
	"errors"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// Signing reads what subscriptions sign with: keys by version, as for endpoints,
// and credentials by name.
type Signing struct {
	Keys  *Cache
	Named *Named
}

// Signing returns the subscription's keys in the order asked for. A version that
// the store does not hold, or that is no key, is [delivery.ErrKeyMissing]: trying
// again would not find it.
func (s Signing) Signing(ctx context.Context, sub delivery.Subscription, keys []delivery.Key) ([]delivery.SigningKey, error) {
	signing := make([]delivery.SigningKey, 0, len(keys))
	for _, k := range keys {
		value, err := s.Keys.Secret(ctx, webhook.Endpoint{Secret: sub.Secret}, k.Version)
		if err != nil {
			return nil, missing(err)
		}
		key, err := delivery.ParseSigningKey(k.ID, string(value.Bytes()))
		if err != nil {
			return nil, delivery.ErrKeyMissing
		}
		signing = append(signing, key)
	}
	return signing, nil
}

// Credential returns the text of the subscription's credential.
func (s Signing) Credential(ctx context.Context, sub delivery.Subscription) (string, error) {
	text, err := s.Named.Text(ctx, sub.Credential)
	return text, missing(err)
}

// NewestCredential is [Signing.Credential] as the store has it now, within half a minute.
func (s Signing) NewestCredential(ctx context.Context, sub delivery.Subscription) (string, error) {
	text, err := s.Named.Newest(ctx, sub.Credential)
	return text, missing(err)
}

func missing(err error) error {
	if errors.Is(err, ErrNoVersion) || errors.Is(err, ErrEmpty) {
		return delivery.ErrKeyMissing
	}
	return err
}
