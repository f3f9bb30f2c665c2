package provider

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// values is what one pass over a body found.
type values struct {
	tree   *tree
	leaves []leaf
}

// leaf is what stands at one path: nothing if the kind is zero.
type leaf struct {
	kind jsontext.Kind
	text string // of a string, as decoded, of a number, or true or false
	raw  jsontext.Value
}

func (v values) at(path string) leaf {
	i, ok := v.tree.index[path]
	if !ok {
		panic("provider: path " + path + " is not declared")
	}
	return v.leaves[i]
}

// there reports whether something other than null stands here.
func (l leaf) there() bool { return l.kind != 0 && l.kind != 'n' }

// scalar returns the text of a string, or of a plain integer.
func (l leaf) scalar() (string, bool) {
	switch l.kind {
	case '"':
		return l.text, true
	case '0':
		_, ok := l.integer()
		return l.text, ok
	}
	return "", false
}

// integer returns a plain integer: no fraction, no exponent, no minus zero.
func (l leaf) integer() (int64, bool) {
	if l.kind != '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(l.text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == l.text
}

// first returns the first of the paths at which something stands.
func (v values) first(paths []string) leaf {
	for _, p := range paths {
		if l := v.at(p); l.there() {
			return l
		}
	}
	return leaf{}
}

// all reports whether every check holds.
func (v values) all(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !v.holds(c) })
}

func (v values) holds(c Check) bool {
	l := v.at(c.Path)
	switch {
	case c.Absent:
		return !l.there()
	case len(c.Is) == 0:
		return l.there()
	case l.kind == 't', l.kind == 'f':
		return slices.Contains(c.Is, l.text)
	}
	text, ok := l.scalar()
	return ok && slices.Contains(c.Is, text)
}

// timeOf reads unix seconds or RFC 3339, zero if it is neither.
func timeOf(l leaf) time.Time {
	if n, ok := l.integer(); ok && n > 0 && n < 1e12 {
		return time.Unix(n, 0).UTC()
	}
	if l.kind == '"' && len(l.text) <= 40 {
		if at, err := time.Parse(time.RFC3339, l.text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}
