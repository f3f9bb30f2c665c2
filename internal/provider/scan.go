package provider

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a body's JSON.
const (
	DepthMax       = 64
	NumberBytesMax = 64
	elementsMax    = 10 // of an array, that a path can name
)

// BadBody is a verified body that cannot be an event of its sender. Code is
// stable, and nothing of the body is in it.
type BadBody struct{ Code string }

func (b *BadBody) Error() string { return "body refused: " + b.Code }

// The codes of a [BadBody].
const (
	CodeMalformed  = "body_malformed"
	CodeAmbiguous  = "body_ambiguous"
	CodeTooDeep    = "body_too_deep"
	CodeUnexpected = "body_unexpected" // not the shape that all events of the sender have
	CodeHandshake  = "handshake_malformed"
	CodeNoID       = "id_missing"
	CodeBadID      = "id_invalid"
	CodeNoType     = "type_missing"
	CodeBadType    = "type_invalid"
	// CodeTypeMismatch: the body is not one of the type that an unsigned header names.
	CodeTypeMismatch = "type_mismatch"
)

// BodyCodes lists the codes of a [BadBody].
func BodyCodes() []string {
	return []string{
		CodeMalformed, CodeAmbiguous, CodeTooDeep, CodeUnexpected, CodeHandshake, CodeNoID, CodeBadID, CodeNoType, CodeBadType, CodeTypeMismatch,
	}
}

func bad(code string) error { return &BadBody{Code: code} }

// scan reads a whole body once and returns what stands at the tree's paths.
// See the package documentation for what it refuses.
func scan(doc []byte, t *tree) (values, error) {
	if tooDeep(doc) {
		return values{}, bad(CodeTooDeep)
	}
	// The decoder reads a bytes.Buffer in place.
	s := scanner{dec: jsontext.NewDecoder(bytes.NewBuffer(doc)), out: values{t, make([]leaf, len(t.index))}}
	if s.dec.PeekKind() != '{' {
		return values{}, bad(CodeMalformed)
	}
	if err := s.object(&t.root); err != nil {
		return values{}, badJSON(err)
	}
	if _, err := s.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return values{}, bad(CodeMalformed)
	}
	return s.out, nil
}

func badJSON(err error) error {
	var b *BadBody
	switch {
	case errors.As(err, &b):
		return b
	case errors.Is(err, jsontext.ErrDuplicateName):
		return bad(CodeAmbiguous)
	}
	return bad(CodeMalformed)
}

// tooDeep counts brackets outside strings. It runs first, so that nothing that
// recurses ever sees a deep body; that what it counts is JSON is checked later.
func tooDeep(doc []byte) bool {
	if bytes.Count(doc, []byte{'{'})+bytes.Count(doc, []byte{'['}) <= DepthMax {
		return false // most bodies have no more brackets at all, and counting is cheaper than following
	}
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '{', '[':
			if depth++; depth > DepthMax {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			i = stringEnd(doc, i+1)
		}
	}
	return false
}

// stringEnd returns the index of the quote that ends the string beginning at i.
func stringEnd(doc []byte, i int) int {
	for i < len(doc) {
		n := bytes.IndexByte(doc[i:], '"')
		if n < 0 {
			return len(doc)
		}
		end := i + n
		escapes := 0
		for j := end - 1; j >= i && doc[j] == '\\'; j-- {
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
		i = end + 1
	}
	return len(doc)
}

type scanner struct {
	dec *jsontext.Decoder
	out values
	buf []byte
	// folded has the names of the objects that are being read, outermost first.
	folded []uint64
}

// object reads an object on the way to something that is read.
func (s *scanner) object(n *node) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	outer := len(s.folded)
	for s.dec.PeekKind() != '}' {
		name, err := s.name()
		if err != nil {
			return err
		}
		s.folded = append(s.folded, foldHash(name))
		if err := s.value(n.children[string(name)]); err != nil {
			return err
		}
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	folded := s.folded[outer:]
	s.folded = s.folded[:outer]
	slices.Sort(folded)
	for i := 1; i < len(folded); i++ {
		if folded[i] == folded[i-1] {
			return bad(CodeAmbiguous)
		}
	}
	return nil
}

// name reads a member's name. It is valid until the next read.
func (s *scanner) name() ([]byte, error) {
	raw, err := s.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(raw, '\\') < 0 && raw.Kind() == '"' {
		return raw[1 : len(raw)-1], nil
	}
	s.buf, err = jsontext.AppendUnquote(s.buf[:0], raw)
	return s.buf, err
}

func (s *scanner) value(n *node) error {
	if n == nil {
		return s.skip()
	}
	kind := s.dec.PeekKind()
	if n.leaf >= 0 {
		s.out.leaves[n.leaf].kind = kind
	}
	switch {
	case n.raw:
		raw, err := s.dec.ReadValue()
		s.out.leaves[n.leaf].raw = bytes.Clone(raw)
		return err
	case kind == '{' && n.children != nil:
		return s.object(n)
	case kind == '[' && n.children != nil:
		return s.array(n)
	case n.leaf >= 0 && kind != '{' && kind != '[':
		return s.scalar(&s.out.leaves[n.leaf])
	}
	return s.skip()
}

// skip passes over a value. Reading it whole costs no memory, since the decoder
// has all of the body; SkipValue would go token by token.
func (s *scanner) skip() error {
	_, err := s.dec.ReadValue()
	return err
}

func (s *scanner) array(n *node) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; s.dec.PeekKind() != ']'; i++ {
		var child *node
		if i < elementsMax {
			child = n.children[strconv.Itoa(i)]
		}
		if err := s.value(child); err != nil {
			return err
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

func (s *scanner) scalar(l *leaf) error {
	raw, err := s.dec.ReadValue()
	if err != nil {
		return err
	}
	switch {
	case raw.Kind() == '"':
		s.buf, err = jsontext.AppendUnquote(s.buf[:0], raw)
		l.text = string(s.buf)
	case len(raw) <= NumberBytesMax:
		l.text = string(raw)
	}
	return err
}

// foldHash hashes a name such that names that differ only in case are equal.
// Two others meet once in 2^64, and are then refused for nothing.
func foldHash(name []byte) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for i := 0; i < len(name); {
		r, size := rune(name[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(name[i:])
		}
		h = (h ^ uint64(fold(r))) * prime //nolint:gosec // a rune is never negative
		i += size
	}
	return h
}

// fold returns the least rune among those that simple folding takes for r.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}
