// Package effect encodes what partners are told and keeps the bytes, for every
// stage that tells them something.
//
// Invariants:
//
//   - An event is encoded once. Its bytes are stored, content-addressed, before
//     anything refers to them, and are what is signed and sent later.
//   - Whoever keeps the same announcement of the same event makes the same bytes.
//
// It decides nothing about who is told, and promises nothing.
package effect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Canonical encodes an event for partners, once: these bytes are stored, signed
// and sent. Whoever encodes the same announcement at the same time makes the same
// bytes. Its errors are permanent.
func Canonical(a webhook.Announcement, at time.Time) ([]byte, error) {
	if !json.Valid(a.Data) || a.Type == "" {
		return nil, fault.New(fault.Permanent, "effect_malformed", nil)
	}
	name, err := json.Marshal(a.Type)
	if err != nil {
		return nil, fault.New(fault.Permanent, "effect_malformed", nil)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"type":%s,"timestamp":%q,"data":%s}`, name, at.UTC().Format(time.RFC3339Nano), a.Data)
	if b.Len() > webhook.EffectBytesMax {
		return nil, fault.New(fault.Permanent, "effect_too_large", fmt.Errorf("%d bytes", b.Len()))
	}
	return b.Bytes(), nil
}

// Bodies keeps bytes.
type Bodies interface {
	Put(ctx context.Context, b webhook.Body) (webhook.Placed, error)
}

// Keep stores an announcement's canonical bytes and returns the effect that
// refers to them. What the bytes say of the time is at; putID names this very put.
// Bytes that a worker kept long ago, whose commit came to nothing, are kept anew:
// deliveries are attempted for days from now on.
func Keep(ctx context.Context, bodies Bodies, a webhook.Announcement, e webhook.Effect, at time.Time, putID string) (webhook.Effect, error) {
	raw, err := Canonical(a, at)
	if err != nil {
		return webhook.Effect{}, err
	}
	e.Type, e.Call, e.Digest = a.Type, a.Call, webhook.DigestOf(raw)
	e.BodyID = webhook.BodyID(webhook.DeriveID("bd_", "effect body", string(e.Tenant), string(e.Digest)))
	placed, err := bodies.Put(ctx, webhook.Body{ID: e.BodyID, Tenant: e.Tenant, Raw: raw, InboxID: e.InboxID, PutID: putID, At: e.CreatedAt, Lasting: true})
	if err != nil {
		return webhook.Effect{}, err
	}
	e.BodyExpiresAt = placed.ExpiresAt
	return e, nil
}
