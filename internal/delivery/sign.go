package delivery

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// The headers of a signed delivery, lower-case. The first three are those of
// Standard Webhooks.
const (
	HeaderID        = "webhook-id"        // the delivery's id, the same in every attempt
	HeaderTimestamp = "webhook-timestamp" // of this attempt, in unix seconds
	HeaderStandard  = "webhook-signature"
	HeaderKeyID     = "dakghar-key-id"    // the newest key's id
	HeaderAttempt   = "dakghar-attempt"   // from 1
	HeaderEventID   = "dakghar-event-id"  // what is delivered; not signed
	HeaderSignature = "dakghar-signature" // see [Sign]
	HeaderHops      = webhook.HopsHeader  // of a chain of deliveries; not signed
)

// Message is what one attempt sends.
type Message struct {
	Delivery ID
	EventID  webhook.EffectID
	Attempt  int // from 1
	// Body are the stored bytes of the event, which are signed and sent as they are.
	Body []byte
}

// The ways in which signing is refused. Nothing may be sent then.
var (
	ErrNoKey   = errors.New("delivery: no key to sign with")
	ErrKeys    = fmt.Errorf("delivery: more than %d keys, or two of one id", KeysMax)
	ErrMessage = errors.New("delivery: an id, an attempt or a time that cannot be signed")
)

// Sign returns the headers of one attempt, by lower-case name. keys are those
// that sign at the time, the newest first; see [Subscription.Signing]. Without a
// usable key it is [ErrNoKey] and no header.
//
// # The header dakghar-signature
//
// Its value is a list with one element per key, joined by single spaces:
//
//	value   = element *( SP element )
//	element = "kid=" kid "," version "=" base64
//	kid     = 1*40( ALPHA / DIGIT / "-" / "_" )
//	version = "v1" / "v1a"
//
// v1 is HMAC-SHA256 and v1a Ed25519, in padded base64 of the standard alphabet.
// An element has exactly one comma and no space, so a header that came twice and
// was joined by commas cannot be read as a list: it is refused, never split.
//
// What is signed is the label "dakghar-signature-v1", the key id, the delivery
// id, the attempt, the timestamp (both in decimal digits) and the body, each
// after its length in bytes as an unsigned 64-bit big-endian number.
func Sign(m Message, keys []SigningKey, at time.Time) (map[string]string, error) {
	if err := signable(m, keys, at); err != nil {
		return nil, err
	}
	standard := standardScheme()
	request := signature.Request{Header: signature.Header{HeaderID: string(m.Delivery)}, Body: m.Body}
	attempt, timestamp := strconv.Itoa(m.Attempt), strconv.FormatInt(at.Unix(), 10)
	var theirs, ours []string
	for _, k := range keys {
		material := k.material()
		h, err := standard.Sign(request, material.standard, at)
		if err != nil {
			return nil, fmt.Errorf("delivery: sign: %w", err)
		}
		theirs = append(theirs, h[HeaderStandard])
		s := signed{kid: k.ID, delivery: string(m.Delivery), attempt: attempt, timestamp: timestamp, body: m.Body}
		ours = append(ours, "kid="+k.ID+","+material.version()+"="+base64.StdEncoding.EncodeToString(material.sign(s)))
	}
	return map[string]string{
		HeaderID: string(m.Delivery), HeaderTimestamp: timestamp, HeaderStandard: strings.Join(theirs, " "),
		HeaderKeyID: keys[0].ID, HeaderAttempt: attempt, HeaderEventID: string(m.EventID), HeaderSignature: strings.Join(ours, " "),
	}, nil
}

func signable(m Message, keys []SigningKey, at time.Time) error {
	if len(keys) == 0 {
		return ErrNoKey
	}
	seen := map[string]bool{}
	for _, k := range keys {
		if k.material == nil {
			return ErrNoKey
		}
		if seen[k.ID] {
			return ErrKeys
		}
		seen[k.ID] = true
	}
	_, readable := parseCount(strconv.FormatInt(at.Unix(), 10), timestampDigitsMax)
	switch {
	case len(keys) > KeysMax:
		return ErrKeys
	case !isID(string(m.Delivery)), !isID(string(m.EventID)), m.Attempt < 1, m.Attempt > attemptMax, !readable:
		return ErrMessage
	}
	return nil
}

// label keeps these signatures apart from whatever else a key may sign.
const label = "dakghar-signature-v1"

// signed is what dakghar-signature covers, as the texts stand in the headers.
type signed struct {
	kid, delivery, attempt, timestamp string
	body                              []byte
}

// head is everything before the body's bytes.
func (s signed) head() []byte {
	b := make([]byte, 0, 192)
	for _, part := range []string{label, s.kid, s.delivery, s.attempt, s.timestamp} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return binary.BigEndian.AppendUint64(b, uint64(len(s.body)))
}

func (s signed) mac(key []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(s.head())
	h.Write(s.body)
	return h.Sum(nil)
}

func (s signed) whole() []byte { return append(s.head(), s.body...) }

func (m material) sign(s signed) []byte {
	if m.private != nil {
		return ed25519.Sign(m.private, s.whole())
	}
	return s.mac(m.shared)
}

// standardScheme is Standard Webhooks, spec/standard-webhooks.md. It judges no
// time: how far clocks may be apart is the profile's.
func standardScheme() *signature.Scheme {
	return &signature.Scheme{
		Methods: []signature.Method{
			{Tag: versionHMAC, Algorithm: signature.HMACSHA256, Key: signature.KeyRule{
				Encoding: signature.Base64, Prefix: prefixShared, PrefixRequired: true, BytesMin: SecretBytesMin,
			}},
			{Tag: versionEd25519, Algorithm: signature.Ed25519, Key: signature.KeyRule{
				Encoding: signature.Base64, Prefix: prefixPublic, PrefixRequired: true, PrivatePrefix: prefixPrivate, BytesMin: ed25519.PublicKeySize,
			}},
		},
		Message: []signature.Part{
			signature.HeaderValue(HeaderID), signature.Literal("."), signature.SignedTime(), signature.Literal("."), signature.RawBody(),
		},
		Signature: signature.Place{Header: HeaderStandard, Grammar: signature.Tagged, Separator: ' ', Encoding: signature.Base64},
		Timestamp: signature.Timestamp{Header: HeaderTimestamp, Unit: signature.Seconds},
	}
}

const (
	idBytesMax         = 80
	attemptMax         = 999_999_999
	attemptDigitsMax   = 9
	timestampDigitsMax = 12
)

// isID reports whether a text can stand in a header and be joined with commas
// without being read in another way.
func isID(text string) bool { return text != "" && len(text) <= idBytesMax && plain(text) }

func plain(text string) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// parseCount reads a positive number in the one text that writes it.
func parseCount(text string, digitsMax int) (int64, bool) {
	if len(text) > digitsMax || strings.HasPrefix(text, "0") || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
