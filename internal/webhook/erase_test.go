package webhook_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

// Proves D6: what erasing, holding and letting go make of an ended row, and which
// rows each of them, and a reopening, leaves alone.
func TestErasingAndHoldingARow(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	row := webhook.Inbox{
		ID: "in_1", Status: webhook.Failed, Fence: 7, ClaimID: "c", LastError: "schema", ProcessedAt: at.Add(-time.Hour),
		BodyExpiresAt: at.Add(20 * 24 * time.Hour), ExpiresAt: at.Add(400 * 24 * time.Hour),
	}
	erased, held := row, row
	erased.Fence, erased.ErasedAt, erased.BodyExpiresAt = 8, at, at
	held.Fence, held.LegalHold, held.ExpiresAt = 8, true, time.Time{}
	free := held
	free.Fence, free.LegalHold, free.ExpiresAt = 9, false, at.Add(time.Hour)
	for _, tt := range []struct {
		change webhook.Change
		from   webhook.Inbox
		want   webhook.Inbox
	}{
		{row.Erase(at), row, erased},
		{row.HoldByLaw(), row, held},
		{held.LetGo(at, time.Hour), held, free},
	} {
		if !tt.change.Guard.Allows(tt.from) {
			t.Errorf("%s is refused", tt.change.Transition)
		}
		if diff := cmp.Diff(tt.want, tt.change.Apply(tt.from)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.change.Transition, diff)
		}
	}
	same := func(r webhook.Inbox) webhook.Inbox { // as a rival left it, without the fence that tells
		r.Fence, r.BodyExpiresAt = row.Fence, row.BodyExpiresAt
		return r
	}
	for _, c := range []webhook.Change{row.Erase(at), row.HoldByLaw(), row.Replay(at)} {
		if c.Guard.Allows(same(erased)) || c.Guard.Allows(same(held)) || !c.Guard.Allows(row) {
			t.Errorf("%s: erased %v, held %v, neither %v; want false, false, true", c.Transition, c.Guard.Allows(same(erased)), c.Guard.Allows(same(held)), c.Guard.Allows(row))
		}
	}
}

func TestAnOpenRowIsNotErased(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("it was erased")
		}
	}()
	webhook.Inbox{ID: "in_1", Status: webhook.Held}.Erase(time.Unix(1, 0))
}
