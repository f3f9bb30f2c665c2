package provider

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// document is a JSON value whose members keep their order, so that a sample
// always has the same bytes.
type document struct {
	names    []string // of an object
	values   []*document
	kind     jsontext.Kind // '{', '[' or that of a scalar
	rawValue string        // of a scalar
}

func parseDocument(text []byte) (*document, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text))
	d, err := readDocument(dec)
	if err != nil {
		return nil, fmt.Errorf("provider: sample: %w", err)
	}
	return d, nil
}

func readDocument(dec *jsontext.Decoder) (*document, error) {
	d := &document{kind: dec.PeekKind()}
	if d.kind != '{' && d.kind != '[' {
		raw, err := dec.ReadValue()
		d.rawValue = string(raw)
		return d, err
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for dec.PeekKind() != d.kind+2 { // '}' and ']' stand two after their openings
		if d.kind == '{' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			d.names = append(d.names, name.String())
		}
		value, err := readDocument(dec)
		if err != nil {
			return nil, err
		}
		d.values = append(d.values, value)
	}
	_, err := dec.ReadToken()
	return d, err
}

// set puts a text at a path. Where a number or a truth value stood and the text
// can be one, it stays one.
func (d *document) set(path, text string) {
	leaf := d.make(path)
	if leaf.literal(text) {
		leaf.rawValue = text
		return
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic("provider: sample text is not UTF-8")
	}
	*leaf = document{kind: '"', rawValue: string(quoted)}
}

func (d *document) literal(text string) bool {
	switch d.kind {
	case '0':
		n, err := strconv.ParseInt(text, 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == text
	case 't', 'f':
		return text == "true" || text == "false"
	}
	return false
}

// setNull puts null at a path.
func (d *document) setNull(path string) { *d.make(path) = document{kind: 'n', rawValue: "null"} }

// find returns what stands at a path, nil for nothing.
func (d *document) find(path string) *document {
	for name := range strings.SplitSeq(path, ".") {
		if d = d.child(name); d == nil {
			return nil
		}
	}
	return d
}

func (d *document) child(name string) *document {
	if d.kind == '[' {
		if i, err := strconv.Atoi(name); err == nil && i < len(d.values) {
			return d.values[i]
		}
		return nil
	}
	for i, n := range d.names {
		if n == name {
			return d.values[i]
		}
	}
	return nil
}

// make returns the value at a path, and makes it and its parents if need be.
func (d *document) make(path string) *document {
	for name := range strings.SplitSeq(path, ".") {
		child := d.child(name)
		if child == nil {
			if d.kind != '{' && d.kind != '[' {
				*d = document{kind: '{'}
			}
			child = &document{kind: 'n', rawValue: "null"}
			if d.kind == '{' {
				d.names = append(d.names, name)
			}
			d.values = append(d.values, child)
		}
		d = child
	}
	return d
}

func (d *document) bytes() []byte { return d.append(nil) }

func (d *document) append(b []byte) []byte {
	if d.kind != '{' && d.kind != '[' {
		return append(b, d.rawValue...)
	}
	b = append(b, byte(d.kind))
	for i, v := range d.values {
		if i > 0 {
			b = append(b, ',')
		}
		if d.kind == '{' {
			b, _ = jsontext.AppendQuote(b, d.names[i]) // names were read as UTF-8
			b = append(b, ':')
		}
		b = v.append(b)
	}
	return append(b, byte(d.kind)+2)
}
