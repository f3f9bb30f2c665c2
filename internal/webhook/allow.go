package webhook

import (
	"net/netip"
	"slices"
)

// AllowFrom is a choice of the addresses that an endpoint's requests may come
// from. The zero value allows any.
type AllowFrom struct {
	// Provider allows the addresses that the provider's adapter lists.
	Provider bool `json:",omitempty"`
	// Prefixes are allowed besides, in their shortest form; see [ValidPrefix].
	Prefixes []netip.Prefix `json:",omitempty"`
}

// AllowPrefixesMax bounds an endpoint's own prefixes, and so what its row and one
// look through them cost.
const AllowPrefixesMax = 64

// IsZero reports whether any address is allowed.
func (a AllowFrom) IsZero() bool { return !a.Provider && len(a.Prefixes) == 0 }

// Equal reports whether two choices are the same, in the same order.
func (a AllowFrom) Equal(b AllowFrom) bool {
	return a.Provider == b.Provider && slices.Equal(a.Prefixes, b.Prefixes)
}

// Admits reports whether an address, as text, may send. What is no address is
// refused wherever there is a choice. An IPv4 address that is written as an IPv6
// one is the IPv4 one. Published is the provider's list; where the choice names
// it and there is none, nothing is admitted by it.
func (a AllowFrom) Admits(source string, published []netip.Prefix) bool {
	if a.IsZero() {
		return true
	}
	address, err := netip.ParseAddr(source)
	if err != nil || address.Zone() != "" {
		return false
	}
	address = address.Unmap()
	within := func(p netip.Prefix) bool { return p.Contains(address) }
	return slices.ContainsFunc(a.Prefixes, within) || a.Provider && slices.ContainsFunc(published, within)
}

// ValidPrefix reports whether a prefix says what it seems to: valid, without bits
// behind its length, not everybody, and not IPv4 in IPv6's clothes, which would
// never match.
func ValidPrefix(p netip.Prefix) bool {
	return p.IsValid() && p.Masked() == p && p.Bits() > 0 && !p.Addr().Is4In6()
}
