package all_test

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/webhook"
)

// account is an endpoint with every account value that some adapter needs.
func account(p webhook.Provider) webhook.Endpoint {
	e := webhook.Endpoint{ID: "demo", Provider: p, API: &webhook.API{Secret: "s", Account: map[string]string{}}}
	switch p {
	case "shopify":
		e.API.Account["shop"] = "corner.myshopify.com"
	case "github":
		e.API.Account["repo"], e.API.Account["hook"] = "acme/.github", "7"
	}
	return e
}

func adapter(t *testing.T, name webhook.Provider) *provider.Adapter {
	t.Helper()
	adapters := all.Adapters()
	i := slices.IndexFunc(adapters, func(a *provider.Adapter) bool { return a.Name == name })
	if i < 0 {
		t.Fatal("no adapter " + name)
	}
	return adapters[i]
}

// Proves O3: what is asked of which sender, in one place to be read. Types that
// are not here cannot be fetched.
func TestWhatIsFetched(t *testing.T) {
	t.Parallel()
	ids := map[webhook.ObjectType]map[webhook.Provider]string{
		webhook.Payment:      {"stripe": "pi_1", "razorpay": "pay_1", "paddle": "txn_01hv8wptq8987qeep44cyrewp9"},
		webhook.Refund:       {"stripe": "re_1", "razorpay": "rfnd_1"},
		webhook.Dispute:      {"stripe": "du_1", "razorpay": "disp_1"},
		webhook.Subscription: {"stripe": "sub_1", "razorpay": "sub_1", "paddle": "sub_01hv8x29kz0t586xy6zn1a62ny"},
		webhook.Account:      {"stripe": "acct_1", "github": "repository:12"},
		webhook.Order:        {"shopify": "820982911946154508", "razorpay": "order_1"},
	}
	got := map[string]int{}
	for _, a := range all.Adapters() {
		for _, eventType := range a.Types() {
			k, _ := a.Kind(eventType)
			if k.Current == nil {
				continue
			}
			c, err := a.CurrentCall(account(a.Name), k, ids[k.Object][a.Name])
			if err != nil {
				t.Errorf("%s %s: %v", a.Name, eventType, err)
			}
			got[c.Method+" "+c.URL("")]++
		}
	}
	want := map[string]int{
		"GET https://api.stripe.com/v1/payment_intents/pi_1":                                15,
		"GET https://api.stripe.com/v1/refunds/re_1":                                        4,
		"GET https://api.stripe.com/v1/disputes/du_1":                                       5,
		"GET https://api.stripe.com/v1/subscriptions/sub_1":                                 6,
		"GET https://api.stripe.com/v1/accounts/acct_1":                                     1,
		"GET https://api.razorpay.com/v1/payments/pay_1":                                    4,
		"GET https://api.razorpay.com/v1/orders/order_1":                                    1,
		"GET https://api.razorpay.com/v1/refunds/rfnd_1":                                    4,
		"GET https://api.razorpay.com/v1/subscriptions/sub_1":                               10,
		"GET https://api.razorpay.com/v1/disputes/disp_1":                                   6,
		"GET https://api.paddle.com/transactions/txn_01hv8wptq8987qeep44cyrewp9":            10,
		"GET https://api.paddle.com/subscriptions/sub_01hv8x29kz0t586xy6zn1a62ny":           9,
		"GET https://corner.myshopify.com/admin/api/2026-07/orders/820982911946154508.json": 6,
		"GET https://api.github.com/repositories/12":                                        9,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is listed of which sender, and with which headers.
func TestWhatIsListed(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   webhook.Provider
		cursor string
		want   string
		header http.Header
	}{
		{"stripe", "", "https://api.stripe.com/v1/events?created%5Bgte%5D=1772366400&limit=100", http.Header{}},
		{"stripe", "0.evt_1", "https://api.stripe.com/v1/events?created%5Bgte%5D=1772366400&limit=100&starting_after=evt_1", http.Header{}},
		{"github", "", "https://api.github.com/repos/acme/.github/hooks/7/deliveries?per_page=100", http.Header{"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {"2022-11-28"}}},
		{"github", "0.v1_9", "https://api.github.com/repos/acme/.github/hooks/7/deliveries?cursor=v1_9&per_page=100", http.Header{"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {"2022-11-28"}}},
		{"shopify", "", "https://corner.myshopify.com/admin/api/2026-07/orders.json?limit=250&status=any&updated_at_min=2026-03-01T12%3A00%3A00Z", http.Header{}},
		{"shopify", "0.eyJ", "https://corner.myshopify.com/admin/api/2026-07/orders.json?limit=250&page_info=eyJ", http.Header{}},
		{"razorpay", "", "https://api.razorpay.com/v1/payments?count=100&from=1772366400", http.Header{}},
		{"razorpay", "1.100", "https://api.razorpay.com/v1/refunds?count=100&from=1772366400&skip=100", http.Header{}},
		{"razorpay", "2.", "https://api.razorpay.com/v1/orders?count=100&from=1772366400", http.Header{}},
		{"paddle", "", "https://api.paddle.com/events?order_by=id%5BDESC%5D&per_page=200", http.Header{"Paddle-Version": {"1"}}},
		{"paddle", "0.evt_1", "https://api.paddle.com/events?after=evt_1&order_by=id%5BDESC%5D&per_page=200", http.Header{"Paddle-Version": {"1"}}},
		{"razorpay", "3.", "https://api.razorpay.com/v1/subscriptions?count=100&from=1772366400", http.Header{}},
	} {
		c, err := adapter(t, tt.name).HistoryCall(account(tt.name), since, tt.cursor)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]any{tt.want, tt.header}, []any{c.URL(""), c.Header}); diff != "" {
			t.Errorf("%s %q: %s", tt.name, tt.cursor, diff)
		}
	}
	c, err := adapter(t, "github").RedeliverCall(account("github"), provider.Past{Delivery: "123"})
	if want := "https://api.github.com/repos/acme/.github/hooks/7/deliveries/123/attempts"; err != nil || c.Method != "POST" || c.URL("") != want {
		t.Errorf("redelivery: %s %s, %v", c.Method, c.URL(""), err)
	}
	e := account("paddle")
	e.API.Account["host"] = "sandbox-api.paddle.com"
	c, err = adapter(t, "paddle").HistoryCall(e, since, "")
	if want := "https://sandbox-api.paddle.com/events?order_by=id%5BDESC%5D&per_page=200"; err != nil || c.URL("") != want {
		t.Errorf("a sandbox: %s, %v", c.URL(""), err)
	}
	e = account("stripe")
	e.API.Account["account"] = "acct_1"
	c, err = adapter(t, "stripe").HistoryCall(e, since, "")
	if diff := cmp.Diff(http.Header{"Stripe-Account": {"acct_1"}}, c.Header); err != nil || diff != "" {
		t.Errorf("a connected account: %v %s", err, diff)
	}
}

// A shop's host is a shop's, and a repository has no way out of its path.
func TestAccountsOfSenders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        webhook.Provider
		value, text string
		want        string
	}{
		{"shopify", "shop", "corner.myshopify.com", ""},
		{"shopify", "shop", "corner-2.myshopify.com", ""},
		{"shopify", "shop", "a.b.myshopify.com", "api_account_invalid"},
		{"shopify", "shop", "Corner.myshopify.com", "api_account_invalid"},
		{"shopify", "shop", "corner.myshopify.com.evil.example", "api_account_invalid"},
		{"shopify", "shop", "evil.example/.myshopify.com", "api_account_invalid"},
		{"shopify", "shop", "cornermyshopify.com", "api_account_invalid"},
		{"shopify", "version", "2025-10", ""},
		{"shopify", "version", "unstable", "api_account_invalid"},
		{"github", "repo", "acme/shop", ""},
		{"github", "repo", "acme/.github", ""},
		{"github", "repo", "acme_corp/a.b-c_d", ""},
		{"github", "repo", "acme/..", "api_account_invalid"},
		{"github", "repo", "acme/.", "api_account_invalid"},
		{"github", "repo", "acme/shop/hooks", "api_account_invalid"},
		{"github", "repo", "acme", "api_account_invalid"},
		{"github", "org", "acme", ""},
		{"github", "org", "acme/shop", "api_account_invalid"},
		{"github", "hook", "7", ""},
		{"github", "hook", "7/deliveries", "api_account_invalid"},
		{"stripe", "account", "acct_1", ""},
		{"stripe", "account", "cus_1", "api_account_invalid"},
		{"paddle", "host", "api.paddle.com", ""},
		{"paddle", "host", "sandbox-api.paddle.com", ""},
		{"paddle", "host", "other-api.paddle.com", "api_account_invalid"},
		{"paddle", "host", "api.paddle.com.evil.example", "api_account_invalid"},
		{"paddle", "host", "api-paddle.com", "api_account_invalid"},
		{"razorpay", "shop", "x", "api_account_unknown"},
		{"slack", "shop", "x", "api_unsupported"},
	} {
		err := adapter(t, tt.name).CheckAccount(map[string]string{tt.value: tt.text})
		got := ""
		if err != nil {
			got = fault.CodeOf(err)
		}
		if got != tt.want {
			t.Errorf("%s %s=%s: %q, want %q", tt.name, tt.value, tt.text, got, tt.want)
		}
	}
}

// Proves P4 for fetched objects: what they can have become is a state that their
// type has, and money moves with the states that it should.
func TestFetchedStatesAreTheObjectTypes(t *testing.T) {
	t.Parallel()
	type outcome struct {
		Object webhook.ObjectType
		State  string
		Credit int
	}
	want := []outcome{
		{webhook.Account, "repository.archived", 0}, {webhook.Account, "repository.private", 0}, {webhook.Account, "repository.public", 0},
		{webhook.Dispute, "closed", 0}, {webhook.Dispute, "lost", -1}, {webhook.Dispute, "needs_response", 0}, {webhook.Dispute, "under_review", 0}, {webhook.Dispute, "won", 0},
		{webhook.Order, "cancelled", 0}, {webhook.Order, "fulfilled", 0}, {webhook.Order, "open", 0}, {webhook.Order, "paid", 0},
		{webhook.Payment, "authorised", 0}, {webhook.Payment, "cancelled", 0}, {webhook.Payment, "created", 0}, {webhook.Payment, "failed", 0},
		{webhook.Payment, "processing", 0}, {webhook.Payment, "requires_action", 0}, {webhook.Payment, "succeeded", 1},
		{webhook.Refund, "cancelled", 0}, {webhook.Refund, "failed", 0}, {webhook.Refund, "pending", 0}, {webhook.Refund, "succeeded", -1},
		{webhook.Subscription, "active", 0}, {webhook.Subscription, "cancelled", 0}, {webhook.Subscription, "incomplete", 0}, {webhook.Subscription, "past_due", 0},
		{webhook.Subscription, "paused", 0}, {webhook.Subscription, "trialing", 0}, {webhook.Subscription, "unpaid", 0},
	}
	seen := map[outcome]bool{}
	for _, a := range all.Adapters() {
		for _, eventType := range a.Types() {
			k, _ := a.Kind(eventType)
			if k.Current == nil {
				continue
			}
			read := k.Read
			if k.Current.Read != nil {
				read = k.Current.Read
			}
			if len(read.States) == 0 && eventType != "account.updated" {
				t.Errorf("%s %s: a fetched object does not say what it has become", a.Name, eventType)
			}
			for _, rule := range read.States {
				seen[outcome{k.Object, rule.State, rule.Credit}] = true
			}
		}
	}
	var got []outcome
	for o := range seen {
		got = append(got, o)
	}
	slices.SortFunc(got, func(a, b outcome) int {
		if a.Object != b.Object {
			return cmpText(string(a.Object), string(b.Object))
		}
		return cmpText(a.State, b.State)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func cmpText(a, b string) int { return bytes.Compare([]byte(a), []byte(b)) }

// FuzzCurrentFacts feeds every kind that is fetched with whatever an API may
// answer: nothing panics, every refusal is theirs, and what is read is within its
// bounds.
func FuzzCurrentFacts(f *testing.F) {
	for _, seed := range []string{
		`{"id":"pi_1","status":"succeeded","amount":5,"amount_received":5,"currency":"usd"}`,
		`{"id":"sub_1","status":"active","items":{"data":[{"current_period_start":1}]}}`,
		`{"id":"pay_1","status":"captured","amount":5,"currency":"INR","order_id":null}`,
		`{"order":{"id":1,"updated_at":"2026-03-01T12:00:00Z","financial_status":"paid","total_price":"4.20","currency":"USD"}}`,
		`{"id":1,"archived":false,"private":true,"updated_at":"2026-03-01T12:00:00Z"}`,
		`{"data":{"id":"txn_1","status":"ready","payments":[{"status":"error"}],"details":{"totals":{"grand_total":"5","currency_code":"JPY"}},"updated_at":"2026-03-01T12:00:00Z"}}`,
		`{"data":{"id":"sub_1","status":"paused","current_billing_period":null,"paused_at":"2026-03-01T12:00:00Z"}}`,
		`{"error":{"description":"The id provided does not exist"}}`, `{"id":"pi_1"}},"x":{"y":{}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	adapters := all.Adapters()
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, a := range adapters {
			for _, eventType := range a.Types() {
				k, _ := a.Kind(eventType)
				if k.Current == nil {
					continue
				}
				a.Missing(400, answer)
				got, err := a.CurrentFacts(k, eventType, answer)
				if err != nil {
					if got != (webhook.Facts{}) || fault.KindOf(err) != fault.Theirs || len(fault.CodeOf(err)) > 40 {
						t.Errorf("%s %s: %v", a.Name, eventType, err)
					}
					continue
				}
				if got.ObjectID == "" || len(got.ObjectID) > webhook.ObjectIDBytesMax || got.Amount < 0 || !got.CreatedAt.IsZero() {
					t.Errorf("%s %s: out of bounds: %+v", a.Name, eventType, got)
				}
			}
		}
	})
}

// FuzzReadHistory feeds every list with whatever an API may answer: nothing
// panics, what is read has the identity that the front door would give it, and the
// next page can be asked for.
func FuzzReadHistory(f *testing.F) {
	for _, seed := range []string{
		`{"object":"list","has_more":true,"data":[{"id":"evt_1","type":"payment_intent.succeeded","created":1772366401}]}`,
		`[{"id":1,"guid":"g-1","event":"repository","action":"created","delivered_at":"2026-03-01T12:00:01Z","status_code":200}]`,
		`{"orders":[{"id":1,"order_number":1,"line_items":[],"updated_at":"2026-03-01T12:00:01Z"}]}`,
		`{"items":[{"id":"pay_1","status":"captured","created_at":1772366401,"paid_count":1}]}`,
		`{"data":[{"event_id":"evt_1","event_type":"adjustment.created","occurred_at":"2026-03-01T12:00:01Z","data":{"id":"adj_1","action":"refund"}}],"meta":{"pagination":{"has_more":true}}}`,
		`[],"x":[]`, `{"data":[1,[],{}]}`,
	} {
		f.Add([]byte(seed), `<https://x.example/?cursor=a&page_info=b>; rel="next"`, "")
	}
	f.Add([]byte(`[]`), `<https://x.example/?cursor=%0d%0a>; rel=next`, "0.1")
	adapters := all.Adapters()
	since := time.Unix(1772366400, 0)
	f.Fuzz(func(t *testing.T, answer []byte, link, inner string) {
		for _, a := range adapters {
			if a.API == nil {
				continue
			}
			for list := range a.API.Histories {
				cursor := string(rune('0'+list)) + "." + inner
				page, err := a.ReadHistory(account(a.Name), since, cursor, provider.Reply{Header: http.Header{"Link": {link}}, Body: answer})
				if err != nil {
					if _, ok := errors.AsType[*fault.Error](err); !ok {
						t.Errorf("%s: not a fault: %v", a.Name, err)
					}
					continue
				}
				if page.Next != "" {
					if _, err := a.HistoryCall(account(a.Name), since, page.Next); err != nil || page.Next == cursor {
						t.Errorf("%s: %q leads to %q, %v", a.Name, cursor, page.Next, err)
					}
				}
				for _, p := range page.Items {
					checkPast(t, a, p)
				}
			}
		}
	})
}

func checkPast(t *testing.T, a *provider.Adapter, p provider.Past) {
	t.Helper()
	if p.EventID == "" || len(p.EventID) > webhook.EventIDBytesMax || p.Type == "" || len(p.Type) > webhook.EventTypeBytesMax || p.At.IsZero() {
		t.Errorf("%s: out of bounds: %+v", a.Name, p)
	}
	if p.Body == nil {
		return
	}
	e, err := a.Envelope(p.Header, p.Body)
	if err != nil || e.EventID != p.EventID || e.Type != p.Type {
		t.Errorf("%s: the front door reads %+v, %v; the list said %s %s", a.Name, e, err, p.EventID, p.Type)
	}
}
