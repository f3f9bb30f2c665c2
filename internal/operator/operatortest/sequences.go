package operatortest

import (
	"context"
	"maps"

	"dakghar/internal/webhook"
)

type sequences struct{ w *World }

func (s sequences) Sequence(_ context.Context, id webhook.SequenceID) (webhook.Sequence, error) {
	if err := s.w.Fail("Sequence"); err != nil {
		return webhook.Sequence{}, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.sequence(id), nil
}

// sequence is a copy, as a store's answer is.
func (s sequences) sequence(id webhook.SequenceID) webhook.Sequence {
	there := s.w.Sequences[id]
	parked := map[int64]webhook.InboxID{}
	maps.Copy(parked, there.Parked)
	return webhook.Sequence{ID: id, Last: there.Last, Parked: parked}
}

func (s sequences) Skip(_ context.Context, t webhook.Turn, a webhook.Act) (bool, error) {
	if rival := s.w.Rival; rival != nil {
		s.w.Rival = nil
		rival(s.w)
	}
	if err := s.w.Fail("Skip"); err != nil {
		return false, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	seq := s.sequence(t.Sequence)
	if seq.Last != t.Last || seq.Parked[t.Number+1] != t.Next || !maps.Equal(seq.Parked, t.Waiting) {
		return false, nil
	}
	if t.Unpark != nil {
		row := s.w.Rows[t.Unpark.ID]
		if !t.Unpark.Guard.Allows(row) {
			return false, nil
		}
		s.w.Rows[row.ID], s.w.Promises[t.Promise.ID] = t.Unpark.Apply(row), *t.Promise
	}
	seq.Last = t.Number
	delete(seq.Parked, t.Number+1)
	s.w.Sequences[seq.ID], s.w.Acts = seq, append(s.w.Acts, a)
	return true, s.w.Lose("Skip")
}
