package delivery

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// urlBytesMax bounds an address.
const urlBytesMax = 2048

// secretName matches names of query parameters under which secrets travel.
var secretName = regexp.MustCompile(`(?i)(^|[_\-.])(access|api|auth|bearer|client|private|secret|session|signing|shared)?[_\-.]?(key|token|secret|password|passwd|pwd|pass|sig|signature|credential|credentials|jwt|auth|authorization)([_\-.]|$)`)

// secretText matches texts that look like a credential, whatever their name.
var secretText = regexp.MustCompile(`^(sk|rk|pk|whsec|whsk|ghp|gho|xox[abp]|eyJ[A-Za-z0-9_-]+\.eyJ)[_\-A-Za-z0-9.]{8,}$`)

// CheckURL says what is wrong with a subscription's address, in words for the
// person who gives it. local also allows http and this machine's own names, for
// the local stack. Names are resolved, and where they lead is checked, again at
// each connection.
func CheckURL(text string, local bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || !u.IsAbs() || u.Host == "" || u.Opaque != "" || len(text) > urlBytesMax:
		return fmt.Errorf("want an https address of at most %d bytes", urlBytesMax)
	case u.Scheme != "https" && !(local && u.Scheme == "http"):
		return fmt.Errorf("want https, not %s: what is sent must not be read on the way", u.Scheme)
	case u.User != nil:
		return fmt.Errorf("an address carries no name and password: put a credential into a header (--credential-header)")
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		return fmt.Errorf("a fragment is never sent: leave it out")
	}
	if err := checkHost(u, local); err != nil {
		return err
	}
	return checkQuery(u)
}

// checkHost refuses numbers in place of names, in every spelling, and names that
// are only known inside.
func checkHost(u *url.URL, local bool) error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	loopback := host == "localhost" || host == "127.0.0.1" || host == "::1"
	if local && loopback {
		return nil
	}
	if _, err := netip.ParseAddr(host); err == nil || numeric(host) {
		return fmt.Errorf("want a name, not an address in numbers")
	}
	labels := strings.Split(host, ".")
	if len(labels) < 2 || loopback {
		return fmt.Errorf("want a name of the public internet")
	}
	for _, label := range labels {
		if !isLabel(label) {
			return fmt.Errorf("the host is no name: letters, digits and inner hyphens between dots")
		}
	}
	switch labels[len(labels)-1] {
	case "local", "localhost", "internal", "lan", "home", "corp", "intranet", "test", "example", "invalid", "onion", "arpa":
		return fmt.Errorf("names under .%s do not lead to the public internet", labels[len(labels)-1])
	}
	if port := u.Port(); port == "0" || strings.HasSuffix(u.Host, ":") {
		return fmt.Errorf("want a port, or none for 443")
	}
	return nil
}

// numeric reports the spellings in which a resolver may take a host for an IPv4
// address: decimal, octal and hexadecimal numbers, one to four of them.
func numeric(host string) bool {
	for label := range strings.SplitSeq(host, ".") {
		digits, hex := strings.CutPrefix(label, "0x")
		if digits == "" && !hex {
			return false
		}
		for i := range len(digits) {
			c := digits[i]
			if (c < '0' || c > '9') && !(hex && c >= 'a' && c <= 'f') {
				return false
			}
		}
	}
	return true
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// checkQuery refuses what looks like a secret: addresses end up in logs.
func checkQuery(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("the query cannot be read")
	}
	for name, texts := range query {
		if secretName.MatchString(name) {
			return fmt.Errorf("the parameter %q looks like a secret, and addresses are logged on the way: put it into a header (--credential-header)", name)
		}
		for _, text := range texts {
			if secretText.MatchString(text) {
				return fmt.Errorf("the text of the parameter %q looks like a secret, and addresses are logged on the way: put it into a header (--credential-header)", name)
			}
		}
	}
	return nil
}
