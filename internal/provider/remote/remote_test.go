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
