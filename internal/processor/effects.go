package processor

import (
	"context"
	"fmt"
	"time"

	"dakghar/internal/effect"
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
		kept, err := effect.Keep(ctx, p.Bodies, a, webhook.Effect{
			ID: webhook.DeriveEffectID(j.row.ID, j.row.Run, i), InboxID: j.row.ID, Tenant: j.row.Tenant, Ordinal: i, CreatedAt: now,
			Hops: j.row.Hops,
		}, j.row.ReceivedAt, p.NewID())
		if err != nil {
			return nil, err
		}
		promises = append(promises, webhook.NewEffectOutbox(kept, j.row.Run, j.row.Fence+1, now))
	}
	return promises, nil
}
