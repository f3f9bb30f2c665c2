package signature_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"testing"
	"time"

	"dakghar/internal/signature"
)

// BenchmarkVerify measures the three steps on a body of 10 KiB beside the bare
// HMAC, which is most of what they cost.
func BenchmarkVerify(b *testing.B) {
	body := bytes.Repeat([]byte(`{"a":"0123456789"},`), 10<<10/19)
	secret := "a secret of this benchmark"
	b.Run("bare HMAC", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write(body)
			mac.Sum(nil)
		}
	})
	for name, s := range map[string]*signature.Scheme{
		"plain":  bodyOnly("sig", "sha256=", signature.HMACSHA256, signature.Hex),
		"fields": fields("sig", "t", "v1", ',', "."),
	} {
		b.Run(name, func(b *testing.B) {
			decoded, err := s.DecodeKey(secret)
			if err != nil {
				b.Fatal(err)
			}
			at := time.Unix(1750000000, 0)
			keys := []signature.Key{{Version: "k1", Secret: decoded}}
			req := signature.Request{Body: body}
			if req.Header, err = s.Sign(req, keys[0], at); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := check(s, req, keys, at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
