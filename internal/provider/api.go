package provider

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// API is a sender's own programming interface, as data: where it answers, what
// it wants to know about the account, and how its answers are to be read. What
// is asked is decided here, without a network; the package remote asks.
//
// Nothing of an event reaches an address unchecked. A path is made of the
// declaration's own text, of the endpoint's account values and of one object id,
// and each of the latter must match an alphabet that has no way out of a path.
type API struct {
	// Host answers over https: a name, or one placeholder such as {shop}.
	Host string
	// Root stands before every path: "/v1". It may have placeholders.
	Root string
	// Account are the values that an endpoint gives besides its credential.
	Account []Param
	Auth    Auth
	// Header are sent with every call.
	Header []Pair
	// Missing lists answers that mean "no such object" besides 404 and 410.
	Missing []Missing
	// Quota says where an answer tells that the caller has asked too much, besides 429.
	Quota Quota
	// Histories are what is listed to find events that never came, one after the
	// other; none where the sender lists nothing.
	Histories []History
	// Reach is how far back the lists go; 0 where no limit is stated.
	Reach time.Duration
	// Redeliver is the path that has one listed delivery sent again, with
	// {delivery}; empty where there is no such call.
	Redeliver string
	// Sources are where this was read.
	Sources []string
}

// Param is a value of the account that calls need.
type Param struct {
	Name string
	// About says to people what it is.
	About string
	// Alphabet matches whole values.
	Alphabet *regexp.Regexp
	// Default stands in where the endpoint gives none.
	Default string
	// Header, if set, is where the value goes, in place of an address; then it may
	// be left out.
	Header string
	// Slot, if set, is the placeholder that this value fills, behind Before, for an
	// endpoint that gives it. An endpoint gives one of the values of a slot.
	Slot, Before string
}

// Pair is a name and its text: a header, or a parameter of a query.
type Pair struct{ Name, Text string }

// Auth says how a credential is shown.
type Auth struct {
	Style AuthStyle
	// Header is the header's name for [AuthHeader].
	Header string
	// Foreign are beginnings of texts that are no credentials but other secrets of
	// the sender's: those must not leave the house by mistake.
	Foreign []string
}

// AuthStyle is a way to show a credential.
type AuthStyle int

// The styles.
const (
	AuthBearer AuthStyle = iota + 1 // Authorization: Bearer …
	AuthBasic                       // Authorization: Basic …; the credential is "user:password"
	AuthHeader                      // a header of its own
)

// Missing is an answer that means "no such object".
type Missing struct {
	Status int
	When   []Check
}

// Quota names the headers in which an answer tells what is left of the caller's
// allowance, and when it is whole again, in unix seconds.
type Quota struct{ Left, Reset string }

// Call is one request to a sender's API, without its credential.
type Call struct {
	Method, Host, Path string
	Query              string // encoded
	Header             http.Header
}

// URL returns the address. base replaces https and the host, for a stand-in;
// empty for the real one.
func (c Call) URL(base string) string {
	if base == "" {
		base = "https://" + c.Host
	}
	address := base + c.Path
	if c.Query != "" {
		address += "?" + c.Query
	}
	return address
}

// CheckAccount returns what is wrong with an endpoint's account values, a
// permanent [*fault.Error] that names the value but does not repeat it. What only
// some calls need may be left out.
func (a *Adapter) CheckAccount(account map[string]string) error {
	if a.API == nil {
		return fault.New(fault.Permanent, "api_unsupported", nil)
	}
	for name, text := range account {
		p, ok := a.API.param(name)
		if !ok {
			return fault.New(fault.Permanent, "api_account_unknown", named(name))
		}
		if !p.allows(text) {
			return fault.New(fault.Permanent, "api_account_invalid", named(name))
		}
	}
	return a.API.checkSlots(account)
}

// checkSlots refuses two values for one place: one of them would be ignored.
func (api *API) checkSlots(account map[string]string) error {
	filled := map[string]bool{}
	for _, p := range api.Account {
		if p.Slot == "" || account[p.Name] == "" {
			continue
		}
		if filled[p.Slot] {
			return fault.New(fault.Permanent, "api_account_twice", named(p.Name))
		}
		filled[p.Slot] = true
	}
	return nil
}

// named is an error that is one name.
type named string

func (n named) Error() string { return string(n) }

func (api *API) param(name string) (Param, bool) {
	i := slices.IndexFunc(api.Account, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return api.Account[i], true
}

// filling returns the value that fills a placeholder: the one of that name, or of
// those with that slot the one that is given, else the first.
func (api *API) filling(name string, account map[string]string) (Param, bool) {
	var first *Param
	for i, p := range api.Account {
		if p.Slot == "" && p.Name == name || p.Slot == name && account[p.Name] != "" {
			return p, true
		}
		if p.Slot == name && first == nil {
			first = &api.Account[i]
		}
	}
	if first == nil {
		return Param{}, false
	}
	return *first, true
}

func (p Param) allows(text string) bool {
	return len(text) <= accountBytesMax && p.Alphabet.MatchString(text)
}

const (
	accountBytesMax    = 256
	credentialBytesMax = 4096
)

// Authorise puts a credential into the headers of a call. The error is of kind
// ours, since an operator can repair it, and never has the credential in it.
func (api *API) Authorise(h http.Header, credential string) error {
	malformed := credential == "" || len(credential) > credentialBytesMax ||
		slices.ContainsFunc([]byte(credential), func(c byte) bool { return !visible(c) }) ||
		slices.ContainsFunc(api.Auth.Foreign, func(prefix string) bool { return strings.HasPrefix(credential, prefix) })
	user, password, pair := strings.Cut(credential, ":")
	if malformed || api.Auth.Style == AuthBasic && (!pair || user == "" || password == "") {
		return fault.New(fault.Ours, "api_credential_malformed", nil)
	}
	switch api.Auth.Style {
	case AuthBearer:
		h.Set("Authorization", "Bearer "+credential)
	case AuthBasic:
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(credential)))
	case AuthHeader:
		h.Set(api.Auth.Header, credential)
	}
	return nil
}

// call makes a call from a path's template. extra holds texts that were checked
// by whoever gives them.
func (a *Adapter) call(e webhook.Endpoint, method, path string, extra map[string]string) (Call, error) {
	switch {
	case a.API == nil:
		return Call{}, fault.New(fault.Permanent, "api_unsupported", nil)
	case e.API == nil:
		return Call{}, fault.New(fault.Ours, "api_unset", nil)
	}
	value := func(name string) (string, error) {
		if text, ok := extra[name]; ok {
			return text, nil
		}
		return a.API.account(e.API.Account, name)
	}
	host, err := expand(a.API.Host, value)
	if err != nil {
		return Call{}, err
	}
	where, err := expand(a.API.Root+path, value)
	if err != nil {
		return Call{}, err
	}
	if !plainPath(where) {
		return Call{}, fault.New(fault.Permanent, "api_path_refused", nil)
	}
	h, err := a.API.headers(e.API.Account)
	return Call{Method: method, Host: host, Path: where, Header: h}, err
}

// account returns one value for an address. What is missing or malformed waits
// for an operator.
func (api *API) account(account map[string]string, name string) (string, error) {
	p, ok := api.filling(name, account)
	if !ok {
		return "", fault.New(fault.Ours, "api_account_missing", named(name))
	}
	text := account[p.Name]
	if text == "" {
		text = p.Default
	}
	switch {
	case text == "":
		return "", fault.New(fault.Ours, "api_account_missing", named(p.Name))
	case !p.allows(text):
		return "", fault.New(fault.Ours, "api_account_invalid", named(p.Name))
	}
	return p.Before + text, nil
}

func (api *API) headers(account map[string]string) (http.Header, error) {
	h := http.Header{}
	for _, pair := range api.Header {
		h.Set(pair.Name, pair.Text)
	}
	for _, p := range api.Account {
		if p.Header == "" || account[p.Name] == "" && p.Default == "" {
			continue
		}
		text, err := api.account(account, p.Name)
		if err != nil {
			return nil, err
		}
		h.Set(p.Header, text)
	}
	return h, nil
}

// placeholder is a name in braces.
var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// expand replaces the placeholders of a template.
func expand(template string, value func(name string) (string, error)) (string, error) {
	var failed error
	text := placeholder.ReplaceAllStringFunc(template, func(found string) string {
		text, err := value(found[1 : len(found)-1])
		if err != nil {
			failed = err
		}
		return text
	})
	return text, failed
}

// placeholders returns the names in a template.
func placeholders(template string) []string {
	var names []string
	for _, found := range placeholder.FindAllStringSubmatch(template, -1) {
		names = append(names, found[1])
	}
	return names
}

// plainPath is the last look at a path before it is used: what the alphabets of
// its parts should have kept out already stays out.
func plainPath(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
		for i := range len(segment) {
			if c := segment[i]; !typeByte(c) || c == ':' {
				return false
			}
		}
	}
	return true
}
