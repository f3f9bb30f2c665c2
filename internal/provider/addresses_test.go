package provider_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
)

// Proves P1: a list of addresses without date, source or sense is no declaration.
func TestAListOfAddressesIsDated(t *testing.T) {
	t.Parallel()
	whole := func() *provider.Addresses {
		return &provider.Addresses{Prefixes: provider.Prefixes("203.0.113.7", "2001:db8::/32"), AsOf: time.Unix(1, 0), Sources: []string{"https://a.example"}}
	}
	for want, spoil := range map[string]func(*provider.Addresses){
		"a list of addresses without any":                          func(a *provider.Addresses) { a.Prefixes = nil },
		"a list of addresses without its date":                     func(a *provider.Addresses) { a.AsOf = time.Time{} },
		"a published list of addresses without address or member":  func(a *provider.Addresses) { a.Published = &provider.Published{URL: "http://a.example", Member: "x"} },
		"a list of addresses without its sources":                  func(a *provider.Addresses) { a.Sources = nil },
		"203.0.113.7/32 is listed twice":                           func(a *provider.Addresses) { a.Prefixes = append(a.Prefixes, a.Prefixes[0]) },
		"203.0.113.7/24 is no prefix in its shortest form":         func(a *provider.Addresses) { a.Prefixes = provider.Prefixes("203.0.113.7/24") },
		"0.0.0.0/0 is no prefix in its shortest form":              func(a *provider.Addresses) { a.Prefixes = provider.Prefixes("0.0.0.0/0") },
		"::ffff:203.0.113.7/128 is no prefix in its shortest form": func(a *provider.Addresses) { a.Prefixes = provider.Prefixes("::ffff:203.0.113.7") },
		"invalid Prefix is no prefix in its shortest form":         func(a *provider.Addresses) { a.Prefixes = []netip.Prefix{{}} },
	} {
		a := asked()
		a.Addresses = whole()
		if err := a.Validate(); err != nil {
			t.Fatalf("a whole list: %v", err)
		}
		spoil(a.Addresses)
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	var none *provider.Addresses
	if got := none.List(); got != nil {
		t.Errorf("a sender without a list has %v", got)
	}
	want := []string{"203.0.113.7/32", "2001:db8::/32"}
	var got []string
	for _, p := range whole().List() {
		got = append(got, p.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A published list is compared as it is; one that cannot be a list is none.
func TestAPublishedListIsCompared(t *testing.T) {
	t.Parallel()
	list := provider.Addresses{
		Prefixes:  provider.Prefixes("203.0.113.7", "198.51.100.0/24", "2001:db8::/32"),
		Published: &provider.Published{URL: "https://a.example/ips.json", Member: "HOOKS"},
	}
	texts := func(prefixes []netip.Prefix) string {
		var all []string
		for _, p := range prefixes {
			all = append(all, p.String())
		}
		return strings.Join(all, " ")
	}
	for answer, want := range map[string]string{
		`{"HOOKS":["203.0.113.7","198.51.100.0/24","2001:db8::/32"]}`:                           "missing , gone ",
		`{"x":[1],"HOOKS":["2001:db8:0::/32","203.0.113.7/32","198.51.100.0/24"]}`:              "missing , gone ",
		`{"HOOKS":["203.0.113.9","203.0.113.8","203.0.113.8","2001:db8::1","198.51.100.0/24"]}`: "missing 203.0.113.8/32 203.0.113.9/32 2001:db8::1/128, gone 203.0.113.7/32 2001:db8::/32",
		`{"HOOKS":[]}`:                      "theirs answer_body_unexpected",
		`{"HOOKS":["0.0.0.0/0"]}`:           "theirs answer_body_unexpected",
		`{"HOOKS":["203.0.113.7/24"]}`:      "theirs answer_body_unexpected",
		`{"HOOKS":["fe80::1%eth0"]}`:        "theirs answer_body_unexpected",
		`{"HOOKS":["a.example"]}`:           "theirs answer_body_unexpected",
		`{"HOOKS":[7]}`:                     "theirs answer_body_unexpected",
		`{"HOOKS":{"a":"203.0.113.7"}}`:     "theirs answer_body_unexpected",
		`{"hooks":["203.0.113.7"]}`:         "theirs answer_body_unexpected",
		`["203.0.113.7"]`:                   "theirs answer_body_malformed",
		`{"HOOKS":["203.0.113.7"],"HOOKS":`: "theirs answer_body_ambiguous",
		``:                                  "theirs answer_body_malformed",
	} {
		missing, gone, err := list.Compare([]byte(answer))
		got := "missing " + texts(missing) + ", gone " + texts(gone)
		if err != nil {
			got = problem(err)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", answer, got, want)
		}
	}
}
