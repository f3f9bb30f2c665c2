package providertest

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
)

// Vector is a request with what must be said about it. Source says where it was
// published, or that it was computed from the documented algorithm.
type Vector struct {
	Name, Source, Secret, Note string
	Headers                    signature.Header
	BodyUTF8                   string `json:"body_utf8"`
	BodyBase64                 string `json:"body_base64"`
	// Now is when the request is received, in unix seconds; null where no time is signed.
	Now *int64
	// Expect is "valid" or the cause of the refusal.
	Expect signature.Cause
}

// Request returns the request.
func (v Vector) Request(t *testing.T) signature.Request {
	t.Helper()
	body := []byte(v.BodyUTF8)
	if v.BodyBase64 != "" {
		var err error
		if body, err = base64.StdEncoding.DecodeString(v.BodyBase64); err != nil {
			t.Fatal(err)
		}
	}
	return signature.Request{Method: "POST", Header: v.Headers, Body: body}
}

// Vectors reads testdata/vectors.json.
func Vectors(t *testing.T) []Vector {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []Vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	return vectors
}

// Proves T1. The secrets of vectors are printed and some are short, so they are
// decoded as test keys.
func testVectors(t *testing.T, a *provider.Adapter) {
	for _, v := range Vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			secret, err := a.Scheme.DecodeTestKey(v.Secret)
			if err != nil {
				t.Fatal(err)
			}
			var now time.Time
			if v.Now != nil {
				now = time.Unix(*v.Now, 0)
			}
			_, err = Check(a, v.Request(t), []signature.Key{{Version: "k1", Secret: secret}}, now)
			if got := Cause(t, err); got != v.Expect {
				t.Errorf("got %s, want %s: %v", got, v.Expect, err)
			}
		})
	}
}
