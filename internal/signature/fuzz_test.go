package signature_test

import (
	"errors"
	"testing"
	"time"

	"dakghar/internal/signature"
)

// FuzzHeaders feeds every grammar with whatever a stranger may send: nothing
// panics, every refusal has a cause, and nothing verifies without the key.
func FuzzHeaders(f *testing.F) {
	for _, seed := range [][3]string{
		{"v1," + b64Sig, "1614265330", "msg_1"},
		{"t=1614265330,v1=" + hexSig, "1614265330", "msg_1"},
		{"sha256=" + hexSig, "", ""},
		{"v1,a,b v1a,c", "٣", "a.b"},
		{"t=1,t=2,v1=", "-1", "\xff"},
	} {
		f.Add(seed[0], seed[1], seed[2], []byte("{}"))
	}
	all := map[string]*signature.Scheme{
		"plain":  bodyOnly("sig", "sha256=", signature.HMACSHA256, signature.Hex),
		"base64": bodyOnly("sig", "", signature.HMACSHA1, signature.Base64URL),
		"fields": fields("sig", "t", "v1", ',', "."),
		"timed":  timed("sig", "time", signature.RFC3339, signature.Base64, signature.HMACSHA512, signature.Text),
		"tagged": standard(),
	}
	all["tagged"].Signature.Header, all["tagged"].Timestamp.Header = "sig", "time"
	f.Fuzz(func(t *testing.T, sig, at, id string, body []byte) {
		for name, s := range all {
			secret := "a secret of this test"
			if name == "tagged" {
				secret = "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ="
			}
			decoded, err := s.DecodeKey(secret)
			if err != nil {
				t.Fatal(err)
			}
			req := signature.Request{Header: signature.Header{"sig": sig, "time": at, "webhook-id": id}, Body: body}
			_, err = check(s, req, []signature.Key{{Version: "k1", Secret: decoded}}, time.Unix(1614265330, 0))
			if _, ok := errors.AsType[*signature.Refusal](err); !ok {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// FuzzSecrets holds that a secret either becomes a key or is refused with one
// of the errors, and that a printed one never becomes a key.
func FuzzSecrets(f *testing.F) {
	for _, seed := range []string{"", "whsec_", "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=", testPublic, testPrivate, "0a0b", "\x00"} {
		f.Add(seed)
	}
	s := standard()
	f.Fuzz(func(t *testing.T, secret string) {
		decoded, err := s.DecodeKey(secret)
		if (err == nil) != (len(decoded) > 16) {
			t.Errorf("%d bytes and %v", len(decoded), err)
		}
		if err != nil {
			return
		}
		if _, err := s.DecodeTestKey(secret); err != nil {
			t.Errorf("good for an endpoint and not for a test: %v", err)
		}
	})
}
