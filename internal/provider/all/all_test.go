package all_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Proves P1 and V10: what every adapter states, in one place to be read.
func TestWhatIsStated(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	type stated struct {
		Covers       provider.Covers
		Past, Future time.Duration
		BodyVaries   provider.Variation
		Window       time.Duration
		Overlap      time.Duration
		SuccessCode  int
	}
	want := map[webhook.Provider]stated{
		"standard-webhooks": {provider.Covers{ID: true, Type: true, Time: true}, 5 * time.Minute, 5 * time.Minute, provider.Unknown, 76 * time.Hour, day, 200},
		"svix":              {provider.Covers{ID: true, Type: true, Time: true}, 5 * time.Minute, 5 * time.Minute, provider.Never, 90 * day, day, 200},
		"stripe":            {provider.Covers{ID: true, Type: true, Time: true}, 5 * time.Minute, 5 * time.Minute, provider.Unknown, 30 * day, day, 200},
		"github":            {provider.Covers{}, 0, 0, provider.Never, 30 * day, time.Hour, 200},
		"shopify":           {provider.Covers{}, 0, 0, provider.Never, 28 * time.Hour, 6 * time.Hour, 200},
		"slack":             {provider.Covers{ID: true, Type: true, Time: true}, 5 * time.Minute, 5 * time.Minute, provider.Unknown, day, day, 200},
		"razorpay":          {provider.Covers{Type: true}, 0, 0, provider.Never, 7 * day, 48 * time.Hour, 200},
		"paddle":            {provider.Covers{ID: true, Type: true, Time: true}, 5 * time.Minute, 5 * time.Minute, provider.PerAttempt, 90 * day, 3 * day, 200},
	}
	got := map[webhook.Provider]stated{}
	r, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.All() {
		got[a.Name] = stated{a.Covers, a.Scheme.Timestamp.Past, a.Scheme.Timestamp.Future, a.BodyVaries, a.Redelivery.Window(), a.Overlap, a.SuccessCode}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Proves P1: who publishes the addresses that it sends from, how many ranges they
// are and how old that knowledge is; no range reaches into nobody's internet.
func TestWhoPublishesItsAddresses(t *testing.T) {
	t.Parallel()
	type list struct {
		Ranges        int
		AsOf          string
		First, Except string
	}
	want := map[webhook.Provider]list{
		"stripe":   {15, "2026-09-04", "https://stripe.com/files/ips/ips_webhooks.json", "what the command line tool forwards"},
		"github":   {9, "2026-10-29", "https://api.github.com/meta", "GitHub Enterprise Server"},
		"razorpay": {14, "2026-09-01", "https://razorpay.com/docs/security/whitelists", "accounts in Malaysia and Singapore, and Razorpay's own test systems (UAT)"},
		"paddle":   {6, "2026-10-10", "https://developer.paddle.com/webhooks/about/respond-to-webhooks", "sandbox accounts"},
		"svix":     {23, "2025-01-01", "https://docs.svix.com/receiving/source-ips", "senders that run Svix themselves, and those whose plan has no static addresses"},
	}
	got := map[webhook.Provider]list{}
	for _, a := range all.Adapters() {
		if a.Addresses == nil {
			continue
		}
		got[a.Name] = list{len(a.Addresses.Prefixes), a.Addresses.AsOf.Format(time.DateOnly), a.Addresses.Sources[0], a.Addresses.Except}
		for _, p := range a.Addresses.Prefixes {
			if at := p.Addr(); !at.IsGlobalUnicast() || at.IsPrivate() || at.Is4() && p.Bits() < 16 || at.Is6() && p.Bits() < 29 {
				t.Errorf("%s: %s is too wide, or nobody's on the public internet", a.Name, p)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Proves P4: whatever a sample of any type can show is a state that its object
// type has, and money moves only where it should.
func TestStatesAndCreditsAreTheObjectTypes(t *testing.T) {
	t.Parallel()
	states := map[webhook.ObjectType][]string{
		webhook.Payment:      {"created", "requires_action", "processing", "failed", "authorised", "succeeded", "cancelled"},
		webhook.Order:        {"open", "paid", "fulfilled", "cancelled"},
		webhook.Subscription: {"incomplete", "trialing", "active", "past_due", "unpaid", "paused", "cancelled"},
		webhook.Refund:       {"pending", "failed", "succeeded", "cancelled"},
		webhook.Dispute:      {"needs_response", "under_review", "won", "lost", "closed"},
		webhook.Object:       {""},
	}
	credits := map[webhook.ObjectType]map[string]int{
		webhook.Payment: {"succeeded": +1}, webhook.Refund: {"succeeded": -1}, webhook.Dispute: {"lost": -1},
	}
	// A chargeback and its reversal are two objects of Paddle's: what the one took,
	// the other gives back.
	reversals := []string{"paddle adjustment.created/chargeback_reverse", "paddle adjustment.updated/chargeback_reverse"}
	check := func(where string, k provider.Kind, state string, credit int) {
		known, listed := states[k.Object]
		if listed && state != "" && !slices.Contains(known, state) {
			t.Errorf("%s: a %s cannot be %q", where, k.Object, state)
		}
		want := credits[k.Object][state]
		if slices.Contains(reversals, where) && state == "won" {
			want = +1
		}
		if credit != want {
			t.Errorf("%s: credit %d for %s %s, want %d", where, credit, k.Object, state, want)
		}
		if k.Delta {
			t.Errorf("%s: a delta", where)
		}
	}
	for _, a := range all.Adapters() {
		kinds := map[webhook.EventType]provider.Kind{}
		maps.Copy(kinds, a.Catalogue)
		if a.Pattern != nil {
			kinds["pattern.kind"] = a.PatternKind
		}
		for eventType, k := range kinds {
			where := string(a.Name) + " " + string(eventType)
			if k.State != "" || len(k.Read.States) == 0 {
				check(where, k, k.State, k.Credit)
				continue
			}
			for _, rule := range k.Read.States {
				check(where, k, rule.State, rule.Credit)
			}
		}
	}
}

// FuzzEnvelope feeds every adapter with whatever a sender's key may sign:
// nothing panics, every refusal has a code, and what is accepted has an identity
// within its bounds.
func FuzzEnvelope(f *testing.F) {
	for _, a := range all.Adapters() {
		types := a.Types()
		if a.Pattern != nil {
			types = append(types, "object.updated")
		}
		for _, eventType := range types {
			sample, err := a.Sample(provider.SampleOptions{Type: eventType, EventID: "evt_1"})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(sample.Body, "evt_1", string(eventType))
		}
	}
	f.Add([]byte(`{"token":"x","challenge":"y","type":"url_verification"}`), "", "")
	f.Add([]byte(`payload=%7B%7D`), "d1", "ping")
	adapters := all.Adapters()
	f.Fuzz(func(t *testing.T, body []byte, id, eventType string) {
		for _, a := range adapters {
			h := signature.Header{
				"webhook-id": id, "svix-id": id, "x-github-delivery": id, "x-shopify-webhook-id": id, "x-razorpay-event-id": id,
				"x-github-event": eventType, "x-shopify-topic": eventType,
			}
			e, err := a.Envelope(h, body)
			if err != nil {
				if b, ok := errors.AsType[*provider.BadBody](err); !ok || b.Code == "" {
					t.Errorf("%s: not a bad body: %v", a.Name, err)
				}
				continue
			}
			if e.Handshake != nil {
				continue
			}
			if len(e.EventID) == 0 || len(e.EventID) > webhook.EventIDBytesMax || len(e.Type) == 0 || len(e.Type) > webhook.EventTypeBytesMax ||
				len(e.ObjectID) > webhook.ObjectIDBytesMax || len(e.ObjectVersion) > webhook.ObjectVersionBytesMax {
				t.Errorf("%s: out of bounds: %+v", a.Name, e)
			}
			k, ok := a.Kind(e.Type)
			if !ok {
				continue
			}
			if _, err := a.Facts(k, e.Type, body); err != nil && fault.KindOf(err) != fault.Permanent {
				t.Errorf("%s: the same body will be read otherwise the next time? %v", a.Name, err)
			}
		}
	})
}

// BenchmarkAccept is what an adapter costs an accepted request of 10 KiB:
// signature and envelope.
func BenchmarkAccept(b *testing.B) {
	secrets := map[webhook.Provider]string{"standard-webhooks": "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=", "svix": "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ="}
	for _, a := range all.Adapters() {
		b.Run(string(a.Name), func(b *testing.B) {
			secret, ok := secrets[a.Name]
			if !ok {
				secret = "a secret of this benchmark"
			}
			decoded, err := a.Scheme.DecodeKey(secret)
			if err != nil {
				b.Fatal(err)
			}
			eventType := webhook.EventType("object.updated")
			if a.Pattern == nil {
				eventType = a.Types()[0]
			}
			sample, err := a.Sample(provider.SampleOptions{Type: eventType, EventID: "evt_1", BodyBytes: 10 << 10})
			if err != nil {
				b.Fatal(err)
			}
			keys, at := []signature.Key{{Version: "k1", Secret: decoded}}, time.Unix(1750000000, 0)
			req := signature.Request{Header: sample.Header, Body: sample.Body}
			signed, err := a.Scheme.Sign(req, keys[0], at)
			if err != nil {
				b.Fatal(err)
			}
			maps.Copy(req.Header, signed)
			b.ReportAllocs()
			for b.Loop() {
				meta, err := a.Scheme.Metadata(req.Header)
				if err != nil {
					b.Fatal(err)
				}
				if _, err = a.Scheme.Verify(req, meta, keys); err != nil {
					b.Fatal(err)
				}
				if _, err = a.Envelope(req.Header, req.Body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
