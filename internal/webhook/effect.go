package webhook

import (
	"strconv"
	"time"
)

// EffectID identifies what one run of an event brought about; see [DeriveEffectID].
type EffectID string

// DeriveEffectID returns the identity of an effect, the same for every worker
// that plans it.
func DeriveEffectID(id InboxID, run, ordinal int) EffectID {
	return EffectID(DeriveID("ev_", "effect", string(id), strconv.Itoa(run), strconv.Itoa(ordinal)))
}

// Effect is something that others are to be told, once the event that brought it
// about is committed.
type Effect struct {
	ID      EffectID
	InboxID InboxID
	Tenant  Tenant
	// Type names it for those who are told: "payment.succeeded".
	Type string
	// Call names the one subscription that is called, in place of those that match;
	// then Ordinal and InboxID make the call's idempotency key.
	Call    string
	Ordinal int
	// BodyID and Digest are the canonical bytes, stored before the effect exists.
	BodyID        BodyID
	Digest        Digest
	BodyExpiresAt time.Time
	CreatedAt     time.Time
	// Hops is how many deliveries led to the event that brought it; see [HopsMax].
	Hops int
}

// Hop is the place of the effect's deliveries in their chain, from 1.
func (e Effect) Hop() int { return e.Hops + 1 }

// IdempotencyKey is the key of a call to another service, the same for every attempt.
func (e Effect) IdempotencyKey() string { return string(e.InboxID) + "/" + strconv.Itoa(e.Ordinal) }

// Announcement is an effect as a handler plans it.
type Announcement struct {
	Type string
	// Data is one JSON object, encoded once. Its bytes are what is signed and sent,
	// inside the canonical event.
	Data []byte
	Call string // see [Effect.Call]
}

// Bounds of what one event may bring about.
const (
	EffectsMax     = 8
	EffectBytesMax = 256 << 10
)

// NewEffectOutbox returns the promise that partners are told, committed with the
// change after which the row's fence is gen.
func NewEffectOutbox(e Effect, run int, gen Fence, now time.Time) Outbox {
	o := Outbox{
		// Runs have their own promises: an earlier one's may still be open.
		ID:      NewOutboxID(e.InboxID, TopicEffect, run*EffectsMax+e.Ordinal),
		InboxID: e.InboxID, Topic: TopicEffect, CreatedAt: now, Gen: gen, Effect: &e,
	}
	return o.Postponed(now, now)
}
