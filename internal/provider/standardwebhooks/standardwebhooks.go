// Package standardwebhooks receives from every sender that follows the Standard
// Webhooks specification.
//
// # Signature
//
// The header webhook-signature lists signatures as "version,base64", separated
// by spaces, over "id.time.body" with the two other headers' texts. v1 is
// HMAC-SHA256 under the base64 text after "whsec_"; v1a is Ed25519, checked with
// the public key after "whpk_". Other versions are ignored. Which of the two
// counts, the endpoint's keys decide and never the request.
//
// It covers the id (webhook-id), the type and the time of the attempt
// (webhook-timestamp, unix seconds). The specification asks for "some"
// tolerance; the reference libraries take 300 seconds both ways, and so do we.
// Its Go library signs the time printed anew; we sign the text as received and
// accept digits only. An id with a dot or a comma is refused: the specification
// advises against it, and the signed text could be read in two ways.
//
// # Redelivery
//
// An automatic retry has the same webhook-id, a new webhook-timestamp and a new
// signature. The schedule that the specification gives as an example ends after
// 75 hours and a half. It does not say that a retry's body stays the same, nor
// anything of manual redelivery, so neither is relied on.
//
// # Order
//
// The specification knows none. We ask the sender to put the object's id and a
// version that only grows into data.id and data.version; the event with the
// greater version wins. Event types are words joined by dots.
//
// # Sources
//
// github.com/standard-webhooks/standard-webhooks: spec/standard-webhooks.md,
// libraries/go/webhook.go and its test.
package standardwebhooks

import (
	_ "embed"
	"regexp"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

//go:embed samples/object.json
var object []byte

// tolerance is what the reference libraries use, in both directions.
const tolerance = 5 * time.Minute

// Adapter returns the adapter for the header names of the specification.
func Adapter() *provider.Adapter {
	a := New("webhook")
	a.Name, a.Title = "standard-webhooks", "Standard Webhooks"
	a.BodyVaries = provider.Unknown
	a.Redelivery = provider.Redelivery{
		Automatic:    "at once, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h (the specification's example)",
		AutomaticFor: 76 * time.Hour, SameIDOnRetry: provider.Stated,
		SameIDOnManual: provider.None,
		Sources:        []string{"https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md"},
	}
	return a
}

// New returns an adapter whose headers begin with a prefix. What differs between
// senders, Name, Title, BodyVaries and Redelivery, is left to set.
func New(prefix string) *provider.Adapter {
	return &provider.Adapter{
		Scheme:       scheme(prefix),
		BodyBytesMax: provider.BodyBytesMax,
		ContentTypes: []string{"application/json"},
		SuccessCode:  200,
		ID:           []provider.Source{{Parts: []provider.Place{{Header: prefix + "-id"}}, Signed: true}},
		Type:         provider.Source{Parts: []provider.Place{{Path: "type"}}, Signed: true},
		Created:      []string{"timestamp"},
		ObjectID:     []string{"data.id"},
		Covers:       provider.Covers{ID: true, Type: true, Time: true},
		Pattern:      regexp.MustCompile(`^[a-z0-9_]+(\.[a-z0-9_]+)+$`),
		PatternKind: provider.Kind{
			Name: "object.changed", Object: webhook.Object, Policy: webhook.ByVersion,
			Read: &provider.Reading{ID: []string{"data.id"}, Version: []string{"data.version"}, Sample: object},
		},
		Ordering: "data.version, if the sender numbers its objects' versions; otherwise none.",
		Overlap:  24 * time.Hour,
	}
}

func scheme(prefix string) *signature.Scheme {
	return &signature.Scheme{
		Methods: []signature.Method{
			{Tag: "v1", Algorithm: signature.HMACSHA256, Key: signature.KeyRule{
				Encoding: signature.Base64, Prefix: "whsec_",
				// The specification asks for 24 to 64 bytes; some senders give 18.
				BytesMin: 16,
			}},
			{Tag: "v1a", Algorithm: signature.Ed25519, Key: signature.KeyRule{
				Encoding: signature.Base64, Prefix: "whpk_", PrefixRequired: true, PrivatePrefix: "whsk_", BytesMin: 32,
			}},
		},
		Message: []signature.Part{
			signature.HeaderValue(prefix + "-id"), signature.Literal("."), signature.SignedTime(), signature.Literal("."), signature.RawBody(),
		},
		Signature: signature.Place{Header: prefix + "-signature", Grammar: signature.Tagged, Separator: ' ', Encoding: signature.Base64},
		Timestamp: signature.Timestamp{Header: prefix + "-timestamp", Unit: signature.Seconds, Past: tolerance, Future: tolerance},
	}
}
