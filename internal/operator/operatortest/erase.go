package operatortest

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

// kept is who stored a body: what [World.Kept] says, else the one event that has it.
func (w *World) kept(id webhook.BodyID) webhook.Kept {
	if k, said := w.Kept[id]; said {
		return k
	}
	k := webhook.Kept{PutID: "put"}
	for _, row := range w.Rows {
		if row.BodyID == id {
			k.First = row.ID
		}
	}
	return k
}

func (b bodies) Look(_ context.Context, id webhook.BodyID) (webhook.Kept, bool, error) {
	if err := b.w.Fail("Look"); err != nil {
		return webhook.Kept{}, false, err
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	_, there := b.w.Bodies[id]
	return b.w.kept(id), there, nil
}

func (b bodies) Erase(_ context.Context, id webhook.BodyID, putID string) (bool, error) {
	if err := b.w.Fail("Erase"); err != nil {
		return false, err
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if _, there := b.w.Bodies[id]; there && b.w.kept(id).PutID != putID {
		return false, nil
	}
	delete(b.w.Bodies, id)
	return true, b.w.Lose("Erase")
}

func (b bodies) HoldCopy(_ context.Context, event webhook.InboxID, id webhook.BodyID) error {
	if err := b.w.Fail("HoldCopy"); err != nil {
		return err
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if _, whole := b.w.Copies[event]; whole {
		return nil
	}
	raw, there := b.w.Bodies[id]
	if !there {
		return operator.ErrNoBody
	}
	b.w.Copies[event] = raw
	return b.w.Lose("HoldCopy")
}

func (b bodies) OpenHeld(_ context.Context, event webhook.InboxID, _ webhook.BodyID, _ webhook.Tenant, _ webhook.Digest) ([]byte, error) {
	raw, there := b.w.Copies[event]
	if !there {
		return nil, operator.ErrNoBody
	}
	return raw, nil
}

func (b bodies) DropCopy(_ context.Context, event webhook.InboxID) error {
	if err := b.w.Fail("DropCopy"); err != nil {
		return err
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	delete(b.w.Copies, event)
	return b.w.Lose("DropCopy")
}

func (i inbox) EraseBy(_ context.Context, c webhook.Change, e webhook.Erased, a webhook.Act) (bool, error) {
	return i.change("EraseBy", c, a, func() { i.w.Erased = append(i.w.Erased, e) })
}

func (i inbox) HoldByLawBy(_ context.Context, c webhook.Change, h webhook.HeldByLaw, a webhook.Act) (bool, error) {
	return i.change("HoldByLawBy", c, a, func() { i.w.LegalHolds[h.InboxID] = h })
}

func (i inbox) LetGoBy(_ context.Context, c webhook.Change, a webhook.Act) (bool, error) {
	return i.change("LetGoBy", c, a, func() { delete(i.w.LegalHolds, c.ID) })
}

func (i inbox) ErasedEvents(_ context.Context, since, until time.Time) iter.Seq2[webhook.Erased, error] {
	return func(yield func(webhook.Erased, error) bool) {
		if err := i.w.Fail("ErasedEvents"); err != nil {
			yield(webhook.Erased{}, err)
			return
		}
		for _, e := range slices.Clone(i.w.Erased) {
			if !e.At.Before(since) && !e.At.After(until) && !yield(e, nil) {
				return
			}
		}
	}
}

func (i inbox) LegalHolds(context.Context) iter.Seq2[webhook.HeldByLaw, error] {
	return func(yield func(webhook.HeldByLaw, error) bool) {
		if err := i.w.Fail("LegalHolds"); err != nil {
			yield(webhook.HeldByLaw{}, err)
			return
		}
		for _, id := range slices.Sorted(maps.Keys(i.w.LegalHolds)) {
			if !yield(i.w.LegalHolds[id], nil) {
				return
			}
		}
	}
}
