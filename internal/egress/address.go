package egress

import (
	"net/netip"
	"slices"
)

// inward are the ranges that are nobody's on the public internet, besides those
// that [netip.Addr] knows by a method.
//
// https://www.iana.org/assignments/iana-ipv4-special-registry,
// https://www.iana.org/assignments/iana-ipv6-special-registry
var inward = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared with a carrier's customers, and some clouds' metadata
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), // protocol assignments, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4 carries an IPv4 address
	netip.MustParsePrefix("3fff::/20"),
}

// global is the one range of IPv6 from which public addresses are given out. What
// is mapped, compatible, local or translated (64:ff9b::/96) lies outside.
var global = netip.MustParsePrefix("2000::/3")

// public reports whether an address may be connected to.
func public(a netip.Addr) bool {
	a = a.Unmap() // the system prints a mapped address as the one that it reaches
	switch {
	case !a.IsValid(), a.Zone() != "", a.IsUnspecified(), a.IsLoopback(), a.IsPrivate(), a.IsMulticast(),
		a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a.IsInterfaceLocalMulticast():
		return false
	case a.Is6() && !global.Contains(a):
		return false
	}
	return !slices.ContainsFunc(inward, func(p netip.Prefix) bool { return p.Contains(a) })
}
