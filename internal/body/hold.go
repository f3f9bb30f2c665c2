package body

import (
	"context"
	"fmt"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// A copy that an event under legal hold keeps of its body: the sealed bytes as
// they stood, in pieces, and the wrapped data key beside them, so that neither the
// body's life nor its key row's matters to it. Its rows have no expiry.
//
//	id           S  "hold#" and the inbox id; of further pieces "#" and their number
//	p, k, w         as of the body, and its key row
//	z            B  the piece
//	n            N  on the first row: how many pieces there are
//
// The first row comes first and says how many belong to it; it goes last.
const (
	holdPrefix = "hold#"
	attrPieces = "n"
	// pieceBytes leaves room for the other attributes in the 400 KB of an item.
	pieceBytes = 350 << 10
)

func holdKey(event webhook.InboxID, piece int) string {
	id := holdPrefix + string(event)
	if piece > 0 {
		id += fmt.Sprintf("#%d", piece)
	}
	return id
}

// HoldCopy makes an event's own copy of a body. A copy that is whole stays as it
// is; one that a death left in pieces is made anew. [ErrMissing] means that there
// is no body any more.
func (s *Store) HoldCopy(ctx context.Context, event webhook.InboxID, id webhook.BodyID) error {
	if _, whole, err := s.heldCopy(ctx, event); err != nil || whole {
		return err
	}
	if err := s.DropCopy(ctx, event); err != nil {
		return err
	}
	r, found, err := s.rows.get(ctx, id)
	switch {
	case err != nil:
		return err
	case !found:
		return ErrMissing
	}
	if r.ref != "" {
		if r.sealed, err = s.objects.download(ctx, r.ref); err != nil {
			return err
		}
	}
	wrapped, err := s.rows.getKey(ctx, r.keyID)
	if err != nil {
		return err
	}
	pieces := (len(r.sealed) + pieceBytes - 1) / pieceBytes
	for n := range pieces {
		piece := r.sealed[n*pieceBytes : min((n+1)*pieceBytes, len(r.sealed))]
		if err := s.rows.putPiece(ctx, holdKey(event, n), r, piece, wrapped, pieces); err != nil {
			return err
		}
	}
	return nil
}

// held is a copy as it was read.
type held struct {
	row
	wrapped []byte
}

// heldCopy reads a copy. It is whole if every piece of one body is there.
func (s *Store) heldCopy(ctx context.Context, event webhook.InboxID) (held, bool, error) {
	first, err := s.rows.read(ctx, holdKey(event, 0))
	if err != nil || len(first) == 0 {
		return held{}, false, err
	}
	h := held{row: parseRow(first), wrapped: bytesOf(first[attrWrapped])}
	for n := 1; n < piecesOf(first); n++ {
		next, err := s.rows.read(ctx, holdKey(event, n))
		if err != nil {
			return held{}, false, err
		}
		r := parseRow(next)
		if len(r.sealed) == 0 || r.putID != h.putID {
			return held{}, false, nil
		}
		h.sealed = append(h.sealed, r.sealed...)
	}
	return h, true, nil
}

// OpenHeld is [Store.Open] of an event's own copy.
func (s *Store) OpenHeld(ctx context.Context, event webhook.InboxID, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error) {
	h, whole, err := s.heldCopy(ctx, event)
	switch {
	case err != nil:
		return nil, err
	case !whole:
		return nil, ErrMissing
	case h.keyID == "" || len(h.sealed) < sealedBytesMin:
		return nil, ErrCorrupt
	}
	aead, err := s.ring.decrypt(ctx, tenant, h.wrapped)
	if err != nil {
		return nil, err
	}
	raw, err := s.codec.open(aead, id, h.keyID, h.sealed)
	if err != nil {
		return nil, err
	}
	if webhook.DigestOf(raw) != digest {
		return nil, ErrCorrupt
	}
	return raw, nil
}

// DropCopy deletes an event's copy, if there is one. The first row goes last, so
// that whoever dies in between can find the others again.
func (s *Store) DropCopy(ctx context.Context, event webhook.InboxID) error {
	first, err := s.rows.read(ctx, holdKey(event, 0))
	if err != nil || len(first) == 0 {
		return err
	}
	for n := piecesOf(first) - 1; n >= 0; n-- {
		it, err := s.rows.read(ctx, holdKey(event, n))
		if err != nil {
			return err
		}
		if len(it) == 0 {
			continue
		}
		if _, gone, err := s.rows.remove(ctx, webhook.BodyID(holdKey(event, n)), parseRow(it).putID); err != nil {
			return err
		} else if !gone {
			return fault.New(fault.Ours, "body_hold_taken", nil)
		}
	}
	return nil
}
