package operator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

type doing func(*operator.Operator, context.Context, webhook.InboxID, string) (webhook.Inbox, error)

// index is a handler that replaces what it writes, and says so.
type index struct{ business.Notices }

func (index) Reprocessable() (name, why string) { return "search-index", "it replaces the entry" }

func runAgain(handler string) doing {
	return func(o *operator.Operator, ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
		return o.Reprocess(ctx, id, handler, why)
	}
}

// eventIn returns a world with one event in a state, with its promise while it is open.
func eventIn(status webhook.Status) (*operatortest.World, webhook.Inbox) {
	w := operatortest.New()
	w.Router = w.Router.With(webhook.Payment, index{})
	row := webhook.Inbox{
		ID: "in_1", Provider: "stripe", Endpoint: "demo", EventType: "payment_intent.succeeded", Status: status, Fence: 4, AttemptCount: 8, ReceivedAt: w.Clock.Add(-time.Hour),
		NextAttemptAt: w.Clock.Add(-time.Hour), BodyExpiresAt: w.Clock.Add(29 * 24 * time.Hour), LastError: "partner_503",
	}
	if status == webhook.Processing {
		row.ClaimID, row.LeaseUntil = "worker", w.Clock.Add(time.Minute)
	}
	if status.Terminal() {
		row.ProcessedAt, row.ExpiresAt = w.Clock.Add(-time.Minute), w.Clock.Add(400*24*time.Hour)
	}
	if status == webhook.Processed {
		row.Outcome, w.Applied[row.ID] = webhook.Applied, true
	}
	w.Rows[row.ID] = row
	if !status.Terminal() {
		o := webhook.NewOutbox(row, row.NextAttemptAt, w.Clock)
		w.Promises[o.ID] = o
	}
	return w, row
}

// Proves R3, W4: each act's whole effect, and its record.
func TestWhatAnOperatorDoesToAnEvent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		from webhook.Status
		do   doing
		act  string
		want func(w *operatortest.World, r *webhook.Inbox)
		open bool // whether a promise stands afterwards
	}{
		{"replay a failed event", webhook.Failed, (*operator.Operator).Replay, "inbox replay", func(w *operatortest.World, r *webhook.Inbox) {
			r.Status, r.Fence, r.AttemptCount, r.NextAttemptAt = webhook.Received, 5, 0, w.Clock
			r.ProcessedAt, r.ExpiresAt = time.Time{}, time.Time{}
		}, true},
		{"release a held event", webhook.Held, (*operator.Operator).Release, "inbox release", func(w *operatortest.World, r *webhook.Inbox) {
			r.Status, r.Fence, r.AttemptCount, r.NextAttemptAt = webhook.Received, 5, 0, w.Clock
		}, true},
		{"hold a waiting event", webhook.Retry, (*operator.Operator).Hold, "inbox hold", func(_ *operatortest.World, r *webhook.Inbox) {
			r.Status, r.Fence, r.LastError = webhook.Held, 5, "held_by_operator"
		}, false},
		{"hold an event that a worker has", webhook.Processing, (*operator.Operator).Hold, "inbox hold", func(_ *operatortest.World, r *webhook.Inbox) {
			r.Status, r.Fence, r.LastError, r.ClaimID, r.LeaseUntil = webhook.Held, 5, "held_by_operator", "", time.Time{}
		}, false},
		{"fail an open event", webhook.Received, (*operator.Operator).Fail, "inbox fail", func(w *operatortest.World, r *webhook.Inbox) {
			r.Status, r.Fence, r.LastError = webhook.Failed, 5, "failed_by_operator"
			r.ProcessedAt, r.ExpiresAt = w.Clock, w.Clock.Add(400*24*time.Hour)
		}, false},
		{"hold a parked event", webhook.Parked, (*operator.Operator).Hold, "inbox hold", func(_ *operatortest.World, r *webhook.Inbox) {
			r.Status, r.Fence, r.LastError = webhook.Held, 5, "held_by_operator"
		}, false},
		{"run an applied event again whose handler allows it", webhook.Processed, runAgain("search-index"), "inbox reprocess", func(w *operatortest.World, r *webhook.Inbox) {
			r.Status, r.Fence, r.AttemptCount, r.NextAttemptAt, r.Run, r.Outcome = webhook.Received, 5, 0, w.Clock, 1, ""
			r.ProcessedAt, r.ExpiresAt = time.Time{}, time.Time{}
		}, true},
		{"fail a held event", webhook.Held, (*operator.Operator).Fail, "inbox fail", func(w *operatortest.World, r *webhook.Inbox) {
			r.Status, r.Fence, r.LastError = webhook.Failed, 5, "failed_by_operator"
			r.ProcessedAt, r.ExpiresAt = w.Clock, w.Clock.Add(400*24*time.Hour)
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, row := eventIn(tt.from)
			got, err := tt.do(w.Operator(), t.Context(), row.ID, "ticket 7")
			if err != nil {
				t.Fatal(err)
			}
			want := row
			tt.want(w, &want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, w.Rows[row.ID]); diff != "" {
				t.Errorf("stored row (-want +got):\n%s", diff)
			}
			acts := []webhook.Act{{ID: "act-1", At: w.Clock, Name: tt.act, Subject: "event in_1", Who: "ada", Why: "ticket 7"}}
			if diff := cmp.Diff(acts, w.Acts); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			promises := map[webhook.OutboxID]webhook.Outbox{}
			o := webhook.NewOutbox(want, w.Clock, w.Clock)
			switch {
			case want.Status == webhook.Held:
				o = webhook.NewHeldOutbox(want, w.Clock)
				promises[o.ID] = o
			case tt.open:
				promises[o.ID] = o
			}
			if diff := cmp.Diff(promises, w.Promises); diff != "" {
				t.Errorf("promises (-want +got):\n%s", diff)
			}
		})
	}
}

// What is refused writes nothing and records nothing.
func TestActsThatAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		from    webhook.Status
		do      doing
		arrange func(w *operatortest.World, r *webhook.Inbox)
		code    string
	}{
		{"replay of a processed event", webhook.Processed, (*operator.Operator).Replay, nil, "wrong_state"},
		{"a second run that the handler does not declare", webhook.Processed, runAgain("search-index"), func(w *operatortest.World, r *webhook.Inbox) {
			w.Router = business.Standard()
		}, "not_reprocessable"},
		{"a second run under another name", webhook.Processed, runAgain("ledger"), nil, "other_handler"},
		{"a second run without a name", webhook.Processed, runAgain(""), nil, "usage"},
		{"a second run of a failed event", webhook.Failed, runAgain("search-index"), nil, "wrong_state"},
		{"a second run of a type that no adapter knows", webhook.Processed, runAgain("search-index"), func(_ *operatortest.World, r *webhook.Inbox) {
			r.EventType = "customer.unheard_of"
		}, "kind_unknown"},
		{"a second run of what has no handler", webhook.Processed, runAgain("search-index"), func(w *operatortest.World, _ *webhook.Inbox) {
			w.Router = business.NewRouter(nil)
		}, "handler_unknown"},
		{"replay of an open event", webhook.Retry, (*operator.Operator).Replay, nil, "wrong_state"},
		{"release of a failed event", webhook.Failed, (*operator.Operator).Release, nil, "wrong_state"},
		{"hold of a failed event", webhook.Failed, (*operator.Operator).Hold, nil, "wrong_state"},
		{"hold of a held event", webhook.Held, (*operator.Operator).Hold, nil, "wrong_state"},
		{"fail of a processed event", webhook.Processed, (*operator.Operator).Fail, nil, "wrong_state"},
		{"replay of an applied event", webhook.Failed, (*operator.Operator).Replay, func(w *operatortest.World, r *webhook.Inbox) { w.Applied[r.ID] = true }, "already_applied"},
		{"replay of an event whose body ends within a day", webhook.Failed, (*operator.Operator).Replay, func(w *operatortest.World, r *webhook.Inbox) {
			r.BodyExpiresAt = w.Clock.Add(24 * time.Hour)
		}, "body_gone"},
		{"an unknown event", webhook.Failed, (*operator.Operator).Replay, func(w *operatortest.World, r *webhook.Inbox) { r.ID = "in_2" }, "event_unknown"},
		{"the inbox is down", webhook.Failed, (*operator.Operator).Replay, func(w *operatortest.World, _ *webhook.Inbox) {
			w.Fail = operatortest.Down("Reopen")
		}, "unavailable"},
		{"the caller is unknown", webhook.Retry, (*operator.Operator).Hold, func(w *operatortest.World, _ *webhook.Inbox) {
			w.Fail = operatortest.Down("Who")
		}, "caller_unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, row := eventIn(tt.from)
			if tt.arrange != nil {
				tt.arrange(w, &row)
			}
			if _, known := w.Rows[row.ID]; known {
				w.Rows[row.ID] = row
			}
			before := w.Rows["in_1"]
			_, err := tt.do(w.Operator(), t.Context(), row.ID, "")
			refusal, ok := errors.AsType[*operator.Refusal](err)
			if !ok || refusal.Code != tt.code {
				t.Errorf("error %v, want the refusal %s", err, tt.code)
			}
			if diff := cmp.Diff(before, w.Rows["in_1"]); diff != "" || len(w.Acts) > 0 {
				t.Errorf("row changed (-before +after):\n%s; %d records", diff, len(w.Acts))
			}
		})
	}
}
