package delivery

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"dakghar/internal/signature"
)

// What a key's text begins with, as in Standard Webhooks.
const (
	prefixShared  = "whsec_" // HMAC, known to both sides
	prefixPrivate = "whsk_"  // Ed25519, ours alone
	prefixPublic  = "whpk_"  // Ed25519, for everybody
)

const (
	versionHMAC    = "v1"
	versionEd25519 = "v1a"
)

// Bounds of a shared secret before it is encoded, as Standard Webhooks has them.
const (
	SecretBytesMin = 24
	SecretBytesMax = 64
)

// keyIDBytesMax bounds a key's id.
const keyIDBytesMax = 40

// The ways in which a key is refused, besides those of [signature.Scheme.DecodeKey].
// None of them repeats the id or the secret: who swaps the two leaks nothing.
var (
	ErrKeyID    = errors.New("delivery: a key's id has 1 to 40 letters, digits, hyphens and underscores, and does not begin like a secret")
	ErrKeyText  = errors.New("delivery: a signing secret is whsec_ or whsk_, and base64")
	ErrKeyLong  = fmt.Errorf("delivery: a shared secret has at most %d bytes", SecretBytesMax)
	ErrKeyHalf  = errors.New("delivery: the two halves of the private key do not belong together")
	ErrOpenText = errors.New("delivery: a secret to verify with is whsec_ or whpk_, and base64")
)

// material is a key's bytes: shared for v1, private and public for v1a.
type material struct {
	shared   []byte
	private  ed25519.PrivateKey
	public   ed25519.PublicKey
	standard signature.Key // the same for [standardScheme]
}

func (m material) version() string {
	if m.shared != nil {
		return versionHMAC
	}
	return versionEd25519
}

// SigningKey is one secret with its id. It prints as [redacted]. The zero
// SigningKey signs nothing.
type SigningKey struct {
	ID string
	// NotAfter is when the key no longer signs, zero for the newest. It is told to
	// partners by [PublicKeys]; which keys sign, [Subscription.Signing] decides.
	NotAfter time.Time
	// A function, because fmt does not call the methods of a value that sits in
	// another struct's unexported field. A function prints as an address.
	material func() material
}

// ParseSigningKey returns the key of a secret's text: "whsec_" and the base64 of
// 24 to 64 bytes for HMAC-SHA256, or "whsk_" and the base64 of an Ed25519 private
// key (its seed, or seed and public key). A secret that is printed in public is
// refused with [signature.ErrSecretPublished].
func ParseSigningKey(id, text string) (SigningKey, error) {
	return parseSigningKey(id, text, standardScheme().DecodeKey)
}

func parseSigningKey(id, text string, decode func(string) ([]byte, error)) (SigningKey, error) {
	if !isKeyID(id) {
		return SigningKey{}, ErrKeyID
	}
	var m material
	var err error
	switch {
	case strings.HasPrefix(text, prefixShared):
		m, err = parseShared(text, decode)
	case strings.HasPrefix(text, prefixPrivate):
		m, err = parsePrivate(text, decode)
	default:
		err = ErrKeyText
	}
	if err != nil {
		return SigningKey{}, err
	}
	return SigningKey{ID: id, material: func() material { return m }}, nil
}

func parseShared(text string, decode func(string) ([]byte, error)) (material, error) {
	standard, err := decode(text)
	if err != nil {
		return material{}, err
	}
	shared := decoded(text)
	if len(shared) > SecretBytesMax {
		return material{}, ErrKeyLong
	}
	return material{shared: shared, standard: signature.Key{Secret: standard}}, nil
}

func parsePrivate(text string, decode func(string) ([]byte, error)) (material, error) {
	standard, err := standardScheme().DecodeSigningKey(text)
	if err != nil {
		return material{}, err
	}
	given := decoded(text)
	private := ed25519.NewKeyFromSeed(given[:ed25519.SeedSize])
	if len(given) == ed25519.PrivateKeySize && !bytes.Equal(private, given) {
		return material{}, ErrKeyHalf
	}
	public := private[ed25519.SeedSize:]
	if _, err := decode(prefixPublic + base64.StdEncoding.EncodeToString(public)); err != nil {
		return material{}, err // its public half is printed somewhere, with it beside
	}
	return material{private: private, public: ed25519.PublicKey(public), standard: signature.Key{Secret: standard}}, nil
}

// Verifying returns what a partner needs to check the key's signatures.
func (k SigningKey) Verifying() VerifyingKey {
	if k.material == nil {
		return VerifyingKey{}
	}
	m := k.material()
	text := prefixShared + base64.StdEncoding.EncodeToString(m.shared)
	if m.public != nil {
		text = prefixPublic + base64.StdEncoding.EncodeToString(m.public)
	}
	v, err := ParseVerifyingKey(k.ID, text)
	assert(err == nil, "a signing key that cannot verify")
	return v
}

// VerifyingKey is a partner's side of a [SigningKey]: the shared secret, or the
// public key. It prints as [redacted].
type VerifyingKey struct {
	// ID is the key's id. A key without one is tried for every id that a request
	// names, which is still bound: the id is signed.
	ID       string
	material func() material
}

// ParseVerifyingKey returns the key of a text "whsec_…" or "whpk_…", with the
// key's id or an empty one. It takes printed secrets too, since the published
// vectors are to be tried: whoever guards something with it has a secret of
// their own.
func ParseVerifyingKey(id, text string) (VerifyingKey, error) {
	if id != "" && !isKeyID(id) {
		return VerifyingKey{}, ErrKeyID
	}
	shared := strings.HasPrefix(text, prefixShared)
	if !shared && !strings.HasPrefix(text, prefixPublic) {
		return VerifyingKey{}, ErrOpenText
	}
	standard, err := standardScheme().DecodeTestKey(text)
	if err != nil {
		return VerifyingKey{}, err
	}
	m := material{standard: signature.Key{Version: id, Secret: standard}}
	if shared {
		m.shared = decoded(text)
	} else {
		m.public = ed25519.PublicKey(decoded(text))
	}
	return VerifyingKey{ID: id, material: func() material { return m }}, nil
}

// NewSecret writes random bytes, 24 to 64 of them, as a shared secret's text.
func NewSecret(random []byte) string {
	assert(len(random) >= SecretBytesMin && len(random) <= SecretBytesMax, "a secret of %d bytes", len(random))
	return prefixShared + base64.StdEncoding.EncodeToString(random)
}

// NewPrivateKey writes 32 random bytes as an Ed25519 private key's text.
func NewPrivateKey(random []byte) string {
	assert(len(random) == ed25519.SeedSize, "a seed of %d bytes", len(random))
	return prefixPrivate + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(random))
}

// publishedKey is one key of the list for partners.
type publishedKey struct {
	KeyID     string     `json:"kid"`
	Algorithm string     `json:"alg"`
	PublicKey string     `json:"public_key"`
	NotAfter  *time.Time `json:"not_after"`
}

// PublicKeys returns the list of public keys that is told to partners, as JSON:
//
//	{"keys":[{"kid":"k2","alg":"ed25519","public_key":"whpk_…","not_after":null}]}
//
// Keys that share a secret have no public half and are left out. not_after is RFC
// 3339 in UTC, null while no end is set.
func PublicKeys(keys []SigningKey) []byte {
	list := []publishedKey{}
	for _, k := range keys {
		if k.material == nil || k.material().public == nil {
			continue
		}
		p := publishedKey{KeyID: k.ID, Algorithm: "ed25519", PublicKey: prefixPublic + base64.StdEncoding.EncodeToString(k.material().public)}
		if !k.NotAfter.IsZero() {
			end := k.NotAfter.UTC()
			p.NotAfter = &end
		}
		list = append(list, p)
	}
	doc, err := json.Marshal(map[string]any{"keys": list})
	assert(err == nil, "public keys that cannot be written")
	return doc
}

// isKeyID refuses what begins like a secret, so that two swapped arguments do
// not put one into a header.
func isKeyID(id string) bool {
	for _, p := range []string{prefixShared, prefixPrivate, prefixPublic} {
		if strings.HasPrefix(id, p) {
			return false
		}
	}
	return id != "" && len(id) <= keyIDBytesMax && plain(id)
}

// decoded returns the bytes of a key's text that the scheme has accepted.
func decoded(text string) []byte {
	_, encoded, _ := strings.Cut(text, "_")
	raw, ok := decodeBase64(encoded)
	assert(ok, "a key's text that was accepted and cannot be read")
	return raw
}

// decodeBase64 accepts the one text that encodes the bytes; the library skips
// line ends.
func decodeBase64(text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, false
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	return b, err == nil
}

const redacted = "[redacted]"

func redact(f fmt.State) { _, _ = io.WriteString(f, redacted) }

// Format prints [redacted] for every verb.
func (SigningKey) Format(f fmt.State, _ rune) { redact(f) }

// String returns [redacted].
func (SigningKey) String() string { return redacted }

// MarshalText returns [redacted].
func (SigningKey) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns [redacted].
func (SigningKey) LogValue() slog.Value { return slog.StringValue(redacted) }

// Format prints [redacted] for every verb.
func (VerifyingKey) Format(f fmt.State, _ rune) { redact(f) }

// String returns [redacted].
func (VerifyingKey) String() string { return redacted }

// MarshalText returns [redacted].
func (VerifyingKey) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns [redacted].
func (VerifyingKey) LogValue() slog.Value { return slog.StringValue(redacted) }
