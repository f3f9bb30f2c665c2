package signature

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Bounds on what an unverified request can ask for.
const (
	// CandidatesMax is how many signatures one request may offer. Senders that
	// rotate their key offer two or three.
	CandidatesMax = 10
	// HeaderBytesMax bounds each header that the engine reads. Ten Ed25519
	// signatures take less than half of it.
	HeaderBytesMax = 2048
)

// Header holds a request's headers by lower-case name. A header that came more
// than once has its values joined by commas, as API Gateway does it.
type Header map[string]string

// Request is what was received. Method and URL matter only to schemes that sign
// them; URL is then the address as it was configured at the sender, not what
// the transport shows.
type Request struct {
	Method, URL string
	Header      Header
	Body        []byte
}

// Scheme is one sender's way of signing, as data. It is immutable once used,
// and safe for concurrent use.
type Scheme struct {
	// Methods are the algorithms that are accepted; everything else that a
	// header offers is ignored, so an older or weaker signature proves nothing.
	Methods []Method
	// Message lists the signed parts in order. Exactly one is the raw body.
	Message []Part
	// Signature says where signatures stand and how they are written.
	Signature Place
	// Timestamp says where the signed time stands; zero where none is signed.
	Timestamp Timestamp
}

// Method is one algorithm with the key that it takes.
type Method struct {
	// Tag names the method's signatures in a list: "v1". Empty in [Plain].
	Tag       string
	Algorithm Algorithm
	Key       KeyRule
}

// Algorithm makes a signature from a key and a message.
type Algorithm int

// The algorithms. SHA-1 is here for senders that offer nothing better.
const (
	HMACSHA1 Algorithm = iota + 1
	HMACSHA256
	HMACSHA512
	Ed25519
)

// size returns the bytes of a signature.
func (a Algorithm) size() int {
	return [...]int{HMACSHA1: 20, HMACSHA256: 32, HMACSHA512: 64, Ed25519: 64}[a]
}

// Encoding writes bytes as text.
type Encoding int

// The encodings. Text means the bytes of the text itself.
const (
	Text Encoding = iota + 1
	Hex
	Base64
	Base64URL
)

// Grammar is the shape of a signature header.
type Grammar int

// The grammars.
const (
	// Plain is one signature after a fixed prefix: "sha256=ab12".
	Plain Grammar = iota + 1
	// Fields is a list of name=value: "t=1,v1=ab,v1=cd".
	Fields
	// Tagged is a list of tag,value: "v1,AB v1a,CD".
	Tagged
)

// Place says where signatures stand.
type Place struct {
	Header   string // lower-case
	Grammar  Grammar
	Encoding Encoding
	// Prefix must stand before a [Plain] signature.
	Prefix string
	// Separator stands between the elements of a list.
	Separator byte
}

// Unit says what the text of a time counts.
type Unit int

// The units. Seconds and milliseconds count from 1970 and are digits only.
const (
	Seconds Unit = iota + 1
	Milliseconds
	RFC3339
)

// Timestamp says where the signed time stands and how far off it may be.
type Timestamp struct {
	// Header is the time's own header, lower-case. Or Field is its name in the
	// [Fields] of the signature header.
	Header, Field string
	Unit          Unit
	// Past and Future bound how far the time may lie from the clock. Both zero
	// means that the sender states no tolerance: the time is read, not judged.
	Past, Future time.Duration
}

func (t Timestamp) signed() bool { return t != Timestamp{} }

// Part is one piece of the signed message.
type Part struct {
	kind partKind
	text string
}

type partKind int

const (
	partLiteral partKind = iota + 1
	partBody
	partTime
	partHeader
	partMethod
	partURL
)

// Literal is a fixed text between other parts.
func Literal(text string) Part { return Part{partLiteral, text} }

// RawBody is the body, byte for byte.
func RawBody() Part { return Part{kind: partBody} }

// SignedTime is the text of the timestamp, as it was received.
func SignedTime() Part { return Part{kind: partTime} }

// HeaderValue is the value of a header, lower-case name. The value must be
// visible ASCII, free of commas and of everything that the scheme's literals
// contain, so that the joined message can be read in one way only.
func HeaderValue(name string) Part { return Part{partHeader, name} }

// RequestMethod is the HTTP method.
func RequestMethod() Part { return Part{kind: partMethod} }

// RequestURL is the configured address.
func RequestURL() Part { return Part{kind: partURL} }

// SignsHeader reports whether changing a header breaks the signature.
func (s *Scheme) SignsHeader(name string) bool {
	for _, p := range s.Message {
		if p.kind == partHeader && p.text == name {
			return true
		}
	}
	return false
}

// SignsTime reports whether a time is signed.
func (s *Scheme) SignsTime() bool { return s.Timestamp.signed() }

// Validate returns everything that is wrong with the declaration.
func (s *Scheme) Validate() error {
	var problems []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf("signature: "+format, args...))
		}
	}
	s.validateMethods(refuse)
	s.validateMessage(refuse)
	s.validatePlace(refuse)
	return errors.Join(problems...)
}

func (s *Scheme) validateMethods(refuse func(bool, string, ...any)) {
	refuse(len(s.Methods) == 0 || len(s.Methods) > methodsMax, "%d methods, want 1 to %d", len(s.Methods), methodsMax)
	tags := map[string]bool{}
	for _, m := range s.Methods {
		refuse(m.Algorithm < HMACSHA1 || m.Algorithm > Ed25519, "method %q has no algorithm", m.Tag)
		refuse((m.Tag == "") != (s.Signature.Grammar == Plain), "method %q: lists have tags, a plain signature has none", m.Tag)
		refuse(m.Tag != "" && !isTag(m.Tag), "tag %q", m.Tag)
		refuse(tags[m.Tag], "tag %q twice", m.Tag)
		tags[m.Tag] = true
		refuse(m.Key.Encoding < Text || m.Key.Encoding > Base64URL, "method %q has no key encoding", m.Tag)
		refuse(m.Key.BytesMin < 1, "method %q accepts an empty key", m.Tag)
		refuse(m.Algorithm == Ed25519 && m.Key.Encoding == Text, "method %q: a public key is not text", m.Tag)
	}
}

func (s *Scheme) validateMessage(refuse func(bool, string, ...any)) {
	bodies, times := 0, 0
	for _, p := range s.Message {
		switch p.kind {
		case partBody:
			bodies++
		case partTime:
			times++
		case partHeader:
			refuse(!isHeaderName(p.text), "signed header %q", p.text)
		case partLiteral:
			refuse(p.text == "", "an empty literal")
		case partMethod, partURL:
		default:
			refuse(true, "a part without a kind")
		}
	}
	refuse(bodies != 1, "%d raw bodies in the message, want 1", bodies)
	refuse(s.Timestamp.signed() && times != 1, "%d times in the message, want 1", times)
	refuse(!s.Timestamp.signed() && times != 0, "a time in the message and no timestamp")
}

func (s *Scheme) validatePlace(refuse func(bool, string, ...any)) {
	p, t := s.Signature, s.Timestamp
	refuse(!isHeaderName(p.Header), "signature header %q", p.Header)
	refuse(p.Grammar < Plain || p.Grammar > Tagged, "no grammar")
	refuse(p.Encoding < Hex || p.Encoding > Base64URL, "no signature encoding")
	refuse((p.Separator == 0) != (p.Grammar == Plain), "a list has a separator, a plain signature has none")
	refuse(p.Prefix != "" && p.Grammar != Plain, "a prefix in a list")
	if !t.signed() {
		return
	}
	refuse(t.Unit < Seconds || t.Unit > RFC3339, "no unit of time")
	refuse((t.Header == "") == (t.Field == ""), "a time needs a header or a field, not both")
	refuse(t.Header != "" && !isHeaderName(t.Header), "time header %q", t.Header)
	refuse(t.Field != "" && (p.Grammar != Fields || !isTag(t.Field)), "time field %q", t.Field)
	refuse(t.Past < 0 || t.Future < 0 || (t.Past == 0) != (t.Future == 0), "tolerance of %s and %s", t.Past, t.Future)
}

// methodsMax keeps a method's index in one byte of a decoded key.
const methodsMax = 8

func isHeaderName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// isTag also decides which names a list may hold: a space or a capital there
// means that the header is not what the sender writes.
func isTag(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 16
}
