package paddle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/provider/paddle"
	"dakghar/internal/provider/providertest"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

func suite() providertest.Suite {
	return providertest.Suite{
		Current: "pdl_ntfset_current_secret_of_the_suite", Previous: "pdl_ntfset_previous_secret_of_the_suite", Other: "pdl_ntfset_other_secret_of_the_suite",
		Type: "transaction.completed",
		NotSecrets: map[string]error{
			"pdl_ntfset_": signature.ErrSecretTooShort,
			"pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr": signature.ErrSecretPublished,
			"pdl_live_apikey_01gtgztp8f4kek3yd4g1wrksa3_a_key_of_the_suite":          signature.ErrSecretForeign,
			"pdl_sdbx_apikey_01gtgztp8f4kek3yd4g1wrksa3_a_key_of_the_suite":          signature.ErrSecretForeign,
			"test_a_client_side_token_of_the_suite":                                  signature.ErrSecretForeign,
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, paddle.Adapter(), suite())
}

// Proves T1: the body that Paddle's own library tests with is read, as far as an
// event of a type outside the catalogue is.
func TestThePublishedBodyIsRead(t *testing.T) {
	t.Parallel()
	got, err := paddle.Adapter().Envelope(nil, []byte(providertest.Vectors(t)[0].BodyUTF8))
	want := provider.Envelope{
		EventID: "evt_01hsdn97563968dy0szkmgjwh3", Type: "price.created", ObjectID: "pri_01hsdn96k2hxjzsq5yerecdj9j",
		CreatedAt: time.Date(2024, time.March, 20, 10, 7, 35, 590857000, time.UTC),
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A replay has another notification_id, and is the same event.
func TestAReplayIsTheSameEvent(t *testing.T) {
	t.Parallel()
	a := paddle.Adapter()
	body := `{"event_id":"evt_1","event_type":"adjustment.created","occurred_at":"2026-03-01T12:00:00Z","notification_id":%q,"data":{"id":"adj_1","action":"refund"}}`
	first, err := a.Envelope(nil, fmt.Appendf(nil, body, "ntf_1"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.Envelope(nil, fmt.Appendf(nil, body, "ntf_2"))
	if diff := cmp.Diff(first, again); err != nil || diff != "" || first.EventID != "evt_1" || first.Type != "adjustment.created/refund" {
		t.Errorf("%+v, %v\n%s", first, err, diff)
	}
}

// Every status that Paddle's library knows has a state here, so that none fails an
// event; and money moves with exactly one of them.
func TestEveryStatusHasAState(t *testing.T) {
	t.Parallel()
	a := paddle.Adapter()
	for eventType, statuses := range map[webhook.EventType]map[string]string{
		"transaction.created": {
			"draft": "created", "ready": "requires_action", "billed": "processing", "past_due": "failed",
			"paid": "authorised", "completed": "succeeded +1", "canceled": "cancelled",
		},
		"transaction.payment_failed": {"draft": "failed", "ready": "failed", "billed": "failed", "past_due": "failed"},
		"transaction.updated":        {"draft": "", "paid": "", "completed": ""},
		"transaction.revised":        {"billed": "", "completed": ""},
		"subscription.updated":       {"trialing": "trialing", "active": "active", "past_due": "past_due", "paused": "paused", "canceled": "cancelled"},

		"adjustment.created/refund":                     {"pending_approval": "pending", "approved": "succeeded -1", "rejected": "failed", "reversed": "cancelled"},
		"adjustment.updated/chargeback":                 {"pending_approval": "needs_response", "approved": "lost -1", "rejected": "closed", "reversed": "lost -1"},
		"adjustment.created/chargeback_reverse":         {"pending_approval": "needs_response", "approved": "won +1", "rejected": "closed", "reversed": "won +1"},
		"adjustment.created/chargeback_warning":         {"pending_approval": "needs_response", "approved": "needs_response", "rejected": "closed", "reversed": "closed"},
		"adjustment.created/chargeback_warning_reverse": {"pending_approval": "closed", "approved": "closed", "rejected": "closed", "reversed": "closed"},
		"adjustment.created/credit":                     {"approved": "", "reversed": ""},
		"adjustment.updated/credit_reverse":             {"approved": ""},
	} {
		k, ok := a.Kind(eventType)
		if !ok {
			t.Fatalf("%s is not in the catalogue", eventType)
		}
		for status, want := range statuses {
			f, err := a.Facts(k, eventType, fmt.Appendf(nil, `{"data":{"id":"x_1","transaction_id":"txn_1","status":%q,
				"totals":{"total":"1","currency_code":"USD"},"details":{"totals":{"grand_total":"1","currency_code":"USD"}}}}`, status))
			got := f.State
			if f.Credit != 0 {
				got = fmt.Sprintf("%s %+d", f.State, f.Credit)
			}
			if err != nil || got != want {
				t.Errorf("%s with status %s: %q, %v; want %q", eventType, status, got, err, want)
			}
		}
	}
}

// What the buyer pays is the grand total: credits are off it already. Yen have no
// smaller unit, and 1000 of them are 1000.
func TestTheAmountIsTheGrandTotal(t *testing.T) {
	t.Parallel()
	a := paddle.Adapter()
	for _, tt := range []struct {
		totals string
		want   webhook.Facts
		code   string
	}{
		{`{"total":"1500","credit":"500","grand_total":"1000","balance":"0","currency_code":"JPY"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "txn_1", State: "succeeded", Amount: 1000, Currency: "JPY", Credit: 1, ParentID: "sub_1"}, ""},
		{`{"grand_total":"2499"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "txn_1", State: "succeeded", Amount: 2499, Currency: "USD", Credit: 1, ParentID: "sub_1"}, ""},
		{`{"grand_total":"0","currency_code":"USD"}`, // a trial begins
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "txn_1", State: "succeeded", Currency: "USD", Credit: 1, ParentID: "sub_1"}, ""},
		{`{"total":"1000","currency_code":"JPY"}`, webhook.Facts{}, "amount_missing"},
		{`{"grand_total":"10.00","currency_code":"USD"}`, webhook.Facts{}, "amount_invalid"},
		{`{"grand_total":1000,"currency_code":"USD"}`, webhook.Facts{}, "amount_invalid"},
	} {
		k, _ := a.Kind("transaction.completed")
		got, err := a.Facts(k, "transaction.completed",
			[]byte(`{"data":{"id":"txn_1","subscription_id":"sub_1","status":"completed","currency_code":"USD","details":{"totals":`+tt.totals+`}}}`))
		code := ""
		if err != nil {
			code = fault.CodeOf(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || code != tt.code {
			t.Errorf("%s: code %q, want %q\n%s", tt.totals, code, tt.code, diff)
		}
	}
}

// The round is the period; a subscription without one is as late as its pause, and
// one that has ended needs none.
func TestTheRoundIsTheBillingPeriod(t *testing.T) {
	t.Parallel()
	a := paddle.Adapter()
	for _, tt := range []struct {
		name, object string
		want         webhook.Facts
	}{
		{"active", `"status":"active","current_billing_period":{"starts_at":"2026-03-01T12:00:00.556997Z"},"paused_at":null`,
			webhook.Facts{State: "active", Version: 1772366400, HasVersion: true}},
		{"paused in its period", `"status":"paused","current_billing_period":{"starts_at":"2026-03-01T12:00:00.556Z"},"paused_at":"2026-03-10T12:00:00Z"`,
			webhook.Facts{State: "paused", Version: 1772366400, HasVersion: true}},
		{"paused without a period", `"status":"paused","current_billing_period":null,"paused_at":"2026-03-01T12:00:05.833481556Z"`,
			webhook.Facts{State: "paused", Version: 1772366405, HasVersion: true}},
		{"ended", `"status":"canceled","current_billing_period":null,"paused_at":null,"canceled_at":"2026-03-01T12:00:00Z"`, webhook.Facts{State: "cancelled"}},
	} {
		k, _ := a.Kind("subscription.updated")
		got, err := a.Facts(k, "subscription.updated", []byte(`{"data":{"id":"sub_1","customer_id":"ctm_1",`+tt.object+`}}`))
		tt.want.ObjectType, tt.want.ObjectID, tt.want.ParentID = webhook.Subscription, "sub_1", "ctm_1"
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.name, err, diff)
		}
	}
}
