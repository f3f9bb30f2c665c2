package signature_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/signature"
)

const (
	hexSig  = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	b64Sig  = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	b64Sig2 = "Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
)

func refusal(c signature.Cause, detail string) *signature.Refusal {
	return &signature.Refusal{Cause: c, Detail: detail}
}

type metadataCase struct {
	name   string
	header signature.Header
	want   *signature.Refusal
}

func testMetadata(t *testing.T, s *signature.Scheme, tests []metadataCase) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := s.Metadata(tt.header)
			if tt.want == nil {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if diff := cmp.Diff(error(tt.want), err); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Proves T2 and V4 for a plain signature: one text, and nothing but it.
func TestPlainHeaders(t *testing.T) {
	t.Parallel()
	const name = "x-hub-signature-256"
	s := bodyOnly(name, "sha256=", signature.HMACSHA256, signature.Hex)
	prefix := refusal(signature.Malformed, "the signature lacks its prefix")
	encoding := refusal(signature.Malformed, "the signature is not in its encoding")
	absent := refusal(signature.Missing, "no x-hub-signature-256 header")
	one := func(value string) signature.Header { return signature.Header{name: value} }
	testMetadata(t, s, []metadataCase{
		{"as the sender writes it", one("sha256=" + hexSig), nil},
		{"no headers", nil, absent},
		{"another header", signature.Header{"x-hub-signature": "sha1=d03207e4b030cf234e3447bac4d93add4c6643d8"}, absent},
		{"a header under a name with capitals, which the edge would have lowered", signature.Header{"X-Hub-Signature-256": "sha256=" + hexSig}, absent},
		{"an empty header", one(""), absent},
		{"no prefix", one(hexSig), prefix},
		{"another prefix", one("sha1=" + hexSig), prefix},
		{"the prefix in capitals", one("SHA256=" + hexSig), prefix},
		{"the prefix alone", one("sha256="), encoding},
		{"the prefix twice", one("sha256=sha256=" + hexSig), encoding},
		{"hexadecimal in capitals", one("sha256=" + strings.ToUpper(hexSig)), encoding},
		{"base64 in place of hexadecimal", one("sha256=" + b64Sig), encoding},
		{"one digit short", one("sha256=" + hexSig[1:]), encoding},
		{"one byte short", one("sha256=" + hexSig[2:]), encoding},
		{"one byte long", one("sha256=" + hexSig + "00"), encoding},
		{"white space before", one(" sha256=" + hexSig), prefix},
		{"white space after", one("sha256=" + hexSig + " "), encoding},
		{"a line end after", one("sha256=" + hexSig + "\n"), encoding},
		{"the same header twice, joined", one("sha256=" + hexSig + ",sha256=" + hexSig), encoding},
		{"the same header twice, joined with a space", one("sha256=" + hexSig + ", sha256=" + hexSig), encoding},
		{"bytes that are not UTF-8", one("sha256=" + strings.Repeat("\xff", 64)), encoding},
		{"a header longer than any", one("sha256=" + strings.Repeat("a", signature.HeaderBytesMax)), refusal(signature.Malformed, "the x-hub-signature-256 header is too long")},
	})
}

func TestPlainBase64IsCanonical(t *testing.T) {
	t.Parallel()
	const name = "x-shopify-hmac-sha256"
	s := bodyOnly(name, "", signature.HMACSHA256, signature.Base64)
	encoding := refusal(signature.Malformed, "the signature is not in its encoding")
	one := func(value string) signature.Header { return signature.Header{name: value} }
	testMetadata(t, s, []metadataCase{
		{"as the sender writes it", one(b64Sig), nil},
		{"without padding", one(strings.TrimRight(b64Sig, "=")), encoding},
		{"padded twice", one(b64Sig + "="), encoding},
		{"with loose bits in the last letter", one(strings.Replace(b64Sig, "OE=", "OF=", 1)), encoding},
		{"with a line end inside, which the standard library skips", one(b64Sig[:10] + "\n" + b64Sig[10:]), encoding},
		{"with the alphabet of URLs", one(strings.NewReplacer("+", "-", "/", "_").Replace(b64Sig)), encoding},
		{"hexadecimal", one(hexSig), encoding},
		{"the same header twice, joined", one(b64Sig + "," + b64Sig), encoding},
	})
}

// Proves T2 and V4 where no comma stands between the fields: one is then how a
// transport joined two headers, of which the second would pass by itself.
func TestFieldsBehindSemicolons(t *testing.T) {
	t.Parallel()
	const name = "paddle-signature"
	s := fields(name, "ts", "h1", ';', ":")
	twice := refusal(signature.Malformed, "the signature header is there twice")
	one := func(value string) signature.Header { return signature.Header{name: value} }
	testMetadata(t, s, []metadataCase{
		{"as the sender writes it", one("ts=1750000000;h1=" + hexSig), nil},
		{"two signatures during a rotation", one("ts=1750000000;h1=" + hexSig + ";h1=" + hexSig), nil},
		{"the same header twice, joined", one("ts=1750000000;h1=" + hexSig + ",ts=1750000000;h1=" + hexSig), twice},
		{"the same header twice, joined with a space", one("ts=1750000000;h1=" + hexSig + ", ts=1750000000;h1=" + hexSig), twice},
		{"a signature alone joined to a header", one("ts=1750000000;h1=" + hexSig + ",h1=" + hexSig), twice},
		{"commas between the fields", one("ts=1750000000,h1=" + hexSig), twice},
		{"two semicolons", one("ts=1750000000;;h1=" + hexSig), refusal(signature.Malformed, "the signature header is not a list of fields")},
	})
}

// Proves T2 and V4 for a list of fields, the time among them.
func TestFieldHeaders(t *testing.T) {
	t.Parallel()
	const name = "stripe-signature"
	s := fields(name, "t", "v1", ',', ".")
	list := refusal(signature.Malformed, "the signature header is not a list of fields")
	twice := refusal(signature.Malformed, "the time is empty or there twice")
	badTime := refusal(signature.Malformed, "the signed time is not a time")
	noTime := refusal(signature.Missing, "no signed time")
	noSig := refusal(signature.Missing, "no signature of an accepted method")
	unreadable := refusal(signature.Malformed, "no signature is in its encoding")
	one := func(value string) signature.Header { return signature.Header{name: value} }
	testMetadata(t, s, []metadataCase{
		{"as the sender writes it", one("t=1750000000,v1=" + hexSig), nil},
		{"two signatures during a rotation", one("t=1750000000,v1=" + hexSig + ",v1=" + hexSig), nil},
		{"an older scheme beside it", one("t=1750000000,v0=" + hexSig + ",v1=" + hexSig), nil},
		{"an unreadable signature beside a readable one", one("t=1750000000,v1=bad_signature,v1=" + hexSig), nil},
		{"the time last", one("v1=" + hexSig + ",t=1750000000"), nil},
		{"a time of zero", one("t=0,v1=" + hexSig), nil},
		{"a time with leading zeros, which is signed as it stands", one("t=00001750000,v1=" + hexSig), nil},
		{"only an older scheme", one("t=1750000000,v0=" + hexSig), noSig},
		{"no signature", one("t=1750000000"), noSig},
		{"only an unreadable signature", one("t=1750000000,v1=bad"), unreadable},
		{"an empty signature", one("t=1750000000,v1="), unreadable},
		{"no time", one("v1=" + hexSig), noTime},
		{"an empty time", one("t=,v1=" + hexSig), twice},
		{"the time twice", one("t=1750000000,t=1750100000,v1=" + hexSig), twice},
		{"the same time twice", one("t=1750000000,t=1750000000,v1=" + hexSig), twice},
		{"an empty time and another", one("t=,t=1750000000,v1=" + hexSig), twice},
		{"the same header twice, joined", one("t=1750000000,v1=" + hexSig + ",t=1750000000,v1=" + hexSig), twice},
		{"the same header twice, joined with a space", one("t=1750000000,v1=" + hexSig + ", t=1750000000,v1=" + hexSig), list},
		{"a sign before the time", one("t=+1750000000,v1=" + hexSig), badTime},
		{"a negative time", one("t=-1,v1=" + hexSig), badTime},
		{"a fraction in the time", one("t=1750000000.5,v1=" + hexSig), badTime},
		{"an exponent in the time", one("t=1e9,v1=" + hexSig), badTime},
		{"thirteen digits", one("t=1750000000000,v1=" + hexSig), badTime},
		{"digits of another script", one("t=١٧٥,v1=" + hexSig), badTime},
		{"white space in the time", one("t= 1750000000,v1=" + hexSig), badTime},
		{"a comma at the end", one("t=1750000000,v1=" + hexSig + ","), list},
		{"an element that is no field", one("t=1750000000,v1"), list},
		{"another separator", one("t=1750000000;v1=" + hexSig), noSig},
		{"a name in capitals", one("T=1750000000,v1=" + hexSig), list},
		{"no name", one("=1750000000,v1=" + hexSig), list},
		{"as many signatures as are allowed", one("t=1" + strings.Repeat(",v1="+hexSig, signature.CandidatesMax)), nil},
		{"one more than that", one("t=1" + strings.Repeat(",v1="+hexSig, signature.CandidatesMax+1)), refusal(signature.Malformed, "too many signatures")},
	})
}

// Proves T2 and V4 for tagged signatures with an id and a time in headers of
// their own.
func TestTaggedHeaders(t *testing.T) {
	t.Parallel()
	list := refusal(signature.Malformed, "the signature header is not a list of tagged signatures")
	ambiguous := refusal(signature.Malformed, "a signed header holds what would make the message ambiguous")
	badTime := refusal(signature.Malformed, "the signed time is not a time")
	with := func(changes ...string) signature.Header {
		h := signature.Header{"webhook-id": "msg_1", "webhook-timestamp": "1614265330", "webhook-signature": "v1," + b64Sig}
		for i := 0; i < len(changes); i += 2 {
			h[changes[i]] = changes[i+1]
		}
		return h
	}
	sig := func(value string) signature.Header { return with("webhook-signature", value) }
	testMetadata(t, standard(), []metadataCase{
		{"as the sender writes it", with(), nil},
		{"several signatures", sig("v1," + b64Sig2 + " v2," + b64Sig + " v1," + b64Sig), nil},
		{"an unknown version that cannot be read beside a known one", sig("v9,??? v1," + b64Sig), nil},
		{"only an unknown version", sig("v2," + b64Sig), refusal(signature.Missing, "no signature of an accepted method")},
		{"an empty signature", sig("v1,"), refusal(signature.Malformed, "no signature is in its encoding")},
		{"a signature of another length", sig("v1a," + b64Sig), refusal(signature.Malformed, "no signature is in its encoding")},
		{"no tag", sig(b64Sig), list},
		{"an empty tag", sig("," + b64Sig), list},
		{"a tag in capitals", sig("V1," + b64Sig), list},
		{"two spaces", sig("v1," + b64Sig + "  v1," + b64Sig2), list},
		{"a space at the end", sig("v1," + b64Sig + " "), list},
		{"the same header twice, joined", sig("v1," + b64Sig + ",v1," + b64Sig), list},
		{"the same header twice, joined with a space", sig("v1," + b64Sig + ", v1," + b64Sig), list},
		{"no signature header", with("webhook-signature", ""), refusal(signature.Missing, "no webhook-signature header")},
		{"no time header", with("webhook-timestamp", ""), refusal(signature.Missing, "no webhook-timestamp header")},
		{"no id header", with("webhook-id", ""), refusal(signature.Missing, "no webhook-id header")},
		{"the id twice, joined", with("webhook-id", "msg_1,msg_1"), ambiguous},
		{"a dot in the id, which also separates it from the time", with("webhook-id", "msg.1"), ambiguous},
		{"white space in the id", with("webhook-id", "msg 1"), ambiguous},
		{"a control byte in the id", with("webhook-id", "msg\x001"), ambiguous},
		{"an id that is not ASCII", with("webhook-id", "mßg"), ambiguous},
		{"an id that is not UTF-8", with("webhook-id", "msg\xff"), ambiguous},
		{"the time twice, joined", with("webhook-timestamp", "1614265330,1614265330"), badTime},
		{"a time with a sign", with("webhook-timestamp", "+1614265330"), badTime},
		{"a time in words", with("webhook-timestamp", "now"), badTime},
		{"an id longer than any", with("webhook-id", strings.Repeat("m", signature.HeaderBytesMax+1)), refusal(signature.Malformed, "the webhook-id header is too long")},
	})
}

func TestTimesInOtherUnits(t *testing.T) {
	t.Parallel()
	badTime := refusal(signature.Malformed, "the signed time is not a time")
	with := func(value string) signature.Header {
		return signature.Header{"x-signature": b64Sig, "x-time": value}
	}
	t.Run("milliseconds", func(t *testing.T) {
		t.Parallel()
		testMetadata(t, timed("x-signature", "x-time", signature.Milliseconds, signature.Base64, signature.HMACSHA256, signature.Text), []metadataCase{
			{"thirteen digits", with("1750000000000"), nil},
			{"sixteen digits", with("1750000000000000"), badTime},
			{"a sign", with("-1750000000000"), badTime},
		})
	})
	t.Run("RFC 3339", func(t *testing.T) {
		t.Parallel()
		testMetadata(t, timed("x-signature", "x-time", signature.RFC3339, signature.Base64, signature.HMACSHA256, signature.Text), []metadataCase{
			{"with a zone", with("2025-06-15T15:06:40Z"), nil},
			{"with a fraction", with("2025-06-15T15:06:40.123+02:00"), nil},
			{"without a zone", with("2025-06-15T15:06:40"), badTime},
			{"digits", with("1750000000"), badTime},
			{"with a very long fraction", with("2025-06-15T15:06:40." + strings.Repeat("1", 40) + "Z"), badTime},
		})
	})
}
