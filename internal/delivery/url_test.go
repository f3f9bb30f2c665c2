package delivery_test

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"dakghar/internal/delivery"
)

// Proves X4: addresses that a partner may have.
func TestAPartnersAddressIsAccepted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"https://hooks.partner.com/dakghar",
		"https://hooks.partner.com",
		"https://Hooks.Partner.COM:8443/a/b.json?shop=12&lang=de",
		"https://xn--bcher-kva.de/hooks",
		"https://a.b.c.d.partner.co.uk/%C3%BC",
		"https://partner.com/tenants/6f9619ff-8b86-d011-b42d-00c04fc964ff/hooks",
		"https://partner.com/6f9619ff8b86d011b42d00c04fc964ff",
		"https://partner.com/api/tokens/refresh",
		"https://partner.com/v2/keyboard?author=ada&monkey=1&signal=on&skill=skateboarding",
		"https://partner.com/Order-Events-For-Team-2024-prod",
		"https://sk-bratislava-production.partner.com/sg-production-hooks/npm_package_updates?from=pk-karachi-2024",
		"https://partner.com/PaymentSucceededEventHandlerEndpointForThePartner",
		"https://partner.com/?q=" + strings.Repeat("a", 1900),
		"https://1and1.com/x",
		"https://0x.org/x",
	} {
		if err := delivery.CheckURL(text, false); err != nil {
			t.Errorf("%s is refused: %v", text, err)
		}
	}
}

// Proves X4: what cannot be a partner's address is refused, whoever writes it how.
func TestAnAddressIsRefused(t *testing.T) {
	t.Parallel()
	refused := map[string][]string{
		"want https, not": {"http://partner.com/", "ftp://partner.com/", "ws://partner.com/", "HTTP://partner.com/", "file://partner.com/etc", "http://127.0.0.1/"},
		"an address like": {"", "partner.com/hooks", "//partner.com/hooks", "https:", "https:partner.com", "https:///hooks", "mailto:ada@partner.com", "https://[::1", "https://[v1.x]/", "https://[1:2]/", "https://partner.com:port/", "https://part%6eer.com/", "https://partner.com/%zz"},
		"name and password": {
			"https://ada@partner.com/", "https://ada:secret@partner.com/", "https://:secret@partner.com/", "https://@partner.com/", "https://partner.com@evil.com/", "https://ada%3Asecret@partner.com/",
		},
		"plain ASCII": {
			"https://pаrtner.com/", "https://①②⑦.⓪.⓪.①/", "https://partner。com/", "https://ｐartner.com/", "https://bücher.de/", "https://partner.com/ü", "https://partner.com/a b", " https://partner.com/",
			"https://partner.com/\r\nX: y", "https://partner.com/\x00", "https://partner.com\\@evil.com/", "https://partner.com/\t", "https://par\u00adtner.com/", "https://partner.com/\u202e",
		},
		"a fragment":             {"https://partner.com/#", "https://partner.com/#a", "https://partner.com#@evil.com/", "https://partner.com/?a=b#c"},
		"at most 2048":           {"https://partner.com/" + strings.Repeat("a", 2048)},
		"dot at the end":         {"https://partner.com./", "https://localhost./", "https://127.0.0.1./", "https://partner.com..:443/"},
		"not an address in numb": numbers(),
		"public internet":        {"https://partner/", "https://localhost/", "https://LOCALHOST:8080/", "https://db.internal/", "https://metadata.google.internal/", "https://printer.local/", "https://a.localhost/", "https://x.home.arpa/", "https://svc.corp/", "https://a.test/", "https://a.onion/", "https://localhost.localdomain/"},
		"the host is no name":    {"https://a_b.partner.com/", "https://-a.partner.com/", "https://a-.partner.com/", "https://a..partner.com/", "https://.partner.com/", "https://*.partner.com/", "https://" + strings.Repeat("a", 64) + ".com/", "https://" + strings.Repeat("a.", 126) + "com/", "https://part!ner.com/"},
		"a port from 1":          {"https://partner.com:/", "https://partner.com:0/", "https://partner.com:65536/", "https://partner.com:99999999999999999999/", "https://partner.com:0443/"},
		"escaped again":          {"https://partner.com/%25252525252525257e", "https://partner.com/?%2525252525252541=1"},
		"query cannot be read":   {"https://partner.com/?a=%zz", "https://partner.com/?a;b=1"},
	}
	for want, texts := range refused {
		for _, text := range texts {
			err := delivery.CheckURL(text, false)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", text, err, want)
			}
		}
	}
}

// numbers are spellings of addresses in numbers.
func numbers() []string {
	var all []string
	for _, host := range []string{
		"127.0.0.1", "8.8.8.8", "2130706433", "017700000001", "0x7f000001", "0X7F000001", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f.1", "127.0.0.0x1", "0", "0x", "0.0.0.0", "00000000.1",
		"1.2.3.4.5", "256.256.256.256", "partner.com.1", "partner.0x7f", "169.254.169.254", "100.100.100.200",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25eth0]", "[fd00:ec2::254]", "[2606:4700:4700::1111]",
	} {
		all = append(all, "https://"+host+"/", "https://"+host+":8443/hooks")
	}
	return all
}

// Proves X4: a secret in an address is refused by its name and by its look, and
// the refusal does not repeat it.
func TestASecretInAnAddressIsRefused(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{
		"?token=x", "?access_token=x", "?accessToken=x", "?api_key=x", "?apikey=x", "?apiKey=x", "?API-KEY=x", "?key=x", "?X-Amz-Signature=x", "?sig=x", "?auth=x", "?auth[token]=x", "?auth%5Btoken%5D=x",
		"?token1=x", "?tokens=x", "?my.token=x", "?%74oken=x", "?%2574oken=x", "?userPassword=x", "?pwd=x", "?pass=x", "?client-secret=x", "?clientSecret=x", "?jwt=x", "?sessionId=x", "?JSESSIONID=x", "?Authorization=x",
		"?subscription-key=x", "?hmac=x", "?token", "?a=1&token=", "/a;token=x", "/token=x", "/x;jsessionid=1",
		"?q=sk_live_4eC39HqLyjWDarjtT1zdp7dc", "?q=whsec_C2FVsBQIhrscChlQIMV", "?q=pdl_live_apikey_01gtgztp8f4kek", "?q=pdl_sdbx_apikey_01gtgztp8f4kek", "?q=pdl_ntfset_01hsdn8d43dt7m", "?q=ghp_16C7e42F292c6912E7710c838347Ae178B4a", "?q=xoxb-123456789012-abc", "?q=AKIAIOSFODNN7EXAMPLE",
		"?q=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "?q=Bearer+abc", "?q=Basic%20YTpi", "?q=da39a3ee5e6b4b0d3255bfef95601890afd80709", "?q=1%2Csk_live_4eC39HqLyjWDarjtT1zdp7dc",
		"/services/T00000000/B00000000/aB3dE6gH9jK2mN5pQ8sT1vWx", "/hooks/sk_live_4eC39HqLyjWDarjtT1zdp7dc", "/token/a1b2c3d4", "/%73k_live_4eC39HqLyjWDarjtT1zdp7dc", "/%2573k_live_4eC39HqLyjWDarjtT1zdp7dc",
		"/api/webhooks/123/d7Hf-Kq2Zx9Lw4Vb1Nc8Mk5Jd3Gf6Tr0Ys", "?da39a3ee5e6b4b0d3255bfef95601890afd80709=1",
	} {
		err := delivery.CheckURL("https://hooks.partner.com"+rest, false)
		if err == nil || !strings.Contains(err.Error(), "looks like a secret") || !strings.Contains(err.Error(), "--credential-header") {
			t.Errorf("%s: %v", rest, err)
		}
		if err != nil && strings.Contains(err.Error(), "4eC39HqLyjWDarjtT1zdp7dc") {
			t.Errorf("%s: the refusal repeats the secret", rest)
		}
	}
	if err := delivery.CheckURL("https://akiaiosfodnn7example.partner.com/", false); err == nil || !strings.Contains(err.Error(), "looks like a secret") {
		t.Errorf("in the name: %v", err)
	}
}

// Proves X4: this machine's own names are for the local stack alone.
func TestLoopbackIsForTheLocalStackAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"http://127.0.0.1:9000/hooks", "http://localhost/", "http://[::1]:9000/", "https://LOCALHOST:1/"} {
		if err := delivery.CheckURL(text, true); err != nil {
			t.Errorf("%s on the local stack: %v", text, err)
		}
		if err := delivery.CheckURL(text, false); err == nil {
			t.Errorf("%s is accepted elsewhere", text)
		}
	}
	for _, text := range []string{
		"http://partner.com/", "http://127.0.0.2/", "http://127.1/", "http://10.0.0.1/", "http://169.254.169.254/", "http://localhost.partner.com/", "http://ada@localhost/", "http://localhost:0/",
		"http://localhost/?token=x", "http://db.internal/", "http://0.0.0.0:9000/",
	} {
		if err := delivery.CheckURL(text, true); err == nil {
			t.Errorf("%s is accepted on the local stack", text)
		}
	}
}

// Proves X9: what a redirect may lead to is a host alone, as strict as an address.
func TestARedirectsHostIsChecked(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"partner.com", "eu.partner.com:8443"} {
		if err := delivery.CheckHost(host, false); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"", "partner.com/x", "ada@partner.com", "https://partner.com", "*.partner.com", "127.0.0.1", "[::1]", "localhost", "partner.com?x", "partner.com#", "partner.com:"} {
		if err := delivery.CheckHost(host, false); err == nil {
			t.Errorf("%q is accepted", host)
		}
	}
}

// makers draw secrets of the forms that are in use.
func makers() map[string]func(r *rand.Rand) string {
	drawn := func(r *rand.Rand, n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.UintN(256))
		}
		return b
	}
	return map[string]func(*rand.Rand) string{
		"ours":      func(r *rand.Rand) string { return delivery.NewSecret(drawn(r, 32)) },
		"private":   func(r *rand.Rand) string { return delivery.NewPrivateKey(drawn(r, 32)) },
		"stripe":    func(r *rand.Rand) string { return "sk_live_" + base64.RawURLEncoding.EncodeToString(drawn(r, 24)) },
		"github":    func(r *rand.Rand) string { return "ghp_" + hex.EncodeToString(drawn(r, 18)) },
		"hex":       func(r *rand.Rand) string { return hex.EncodeToString(drawn(r, 32)) },
		"base64":    func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString(drawn(r, 48)) },
		"base64url": func(r *rand.Rand) string { return base64.RawURLEncoding.EncodeToString(drawn(r, 48)) },
		"jwt": func(r *rand.Rand) string {
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"ada"}`)) + "." + base64.RawURLEncoding.EncodeToString(drawn(r, 32))
		},
	}
}

// spellings are the ways to put a text into an address.
func spellings() map[string]func(secret string) string {
	everyByte := func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			b.WriteString("%" + hex.EncodeToString([]byte{s[i]}))
		}
		return b.String()
	}
	return map[string]func(string) string{
		"password":        func(s string) string { return "https://ada:" + url.PathEscape(s) + "@hooks.partner.com/" },
		"user":            func(s string) string { return "https://" + url.PathEscape(s) + "@hooks.partner.com/" },
		"parameter":       func(s string) string { return "https://hooks.partner.com/?q=" + url.QueryEscape(s) },
		"later parameter": func(s string) string { return "https://hooks.partner.com/a?b=c&q=" + url.QueryEscape(s) + "&d=e" },
		"escaped twice":   func(s string) string { return "https://hooks.partner.com/?q=" + url.QueryEscape(url.QueryEscape(s)) },
		"escaped thrice":  func(s string) string { return "https://hooks.partner.com/?q=" + everyByte(everyByte(everyByte(s))) },
		"every byte":      func(s string) string { return "https://hooks.partner.com/?q=" + everyByte(s) },
		"name":            func(s string) string { return "https://hooks.partner.com/?" + url.QueryEscape(s) + "=1" },
		"name alone":      func(s string) string { return "https://hooks.partner.com/?" + url.QueryEscape(s) },
		"segment":         func(s string) string { return "https://hooks.partner.com/hooks/" + url.PathEscape(s) },
		"inner segment":   func(s string) string { return "https://hooks.partner.com/" + url.PathEscape(s) + "/hooks" },
		"segment escaped": func(s string) string { return "https://hooks.partner.com/" + everyByte(s) },
		"matrix":          func(s string) string { return "https://hooks.partner.com/a;q=" + url.PathEscape(s) },
		"fragment":        func(s string) string { return "https://hooks.partner.com/#" + url.PathEscape(s) },
		"behind a word":   func(s string) string { return "https://hooks.partner.com/?q=partner:" + url.QueryEscape(s) },
	}
}

// Proves X4: no secret is in an address that is accepted, whatever its form, and
// however it is spelt there.
func TestNoSecretIsInAnAcceptedAddress(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	draw, spell := makers(), spellings()
	for _, kind := range slices.Sorted(maps.Keys(draw)) {
		for _, how := range slices.Sorted(maps.Keys(spell)) {
			for range 100 {
				secret := draw[kind](r)
				text := spell[how](secret)
				switch err := delivery.CheckURL(text, false); {
				case len(text) > 2048:
				case err == nil:
					t.Errorf("a secret of the form %s, spelt as %s: %s is accepted", kind, how, text)
				case strings.Contains(err.Error(), secret):
					t.Errorf("a secret of the form %s, spelt as %s, is repeated in: %v", kind, how, err)
				}
			}
		}
	}
}

// Whatever is accepted is https to a name, carries nothing but a path and a
// query, and means to a client what it meant to us.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range append(numbers(), "https://hooks.partner.com/a;b?c=d", "https://xn--bcher-kva.de:8443/", "https://partner.com/%2e%2e/", "https://partner.com/?a=b&a=c") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if delivery.CheckURL(text, false) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Opaque != "" || len(text) > 2048 {
			t.Errorf("%q is accepted", text)
		}
		host := u.Hostname()
		if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") || strings.ContainsAny(host, ":%[]@_ ") || strings.HasSuffix(host, ".") {
			t.Errorf("%q is accepted, whose host is %q", text, host)
		}
		if last := host[strings.LastIndexByte(host, '.')+1:]; strings.Trim(last, "0123456789") == "" {
			t.Errorf("%q is accepted, whose name ends with a number", text)
		}
		if again, err := url.Parse(u.String()); err != nil || again.Host != u.Host || again.EscapedPath() != u.EscapedPath() || again.RawQuery != u.RawQuery {
			t.Errorf("%q is written as %q", text, u)
		}
	})
}
