package dynamodb

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// value is one attribute value. The concrete types below are the ten wire types;
// none of them is changed once stored.
type value interface {
	// wire is the type's name on the wire: S, N, B, BOOL, NULL, M, L, SS, NS, BS.
	wire() string
	// size in bytes by the published item size rule, without the attribute's name.
	size() int
}

type (
	text      string
	binary    string
	boolean   bool
	null      struct{}
	list      []value
	object    map[string]value
	textSet   []string // sorted, so that equal sets are equal slices
	binarySet []string // sorted
	numberSet []number // sorted
)

// item is a whole row: attribute name to value.
type item = object

func (text) wire() string      { return "S" }
func (number) wire() string    { return "N" }
func (binary) wire() string    { return "B" }
func (boolean) wire() string   { return "BOOL" }
func (null) wire() string      { return "NULL" }
func (list) wire() string      { return "L" }
func (object) wire() string    { return "M" }
func (textSet) wire() string   { return "SS" }
func (binarySet) wire() string { return "BS" }
func (numberSet) wire() string { return "NS" }

func (v text) size() int    { return len(v) }
func (v binary) size() int  { return len(v) }
func (v boolean) size() int { return 1 }
func (v null) size() int    { return 1 }

// containerBytes is the fixed cost of a list or a map; each element costs one
// byte more.
const containerBytes = 3

func (v list) size() int {
	total := containerBytes
	for _, element := range v {
		total += 1 + element.size()
	}
	return total
}

func (v object) size() int {
	total := containerBytes
	for name, element := range v {
		total += 1 + len(name) + element.size()
	}
	return total
}

func (v textSet) size() int   { return totalLength(v) }
func (v binarySet) size() int { return totalLength(v) }

func (v numberSet) size() int {
	total := 0
	for _, n := range v {
		total += n.size()
	}
	return total
}

func totalLength(members []string) int {
	total := 0
	for _, m := range members {
		total += len(m)
	}
	return total
}

// itemSize is the billed size of a row: names plus values, no fixed cost.
func itemSize(it item) int {
	total := 0
	for name, v := range it {
		total += len(name) + v.size()
	}
	return total
}

// attributeSize is one attribute's share of itemSize, zero when it is absent.
func attributeSize(it item, name string) int {
	v, ok := it[name]
	if !ok {
		return 0
	}
	return len(name) + v.size()
}

// equal compares deeply; values of different types are never equal.
func equal(a, b value) bool {
	switch a := a.(type) {
	case list:
		b, ok := b.(list)
		return ok && slices.EqualFunc(a, b, equal)
	case object:
		b, ok := b.(object)
		return ok && maps.EqualFunc(a, b, equal)
	case textSet:
		b, ok := b.(textSet)
		return ok && slices.Equal(a, b)
	case binarySet:
		b, ok := b.(binarySet)
		return ok && slices.Equal(a, b)
	case numberSet:
		b, ok := b.(numberSet)
		return ok && slices.Equal(a, b)
	}
	switch b.(type) {
	case list, object, textSet, binarySet, numberSet:
		return false
	}
	return a == b
}

// compare orders two values of one ordered type (S, N, B); ok is false for any
// other pair.
func compare(a, b value) (order int, ok bool) {
	switch a := a.(type) {
	case text:
		if b, ok := b.(text); ok {
			return strings.Compare(string(a), string(b)), true
		}
	case binary:
		if b, ok := b.(binary); ok {
			return strings.Compare(string(a), string(b)), true
		}
	case number:
		if b, ok := b.(number); ok {
			return a.compare(b), true
		}
	}
	return 0, false
}

// measure is the size() function of expressions: characters of a string, bytes
// of a binary, members of anything else; ok is false where it has no meaning.
func measure(v value) (length int, ok bool) {
	switch v := v.(type) {
	case text:
		return utf8.RuneCountInString(string(v)), true
	case binary:
		return len(v), true
	case list:
		return len(v), true
	case object:
		return len(v), true
	case textSet:
		return len(v), true
	case binarySet:
		return len(v), true
	case numberSet:
		return len(v), true
	}
	return 0, false
}

// contains is the function of that name: substring, set member or list element.
func contains(container, element value) bool {
	switch c := container.(type) {
	case text:
		e, ok := element.(text)
		return ok && strings.Contains(string(c), string(e))
	case binary:
		e, ok := element.(binary)
		return ok && strings.Contains(string(c), string(e))
	case textSet:
		e, ok := element.(text)
		return ok && slices.Contains(c, string(e))
	case binarySet:
		e, ok := element.(binary)
		return ok && slices.Contains(c, string(e))
	case numberSet:
		e, ok := element.(number)
		return ok && slices.Contains(c, e)
	case list:
		return slices.ContainsFunc(c, func(v value) bool { return equal(v, element) })
	}
	return false
}

// beginsWith holds for two strings or two binaries.
func beginsWith(whole, prefix value) bool {
	switch w := whole.(type) {
	case text:
		p, ok := prefix.(text)
		return ok && strings.HasPrefix(string(w), string(p))
	case binary:
		p, ok := prefix.(binary)
		return ok && strings.HasPrefix(string(w), string(p))
	}
	return false
}
