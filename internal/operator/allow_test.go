package operator_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

func TestAChoiceOfAddressesIsRead(t *testing.T) {
	t.Parallel()
	prefix := netip.MustParsePrefix
	for _, tt := range []struct {
		texts   []string
		want    webhook.AllowFrom
		refused string
	}{
		{[]string{"any"}, webhook.AllowFrom{}, ""},
		{[]string{"provider"}, webhook.AllowFrom{Provider: true}, ""},
		{
			[]string{"provider", " 203.0.113.0/24", "198.51.100.7", "2001:db8::/32", "2001:db8::1"},
			webhook.AllowFrom{Provider: true, Prefixes: []netip.Prefix{prefix("203.0.113.0/24"), prefix("198.51.100.7/32"), prefix("2001:db8::/32"), prefix("2001:db8::1/128")}}, "",
		},
		{[]string{"any", "provider"}, webhook.AllowFrom{}, `--allow-from "any": anywhere is everywhere: give it alone`},
		{[]string{"stripe.com"}, webhook.AllowFrom{}, `--allow-from "stripe.com": want any, provider, or an address or prefix like 203.0.113.0/24 or 2001:db8::/32`},
		{[]string{""}, webhook.AllowFrom{}, `--allow-from "": want any, provider, or an address or prefix like 203.0.113.0/24 or 2001:db8::/32`},
		{[]string{"203.0.113.1/24"}, webhook.AllowFrom{}, `--allow-from "203.0.113.1/24": it has bits behind its length: do you mean 203.0.113.0/24?`},
		{[]string{"0.0.0.0/0"}, webhook.AllowFrom{}, `--allow-from "0.0.0.0/0": that is everybody: write any`},
		{[]string{"::/0"}, webhook.AllowFrom{}, `--allow-from "::/0": that is everybody: write any`},
		{[]string{"::ffff:203.0.113.1"}, webhook.AllowFrom{}, `--allow-from "::ffff:203.0.113.1": write the IPv4 address as itself`},
		{[]string{"fe80::1%eth0"}, webhook.AllowFrom{}, `--allow-from "fe80::1%eth0": want any, provider, or an address or prefix like 203.0.113.0/24 or 2001:db8::/32`},
	} {
		got, err := operator.ParseAllowFrom(tt.texts)
		if tt.refused == "" {
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%q: error %v (-want +got):\n%s", tt.texts, err, diff)
			}
			continue
		}
		if r := wantRefusal(t, err, "usage"); r.Problem != tt.refused || !got.IsZero() {
			t.Errorf("%q: %+v, refused with %q, want %q", tt.texts, got, r.Problem, tt.refused)
		}
	}
}

// A provider that publishes nothing cannot be chosen; one that does is named with
// what is known of its list, and only where it was chosen.
func TestOnlyAProvidersOwnListCanBeChosen(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	o := w.Operator()
	slack := operator.NewEndpoint{Provider: "slack", ID: "team", Secret: operator.NewSecret("0123456789abcdef0123456789abcdef"), AllowFrom: &webhook.AllowFrom{Provider: true}}
	_, err := o.Create(t.Context(), slack)
	const want = "--allow-from provider: Slack publishes no addresses that it sends from: leave it out, or name addresses that you know"
	if r := wantRefusal(t, err, "usage"); r.Problem != want || len(w.Secrets) != 0 {
		t.Errorf("refused with %q, %d secrets", r.Problem, len(w.Secrets))
	}
	stripe := demo()
	stripe.AllowFrom = &webhook.AllowFrom{Provider: true}
	c, err := o.Create(t.Context(), stripe)
	if err != nil || !c.Endpoint.AllowFrom.Provider || w.Endpoints["demo"].AllowFrom.Provider != true {
		t.Fatalf("created %+v, error %v", c.Endpoint, err)
	}
	warned := func(next []operator.Step) bool {
		return slices.ContainsFunc(next, func(s operator.Step) bool {
			return s.Text == "whoever sends from elsewhere gets 401 from now on, Stripe too: look for the cause source_not_allowed in the log, and see that the list is right"
		})
	}
	list, used := o.Addresses(c.Endpoint)
	if !used || len(list.Prefixes) != 15 || !warned(c.Next) {
		t.Errorf("used %v, %d prefixes, next %v", used, len(list.Prefixes), c.Next)
	}
	again, err := o.Create(t.Context(), stripe)
	if err != nil || !again.Existed {
		t.Errorf("again: existed %v, error %v", again.Existed, err)
	}
	stripe.AllowFrom = nil
	_, err = o.Create(t.Context(), stripe)
	wantRefusal(t, err, "endpoint_exists")
	u, err := o.Update(t.Context(), "demo", operator.Settings{AllowFrom: &webhook.AllowFrom{}}, "")
	if err != nil || !u.Endpoint.AllowFrom.IsZero() || warned(u.Next) {
		t.Errorf("opened again: %+v, error %v, next %v", u.Endpoint.AllowFrom, err, u.Next)
	}
	if _, used := o.Addresses(u.Endpoint); used {
		t.Error("an endpoint that takes requests from anywhere is said to use a list")
	}
}
