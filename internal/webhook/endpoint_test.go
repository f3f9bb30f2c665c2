package webhook_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

const day = 24 * time.Hour

// Proves S2, S4: which versions verify during a rotation.
func TestTrustedVersionsDuringARotation(t *testing.T) {
	t.Parallel()
	old := webhook.TrustedKey{Version: "old", AddedAt: now.Add(-30 * day), FirstMatch: now.Add(-30 * day)}
	tests := []struct {
		name string
		keys []webhook.TrustedKey
		want []webhook.KeyVersion
	}{
		{"one key", []webhook.TrustedKey{old}, []webhook.KeyVersion{"old"}},
		{"both, while the new one was never seen", []webhook.TrustedKey{{Version: "new", AddedAt: now.Add(-10 * day)}, old}, []webhook.KeyVersion{"new", "old"}},
		{"both, within the overlap after its first match", []webhook.TrustedKey{{Version: "new", AddedAt: now.Add(-10 * day), FirstMatch: now.Add(-2 * day)}, old}, []webhook.KeyVersion{"new", "old"}},
		{"the new one alone, once the overlap is over", []webhook.TrustedKey{{Version: "new", AddedAt: now.Add(-10 * day), FirstMatch: now.Add(-3 * day)}, old}, []webhook.KeyVersion{"new"}},
		{"the new one alone, after a forgotten rotation's hard limit", []webhook.TrustedKey{{Version: "new", AddedAt: now.Add(-90 * day)}, old}, []webhook.KeyVersion{"new"}},
		{"an explicit end", []webhook.TrustedKey{{Version: "new", AddedAt: now}, {Version: "old", NotAfter: now}}, []webhook.KeyVersion{"new"}},
		{"an older key goes with any newer one's match", []webhook.TrustedKey{
			{Version: "newest", AddedAt: now}, {Version: "new", AddedAt: now.Add(-9 * day), FirstMatch: now.Add(-9 * day)}, old,
		}, []webhook.KeyVersion{"newest", "new"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := webhook.Endpoint{Overlap: 3 * day, Keys: tt.keys}
			if diff := cmp.Diff(tt.want, e.Trusted(now)); diff != "" {
				t.Errorf("trusted (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves S4: a retired version never comes back, and no key in use is dropped by surprise.
func TestKeysAreAddedOnceAndRetiredForEver(t *testing.T) {
	t.Parallel()
	e := webhook.Endpoint{}
	for _, v := range []webhook.KeyVersion{"a", "b", "c", "d"} {
		var ok bool
		if e, ok = e.Add(webhook.TrustedKey{Version: v, AddedAt: now}); !ok {
			t.Fatalf("key %s was not added", v)
		}
	}
	if _, ok := e.Add(webhook.TrustedKey{Version: "e"}); ok {
		t.Error("a fifth key was added")
	}
	e, ok := e.Retire("b", now)
	if !ok {
		t.Fatal("a listed key was not retired")
	}
	want := webhook.Endpoint{
		Keys:    []webhook.TrustedKey{{Version: "d", AddedAt: now}, {Version: "c", AddedAt: now}, {Version: "a", AddedAt: now}},
		Retired: []webhook.KeyVersion{"b"},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("endpoint (-want +got):\n%s", diff)
	}
	if _, ok := e.Add(webhook.TrustedKey{Version: "b"}); ok {
		t.Error("a retired key was added again")
	}
	if _, ok := e.Retire("b", now); ok {
		t.Error("a retired key was retired again")
	}
}

// Proves S4: retiring a leaked key revives no older one that was over, and ends
// none that was still in use.
func TestRetiringAKeyRevivesNoOlderOne(t *testing.T) {
	t.Parallel()
	e := webhook.Endpoint{Overlap: 3 * day, Keys: []webhook.TrustedKey{
		{Version: "leaked", AddedAt: now.Add(-2 * day), FirstMatch: now.Add(-day)},
		{Version: "in use", AddedAt: now.Add(-60 * day), FirstMatch: now.Add(-59 * day)},
		{Version: "over", AddedAt: now.Add(-300 * day), FirstMatch: now.Add(-300 * day)},
	}}
	for _, v := range []webhook.KeyVersion{"leaked", "in use"} {
		var ok bool
		if e, ok = e.Retire(v, now); !ok {
			t.Fatalf("%s was not retired", v)
		}
		want := []webhook.KeyVersion{"in use"}
		if v == "in use" {
			want = nil
		}
		for _, later := range []time.Time{now, now.Add(100 * day)} {
			if diff := cmp.Diff(want, e.Trusted(later)); diff != "" {
				t.Errorf("after %s went, trusted at %s (-want +got):\n%s", v, later, diff)
			}
		}
	}
}

func TestTheFirstMatchIsNotedOnceAndLeavesTheOldListAlone(t *testing.T) {
	t.Parallel()
	e := webhook.Endpoint{Keys: []webhook.TrustedKey{{Version: "a"}}}
	noted, ok := e.WithFirstMatch("a", now)
	if !ok || !noted.Keys[0].FirstMatch.Equal(now) || !e.Keys[0].FirstMatch.IsZero() {
		t.Errorf("noted = %v, %v; the list it came from: %v", noted.Keys, ok, e.Keys)
	}
	if _, ok := noted.WithFirstMatch("a", now.Add(1)); ok {
		t.Error("a second match was noted")
	}
	if _, ok := e.WithFirstMatch("b", now); ok {
		t.Error("a match of an unlisted version was noted")
	}
}

// Proves S2: finishing a rotation ends what the newest key follows, at once, and
// keeps it listed.
func TestFinishEndsEveryOlderKey(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	ended := webhook.TrustedKey{Version: "k0", AddedAt: at.Add(-72 * time.Hour), NotAfter: at.Add(-time.Hour)}
	e := webhook.Endpoint{Overlap: 48 * time.Hour, Keys: []webhook.TrustedKey{
		{Version: "k2", AddedAt: at.Add(-2 * time.Hour), FirstMatch: at.Add(-time.Hour)}, {Version: "k1", AddedAt: at.Add(-48 * time.Hour)}, ended,
	}}
	want := e
	want.Keys = []webhook.TrustedKey{e.Keys[0], {Version: "k1", AddedAt: at.Add(-48 * time.Hour), NotAfter: at}, ended}
	got, ok := e.Finish(at)
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("ended %v; endpoint (-want +got):\n%s", ok, diff)
	}
	if diff := cmp.Diff([]webhook.KeyVersion{"k2"}, got.Trusted(at)); diff != "" {
		t.Errorf("trusted (-want +got):\n%s", diff)
	}
	if _, ok := got.Finish(at.Add(time.Hour)); ok {
		t.Error("ended again")
	}
	if e.Keys[1].NotAfter != (time.Time{}) {
		t.Error("the endpoint that was asked has changed")
	}
}

// Proves S2, S4: a rotation waits for somebody until the provider signs with a newer key.
func TestARotationIsOpenUntilANewerKeyMatches(t *testing.T) {
	t.Parallel()
	old := webhook.TrustedKey{Version: "old", AddedAt: now.Add(-300 * day), FirstMatch: now.Add(-300 * day)}
	key := func(added, matched time.Duration) webhook.TrustedKey {
		k := webhook.TrustedKey{Version: "new", AddedAt: now.Add(-added)}
		if matched > 0 {
			k.FirstMatch = now.Add(-matched)
		}
		return k
	}
	ended := old
	ended.NotAfter = now.Add(day)
	tests := []struct {
		name string
		keys []webhook.TrustedKey
		want time.Duration // since when, 0 for not open
	}{
		{"one key", []webhook.TrustedKey{old}, 0},
		{"a key that never matched, and none before it", []webhook.TrustedKey{key(20*day, 0)}, 0},
		{"the new key was never seen", []webhook.TrustedKey{key(20*day, 0), old}, 20 * day},
		{"the new key matches: the old one ends by itself", []webhook.TrustedKey{key(20*day, day), old}, 0},
		{"the old one has an end of its own", []webhook.TrustedKey{key(20*day, 0), ended}, 0},
		{"forgotten for so long that the old one is over", []webhook.TrustedKey{key(90*day, 0), old}, 0},
		{"two changes and no match: the first one counts", []webhook.TrustedKey{key(5*day, 0), key(20*day, 0), old}, 20 * day},
		{"the second change waits for the first one's key", []webhook.TrustedKey{key(5*day, 0), key(20*day, 19*day), old}, 5 * day},
	}
	for _, tt := range tests {
		since, open := webhook.Endpoint{Overlap: 3 * day, Keys: tt.keys}.RotationOpen(now)
		if open != (tt.want > 0) || open && now.Sub(since) != tt.want {
			t.Errorf("%s: since %s, open %v, want %s", tt.name, since, open, tt.want)
		}
	}
}
