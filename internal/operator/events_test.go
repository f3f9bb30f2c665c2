package operator_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/provider"
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

	put(w, "in_6", "other", webhook.Held, 90*time.Second)
	for id, change := range map[webhook.InboxID]func(*webhook.Inbox){
		"in_1": func(r *webhook.Inbox) {
			r.EventType, r.MatchedVersion = "payment_intent.succeeded", w.Endpoints["demo"].Keys[0].Version
		},
		"in_2": func(r *webhook.Inbox) { r.EventType, r.LastError = "charge.failed", "partner_503" },
		"in_3": func(r *webhook.Inbox) { r.LastError = "partner_503_slow" },
		"in_4": func(r *webhook.Inbox) { r.EventType, r.LastError = "customer.unheard_of", "partner_503: again" },
	} {
		row := w.Rows[id]
		change(&row)
		w.Rows[id] = row
	}
	paid, _ := stripe(t, w).Kind("payment_intent.succeeded")

	type filter = webhook.Filter
	ago := func(d time.Duration) time.Time { return w.Clock.Add(-d) }
	day := ago(24 * time.Hour)
	tests := []struct {
		name  string
		ask   filter
		limit int
		want  []webhook.InboxID
	}{
		{"of an endpoint", filter{Endpoint: "demo", Since: day}, 9, []webhook.InboxID{"in_1", "in_2", "in_4", "in_5"}},
		{"since an hour", filter{Endpoint: "demo", Since: ago(time.Hour)}, 9, []webhook.InboxID{"in_1", "in_2", "in_4"}},
		{"until two minutes ago", filter{Endpoint: "demo", Since: day, Until: ago(2 * time.Minute)}, 9, []webhook.InboxID{"in_2", "in_4", "in_5"}},
		{"in one state", filter{Endpoint: "demo", Statuses: []webhook.Status{webhook.Processed}, Since: day}, 9, []webhook.InboxID{"in_1", "in_5"}},
		{"at most two", filter{Endpoint: "demo", Since: day}, 2, []webhook.InboxID{"in_1", "in_2"}},
		{"of all endpoints, by receipt", filter{Since: day}, 9, []webhook.InboxID{"in_1", "in_6", "in_2", "in_3", "in_4", "in_5"}},
		{"of all endpoints, the first only", filter{Since: day}, 1, []webhook.InboxID{"in_1"}},
		{"failed, of all endpoints", filter{Statuses: []webhook.Status{webhook.Failed}, Since: ago(time.Hour)}, 9, []webhook.InboxID{"in_2", "in_3"}},
		{"failed, of one endpoint", filter{Endpoint: "other", Statuses: []webhook.Status{webhook.Failed}, Since: ago(time.Hour)}, 9, []webhook.InboxID{"in_3"}},
		{"of an endpoint that has none", filter{Endpoint: "demo", Statuses: []webhook.Status{webhook.Held}, Since: ago(time.Hour)}, 9, nil},
		{"of our kind", filter{Kind: string(paid.Name), Since: day}, 9, []webhook.InboxID{"in_1"}},
		{"of the provider's type", filter{Kind: "charge.failed", Since: day}, 9, []webhook.InboxID{"in_2"}},
		{"of a type that no adapter knows", filter{Kind: "customer.unheard_of", Since: day}, 9, []webhook.InboxID{"in_4"}},
		{"with a cause, as a whole word", filter{Cause: "partner_503", Since: day}, 9, []webhook.InboxID{"in_2", "in_4"}},
		{"that a key let in", filter{Endpoint: "demo", MatchedVersion: "k1-", Since: day}, 9, []webhook.InboxID{"in_1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rows, err := o.Events(t.Context(), operator.Events{Filter: tt.ask, Limit: tt.limit})
			if diff := cmp.Diff(tt.want, ids(t, rows, err)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsAreRefusedWhereTheQuestionMakesNoSense(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	hour := w.Clock.Add(-time.Hour)
	tests := []struct {
		name, code string
		ask        operator.Events
	}{
		{"an unknown endpoint", "endpoint_unknown", operator.Events{Filter: webhook.Filter{Endpoint: "nobody", Since: hour}, Limit: 1}},
		{"an impossible endpoint", "usage", operator.Events{Filter: webhook.Filter{Endpoint: "No Body", Since: hour}, Limit: 1}},
		{"an unknown state", "usage", operator.Events{Filter: webhook.Filter{Endpoint: "demo", Statuses: []webhook.Status{"LOST"}, Since: hour}, Limit: 1}},
		{"no time", "usage", operator.Events{Filter: webhook.Filter{Endpoint: "demo", Since: hour, Until: hour}, Limit: 1}},
		{"too much time", "usage", operator.Events{Filter: webhook.Filter{Endpoint: "demo", Since: w.Clock.Add(-operator.SinceMax - 1)}, Limit: 1}},
		{"none of them", "usage", operator.Events{Filter: webhook.Filter{Endpoint: "demo", Since: hour}}},
		{"a key without its endpoint", "usage", operator.Events{Filter: webhook.Filter{MatchedVersion: "k1", Since: hour}, Limit: 1}},
		{"an unknown key", "version_unknown", operator.Events{Filter: webhook.Filter{Endpoint: "demo", MatchedVersion: "k9", Since: hour}, Limit: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := o.Events(t.Context(), tt.ask)
			wantRefusal(t, err, tt.code)
		})
	}
}

func stripe(t *testing.T, w *operatortest.World) *provider.Adapter {
	t.Helper()
	a, ok := w.Providers.Lookup("stripe")
	if !ok {
		t.Fatal("no adapter for Stripe")
	}
	return a
}

func TestAnUnreadableInboxIsAnError(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	w.Fail = func(string) error { return operatortest.ErrDown }
	_, err := o.Event(t.Context(), "in_1")
	wantRefusal(t, err, "unavailable")
	_, err = o.Events(t.Context(), operator.Events{Filter: webhook.Filter{Endpoint: "demo", Since: w.Clock.Add(-time.Hour)}, Limit: 1})
	wantRefusal(t, err, "unavailable")
	w.Fail = operatortest.Down("RecentInbox")
	for _, endpoint := range []webhook.EndpointID{"demo", ""} {
		rows, err := o.Events(t.Context(), operator.Events{Filter: webhook.Filter{Endpoint: endpoint, Since: w.Clock.Add(-time.Hour)}, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, err := range rows {
			seen++
			wantRefusal(t, err, "unavailable")
		}
		if seen != 1 {
			t.Errorf("endpoint %q: an inbox that cannot be read yielded %d times, want one error", endpoint, seen)
		}
	}
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

// Proves R3 (audited): by day, by subject, by person.
func TestActsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	w.Advance(48 * time.Hour)
	rotateTo(t, o, second)
	w.Advance(time.Hour)
	retireAll(t, w, o)
	put(w, "in_1", "demo", webhook.Retry, time.Minute)
	o.Who = func(context.Context) (string, error) { return "arn:aws:iam::1:user/bob", nil }
	if _, err := o.Hold(t.Context(), "in_1", ""); err != nil {
		t.Fatal(err)
	}
	ago := func(d time.Duration) time.Time { return w.Clock.Add(-d) }
	tests := []struct {
		name string
		ask  operator.Acts
		want []string
	}{
		{"at most two", operator.Acts{Since: ago(24 * time.Hour), Limit: 2}, []string{"inbox hold", "secret retire"}},
		{"of two days, until an hour ago", operator.Acts{Since: ago(50 * time.Hour), Until: ago(time.Hour), Limit: 9}, []string{"secret rotate", "endpoint create"}},
		{"on an endpoint and its keys", operator.Acts{Subject: "demo", Since: ago(24 * time.Hour), Limit: 9}, []string{"secret retire", "secret retire", "secret rotate"}},
		{"on an event", operator.Acts{Subject: "in_1", Since: ago(24 * time.Hour), Limit: 9}, []string{"inbox hold"}},
		{"on nothing", operator.Acts{Subject: "event in_2", Since: ago(24 * time.Hour), Limit: 9}, nil},
		{"by one person", operator.Acts{Who: "user/bob", Since: ago(24 * time.Hour), Limit: 9}, []string{"inbox hold"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			acts, err := o.Acts(t.Context(), tt.ask)
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
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("acts (-want +got):\n%s", diff)
			}
		})
	}
	_, err := o.Acts(t.Context(), operator.Acts{Since: w.Clock, Until: w.Clock, Limit: 1})
	wantRefusal(t, err, "usage")
	_, err = o.Acts(t.Context(), operator.Acts{Since: ago(time.Hour)})
	wantRefusal(t, err, "usage")
}

// Proves R3 (inspect): everything that is kept about an event in one answer.
func TestAStoryHasAllThatIsKeptAboutAnEvent(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	put(w, "in_1", "demo", webhook.Failed, time.Hour)
	row := w.Rows["in_1"]
	row.EventType, row.BodyExpiresAt = "payment_intent.succeeded", w.Clock.Add(48*time.Hour)
	w.Rows["in_1"] = row
	if _, err := o.Replay(t.Context(), "in_1", "ticket 7"); err != nil {
		t.Fatal(err)
	}
	row = w.Rows["in_1"]
	promise := webhook.NewOutbox(row, w.Clock, w.Clock)
	kind, _ := stripe(t, w).Kind("payment_intent.succeeded")
	want := operator.Story{
		Row: row, Kind: kind.Name, Promise: &promise,
		Acts: []webhook.Act{{ID: "act-2", At: w.Clock, Name: "inbox replay", Subject: "event in_1", Who: "ada", Why: "ticket 7"}},
	}
	got, err := o.Story(t.Context(), "in_1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}

	// Applied, with its mark; and open without anybody who comes for it.
	w.Applied["in_1"] = true
	clear(w.Promises)
	got, err = o.Story(t.Context(), "in_1")
	want.Promise, want.Mark = nil, &webhook.Mark{InboxID: "in_1", At: row.ProcessedAt}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || !got.Missing() {
		t.Errorf("error %v, missing %t; story (-want +got):\n%s", err, got.Missing(), diff)
	}
	for _, call := range []string{"Inbox", "Outbox", "Mark", "ActsOn"} {
		w.Fail = operatortest.Down(call)
		_, err := o.Story(t.Context(), "in_1")
		wantRefusal(t, err, "unavailable")
	}
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
