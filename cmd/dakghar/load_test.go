package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"dakghar/internal/business"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// settles lets the world in memory process what comes, each event with its ledger.
func settles(s *shell, lose map[webhook.EventID]bool) {
	answer := func() (int, []byte, error) { return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil }
	n := 0
	s.world.Answer = func(_ string, header map[string]string, body []byte) (int, []byte, error) {
		n++
		a, _ := s.world.Providers.Lookup("stripe")
		envelope, err := a.Envelope(header, body)
		if err != nil {
			return answer()
		}
		id := webhook.DeriveInboxID(s.world.Endpoints["demo"].Scope, a.Name, envelope.EventID)
		row := webhook.Inbox{
			ID: id, Provider: a.Name, Endpoint: "demo", Tenant: s.world.Endpoints["demo"].Tenant, EventID: envelope.EventID, ObjectID: envelope.ObjectID,
			Status: webhook.Processed, Outcome: webhook.Applied, ReceivedAt: s.world.Clock, ProcessedAt: s.world.Clock.Add(90 * time.Millisecond),
		}
		result := "accepted"
		if _, there := s.world.Rows[id]; there {
			result = "duplicate"
		}
		if n%7 == 0 {
			s.world.Advance(130 * time.Millisecond)
		}
		if !lose[envelope.EventID] {
			s.world.Rows[id] = row
			ev := webhook.Event{
				Tenant: row.Tenant, Provider: row.Provider, Endpoint: row.Endpoint, InboxID: id, Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: row.ObjectID},
			}
			s.world.Items[business.LedgerBalanceKey(ev)] = webhook.Item{business.AttrEntries: int64(1)}
			s.world.Items[business.LedgerEntryKey(ev)] = webhook.Item{business.AttrInbox: string(id), business.AttrRun: int64(0)}
		}
		return 200, []byte(`{"result":"` + result + `","inbox_id":"` + string(id) + `"}`), nil
	}
}

// Proves L4: the plan, the answers and what became of the events, in words and in JSON.
func TestLoadCommand(t *testing.T) {
	s := created(t)
	settles(s, nil)
	load := func(words ...string) {
		s.run("no\n", append([]string{"load", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--in-flight", "1", "--seed", "7"}, words...)...)
	}
	load("--rate", "20", "--duration", "1s", "--mix", "2KiB:3,10240:1", "--duplicates", "0.2", "--yes")
	load("--rate", "20", "--duration", "1s", "--mix", "2KiB:3,10240:1", "--duplicates", "0.2", "--yes", "--shuffle", "--json")
	load("--rate", "2000", "--duration", "5m", "--mix", "2KiB:60,10KiB:35,1MiB:5")
	load("--rate", "5", "--duration", "1s", "--wait", "0", "--yes")
	load("--rate", "20", "--duration", "1s", "--mix", "2KB", "--yes")
	load("--rate", "0", "--duration", "0s", "--yes")
	s.run("", "load", "--url", "https://door.test/in/stripe/demo", "--endpoint", "demo", "--rate", "1", "--duration", "1s")
	s.run("", "load", "--endpoint", "demo", "--rate", "1", "--duration", "1s")
	s.run("", "load", "--local", "--endpoint", "demo")
	s.world.Answer = func(string, map[string]string, []byte) (int, []byte, error) { return 0, nil, operatortest.ErrDown }
	load("--rate", "3", "--duration", "1s", "--yes")
	s.world.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		return 429, []byte(`{"error":"rate_limited"}`), nil
	}
	load("--rate", "3", "--duration", "1s", "--yes")
	s.wantGolden("load")
}

// Proves A1: a loss is found, named, and the command fails.
func TestALoadWithALossFails(t *testing.T) {
	s := created(t)
	args := []string{
		"load", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--in-flight", "1", "--seed", "7", "--rate", "10", "--duration", "1s", "--wait", "3s", "--yes", "--json",
	}
	settles(s, nil)
	s.quietly("", args...)
	var first webhook.Inbox
	for _, row := range s.world.Rows {
		first = row
		break
	}
	clear(s.world.Rows)
	settles(s, map[webhook.EventID]bool{first.EventID: true})
	r := s.quietly("", args...)
	all := objects(t, r.out)
	lost, _ := all[len(all)-1]["lost"].([]any)
	if r.code != exitFailed || len(lost) != 1 || lost[0] != string(first.ID) {
		t.Errorf("exit %d, lost %v, want 1 and %s", r.code, lost, first.ID)
	}
}

func TestAnInterruptedLoadReports(t *testing.T) {
	s := created(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	n := 0
	s.world.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		if n++; n == 4 {
			cancel()
		}
		s.world.Advance(3 * time.Second)
		return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil
	}
	r := s.quietly("", "load", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--rate", "10", "--duration", "1m", "--in-flight", "1", "--yes")
	for _, want := range []string{"interrupted after 4 of 600 requests", "of 600 requests answered after "} {
		if !strings.Contains(r.err, want) {
			t.Errorf("it does not say %q: %q", want, r.err)
		}
	}
	if r.code != exitFailed || !strings.Contains(r.out, "answered 200") || strings.Contains(r.out, "acknowledged") {
		t.Errorf("exit %d, output %q", r.code, r.out)
	}
}

// The seed is shown, so that the same events can be sent again.
func TestALoadsSeedIsTheClocksUnlessGiven(t *testing.T) {
	s := created(t)
	settles(s, nil)
	args := []string{"load", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--in-flight", "1", "--rate", "5", "--duration", "1s", "--yes", "--json"}
	first := objects(t, s.quietly("", args...).out)
	second := objects(t, s.quietly("", args...).out)
	again := objects(t, s.quietly("", append(args, "--seed", fmt.Sprintf("%.0f", first[0]["seed"]))...).out)
	if first[1]["accepted"] != 5.0 || second[1]["accepted"] != 5.0 || again[1]["duplicates"] != 5.0 {
		t.Errorf("first %v, second %v, with the first's seed %v", first[1], second[1], again[1])
	}
}

func TestALoadInterruptedWhileItWaits(t *testing.T) {
	s := created(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	s.world.Fail = func(call string) error {
		if call == "Inboxes" {
			cancel()
		}
		return nil
	}
	r := s.quietly("", "load", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--rate", "5", "--duration", "1s", "--in-flight", "1", "--yes", "--json")
	if r.code != exitFailed || !strings.Contains(r.err, `"error":"interrupted"`) || len(objects(t, r.out)) != 2 {
		t.Errorf("exit %d, error %q, output %q", r.code, r.err, r.out)
	}
}
