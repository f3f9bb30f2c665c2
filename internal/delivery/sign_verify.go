package delivery

import (
	"crypto/ed25519"
	"crypto/subtle"
	"strings"
	"time"

	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// UnknownKey is the cause of a refusal where a request names only keys that the
// partner does not have: after a rotation that it has not followed.
const UnknownKey signature.Cause = "unknown_key"

// ErrNoVerifyingKey is returned where there is no key to verify with: the
// receiver's own fault, which deserves a retryable answer.
var ErrNoVerifyingKey = signature.ErrNoKey

// Verified is what a signature has proved, except for Event.
type Verified struct {
	KeyID    string // of the key that made the signature
	Delivery ID     // deduplicate on this
	// Event is the event's id as the header says it. It is not signed: show it, and
	// decide nothing by it.
	Event   webhook.EffectID
	Attempt int
	At      time.Time // of the attempt
}

// Verify checks dakghar-signature as a partner does. header has lower-case names,
// with the values of a header that came more than once joined by commas, which is
// refused. keys are tried whatever their order; the result names the one that
// matched. skew is how far the clocks may be apart, both ways.
//
// The error is a [*signature.Refusal] with a cause: Missing, Malformed,
// [UnknownKey], Mismatch, Stale or Future; or [ErrNoVerifyingKey].
func Verify(header map[string]string, body []byte, keys []VerifyingKey, now time.Time, skew time.Duration) (Verified, error) {
	if !usable(keys) {
		return Verified{}, ErrNoVerifyingKey
	}
	o, err := readOffer(header)
	if err != nil {
		return Verified{}, err
	}
	kid, err := o.match(body, keys)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{KeyID: kid, Delivery: ID(o.delivery), Event: webhook.EffectID(header[HeaderEventID]), Attempt: int(o.attempt), At: o.at}
	if err := fresh(o.at, now, skew); err != nil {
		return Verified{}, err
	}
	return v, nil
}

// VerifyStandard checks webhook-signature, as any library of Standard Webhooks
// does, and returns the signed time. It proves neither attempt nor key id. Errors
// are those of [Verify], but for [UnknownKey].
func VerifyStandard(header map[string]string, body []byte, keys []VerifyingKey, now time.Time, skew time.Duration) (time.Time, error) {
	if !usable(keys) {
		return time.Time{}, ErrNoVerifyingKey
	}
	s := standardScheme()
	meta, err := s.Metadata(header)
	if err != nil {
		return time.Time{}, err
	}
	trusted := make([]signature.Key, len(keys))
	for i, k := range keys {
		trusted[i] = k.material().standard
	}
	match, err := s.Verify(signature.Request{Header: header, Body: body}, meta, trusted)
	if err != nil {
		return time.Time{}, err
	}
	return match.At, fresh(match.At, now, skew)
}

func usable(keys []VerifyingKey) bool {
	for _, k := range keys {
		if k.material == nil {
			return false
		}
	}
	return len(keys) > 0
}

// fresh compares in both directions: a request dated ahead could be kept and
// sent again later.
func fresh(at, now time.Time, skew time.Duration) error {
	switch {
	case now.Sub(at) > skew:
		return &signature.Refusal{Cause: signature.Stale, Detail: "signed more than " + skew.String() + " ago"}
	case at.Sub(now) > skew:
		return &signature.Refusal{Cause: signature.Future, Detail: "signed more than " + skew.String() + " ahead"}
	}
	return nil
}

// offer is what the headers say, believed by nobody yet.
type offer struct {
	delivery, attemptText, timestamp string
	attempt                          int64
	at                               time.Time
	elements                         []element
}

// element is one offered signature.
type element struct {
	kid, version string
	signature    []byte
}

func missing(name string) error {
	return &signature.Refusal{Cause: signature.Missing, Detail: "no " + name + " header"}
}

func malformed(detail string) error {
	return &signature.Refusal{Cause: signature.Malformed, Detail: detail}
}

// readOffer reads the headers, in bounds.
func readOffer(header map[string]string) (offer, error) {
	for _, name := range []string{HeaderSignature, HeaderID, HeaderTimestamp, HeaderAttempt, HeaderKeyID, HeaderEventID} {
		switch {
		case header[name] == "":
			return offer{}, missing(name)
		case len(header[name]) > signature.HeaderBytesMax:
			return offer{}, malformed("the " + name + " header is too long")
		}
	}
	o := offer{delivery: header[HeaderID], attemptText: header[HeaderAttempt], timestamp: header[HeaderTimestamp]}
	if !isID(o.delivery) || !isID(header[HeaderEventID]) {
		return offer{}, malformed("an id is not what we write, or came twice")
	}
	var ok bool
	if o.attempt, ok = parseCount(o.attemptText, attemptDigitsMax); !ok {
		return offer{}, malformed("the attempt is not a number, or came twice")
	}
	seconds, ok := parseCount(o.timestamp, timestampDigitsMax)
	if !ok {
		return offer{}, malformed("the timestamp is not a number, or came twice")
	}
	o.at = time.Unix(seconds, 0).UTC()
	var err error
	o.elements, err = readElements(header[HeaderSignature], header[HeaderKeyID])
	return o, err
}

// readElements reads the list, which must name the header's key.
func readElements(text, newest string) ([]element, error) {
	var elements []element
	known, named := false, false
	for part := range strings.SplitSeq(text, " ") {
		e, ok := readElement(part)
		if !ok {
			return nil, malformed("dakghar-signature is not a list of signatures, or came twice")
		}
		if len(elements) == signature.CandidatesMax {
			return nil, malformed("too many signatures")
		}
		for _, other := range elements {
			if other.kid == e.kid {
				return nil, malformed("two signatures of one key")
			}
		}
		elements = append(elements, e)
		known, named = known || e.signature != nil, named || e.kid == newest
	}
	switch {
	case !named:
		return nil, malformed("dakghar-key-id names none of the signatures")
	case !known:
		return nil, &signature.Refusal{Cause: signature.Missing, Detail: "no signature of a version that is known"}
	}
	return elements, nil
}

// readElement reads "kid=K,v1=SIG". A version that is not known has no signature:
// a sender may begin a new one while it still writes the old one beside it.
func readElement(part string) (element, bool) {
	rest, ok := strings.CutPrefix(part, "kid=")
	if !ok {
		return element{}, false
	}
	kid, tagged, ok := strings.Cut(rest, ",")
	version, encoded, both := strings.Cut(tagged, "=")
	if !ok || !both || !isKeyID(kid) || !isVersion(version) || strings.Contains(encoded, ",") {
		return element{}, false
	}
	e := element{kid: kid, version: version}
	size := map[string]int{versionHMAC: 32, versionEd25519: ed25519.SignatureSize}[version]
	if size == 0 {
		return e, true
	}
	e.signature, ok = decodeBase64(encoded)
	return e, ok && len(e.signature) == size
}

func isVersion(text string) bool {
	return text != "" && len(text) <= 8 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// match checks every signature against every key that it can be of, so that the
// time taken does not tell which one was right.
func (o offer) match(body []byte, keys []VerifyingKey) (kid string, err error) {
	tried := false
	for _, k := range keys {
		for _, e := range o.elements {
			if e.signature == nil || k.ID != "" && k.ID != e.kid || k.material().version() != e.version {
				continue
			}
			tried = true
			s := signed{kid: e.kid, delivery: o.delivery, attempt: o.attemptText, timestamp: o.timestamp, body: body}
			if k.material().made(s, e.signature) && kid == "" {
				kid = e.kid
			}
		}
	}
	switch {
	case kid != "":
		return kid, nil
	case !tried:
		return "", &signature.Refusal{Cause: UnknownKey, Detail: "no signature is of a key that is known here"}
	}
	return "", &signature.Refusal{Cause: signature.Mismatch, Detail: "the key did not make the signature over these bytes and headers"}
}

func (m material) made(s signed, sig []byte) bool {
	if m.public != nil {
		return ed25519.Verify(m.public, s.whole(), sig)
	}
	return subtle.ConstantTimeCompare(s.mac(m.shared), sig) == 1
}
