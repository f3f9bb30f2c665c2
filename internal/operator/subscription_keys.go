package operator

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// Turn asks for a new signing key.
type Turn struct {
	// Ed25519 chooses a key pair or a shared secret; nil stays with what there is.
	Ed25519 *bool
	// Now ends the keys that there are at once: they have leaked, or nobody has them.
	Now bool
	Why string
}

// RotateSigning gives a subscription a new signing key. The previous one signs
// beside it for as long as a retry may still be under way, unless the secret store
// has lost it: then it is taken off the list. After a crash before
// the row was written, repeating it goes on; after that, it makes another key.
func (o *Operator) RotateSigning(ctx context.Context, id delivery.SubscriptionID, t Turn) (Issued, error) {
	s, err := o.subscription(ctx, id)
	if err != nil {
		return Issued{}, err
	}
	held, err := o.heldKeys(ctx, s)
	if err != nil {
		return Issued{}, err
	}
	if err := o.mayRotate(s, held, t); err != nil {
		return Issued{}, err
	}
	pair := held.pair(s)
	set(&pair, t.Ed25519)
	act, err := o.act(ctx, "subscription rotate", subjectOfSubscription(id), t.Why)
	if err != nil {
		return Issued{}, err
	}
	key, secret, err := o.newKey(ctx, s, pair, act)
	if err != nil {
		return Issued{}, err
	}
	before := s.Keys
	s, err = o.changeSubscription(ctx, id, act, func(now delivery.Subscription) (delivery.Subscription, bool, error) {
		if at := slices.IndexFunc(now.Keys, func(k delivery.Key) bool { return k.Version == key.Version }); at >= 0 {
			if now.Keys[at].AddedAt.Equal(act.At) {
				return now, true, nil // our own write, whose answer was lost
			}
			return now, false, refuse("rotated_meanwhile", fmt.Sprintf("somebody else gave subscription %s the key %s just now, and has its secret", id, key.ID),
				run("see its keys:", "subscription", "keys", string(id)))
		}
		if err := o.mayRotate(now, held, t); err != nil {
			return now, false, err
		}
		before = now.Keys
		now.Keys = slices.DeleteFunc(slices.Clone(now.Keys), func(k delivery.Key) bool { return t.Now || held.lost(k) })
		return now.Rotate(key, act.At), false, nil
	})
	if err != nil {
		return Issued{}, err
	}
	o.forgetKeys(ctx, s, before)
	issued, err := o.issued(s, key, secret)
	if len(s.Keys) > 1 {
		issued.Next = append(issued.Next, say(fmt.Sprintf("both keys sign until %s; by then the partner must know the new one", s.Keys[1].NotAfter.UTC().Format("2006-01-02 15:04 MST"))))
	}
	return issued, err
}

// mayRotate refuses what would take a key away that still signs for retries.
func (o *Operator) mayRotate(s delivery.Subscription, held heldKeys, t Turn) error {
	signing := slices.DeleteFunc(s.Signing(o.Now()), held.lost)
	switch {
	case s.State == delivery.Stopped && s.StateWhy == deletedWhy:
		return deleted(s.ID)
	case !t.Now && len(signing) >= delivery.KeysMax:
		return refuse("rotation_open", fmt.Sprintf("subscription %s already signs with %d keys, until %s ends", s.ID, len(signing), signing[len(signing)-1].ID),
			run("see until when:", "subscription", "keys", string(s.ID)),
			run("if a key has leaked, end all that there are at once:", "subscription", "rotate", string(s.ID), "--now"))
	}
	return nil
}

// heldKeys tells of a subscription's keys whether they are pairs; one that the
// secret store does not hold, or that is no key, is told to be lost: it signs
// nothing, and keeps the others from being used.
type heldKeys map[webhook.KeyVersion]keyIs

type keyIs string

const (
	sharedKey keyIs = "shared"
	keyPair   keyIs = "pair"
	lostKey   keyIs = "lost"
)

func (o *Operator) heldKeys(ctx context.Context, s delivery.Subscription) (heldKeys, error) {
	held := heldKeys{}
	for _, k := range s.Keys {
		value, err := o.Secrets.Value(ctx, signingSecret(s), k.Version)
		if err != nil && !errors.Is(err, ErrNoVersion) {
			return nil, unreachable("the secret store", err)
		}
		switch public, wrong := publicHalf(k.ID, value); {
		case err != nil || wrong != nil:
			held[k.Version] = lostKey
		case public != "":
			held[k.Version] = keyPair
		default:
			held[k.Version] = sharedKey
		}
	}
	return held, nil
}

func (h heldKeys) lost(k delivery.Key) bool { return h[k.Version] == lostKey }

// pair reports whether the newest key is a pair.
func (h heldKeys) pair(s delivery.Subscription) bool {
	return len(s.Keys) > 0 && h[s.Keys[0].Version] == keyPair
}

func signingSecret(s delivery.Subscription) webhook.Endpoint {
	return webhook.Endpoint{ID: webhook.EndpointID(s.ID), Secret: s.Secret}
}

// newKey makes a key and stores its secret. A secret that a command has left which
// died before it could show it, is taken: nobody has it.
func (o *Operator) newKey(ctx context.Context, s delivery.Subscription, pair bool, act webhook.Act) (delivery.Key, Secret, error) {
	at, next := signingSecret(s), nextKey(s)
	for n := next; n < next+tokenTries; n++ {
		token, secret := signingToken(s.ID, n), o.drawSecret(pair)
		key := delivery.Key{ID: "k" + strconv.Itoa(n), Version: webhook.KeyVersion(token), AddedAt: act.At}
		_, err := o.Secrets.Put(ctx, at, secret, token)
		if errors.Is(err, ErrNoVersion) {
			_, err = o.Secrets.Create(ctx, at, secret, token)
		}
		if errors.Is(err, ErrOtherSecret) {
			secret, err = o.Secrets.Value(ctx, at, key.Version)
			public, wrong := publicHalf(key.ID, secret)
			if err == nil && wrong == nil && (public != "") == pair {
				return key, secret, nil
			}
			if err == nil || errors.Is(err, ErrNoVersion) {
				continue
			}
		}
		if err != nil {
			return delivery.Key{}, Secret{}, unreachable("the secret store", err)
		}
		return key, secret, nil
	}
	return delivery.Key{}, Secret{}, refuse("secret_exists", "the secret store has other values under the name "+s.Secret,
		say("delete that secret, or choose another --id"))
}

// drawSecret draws what a key signs with.
func (o *Operator) drawSecret(pair bool) Secret {
	random := make([]byte, ed25519.SeedSize)
	o.Random(random)
	if pair {
		return NewSecret(delivery.NewPrivateKey(random))
	}
	return NewSecret(delivery.NewSecret(random))
}

// nextKey is the number of the key that comes next: ids are never used again.
func nextKey(s delivery.Subscription) int {
	highest := 0
	for _, k := range s.Keys {
		if n, err := strconv.Atoi(strings.TrimPrefix(k.ID, "k")); err == nil {
			highest = max(highest, n)
		}
	}
	return highest + 1
}

// signingToken names the n-th key of a subscription in the secret store, the same
// on every run. It says nothing about the secret.
func signingToken(id delivery.SubscriptionID, n int) string {
	sum := sha256.Sum256([]byte("dakghar signing key\x00" + string(id) + "\x00" + strconv.Itoa(n)))
	return fmt.Sprintf("k%d-%s", n, strings.ToLower(base32.StdEncoding.EncodeToString(sum[:25])))
}

// forgetKeys lets the secret store forget the keys that sign no more. Should it
// not hear of this, it keeps them.
func (o *Operator) forgetKeys(ctx context.Context, s delivery.Subscription, before []delivery.Key) {
	for _, k := range before {
		if !slices.ContainsFunc(s.Keys, func(kept delivery.Key) bool { return kept.Version == k.Version }) {
			_ = o.Secrets.Retire(ctx, signingSecret(s), k.Version)
		}
	}
}

// publicHalf returns the public key of a pair, empty for a shared secret.
func publicHalf(id string, secret Secret) (string, error) {
	key, err := delivery.ParseSigningKey(id, secret.Reveal())
	if err != nil {
		return "", fmt.Errorf("the signing key cannot be read: %w", err)
	}
	var list struct {
		Keys []struct {
			Public string `json:"public_key"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(delivery.PublicKeys([]delivery.SigningKey{key}), &list); err != nil || len(list.Keys) == 0 {
		return "", err
	}
	return list.Keys[0].Public, nil
}

// SigningKeys returns a subscription's keys, without their secrets.
func (o *Operator) SigningKeys(ctx context.Context, id delivery.SubscriptionID) (delivery.Subscription, error) {
	return o.subscription(ctx, id)
}

// PublishedKeys returns the list of public keys that a partner verifies with, as
// JSON; see [delivery.PublicKeys].
func (o *Operator) PublishedKeys(ctx context.Context, id delivery.SubscriptionID) ([]byte, error) {
	s, err := o.subscription(ctx, id)
	if err != nil {
		return nil, err
	}
	var keys []delivery.SigningKey
	for _, k := range s.Signing(o.Now()) {
		value, err := o.Secrets.Value(ctx, signingSecret(s), k.Version)
		if errors.Is(err, ErrNoVersion) {
			return nil, refuse("key_missing", fmt.Sprintf("the secret store does not hold the key %s of subscription %s, so nothing can be signed with it", k.ID, id),
				run("make another:", "subscription", "rotate", string(id), "--now"))
		}
		if err != nil {
			return nil, unreachable("the secret store", err)
		}
		key, err := delivery.ParseSigningKey(k.ID, value.Reveal())
		if err != nil {
			return nil, fmt.Errorf("the signing key %s cannot be read: %w", k.ID, err)
		}
		if public, err := publicHalf(k.ID, value); err == nil && public != "" {
			key.NotAfter = k.NotAfter
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, refuse("no_public_key", fmt.Sprintf("subscription %s signs with a secret that it shares with its partner: nothing about it is public", id),
			run("to sign with a key pair from now on:", "subscription", "rotate", string(id), "--ed25519"))
	}
	return delivery.PublicKeys(keys), nil
}
