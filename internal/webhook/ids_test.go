package webhook_test

import (
	"strings"
	"testing"

	"dakghar/internal/webhook"
)

// Proves D3: the identity is the scope, the provider and the provider's id, and
// no two different triples share one.
func TestInboxIDIsDerivedFromTheUniqueKeyAlone(t *testing.T) {
	t.Parallel()
	id := webhook.DeriveInboxID("demo", "stripe", "evt_1")
	// Pinned: a changed derivation would forget every accepted event.
	if want := webhook.InboxID("in_nneexstpvwy4uqmbsino37z2tnvepnjch4yh6kmh"); id != want {
		t.Fatalf("inbox id %q, want %q", id, want)
	}
	seen := map[webhook.InboxID]string{}
	for _, parts := range [][3]string{
		{"demo", "stripe", "evt_1"}, {"demo", "stripe", "evt_2"}, {"other", "stripe", "evt_1"}, {"demo", "github", "evt_1"},
		{"demos", "tripe", "evt_1"}, {"demo", "stripee", "vt_1"}, {"", "demostripe", "evt_1"}, {"demo", "", "stripeevt_1"},
	} {
		id := webhook.DeriveInboxID(webhook.Scope(parts[0]), webhook.Provider(parts[1]), webhook.EventID(parts[2]))
		if rival, taken := seen[id]; taken {
			t.Errorf("%q and %s share an identity", parts, rival)
		}
		seen[id] = strings.Join(parts[:], "|")
	}
	conflict := webhook.DeriveConflictID("demo", "stripe", "evt_1", webhook.DigestOf([]byte("other body")))
	if _, taken := seen[conflict]; taken {
		t.Error("a conflict shares the identity of an event")
	}
}

// Proves L4: index shards are used evenly.
func TestShardsAreEven(t *testing.T) {
	t.Parallel()
	const n = 16_000
	var counts [webhook.Shards]int
	for i := range n {
		counts[webhook.ShardOf(strings.Repeat("x", i%7)+string(rune('a'+i%26))+webhookID(i))]++
	}
	for shard, count := range counts {
		if count < n/webhook.Shards*8/10 || count > n/webhook.Shards*12/10 {
			t.Errorf("shard %d has %d of %d ids", shard, count, n)
		}
	}
}

func webhookID(i int) string {
	return string(webhook.DeriveInboxID("demo", "stripe", webhook.EventID(strings.Repeat("e", i%100+1)+string(rune(i)))))
}

func TestEndpointIDsAreShortLowerCaseNames(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"demo": true, "shop-eu-2": true, "a": true, strings.Repeat("a", 40): true,
		"": false, "-a": false, "a-": false, "Demo": false, "a_b": false, "a/b": false, "a#b": false, "ä": false, strings.Repeat("a", 41): false,
	} {
		if got := webhook.ValidEndpointID(id); got != want {
			t.Errorf("ValidEndpointID(%q) = %v, want %v", id, got, want)
		}
	}
}
