package delivery

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of an address and of the name in it, in bytes.
const (
	urlBytesMax  = 2048
	nameBytesMax = 253
)

// CheckURL says what is wrong with a subscription's address, in words for the
// person who gives it. None of them repeats the address. local also allows this
// machine's own names, over http too, for the local stack. Names are resolved, and
// where they lead is checked, again at each connection.
func CheckURL(text string, local bool) error {
	switch {
	case len(text) > urlBytesMax:
		return fmt.Errorf("want an address of at most %d bytes", urlBytesMax)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }):
		return errors.New("an address is plain ASCII: write a name in its xn-- form, and whatever else with % and two digits")
	case strings.Contains(text, "#"):
		return errors.New("a fragment is never sent: leave out # and what is behind it")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || !u.IsAbs() || u.Host == "" || u.Opaque != "":
		return errors.New("want an address like https://hooks.partner.com/dakghar")
	case u.User != nil:
		return errors.New("an address carries no name and password: put a credential into a header (--credential-header)")
	case u.Scheme != "https" && (!local || u.Scheme != "http" || !loopback(u.Hostname())):
		return fmt.Errorf("want https, not %s: what is sent must not be read on the way", u.Scheme)
	}
	if err := checkHost(u, local); err != nil {
		return err
	}
	if err := checkPath(u); err != nil {
		return err
	}
	return checkQuery(u)
}

// CheckHost says what is wrong with a host, and its port if it has one, to which
// a redirect may lead.
func CheckHost(host string, local bool) error {
	if strings.ContainsAny(host, "/?@") {
		return errors.New("want a host alone, like hooks.partner.com or hooks.partner.com:8443")
	}
	return CheckURL("https://"+host+"/", local)
}

// loopback reports this machine's own names, as the local stack takes them.
func loopback(host string) bool {
	return strings.EqualFold(host, "localhost") || host == "127.0.0.1" || host == "::1"
}

// inwardNames are the last labels of names that are known only inside.
func inwardNames() []string {
	return []string{
		"local", "localhost", "localdomain", "internal", "lan", "home", "corp", "intranet", "private", "test", "example", "invalid", "onion", "alt", "arpa",
	}
}

// checkHost refuses numbers in place of names, in every spelling, and names that
// are only known inside.
func checkHost(u *url.URL, local bool) error {
	if err := checkPort(u); err != nil {
		return err
	}
	host := strings.ToLower(u.Hostname())
	if local && loopback(host) {
		return nil
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	_, err := netip.ParseAddr(host)
	switch {
	case strings.HasSuffix(host, "."):
		return errors.New("leave out the dot at the end of the name")
	case err == nil || strings.Contains(host, ":") || numeric(last):
		// A name whose last label is a number is taken for an IPv4 address by many.
		return errors.New("want a name, not an address in numbers")
	case len(labels) < 2 || loopback(host):
		return errors.New("want a name of the public internet")
	case len(host) > nameBytesMax || !slices.Equal(slices.DeleteFunc(slices.Clone(labels), not(isLabel)), labels):
		return errors.New("the host is no name: letters, digits and inner hyphens between dots")
	case slices.Contains(inwardNames(), last):
		return fmt.Errorf("names under .%s do not lead to the public internet", last)
	case slices.ContainsFunc(labels, looksSecret):
		return errors.New("a part of the name looks like a secret, and names are looked up in the open: put it into a header (--credential-header)")
	}
	return nil
}

func not(is func(string) bool) func(string) bool { return func(s string) bool { return !is(s) } }

func checkPort(u *url.URL) error {
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return errors.New("want a port from 1 to 65535, or none for 443")
	}
	return nil
}

// numeric reports a label that a resolver may take for a part of an IPv4 address:
// a decimal, octal or hexadecimal number.
func numeric(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	return (label != "" || hex) && !strings.ContainsFunc(digits, func(r rune) bool {
		return (r < '0' || r > '9') && (!hex || r < 'a' || r > 'f')
	})
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// checkPath refuses what looks like a secret: addresses end up in logs.
func checkPath(u *url.URL) error {
	refused := errors.New("a part of the path looks like a secret, and addresses are logged on the way: put it into a header (--credential-header)")
	before := ""
	for escaped := range strings.SplitSeq(u.EscapedPath(), "/") {
		segment, ok := unescaped(escaped)
		if !ok {
			return errors.New("the path is escaped again and again: write it plainly")
		}
		for part := range strings.SplitSeq(segment, ";") {
			name, text, named := strings.Cut(part, "=")
			if looksSecret(part) || named && (secretName(name) || looksSecret(text)) {
				return refused
			}
		}
		// What stands behind /token/ is one, unless it is a word.
		if secretName(before) && len(segment) >= 8 && strings.ContainsAny(segment, "0123456789") {
			return refused
		}
		before = segment
	}
	return nil
}

// checkQuery refuses parameters that are secrets by their name or by their look.
func checkQuery(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the query cannot be read: write it as name=text, joined by &")
	}
	for name, texts := range query {
		plainName, ok := unescaped(name)
		switch {
		case !ok:
			return errors.New("a parameter is escaped again and again: write it plainly")
		case looksSecret(plainName):
			return errors.New("the name of a parameter looks like a secret, and addresses are logged on the way: put it into a header (--credential-header)")
		case secretName(plainName):
			return fmt.Errorf("the parameter %q looks like a secret, and addresses are logged on the way: put it into a header (--credential-header)", name)
		}
		for _, text := range texts {
			if plain, ok := unescaped(text); !ok || looksSecret(plain) {
				return fmt.Errorf("the text of the parameter %q looks like a secret, and addresses are logged on the way: put it into a header (--credential-header)", name)
			}
		}
	}
	return nil
}

// unescapeMax bounds how often something may be escaped.
const unescapeMax = 4

// unescaped takes all the escaping off a text, since any reader of a log can. False
// where it does not end; what cannot be unescaped is plain.
func unescaped(text string) (string, bool) {
	for range unescapeMax {
		next, err := url.PathUnescape(text)
		if err != nil || next == text {
			return text, true
		}
		text = next
	}
	return "", false
}

// secretWords are words that name a secret, wherever they stand in a name, and
// those that do so only as a word of their own.
func secretWords() (parts, whole []string) {
	return []string{
			"token", "secret", "password", "passwd", "passphrase", "passcode", "apikey", "accesskey", "authkey", "privatekey", "sharedkey", "signingkey", "masterkey",
			"signature", "credential", "authorization", "bearer", "sessionid", "jsessionid", "phpsessid",
		}, []string{
			"key", "keys", "sig", "sign", "hmac", "auth", "pass", "pwd", "pw", "pin", "otp", "jwt", "jws", "jwe", "sid", "session", "sas", "cookie", "oauth", "creds",
		}
}

// secretName reports a name under which secrets travel, in its common spellings:
// api_key, apiKey, X-Api-Key, auth[token], token1.
func secretName(name string) bool {
	parts, whole := secretWords()
	in := words(name)
	joined := strings.Join(in, "")
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(joined, part) }) ||
		slices.ContainsFunc(in, func(word string) bool { return slices.Contains(whole, word) })
}

// words splits a name where a case begins anew and at whatever is no letter, in
// lower case.
func words(name string) []string {
	var all []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
		}
		word = nil
	}
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case unicode.IsUpper(r) && len(word) > 0 && unicode.IsLower(word[len(word)-1]):
			end()
		}
		word = append(word, r)
	}
	end()
	return all
}

// secretText matches what issuers put before their credentials, with enough
// behind it that no word is meant, and the three parts of a JWT.
var secretText = regexp.MustCompile(`(?i)(^|[^a-z0-9])(` + strings.Join([]string{
	`(sk|rk|pk|rzp)_(live|test)_[a-z0-9_\-]{8,}`, `sk-((proj|ant|live|test)[a-z0-9]*-)?[a-z0-9]{20,}`, // Stripe, Razorpay, OpenAI
	`wh(sec|sk)_[a-z0-9+/=_\-]{8,}`,                                    // Standard Webhooks
	`pdl_(live|sdbx)_apikey_[a-z0-9_]{8,}`, `pdl_ntfset_[a-z0-9_]{8,}`, // Paddle
	`gh[opusr]_[a-z0-9]{16,}`, `github_pat_[a-z0-9_]{16,}`, `glpat-[a-z0-9_\-]{16,}`, // GitHub, GitLab
	`xox[abeprs]-[a-z0-9\-]{8,}`, `shp(at|ca|pa|ss)_[a-z0-9]{16,}`, // Slack, Shopify
	`(akia|asia|aiza)[a-z0-9_\-]{16,}`, `ya29\.[a-z0-9_\-]{16,}`, `sg\.[a-z0-9_\-]{16,}`, // AWS, Google, SendGrid
	`(npm|hf|dop_v1)_[a-z0-9]{20,}`, `pypi-[a-z0-9_\-]{16,}`,
	`eyj[a-z0-9_\-]{5,}\.eyj`, `(bearer|basic) +[a-z0-9]`,
}, "|") + `)`)

// Lengths from which a run of characters that looks drawn at random is taken for
// a secret: a UUID, with its hyphens or without, is none.
const (
	randomMin        = 24 // letters of both cases and digits
	randomLettersMin = 32 // letters of both cases
	randomHexMin     = 40
)

// looksSecret reports a text that looks like a credential, whatever its name.
func looksSecret(text string) bool {
	if secretText.MatchString(text) {
		return true
	}
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+/_-", r)
	}) {
		if random(run) {
			return true
		}
	}
	return false
}

// random reports a run of letters of both cases and digits that change all the
// time, as words and numbers do not, or a long number in hexadecimal digits.
func random(run string) bool {
	hex, digits := true, false
	seen, changes := map[int]bool{}, 0
	last := 0
	for _, r := range run {
		kind := kindOf(r)
		hex = hex && (kind == digit || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F')
		digits = digits || kind == digit
		if kind == other {
			continue
		}
		if kind != last && last != 0 && (last != upper || kind != lower) { // a word may begin with a capital
			changes++
		}
		seen[kind], last = true, kind
	}
	mixed := len(seen) == 3 && len(run) >= randomMin || len(seen) == 2 && seen[lower] && seen[upper] && len(run) >= randomLettersMin
	return hex && digits && len(run) >= randomHexMin || mixed && changes*5 >= len(run)
}

const (
	other = iota
	lower
	upper
	digit
)

func kindOf(r rune) int {
	switch {
	case r >= 'a' && r <= 'z':
		return lower
	case r >= 'A' && r <= 'Z':
		return upper
	case r >= '0' && r <= '9':
		return digit
	}
	return other
}
