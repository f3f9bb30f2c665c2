package provider

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func testTree() *tree {
	t := newTree()
	t.add("id", "type", "n", "data", "data.id", "data.list.1.id", "flag")
	t.addRaw("raw")
	return t
}

// found is what a scan found, by path, as text.
func found(v values) map[string]string {
	got := map[string]string{}
	for path := range v.tree.index {
		if l := v.at(path); l.kind != 0 {
			got[path] = string(l.kind) + l.text + string(l.raw)
		}
	}
	return got
}

func codeOf(err error) string {
	if b, ok := errors.AsType[*BadBody](err); ok {
		return b.Code
	}
	return ""
}

// One pass finds everything, exactly where it stands.
func TestScanFinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, doc string
		want      map[string]string
	}{
		{"nothing", `{}`, map[string]string{}},
		{"every kind", `{"id":"a","type":null,"n":-12,"flag":true,"data":false}`, map[string]string{"id": `"a`, "type": "nnull", "n": "0-12", "flag": "ttrue", "data": "ffalse"}},
		{"an escaped name and text", `{"\u0069d":"\u0061\n"}`, map[string]string{"id": "\"a\n"}},
		{"an object that is read and looked into", `{"data":{"x":{"id":"no"},"id":"yes"}}`, map[string]string{"data": "{", "data.id": `"yes`}},
		{"an element of an array", `{"data":{"list":[{"id":"0"},{"id":"1"},{"id":"2"}]}}`, map[string]string{"data": "{", "data.list.1.id": `"1`}},
		{"a shorter array", `{"data":{"list":[]}}`, map[string]string{"data": "{"}},
		{"an array where an object was thought", `{"data":["id"],"id":["a"]}`, map[string]string{"data": "[", "id": "["}},
		{"an object where an array was thought", `{"data":{"list":{"1":{"id":"x"}}}}`, map[string]string{"data": "{", "data.list.1.id": `"x`}},
		{"raw bytes", `{"raw": [1, {"a":2}] }`, map[string]string{"raw": `[[1, {"a":2}]`}},
		{"a number of 64 bytes", `{"n":` + strings.Repeat("1", 64) + `}`, map[string]string{"n": "0" + strings.Repeat("1", 64)}},
		{"a longer number, whose text is not kept", `{"n":` + strings.Repeat("1", 65) + `}`, map[string]string{"n": "0"}},
		{"a text that looks like a name elsewhere", `{"x":{"id":"no"},"y":"{\"id\":\"no\"}"}`, map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := scan([]byte(tt.doc), testTree())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, found(v)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScanRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, doc, want string }{
		{"case on the way, at the root", `{"id":"a","ID":"b"}`, CodeAmbiguous},
		{"case on the way, further down", `{"data":{"id":"a","Id":"b"}}`, CodeAmbiguous},
		{"case on the way, in names that nobody reads", `{"data":{"x":1,"X":2}}`, CodeAmbiguous},
		{"case in an element of an array that is read", `{"data":{"list":[{},{"id":1,"iD":2}]}}`, CodeAmbiguous},
		{"the long s", `{"data":{"list":[],"li` + "\u017f" + `t":[]}}`, CodeAmbiguous},
		{"Greek sigmas", `{"σ":1,"ς":2}`, CodeAmbiguous},
		{"case by an escape", `{"id":"a","\u0049d":"b"}`, CodeAmbiguous},
		{"the same name in the raw value", `{"raw":[{"a":1,"a":2}]}`, CodeAmbiguous},
		{"not closed", `{"id":"a"`, CodeMalformed},
		{"single quotes", `{'id':'a'}`, CodeMalformed},
		{"an array at the root", `[{"id":"a"}]`, CodeMalformed},
		{"an overlong encoding", "{\"id\":\"\xc0\x80\"}", CodeMalformed},
		{"a quote that is not closed, after brackets", `{"[[[[`, CodeMalformed},
		{"only closing brackets", `}}}}`, CodeMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := scan([]byte(tt.doc), testTree()); codeOf(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// How deep a body may nest is exact, however many brackets it has side by side or
// in its texts. Proves V7.
func TestDepthIsExact(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat(`{"a":`, depth-1) + `{"b":1}` + strings.Repeat("}", depth-1)
	}
	tests := []struct{ name, doc, want string }{
		{"as deep as may be", nested(DepthMax), ""},
		{"one deeper", nested(DepthMax + 1), CodeTooDeep},
		{"one deeper, in arrays", `{"a":` + strings.Repeat("[", DepthMax) + strings.Repeat("]", DepthMax) + "}", CodeTooDeep},
		{"as deep as may be, with more beside it", `{"l":[` + strings.Repeat("[],", DepthMax) + nested(DepthMax-2) + "]}", ""},
		{"one deeper, with more beside it", `{"l":[` + strings.Repeat("[],", DepthMax) + nested(DepthMax-1) + "]}", CodeTooDeep},
		{"brackets in a text", `{"a":"` + strings.Repeat(`{[\"`, DepthMax) + `"}`, ""},
		{"one deeper, behind brackets in a text", `{"t":"\"]}","a":` + nested(DepthMax) + "}", CodeTooDeep},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := scan([]byte(tt.doc), testTree()); codeOf(err) != tt.want {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// Names that differ in more than case are no conflict, many or few.
func TestManyNamesAreFine(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	doc.WriteString(`{"id":"a"`)
	for r := rune(0x80); r < 0x3000; r++ {
		if fold(r) == r { // one of each class
			doc.WriteString(`,"` + string(r) + `":1`)
		}
	}
	doc.WriteString(`}`)
	if _, err := scan([]byte(doc.String()), testTree()); err != nil {
		t.Error(err)
	}
}

// fold agrees with the standard library on every pair that can be confused.
func TestFoldIsSimpleFolding(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || unicode.SimpleFold(r) == r && fold(r) == r {
			continue
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if fold(f) != fold(r) || foldHash([]byte(string(f))) != foldHash([]byte(string(r))) {
				t.Fatalf("%U and %U fold apart", r, f)
			}
		}
		if !strings.EqualFold(string(fold(r)), string(r)) {
			t.Fatalf("%U folds to %U", r, fold(r))
		}
	}
}

func TestPlainIntegers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"0": true, "1": true, "-1": true, "9223372036854775807": true, "-9223372036854775808": true, "820982911946154508": true,
		"9223372036854775808": false, "-0": false, "1.0": false, "1e3": false, "1E3": false, "0.5": false, "1e400": false,
		strings.Repeat("1", 65): false,
	} {
		v, err := scan([]byte(`{"n":`+text+`}`), testTree())
		if err != nil {
			t.Fatal(err)
		}
		if _, got := v.at("n").integer(); got != want {
			t.Errorf("%s is a plain integer: %t, want %t", text, got, want)
		}
	}
}

// FuzzScan holds the strict reader against Go's lenient one. What it accepts is
// JSON in UTF-8 and not deep; and where it finds an id, a decoder that ignores
// case, takes the last of two and reads on finds the same.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","type":"b","data":{"id":"c"}}`, `{"id":"a","ID":"b"}`, `{"id":"a","id":"b"}`, `{"\u0069d":"\ud83d\ude00"}`,
		`{"data":{"list":[{},{"id":"x"}]}}`, `{"raw":[1,2]}`, `{"n":1e400}`, "{\"\xff\":1}", `{"a":[[[[{"b":"\\\""}]]]]} `, `{"id":"a"}{"id":"b"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		before := slices.Clone(doc)
		v, err := scan(doc, testTree())
		if !slices.Equal(before, doc) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if codeOf(err) == "" {
				t.Fatalf("not a bad body: %v", err)
			}
			return
		}
		if !utf8.Valid(doc) || !json.Valid(doc) || tooDeep(doc) {
			t.Fatal("accepted what is not strict JSON")
		}
		var lenient struct {
			ID   any
			Type any
			Data any
		}
		if err := json.Unmarshal(doc, &lenient); err != nil {
			return // a number that Go cannot hold
		}
		for path, other := range map[string]any{"id": lenient.ID, "type": lenient.Type} {
			l := v.at(path)
			if text, ok := other.(string); l.kind == '"' && (!ok || text != l.text) {
				t.Errorf("%s: we read %q, a lenient reader %v", path, l.text, other)
			}
		}
		if data, ok := lenient.Data.(map[string]any); ok && v.at("data.id").kind == '"' && data["id"] != v.at("data.id").text {
			t.Errorf("data.id: we read %q, a lenient reader %v", v.at("data.id").text, data["id"])
		}
	})
}

func BenchmarkScan(b *testing.B) {
	doc := []byte(`{"id":"evt_1","type":"payment.succeeded","data":{"id":"pay_1","list":[{"id":"a"},{"id":"b"}]},"more":[`)
	for i := 0; len(doc) < 10<<10; i++ {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(doc, `{"name":"a line item","price":4200,"taxes":[{"rate":0.19,"title":"VAT"}],"sku":null,"taxable":true}`...)
	}
	doc = append(doc, `]}`...)
	tree := testTree()
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := scan(doc, tree); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json into a struct", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			var v struct{ ID, Type string }
			if err := json.Unmarshal(doc, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
