package provider

import (
	"net/netip"
	"strings"
	"time"

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

func (a *Adapter) validateAddresses(p *problems) {
	if a.Addresses == nil {
		return
	}
	p.refuse(len(a.Addresses.Prefixes) == 0, "a list of addresses without any")
	p.refuse(a.Addresses.AsOf.IsZero(), "a list of addresses without its date")
	p.refuse(len(a.Addresses.Sources) == 0, "a list of addresses without its sources")
	seen := map[netip.Prefix]bool{}
	for _, prefix := range a.Addresses.Prefixes {
		p.refuse(!webhook.ValidPrefix(prefix), "%s is no prefix in its shortest form", prefix)
		p.refuse(seen[prefix], "%s is listed twice", prefix)
		seen[prefix] = true
	}
}
