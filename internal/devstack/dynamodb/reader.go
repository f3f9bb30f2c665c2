package dynamodb

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// reader decodes one JSON request in a single pass. It exists because the
// request carries attribute values, whose type is a member's name, and decoding
// those with encoding/json costs more than everything else a write does.
//
// Errors stick: after the first one every method returns a zero value, so
// decoding code needs no checks and looks at err once. Members that a decoder
// does not name are refused, never skipped.
type reader struct {
	data  []byte
	pos   int
	depth int
	err   *apiError
}

// readDepthMax bounds nesting of any JSON in a request: the service allows 32
// levels of attribute values, each of which is two levels of JSON.
const readDepthMax = 100

func (r *reader) fail(err *apiError) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) malformed(expected string) {
	r.fail(failure(kindSerialization, "malformed request: expected %s at byte %d", expected, r.pos))
}

func (r *reader) skipSpace() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// peek is the next significant byte, or 0 at the end and after an error.
func (r *reader) peek() byte {
	r.skipSpace()
	if r.err != nil || r.pos >= len(r.data) {
		return 0
	}
	return r.data[r.pos]
}

func (r *reader) take(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.pos++
	return true
}

// object calls member for each name; member must consume the value. A null
// stands for an absent value and calls nothing.
func (r *reader) object(member func(name string)) {
	if r.null() {
		return
	}
	if !r.open('{', "an object") {
		return
	}
	defer r.close()
	for first := true; !r.take('}'); first = false {
		if !first && !r.take(',') {
			r.malformed("',' or '}'")
			return
		}
		name := r.text()
		if !r.take(':') {
			r.malformed("':'")
		}
		if r.err != nil {
			return
		}
		member(name)
	}
}

// array calls element once for each element; element must consume it.
func (r *reader) array(element func()) {
	if r.null() {
		return
	}
	if !r.open('[', "an array") {
		return
	}
	defer r.close()
	for first := true; !r.take(']'); first = false {
		if !first && !r.take(',') {
			r.malformed("',' or ']'")
		}
		if r.err != nil {
			return
		}
		element()
	}
}

func (r *reader) open(bracket byte, what string) bool {
	if !r.take(bracket) {
		r.malformed(what)
		return false
	}
	r.depth++
	if r.depth > readDepthMax {
		r.fail(invalid("Nesting Levels have exceeded supported limits"))
		return false
	}
	return true
}

func (r *reader) close() { r.depth-- }

// end checks that nothing follows the request.
func (r *reader) end() {
	if r.err == nil && r.peek() != 0 {
		r.malformed("the end")
	}
}

// unknown refuses a member by name, with the place where it stood.
func (r *reader) unknown(where, name string) {
	r.fail(unsupported("the member " + strconv.Quote(name) + " of " + where))
}

func (r *reader) null() bool   { return r.literal("null") }
func (r *reader) absent() bool { return r.peek() == 'n' && r.null() }

func (r *reader) literal(word string) bool {
	if r.peek() != word[0] || !bytes.HasPrefix(r.data[r.pos:], []byte(word)) {
		return false
	}
	r.pos += len(word)
	return true
}

func (r *reader) boolean() bool {
	switch {
	case r.literal("true"):
		return true
	case r.literal("false"), r.null():
		return false
	}
	r.malformed("true or false")
	return false
}

// integer reads a whole number; null is zero.
func (r *reader) integer() int {
	if r.null() {
		return 0
	}
	r.skipSpace()
	start := r.pos
	for r.pos < len(r.data) && strings.IndexByte("+-0123456789", r.data[r.pos]) >= 0 {
		r.pos++
	}
	n, err := strconv.Atoi(string(r.data[start:r.pos]))
	if err != nil {
		r.malformed("a whole number")
	}
	return n
}

// text reads a string; null is the empty string.
func (r *reader) text() string {
	if r.null() {
		return ""
	}
	return string(r.rawText())
}

// rawText returns a string's bytes, which alias the request where nothing was
// escaped: copy what is kept.
func (r *reader) rawText() []byte {
	if !r.take('"') {
		r.malformed("a string")
		return nil
	}
	rest := r.data[r.pos:]
	end := bytes.IndexByte(rest, '"')
	if end >= 0 && bytes.IndexByte(rest[:end], '\\') < 0 {
		r.pos += end + 1
		return r.checked(rest[:end])
	}
	return r.checked(r.escapedText())
}

func (r *reader) checked(s []byte) []byte {
	if !utf8.Valid(s) {
		r.malformed("valid UTF-8")
		return nil
	}
	return s
}

func (r *reader) escapedText() []byte {
	var out []byte
	for r.pos < len(r.data) {
		c := r.data[r.pos]
		r.pos++
		switch c {
		case '"':
			return out
		case '\\':
			out = r.appendEscape(out)
		default:
			out = append(out, c)
		}
	}
	r.malformed("the end of a string")
	return nil
}

func (r *reader) appendEscape(out []byte) []byte {
	if r.pos >= len(r.data) {
		return out
	}
	c := r.data[r.pos]
	r.pos++
	if c == 'u' {
		return utf8.AppendRune(out, r.escapedRune())
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		r.malformed("an escape")
		return out
	}
	return append(out, "\"\\/\b\f\n\r\t"[i])
}

func (r *reader) escapedRune() rune {
	first := r.hex()
	if !utf16.IsSurrogate(first) {
		return first
	}
	if bytes.HasPrefix(r.data[r.pos:], []byte(`\u`)) {
		r.pos += 2
		return utf16.DecodeRune(first, r.hex())
	}
	return utf8.RuneError
}

func (r *reader) hex() rune {
	if r.pos+4 > len(r.data) {
		r.malformed("four hexadecimal digits")
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(r.data[r.pos:r.pos+4]), 16, 32)
	if err != nil {
		r.malformed("four hexadecimal digits")
		return utf8.RuneError
	}
	r.pos += 4
	return rune(n)
}
