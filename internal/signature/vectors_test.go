package signature_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"dakghar/internal/signature"
)

// vector is a request with what must be said about it: "valid" or a cause.
type vector struct {
	Provider, Name, Source, Secret, Method, URL, Note string
	Headers                                           signature.Header
	BodyUTF8                                          string `json:"body_utf8"`
	BodyBase64                                        string `json:"body_base64"`
	Now                                               *int64
	Expect                                            string
}

func (v vector) request(t *testing.T) signature.Request {
	t.Helper()
	body := []byte(v.BodyUTF8)
	if v.BodyBase64 != "" {
		var err error
		if body, err = base64.StdEncoding.DecodeString(v.BodyBase64); err != nil {
			t.Fatal(err)
		}
	}
	return signature.Request{Method: v.Method, URL: v.URL, Header: v.Headers, Body: body}
}

// check runs the three steps in their order.
func check(s *signature.Scheme, req signature.Request, keys []signature.Key, now time.Time) (signature.Match, error) {
	meta, err := s.Metadata(req.Header)
	if err != nil {
		return signature.Match{}, err
	}
	match, err := s.Verify(req, meta, keys)
	if err != nil {
		return match, err
	}
	return match, s.Fresh(meta, now)
}

func causeOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "valid"
	}
	r, ok := errors.AsType[*signature.Refusal](err)
	if !ok {
		t.Fatalf("not a refusal: %v", err)
	}
	return string(r.Cause)
}

func hmac256(grammar signature.Grammar, tag string) []signature.Method {
	if grammar == signature.Plain {
		tag = ""
	}
	return []signature.Method{{Tag: tag, Algorithm: signature.HMACSHA256, Key: signature.KeyRule{Encoding: signature.Text, BytesMin: 8}}}
}

func bodyOnly(header, prefix string, a signature.Algorithm, e signature.Encoding) *signature.Scheme {
	return &signature.Scheme{
		Methods:   []signature.Method{{Algorithm: a, Key: signature.KeyRule{Encoding: signature.Text, BytesMin: 8}}},
		Message:   []signature.Part{signature.RawBody()},
		Signature: signature.Place{Header: header, Grammar: signature.Plain, Prefix: prefix, Encoding: e},
	}
}

func fields(header, field, tag string, separator byte, between string) *signature.Scheme {
	return &signature.Scheme{
		Methods:   hmac256(signature.Fields, tag),
		Message:   []signature.Part{signature.SignedTime(), signature.Literal(between), signature.RawBody()},
		Signature: signature.Place{Header: header, Grammar: signature.Fields, Separator: separator, Encoding: signature.Hex},
		Timestamp: signature.Timestamp{Field: field, Unit: signature.Seconds, Past: 5 * time.Minute, Future: 5 * time.Minute},
	}
}

// timed signs the time of a header before the body.
func timed(header, timeHeader string, u signature.Unit, e signature.Encoding, a signature.Algorithm, k signature.Encoding) *signature.Scheme {
	return &signature.Scheme{
		Methods:   []signature.Method{{Algorithm: a, Key: signature.KeyRule{Encoding: k, BytesMin: 8}}},
		Message:   []signature.Part{signature.SignedTime(), signature.RawBody()},
		Signature: signature.Place{Header: header, Grammar: signature.Plain, Encoding: e},
		Timestamp: signature.Timestamp{Header: timeHeader, Unit: u},
	}
}

// schemes describes senders for whom there is no adapter yet: the engine must
// be able to express them.
func schemes() map[string]*signature.Scheme {
	zoom := timed("x-zm-signature", "x-zm-request-timestamp", signature.Seconds, signature.Hex, signature.HMACSHA256, signature.Text)
	zoom.Signature.Prefix = "v0="
	zoom.Message = []signature.Part{signature.Literal("v0:"), signature.SignedTime(), signature.Literal(":"), signature.RawBody()}
	hubspot := timed("x-hubspot-signature-v3", "x-hubspot-request-timestamp", signature.Milliseconds, signature.Base64, signature.HMACSHA256, signature.Text)
	hubspot.Message = []signature.Part{signature.RequestMethod(), signature.RequestURL(), signature.RawBody(), signature.SignedTime()}
	hubspot.Timestamp.Past, hubspot.Timestamp.Future = 5*time.Minute, 5*time.Minute
	square := bodyOnly("x-square-hmacsha256-signature", "", signature.HMACSHA256, signature.Base64)
	square.Message = []signature.Part{signature.RequestURL(), signature.RawBody()}
	adyen := bodyOnly("hmacsignature", "", signature.HMACSHA256, signature.Base64)
	adyen.Methods[0].Key.Encoding = signature.Hex
	return map[string]*signature.Scheme{
		"adyen":             adyen,
		"calendly":          fields("calendly-webhook-signature", "t", "v1", ',', "."),
		"cashfree":          timed("x-webhook-signature", "x-webhook-timestamp", signature.Milliseconds, signature.Base64, signature.HMACSHA256, signature.Text),
		"coinbase-commerce": bodyOnly("x-cc-webhook-signature", "", signature.HMACSHA256, signature.Hex),
		"discord":           timed("x-signature-ed25519", "x-signature-timestamp", signature.Seconds, signature.Hex, signature.Ed25519, signature.Hex),
		"generic":           bodyOnly("x-convoy-signature", "", signature.HMACSHA512, signature.Hex),
		"gitlab":            standard(),
		"hubspot":           hubspot,
		"intercom":          bodyOnly("x-hub-signature", "sha1=", signature.HMACSHA1, signature.Hex),
		"lemon-squeezy":     bodyOnly("x-signature", "", signature.HMACSHA256, signature.Hex),
		"linear":            bodyOnly("linear-signature", "", signature.HMACSHA256, signature.Hex),
		"meta":              bodyOnly("x-hub-signature-256", "sha256=", signature.HMACSHA256, signature.Hex),
		"paddle":            fields("paddle-signature", "ts", "h1", ';', ":"),
		"square":            square,
		"typeform":          bodyOnly("typeform-signature", "sha256=", signature.HMACSHA256, signature.Base64),
		"xero":              bodyOnly("x-xero-signature", "", signature.HMACSHA256, signature.Base64),
		"zendesk":           timed("x-zendesk-webhook-signature", "x-zendesk-webhook-signature-timestamp", signature.RFC3339, signature.Base64, signature.HMACSHA256, signature.Text),
		"zendesk-digits":    timed("x-zendesk-webhook-signature", "x-zendesk-webhook-signature-timestamp", signature.Seconds, signature.Base64, signature.HMACSHA256, signature.Text),
		"zoom":              zoom,
	}
}

// standard is Standard Webhooks.
func standard() *signature.Scheme {
	return &signature.Scheme{
		Methods: []signature.Method{
			{Tag: "v1", Algorithm: signature.HMACSHA256, Key: signature.KeyRule{Encoding: signature.Base64, Prefix: "whsec_", BytesMin: 16}},
			{Tag: "v1a", Algorithm: signature.Ed25519, Key: signature.KeyRule{
				Encoding: signature.Base64, Prefix: "whpk_", PrefixRequired: true, PrivatePrefix: "whsk_", BytesMin: 32,
			}},
		},
		Message: []signature.Part{
			signature.HeaderValue("webhook-id"), signature.Literal("."), signature.SignedTime(), signature.Literal("."), signature.RawBody(),
		},
		Signature: signature.Place{Header: "webhook-signature", Grammar: signature.Tagged, Separator: ' ', Encoding: signature.Base64},
		Timestamp: signature.Timestamp{Header: "webhook-timestamp", Unit: signature.Seconds, Past: 5 * time.Minute, Future: 5 * time.Minute},
	}
}

// Proves T1, V5 and V6 for the senders without an adapter of their own.
func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range vectors {
		seen[v.Provider] = true
		t.Run(v.Provider+"/"+v.Name, func(t *testing.T) {
			t.Parallel()
			s := schemes()[v.Provider]
			secret, err := s.DecodeTestKey(v.Secret)
			if err != nil {
				t.Fatal(err)
			}
			var now time.Time
			if v.Now != nil {
				now = time.Unix(*v.Now, 0)
			}
			_, err = check(s, v.request(t), []signature.Key{{Version: "k1", Secret: secret}}, now)
			if got := causeOf(t, err); got != v.Expect {
				t.Errorf("got %s, want %s: %v", got, v.Expect, err)
			}
		})
	}
	for name, s := range schemes() {
		if !seen[name] {
			t.Errorf("no vector for %s", name)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What Sign writes, Verify accepts, for every grammar, algorithm and unit.
func TestWhatIsSignedVerifies(t *testing.T) {
	t.Parallel()
	at := time.Unix(1750000000, 0).UTC()
	secrets := map[string]string{
		"adyen": "44782DEF547AAA06C910C43932B1EB0C", "gitlab": "whsec_dGhpcyBpcyBhIGtleSBmb3IgdGVzdHM=",
	}
	for name, s := range schemes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s.Methods[0].Algorithm == signature.Ed25519 {
				return // signing takes a private key: see TestEd25519
			}
			secret := cmp.Or(secrets[name], "a secret of this test")
			decoded, err := s.DecodeKey(secret)
			if err != nil {
				t.Fatal(err)
			}
			key := signature.Key{Version: "k1", Secret: decoded}
			req := signature.Request{Method: "POST", URL: "https://example.com/in", Header: signature.Header{"webhook-id": "msg_1"}, Body: []byte(`{"a":1}`)}
			req.Header, err = s.Sign(req, key, at)
			if err != nil {
				t.Fatal(err)
			}
			got, err := check(s, req, []signature.Key{key}, at)
			want := signature.Match{Version: "k1"}
			if s.SignsTime() {
				want.At = at
			}
			if diff := gocmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("refused: %v\n%s", err, diff)
			}
		})
	}
}
