package signature

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Metadata is what the signature headers say, read without the body and
// believed by nobody yet. It belongs to the header that it was read from.
type Metadata struct {
	at         time.Time
	timeText   string
	signed     []string // values of the signed headers, in message order
	candidates []candidate
}

// candidate is one offered signature.
type candidate struct {
	method    int // index into Scheme.Methods
	signature []byte
}

// At returns the time that the sender states, zero where the scheme has none.
// It is worth something only after [Scheme.Verify].
func (m Metadata) At() time.Time { return m.at }

// Metadata reads the signature headers. The error is a [*Refusal] with cause
// [Missing] or [Malformed].
func (s *Scheme) Metadata(h Header) (Metadata, error) {
	text, err := present(h, s.Signature.Header)
	if err != nil {
		return Metadata{}, err
	}
	var m Metadata
	switch s.Signature.Grammar {
	case Plain:
		err = s.readPlain(&m, text)
	case Fields:
		err = s.readFields(&m, text)
	case Tagged:
		err = s.readTagged(&m, text)
	default:
		panic("signature: a scheme without a grammar")
	}
	if err == nil {
		err = s.readTime(&m, h)
	}
	if err == nil {
		err = s.readSigned(&m, h)
	}
	if err != nil {
		return Metadata{}, err
	}
	return m, nil
}

func present(h Header, name string) (string, error) {
	text := h[name]
	switch {
	case text == "":
		return "", missing("no " + name + " header")
	case len(text) > HeaderBytesMax:
		return "", malformed("the " + name + " header is too long")
	}
	return text, nil
}

func (s *Scheme) readPlain(m *Metadata, text string) error {
	encoded, ok := strings.CutPrefix(text, s.Signature.Prefix)
	if !ok {
		return malformed("the signature lacks its prefix")
	}
	sig, ok := decodeExactly(s.Signature.Encoding, encoded, s.Methods[0].Algorithm.size())
	if !ok {
		return malformed("the signature is not in its encoding")
	}
	m.candidates = []candidate{{0, sig}}
	return nil
}

func (s *Scheme) readFields(m *Metadata, text string) error {
	// A comma is how a transport joins two headers. Where it also stands between
	// fields, the second header's time gives it away.
	if s.Signature.Separator != ',' && strings.Contains(text, ",") {
		return malformed("the signature header is there twice")
	}
	offered := false
	for field := range strings.SplitSeq(text, string(s.Signature.Separator)) {
		name, value, ok := strings.Cut(field, "=")
		if !ok || !isTag(name) {
			return malformed("the signature header is not a list of fields")
		}
		if name == s.Timestamp.Field {
			if m.timeText != "" || value == "" {
				return malformed("the time is empty or there twice")
			}
			m.timeText = value
			continue
		}
		known, err := s.offer(m, name, value)
		if err != nil {
			return err
		}
		offered = offered || known
	}
	return readable(m, offered)
}

func (s *Scheme) readTagged(m *Metadata, text string) error {
	offered := false
	for entry := range strings.SplitSeq(text, string(s.Signature.Separator)) {
		tag, value, ok := strings.Cut(entry, ",")
		// A second comma is how a transport joins two headers.
		if !ok || !isTag(tag) || strings.Contains(value, ",") {
			return malformed("the signature header is not a list of tagged signatures")
		}
		known, err := s.offer(m, tag, value)
		if err != nil {
			return err
		}
		offered = offered || known
	}
	return readable(m, offered)
}

// offer adds a signature of a known tag. One that cannot be read is skipped,
// like one of an unknown tag: a sender may change its format while it still
// writes the old one beside it.
func (s *Scheme) offer(m *Metadata, tag, encoded string) (known bool, err error) {
	for i, method := range s.Methods {
		if method.Tag != tag {
			continue
		}
		sig, ok := decodeExactly(s.Signature.Encoding, encoded, method.Algorithm.size())
		if !ok {
			return true, nil
		}
		if len(m.candidates) == CandidatesMax {
			return true, malformed("too many signatures")
		}
		m.candidates = append(m.candidates, candidate{i, sig})
		return true, nil
	}
	return false, nil
}

func readable(m *Metadata, offered bool) error {
	switch {
	case !offered:
		return missing("no signature of an accepted method")
	case len(m.candidates) == 0:
		return malformed("no signature is in its encoding")
	}
	return nil
}

func (s *Scheme) readTime(m *Metadata, h Header) error {
	t := s.Timestamp
	if !t.signed() {
		return nil
	}
	if t.Header != "" {
		text, err := present(h, t.Header)
		if err != nil {
			return err
		}
		m.timeText = text
	}
	if m.timeText == "" {
		return missing("no signed time")
	}
	at, ok := parseTime(t.Unit, m.timeText)
	if !ok {
		return malformed("the signed time is not a time")
	}
	m.at = at
	return nil
}

func (s *Scheme) readSigned(m *Metadata, h Header) error {
	for _, p := range s.Message {
		if p.kind != partHeader {
			continue
		}
		value, err := present(h, p.text)
		if err != nil {
			return err
		}
		if !s.plainValue(value) {
			return malformed("a signed header holds what would make the message ambiguous")
		}
		m.signed = append(m.signed, value)
	}
	return nil
}

// plainValue reports whether a header's value cannot be mistaken for its
// neighbours in the message, nor for two headers joined by the transport.
func (s *Scheme) plainValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7f || c == ',' {
			return false
		}
	}
	for _, p := range s.Message {
		if p.kind == partLiteral && strings.ContainsAny(value, p.text) {
			return false
		}
	}
	return true
}

// Digits that a time may have: enough for every date of the next millennia, few
// enough to stay far from overflow.
const (
	secondsDigitsMax      = 12
	millisecondsDigitsMax = 15
	rfc3339BytesMax       = 40
)

func parseTime(u Unit, text string) (time.Time, bool) {
	switch u {
	case Seconds:
		n, ok := parseDigits(text, secondsDigitsMax)
		return time.Unix(n, 0).UTC(), ok
	case Milliseconds:
		n, ok := parseDigits(text, millisecondsDigitsMax)
		return time.UnixMilli(n).UTC(), ok
	case RFC3339:
		at, err := time.Parse(time.RFC3339, text)
		return at.UTC(), err == nil && len(text) <= rfc3339BytesMax
	}
	panic("signature: a time without a unit")
}

func formatTime(u Unit, at time.Time) string {
	switch u {
	case Seconds:
		return strconv.FormatInt(at.Unix(), 10)
	case Milliseconds:
		return strconv.FormatInt(at.UnixMilli(), 10)
	case RFC3339:
		return at.UTC().Format(time.RFC3339)
	}
	panic("signature: a time without a unit")
}

// parseDigits accepts digits alone: a sign or a space would be signed text too,
// and other implementations print the number anew before they check it.
func parseDigits(text string, digitsMax int) (int64, bool) {
	if text == "" || len(text) > digitsMax {
		return 0, false
	}
	var n int64
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// decodeExactly decodes size bytes, in the one text that encodes them.
func decodeExactly(e Encoding, text string, size int) ([]byte, bool) {
	decoded, ok := decode(e, text, size)
	return decoded, ok && len(decoded) == size
}

// decode refuses every text that encode would not have written.
func decode(e Encoding, text string, sizeMax int) ([]byte, bool) {
	if len(text) > 2*sizeMax+2 {
		return nil, false
	}
	var decoded []byte
	var err error
	switch e {
	case Hex:
		if strings.ContainsAny(text, "ABCDEF") {
			return nil, false
		}
		decoded, err = hex.DecodeString(text)
	case Base64:
		decoded, err = decodeBase64(base64.StdEncoding, text)
	case Base64URL:
		decoded, err = decodeBase64(base64.URLEncoding, text)
	default:
		panic("signature: no such encoding")
	}
	return decoded, err == nil
}

// decodeBase64 also refuses line ends, which the standard library skips.
func decodeBase64(e *base64.Encoding, text string) ([]byte, error) {
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		return nil, base64.CorruptInputError(i)
	}
	return e.Strict().DecodeString(text)
}

func encode(e Encoding, b []byte) string {
	switch e {
	case Hex:
		return hex.EncodeToString(b)
	case Base64:
		return base64.StdEncoding.EncodeToString(b)
	case Base64URL:
		return base64.URLEncoding.EncodeToString(b)
	case Text: // a key rule, never a signature's encoding
	}
	panic("signature: no such encoding")
}
