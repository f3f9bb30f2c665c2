package canary_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/canary"
	"dakghar/internal/fault"
	"dakghar/internal/provider/stripe"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Proves M3: the canary goes in as its provider's event would, signed with the
// endpoint's newest key, and what is reported is what happened to it.
func TestACanaryIsSentAsItsProviderWouldAndLookedForUntilItIsProcessed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.endpoints[0].Keys = append([]webhook.TrustedKey{{Version: "v2", AddedAt: time.Now()}}, s.endpoints[0].Keys...)
		s.secrets["v2"] = "whsec_test_next_secret_for_canaries"
		reports, err := s.canary(t).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const id = webhook.CanaryPrefix + "id1"
		want := []canary.Report{{
			Provider: "stripe", Endpoint: "demo", InboxID: webhook.DeriveInboxID("demo", "stripe", id), Decision: canary.Arrived,
			Row: webhook.Processed, HTTP: 200, Sent: 1, Took: 300 * time.Millisecond,
		}}
		if diff := cmp.Diff(want, reports); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		if len(s.requests) != 1 {
			t.Fatalf("%d requests", len(s.requests))
		}
		r := s.requests[0]
		if r.Method != "POST" || r.URL != "https://door.test/in/stripe/demo" || r.Header.Get("User-Agent") != "dakghar-canary" {
			t.Errorf("%s %s by %s", r.Method, r.URL, r.Header.Get("User-Agent"))
		}
		a := stripe.Adapter()
		if version := signer(t, r, map[string]string{"v1": s.secrets["v1"], "v2": s.secrets["v2"]}); version != "v2" {
			t.Errorf("signed with %q, want the newest key", version)
		}
		e, err := a.Envelope(signature.Header{"content-type": r.Header.Get("Content-Type")}, r.Body)
		if err != nil || e.EventID != id || !a.IsCanary(e, r.Body) {
			t.Errorf("event %q, error %v, a canary: %t", e.EventID, err, a.IsCanary(e, r.Body))
		}
	})
}

// signer returns the version that signed a request of Stripe's, as of now.
func signer(t *testing.T, r canary.Request, secrets map[string]string) string {
	t.Helper()
	scheme := stripe.Adapter().Scheme
	header := signature.Header{"stripe-signature": r.Header.Get("Stripe-Signature")}
	meta, err := scheme.Metadata(header)
	if err != nil {
		t.Fatal(err)
	}
	var keys []signature.Key
	for version, secret := range secrets {
		decoded, err := scheme.DecodeKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, signature.Key{Version: version, Secret: decoded})
	}
	match, err := scheme.Verify(signature.Request{Header: header, Body: r.Body}, meta, keys)
	if err != nil {
		t.Fatal(err)
	}
	return match.Version
}

// Proves M3: what counts as missing, what does not, and how soon it is said.
func TestWhatBecomesOfACanary(t *testing.T) {
	t.Parallel()
	missing := func(code string, row webhook.Status, status, sent int) canary.Report {
		return canary.Report{Provider: "stripe", Endpoint: "demo", Decision: canary.Missing, Code: code, Row: row, HTTP: status, Sent: sent}
	}
	accepted := func(row webhook.Status) canary.Report {
		return canary.Report{Provider: "stripe", Endpoint: "demo", Decision: canary.Accepted, Row: row, HTTP: 200, Sent: 1}
	}
	for _, tt := range []struct {
		name string
		bend func(s *site)
		want canary.Report
		err  error
		took time.Duration // of the run
	}{
		{"the door answers 503 twice, as in a deploy", func(s *site) {
			s.door = func(_ context.Context, n int) (canary.Response, error) {
				if n < 3 {
					return canary.Response{Status: 503, Body: []byte(`{"error":"unavailable"}`)}, nil
				}
				return canary.Response{Status: 200}, nil
			}
		}, canary.Report{Provider: "stripe", Endpoint: "demo", Decision: canary.Arrived, Row: webhook.Processed, HTTP: 200, Sent: 3, Took: 3300 * time.Millisecond}, nil, 3750 * time.Millisecond},
		{"the door refuses the signature to the end", func(s *site) { s.door = answers(401, `{"error":"unauthorized"}`) },
			missing("unauthorized", "", 401, 6), nil, budget},
		{"the endpoint's own limit refuses it to the end", func(s *site) { s.door = answers(429, `{"error":"rate_limited"}`) },
			missing("rate_limited", "", 429, 6), nil, budget},
		{"something else answers", func(s *site) { s.door = answers(403, "<html>") }, missing("refused", "", 403, 6), nil, budget},
		{"nobody answers", func(s *site) {
			s.door = func(context.Context, int) (canary.Response, error) {
				return canary.Response{}, fault.New(fault.Theirs, "egress_connect", errDown)
			}
		}, missing("egress_connect", "", 0, 6), errDown, budget},
		{"the answer never ends", func(s *site) {
			s.door = func(ctx context.Context, _ int) (canary.Response, error) {
				<-ctx.Done()
				return canary.Response{}, ctx.Err()
			}
		}, missing("no_answer", "", 0, 1), nil, budget},
		{"nobody works on it", func(s *site) { s.row = never(webhook.Received, "") }, missing("not_processed", webhook.Received, 200, 1), nil, budget},
		{"the work on it fails and waits", func(s *site) { s.row = never(webhook.Retry, "store_unavailable") }, missing("not_processed", webhook.Retry, 200, 1), nil, budget},
		{"it ends FAILED", func(s *site) { s.row = never(webhook.Failed, "attempts_exhausted") }, missing("attempts_exhausted", webhook.Failed, 200, 1), nil, 250 * time.Millisecond},
		{"it was acknowledged and is not there", func(s *site) {
			s.row = func(int, webhook.Inbox, bool) (webhook.Inbox, bool, error) { return webhook.Inbox{}, false, nil }
		}, missing("row_missing", "", 200, 1), nil, budget},
		{"the inbox cannot be read", func(s *site) {
			s.row = func(int, webhook.Inbox, bool) (webhook.Inbox, bool, error) {
				return webhook.Inbox{}, false, fault.New(fault.Ours, "store_unavailable", errDown)
			}
		}, missing("store_unavailable", "", 200, 1), errDown, budget},
		{"the inbox cannot be read at first", func(s *site) {
			s.row = func(n int, row webhook.Inbox, found bool) (webhook.Inbox, bool, error) {
				if n == 1 {
					return row, found, errDown
				}
				return row, found, nil
			}
		}, canary.Report{Provider: "stripe", Endpoint: "demo", Decision: canary.Arrived, Row: webhook.Processed, HTTP: 200, Sent: 1, Took: 300 * time.Millisecond}, nil, 750 * time.Millisecond},
		{"an operator holds it", func(s *site) { s.row = never(webhook.Held, "") }, accepted(webhook.Held), nil, 250 * time.Millisecond},
		{"the endpoint is paused", func(s *site) {
			s.endpoints[0].PausedAt = time.Unix(1, 0)
			s.row = never(webhook.Received, "")
		}, accepted(webhook.Received), nil, 250 * time.Millisecond},
		{"the endpoint is paused meanwhile", func(s *site) {
			reads := 0
			s.row = never(webhook.Received, "")
			s.endpoint = func(_ webhook.EndpointID, e webhook.Endpoint) (webhook.Endpoint, bool, error) {
				if reads++; reads > 1 {
					e.PausedAt = time.Unix(1, 0)
				}
				return e, true, nil
			}
		}, accepted(webhook.Received), nil, budget},
		{"the endpoint trusts no key", func(s *site) { s.endpoints[0].Keys = nil }, missing("no_key_trusted", "", 0, 0), cmpopts.AnyError, budget},
		{"the secret store is silent", func(s *site) { s.secrets = nil }, missing("no_answer", "", 0, 0), errDown, budget},
		{"the secret is another kind of credential", func(s *site) { s.secrets["v1"] = "sk_test_made_up" }, missing("secret_refused", "", 0, 0), signature.ErrSecretForeign, budget},
		{"the key is a public one", func(s *site) {
			s.endpoints[0].Provider, s.secrets["v1"] = "standard-webhooks", publicKey()
		}, canary.Report{Provider: "standard-webhooks", Endpoint: "demo", Decision: canary.Unsignable, Code: "key_public"}, nil, 0},
		{"its provider is of a release to come", func(s *site) { s.endpoints[0].Provider = "tomorrow" },
			canary.Report{Provider: "tomorrow", Endpoint: "demo", Decision: canary.Missing, Code: "provider_unknown"}, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite()
				tt.bend(s)
				began := time.Now()
				reports, err := s.canary(t).Run(t.Context())
				if err != nil || len(reports) != 1 {
					t.Fatalf("%d reports, error %v", len(reports), err)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("the run took %s, want %s", took, tt.took)
				}
				if diff := cmp.Diff(tt.want, reports[0], cmpopts.IgnoreFields(canary.Report{}, "InboxID", "Err")); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
				if got := reports[0].Err; !cmp.Equal(tt.err, got, cmpopts.EquateErrors()) {
					t.Errorf("error %v, want %v", got, tt.err)
				}
				for _, r := range s.requests[min(1, len(s.requests)):] {
					if string(r.Body) != string(s.requests[0].Body) {
						t.Error("another event was sent at a later try")
					}
				}
			})
		})
	}
}

// Proves M3: every endpoint that asked has a report, no other has, and a run ends
// in its time with calls that are bounded in number, however slow the door is.
func TestARunIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		asked := s.endpoints[0]
		s.endpoints = nil
		for i := range 40 {
			e := asked
			e.ID, e.Canary = webhook.EndpointID(fmt.Sprintf("e%02d", i)), i%2 == 0
			s.endpoints = append(s.endpoints, e)
		}
		s.door = func(ctx context.Context, _ int) (canary.Response, error) {
			select {
			case <-time.After(9 * time.Second):
			case <-ctx.Done():
			}
			return canary.Response{}, fault.New(fault.Theirs, "egress_timeout", nil)
		}
		began := time.Now()
		reports, err := s.canary(t).Run(t.Context())
		if took := time.Since(began); err != nil || took != budget || s.inFlightMost != 4 {
			t.Errorf("error %v after %s, %d requests at once", err, took, s.inFlightMost)
		}
		codes := map[string]int{}
		for i, r := range reports {
			if want := webhook.EndpointID(fmt.Sprintf("e%02d", 2*i)); r.Endpoint != want || r.Decision != canary.Missing {
				t.Errorf("report %d of %s: %s, want %s", i, r.Endpoint, r.Decision, want)
			}
			codes[r.Code]++
		}
		// Nine seconds a request, four at once: after 30 s some had an answer, four were cut off, others never had their turn.
		if len(reports) != 20 || codes["egress_timeout"]+codes["no_answer"]+codes["not_sent"] != 20 || codes["egress_timeout"] == 0 || codes["not_sent"] == 0 {
			t.Errorf("%d reports: %v", len(reports), codes)
		}
	})
}

func TestARegistryThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.list = errDown
		if reports, err := s.canary(t).Run(t.Context()); !errors.Is(err, errDown) || len(reports) != 0 {
			t.Errorf("%d reports, error %v", len(reports), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		other := s.endpoints[0]
		other.ID = "other"
		s.endpoints = append(s.endpoints, other)
		s.endpoint = func(id webhook.EndpointID, e webhook.Endpoint) (webhook.Endpoint, bool, error) {
			if id == "demo" {
				return webhook.Endpoint{}, false, errDown
			}
			return e, true, nil
		}
		reports, err := s.canary(t).Run(t.Context())
		if !errors.Is(err, errDown) || len(reports) != 1 || reports[0].Endpoint != "other" || reports[0].Decision != canary.Arrived {
			t.Errorf("reports %+v, error %v", reports, err)
		}
	})
}
