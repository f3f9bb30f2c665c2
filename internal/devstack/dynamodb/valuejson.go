package dynamodb

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// valueDepthMax is the service's limit on nested lists and maps.
const valueDepthMax = 32

// readItem decodes attribute names and values.
func (r *reader) readItem() item {
	it := item{}
	r.object(func(name string) {
		it[name] = r.readValue(1)
	})
	return it
}

// readValue decodes {"S": …} and its nine brothers: exactly one of them.
func (r *reader) readValue(depth int) value {
	if depth > valueDepthMax {
		r.fail(invalid("Nesting Levels have exceeded supported limits"))
		return null{}
	}
	var v value
	count := 0
	r.object(func(kind string) {
		if r.absent() {
			return
		}
		count++
		v = r.readKind(kind, depth)
	})
	switch {
	case r.err != nil:
		return null{}
	case count == 0:
		r.fail(invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"))
	case count > 1:
		r.fail(invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"))
	}
	return v
}

func (r *reader) readKind(kind string, depth int) value {
	switch kind {
	case "S":
		return text(r.text())
	case "N":
		return r.readNumber()
	case "B":
		return binary(r.readBinary())
	case "BOOL":
		return boolean(r.boolean())
	case "NULL":
		if !r.boolean() {
			r.fail(invalid(messageInvalid + "Null attribute value types must have the value of true"))
		}
		return null{}
	case "L":
		out := list{}
		r.array(func() { out = append(out, r.readValue(depth+1)) })
		return out
	case "M":
		out := object{}
		r.object(func(name string) { out[name] = r.readValue(depth + 1) })
		return out
	case "SS":
		return textSet(r.readStrings("string", r.text))
	case "BS":
		return binarySet(r.readStrings("binary", r.readBinary))
	case "NS":
		return r.readNumbers()
	}
	r.fail(invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"))
	return null{}
}

func (r *reader) readNumber() number {
	n, err := parseNumber(string(r.rawText()))
	if err != nil {
		r.fail(invalid("%s", err))
	}
	return n
}

func (r *reader) readBinary() string {
	raw := r.rawText()
	out := make([]byte, base64.StdEncoding.DecodedLen(len(raw)))
	n, err := base64.StdEncoding.Strict().Decode(out, raw)
	if err != nil {
		r.fail(failure(kindSerialization, "a binary value is not base64"))
		return ""
	}
	return string(out[:n])
}

func (r *reader) readStrings(what string, element func() string) []string {
	var out []string
	r.array(func() { out = append(out, element()) })
	if len(out) == 0 {
		r.fail(invalid(messageInvalid+"An %s set  may not be empty", what))
	}
	slices.Sort(out)
	if len(slices.Compact(slices.Clone(out))) != len(out) {
		r.fail(invalid(messageInvalid+"Input collection [%s] contains duplicates.", strings.Join(out, ", ")))
	}
	return out
}

func (r *reader) readNumbers() numberSet {
	var out numberSet
	r.array(func() { out = append(out, r.readNumber()) })
	if len(out) == 0 {
		r.fail(invalid(messageInvalid + "An number set  may not be empty"))
	}
	slices.SortFunc(out, number.compare)
	if len(slices.Compact(slices.Clone(out))) != len(out) {
		r.fail(invalid("Input collection contains duplicates"))
	}
	return out
}

// writer builds one JSON answer. Commas are put by looking at the last byte, so
// that writing code only names what it writes.
type writer struct{ b []byte }

// next puts the comma that the coming name or element needs.
func (w *writer) next() {
	if len(w.b) == 0 {
		return
	}
	switch w.b[len(w.b)-1] {
	case '{', '[', ':', ',':
	default:
		w.b = append(w.b, ',')
	}
}

func (w *writer) open(bracket byte) {
	w.next()
	w.b = append(w.b, bracket)
}

func (w *writer) close(bracket byte) { w.b = append(w.b, bracket) }

// name starts a member; names written here never need escaping.
func (w *writer) name(name string) {
	w.next()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) text(s string) {
	w.next()
	w.b = appendText(w.b, s)
}

func (w *writer) integer(n int) {
	w.next()
	w.b = strconv.AppendInt(w.b, int64(n), 10)
}

func (w *writer) boolean(v bool) {
	w.next()
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) textMember(name, s string) {
	w.name(name)
	w.text(s)
}

func (w *writer) integerMember(name string, n int) {
	w.name(name)
	w.integer(n)
}

// item writes attributes in the order of their names, so that equal answers are
// equal bytes.
func (w *writer) item(it item) {
	w.open('{')
	names := make([]string, 0, len(it))
	for name := range it {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w.text(name)
		w.b = append(w.b, ':')
		w.value(it[name])
	}
	w.close('}')
}

func (w *writer) value(v value) {
	w.open('{')
	w.name(v.wire())
	switch v := v.(type) {
	case text:
		w.text(string(v))
	case number:
		w.number(v)
	case binary:
		w.binary(string(v))
	case boolean:
		w.boolean(bool(v))
	case null:
		w.boolean(true)
	case list:
		writeAll(w, v, w.value)
	case object:
		w.item(v)
	case textSet:
		writeAll(w, v, w.text)
	case binarySet:
		writeAll(w, v, w.binary)
	case numberSet:
		writeAll(w, v, w.number)
	}
	w.close('}')
}

func writeAll[T any](w *writer, elements []T, write func(T)) {
	w.open('[')
	for _, element := range elements {
		write(element)
	}
	w.close(']')
}

func (w *writer) number(n number) {
	w.next()
	w.b = append(w.b, '"')
	w.b = n.appendText(w.b)
	w.b = append(w.b, '"')
}

func (w *writer) binary(s string) {
	w.next()
	w.b = append(w.b, '"')
	w.b = base64.StdEncoding.AppendEncode(w.b, []byte(s))
	w.b = append(w.b, '"')
}

const hexDigits = "0123456789abcdef"

func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
