package providertest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// change is an edit of a valid sample's header and body, with the code that it
// must be refused with, "" for none.
type change struct {
	name string
	edit func(h signature.Header, body []byte) []byte
	want string
}

func testChanges(t *testing.T, a *provider.Adapter, o provider.SampleOptions, changes []change) {
	for _, c := range changes {
		o.EventID, o.At = eventID, At()
		sample, err := a.Sample(o)
		if err != nil {
			t.Fatal(err)
		}
		h := maps.Clone(sample.Header)
		body := c.edit(h, bytes.Clone(sample.Body))
		if bytes.Equal(body, sample.Body) && maps.Equal(h, sample.Header) && c.want != "" {
			t.Fatalf("%s: nothing was changed", c.name)
		}
		if _, err = a.Envelope(h, body); Code(t, err) != c.want {
			t.Errorf("%s: %q, want %q", c.name, Code(t, err), c.want)
		}
	}
}

// Proves V7 and the strict JSON rules on this adapter's own bodies.
func testBodies(t *testing.T, a *provider.Adapter, s Suite) {
	put := func(members string) func(signature.Header, []byte) []byte {
		return func(_ signature.Header, body []byte) []byte { return append([]byte("{"+members+","), body[1:]...) }
	}
	add := func(before, after string) func(signature.Header, []byte) []byte {
		return func(_ signature.Header, body []byte) []byte { return []byte(before + string(body) + after) }
	}
	text := func(text string) func(signature.Header, []byte) []byte {
		return func(signature.Header, []byte) []byte { return []byte(text) }
	}
	changes := []change{
		{"a member that nobody reads", put(`"dakghar":1.5e400`), ""},
		{"white space around", add(" \n\t", "\r\n"), ""},
		{"no body", text(""), provider.CodeMalformed},
		{"null", text("null"), provider.CodeMalformed},
		{"an array", add("[", "]"), provider.CodeMalformed},
		{"a string", text(`"evt"`), provider.CodeMalformed},
		{"half a body", func(_ signature.Header, b []byte) []byte { return b[:len(b)/2] }, provider.CodeMalformed},
		{"text after the body", add("", "x"), provider.CodeMalformed},
		{"a second body after it", add("", "{}"), provider.CodeMalformed},
		{"a zero byte after it", add("", "\x00"), provider.CodeMalformed},
		{"a byte order mark", add("\ufeff", ""), provider.CodeMalformed},
		{"bytes that are not UTF-8", put("\"dakghar\":\"\xff\""), provider.CodeMalformed},
		{"half of a surrogate pair", put(`"dakghar":"\ud800"`), provider.CodeMalformed},
		{"a comment", put(`/* */"dakghar":1`), provider.CodeMalformed},
		{"a comma too many", put(`"dakghar":[1,]`), provider.CodeMalformed},
		{"a number with a leading zero", put(`"dakghar":01`), provider.CodeMalformed},
		{"NaN", put(`"dakghar":NaN`), provider.CodeMalformed},
		{"a control character in a string", put("\"dakghar\":\"\n\""), provider.CodeMalformed},
		{"a name twice", put(`"dakghar":1,"dakghar":2`), provider.CodeAmbiguous},
		{"a name twice, once escaped", put(`"dakghar":1,"\u0064akghar":2`), provider.CodeAmbiguous},
		{"a name twice, deep down where nobody reads", put(`"dakghar":{"a":[{"b":1,"b":2}]}`), provider.CodeAmbiguous},
		{"names that differ in case", put(`"dakghar":1,"Dakghar":2`), provider.CodeAmbiguous},
		{"names that differ by the Kelvin sign", put(`"dakghar":1,"da` + "\u212a" + `ghar":2`), provider.CodeAmbiguous},
		{"names that differ by the long s", put(`"sack":1,"` + "\u017f" + `ack":2`), provider.CodeAmbiguous},
		{"names that differ in case, where nobody reads", put(`"dakghar":{"a":1,"A":2}`), ""},
		{"as deep as is allowed", put(`"dakghar":` + strings.Repeat("[", provider.DepthMax-1) + strings.Repeat("]", provider.DepthMax-1)), ""},
		{"one deeper", put(`"dakghar":` + strings.Repeat("[", provider.DepthMax) + strings.Repeat("]", provider.DepthMax)), provider.CodeTooDeep},
		{"very deep", put(`"dakghar":` + strings.Repeat(`{"a":`, 100_000)), provider.CodeTooDeep},
		{"brackets in a string are not depth", put(`"dakghar":"` + strings.Repeat(`\"[{`, 1000) + `"`), ""},
	}
	o := provider.SampleOptions{Type: s.Type}
	for _, name := range rootNames(t, a, o) {
		changes = append(changes,
			change{name + ", shadowed in capitals", put(`"` + strings.ToUpper(name) + `":"shadow"`), provider.CodeAmbiguous},
			change{name + ", said before", put(`"` + name + `":"shadow"`), provider.CodeAmbiguous})
	}
	testChanges(t, a, o, changes)
}

// rootNames are the members of the sample's body.
func rootNames(t *testing.T, a *provider.Adapter, o provider.SampleOptions) []string {
	t.Helper()
	sample, err := a.Sample(o)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(sample.Body, &members); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(members))
}

// Proves T2, V10, P1: where id and type stand, that nothing else can stand
// there, and what the signature covers of them.
func testIdentity(t *testing.T, a *provider.Adapter, s Suite) {
	o := provider.SampleOptions{Type: s.Type}
	for _, part := range a.ID[0].Parts {
		if part.Optional {
			continue
		}
		testChanges(t, a, o, placeChanges(part, eventID, provider.CodeNoID, provider.CodeBadID))
	}
	for _, part := range a.Type.Parts[:1] {
		word := string(s.Type)
		if len(a.Type.Parts) > 1 {
			word, _, _ = strings.Cut(word, a.Type.Join)
		}
		changes := placeChanges(part, word, provider.CodeNoType, provider.CodeBadType)
		if part == a.ID[0].Parts[0] {
			continue // it is part of the id, which is read first
		}
		testChanges(t, a, o, changes)
	}
	t.Run("coverage", func(t *testing.T) { t.Parallel(); testCoverage(t, a, s) })
}

func placeChanges(p provider.Place, value, absent, invalid string) []change {
	if p.Header != "" {
		return headerChanges(p.Header, absent, invalid)
	}
	name := p.Path[strings.LastIndex(p.Path, ".")+1:]
	member := func(text string) func(signature.Header, []byte) []byte {
		return func(_ signature.Header, body []byte) []byte {
			return bytes.Replace(body, []byte(`"`+name+`":"`+value+`"`), []byte(text), 1)
		}
	}
	val := func(text string) func(signature.Header, []byte) []byte { return member(`"` + name + `":` + text) }
	return []change{
		{name + " as it is", val(`"` + value + `"`), ""},
		{name + " under a name in capitals", member(`"` + strings.ToUpper(name) + `":"` + value + `"`), absent},
		{name + " under another name", member(`"dakghar":"` + value + `"`), absent},
		{name + " null", val("null"), absent},
		{name + " empty", val(`""`), absent},
		{name + " a number", val("1"), invalid},
		{name + " true", val("true"), invalid},
		{name + " an array", val(`["` + value + `"]`), invalid},
		{name + " an object", val(`{"a":"` + value + `"}`), invalid},
		{name + " with a space", val(`"a b"`), invalid},
		{name + " with a control character", val(`"a\u0000b"`), invalid},
		{name + " that is not ASCII", val(`"ä"`), invalid},
		{name + " longer than any", val(`"` + strings.Repeat("a", 129) + `"`), invalid},
	}
}

func headerChanges(name, absent, invalid string) []change {
	set := func(edit func(string) string) func(signature.Header, []byte) []byte {
		return func(h signature.Header, body []byte) []byte { h[name] = edit(h[name]); return body }
	}
	return []change{
		{name + " absent", func(h signature.Header, body []byte) []byte { delete(h, name); return body }, absent},
		{name + " empty", set(func(string) string { return "" }), absent},
		{name + " twice, joined", set(func(v string) string { return v + "," + v }), invalid},
		{name + " twice, joined with a space", set(func(v string) string { return v + ", " + v }), invalid},
		{name + " with a space", set(func(v string) string { return v + " x" }), invalid},
		{name + " with a control character", set(func(v string) string { return v + "\x00" }), invalid},
		{name + " that is not ASCII", set(func(v string) string { return v + "ä" }), invalid},
		{name + " that is not UTF-8", set(func(v string) string { return v + "\xff" }), invalid},
	}
}

// testCoverage shows what Covers says: an id header that is not covered can be
// changed under a valid signature and gives another identity; a covered one
// cannot. What stands in the body always is covered.
func testCoverage(t *testing.T, a *provider.Adapter, s Suite) {
	req := Request(t, a, s.Current, provider.SampleOptions{Type: s.Type})
	before, err := a.Envelope(req.Header, req.Body)
	if err != nil {
		t.Fatal(err)
	}
	last := a.ID[0].Parts[len(a.ID[0].Parts)-1]
	if last.Header == "" {
		if !a.Covers.ID {
			t.Error("the id stands in the body, so it is covered")
		}
		return
	}
	req.Header[last.Header] += "x"
	_, err = Check(a, req, []signature.Key{Key(t, a, "current", s.Current)}, At())
	if got := Cause(t, err) == "valid"; got == a.Covers.ID {
		t.Errorf("the id changed and the signature is valid: %t; Covers.ID says %t", got, a.Covers.ID)
	}
	after, err := a.Envelope(req.Header, req.Body)
	if err != nil || after.EventID == before.EventID {
		t.Errorf("another id gives %q after %q, %v", after.EventID, before.EventID, err)
	}
	if len(before.EventID) > webhook.EventIDBytesMax {
		t.Errorf("an id of %d bytes", len(before.EventID))
	}
}
