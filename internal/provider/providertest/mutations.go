package providertest

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
)

// mutation is one change to a valid request, and the one cause that it must be
// refused with.
type mutation struct {
	name   string
	change func(*signature.Request)
	want   signature.Cause
}

// Proves T1, T2, V5: of everything that can be changed in a valid request, each
// change is refused with its own cause, on the sample and on every valid vector.
func testMutations(t *testing.T, a *provider.Adapter, s Suite) {
	sample := func(t *testing.T) (signature.Request, signature.Key) {
		return Request(t, a, s.Current, provider.SampleOptions{Type: s.Type}), Key(t, a, "current", s.Current)
	}
	t.Run("sample", func(t *testing.T) { t.Parallel(); mutate(t, a, sample) })
	for _, v := range Vectors(t) {
		// Changing one of several signatures leaves the others valid.
		if v.Expect != "valid" || several(a.Scheme, v.Headers[a.Scheme.Signature.Header]) {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			mutate(t, a, func(t *testing.T) (signature.Request, signature.Key) {
				secret, err := a.Scheme.DecodeTestKey(v.Secret)
				if err != nil {
					t.Fatal(err)
				}
				return v.Request(t), signature.Key{Version: "k1", Secret: secret}
			})
		})
	}
}

func several(s *signature.Scheme, header string) bool {
	elements := 0
	for _, m := range s.Methods {
		elements += strings.Count(header, m.Tag+"=") + strings.Count(header, m.Tag+",")
	}
	return s.Signature.Grammar != signature.Plain && elements > 1
}

func mutate(t *testing.T, a *provider.Adapter, valid func(*testing.T) (signature.Request, signature.Key)) {
	for _, m := range mutations(a.Scheme) {
		req, key := valid(t)
		header := signature.Header{}
		for name, value := range req.Header {
			header[name] = value
		}
		req.Header, req.Body = header, bytes.Clone(req.Body)
		m.change(&req)
		meta, err := a.Scheme.Metadata(req.Header)
		if err == nil {
			_, err = a.Scheme.Verify(req, meta, []signature.Key{key})
		}
		if got := Cause(t, err); got != m.want {
			t.Errorf("%s: %s, want %s (%v)", m.name, got, m.want, err)
		}
	}
}

func mutations(s *signature.Scheme) []mutation {
	all := bodyMutations()
	all = append(all, signatureMutations(s)...)
	if s.Timestamp.Header != "" {
		all = append(all, timeHeaderMutations(s.Timestamp.Header)...)
	}
	if s.Timestamp.Field != "" {
		all = append(all, timeFieldMutations(s)...)
	}
	for _, name := range []string{"webhook-id", "svix-id"} {
		if s.SignsHeader(name) {
			all = append(all, signedHeaderMutations(name)...)
		}
	}
	return all
}

func bodyMutations() []mutation {
	at := func(i func(int) int) func(*signature.Request) {
		return func(r *signature.Request) { r.Body[i(len(r.Body))] ^= 1 }
	}
	return []mutation{
		{"nothing changed", func(*signature.Request) {}, "valid"},
		{"the first byte of the body", at(func(int) int { return 0 }), signature.Mismatch},
		{"a byte in the middle of the body", at(func(n int) int { return n / 2 }), signature.Mismatch},
		{"the last byte of the body", at(func(n int) int { return n - 1 }), signature.Mismatch},
		{"white space before the body", func(r *signature.Request) { r.Body = append([]byte(" "), r.Body...) }, signature.Mismatch},
		{"white space after the body", func(r *signature.Request) { r.Body = append(r.Body, ' ') }, signature.Mismatch},
		{"a line end after the body", func(r *signature.Request) { r.Body = append(r.Body, '\n') }, signature.Mismatch},
		{"a byte fewer", func(r *signature.Request) { r.Body = r.Body[1:] }, signature.Mismatch},
		{"no body", func(r *signature.Request) { r.Body = nil }, signature.Mismatch},
	}
}

func signatureMutations(s *signature.Scheme) []mutation {
	name := s.Signature.Header
	set := func(change func(string) string) func(*signature.Request) {
		return func(r *signature.Request) { r.Header[name] = change(r.Header[name]) }
	}
	// from is where the encoded signature begins: it stands last in every grammar.
	from := func(v string) int {
		switch s.Signature.Grammar {
		case signature.Plain:
			return len(s.Signature.Prefix)
		case signature.Fields:
			return strings.LastIndex(strings.TrimRight(v, "="), "=") + 1
		case signature.Tagged:
		}
		return strings.LastIndex(v, ",") + 1
	}
	list := s.Signature.Grammar != signature.Plain
	all := []mutation{
		{"no signature header", func(r *signature.Request) { delete(r.Header, name) }, signature.Missing},
		{"an empty signature header", set(func(string) string { return "" }), signature.Missing},
		{"the signature header twice", set(func(v string) string { return v + "," + v }), signature.Malformed},
		{"the signature header twice, with a space", set(func(v string) string { return v + ", " + v }), signature.Malformed},
		{"a letter of the signature changed", set(func(v string) string { return flip(v, from(v)) }), signature.Mismatch},
		{"a letter of the signature missing", set(func(v string) string { return v[:from(v)] + v[from(v)+1:] }), signature.Malformed},
		{"a line end in the signature", set(func(v string) string { return v[:from(v)+4] + "\n" + v[from(v)+4:] }), signature.Malformed},
		{"a zero byte after the signature", set(func(v string) string { return v + "\x00" }), signature.Malformed},
		{"bytes that are not UTF-8 after the signature", set(func(v string) string { return v + "\xff" }), signature.Malformed},
		{"a signature header longer than any", set(func(v string) string { return v + strings.Repeat("a", signature.HeaderBytesMax) }), signature.Malformed},
	}
	if s.Signature.Encoding == signature.Hex {
		all = append(all, mutation{"hexadecimal in capitals", set(func(v string) string {
			return v[:from(v)] + strings.ToUpper(flip(v, from(v))[from(v):])
		}), signature.Malformed})
	}
	if list || s.Signature.Prefix != "" {
		all = append(all, mutation{"no signature after what stands before it", set(func(v string) string { return v[:from(v)] }), signature.Malformed})
	}
	if s.Signature.Prefix != "" {
		all = append(all,
			mutation{"no prefix", set(func(v string) string { return v[from(v):] }), signature.Malformed},
			mutation{"another prefix", set(func(v string) string { return "sha1=" + v[from(v):] }), signature.Malformed},
			mutation{"the prefix in capitals", set(func(v string) string { return strings.ToUpper(v[:from(v)]) + v[from(v):] }), signature.Malformed},
		)
	}
	if list {
		separator := string(s.Signature.Separator)
		all = append(all,
			mutation{"more signatures than are allowed", set(func(v string) string {
				one := v[strings.LastIndex(v, separator)+1:]
				return v + strings.Repeat(separator+one, signature.CandidatesMax)
			}), signature.Malformed},
			mutation{"only a method that is not accepted", set(func(v string) string { return downgraded(s, v) }), signature.Missing},
			mutation{"a separator too many", set(func(v string) string { return v + separator }), signature.Malformed},
		)
	}
	return all
}

// downgraded names another method wherever an accepted one stands.
func downgraded(s *signature.Scheme, v string) string {
	for _, m := range s.Methods {
		v = strings.ReplaceAll(strings.ReplaceAll(v, m.Tag+"=", "x0="), m.Tag+",", "x0,")
	}
	return v
}

// flip replaces the letter at i by another one of both encodings.
func flip(v string, i int) string {
	other := "b"
	if v[i] == 'b' {
		other = "c"
	}
	return v[:i] + other + v[i+1:]
}

func timeHeaderMutations(name string) []mutation {
	set := func(change func(string) string) func(*signature.Request) {
		return func(r *signature.Request) { r.Header[name] = change(r.Header[name]) }
	}
	return append(timeMutations(set),
		mutation{"no time header", func(r *signature.Request) { delete(r.Header, name) }, signature.Missing},
		mutation{"an empty time header", set(func(string) string { return "" }), signature.Missing},
		mutation{"the time header twice", set(func(v string) string { return v + "," + v }), signature.Malformed},
		mutation{"the time header twice, with a space", set(func(v string) string { return v + ", " + v }), signature.Malformed},
	)
}

func timeFieldMutations(s *signature.Scheme) []mutation {
	name, field, separator := s.Signature.Header, s.Timestamp.Field+"=", string(s.Signature.Separator)
	set := func(change func(string) string) func(*signature.Request) {
		return func(r *signature.Request) {
			first, rest, _ := strings.Cut(r.Header[name], separator)
			r.Header[name] = field + change(strings.TrimPrefix(first, field)) + separator + rest
		}
	}
	whole := func(change func(string) string) func(*signature.Request) {
		return func(r *signature.Request) { r.Header[name] = change(r.Header[name]) }
	}
	return append(timeMutations(set),
		mutation{"no time", whole(func(v string) string { _, rest, _ := strings.Cut(v, separator); return rest }), signature.Missing},
		mutation{"an empty time", set(func(string) string { return "" }), signature.Malformed},
		mutation{"the time twice", whole(func(v string) string { return v + separator + field + "1" }), signature.Malformed},
		mutation{"the same time twice", set(func(v string) string { return v + separator + field + v }), signature.Malformed},
	)
}

func timeMutations(set func(func(string) string) func(*signature.Request)) []mutation {
	return []mutation{
		{"another time", set(func(v string) string {
			n, _ := strconv.ParseInt(v, 10, 64)
			return strconv.FormatInt(n+1, 10)
		}), signature.Mismatch},
		{"the same time with a zero before it", set(func(v string) string { return "0" + v }), signature.Mismatch},
		{"a sign before the time", set(func(v string) string { return "+" + v }), signature.Malformed},
		{"white space before the time", set(func(v string) string { return " " + v }), signature.Malformed},
		{"a fraction after the time", set(func(v string) string { return v + ".0" }), signature.Malformed},
		{"thirteen digits", set(func(string) string { return "1750000000000" }), signature.Malformed},
		{"digits of another script", set(func(string) string { return "١٧٥٠٠٠٠٠٠٠" }), signature.Malformed},
	}
}

func signedHeaderMutations(name string) []mutation {
	set := func(change func(string) string) func(*signature.Request) {
		return func(r *signature.Request) { r.Header[name] = change(r.Header[name]) }
	}
	return []mutation{
		{"another id", set(func(v string) string { return v + "x" }), signature.Mismatch},
		{"no id header", func(r *signature.Request) { delete(r.Header, name) }, signature.Missing},
		{"an empty id header", set(func(string) string { return "" }), signature.Missing},
		{"the id header twice", set(func(v string) string { return v + "," + v }), signature.Malformed},
		{"a dot in the id", set(func(v string) string { return v + ".1" }), signature.Malformed},
		{"a control byte in the id", set(func(v string) string { return v + "\x01" }), signature.Malformed},
		{"bytes that are not UTF-8 in the id", set(func(v string) string { return v + "\xff" }), signature.Malformed},
	}
}
