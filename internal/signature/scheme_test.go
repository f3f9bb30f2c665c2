package signature_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/signature"
)

// A wrong declaration is told whole, not one mistake at a time.
func TestValidateTellsEverything(t *testing.T) {
	t.Parallel()
	s := &signature.Scheme{
		Methods: []signature.Method{
			{Tag: "v1", Key: signature.KeyRule{Encoding: signature.Text}},
			{Tag: "v1", Algorithm: signature.Ed25519, Key: signature.KeyRule{Encoding: signature.Text, BytesMin: 32}},
			{Tag: "V2", Algorithm: signature.HMACSHA256, Key: signature.KeyRule{BytesMin: 1}},
		},
		Message: []signature.Part{
			signature.RawBody(), signature.RawBody(), signature.SignedTime(), signature.Literal(""), signature.HeaderValue("Webhook-Id"), {},
		},
		Signature: signature.Place{Header: "Signature", Grammar: signature.Tagged, Prefix: "x"},
		Timestamp: signature.Timestamp{Header: "time", Field: "t", Past: time.Minute},
	}
	want := []string{
		`signature: method "v1" has no algorithm`,
		`signature: method "v1" accepts an empty key`,
		`signature: tag "v1" twice`,
		`signature: method "v1": a public key is not text`,
		`signature: tag "V2"`,
		`signature: method "V2" has no key encoding`,
		`signature: an empty literal`,
		`signature: signed header "Webhook-Id"`,
		`signature: a part without a kind`,
		`signature: 2 raw bodies in the message, want 1`,
		`signature: signature header "Signature"`,
		`signature: no signature encoding`,
		`signature: a list has a separator, a plain signature has none`,
		`signature: a prefix in a list`,
		`signature: no unit of time`,
		`signature: a time needs a header or a field, not both`,
		`signature: time field "t"`,
		`signature: tolerance of 1m0s and 0s`,
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), s.Validate().Error()); diff != "" {
		t.Error(diff)
	}
	want = []string{
		`signature: 0 methods, want 1 to 8`,
		`signature: 0 raw bodies in the message, want 1`,
		`signature: signature header ""`,
		`signature: no grammar`,
		`signature: no signature encoding`,
		`signature: a list has a separator, a plain signature has none`,
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), (&signature.Scheme{}).Validate().Error()); diff != "" {
		t.Error(diff)
	}
}
