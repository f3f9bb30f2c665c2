package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // senders that offer nothing better; HMAC-SHA-1 is not broken
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"errors"
	"hash"
	"time"
)

// Match says which key made a signature, and when the sender says it did.
type Match struct {
	Version string
	At      time.Time // zero where no time is signed
}

// ErrNoKey is returned where there is no usable key to check with. That is our
// fault and not the sender's: such a request deserves a retryable answer.
var ErrNoKey = errors.New("signature: no usable key")

// Verify checks the offered signatures over the raw body against every key, and
// returns the first of the keys that made one: put the newest first. The error
// is a [*Refusal] with cause [Mismatch], or [ErrNoKey]. meta must have been read
// from the request's own header. Freshness is another question; see
// [Scheme.Fresh].
func (s *Scheme) Verify(req Request, meta Metadata, keys []Key) (Match, error) {
	if len(keys) == 0 {
		return Match{}, ErrNoKey
	}
	msg := s.message(req, meta)
	matched := -1
	for i, k := range keys {
		method, material, ok := s.open(k)
		if !ok {
			return Match{}, ErrNoKey
		}
		if s.matches(method, material, msg, meta.candidates) && matched < 0 {
			matched = i
		}
	}
	if matched < 0 {
		return Match{}, &Refusal{Cause: Mismatch, Detail: "no trusted key made a signature over these bytes"}
	}
	return Match{Version: keys[matched].Version, At: meta.at}, nil
}

// matches compares every candidate, so that the time taken does not tell which
// one was right.
func (s *Scheme) matches(method int, material []byte, msg message, offered []candidate) bool {
	algorithm := s.Methods[method].Algorithm
	if algorithm == Ed25519 {
		return anyEd25519(material, msg.joined(), method, offered)
	}
	sum := msg.mac(algorithm, material)
	found := 0
	for _, c := range offered {
		if c.method == method {
			found |= subtle.ConstantTimeCompare(sum, c.signature)
		}
	}
	return found == 1
}

func anyEd25519(public, msg []byte, method int, offered []candidate) bool {
	found := false
	for _, c := range offered {
		if c.method == method && ed25519.Verify(public, msg, c.signature) {
			found = true
		}
	}
	return found
}

// Fresh compares the signed time with now, in both directions: a request dated
// ahead could be kept and sent again later. The error is a [*Refusal] with cause
// [Stale] or [Future]. Ask it after Verify, at receipt and never later.
func (s *Scheme) Fresh(meta Metadata, now time.Time) error {
	t := s.Timestamp
	if !t.signed() || t.Past == 0 {
		return nil
	}
	switch {
	case now.Sub(meta.at) > t.Past:
		return &Refusal{Cause: Stale, Detail: "signed more than " + t.Past.String() + " ago"}
	case meta.at.Sub(now) > t.Future:
		return &Refusal{Cause: Future, Detail: "signed more than " + t.Future.String() + " ahead"}
	}
	return nil
}

// Sign returns the headers that a sender would add: the signature, its time and
// the signed headers, which must be in req. Ed25519 needs a key from
// [Scheme.DecodeSigningKey].
func (s *Scheme) Sign(req Request, key Key, at time.Time) (Header, error) {
	method, material, ok := s.openForSigning(key)
	if !ok {
		return nil, ErrNoKey
	}
	var meta Metadata
	out := Header{}
	if s.Timestamp.signed() {
		meta.timeText = formatTime(s.Timestamp.Unit, at)
		if s.Timestamp.Header != "" {
			out[s.Timestamp.Header] = meta.timeText
		}
	}
	if err := s.readSigned(&meta, req.Header); err != nil {
		return nil, err
	}
	for _, p := range s.Message {
		if p.kind == partHeader {
			out[p.text] = req.Header[p.text]
		}
	}
	msg := s.message(req, meta)
	out[s.Signature.Header] = s.write(method, msg.sign(s.Methods[method].Algorithm, material), meta.timeText)
	return out, nil
}

// write renders one signature the way the sender does.
func (s *Scheme) write(method int, sig []byte, timeText string) string {
	encoded := encode(s.Signature.Encoding, sig)
	tag := s.Methods[method].Tag
	switch s.Signature.Grammar {
	case Fields:
		fields := tag + "=" + encoded
		if s.Timestamp.Field != "" {
			fields = s.Timestamp.Field + "=" + timeText + string(s.Signature.Separator) + fields
		}
		return fields
	case Tagged:
		return tag + "," + encoded
	case Plain:
	}
	return s.Signature.Prefix + encoded
}

// message is what is signed: small parts before and after the body, which is
// never copied for an HMAC.
type message struct{ before, body, after []byte }

func (s *Scheme) message(req Request, meta Metadata) message {
	small := make([]byte, 0, 160)
	split, header := 0, 0
	for _, p := range s.Message {
		switch p.kind {
		case partBody:
			split = len(small)
		case partLiteral:
			small = append(small, p.text...)
		case partTime:
			small = append(small, meta.timeText...)
		case partHeader:
			small = append(small, meta.signed[header]...)
			header++
		case partMethod:
			small = append(small, req.Method...)
		case partURL:
			small = append(small, req.URL...)
		}
	}
	return message{before: small[:split], body: req.Body, after: small[split:]}
}

func (m message) joined() []byte {
	all := make([]byte, 0, len(m.before)+len(m.body)+len(m.after))
	all = append(all, m.before...)
	all = append(all, m.body...)
	return append(all, m.after...)
}

func (m message) mac(a Algorithm, key []byte) []byte {
	h := hmac.New(hashOf(a), key)
	h.Write(m.before)
	h.Write(m.body)
	h.Write(m.after)
	return h.Sum(nil)
}

func (m message) sign(a Algorithm, key []byte) []byte {
	if a == Ed25519 {
		return ed25519.Sign(key, m.joined())
	}
	return m.mac(a, key)
}

func hashOf(a Algorithm) func() hash.Hash {
	switch a {
	case HMACSHA1:
		return sha1.New
	case HMACSHA256:
		return sha256.New
	case HMACSHA512:
		return sha512.New
	case Ed25519:
	}
	panic("signature: not an HMAC")
}
