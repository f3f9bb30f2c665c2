package ingress_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

func from(choice webhook.AllowFrom) func(webhook.Endpoint) webhook.Endpoint {
	return func(e webhook.Endpoint) webhook.Endpoint {
		e.AllowFrom = choice
		return e
	}
}

// at is an event as API Gateway makes it of a request from an address, whatever
// a header says of others.
func at(event map[string]any, source string) map[string]any {
	event["requestContext"].(map[string]any)["http"].(map[string]any)["sourceIp"] = source
	return event
}

// Proves V1, V9, M1: where an endpoint's operator chose addresses, a request from
// elsewhere is refused as an unsigned one is, before a key is fetched and without
// a write, and counted apart; one from them is accepted, also by another spelling.
func TestOnlyChosenAddressesAreListenedTo(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := sim.New(t, sim.Options{Log: &log})
	e, neighbour := w.AddEndpoint("stripe", "demo", stripeSecret), w.AddEndpoint("stripe", "other", "whsec_of_the_neighbour_next_door")
	w.Configure(e, from(webhook.AllowFrom{Provider: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}}))

	refused := said{401, "unauthorized", ""}
	for n, source := range []string{"192.0.2.10", "2001:db9::1", "", "no address", "3.18.12.63, 192.0.2.10", "fe80::1%eth0"} {
		began := len(w.Ingress.Switch.Calls())
		event := numbered(w, e, n)
		event["headers"].(signature.Header)["x-forwarded-for"] = "3.18.12.63"
		if diff := cmp.Diff(refused, ask(t, w, at(event, source))); diff != "" {
			t.Errorf("from %q (-want +got):\n%s", source, diff)
		}
		var calls []string
		for _, c := range w.Ingress.Switch.Calls()[began:] {
			calls = append(calls, c.Operation)
		}
		want := []string(nil)
		if n == 0 {
			want = []string{"DynamoDB.GetItem"} // the endpoint's row, for the next 30 seconds
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("calls for one from %q (-want +got):\n%s", source, diff)
		}
	}
	for n, source := range []string{"3.18.12.63", "::ffff:3.18.12.63", "2001:db8::17"} {
		if diff := cmp.Diff(accepted(), ask(t, w, at(numbered(w, e, 10+n), source))); diff != "" {
			t.Errorf("from %q (-want +got):\n%s", source, diff)
		}
	}
	if diff := cmp.Diff(accepted(), ask(t, w, at(numbered(w, neighbour, 0), "192.0.2.10"))); diff != "" {
		t.Errorf("the neighbour, who chose nothing (-want +got):\n%s", diff)
	}
	if n := strings.Count(log.String(), `"refused_source_not_allowed":1`); n != 6 {
		t.Errorf("%d are counted as from elsewhere, want 6:\n%s", n, log.String())
	}
	if !strings.Contains(log.String(), `"decision":"refused_unauthorized","cause":"source_not_allowed","endpoint_id":"demo","source":"192.0.2.10"`) {
		t.Errorf("no line says where a refused request came from:\n%s", log.String())
	}
	w.Rest()
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
}

// Proves V1, V11: a row may name a list that this program's adapter does not
// have; then it names nobody. A handshake is no exception.
func TestAListThatIsNotThereAdmitsNobody(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("slack", "team", "0123456789abcdef0123456789abcdef")
	body := []byte(`{"token":"t","challenge":"abc","type":"url_verification"}`)
	shake := func() int {
		headers := w.Signed(&sim.Delivery{Endpoint: e, Sample: provider.Sample{Body: body}})
		return ask(t, w, at(sim.Event(e, headers, body), "192.0.2.10")).Status
	}
	w.Configure(e, from(webhook.AllowFrom{Provider: true}))
	if got := shake(); got != 401 {
		t.Errorf("a handshake from nowhere in particular is answered %d", got)
	}
}
