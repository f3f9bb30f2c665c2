package processor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Wanted tells whether any partner wants events of a type, at most half a minute old.
type Wanted interface {
	Wanted(ctx context.Context, t webhook.Tenant, eventType string, now time.Time) (bool, error)
}

// effects stores the bytes of what partners are to be told and returns the
// promises that are committed with the plan. What nobody wants leaves nothing. A
// run that an operator asked for again tells nobody a second time.
//
// The bytes are there before the promise: dying in between leaves bytes that
// nobody refers to, and the next worker makes the same ones.
func (p *Processor) effects(ctx context.Context, j *job, planned []webhook.Announcement) ([]webhook.Outbox, error) {
	if j.row.Run > 0 || len(planned) == 0 {
		return nil, nil
	}
	if len(planned) > webhook.EffectsMax {
		return nil, fault.New(fault.Permanent, "effects_too_many", fmt.Errorf("%d, at most %d", len(planned), webhook.EffectsMax))
	}
	now := p.Now()
	var promises []webhook.Outbox
	for i, a := range planned {
		if a.Call == "" {
			wanted, err := p.Wanted.Wanted(ctx, j.row.Tenant, a.Type, now)
			if err != nil {
				return nil, err
			}
			if !wanted {
				continue
			}
		}
		effect, err := p.keep(ctx, j, a, i, now)
		if err != nil {
			return nil, err
		}
		promises = append(promises, webhook.NewEffectOutbox(effect, j.row.Run, j.row.Fence+1, now))
	}
	return promises, nil
}

// keep stores one effect's canonical bytes, content-addressed.
func (p *Processor) keep(ctx context.Context, j *job, a webhook.Announcement, ordinal int, now time.Time) (webhook.Effect, error) {
	raw, err := canonical(a, j.row.ReceivedAt)
	if err != nil {
		return webhook.Effect{}, err
	}
	digest := webhook.DigestOf(raw)
	body := webhook.Body{
		ID:     webhook.BodyID(webhook.DeriveID("bd_", "effect body", string(j.row.Tenant), string(digest))),
		Tenant: j.row.Tenant, Raw: raw, InboxID: j.row.ID, PutID: p.NewID(), At: now,
	}
	placed, err := p.Bodies.Put(ctx, body)
	if err != nil {
		return webhook.Effect{}, err
	}
	return webhook.Effect{
		ID: webhook.DeriveEffectID(j.row.ID, j.row.Run, ordinal), InboxID: j.row.ID, Tenant: j.row.Tenant, Type: a.Type,
		Call: a.Call, Ordinal: ordinal, BodyID: body.ID, Digest: digest, BodyExpiresAt: placed.ExpiresAt, CreatedAt: now,
	}, nil
}

// canonical encodes an effect, once: these bytes are stored, signed and sent. The
// time is the event's receipt, so that every worker makes the same bytes.
func canonical(a webhook.Announcement, at time.Time) ([]byte, error) {
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
