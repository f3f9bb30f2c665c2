package operator_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

func put(w *operatortest.World, id webhook.InboxID, e webhook.EndpointID, s webhook.Status, ago time.Duration) {
	row := webhook.Inbox{
		ID: id, Endpoint: e, Provider: "stripe", Status: s, ReceivedAt: w.Clock.Add(-ago),
		BodyID: webhook.BodyID("bd_" + id), BodyExpiresAt: w.Clock.Add(time.Hour),
	}
	if s == webhook.Failed {
		row.ProcessedAt = row.ReceivedAt
	}
	w.Rows[id] = row
}

func ids(t *testing.T, rows iter.Seq2[webhook.Inbox, error], err error) []webhook.InboxID {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var ids []webhook.InboxID
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, row.ID)
	}
	return ids
}

// Proves R3 (list).
func TestEventsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	w.Endpoints["other"] = webhook.Endpoint{ID: "other", Provider: "stripe"}
	put(w, "in_1", "demo", webhook.Processed, 1*time.Minute)
	put(w, "in_2", "demo", webhook.Failed, 2*time.Minute)
	put(w, "in_3", "other", webhook.Failed, 3*time.Minute)
	put(w, "in_4", "demo", webhook.Retry, 4*time.Minute)
	put(w, "in_5", "demo", webhook.Processed, 5*time.Hour)

	tests := []struct {
		name string
		ask  operator.Events
		want []webhook.InboxID
	}{
		{"of an endpoint", operator.Events{Endpoint: "demo", Since: 24 * time.Hour, Limit: 9}, []webhook.InboxID{"in_1", "in_2", "in_4", "in_5"}},
		{"since an hour", operator.Events{Endpoint: "demo", Since: time.Hour, Limit: 9}, []webhook.InboxID{"in_1", "in_2", "in_4"}},
		{"in one state", operator.Events{Endpoint: "demo", Status: webhook.Processed, Since: 24 * time.Hour, Limit: 9}, []webhook.InboxID{"in_1", "in_5"}},
		{"at most two", operator.Events{Endpoint: "demo", Since: 24 * time.Hour, Limit: 2}, []webhook.InboxID{"in_1", "in_2"}},
		{"failed, of all endpoints", operator.Events{Status: webhook.Failed, Since: time.Hour, Limit: 9}, []webhook.InboxID{"in_2", "in_3"}},
		{"failed, of one endpoint", operator.Events{Endpoint: "other", Status: webhook.Failed, Since: time.Hour, Limit: 9}, []webhook.InboxID{"in_3"}},
		{"of an endpoint that has none", operator.Events{Endpoint: "other", Status: webhook.Held, Since: time.Hour, Limit: 9}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rows, err := o.Events(t.Context(), tt.ask)
			if diff := cmp.Diff(tt.want, ids(t, rows, err)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsAreRefusedWhereTheQuestionMakesNoSense(t *testing.T) {
	t.Parallel()
	_, o := create(t)
	tests := []struct {
		name, code string
		ask        operator.Events
	}{
		{"no endpoint", "usage", operator.Events{Since: time.Hour, Limit: 1}},
		{"an unknown endpoint", "endpoint_unknown", operator.Events{Endpoint: "nobody", Since: time.Hour, Limit: 1}},
		{"an impossible endpoint", "usage", operator.Events{Endpoint: "No Body", Since: time.Hour, Limit: 1}},
		{"an unknown state", "usage", operator.Events{Endpoint: "demo", Status: "LOST", Since: time.Hour, Limit: 1}},
		{"no time", "usage", operator.Events{Endpoint: "demo", Limit: 1}},
		{"too much time", "usage", operator.Events{Endpoint: "demo", Since: operator.SinceMax + 1, Limit: 1}},
		{"none of them", "usage", operator.Events{Endpoint: "demo", Since: time.Hour}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := o.Events(t.Context(), tt.ask)
			wantRefusal(t, err, tt.code)
		})
	}
}

func TestAnUnreadableInboxIsAnError(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	w.Fail = func(string) error { return operatortest.ErrDown }
	_, err := o.Event(t.Context(), "in_1")
	wantRefusal(t, err, "unavailable")
	_, err = o.Events(t.Context(), operator.Events{Endpoint: "demo", Since: time.Hour, Limit: 1})
	wantRefusal(t, err, "unavailable")
	w.Fail = func(call string) error {
		if call == "RecentInbox" {
			return operatortest.ErrDown
		}
		return nil
	}
	rows, err := o.Events(t.Context(), operator.Events{Endpoint: "demo", Since: time.Hour, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range rows {
		wantRefusal(t, err, "unavailable")
		return
	}
	t.Error("an inbox that cannot be read looked empty")
}

// Proves R3, D6: raw bytes leave only after the record of it.
func TestABodyIsOpenedOnlyAfterTheRecord(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	put(w, "in_1", "demo", webhook.Processed, 0)
	w.Bodies["bd_in_1"] = []byte(`{"a":1}`)
	opened := 0
	w.Fail = func(call string) error {
		switch call {
		case "Open":
			if opened++; len(w.Acts) != 2 {
				t.Errorf("opened with %d acts recorded, want 2", len(w.Acts))
			}
		case "RecordAct":
			if opened == 1 {
				return operatortest.ErrDown
			}
		}
		return nil
	}
	raw, err := o.Body(t.Context(), "in_1", "a question")
	if err != nil || string(raw) != `{"a":1}` {
		t.Fatalf("body %q, error %v", raw, err)
	}
	want := webhook.Act{ID: "act-2", At: w.Clock, Name: "inbox body", Subject: "event in_1", Who: "ada", Why: "a question"}
	if diff := cmp.Diff(want, w.Acts[1]); diff != "" {
		t.Errorf("act (-want +got):\n%s", diff)
	}
	if _, err := o.Body(t.Context(), "in_1", ""); err == nil || opened != 1 {
		t.Errorf("without a record: error %v, opened %d times, want an error and 1", err, opened)
	}
}

func TestABodyThatIsGoneIsSaidToBe(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	put(w, "in_1", "demo", webhook.Processed, 0)
	_, err := o.Body(t.Context(), "in_1", "")
	wantRefusal(t, err, "body_gone")
	_, err = o.Body(t.Context(), "in_2", "")
	wantRefusal(t, err, "event_unknown")
}

func TestActsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	w.Advance(48 * time.Hour)
	rotateTo(t, o, second)
	w.Advance(time.Hour)
	retireAll(t, w, o)

	acts, err := o.Acts(t.Context(), 24*time.Hour, 2)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for act, err := range acts {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, act.Name)
	}
	if want := []string{"secret retire", "secret retire"}; !slices.Equal(got, want) {
		t.Errorf("acts %v, want %v", got, want)
	}
	_, err = o.Acts(t.Context(), 0, 1)
	wantRefusal(t, err, "usage")
}

// Proves T3's reading: credited once is seen independently of the processed mark.
func TestTheLedgerShowsWhatEventsCameTo(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	ev := webhook.Event{
		Tenant: "default", Provider: "stripe", Endpoint: "demo", InboxID: "in_1", Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_1"},
	}
	w.Items[business.LedgerBalanceKey(ev)] = webhook.Item{
		"pk": "x", "sk": "y", business.AttrEntries: int64(2), business.BalanceAttribute("EUR"): int64(4200), business.BalanceAttribute("USD"): int64(-10),
	}
	w.Items[business.LedgerEntryKey(ev)] = webhook.Item{
		business.AttrInbox: "in_1", business.AttrRun: int64(0), business.AttrAmount: int64(4200), business.AttrCurrency: "EUR",
		business.AttrType: "payment_intent.succeeded",
	}
	w.Items[business.ProjectionKey(ev)] = webhook.Item{business.AttrState: "succeeded"}

	got, err := o.Ledger(t.Context(), "demo", "pi_1")
	if err != nil {
		t.Fatal(err)
	}
	want := []operator.Account{{
		ObjectType: webhook.Payment, ObjectID: "pi_1", Applied: 2, Balances: map[string]int64{"EUR": 4200, "USD": -10},
		Entries: []operator.Entry{{InboxID: "in_1", Type: "payment_intent.succeeded", Amount: 4200, Currency: "EUR"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	_, err = o.Ledger(t.Context(), "demo", "pi_2")
	wantRefusal(t, err, "object_unknown")
	_, err = o.Ledger(t.Context(), "demo", "")
	wantRefusal(t, err, "usage")
}
