package signature_test

import (
	"fmt"
	"time"

	"dakghar/internal/signature"
)

// A sender that signs "<time>.<body>" and sends "t=<time>,v1=<hex>".
func ExampleScheme() {
	scheme := &signature.Scheme{
		Methods:   []signature.Method{{Tag: "v1", Algorithm: signature.HMACSHA256, Key: signature.KeyRule{Encoding: signature.Text, BytesMin: 8}}},
		Message:   []signature.Part{signature.SignedTime(), signature.Literal("."), signature.RawBody()},
		Signature: signature.Place{Header: "tally-signature", Grammar: signature.Fields, Separator: ',', Encoding: signature.Hex},
		Timestamp: signature.Timestamp{Field: "t", Unit: signature.Seconds, Past: 5 * time.Minute, Future: 5 * time.Minute},
	}
	secret, err := scheme.DecodeKey("a secret of this example")
	if err != nil {
		fmt.Println(err)
		return
	}
	keys := []signature.Key{{Version: "2026-03", Secret: secret}}
	received := signature.Request{
		Header: signature.Header{"tally-signature": "t=1772366400,v1=3e2a8a4b3a1f"},
		Body:   []byte(`{"id":"evt_1"}`),
	}
	if _, err := scheme.Metadata(received.Header); err != nil {
		fmt.Println(err)
	}

	received.Header, err = scheme.Sign(received, keys[0], time.Unix(1772366400, 0))
	if err != nil {
		fmt.Println(err)
		return
	}
	meta, err := scheme.Metadata(received.Header)
	if err != nil {
		fmt.Println(err)
		return
	}
	match, err := scheme.Verify(received, meta, keys)
	fmt.Println(match.Version, err, scheme.Fresh(meta, time.Unix(1772366400, 0)))
	fmt.Println(scheme.Fresh(meta, time.Unix(1772370000, 0)))
	fmt.Println(keys[0])
	// Output:
	// signature malformed: no signature is in its encoding
	// 2026-03 <nil> <nil>
	// signature stale: signed more than 5m0s ago
	// [redacted]
}
