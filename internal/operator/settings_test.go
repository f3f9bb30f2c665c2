package operator_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// many are different single addresses.
func many(n int) []netip.Prefix {
	var all []netip.Prefix
	at := netip.MustParseAddr("203.0.113.0")
	for range n {
		all = append(all, netip.PrefixFrom(at, 32))
		at = at.Next()
	}
	return all
}

func ptr[T any](v T) *T { return &v }

// credentials of these tests: made up, of the form that the adapter takes.
const (
	apiFirst  = "rk_test_7Hq2Zx9Lw4Vb1Nc8Mk5Jd3Gf6"
	apiSecond = "rk_test_1Aa2Bb3Cc4Dd5Ee6Ff7Gg8Hh9"
)

// Proves R3 (recorded): an update changes what it names and nothing else, once.
func TestUpdateChangesWhatItNames(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	before := w.Endpoints["demo"]
	s := operator.Settings{
		Types: []webhook.EventType{"charge.failed"}, KeepUnknown: ptr(true), Overlap: ptr(48 * time.Hour), Rate: ptr(50), Burst: ptr(100),
		AllowFrom: &webhook.AllowFrom{Provider: true, Prefixes: many(2)}, Credential: operator.NewSecret(apiFirst), BackfillEvery: ptr(time.Hour),
	}
	u, err := o.Update(t.Context(), "demo", s, "a campaign")
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Types, want.KeepUnknown, want.Overlap, want.Rate, want.Burst = s.Types, true, 48*time.Hour, 50, 100
	want.AllowFrom = *s.AllowFrom
	want.API, want.BackfillEvery, want.Revision = &webhook.API{Secret: "test/api/demo"}, time.Hour, 2
	if diff := cmp.Diff(want, w.Endpoints["demo"]); diff != "" || u.Existed {
		t.Errorf("existed %t; endpoint (-want +got):\n%s", u.Existed, diff)
	}
	if got := len(w.Secrets["test/api/demo"]); got != 1 {
		t.Errorf("%d versions of the credential, want 1", got)
	}
	acts := w.Acts[1:]
	wantActs := []webhook.Act{
		{ID: "act-3", At: w.Clock, Name: "endpoint credential", Subject: "endpoint demo", Who: "ada", Why: "a campaign"},
		{ID: "act-2", At: w.Clock, Name: "endpoint update", Subject: "endpoint demo", Who: "ada", Why: "a campaign"},
	}
	if diff := cmp.Diff(wantActs, acts); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}

	again, err := o.Update(t.Context(), "demo", s, "a campaign")
	if err != nil || !again.Existed || len(w.Acts) != 3 || w.Endpoints["demo"].Revision != 2 {
		t.Errorf("again: existed %t, error %v, %d acts", again.Existed, err, len(w.Acts))
	}
	turned, err := o.Update(t.Context(), "demo", operator.Settings{Credential: operator.NewSecret(apiSecond)}, "")
	if err != nil || turned.Existed || len(w.Secrets["test/api/demo"]) != 2 {
		t.Errorf("another credential: existed %t, error %v, %d versions", turned.Existed, err, len(w.Secrets["test/api/demo"]))
	}
	back, err := o.Update(t.Context(), "demo", operator.Settings{Credential: operator.NewSecret(apiFirst), Types: []webhook.EventType{}}, "")
	if err != nil || back.Existed || len(w.Secrets["test/api/demo"]) != 3 || w.Endpoints["demo"].Types != nil {
		t.Errorf("the first credential again: existed %t, error %v, %d versions, types %v", back.Existed, err, len(w.Secrets["test/api/demo"]), back.Endpoint.Types)
	}
}

func TestAnUpdateThatDiedIsFinishedByRunningItAgain(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Create", "UpdateEndpointBy"} {
		w, o := create(t)
		s := operator.Settings{Credential: operator.NewSecret(apiFirst), Rate: ptr(5)}
		w.Fail = operatortest.Down(call)
		if _, err := o.Update(t.Context(), "demo", s, ""); err == nil {
			t.Fatalf("a death at %s went unnoticed", call)
		}
		w.Fail = func(string) error { return nil }
		u, err := o.Update(t.Context(), "demo", s, "")
		if err != nil || u.Existed || len(w.Secrets["test/api/demo"]) != 1 || w.Endpoints["demo"].API == nil || w.Endpoints["demo"].Rate != 5 {
			t.Errorf("%s: existed %t, error %v, endpoint %+v", call, u.Existed, err, u.Endpoint)
		}
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	cred := operator.NewSecret(apiFirst)
	tests := []struct {
		name string
		s    operator.Settings
	}{
		{"a negative rate", operator.Settings{Rate: ptr(-1)}},
		{"a burst without a rate", operator.Settings{Burst: ptr(5)}},
		{"a negative burst", operator.Settings{Rate: ptr(5), Burst: ptr(-1)}},
		{"no overlap", operator.Settings{Overlap: ptr(time.Duration(0))}},
		{"too long an overlap", operator.Settings{Overlap: ptr(webhook.OverlapMax + 1)}},
		{"an unknown type", operator.Settings{Types: []webhook.EventType{"orders/create"}}},
		{"a back-fill without a credential", operator.Settings{BackfillEvery: ptr(time.Hour)}},
		{"a back-fill every minute", operator.Settings{Credential: cred, BackfillEvery: ptr(time.Minute)}},
		{"an account without a credential", operator.Settings{Account: map[string]string{"account": "acct_1"}}},
		{"an account value that there is not", operator.Settings{Credential: cred, Account: map[string]string{"shop": "x"}}},
		{"a prefix that is none", operator.Settings{AllowFrom: &webhook.AllowFrom{Provider: true, Prefixes: make([]netip.Prefix, 1)}}},
		{"too many addresses", operator.Settings{AllowFrom: &webhook.AllowFrom{Prefixes: many(webhook.AllowPrefixesMax + 1)}}},
		{"an address twice", operator.Settings{AllowFrom: &webhook.AllowFrom{Prefixes: slices.Concat(many(1), many(1))}}},
		{"to expect something more often than a pause is long", operator.Settings{ExpectEvery: ptr(webhook.ExpectEveryMin - time.Second)}},
		{"to expect something less often than anybody remembers", operator.Settings{ExpectEvery: ptr(webhook.ExpectEveryMax + time.Second)}},
		{"to expect something before it happened", operator.Settings{ExpectEvery: ptr(-time.Hour)}},
		{"a signing secret for a credential", operator.Settings{Credential: operator.NewSecret(first)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, o := create(t)
			_, err := o.Update(t.Context(), "demo", tt.s, "")
			wantRefusal(t, err, "usage")
			if len(w.Acts) != 1 || len(w.Secrets) != 1 {
				t.Error("something was written")
			}
		})
	}
}

// Create takes the same settings, and finds them when it is run again.
func TestCreateWithSettingsIsRepeatable(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	o := w.Operator()
	n := demo()
	n.Rate, n.Burst, n.Credential, n.BackfillEvery, n.ExpectEvery = 50, 100, operator.NewSecret(apiFirst), time.Hour, webhook.ExpectEveryMax
	if _, err := o.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	e := w.Endpoints["demo"]
	if e.Rate != 50 || e.Burst != 100 || e.BackfillEvery != time.Hour || e.ExpectEvery != webhook.ExpectEveryMax || e.API == nil || e.API.Secret != "test/api/demo" {
		t.Errorf("endpoint %+v", e)
	}
	again, err := o.Create(t.Context(), n)
	if err != nil || !again.Existed {
		t.Errorf("again: existed %t, error %v", again.Existed, err)
	}
	n.Credential = operator.NewSecret(apiSecond)
	_, err = o.Create(t.Context(), n)
	wantRefusal(t, err, "endpoint_exists")
	n.Credential, n.Rate = operator.NewSecret(apiFirst), 51
	_, err = o.Create(t.Context(), n)
	wantRefusal(t, err, "endpoint_exists")
	n.Rate, n.ExpectEvery = 50, webhook.ExpectEveryMin
	_, err = o.Create(t.Context(), n)
	wantRefusal(t, err, "endpoint_exists")
}

// What an endpoint expects changes like every setting, and 0 ends it. Proves R3 (recorded).
func TestWhatAnEndpointExpectsChanges(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	for _, tt := range []struct {
		every   time.Duration
		existed bool
	}{{24 * time.Hour, false}, {24 * time.Hour, true}, {webhook.ExpectEveryMin, false}, {0, false}, {0, true}} {
		u, err := o.Update(t.Context(), "demo", operator.Settings{ExpectEvery: &tt.every}, "a usual day")
		if err != nil || u.Existed != tt.existed || w.Endpoints["demo"].ExpectEvery != tt.every {
			t.Errorf("every %s: existed %v, stored %s, error %v", tt.every, u.Existed, w.Endpoints["demo"].ExpectEvery, err)
		}
	}
	if len(w.Acts) != 4 { // the making, and three changes
		t.Errorf("%d acts are recorded", len(w.Acts))
	}
}

// Proves R3, M2: the last event is the provider's own, and not a canary or what a
// back-fill brought.
func TestTheLastEventIsTheProvidersOwn(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	e := w.Endpoints["demo"]
	last := func(want time.Time) {
		t.Helper()
		if got, err := o.LastEvent(t.Context(), e); err != nil || !got.Equal(want) {
			t.Errorf("the last event: %s, %v, want %s", got, err, want)
		}
	}
	put := func(id webhook.InboxID, change func(*webhook.Inbox)) time.Time {
		w.Advance(time.Hour)
		row := webhook.Inbox{ID: id, Endpoint: "demo", ReceivedAt: w.Clock, Status: webhook.Received}
		change(&row)
		w.Rows[id] = row
		return w.Clock
	}
	last(time.Time{})
	put("in_canary", func(row *webhook.Inbox) { row.EventType, row.Unwanted = webhook.CanaryType, true })
	put("in_fetched", func(row *webhook.Inbox) { row.MatchedVersion = webhook.Backfilled })
	put("in_other", func(row *webhook.Inbox) { row.Endpoint = "other" })
	last(time.Time{})
	at := put("in_1", func(row *webhook.Inbox) { row.Unwanted = true })
	put("in_canary_2", func(row *webhook.Inbox) { row.EventType, row.Unwanted = webhook.CanaryType, true })
	last(at)
	w.Advance(webhook.ExpectEveryMax)
	last(time.Time{})
	w.Fail = func(call string) error {
		if call == "RecentInbox" {
			return operatortest.ErrDown
		}
		return nil
	}
	_, err := o.LastEvent(t.Context(), e)
	wantRefusal(t, err, "unavailable")
}

// A canary comes from an address that nobody can name, so an endpoint has one or a
// list of addresses.
func TestACanaryAndAListOfAddressesDoNotGoTogether(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	if _, err := o.Update(t.Context(), "demo", operator.Settings{Canary: ptr(true)}, "watch it"); err != nil || !w.Endpoints["demo"].Canary {
		t.Fatal(err)
	}
	before := w.Endpoints["demo"]
	if _, err := o.Update(t.Context(), "demo", operator.Settings{AllowFrom: &webhook.AllowFrom{Provider: true}}, "the auditor"); err == nil {
		t.Error("a list was taken beside the canary")
	}
	if diff := cmp.Diff(before, w.Endpoints["demo"]); diff != "" {
		t.Errorf("endpoint (-before +after):\n%s", diff)
	}
	if _, err := o.Update(t.Context(), "demo", operator.Settings{AllowFrom: &webhook.AllowFrom{Provider: true}, Canary: ptr(false)}, "the auditor"); err != nil {
		t.Errorf("in place of the canary: %v", err)
	}
}
