package signature

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key is one trusted version of an endpoint's secret. Secret is what
// [Scheme.DecodeKey] returned, and nothing else: it says in its first byte which
// of the scheme's methods it is for, so that a public key can never be taken for
// a shared one.
//
// A key prints as [redacted] wherever it stands in an exported field; keep it
// out of unexported ones that are printed.
type Key struct {
	Version string
	Secret  []byte
}

const redacted = "[redacted]"

func (Key) String() string { return redacted }

// GoString keeps a key out of %#v.
func (Key) GoString() string { return redacted }

// Format covers the verbs that would print the bytes as numbers.
func (Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements [slog.LogValuer].
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps a key out of JSON and the like.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// KeyRule says how a secret's text becomes a key.
type KeyRule struct {
	Encoding Encoding
	// Prefix stands before the encoded key: "whsec_". It is cut off, and may be
	// absent unless PrefixRequired. Leave it empty where it is part of the key.
	Prefix         string
	PrefixRequired bool
	// PrivatePrefix stands before an Ed25519 private key. Verifying never needs
	// one; [Scheme.DecodeSigningKey] takes it.
	PrivatePrefix string
	// BytesMin refuses keys that are too short, counted after decoding.
	BytesMin int
	// Foreign lists what the sender's other credentials begin with, so that an
	// API key pasted in place of the secret is told from it.
	Foreign []string
}

// The ways in which a secret is refused. None of them repeats the secret.
var (
	ErrSecretEmpty       = errors.New("signature: the secret is empty")
	ErrSecretTooLong     = errors.New("signature: the secret is too long")
	ErrSecretSpaced      = errors.New("signature: the secret has white space at an end, or a control character")
	ErrSecretForeign     = errors.New("signature: this is another kind of credential, not a signing secret")
	ErrSecretPrivate     = errors.New("signature: this is a private key; verifying takes the public one")
	ErrSecretUndecodable = errors.New("signature: the secret is not in its encoding")
	ErrSecretTooShort    = errors.New("signature: the secret is too short")
	ErrSecretPublished   = errors.New("signature: the secret is printed in public documentation or test code, so anybody can sign with it")
)

// secretBytesMax bounds a secret's text. The longest known one has 130 bytes.
const secretBytesMax = 1024

// DecodeKey turns a secret's text into the bytes for [Key.Secret]. It refuses
// every secret with which others could sign: empty, too short, not decodable,
// or printed in public.
func (s *Scheme) DecodeKey(secret string) ([]byte, error) {
	if slices.ContainsFunc(published(), func(known string) bool { return stripped(known) == stripped(secret) }) {
		return nil, ErrSecretPublished
	}
	return s.decodeKey(secret, false, false)
}

// DecodeTestKey is DecodeKey without the list of printed secrets and without
// the least length: for published test vectors, and for nothing that the
// internet can reach.
func (s *Scheme) DecodeTestKey(secret string) ([]byte, error) {
	return s.decodeKey(secret, true, false)
}

// DecodeSigningKey is DecodeTestKey that takes private keys too, for [Scheme.Sign].
func (s *Scheme) DecodeSigningKey(secret string) ([]byte, error) {
	return s.decodeKey(secret, true, true)
}

func (s *Scheme) decodeKey(secret string, lenient, private bool) ([]byte, error) {
	switch {
	case secret == "":
		return nil, ErrSecretEmpty
	case len(secret) > secretBytesMax:
		return nil, ErrSecretTooLong
	case !plainSecret(secret):
		return nil, ErrSecretSpaced
	}
	index := s.methodOf(secret)
	method := s.Methods[index]
	for _, foreign := range method.Key.Foreign {
		if strings.HasPrefix(secret, foreign) {
			return nil, ErrSecretForeign
		}
	}
	if p := method.Key.PrivatePrefix; p != "" && strings.HasPrefix(secret, p) {
		if !private {
			return nil, ErrSecretPrivate
		}
		return decodePrivate(index, method.Key, secret)
	}
	return decodeShared(index, method, secret, lenient)
}

// methodOf picks the first method whose prefix the secret has, or else the
// first one that needs none.
func (s *Scheme) methodOf(secret string) int {
	bare := -1
	for i, m := range s.Methods {
		for _, p := range []string{m.Key.Prefix, m.Key.PrivatePrefix} {
			if p != "" && strings.HasPrefix(secret, p) {
				return i
			}
		}
		if bare < 0 && !m.Key.PrefixRequired {
			bare = i
		}
	}
	return max(bare, 0)
}

func decodeShared(index int, method Method, secret string, lenient bool) ([]byte, error) {
	rule := method.Key
	text, had := strings.CutPrefix(secret, rule.Prefix)
	if !had && rule.PrefixRequired {
		return nil, ErrSecretUndecodable
	}
	material := []byte(text)
	if rule.Encoding != Text {
		// Two texts of one key do no harm, and some senders print capitals.
		if rule.Encoding == Hex {
			text = strings.ToLower(text)
		}
		var ok bool
		if material, ok = decode(rule.Encoding, text, secretBytesMax); !ok {
			return nil, ErrSecretUndecodable
		}
	}
	switch {
	case len(material) == 0:
		return nil, ErrSecretEmpty
	case method.Algorithm == Ed25519 && len(material) != ed25519.PublicKeySize:
		return nil, ErrSecretUndecodable
	case len(material) < rule.BytesMin && !lenient:
		return nil, ErrSecretTooShort
	}
	return append([]byte{tagOf(index)}, material...), nil
}

// tagOf is the first byte of a decoded key: the method that it is for.
func tagOf(index int) byte { return byte(index & 0x7f) }

// privateKey marks a decoded key that can sign with Ed25519.
const privateKey = 0x80

func decodePrivate(index int, rule KeyRule, secret string) ([]byte, error) {
	material, ok := decode(rule.Encoding, strings.TrimPrefix(secret, rule.PrivatePrefix), secretBytesMax)
	if !ok || len(material) != ed25519.PrivateKeySize && len(material) != ed25519.SeedSize {
		return nil, ErrSecretUndecodable
	}
	private := ed25519.NewKeyFromSeed(material[:ed25519.SeedSize])
	return append([]byte{tagOf(index) | privateKey}, private...), nil
}

// open returns the method of a key that can verify, and its bytes.
func (s *Scheme) open(k Key) (method int, material []byte, ok bool) {
	if len(k.Secret) < 2 || int(k.Secret[0]) >= len(s.Methods) {
		return 0, nil, false
	}
	method, material = int(k.Secret[0]), k.Secret[1:]
	if s.Methods[method].Algorithm == Ed25519 && len(material) != ed25519.PublicKeySize {
		return 0, nil, false
	}
	return method, material, true
}

// openForSigning returns the method of a key that can sign, and its bytes.
func (s *Scheme) openForSigning(k Key) (method int, material []byte, ok bool) {
	if len(k.Secret) == 1+ed25519.PrivateKeySize && k.Secret[0]&privateKey != 0 {
		method = int(k.Secret[0] &^ privateKey)
		return method, k.Secret[1:], method < len(s.Methods) && s.Methods[method].Algorithm == Ed25519
	}
	method, material, ok = s.open(k)
	return method, material, ok && s.Methods[method].Algorithm != Ed25519
}

// plainSecret refuses the line end that an editor leaves in a secret's file: as
// part of a text key it would make every signature mismatch.
func plainSecret(secret string) bool {
	return utf8.ValidString(secret) && strings.TrimSpace(secret) == secret &&
		!strings.ContainsFunc(secret, unicode.IsControl)
}

// stripped makes a printed secret be known with and without the usual prefix.
func stripped(secret string) string { return strings.TrimPrefix(secret, "whsec_") }
