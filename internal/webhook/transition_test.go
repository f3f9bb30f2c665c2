package webhook_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const (
	lease       = time.Minute
	keep        = 400 * 24 * time.Hour
	attemptsMax = 3
)

func received() webhook.Inbox {
	return webhook.Inbox{ID: "in_1", Status: webhook.Received, ReceivedAt: now, NextAttemptAt: now}
}

func claimed() webhook.Inbox {
	return webhook.Claim("in_1", "claim-1", now, lease, attemptsMax).Apply(received())
}

func applied() webhook.Inbox {
	row := claimed()
	row.BodyExpiresAt = now.Add(30 * 24 * time.Hour)
	return row.Complete(webhook.Applied, now, keep).Apply(row)
}

// Proves R3: another run needs the row as it was seen, and a body that lasts.
func TestAnotherRunIsGuardedAsAReplayIs(t *testing.T) {
	t.Parallel()
	row := applied()
	again := row.Reprocess(now)
	moved, failed, fading := row, row, row
	moved.Fence++
	failed.Status = webhook.Failed
	fading.BodyExpiresAt = now.Add(24 * time.Hour)
	if !again.Guard.Allows(row) {
		t.Error("refused on the row it was decided on")
	}
	for name, other := range map[string]webhook.Inbox{"moved on": moved, "failed": failed, "a body of one more day": fading} {
		if again.Guard.Allows(other) {
			t.Errorf("%s: allowed", name)
		}
	}
}

// Proves W1, A6: what a claim takes and what it leaves alone.
func TestClaimTakesOnlyWhatIsDue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		row  func(*webhook.Inbox)
		want bool
	}{
		{"a fresh row", func(*webhook.Inbox) {}, true},
		{"a row due in five seconds, since a queue's delay is not exact", func(r *webhook.Inbox) { r.NextAttemptAt = now.Add(5 * time.Second) }, true},
		{"a row due later", func(r *webhook.Inbox) { r.NextAttemptAt = now.Add(5*time.Second + 1) }, false},
		{"a due retry", func(r *webhook.Inbox) { r.Status = webhook.Retry }, true},
		{"a row whose attempts are spent", func(r *webhook.Inbox) { r.AttemptCount = attemptsMax }, false},
		{"a row that a rival works on", func(r *webhook.Inbox) { r.Status, r.LeaseUntil = webhook.Processing, now }, false},
		{"a row whose worker's time is up: it is put back first", func(r *webhook.Inbox) { r.Status, r.LeaseUntil = webhook.Processing, now.Add(-1) }, false},
		{"a held row", func(r *webhook.Inbox) { r.Status = webhook.Held }, false},
		{"a processed row", func(r *webhook.Inbox) { r.Status = webhook.Processed }, false},
		{"a failed row", func(r *webhook.Inbox) { r.Status = webhook.Failed }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			row := received()
			tt.row(&row)
			if got := webhook.Claim("in_1", "c", now, lease, attemptsMax).Guard.Allows(row); got != tt.want {
				t.Errorf("claim allowed = %v, want %v", got, tt.want)
			}
		})
	}
}

// Proves W1, W2, W4: each transition's whole result.
func TestTransitionsChangeTheWholeRowAsStated(t *testing.T) {
	t.Parallel()
	base := claimed()
	later := now.Add(10 * time.Second)
	tests := []struct {
		name   string
		row    webhook.Inbox
		change webhook.Change
		want   func(*webhook.Inbox)
	}{
		{"a claim counts the attempt before the work", received(), webhook.Claim("in_1", "claim-1", now, lease, attemptsMax), func(r *webhook.Inbox) {
			*r = webhook.Inbox{
				ID: "in_1", Status: webhook.Processing, ReceivedAt: now, NextAttemptAt: now,
				Fence: 1, AttemptCount: 1, ClaimID: "claim-1", LeaseUntil: now.Add(lease),
			}
		}},
		{"complete keeps the claim id, so that a lost reply is recognised", base, base.Complete(webhook.Applied, later, keep), func(r *webhook.Inbox) {
			r.Status, r.Outcome, r.Fence = webhook.Processed, webhook.Applied, 2
			r.LeaseUntil, r.ProcessedAt, r.ExpiresAt = time.Time{}, later, later.Add(keep)
		}},
		{"a retry that is theirs keeps the attempt spent", base, base.Retry(later, "their_fault", false), func(r *webhook.Inbox) {
			r.Status, r.Fence, r.NextAttemptAt, r.LastError = webhook.Retry, 2, later, "their_fault"
			r.LeaseUntil, r.ClaimID = time.Time{}, ""
		}},
		{"a retry that is ours gives the attempt back", base, base.Retry(later, "our_fault", true), func(r *webhook.Inbox) {
			r.Status, r.Fence, r.NextAttemptAt, r.LastError, r.AttemptCount = webhook.Retry, 2, later, "our_fault", 0
			r.LeaseUntil, r.ClaimID = time.Time{}, ""
		}},
		{"fail is terminal and starts the row's last life", base, base.Fail(later, "schema", keep), func(r *webhook.Inbox) {
			r.Status, r.Fence, r.LastError, r.ProcessedAt, r.ExpiresAt = webhook.Failed, 2, "schema", later, later.Add(keep)
			r.LeaseUntil, r.ClaimID = time.Time{}, ""
		}},
		{"freeing a dead worker's lease leaves the attempt spent", base, base.FreeLease(now.Add(2*time.Minute), now.Add(3*time.Minute)), func(r *webhook.Inbox) {
			r.Status, r.Fence, r.NextAttemptAt, r.LastError = webhook.Retry, 2, now.Add(3*time.Minute), "lease_expired"
			r.LeaseUntil, r.ClaimID = time.Time{}, ""
		}},
		{"another run keeps the row's life and takes its end away", applied(), applied().Reprocess(later), func(r *webhook.Inbox) {
			r.Status, r.Fence, r.Run, r.Outcome, r.AttemptCount, r.NextAttemptAt = webhook.Received, 3, 1, "", 0, later
			r.ProcessedAt, r.ExpiresAt, r.ClaimID = time.Time{}, time.Time{}, ""
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.row
			tt.want(&want)
			if diff := cmp.Diff(want, tt.change.Apply(tt.row)); diff != "" {
				t.Errorf("row after %s (-want +got):\n%s", tt.change.Transition, diff)
			}
		})
	}
}

// Proves W1: a claim that was taken over, or a row that moved on, refuses the
// outdated change.
func TestAChangeDecidedOnAnOldRowIsRefused(t *testing.T) {
	t.Parallel()
	old := claimed()
	taken := webhook.Claim("in_1", "claim-2", now.Add(2*lease), lease, attemptsMax).Apply(old)
	for _, c := range []webhook.Change{
		old.Complete(webhook.Applied, now, keep), old.Retry(now, "x", false), old.Fail(now, "x", keep),
		old.FreeLease(now.Add(2*lease), now.Add(2*lease)), old.FailLease(now.Add(2*lease), keep),
	} {
		if !c.Guard.Allows(old) && c.Guard.LeaseOverAt.IsZero() {
			t.Errorf("%s is refused on the row it was decided on", c.Transition)
		}
		if c.Guard.Allows(taken) {
			t.Errorf("%s is allowed although the claim was taken over", c.Transition)
		}
	}
}

// The lease's end is part of freeing it: a row that was claimed again is left alone.
func TestFreeingALeaseNeedsItToBeOver(t *testing.T) {
	t.Parallel()
	row := claimed()
	free := row.FreeLease(now.Add(lease+1), now.Add(2*lease))
	renewed := row
	renewed.LeaseUntil = now.Add(2 * lease)
	if !free.Guard.Allows(row) || free.Guard.Allows(renewed) {
		t.Errorf("allowed on the expired lease = %v, on a renewed one = %v; want true, false", free.Guard.Allows(row), free.Guard.Allows(renewed))
	}
}

// Only a row that would otherwise be claimable may fail as exhausted: one that
// a rival works on, or that an operator holds, does not.
func TestExhaustedSparesRowsThatSomebodyHas(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		row  func(*webhook.Inbox)
		want bool
	}{
		{"due, attempts spent", func(r *webhook.Inbox) { r.Status = webhook.Retry }, true},
		{"due, an attempt left", func(r *webhook.Inbox) { r.Status, r.AttemptCount = webhook.Retry, attemptsMax-1 }, false},
		{"not due", func(r *webhook.Inbox) { r.Status, r.NextAttemptAt = webhook.Retry, now.Add(time.Hour) }, false},
		{"claimed, lease running", func(r *webhook.Inbox) { r.Status, r.LeaseUntil = webhook.Processing, now.Add(1) }, false},
		{"claimed, lease over", func(r *webhook.Inbox) { r.Status, r.LeaseUntil = webhook.Processing, now.Add(-1) }, true},
		{"held", func(r *webhook.Inbox) { r.Status = webhook.Held }, false},
		{"processed", func(r *webhook.Inbox) { r.Status = webhook.Processed }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			row := received()
			row.AttemptCount = attemptsMax
			tt.row(&row)
			if got := row.Exhausted(now, attemptsMax); got != tt.want {
				t.Errorf("Exhausted = %v, want %v", got, tt.want)
			}
		})
	}
}

// What must never be decided panics with a sentence.
func TestDecisionsOnTheWrongStateAreBugs(t *testing.T) {
	t.Parallel()
	done := claimed().Complete(webhook.Applied, now, keep).Apply(claimed())
	for name, decide := range map[string]func(){
		"complete of a received row":       func() { received().Complete(webhook.Applied, now, keep) },
		"complete without an outcome":      func() { claimed().Complete("", now, keep) },
		"retry of a processed row":         func() { done.Retry(now, "x", false) },
		"another run of a received row":    func() { received().Reprocess(now) },
		"fail of a processed row":          func() { done.Fail(now, "x", keep) },
		"freeing a running lease":          func() { claimed().FreeLease(now, now) },
		"failing a running lease":          func() { claimed().FailLease(now, keep) },
		"a claim without an id":            func() { webhook.Claim("in_1", "", now, lease, 1) },
		"a claim without a lease":          func() { webhook.Claim("in_1", "c", now, 0, 1) },
		"a claim without a single attempt": func() { webhook.Claim("in_1", "c", now, lease, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("was decided")
				}
			}()
			decide()
		})
	}
}

// A diagnostic is cut, never longer than a row can bear.
func TestLastErrorIsCut(t *testing.T) {
	t.Parallel()
	long := string(make([]byte, 500))
	if got := len(claimed().Retry(now, long, false).LastError); got != webhook.LastErrorBytesMax {
		t.Errorf("last error has %d bytes, want %d", got, webhook.LastErrorBytesMax)
	}
}
