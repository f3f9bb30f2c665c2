package provider

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"dakghar/internal/webhook"
)

// Addresses is a sender's own list of the addresses that it sends from. Such a
// list changes, and this one does not change with it: an endpoint uses it only
// where its operator chose so, and is shown its date.
type Addresses struct {
	Prefixes []netip.Prefix
	// AsOf is the last day for which the list is known to have been this one.
	AsOf time.Time
	// Except says in a few words which of the sender's requests come from
	// elsewhere; empty where none is known to.
	Except string
	// Sources are where it was read, the sender's own page first.
	Sources []string
	// Published says where a program can read the list of today; nil where only
	// people can.
	Published *Published
}

// Published is a list of addresses on the web: a JSON object with one array of
// addresses and prefixes.
type Published struct {
	URL    string // https
	Member string
}

// List returns the prefixes; a sender that publishes none has none.
func (a *Addresses) List() []netip.Prefix {
	if a == nil {
		return nil
	}
	return a.Prefixes
}

// Prefixes reads addresses and prefixes, as a sender writes them. It panics on
// one that is neither: an adapter is written by us.
func Prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		if !strings.Contains(text, "/") {
			a := netip.MustParseAddr(text)
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Compare returns what the published list has and this one has not, and what this
// one has and the published list no longer has, both sorted. answer is what
// [Published.URL] was answered with. The error is a [*fault.Error] of kind theirs
// where it is not such a list.
func (a *Addresses) Compare(answer []byte) (missing, gone []netip.Prefix, err error) {
	published, err := a.Published.read(answer)
	if err != nil {
		return nil, nil, err
	}
	return without(published, a.Prefixes), without(a.Prefixes, published), nil
}

func (p *Published) read(answer []byte) ([]netip.Prefix, error) {
	t := newTree()
	t.addRaw(p.Member)
	v, err := scan(answer, t)
	if err != nil {
		return nil, badAnswer(permanent(err))
	}
	array := v.at(p.Member)
	if array.kind != '[' {
		return nil, badAnswer(permanent(bad(CodeUnexpected)))
	}
	items, err := elements(array.raw)
	if err != nil {
		return nil, badAnswer(permanent(err))
	}
	var all []netip.Prefix
	for _, item := range items {
		prefix, ok := readPrefix(item)
		if !ok {
			return nil, badAnswer(permanent(bad(CodeUnexpected)))
		}
		all = append(all, prefix)
	}
	if len(all) == 0 { // a list of nobody is a mistake, and would refuse everything
		return nil, badAnswer(permanent(bad(CodeUnexpected)))
	}
	return all, nil
}

// readPrefix reads an address or a prefix from a JSON string.
func readPrefix(item jsontext.Value) (netip.Prefix, bool) {
	raw, err := jsontext.AppendUnquote(nil, item)
	if err != nil {
		return netip.Prefix{}, false
	}
	if a, err := netip.ParseAddr(string(raw)); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(string(raw))
	return prefix, err == nil && webhook.ValidPrefix(prefix)
}

// without returns the sorted prefixes of the first list that the second has not.
func without(list, other []netip.Prefix) []netip.Prefix {
	var rest []netip.Prefix
	for _, p := range list {
		if !slices.Contains(other, p) {
			rest = append(rest, p)
		}
	}
	slices.SortFunc(rest, netip.Prefix.Compare)
	return slices.Compact(rest)
}

func (a *Adapter) validateAddresses(p *problems) {
	if a.Addresses == nil {
		return
	}
	p.refuse(len(a.Addresses.Prefixes) == 0, "a list of addresses without any")
	p.refuse(a.Addresses.AsOf.IsZero(), "a list of addresses without its date")
	p.refuse(len(a.Addresses.Sources) == 0, "a list of addresses without its sources")
	if from := a.Addresses.Published; from != nil {
		p.refuse(!strings.HasPrefix(from.URL, "https://") || from.Member == "", "a published list of addresses without address or member")
	}
	seen := map[netip.Prefix]bool{}
	for _, prefix := range a.Addresses.Prefixes {
		p.refuse(!webhook.ValidPrefix(prefix), "%s is no prefix in its shortest form", prefix)
		p.refuse(seen[prefix], "%s is listed twice", prefix)
		seen[prefix] = true
	}
}
