package webhook

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// Identifiers are distinct types, so that no two of them can be swapped.
type (
	// Provider names an adapter: "stripe", "github", "standard-webhooks".
	Provider string
	// EndpointID names one configured receiving address of one provider. It is never reused.
	EndpointID string
	// Scope is the boundary inside which a provider's event id is unique. It is
	// the endpoint, unless two endpoints are told to share one.
	Scope string
	// EventID is the provider's own identifier of the logical event, 1 to [EventIDBytesMax] bytes.
	EventID string
	// EventType is the provider's name for what happened.
	EventType string
	// Kind is our canonical name for what happened: "payment.succeeded".
	Kind string
	// InboxID identifies an accepted event; see [DeriveInboxID].
	InboxID string
	// OutboxID identifies a promise that somebody will be told; see [NewOutboxID].
	OutboxID string
	// BodyID identifies the stored raw bytes of a request; see [DeriveBodyID].
	BodyID string
	// ClaimID identifies one attempt by one worker, drawn at random.
	ClaimID string
	// KeyVersion identifies one version of an endpoint's signing secret.
	KeyVersion string
	// Tenant owns endpoints; its events, effects and data keys stay apart from others'.
	Tenant string
	// Digest is the lower-case hexadecimal SHA-256 of a raw body.
	Digest string
)

// EventIDBytesMax bounds a provider's event id, so that a state row stays under
// one write unit. The longest documented one of the supported providers has 64 bytes.
const EventIDBytesMax = 128

// EndpointIDBytesMax bounds an endpoint id.
const EndpointIDBytesMax = 40

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// DeriveInboxID returns the identity of a logical event. Two requests with the
// same scope, provider and event id are one event, whatever their bodies.
func DeriveInboxID(scope Scope, provider Provider, event EventID) InboxID {
	return InboxID("in_" + hashID("inbox", string(scope), string(provider), string(event)))
}

// DeriveConflictID returns the identity of a request that carries a known event
// id with another body. The digest takes part, so that every different body is
// kept once and none is dropped.
func DeriveConflictID(scope Scope, provider Provider, event EventID, digest Digest) InboxID {
	return InboxID("in_" + hashID("conflict", string(scope), string(provider), string(event), string(digest)))
}

// DeriveBodyID returns the content address of a body at an endpoint.
func DeriveBodyID(endpoint EndpointID, digest Digest) BodyID {
	return BodyID("bd_" + hashID("body", string(endpoint), string(digest)))
}

// hashID joins the parts with their lengths, so that no two different lists of
// parts hash the same text, and keeps 200 bits: 40 letters and digits.
func hashID(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	var sum [sha256.Size]byte
	return idEncoding.EncodeToString(h.Sum(sum[:0])[:25])
}

// DeriveID returns an identity made of parts: a prefix for people, and a hash in
// which the label keeps different uses apart.
func DeriveID(prefix, label string, parts ...string) string {
	return prefix + hashID(append([]string{label}, parts...)...)
}

// DigestOf returns the digest of a raw body.
func DigestOf(body []byte) Digest {
	sum := sha256.Sum256(body)
	return Digest(hex.EncodeToString(sum[:]))
}

// Shards is the number of partitions that each time-ordered index is spread
// over, so that no index key takes more than 1/16 of the peak.
const Shards = 16

// ShardOf returns the index shard of an id, 0 to [Shards]-1.
func ShardOf(id string) int {
	sum := sha256.Sum256([]byte(id))
	return int(sum[0]) % Shards
}

// Topic says what an outbox row promises.
type Topic string

// The topics.
const (
	// TopicProcess wakes the processor for an inbox row.
	TopicProcess Topic = "process"
	// TopicEffect tells the dispatcher what an event has brought about.
	TopicEffect Topic = "effect"
	// TopicDeliver wakes the dispatcher for a delivery. It is a message only: a
	// delivery is its own promise.
	TopicDeliver Topic = "deliver"
)

// NewOutboxID returns the outbox row's key for a subject's promise. Ordinal
// tells apart several promises of one subject and topic.
func NewOutboxID(subject InboxID, topic Topic, ordinal int) OutboxID {
	return OutboxID(string(subject) + "#" + string(topic) + "#" + strconv.Itoa(ordinal))
}

// ValidEndpointID reports whether s can name an endpoint: 1 to
// [EndpointIDBytesMax] lower-case letters, digits and inner hyphens.
func ValidEndpointID(s string) bool {
	if len(s) == 0 || len(s) > EndpointIDBytesMax || strings.HasPrefix(s, "-") || strings.HasSuffix(s, "-") {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Bounds of what a row keeps of a request's own words; together with
// [EventIDBytesMax] they keep the row under one write unit.
const (
	EventTypeBytesMax     = 80
	ObjectIDBytesMax      = 100
	ObjectVersionBytesMax = 20
	TenantBytesMax        = 32
)
