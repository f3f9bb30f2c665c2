package ingress_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// canary makes the n-th canary of an endpoint.
func canary(t *testing.T, e *sim.Endpoint, n int) *sim.Delivery {
	t.Helper()
	_, sample, err := e.Adapter.Canary(fmt.Sprintf("%stest%d", webhook.CanaryPrefix, n))
	if err != nil {
		t.Fatal(err)
	}
	return &sim.Delivery{Endpoint: e, Sample: sample}
}

// Proves M3 in part: a canary is taken at every provider, also where the endpoint
// takes few types and its adapter would act on any, and ends ignored: no handler
// sees it, no business row is written but its mark.
func TestACanaryIsTakenEverywhereAndActedOnNowhere(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	secrets := map[webhook.Provider]string{
		"stripe": stripeSecret, "github": githubSecret, "shopify": githubSecret, "slack": githubSecret, "razorpay": githubSecret, "paddle": githubSecret,
		"standard-webhooks": "whsec_ZGFrZ2hhci1jYW5hcnktdGVzdHMtb25seQ==", "svix": "whsec_ZGFrZ2hhci1jYW5hcnktdGVzdHMtdHdv",
	}
	if len(secrets) != len(w.Providers.All()) {
		t.Fatalf("%d secrets for %d providers", len(secrets), len(w.Providers.All()))
	}
	for _, a := range w.Providers.All() {
		e := w.AddEndpoint(a.Name, webhook.EndpointID("at-"+a.Name), secrets[a.Name])
		w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
			if types := a.Types(); len(types) > 0 {
				e.Types = types[:1]
			}
			return e
		})
		if status := w.Send(canary(t, e, 1)); status != a.SuccessCode {
			t.Errorf("%s: status %d, want %d", a.Name, status, a.SuccessCode)
		}
	}
	w.Rest()
	type end struct {
		Type     webhook.EventType
		Status   webhook.Status
		Outcome  webhook.Outcome
		Unwanted bool
	}
	ends := map[webhook.Provider]end{}
	for _, row := range w.Inbox() {
		ends[row.Provider] = end{row.EventType, row.Status, row.Outcome, row.Unwanted}
	}
	want := map[webhook.Provider]end{}
	for name := range secrets {
		want[name] = end{webhook.CanaryType, webhook.Processed, webhook.Ignored, true}
	}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Errorf("rows by provider (-want +got):\n%s", diff)
	}
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
}

// Proves S2: a canary that the newest key signs does not begin the end of the one
// before it, with which the provider still signs.
func TestACanaryIsNoMatchOfItsKey(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("stripe", "demo", stripeSecret)
	newest := w.AddKey(e, "whsec_the_next_secret_of_the_receiver")
	signer := *e
	signer.Key = newest
	if status := w.Send(canary(t, &signer, 1)); status != 200 {
		t.Fatalf("status %d", status)
	}
	w.Rest()
	if key := w.Registered("demo").Keys[0]; string(key.Version) != newest.Version || !key.FirstMatch.IsZero() {
		t.Errorf("after a canary the newest key is %s, first matched at %s", key.Version, key.FirstMatch)
	}
	w.Advance(200 * time.Hour) // long after an overlap
	if status := w.Send(w.Event(e, payment("evt_1"))); status != 200 {
		t.Errorf("the provider's own event: status %d", status)
	}
	if status := w.Send(w.Event(&signer, payment("evt_2"))); status != 200 {
		t.Errorf("the provider's first event with the new key: status %d", status)
	}
	if key := w.Registered("demo").Keys[0]; !key.FirstMatch.Equal(w.Now()) {
		t.Errorf("first match at %s, want %s", key.FirstMatch, w.Now())
	}
}

// Proves V10: where type and id are not signed, a captured request does not become
// a canary, which would keep its event from being acted on.
func TestACapturedRequestIsNoCanary(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("shopify", "shop", githubSecret)
	captured := w.Event(e, provider.SampleOptions{Type: "orders/paid", EventID: "delivery-1"})
	bent := *captured
	bent.Sample.Header = canary(t, e, 1).Sample.Header
	if got := post(t, w, sim.Event(e, w.Signed(&bent), bent.Sample.Body)); got.Status != 422 {
		t.Errorf("answer %+v, want 422", got)
	}
	if status := w.Send(captured); status != 200 {
		t.Errorf("the event itself: status %d", status)
	}
	w.Rest()
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
}
