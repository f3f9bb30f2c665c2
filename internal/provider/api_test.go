package provider_test

import (
	"errors"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// asked is an adapter for nobody with an API, whole and valid: one list of
// events, one of deliveries and one of objects.
func asked() *provider.Adapter {
	a := sample()
	a.API = &provider.API{
		Host: "{shop}", Root: "/api/{version}",
		Account: []provider.Param{
			{Name: "shop", About: "the shop", Alphabet: regexp.MustCompile(`^[a-z0-9][a-z0-9-]*\.tally\.example$`)},
			{Name: "version", About: "the version", Alphabet: regexp.MustCompile(`^v[0-9]$`), Default: "v1"},
			{Name: "ledger", About: "the ledger", Alphabet: regexp.MustCompile(`^[a-z]{1,20}$`)},
			{Name: "branch", About: "the branch", Alphabet: regexp.MustCompile(`^br_[a-z]{1,20}$`), Header: "Tally-Branch"},
		},
		Auth:   provider.Auth{Style: provider.AuthBearer, Foreign: []string{"whsec_"}},
		Header: []provider.Pair{{Name: "Accept", Text: "application/json"}},
		Missing: []provider.Missing{
			{Status: 400, When: []provider.Check{provider.Is("error.code", "none")}},
		},
		Histories: []provider.History{
			{
				Path: "/events", Query: []provider.Pair{{Name: "limit", Text: "2"}}, Since: "from", SinceUnix: true,
				Cursor: provider.Cursor{Style: provider.CursorLast, Param: "after", Size: 2, More: "more"}, Items: "events", At: []string{"at"},
			},
			{
				Path: "/ledgers/{ledger}/deliveries", NewestFirst: true,
				Cursor: provider.Cursor{Style: provider.CursorLink, Param: "cursor", Size: 2}, At: []string{"sent"},
				Listed: &provider.Listed{ID: "guid", Type: []string{"event", "action"}, Join: ".", Delivery: "number", Status: "status"},
			},
			{
				Path: "/objects", Query: []provider.Pair{{Name: "kind", Text: "any"}}, Since: "since",
				Cursor: provider.Cursor{Style: provider.CursorOffset, Param: "skip", Size: 2, Alone: []provider.Pair{{Name: "limit", Text: "2"}}},
				Items:  "page.objects", At: []string{"changed"},
				Made: &provider.Made{
					At: "body.object", TypeAt: "type", CreatedAt: "at", IDHeader: "x-id", Key: []string{"id", "changed"},
					Types: []provider.TypeRule{{When: []provider.Check{provider.Is("status", "on")}, Type: "moved"}},
				},
			},
		},
		Redeliver: "/ledgers/{ledger}/deliveries/{delivery}/again",
		Sources:   []string{"nowhere"},
	}
	moved := a.Catalogue["moved"]
	moved.Current = &provider.Current{
		Path: "/subscriptions/{id}.json", ID: regexp.MustCompile(`^sub_[a-z0-9]{1,20}$`), Unwrap: "subscription",
		Updated: []string{"changed"}, Gone: "cancelled",
	}
	a.Catalogue["moved"] = moved
	paid := a.Catalogue["paid"]
	read := *paid.Read
	read.States = append(provider.Statuses("status", "new", "created"),
		provider.StateRule{When: []provider.Check{provider.Is("status", "done")}, State: "succeeded", Credit: 1, Amount: []string{"received"}})
	paid.Current = &provider.Current{Path: "/payments/{id}", ID: regexp.MustCompile(`^pay_[a-z0-9]{1,20}$`), Read: &read}
	a.Catalogue["paid"] = paid
	return a
}

// shop is an endpoint with everything that the calls need.
func shop() webhook.Endpoint {
	return webhook.Endpoint{
		ID: "demo", Provider: "tally",
		API: &webhook.API{Secret: "s", Account: map[string]string{"shop": "corner.tally.example", "ledger": "main"}},
	}
}

// problem is what a test compares of an error.
func problem(err error) string {
	if err == nil {
		return "fine"
	}
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return "not a fault: " + err.Error()
	}
	return string(e.Kind) + " " + e.Error()
}

func TestTheAPIOfTheTestsIsValid(t *testing.T) {
	if err := asked().Validate(); err != nil {
		t.Error(err)
	}
}

// Proves O3: what is asked for follows from the declaration, the endpoint's
// account and the object's id, and from nothing else.
func TestACallGoesWhereTheDeclarationSays(t *testing.T) {
	a, e := asked(), shop()
	plain := http.Header{"Accept": {"application/json"}}
	got, err := a.CurrentCall(e, a.Catalogue["moved"], "sub_1")
	want := provider.Call{Method: "GET", Host: "corner.tally.example", Path: "/api/v1/subscriptions/sub_1.json", Header: plain}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{
		"https://corner.tally.example/api/v1/subscriptions/sub_1.json", "http://127.0.0.1:9/tally/api/v1/subscriptions/sub_1.json",
	}, []string{got.URL(""), got.URL("http://127.0.0.1:9/tally")}); diff != "" {
		t.Error(diff)
	}

	e.API.Account["version"], e.API.Account["branch"] = "v2", "br_north"
	got, err = a.RedeliverCall(e, provider.Past{Delivery: "42"})
	want = provider.Call{
		Method: "POST", Host: "corner.tally.example", Path: "/api/v2/ledgers/main/deliveries/42/again",
		Header: http.Header{"Accept": {"application/json"}, "Tally-Branch": {"br_north"}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Text of an event never leads out of an address: an id that is not in its
// alphabet is refused for good, before anything is made of it.
func TestAnIDThatIsNoneReachesNoAddress(t *testing.T) {
	a, e := asked(), shop()
	for _, id := range []string{
		"", "1", "sub_", "sub_A", "sub_1/../../admin", "sub_1?x=1", "sub_1#x", "sub_%2e", "sub_1\n", "sub_1\r\nHost: evil", "sub_é", "../sub_1", "sub_1/", "pay_1",
		"sub_" + strings.Repeat("a", 500), "https://evil.example/sub_1", "@evil.example", "sub_{shop}",
	} {
		if got, err := a.CurrentCall(e, a.Catalogue["moved"], id); problem(err) != "permanent object_id_unfetchable" {
			t.Errorf("%.30q: %s, %+v", id, problem(err), got)
		}
	}
	for _, id := range []string{"", "a", "1/2", "-1", "1 ", "123456789012345678901"} {
		if got, err := a.RedeliverCall(e, provider.Past{Delivery: id}); problem(err) != "permanent redelivery_unsupported" {
			t.Errorf("delivery %q: %s, %+v", id, problem(err), got)
		}
	}
}

// What an endpoint lacks waits for an operator; what an adapter lacks never comes.
func TestWhatACallLacks(t *testing.T) {
	a := asked()
	moved := a.Catalogue["moved"]
	with := func(account map[string]string) webhook.Endpoint {
		return webhook.Endpoint{API: &webhook.API{Account: account}}
	}
	mute := sample()
	for name, tt := range map[string]struct {
		a    *provider.Adapter
		e    webhook.Endpoint
		k    provider.Kind
		want string
	}{
		"a kind that is not fetched":       {a, shop(), a.Catalogue["changed"], "permanent kind_not_fetchable"},
		"a sender without an API":          {mute, shop(), moved, "permanent api_unsupported"},
		"an endpoint without an API":       {a, webhook.Endpoint{}, moved, "ours api_unset"},
		"an account without its shop":      {a, with(nil), moved, "ours api_account_missing: shop"},
		"an account with a foreign shop":   {a, with(map[string]string{"shop": "evil.example"}), moved, "ours api_account_invalid: shop"},
		"an account with a foreign header": {a, with(map[string]string{"shop": "a.tally.example", "branch": "x\r\ny"}), moved, "ours api_account_invalid: branch"},
	} {
		if _, err := tt.a.CurrentCall(tt.e, tt.k, "sub_1"); problem(err) != tt.want {
			t.Errorf("%s: %s, want %s", name, problem(err), tt.want)
		}
	}
}

// An operator hears at once what is wrong with an account, and never the value.
func TestAnAccountIsCheckedWhenItIsSet(t *testing.T) {
	for _, tt := range []struct {
		account map[string]string
		want    string
	}{
		{map[string]string{"shop": "corner.tally.example", "version": "v3", "branch": "br_a"}, "fine"},
		{map[string]string{"shop": "corner.tally.example.evil.example"}, "permanent api_account_invalid: shop"},
		{map[string]string{"branch": "hunter2"}, "permanent api_account_invalid: branch"},
		{map[string]string{"ledger": ""}, "permanent api_account_invalid: ledger"},
		{map[string]string{"shoe": "x"}, "permanent api_account_unknown: shoe"},
	} {
		if got := problem(asked().CheckAccount(tt.account)); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.account, got, tt.want)
		}
	}
	if got := problem(sample().CheckAccount(nil)); got != "permanent api_unsupported" {
		t.Errorf("without an API: %s", got)
	}
}

// Two values may be for the same place in an address: an endpoint gives one.
func TestOneValueFillsASlot(t *testing.T) {
	a := asked()
	for i := range a.API.Account {
		if a.API.Account[i].Name == "ledger" {
			a.API.Account[i].Slot, a.API.Account[i].Before = "book", "ledgers/"
		}
	}
	a.API.Account = append(a.API.Account, provider.Param{
		Name: "journal", About: "in place of the ledger", Slot: "book", Before: "journals/of/", Alphabet: regexp.MustCompile(`^[a-z]+$`),
	})
	a.API.Histories[1].Path, a.API.Redeliver = "/{book}/deliveries", "/{book}/deliveries/{delivery}/again"
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		account       map[string]string
		checked, path string
	}{
		{map[string]string{"ledger": "main"}, "fine", "/api/v1/ledgers/main/deliveries/42/again"},
		{map[string]string{"journal": "daily"}, "fine", "/api/v1/journals/of/daily/deliveries/42/again"},
		{map[string]string{}, "fine", "ours api_account_missing: ledger"},
		{map[string]string{"ledger": "main", "journal": "daily"}, "permanent api_account_twice: journal", "/api/v1/ledgers/main/deliveries/42/again"},
		{map[string]string{"journal": "a/../b"}, "permanent api_account_invalid: journal", "ours api_account_invalid: journal"},
	} {
		if got := problem(a.CheckAccount(tt.account)); got != tt.checked {
			t.Errorf("%v: %s, want %s", tt.account, got, tt.checked)
		}
		e := shop()
		e.API.Account = map[string]string{"shop": "corner.tally.example"}
		maps.Copy(e.API.Account, tt.account)
		call, err := a.RedeliverCall(e, provider.Past{Delivery: "42"})
		got := call.Path
		if err != nil {
			got = problem(err)
		}
		if got != tt.path {
			t.Errorf("%v: %s, want %s", tt.account, got, tt.path)
		}
	}
}

// Proves M4: a credential goes into one header, whole, or nowhere, and no error
// has it.
func TestACredentialGoesIntoItsHeader(t *testing.T) {
	for _, tt := range []struct {
		auth       provider.Auth
		credential string
		want       http.Header
	}{
		{provider.Auth{Style: provider.AuthBearer}, "sk_1", http.Header{"Authorization": {"Bearer sk_1"}}},
		{provider.Auth{Style: provider.AuthBasic}, "user:pass:word", http.Header{"Authorization": {"Basic dXNlcjpwYXNzOndvcmQ="}}},
		{provider.Auth{Style: provider.AuthHeader, Header: "X-Token"}, "tok", http.Header{"X-Token": {"tok"}}},
	} {
		h := http.Header{}
		err := (&provider.API{Auth: tt.auth}).Authorise(h, tt.credential)
		if diff := cmp.Diff(tt.want, h); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	for _, tt := range []struct {
		style      provider.AuthStyle
		credential string
	}{
		{provider.AuthBearer, ""}, {provider.AuthBearer, "hunter2\n"}, {provider.AuthBearer, "hunter2\r\nX: y"}, {provider.AuthBearer, "hunter 2"},
		{provider.AuthBearer, "hunter2é"}, {provider.AuthBearer, "whsec_hunter2"}, {provider.AuthBearer, strings.Repeat("hunter2", 1000)},
		{provider.AuthBasic, "hunter2"}, {provider.AuthBasic, "hunter2:"}, {provider.AuthBasic, ":hunter2"},
	} {
		h := http.Header{}
		err := (&provider.API{Auth: provider.Auth{Style: tt.style, Foreign: []string{"whsec_"}}}).Authorise(h, tt.credential)
		if problem(err) != "ours api_credential_malformed" || len(h) != 0 {
			t.Errorf("%.20q: %s, %v", tt.credential, problem(err), h)
		}
	}
}

// Every promise of a declaration is held to when the adapters are registered.
func TestAnAPIThatLeadsElsewhereIsRefused(t *testing.T) {
	alphabet := func(text string) func(*provider.Adapter) {
		return func(a *provider.Adapter) { a.API.Account[2].Alphabet = regexp.MustCompile(text) }
	}
	current := func(change func(*provider.Current)) func(*provider.Adapter) {
		return func(a *provider.Adapter) {
			k := a.Catalogue["moved"]
			c := *k.Current
			change(&c)
			k.Current = &c
			a.Catalogue["moved"] = k
		}
	}
	for want, change := range map[string]func(*provider.Adapter){
		`host "localhost" is not a name`:                    func(a *provider.Adapter) { a.API.Host = "localhost" },
		`host "127.0.0.1" is not a name`:                    func(a *provider.Adapter) { a.API.Host = "127.0.0.1" },
		`host "{shop}.example" is neither`:                  func(a *provider.Adapter) { a.API.Host = "{shop}.example" },
		`lets the host be "evil.example"`:                   func(a *provider.Adapter) { a.API.Account[0].Alphabet = regexp.MustCompile(`^[a-z.]+$`) },
		`lets the host be "localhost"`:                      func(a *provider.Adapter) { a.API.Account[0].Alphabet = regexp.MustCompile(`^[a-z]+$`) },
		`allows ".."`:                                       alphabet(`^[a-z.]+$`),
		`allows "a/.."`:                                     alphabet(`^[a-z]+/[a-z.]+$`),
		`allows "a?b"`:                                      alphabet(`^[a-z?]+$`),
		`allows "1\n"`:                                      alphabet("^[a-z0-9\n]+$"),
		`account value ledger does not match whole texts`:   alphabet(`[a-z]+`),
		`account value ledger has no alphabet`:              func(a *provider.Adapter) { a.API.Account[2].Alphabet = nil },
		`account value "id"`:                                func(a *provider.Adapter) { a.API.Account[2].Name = "id" },
		`account value "shop"`:                              func(a *provider.Adapter) { a.API.Account[2].Name = "shop" },
		`account value version refuses its default`:         func(a *provider.Adapter) { a.API.Account[1].Default = "one" },
		`account value ledger says nothing`:                 func(a *provider.Adapter) { a.API.Account[2].About = "" },
		`names {city}, which the account does not have`:     func(a *provider.Adapter) { a.API.Root = "/{city}" },
		`names {branch}, which goes into a header`:          func(a *provider.Adapter) { a.API.Root = "/{branch}" },
		`is more than a path`:                               func(a *provider.Adapter) { a.API.Root = "/x?y=1" },
		`how the credential is shown is not stated`:         func(a *provider.Adapter) { a.API.Auth = provider.Auth{} },
		`a header for the credential and its style`:         func(a *provider.Adapter) { a.API.Auth = provider.Auth{Style: provider.AuthHeader} },
		`no sources of its API's facts`:                     func(a *provider.Adapter) { a.API.Sources = nil },
		`account value ledger has a beginning and no slot`:  func(a *provider.Adapter) { a.API.Account[2].Before = "x/" },
		`account value version fills a slot, and is there`:  func(a *provider.Adapter) { a.API.Account[1].Slot = "part" },
		`account value ledger begins with "../"`:            func(a *provider.Adapter) { a.API.Account[2].Slot, a.API.Account[2].Before = "book", "../" },
		`account value shop fills the host`:                 func(a *provider.Adapter) { a.API.Account[0].Slot, a.API.Host = "place", "{place}" },
		`slot "shop" of account value ledger is a value's`:  func(a *provider.Adapter) { a.API.Account[2].Slot = "shop" },
		`a redelivery without its delivery`:                 func(a *provider.Adapter) { a.API.Redeliver = "/again" },
		`nothing ends it`:                                   func(a *provider.Adapter) { a.API.Histories[1].NewestFirst = false },
		`how pages are asked for is not stated`:             func(a *provider.Adapter) { a.API.Histories[0].Cursor.Param = "" },
		`pages of 0`:                                        func(a *provider.Adapter) { a.API.Histories[0].Cursor.Size = 0 },
		`whether there are more`:                            func(a *provider.Adapter) { a.API.Histories[0].Cursor.More = "" },
		`an id that no page is asked for by`:                func(a *provider.Adapter) { a.API.Histories[1].Cursor.ID = "guid" },
		`no time`:                                           func(a *provider.Adapter) { a.API.Histories[0].At = nil },
		`deliveries without id or type`:                     func(a *provider.Adapter) { a.API.Histories[1].Listed.Type = nil },
		`deliveries and objects`:                            func(a *provider.Adapter) { a.API.Histories[1].Made = a.API.Histories[2].Made },
		`objects without key or type`:                       func(a *provider.Adapter) { a.API.Histories[2].Made.Key = nil },
		`type "gone" is not in the catalogue`:               func(a *provider.Adapter) { a.API.Histories[2].Made.Types[0].Type = "gone" },
		`the type of what is made`:                          func(a *provider.Adapter) { a.API.Histories[2].Made.TypeHeader = "x-type" },
		`where the object of what is made stands`:           func(a *provider.Adapter) { a.API.Histories[2].Made.At = "" },
		`moved: fetched from no API`:                        func(a *provider.Adapter) { a.API = nil },
		`moved's object id has no alphabet`:                 current(func(c *provider.Current) { c.ID = nil }),
		`the alphabet of moved's object id allows "../x"`:   current(func(c *provider.Current) { c.ID = regexp.MustCompile(`^.+$`) }),
		`moved: path "/all" does not name the object`:       current(func(c *provider.Current) { c.Path = "/all" }),
		`moved: a fetched object says nothing of its state`: current(func(c *provider.Current) { c.Read = &provider.Reading{ID: []string{"id"}} }),
		`moved: a fetched object without an id`:             current(func(c *provider.Current) { c.Read = &provider.Reading{} }),
		`moved: a fetched object under another prefix`:      current(func(c *provider.Current) { c.Read = &provider.Reading{ID: []string{"id"}, IDPrefix: "x:"} }),
		`moved: fetched, and nobody says how`: func(a *provider.Adapter) {
			k := a.Catalogue["moved"]
			k.Policy, k.Current = webhook.ByFetch, nil
			a.Catalogue["moved"] = k
		},
		`moved: no version`: func(a *provider.Adapter) {
			k := a.Catalogue["moved"]
			k.Policy = webhook.BySequence
			a.Catalogue["moved"] = k
		},
	} {
		a := asked()
		change(a)
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

// Proves O2 for numbered sequences: their numbers are read as versions are.
func TestASequenceReadsItsNumber(t *testing.T) {
	a := sample()
	k := a.Catalogue["changed"]
	k.Policy = webhook.BySequence
	a.Catalogue["changed"] = k
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := a.Facts(k, "changed", []byte(`{"object":"ob_1","version":7}`))
	if diff := cmp.Diff(webhook.Facts{ObjectType: webhook.Object, ObjectID: "ob_1", Version: 7, HasVersion: true}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := a.Facts(k, "changed", []byte(`{"object":"ob_1"}`)); problem(err) != "permanent version_missing" {
		t.Error(problem(err))
	}
}

func at(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
