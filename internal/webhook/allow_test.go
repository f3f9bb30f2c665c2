package webhook_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Proves V1: a choice of addresses admits what it names, however it is written,
// and nothing that is no address.
func TestAddressesAreAdmittedByChoice(t *testing.T) {
	t.Parallel()
	anywhere := webhook.AllowFrom{}
	own := webhook.AllowFrom{Prefixes: prefixes("203.0.113.0/24", "2001:db8::/32", "198.51.100.7/32")}
	theirs := webhook.AllowFrom{Provider: true}
	both := webhook.AllowFrom{Provider: true, Prefixes: prefixes("203.0.113.0/24")}
	published := prefixes("192.0.2.1/32", "2606:50c0::/32")
	for _, tt := range []struct {
		name      string
		from      webhook.AllowFrom
		source    string
		published []netip.Prefix
		want      bool
	}{
		{"anywhere, an address", anywhere, "192.0.2.9", published, true},
		{"anywhere, none", anywhere, "", published, true},
		{"inside a prefix", own, "203.0.113.255", nil, true},
		{"beside it", own, "203.0.114.0", nil, false},
		{"the one address", own, "198.51.100.7", nil, true},
		{"its neighbour", own, "198.51.100.8", nil, false},
		{"IPv6 inside", own, "2001:db8:ffff::1", nil, true},
		{"IPv6 beside", own, "2001:db9::1", nil, false},
		{"IPv4 as IPv6", own, "::ffff:203.0.113.9", nil, true},
		{"IPv4 as IPv6, in hexadecimal", own, "::ffff:cb00:7109", nil, true},
		{"IPv4 as IPv6, beside", own, "::ffff:203.0.114.9", nil, false},
		{"IPv4 at the end of another IPv6 address", own, "64:ff9b::203.0.113.9", nil, false},
		{"the provider's list where it was not chosen", own, "192.0.2.1", published, false},
		{"the provider's list", theirs, "192.0.2.1", published, true},
		{"the provider's list, IPv6", theirs, "2606:50c0::153", published, true},
		{"beside the provider's list", theirs, "192.0.2.2", published, false},
		{"a provider without a list", theirs, "192.0.2.1", nil, false},
		{"both, the provider's", both, "192.0.2.1", published, true},
		{"both, one's own", both, "203.0.113.1", published, true},
		{"both, neither", both, "198.51.100.7", published, false},
		{"none", own, "", nil, false},
		{"a name", own, "hooks.example.com", nil, false},
		{"an address with a port", own, "203.0.113.9:443", nil, false},
		{"two addresses", own, "203.0.113.9, 203.0.113.10", nil, false},
		{"white space before it", own, " 203.0.113.9", nil, false},
		{"a prefix", own, "203.0.113.0/24", nil, false},
		{"leading zeros", own, "203.0.113.009", nil, false},
		{"an IPv6 address with a zone", own, "2001:db8::1%eth0", nil, false},
	} {
		if got := tt.from.Admits(tt.source, tt.published); got != tt.want {
			t.Errorf("%s: %q is admitted %v, want %v", tt.name, tt.source, got, tt.want)
		}
	}
}

// Every request passes here: it must cost no memory.
func TestAdmittingAnAddressAllocatesNothing(t *testing.T) {
	from := webhook.AllowFrom{Provider: true, Prefixes: prefixes("203.0.113.0/24")}
	published := prefixes("192.0.2.1/32", "2606:50c0::/32")
	if n := testing.AllocsPerRun(100, func() { from.Admits("2606:50c0::153", published) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// A registry row that knows nothing of addresses allows any, and keeps its form.
func TestAChoiceOfAddressesIsStoredAsText(t *testing.T) {
	t.Parallel()
	for want, from := range map[string]webhook.AllowFrom{
		`{}`:                {},
		`{"Provider":true}`: {Provider: true},
		`{"Provider":true,"Prefixes":["203.0.113.0/24","2001:db8::/32"]}`: {Provider: true, Prefixes: prefixes("203.0.113.0/24", "2001:db8::/32")},
	} {
		got, err := json.Marshal(from)
		var back webhook.AllowFrom
		if err != nil || string(got) != want || json.Unmarshal(got, &back) != nil || !back.Equal(from) {
			t.Errorf("%s, error %v, read as %+v; want %s", got, err, back, want)
		}
	}
	row, err := json.Marshal(webhook.Endpoint{})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(row, &members); err != nil {
		t.Fatal(err)
	}
	if _, there := members["AllowFrom"]; there {
		t.Errorf("a row without a choice has one: %s", row)
	}
}

func TestPrefixesSayWhatTheySeemTo(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for _, text := range []string{"203.0.113.0/24", "203.0.113.1/24", "0.0.0.0/0", "::/0", "::ffff:203.0.113.0/120", "2001:db8::/32", "2001:db8::1/32"} {
		got[text] = webhook.ValidPrefix(netip.MustParsePrefix(text))
	}
	got["none"] = webhook.ValidPrefix(netip.Prefix{})
	want := map[string]bool{
		"203.0.113.0/24": true, "2001:db8::/32": true, "203.0.113.1/24": false, "2001:db8::1/32": false,
		"0.0.0.0/0": false, "::/0": false, "::ffff:203.0.113.0/120": false, "none": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
