package operator

import (
	"fmt"
	"net/netip"
	"strings"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// The words of a choice of addresses, besides addresses and prefixes.
const (
	FromAnywhere = "any"
	FromProvider = "provider"
)

// ParseAllowFrom reads a choice of addresses: "any" alone, or "provider" and
// prefixes or single addresses in any number. An error says what to write.
func ParseAllowFrom(texts []string) (webhook.AllowFrom, error) {
	var a webhook.AllowFrom
	for _, text := range texts {
		switch text = strings.TrimSpace(text); {
		case text == FromAnywhere && len(texts) == 1:
		case text == FromProvider:
			a.Provider = true
		default:
			p, err := parsePrefix(text)
			if err != nil {
				return webhook.AllowFrom{}, misuse(fmt.Sprintf("--allow-from %q: %s", text, err))
			}
			a.Prefixes = append(a.Prefixes, p)
		}
	}
	return a, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if a, wrong := netip.ParseAddr(text); wrong == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case text == FromAnywhere:
		return p, fmt.Errorf("anywhere is everywhere: give it alone")
	case err != nil:
		return p, fmt.Errorf("want %s, %s, or an address or prefix like 203.0.113.0/24 or 2001:db8::/32", FromAnywhere, FromProvider)
	case p.Addr().Is4In6():
		return p, fmt.Errorf("write the IPv4 address as itself")
	case p.Bits() == 0:
		return p, fmt.Errorf("that is everybody: write %s", FromAnywhere)
	case p.Masked() != p:
		return p, fmt.Errorf("it has bits behind its length: do you mean %s?", p.Masked())
	}
	return p, nil
}

// allowProblems returns what is wrong with a choice of addresses.
func allowProblems(a *provider.Adapter, from webhook.AllowFrom) []string {
	var problems []string
	if from.Provider && a.Addresses == nil {
		problems = append(problems, fmt.Sprintf("--allow-from %s: %s publishes no addresses that it sends from: leave it out, or name addresses that you know", FromProvider, a.Title))
	}
	if n := len(from.Prefixes); n > webhook.AllowPrefixesMax {
		problems = append(problems, fmt.Sprintf("--allow-from takes at most %d addresses and prefixes, not %d", webhook.AllowPrefixesMax, n))
	}
	for i, p := range from.Prefixes {
		if !webhook.ValidPrefix(p) {
			problems = append(problems, fmt.Sprintf("--allow-from: %s is no prefix in its shortest form", p))
		}
		for _, other := range from.Prefixes[:i] {
			if other == p {
				problems = append(problems, fmt.Sprintf("--allow-from names %s twice", p))
			}
		}
	}
	return problems
}

// allowSteps warn of what a list of addresses loses, where there is one.
func allowSteps(a *provider.Adapter, from webhook.AllowFrom) []Step {
	if from.IsZero() {
		return nil
	}
	return []Step{say("whoever sends from elsewhere gets 401 from now on, " + a.Title + " too: look for the cause source_not_allowed in the log, and see that the list is right")}
}

// Addresses returns what an endpoint's provider publishes, and false where the
// endpoint does not use it.
func (o *Operator) Addresses(e webhook.Endpoint) (provider.Addresses, bool) {
	a, ok := o.Providers.Lookup(e.Provider)
	if !ok || !e.AllowFrom.Provider || a.Addresses == nil {
		return provider.Addresses{}, false
	}
	return *a.Addresses, true
}
