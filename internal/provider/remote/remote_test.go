package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/egress"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/provider/remote"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/webhook"
)

// world is the stand-in behind a real socket, and a client of it.
type world struct {
	*fakeprovider.Server
	client remote.Client
}

// texts are the credentials by their names.
type texts map[string]string

func (s texts) Text(_ context.Context, name string) (string, error) {
	if text, ok := s[name]; ok {
		return text, nil
	}
	return "", fault.New(fault.Ours, "secret_no_version", nil)
}

// now is the tests' clock.
func now() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// hidden is in every credential, and may be in nothing else.
const hidden = "hunter2"

func newWorld(t *testing.T) *world {
	t.Helper()
	fake := fakeprovider.New()
	server := httptest.NewServer(fake)
	way := egress.New(egress.Config{AllowLoopback: true})
	t.Cleanup(func() { way.CloseIdle(); server.Close() })
	secrets := texts{"stripe": "sk_" + hidden, "github": "ghp_" + hidden, "shopify": "shpat_" + hidden, "razorpay": "rzp:" + hidden, "paddle": "pdl_live_apikey_" + hidden}
	for name, text := range secrets {
		fake.Credential(webhook.Provider(name), text)
	}
	return &world{Server: fake, client: remote.Client{
		Secrets: secrets, HTTP: egress.Doer[remote.Request, remote.Response]{Client: way}, Now: now, Base: fakeprovider.Base(server.URL),
	}}
}

func endpoint(p webhook.Provider) webhook.Endpoint {
	e := webhook.Endpoint{ID: "demo", Provider: p, API: &webhook.API{Secret: string(p), Account: map[string]string{}}}
	switch p {
	case "shopify":
		e.API.Account["shop"] = "corner.myshopify.com"
	case "github":
		e.API.Account["repo"], e.API.Account["hook"] = "acme/shop", "7"
	}
	return e
}

func adapter(t *testing.T, p webhook.Provider) *provider.Adapter {
	t.Helper()
	for _, a := range all.Adapters() {
		if a.Name == p {
			return a
		}
	}
	t.Fatal("no adapter " + p)
	return nil
}

// read is what came of reading an object.
type read struct {
	Facts   webhook.Facts
	Found   bool
	Verdict string
	After   time.Duration
}

func (w *world) read(ctx context.Context, t *testing.T, p webhook.Provider, eventType webhook.EventType, id string) read {
	t.Helper()
	a := adapter(t, p)
	k, _ := a.Kind(eventType)
	doc, found, err := w.client.Current(ctx, endpoint(p), a, k, id)
	r := read{Found: found, Verdict: verdict(t, err), After: remote.After(err)}
	if found {
		if r.Facts, err = a.CurrentFacts(k, eventType, doc); err != nil {
			t.Errorf("the client found what the adapter cannot read: %v", err)
		}
	}
	return r
}

// verdict is whose fault an error is, and which. Proves M4 each time: no error has
// a credential, an address or a parameter.
func verdict(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	for _, secret := range []string{hidden, "127.0.0.1", "?", "http"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error repeats %s: %v", secret, err)
		}
	}
	if _, ok := errors.AsType[*fault.Error](err); !ok {
		t.Errorf("not a fault: %v", err)
	}
	return string(fault.KindOf(err)) + " " + fault.CodeOf(err)
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}

// objects are one of each that is fetched, as the senders' documentation shows
// them, with what is read from them.
func objects() map[string]struct {
	provider   webhook.Provider
	collection string
	eventType  webhook.EventType
	state      string
	want       webhook.Facts
} {
	updated := time.Date(2026, time.March, 1, 11, 59, 30, 0, time.UTC)
	return map[string]struct {
		provider   webhook.Provider
		collection string
		eventType  webhook.EventType
		state      string
		want       webhook.Facts
	}{
		"a payment of Stripe's that succeeded, though the event said created": {
			"stripe", "payment_intents", "payment_intent.created",
			`{"id":"pi_3MtwBw","object":"payment_intent","amount":2000,"amount_received":1500,"currency":"usd","status":"succeeded","last_payment_error":null}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_3MtwBw", State: "succeeded", Amount: 1500, Currency: "USD", Credit: 1},
		},
		"a payment of Stripe's that failed, though the event said succeeded": {
			"stripe", "payment_intents", "payment_intent.succeeded",
			`{"id":"pi_2","object":"payment_intent","amount":2000,"amount_received":0,"currency":"usd","status":"requires_payment_method","last_payment_error":{"code":"card_declined"}}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_2", State: "failed", Amount: 2000, Currency: "USD"},
		},
		"a payment of Stripe's that nobody has tried": {
			"stripe", "payment_intents", "payment_intent.payment_failed",
			`{"id":"pi_4","object":"payment_intent","amount":2000,"amount_received":0,"currency":"usd","status":"requires_confirmation"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_4", State: "created", Amount: 2000, Currency: "USD"},
		},
		"the payment of a charge of Stripe's": {
			"stripe", "payment_intents", "charge.refunded",
			`{"id":"pi_5","object":"payment_intent","amount":2000,"amount_received":2000,"currency":"usd","status":"succeeded"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_5", State: "succeeded", Amount: 2000, Currency: "USD", Credit: 1},
		},
		"a refund of Stripe's": {
			"stripe", "refunds", "refund.failed",
			`{"id":"re_1Nis","object":"refund","amount":1000,"charge":"ch_1","currency":"usd","payment_intent":"pi_1Gsz","status":"succeeded"}`,
			webhook.Facts{ObjectType: webhook.Refund, ObjectID: "re_1Nis", State: "succeeded", Amount: 1000, Currency: "USD", Credit: -1, ParentID: "pi_1Gsz"},
		},
		"a dispute of Stripe's": {
			"stripe", "disputes", "charge.dispute.created",
			`{"id":"du_1Mt","object":"dispute","amount":1000,"charge":"ch_1","currency":"usd","payment_intent":null,"status":"lost"}`,
			webhook.Facts{ObjectType: webhook.Dispute, ObjectID: "du_1Mt", State: "lost", Amount: 1000, Currency: "USD", Credit: -1, ParentID: "ch_1"},
		},
		"a subscription of Stripe's that goes on, though the event said deleted": {
			"stripe", "subscriptions", "customer.subscription.deleted",
			`{"id":"sub_1Mow","object":"subscription","customer":"cus_Na6","status":"active","items":{"object":"list","data":[{"id":"si_1","current_period_start":1679609767}]}}`,
			webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "sub_1Mow", State: "active", Version: 1679609767, HasVersion: true, ParentID: "cus_Na6"},
		},
		"an account of Stripe's": {
			"stripe", "accounts", "account.updated", `{"id":"acct_1Nv0","object":"account","charges_enabled":false}`,
			webhook.Facts{ObjectType: webhook.Account, ObjectID: "acct_1Nv0", State: "updated"},
		},
		"a payment of Razorpay's that was captured and refunded": {
			"razorpay", "payments", "payment.failed",
			`{"id":"pay_DG4ZdRK8ZnXC3k","entity":"payment","amount":1000,"currency":"INR","status":"refunded","order_id":"order_1","created_at":1772366390}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pay_DG4ZdRK8ZnXC3k", State: "succeeded", Amount: 1000, Currency: "INR", Credit: 1, ParentID: "order_1"},
		},
		"an order of Razorpay's": {
			"razorpay", "orders", "order.paid",
			`{"id":"order_DaaS6LOUAASb7Y","entity":"order","amount":2200,"amount_paid":0,"currency":"INR","status":"attempted","created_at":1772366390}`,
			webhook.Facts{ObjectType: webhook.Order, ObjectID: "order_DaaS6LOUAASb7Y", State: "open", Amount: 2200, Currency: "INR"},
		},
		"a refund of Razorpay's": {
			"razorpay", "refunds", "refund.created",
			`{"id":"rfnd_EqWThTE7dd7utf","entity":"refund","amount":6000,"currency":"INR","payment_id":"pay_EpkFDYRirena0f","status":"processed","created_at":1772366390}`,
			webhook.Facts{ObjectType: webhook.Refund, ObjectID: "rfnd_EqWThTE7dd7utf", State: "succeeded", Amount: 6000, Currency: "INR", Credit: -1, ParentID: "pay_EpkFDYRirena0f"},
		},
		"a subscription of Razorpay's": {
			"razorpay", "subscriptions", "subscription.activated",
			`{"id":"sub_00000000000001","entity":"subscription","customer_id":"cust_1","status":"halted","paid_count":4}`,
			webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "sub_00000000000001", State: "unpaid", Version: 4, HasVersion: true, ParentID: "cust_1"},
		},
		"a dispute of Razorpay's": {
			"razorpay", "disputes", "payment.dispute.created",
			`{"id":"disp_AHfqOvkldwsbqt","entity":"dispute","payment_id":"pay_EsyWjHrfzb59eR","amount":10000,"currency":"INR","amount_deducted":9000,"status":"lost"}`,
			webhook.Facts{ObjectType: webhook.Dispute, ObjectID: "disp_AHfqOvkldwsbqt", State: "lost", Amount: 9000, Currency: "INR", Credit: -1, ParentID: "pay_EsyWjHrfzb59eR"},
		},
		"a payment of Paddle's that was completed, though the event said that a try failed": {
			"paddle", "transactions", "transaction.payment_failed",
			`{"id":"txn_01hv8wptq8987qeep44cyrewp9","status":"completed","currency_code":"JPY","subscription_id":"sub_1","details":{"totals":{"total":"1100","grand_total":"1000","currency_code":"JPY"}},"payments":[{"status":"captured"},{"status":"error"}],"updated_at":"2026-03-01T11:59:30.000000Z"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "txn_01hv8wptq8987qeep44cyrewp9", State: "succeeded", Amount: 1000, Currency: "JPY", Credit: 1, ParentID: "sub_1", UpdatedAt: updated},
		},
		"a payment of Paddle's of which the last try failed": {
			"paddle", "transactions", "transaction.ready",
			`{"id":"txn_2","status":"ready","currency_code":"USD","subscription_id":null,"details":{"totals":{"grand_total":"1000","currency_code":"USD"}},"payments":[{"status":"error"}],"updated_at":"2026-03-01T11:59:30Z"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "txn_2", State: "failed", Amount: 1000, Currency: "USD", UpdatedAt: updated},
		},
		"a payment of Paddle's that is tried again": {
			"paddle", "transactions", "transaction.updated",
			`{"id":"txn_3","status":"ready","currency_code":"USD","subscription_id":null,"details":{"totals":{"grand_total":"1000","currency_code":"USD"}},"payments":[{"status":"action_required"},{"status":"error"}],"updated_at":"2026-03-01T11:59:30Z"}`,
			webhook.Facts{ObjectType: webhook.Payment, ObjectID: "txn_3", State: "requires_action", Amount: 1000, Currency: "USD", UpdatedAt: updated},
		},
		"a subscription of Paddle's that goes on, though the event said paused": {
			"paddle", "subscriptions", "subscription.paused",
			`{"id":"sub_01hv8x29kz0t586xy6zn1a62ny","status":"active","customer_id":"ctm_1","current_billing_period":{"starts_at":"2026-03-01T11:00:00.5Z","ends_at":"2026-04-01T11:00:00Z"},"paused_at":null,"updated_at":"2026-03-01T11:59:30Z"}`,
			webhook.Facts{ObjectType: webhook.Subscription, ObjectID: "sub_01hv8x29kz0t586xy6zn1a62ny", State: "active", Version: 1772362800, HasVersion: true, ParentID: "ctm_1", UpdatedAt: updated},
		},
		"an order of Shopify's": {
			"shopify", "orders", "orders/create",
			`{"id":820982911946154508,"order_number":1001,"financial_status":"paid","fulfillment_status":null,"cancelled_at":null,"total_price":"42.00","currency":"USD","line_items":[],"updated_at":"2026-03-01T06:59:30-05:00"}`,
			webhook.Facts{ObjectType: webhook.Order, ObjectID: "820982911946154508", State: "paid", Amount: 4200, Currency: "USD", UpdatedAt: updated},
		},
		"a repository of GitHub's": {
			"github", "repositories", "repository.publicized",
			`{"id":1296269,"full_name":"octo/renamed","private":true,"archived":false,"updated_at":"2026-03-01T11:59:30Z"}`,
			webhook.Facts{ObjectType: webhook.Account, ObjectID: "repository:1296269", State: "repository.private", UpdatedAt: updated},
		},
	}
}

// Proves O3 against a stand-in that knows the senders' documentation and not our
// adapters: each object is read, and says what it is now.
func TestEveryObjectIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tt := range objects() {
		w.Put(tt.provider, tt.collection, []byte(tt.state))
		got := w.read(t.Context(), t, tt.provider, tt.eventType, tt.want.ObjectID)
		same(t, name, read{Facts: tt.want, Found: true}, got)
	}
}

// Proves O3: an object that is not there is no error, in each sender's way to say so.
func TestAnObjectThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tt := range objects() {
		same(t, name, read{}, w.read(t.Context(), t, tt.provider, tt.eventType, tt.want.ObjectID))
	}
	w.Next("stripe", fakeprovider.Fault{Status: http.StatusGone})
	same(t, "gone for good", read{}, w.read(t.Context(), t, "stripe", "refund.failed", "re_1"))
}

// An old answer is recognised by its time, where the sender gives one.
func TestAnOldAnswerShowsItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	order := func(status, updated string) []byte {
		return fmt.Appendf(nil, `{"id":1,"financial_status":%q,"total_price":"1.00","currency":"USD","updated_at":%q}`, status, updated)
	}
	w.Put("shopify", "orders", order("pending", "2026-03-01T11:00:00Z"))
	w.Put("shopify", "orders", order("paid", "2026-03-01T11:00:05Z"))
	w.Stale("shopify", 2)
	want := func(state string, second int) read {
		return read{Found: true, Facts: webhook.Facts{
			ObjectType: webhook.Order, ObjectID: "1", State: state, Amount: 100, Currency: "USD",
			UpdatedAt: time.Date(2026, time.March, 1, 11, 0, second, 0, time.UTC),
		}}
	}
	for i, w2 := range []read{want("open", 0), want("open", 0), want("paid", 5), want("paid", 5)} {
		same(t, fmt.Sprintf("read %d", i+1), w2, w.read(t.Context(), t, "shopify", "orders/paid", "1"))
	}
}

// Whose fault an answer is, and how long its sender wants to be left alone.
func TestWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for pair := range slices.Chunk(pairs, 2) {
			h.Set(pair[0], pair[1])
		}
		return h
	}
	for _, tt := range []struct {
		name     string
		provider webhook.Provider
		fault    fakeprovider.Fault
		want     read
	}{
		{"too much, with seconds", "stripe", fakeprovider.Fault{Status: 429, Header: header("Retry-After", "7")}, read{Verdict: "theirs api_throttled", After: 7 * time.Second}},
		{"too much, with Shopify's seconds", "shopify", fakeprovider.Fault{Status: 429, Header: header("Retry-After", "2.0")}, read{Verdict: "theirs api_throttled", After: 2 * time.Second}},
		{"too much, with a date", "razorpay", fakeprovider.Fault{Status: 429, Header: header("Retry-After", "Sun, 01 Mar 2026 12:01:30 GMT")}, read{Verdict: "theirs api_throttled", After: 90 * time.Second}},
		{"too much, with a date gone by", "razorpay", fakeprovider.Fault{Status: 429, Header: header("Retry-After", "Sun, 01 Mar 2026 11:01:30 GMT")}, read{Verdict: "theirs api_throttled"}},
		{"too much, for ever", "stripe", fakeprovider.Fault{Status: 429, Header: header("Retry-After", "99999999")}, read{Verdict: "theirs api_throttled", After: time.Hour}},
		{"too much, below nothing", "stripe", fakeprovider.Fault{Status: 429, Header: header("Retry-After", "-5")}, read{Verdict: "theirs api_throttled"}},
		{"too much, in no number", "stripe", fakeprovider.Fault{Status: 429, Header: header("Retry-After", "NaN")}, read{Verdict: "theirs api_throttled"}},
		{"too much, without a word", "stripe", fakeprovider.Fault{Status: 429}, read{Verdict: "theirs api_throttled"}},
		{"GitHub's allowance is spent", "github", fakeprovider.Fault{Status: 403, Header: header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1772366460")}, read{Verdict: "theirs api_throttled", After: time.Minute}},
		{"GitHub's second limit", "github", fakeprovider.Fault{Status: 403, Header: header("Retry-After", "30", "X-RateLimit-Remaining", "4000")}, read{Verdict: "theirs api_throttled", After: 30 * time.Second}},
		{"GitHub's allowance is not spent", "github", fakeprovider.Fault{Status: 403, Header: header("X-RateLimit-Remaining", "4000", "X-RateLimit-Reset", "1772366460")}, read{Verdict: "ours api_credential_refused"}},
		{"another sender has no such header", "stripe", fakeprovider.Fault{Status: 403, Header: header("X-RateLimit-Remaining", "0")}, read{Verdict: "ours api_credential_refused"}},
		{"not this credential", "stripe", fakeprovider.Fault{Status: 401}, read{Verdict: "ours api_credential_refused"}},
		{"out of order", "stripe", fakeprovider.Fault{Status: 500}, read{Verdict: "theirs api_unavailable"}},
		{"too much, of Paddle", "paddle", fakeprovider.Fault{Status: 429, Header: header("Retry-After", "30")}, read{Verdict: "theirs api_throttled", After: 30 * time.Second}},
		{"not Paddle's key, or not of this host", "paddle", fakeprovider.Fault{Status: 403, Body: `{"error":{"type":"request_error","code":"forbidden"}}`}, read{Verdict: "ours api_credential_refused"}},
		{"out of order for a while", "stripe", fakeprovider.Fault{Status: 503, Header: header("Retry-After", "120")}, read{Verdict: "theirs api_unavailable", After: 2 * time.Minute}},
		{"elsewhere", "github", fakeprovider.Fault{Status: 301, Header: header("Location", "http://169.254.169.254/")}, read{Verdict: "theirs api_redirected"}},
		{"not like this", "stripe", fakeprovider.Fault{Status: 400, Body: `{"error":{"message":"no"}}`}, read{Verdict: "theirs api_refused"}},
		{"nothing", "stripe", fakeprovider.Fault{Status: 204}, read{Verdict: "theirs answer_body_malformed"}},
		{"a page for people", "stripe", fakeprovider.Fault{Status: 200, Body: "<html>maintenance</html>"}, read{Verdict: "theirs answer_body_malformed"}},
		{"another object", "stripe", fakeprovider.Fault{Status: 200, Body: `{"id":"re_2","status":"pending","amount":1,"currency":"usd"}`}, read{Verdict: "theirs answer_other_object"}},
		{"a word that nobody knows", "stripe", fakeprovider.Fault{Status: 200, Body: `{"id":"re_1","status":"dreaming","amount":1,"currency":"usd"}`}, read{Verdict: "theirs answer_state_unknown"}},
		{"no answer", "stripe", fakeprovider.Fault{Drop: true}, read{Verdict: "theirs egress_reset"}},
	} {
		types := map[webhook.Provider]struct {
			eventType webhook.EventType
			id        string
		}{"stripe": {"refund.failed", "re_1"}, "github": {"repository.edited", "repository:1"}, "shopify": {"orders/paid", "1"}, "razorpay": {"order.paid", "order_1"}, "paddle": {"transaction.paid", "txn_1"}}
		w.Next(tt.provider, tt.fault)
		if tt.fault.Drop {
			w.Next(tt.provider, tt.fault, tt.fault) // the connection is tried once more
		}
		same(t, tt.name, tt.want, w.read(t.Context(), t, tt.provider, types[tt.provider].eventType, types[tt.provider].id))
	}
}

// A sender that says nothing costs one deadline, and is the one at fault; a caller
// that goes is not.
func TestASenderThatSaysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client.ObjectTimeout, w.client.PageTimeout = 50*time.Millisecond, 50*time.Millisecond
	never := make(chan struct{})
	w.Next("stripe", fakeprovider.Fault{Hold: never}, fakeprovider.Fault{Hold: never})
	same(t, "an object", read{Verdict: "theirs api_timeout"}, w.read(t.Context(), t, "stripe", "refund.failed", "re_1"))
	_, err := w.client.Page(t.Context(), endpoint("stripe"), adapter(t, "stripe"), now(), "")
	same(t, "a page", "theirs api_timeout", verdict(t, err))

	ctx, leave := context.WithCancel(t.Context())
	leave()
	same(t, "a caller that went", read{Verdict: "ours egress_stopped"}, w.read(ctx, t, "stripe", "refund.failed", "re_1"))
}

// Proves M4 and X4: the credential is the one that the endpoint names. Without it,
// or with what is none, nothing is asked; and it is in no address.
func TestTheCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Credential("stripe", "sk_other")
	same(t, "refused", read{Verdict: "ours api_credential_refused"}, w.read(t.Context(), t, "stripe", "refund.failed", "re_1"))
	asked := len(w.Asked())

	a := adapter(t, "stripe")
	k, _ := a.Kind("refund.failed")
	for name, tt := range map[string]struct {
		change func(*world, *webhook.Endpoint)
		want   string
	}{
		"no API":             {func(_ *world, e *webhook.Endpoint) { e.API = nil }, "ours api_unset"},
		"no name":            {func(_ *world, e *webhook.Endpoint) { e.API.Secret = "" }, "ours api_unset"},
		"no such secret":     {func(_ *world, e *webhook.Endpoint) { e.API.Secret = "gone" }, "ours secret_no_version"},
		"the webhook's own":  {func(w *world, _ *webhook.Endpoint) { w.client.Secrets = texts{"stripe": "whsec_" + hidden} }, "ours api_credential_malformed"},
		"with its line feed": {func(w *world, _ *webhook.Endpoint) { w.client.Secrets = texts{"stripe": "sk_" + hidden + "\n"} }, "ours api_credential_malformed"},
	} {
		copied := *w
		e := endpoint("stripe")
		tt.change(&copied, &e)
		_, _, err := copied.client.Current(t.Context(), e, a, k, "re_1")
		same(t, name, tt.want, verdict(t, err))
	}
	if got := w.Asked(); len(got) != asked {
		t.Errorf("something was asked: %+v", got[asked:])
	}
	for _, call := range w.Asked() {
		if strings.Contains(call.Path+call.Query, hidden) {
			t.Errorf("the credential is in the address: %+v", call)
		}
	}
}

// An id that could lead elsewhere is refused before anything is asked.
func TestAnIDThatLeadsElsewhereIsNotAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for p, eventType := range map[webhook.Provider]webhook.EventType{"stripe": "refund.failed", "razorpay": "order.paid", "shopify": "orders/paid", "github": "repository.edited", "paddle": "transaction.paid"} {
		for _, id := range []string{"", "txn_1/adjustments", "txn_1?include=customer", "sub_1", "re_1/../../accounts", "order_1?x", "1/../2", "repository:1/..", "repository:", "1.json", "%2e%2e", "re_1\nX: y"} {
			same(t, string(p)+" "+id, read{Verdict: "permanent object_id_unfetchable"}, w.read(t.Context(), t, p, eventType, id))
		}
	}
	same(t, "asked", []fakeprovider.Asked{}, append([]fakeprovider.Asked{}, w.Asked()...))
}
