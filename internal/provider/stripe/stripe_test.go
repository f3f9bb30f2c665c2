package stripe_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	api "github.com/stripe/stripe-go/v83"
	"github.com/stripe/stripe-go/v83/webhook"

	"dakghar/internal/provider"
	"dakghar/internal/provider/providertest"
	"dakghar/internal/provider/stripe"
	"dakghar/internal/signature"
	words "dakghar/internal/webhook"
)

func suite() providertest.Suite {
	return providertest.Suite{
		Current: "whsec_current_secret_of_the_suite", Previous: "whsec_previous_secret_of_the_suite", Other: "whsec_other_secret_of_the_suite",
		Type: "payment_intent.succeeded",
		NotSecrets: map[string]error{
			"whsec_": signature.ErrSecretTooShort, "whsec_test_secret": signature.ErrSecretPublished, "sk_test_4eC39HqLyjWDarjtT1zdp7dc": signature.ErrSecretForeign,
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, stripe.Adapter(), suite())
}

// Proves T1 with an independent oracle: what Stripe's own library signs, we
// accept, and what we sign, it accepts and reads the same.
func TestStripesOwnLibraryAgrees(t *testing.T) {
	t.Parallel()
	a := stripe.Adapter()
	at := time.Now().Truncate(time.Second) // the library reads the clock itself
	for _, eventType := range a.Types() {
		sample, err := a.Sample(provider.SampleOptions{Type: eventType, EventID: "evt_1", ObjectID: "ob_1", At: at})
		if err != nil {
			t.Fatal(err)
		}
		secret := suite().Current
		key := providertest.Key(t, a, "current", secret)

		theirs := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: sample.Body, Secret: secret, Timestamp: at})
		req := signature.Request{Header: signature.Header{"stripe-signature": theirs.Header}, Body: theirs.Payload}
		got, err := providertest.Check(a, req, []signature.Key{key}, at)
		if diff := cmp.Diff(signature.Match{Version: "current", At: at.UTC()}, got); err != nil || diff != "" {
			t.Errorf("%s: signed by the library and refused: %v\n%s", eventType, err, diff)
		}

		ours, err := a.Scheme.Sign(signature.Request{Body: sample.Body}, key, at)
		if err != nil {
			t.Fatal(err)
		}
		event, err := webhook.ConstructEventWithOptions(sample.Body, ours["stripe-signature"], secret, webhook.ConstructEventOptions{IgnoreAPIVersionMismatch: true})
		if err != nil {
			t.Fatalf("%s: signed by us and refused: %v", eventType, err)
		}
		e, err := a.Envelope(nil, sample.Body)
		if err != nil || string(e.EventID) != event.ID || string(e.Type) != string(event.Type) || e.CreatedAt.Unix() != event.Created {
			t.Errorf("%s: we read %+v, %v; the library %s %s %d", eventType, e, err, event.ID, event.Type, event.Created)
		}
	}
}

// The samples are the objects that Stripe's library knows, and it reads the same
// facts from them.
func TestSamplesAreStripesObjects(t *testing.T) {
	t.Parallel()
	a := stripe.Adapter()
	object := func(eventType words.EventType, into any) words.Facts {
		t.Helper()
		sample, err := a.Sample(provider.SampleOptions{Type: eventType, EventID: "evt_1", ObjectID: "ob_1", Amount: 77, Currency: "eur"})
		if err != nil {
			t.Fatal(err)
		}
		var event api.Event
		if err := json.Unmarshal(sample.Body, &event); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(event.Data.Raw, into); err != nil {
			t.Fatal(err)
		}
		k, _ := a.Kind(eventType)
		f, err := a.Facts(k, eventType, sample.Body)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	equal := func(what string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	var intent api.PaymentIntent
	f := object("payment_intent.succeeded", &intent)
	equal("payment", []any{intent.ID, intent.AmountReceived, intent.Status}, []any{f.ObjectID, f.Amount, api.PaymentIntentStatusSucceeded})
	var refund api.Refund
	f = object("refund.updated", &refund)
	equal("refund", []any{refund.ID, refund.Amount, refund.PaymentIntent.ID, refund.Status}, []any{f.ObjectID, f.Amount, f.ParentID, api.RefundStatusSucceeded})
	var dispute api.Dispute
	f = object("charge.dispute.closed", &dispute)
	equal("dispute", []any{dispute.ID, dispute.Amount, dispute.PaymentIntent.ID, dispute.Status}, []any{f.ObjectID, f.Amount, f.ParentID, api.DisputeStatusLost})
	var subscription api.Subscription
	f = object("customer.subscription.updated", &subscription)
	equal("subscription", []any{subscription.ID, subscription.Customer.ID, subscription.Items.Data[0].CurrentPeriodStart, subscription.Status},
		[]any{f.ObjectID, f.ParentID, f.Version, api.SubscriptionStatusActive})
	var invoice api.Invoice
	f = object("invoice.paid", &invoice)
	equal("invoice", []any{invoice.Parent.SubscriptionDetails.Subscription.ID, invoice.Customer.ID, invoice.AmountDue, invoice.Status},
		[]any{f.ObjectID, f.ParentID, f.Amount, api.InvoiceStatusPaid})
	var account api.Account
	f = object("account.updated", &account)
	equal("account", account.ID, f.ObjectID)
	var charge api.Charge
	f = object("charge.refunded", &charge)
	equal("charge", []any{charge.PaymentIntent.ID, charge.Amount, charge.Refunded}, []any{f.ObjectID, f.Amount, true})
}

// Every status that Stripe's library knows has a state here, so that none fails
// an event; and money moves with exactly one of them.
func TestEveryStatusHasAState(t *testing.T) {
	t.Parallel()
	a := stripe.Adapter()
	for eventType, statuses := range map[words.EventType]map[string]string{
		"refund.updated": {"pending": "pending", "requires_action": "pending", "succeeded": "succeeded -1", "failed": "failed", "canceled": "cancelled"},
		"charge.dispute.updated": {
			"needs_response": "needs_response", "warning_needs_response": "needs_response", "under_review": "under_review",
			"warning_under_review": "under_review", "won": "won", "lost": "lost -1", "warning_closed": "closed", "prevented": "closed",
		},
		"customer.subscription.updated": {
			"incomplete": "incomplete", "incomplete_expired": "cancelled", "trialing": "trialing", "active": "active",
			"past_due": "past_due", "unpaid": "unpaid", "paused": "paused", "canceled": "cancelled",
		},
	} {
		k, _ := a.Kind(eventType)
		for status, want := range statuses {
			body := fmt.Sprintf(`{"data":{"object":{"id":"ob_1","amount":1,"currency":"usd","status":%q}}}`, status)
			f, err := a.Facts(k, eventType, []byte(body))
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

// Fields have moved between versions of Stripe's API; both places are read.
func TestOlderVersionsOfTheAPI(t *testing.T) {
	t.Parallel()
	a := stripe.Adapter()
	for _, tt := range []struct {
		eventType words.EventType
		object    string
		want      words.Facts
	}{
		{"customer.subscription.updated", `{"id":"sub_1","status":"active","current_period_start":1750000000}`,
			words.Facts{ObjectType: words.Subscription, ObjectID: "sub_1", State: "active", Version: 1750000000, HasVersion: true}},
		{"invoice.paid", `{"id":"in_1","subscription":"sub_1","amount_due":5,"currency":"usd"}`,
			words.Facts{ObjectType: words.Subscription, ObjectID: "sub_1", Amount: 5, Currency: "USD"}},
		{"invoice.paid", `{"id":"in_1","subscription":null,"parent":null}`, words.Facts{ObjectType: words.Subscription, ObjectID: "in_1"}},
		{"charge.refunded", `{"id":"ch_1","payment_intent":null}`, words.Facts{ObjectType: words.Payment, ObjectID: "ch_1"}},
		{"payment_intent.succeeded", `{"id":"pi_1","amount":7,"currency":"usd"}`,
			words.Facts{ObjectType: words.Payment, ObjectID: "pi_1", State: "succeeded", Amount: 7, Currency: "USD", Credit: 1}},
	} {
		k, _ := a.Kind(tt.eventType)
		got, err := a.Facts(k, tt.eventType, []byte(`{"data":{"object":`+tt.object+`}}`))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.eventType, err, diff)
		}
	}
}

// The events of the second generation have their time as text and name their
// object beside the data; they are read as far as any event is.
func TestThinEvents(t *testing.T) {
	t.Parallel()
	got, err := stripe.Adapter().Envelope(nil, []byte(`{"id":"evt_1","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered",
		"created":"2026-03-01T12:00:00.000Z","related_object":{"id":"mtr_1","type":"billing.meter"}}`))
	want := provider.Envelope{EventID: "evt_1", Type: "v1.billing.meter.error_report_triggered", ObjectID: "mtr_1", CreatedAt: providertest.At()}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
