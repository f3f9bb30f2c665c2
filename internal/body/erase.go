package body

import (
	"context"
	"time"

	"dakghar/internal/webhook"
)

// Look says who stored a body, as its row stands. It opens nothing.
func (s *Store) Look(ctx context.Context, id webhook.BodyID) (webhook.Kept, bool, error) {
	r, found, err := s.rows.get(ctx, id)
	if err != nil || !found {
		return webhook.Kept{}, false, err
	}
	k := webhook.Kept{PutID: r.putID, First: r.first}
	if r.renewed != 0 {
		k.RenewedAt = time.Unix(r.renewed, 0).UTC()
	}
	return k, true, nil
}

// Erase deletes a body for good, if putID wrote or renewed it last. Unlike
// [Store.Remove] it takes the object first: whoever dies in between leaves a row
// that still names what is left to do, and running it again finishes. It reports
// false, and leaves the body, when another request has renewed it since.
//
// No open event may need these bytes: between the two deletions a reader finds
// the row without its object. A rival that renews brings an object of its own.
func (s *Store) Erase(ctx context.Context, id webhook.BodyID, putID string) (bool, error) {
	r, found, err := s.rows.get(ctx, id)
	switch {
	case err != nil:
		return false, err
	case !found:
		return true, nil // erased by our own earlier try, or swept
	case r.putID != putID:
		return false, nil
	}
	if r.ref != "" {
		if err := s.objects.delete(ctx, r.ref); err != nil {
			return false, err
		}
	}
	_, gone, err := s.rows.remove(ctx, id, putID)
	if err != nil || gone {
		return gone, err
	}
	// Refused: renewed by a rival, or gone by now.
	_, found, err = s.rows.get(ctx, id)
	return !found, err
}
