package shopify_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/provider/providertest"
	"dakghar/internal/provider/shopify"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

func suite() providertest.Suite {
	return providertest.Suite{
		Current: "current secret of the suite", Previous: "previous secret of the suite", Other: "other secret of the suite",
		Type: "orders/paid",
		NotSecrets: map[string]error{
			"short": signature.ErrSecretTooShort, "test_secret_key": signature.ErrSecretPublished, "shpat_0123456789abcdef": signature.ErrSecretForeign,
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, shopify.Adapter(), suite())
}

func facts(t *testing.T, a *provider.Adapter, eventType webhook.EventType, body string) (webhook.Facts, error) {
	t.Helper()
	k, ok := a.Kind(eventType)
	if !ok {
		t.Fatalf("%s is not allowed", eventType)
	}
	return a.Facts(k, eventType, []byte(body))
}

// An order's state is what its signed body says, whatever the unsigned topic.
func TestAnOrdersStateIsInItsBody(t *testing.T) {
	t.Parallel()
	a := shopify.Adapter()
	for _, eventType := range []webhook.EventType{"orders/create", "orders/updated", "orders/paid", "orders/fulfilled", "orders/cancelled", "orders/partially_fulfilled"} {
		for members, want := range map[string]string{
			`"financial_status":"pending","fulfillment_status":null,"cancelled_at":null`:                    "open",
			`"financial_status":"authorized","fulfillment_status":"partial"`:                                "open",
			`"financial_status":"partially_paid"`:                                                           "open",
			`"financial_status":"paid","fulfillment_status":null`:                                           "paid",
			`"financial_status":"paid","fulfillment_status":"partial"`:                                      "paid",
			`"financial_status":"refunded"`:                                                                 "paid",
			`"financial_status":"partially_refunded"`:                                                       "paid",
			`"financial_status":"pending","fulfillment_status":"fulfilled"`:                                 "fulfilled",
			`"financial_status":"paid","fulfillment_status":"fulfilled","cancelled_at":"2026-03-01T12:00Z"`: "cancelled",
		} {
			got, err := facts(t, a, eventType, `{"id":1,"total_price":"42.00","currency":"USD",`+members+`}`)
			want := webhook.Facts{ObjectType: webhook.Order, ObjectID: "1", State: want, Amount: 4200, Currency: "USD"}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s with %s: %v\n%s", eventType, members, err, diff)
			}
		}
	}
}

func TestTransactionsAreRead(t *testing.T) {
	t.Parallel()
	a := shopify.Adapter()
	for what, want := range map[string]string{
		"sale success": "succeeded +1", "capture success": "succeeded +1", "authorization success": "authorised +0",
		"sale pending": "processing +0", "capture pending": "processing +0", "authorization awaiting_response": "requires_action +0",
		"sale failure": "failed +0", "capture error": "failed +0", "authorization failure": "failed +0",
		"refund success": " +0", "refund pending": " +0", "void success": " +0", "change success": " +0",
		"sale unheard_of": "state_unknown", "unheard_of success": "state_unknown",
	} {
		kind, status, _ := strings.Cut(what, " ")
		f, err := facts(t, a, "order_transactions/create", fmt.Sprintf(`{"id":1,"order_id":2,"kind":%q,"status":%q,"amount":"42.00","currency":"JPY"}`, kind, status))
		got := fmt.Sprintf("%s %+d", f.State, f.Credit)
		if err != nil {
			got = fault.CodeOf(err)
		}
		if got != want || err == nil && (f.Amount != 42 || f.ParentID != "2") {
			t.Errorf("%s: %q, %+v; want %q", what, got, f, want)
		}
	}
}

// A refund takes what its transactions that succeeded gave back, and nothing
// where none did.
func TestRefundsAreSummed(t *testing.T) {
	t.Parallel()
	a := shopify.Adapter()
	refund := func(transactions string) string {
		return `{"id":1,"order_id":2,"refund_line_items":[],"transactions":[` + transactions + `]}`
	}
	for _, tt := range []struct {
		name, body string
		want       webhook.Facts
	}{
		{"two tenders", refund(`{"kind":"refund","status":"success","amount":"40.00","currency":"USD"},{"kind":"refund","status":"success","amount":"2.00","currency":"USD"}`),
			webhook.Facts{ObjectType: webhook.Refund, ObjectID: "1", State: "succeeded", Amount: 4200, Currency: "USD", Credit: -1, ParentID: "2"}},
		{"one of two pending", refund(`{"kind":"refund","status":"success","amount":"40.00","currency":"USD"},{"kind":"refund","status":"pending","amount":"2.00","currency":"USD"}`),
			webhook.Facts{ObjectType: webhook.Refund, ObjectID: "1", State: "succeeded", Amount: 4000, Currency: "USD", Credit: -1, ParentID: "2"}},
		{"all pending", refund(`{"kind":"refund","status":"pending","amount":"2.00","currency":"USD"}`), webhook.Facts{ObjectType: webhook.Refund, ObjectID: "1", ParentID: "2"}},
		{"goods taken back without money", refund(``), webhook.Facts{ObjectType: webhook.Refund, ObjectID: "1", ParentID: "2"}},
	} {
		got, err := facts(t, a, "refunds/create", tt.body)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.name, err, diff)
		}
	}
}

// A body of one shape does not pass under a topic of another.
func TestABodyOfAnotherTopicDoesNotPass(t *testing.T) {
	t.Parallel()
	a := shopify.Adapter()
	shapes := map[string]webhook.EventType{"order": "orders/paid", "transaction": "order_transactions/create", "refund": "refunds/create"}
	for shape, eventType := range shapes {
		sample, err := a.Sample(provider.SampleOptions{Type: eventType, EventID: "e1"})
		if err != nil {
			t.Fatal(err)
		}
		for other, topic := range shapes {
			h := maps.Clone(sample.Header)
			h["x-shopify-topic"] = string(topic)
			want := provider.CodeTypeMismatch
			if other == shape {
				want = ""
			}
			if _, err := a.Envelope(h, sample.Body); providertest.Code(t, err) != want {
				t.Errorf("a %s as %s: %v, want %q", shape, topic, err, want)
			}
		}
	}
}

// Topic, shop and webhook id together are the identity; the event id, which
// several topics share, takes no part.
func TestIdentityIsTopicShopAndWebhook(t *testing.T) {
	t.Parallel()
	a := shopify.Adapter()
	sample, err := a.Sample(provider.SampleOptions{Type: "orders/paid", EventID: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	with := func(changes ...string) signature.Header {
		h := maps.Clone(sample.Header)
		h["x-shopify-shop-domain"], h["x-shopify-event-id"] = "shop1.myshopify.com", "ev1"
		for i := 0; i < len(changes); i += 2 {
			h[changes[i]] = changes[i+1]
		}
		return h
	}
	long := strings.Repeat("s", 100)
	for _, tt := range []struct {
		name   string
		header signature.Header
		want   webhook.EventID
		code   string
	}{
		{"all three", with(), "orders/paid|shop1.myshopify.com|w1", ""},
		{"another event id", with("x-shopify-event-id", "ev2"), "orders/paid|shop1.myshopify.com|w1", ""},
		{"another webhook id", with("x-shopify-webhook-id", "w2"), "orders/paid|shop1.myshopify.com|w2", ""},
		{"another topic of the same action", with("x-shopify-topic", "orders/updated"), "orders/updated|shop1.myshopify.com|w1", ""},
		{"no shop", with("x-shopify-shop-domain", ""), "orders/paid|w1", ""},
		{"a webhook id that holds the separator", with("x-shopify-webhook-id", "w|1"), "", provider.CodeBadID},
		{"the shop twice, joined", with("x-shopify-shop-domain", "a.myshopify.com,b.myshopify.com"), "", provider.CodeBadID},
		{"a long name of a shop", with("x-shopify-shop-domain", long+".myshopify.com", "x-shopify-webhook-id", "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043"),
			webhook.EventID(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("orders/paid|"+long+".myshopify.com|b54557e4-bdd9-4b37-8a5f-bf7d70bcd043")))), ""},
	} {
		got, err := a.Envelope(tt.header, sample.Body)
		if got.EventID != tt.want || providertest.Code(t, err) != tt.code {
			t.Errorf("%s: %q, %v; want %q, %q", tt.name, got.EventID, err, tt.want, tt.code)
		}
	}
}
