package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/backoff"
	"dakghar/internal/business"
	"dakghar/internal/delivery"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

func TestHelpOfEveryCommand(t *testing.T) {
	s := newShell(t)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Example == "" {
			t.Errorf("%s shows no example", c.CommandPath())
		}
		path := strings.Fields(c.CommandPath())[1:]
		s.run("", append(path, "--help")...)
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && !sub.Hidden {
				walk(sub)
			}
		}
	}
	walk((&app{}).root())
	s.wantGolden("help")
}

func TestEndpointCommands(t *testing.T) {
	s := newShell(t)
	create := []string{"endpoint", "create", "--local", "--provider", "stripe", "--id", "demo", "--secret-file", "-"}
	s.run("", "endpoint", "list", "--local")
	s.run(first+"\n", create...)
	s.run(first, create...)
	s.run(first, append(create, "--json")...)
	s.run(second, create...)
	s.run(second, append(create, "--json")...)
	s.run("sk_test_4eC39HqLyjWDarjtT1zdp7dc", "endpoint", "create", "--local", "--provider", "stripe", "--id", "other", "--secret-file", "-")
	s.run(second, "endpoint", "create", "--stack", "prod", "--region", "eu-west-1", "--provider", "stripe", "--id", "live", "--secret-file", "-",
		"--tenant", "acme", "--type", "payment_intent.succeeded", "--type", "charge.failed", "--keep-unknown", "--overlap", "48h", "--scope", "shared", "--json")
	s.run("", "endpoint", "list", "--local")
	s.run("", "endpoint", "list", "--local", "--json")
	s.run("", "endpoint", "show", "live", "--local")
	s.run("", "endpoint", "show", "live", "--local", "--json")
	s.run("", "endpoint", "update", "demo", "--local", "--rate", "50", "--burst", "200", "--reason", "campaign")
	s.run("", "endpoint", "update", "demo", "--local", "--rate", "50", "--json")
	s.run("rk_test_7Hq2Zx9Lw4Vb1Nc8Mk5Jd3Gf6\n", "endpoint", "update", "demo", "--local", "--api-secret-file", "-", "--api-account", "account=acct_1", "--backfill-every", "1h",
		"--policy", "payment.succeeded=fetch")
	s.run("", "endpoint", "update", "demo", "--local", "--policy", "payment.succeeded=version", "--burst", "-1", "--api-account", "shop=x")
	s.run("", "endpoint", "update", "demo", "--local", "--policy", "payment.succeeded")
	s.run("", "endpoint", "update", "demo", "--local", "--canary", "--reason", "it must not be quiet")
	s.run("", "endpoint", "update", "demo", "--local", "--expect-every", "24h", "--reason", "no day is without a payment")
	s.run("", "endpoint", "update", "demo", "--local", "--expect-every", "24h", "--json")
	s.run("", "endpoint", "update", "demo", "--local", "--expect-every", "5m")
	s.run("", "endpoint", "update", "nobody", "--local", "--rate", "5")
	s.run("", "endpoint", "update", "demo", "--local", "--allow-from", "provider,203.0.113.0/24", "--allow-from", "2001:db8::1", "--canary=false", "--reason", "the auditor asks for it")
	s.run("", "endpoint", "show", "demo", "--local")
	s.run("", "endpoint", "show", "demo", "--local", "--json")
	s.world.Advance(time.Hour)
	s.world.Rows["in_1"] = webhook.Inbox{ID: "in_1", Provider: "stripe", Endpoint: "demo", EventID: "evt_1", ReceivedAt: s.world.Clock, Status: webhook.Received}
	s.run("", "endpoint", "update", "demo", "--local", "--allow-from", "any", "--json")
	s.run("", "endpoint", "update", "demo", "--local", "--allow-from", "provider,203.0.113.9/24")
	s.run("", "endpoint", "pause", "demo", "--local", "--reason", "migration")
	s.run("", "endpoint", "pause", "demo", "--local", "--json")
	s.run("", "endpoint", "list", "--local")
	s.run("", "endpoint", "show", "demo", "--local")
	s.run("", "endpoint", "show", "demo", "--local", "--json")
	s.run("", "endpoint", "resume", "demo", "--local", "--plan")
	s.run("no\n", "endpoint", "resume", "demo", "--local")
	s.run("yes\n", "endpoint", "resume", "demo", "--local", "--reason", "done")
	s.run("", "endpoint", "resume", "demo", "--local", "--yes", "--json")
	s.run("", "endpoint", "show", "nobody", "--stack", "prod")
	s.run("", "endpoint", "show", "nobody", "--local", "--json")
	s.wantGolden("endpoint")
}

func TestSecretCommands(t *testing.T) {
	s := created(t)
	on := func(words ...string) []string { return append(words, "--local", "--endpoint", "demo") }
	s.run(second, on("secret", "put", "--secret-file", "-")...)
	s.world.Advance(time.Hour)
	s.run(second+"\r\n", on("secret", "rotate", "--secret-file", "-", "--reason", "yearly")...)
	s.run(second, on("secret", "rotate", "--secret-file", "-", "--json")...)
	s.run("", on("secret", "list")...)
	s.run("", on("secret", "list", "--json")...)
	s.run("", on("secret", "list", "--ids")...)
	s.run("", on("secret", "finish")...)
	e, _ := s.world.Endpoints["demo"].WithFirstMatch(s.world.Endpoints["demo"].Keys[0].Version, s.world.Clock)
	s.world.Endpoints["demo"] = e
	s.run("no\n", on("secret", "finish")...)
	s.run("yes\n", on("secret", "finish", "--reason", "rotation done")...)
	s.run("", on("secret", "finish", "--json")...)
	s.run("no\n", on("secret", "retire", "--version", "k1")...)
	s.run("", on("secret", "retire", "--version", "k")...)
	s.run("yes\n", on("secret", "retire", "--version", "k1", "--reason", "leaked")...)
	s.run("", on("secret", "retire", "--version", "k1", "--yes")...)
	s.run("", on("secret", "finish", "--yes")...)
	s.run("", on("secret", "retire", "--version", "k2", "--yes")...)
	s.run("", on("secret", "retire", "--version", "k2", "--yes", "--json")...)
	s.run("no\n", on("secret", "retire", "--version", "k2", "--now")...)
	s.run("", on("secret", "retire", "--version", "k2", "--now", "--yes", "--reason", "leaked")...)
	s.run("", on("secret", "retire", "--version", "k2", "--now", "--yes", "--json")...)
	s.run("", on("secret", "finish", "--yes")...)
	s.run(first, on("secret", "rotate", "--secret-file", "-")...)
	s.run(first, on("secret", "put", "--secret-file", "-")...)
	s.run(first+"x", on("secret", "put", "--secret-file", "-")...)
	s.run("", on("secret", "list", "--json")...)
	s.wantGolden("secret")
}

func TestSendCommand(t *testing.T) {
	s := created(t)
	send := func(words ...string) {
		s.run("", append([]string{"send", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded"}, words...)...)
	}
	send("--json")
	send("--provider", "stripe", "--json")
	send()
	send("--seed", "2", "--duplicates", "2")
	send("--count", "500", "--concurrency", "64", "--duplicates", "500", "--seed", "3")
	s.run(second, "send", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--secret-file", "-", "--json")
	send("--at", "-1h")
	s.run(second, "send", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--secret-file", "-")
	for _, status := range []int{404, 429} {
		s.world.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
			return status, []byte(`{"error":"refused"}`), nil
		}
		send("--seed", "4")
	}
	s.world.Answer = func(string, map[string]string, []byte) (int, []byte, error) { return 0, nil, operatortest.ErrDown }
	send("--json")
	send()
	answered := 0
	s.world.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		if answered++; answered%5 == 0 {
			return 503, []byte(`{"error":"unavailable"}`), nil
		}
		return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil
	}
	send("--count", "11")
	s.wantGolden("send")
}

func TestALongSendShowsItsProgressBesideItsOutput(t *testing.T) {
	s := created(t)
	s.world.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		s.world.Advance(3 * time.Second)
		return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil
	}
	r := s.quietly("", "send", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--count", "40", "--json")
	if lines := strings.Count(r.out, "\n"); lines != 40 || !strings.Contains(r.err, " of 40 requests answered after ") {
		t.Errorf("%d lines, want 40; beside them %q", lines, r.err)
	}
}

func TestAnInterruptedSendSaysHowFarItCame(t *testing.T) {
	s := created(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	s.world.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		cancel()
		return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil
	}
	r := s.quietly("", "send", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--count", "1000")
	if r.code != exitFailed || !strings.Contains(r.err, "interrupted after ") || !strings.Contains(r.out, "accepted") {
		t.Errorf("exit %d, error %q, output %q", r.code, r.err, r.out)
	}
}

func TestInboxCommands(t *testing.T) {
	s := created(t)
	s.quietly("", "send", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--json")
	var id webhook.InboxID
	for i, row := range s.world.Rows {
		row.Status, row.Outcome, row.Fence, row.AttemptCount = webhook.Processed, webhook.Applied, 2, 1
		row.ReceivedAt = s.world.Clock.Add(-time.Minute + 7*time.Millisecond)
		row.ProcessedAt, row.ExpiresAt = s.world.Clock, s.world.Clock.Add(400*24*time.Hour)
		s.world.Rows[i], id = row, i
	}
	s.world.Rows["in_failed"] = webhook.Inbox{
		ID: "in_failed", Provider: "stripe", Endpoint: "demo", EventID: "evt_2", EventType: "charge.failed", Status: webhook.Failed,
		ReceivedAt: s.world.Clock.Add(-2 * time.Minute), ProcessedAt: s.world.Clock, LastError: "schema", AttemptCount: 8, Fence: 17,
	}
	s.run("", "inbox", "list", "--local", "--endpoint", "demo")
	s.run("", "inbox", "list", "--local", "--endpoint", "demo", "--json")
	s.run("", "inbox", "list", "--local", "--status", "failed")
	s.run("", "inbox", "list", "--local", "--ids")
	s.run("", "inbox", "list", "--local", "--endpoint", "demo", "--limit", "1", "--since", "1h")
	s.run("", "inbox", "show", string(id), "--local")
	s.run("", "inbox", "show", string(id), "--local", "--json")
	s.run("", "inbox", "show", "in_failed", "--local", "--json")
	s.run("", "inbox", "show", "in_nothing", "--local")
	s.run("", "inbox", "show", "dl_other", "--local")
	s.run("", "inbox", "show", string(id), "--local", "--body", "--json")
	s.run("", "inbox", "show", "in_failed", "--local", "--body")

	s.run("", "inbox", "list", "--local", "--kind", "charge.failed", "--cause", "schema", "--until", "1m")
	s.run("", "inbox", "list", "--local", "--endpoint", "demo", "--matched-secret-version", "k1", "--since", "2026-03-01", "--json")
	s.run("", "inbox", "replay", string(id), "--local")
	s.run("", "inbox", "replay", string(id), "--local", "--reprocess", "search-index")

	raw := s.quietly("", "inbox", "show", string(id), "--local", "--body", "--reason", "ticket 7\x1b[2J")
	if want := string(s.world.Bodies[s.world.Rows[id].BodyID]); raw.out != want || raw.err != "" {
		t.Errorf("--body wrote %q and %q, want the raw bytes and nothing", raw.out, raw.err)
	}
	s.run("", "audit", "list", "--local")
	s.run("", "audit", "list", "--local", "--json", "--limit", "1")
	s.run("", "audit", "list", "--local", "--subject", string(id), "--who", "ada")
	s.run("", "audit", "list", "--local", "--subject", "endpoint demo", "--since", "48h", "--until", "2026-03-02")
	s.run("", "audit", "list", "--local", "--who", "bob")
	s.wantGolden("inbox")
}

// waiting adds failed events of the demo endpoint.
func waiting(s *shell, n int) {
	for i := range n {
		id := webhook.InboxID(fmt.Sprintf("in_%03d", i))
		s.world.Rows[id] = webhook.Inbox{
			ID: id, Provider: "stripe", Endpoint: "demo", EventID: webhook.EventID(fmt.Sprintf("evt_%d", i)), EventType: "charge.failed", ObjectID: "ch_1",
			Status: webhook.Failed, LastError: "partner_503", AttemptCount: 8, Fence: 17,
			ReceivedAt: s.world.Clock.Add(-time.Hour), ProcessedAt: s.world.Clock.Add(-time.Duration(i) * time.Second),
			BodyExpiresAt: s.world.Clock.Add(29 * 24 * time.Hour), ExpiresAt: s.world.Clock.Add(400 * 24 * time.Hour),
		}
	}
}

// Proves R3: an act on many events shows its plan, asks, and is a job.
func TestBulkCommands(t *testing.T) {
	s := created(t)
	waiting(s, 120)
	replay := func(words ...string) []string {
		return append([]string{"inbox", "replay", "--all", "--local", "--endpoint", "demo"}, words...)
	}
	s.run("", replay("--plan")...)
	s.run("", replay("--plan", "--cause", "partner_503", "--rate", "10", "--json")...)
	s.run("", replay("--reason", "ticket 7", "--status", "held")...)
	s.run("", replay("--kind", "order.paid", "--reason", "ticket 7")...)
	s.run("no\n", replay("--reason", "ticket 7")...)
	s.run("yes\n", replay("--reason", "ticket 7")...)
	s.run("", replay("--reason", "ticket 7", "--yes")...)
	s.run("", "inbox", "hold", "--all", "--local", "--kind", "charge.failed", "--reason", "ticket 8", "--yes", "--rate", "1000", "--json")
	s.run("", "inbox", "show", "in_003", "--local")
	s.run("", "inbox", "show", "in_003", "--local", "--json")
	s.run("", "job", "list", "--local")
	s.run("", "job", "list", "--local", "--limit", "1", "--json")
	for id, j := range s.world.Jobs {
		if j.Act == "inbox hold" {
			j.State = webhook.JobStopped // as a crash of its command leaves it, but for a few events
			s.world.Jobs[id] = j
			s.run("", "job", "show", id, "--local")
			s.run("", "job", "resume", id, "--local", "--json")
			s.run("", "job", "cancel", id, "--local")
			j.State, j.Revision = webhook.JobRunning, s.world.Jobs[id].Revision
			s.world.Jobs[id] = j
			s.run("", "job", "cancel", id, "--local", "--reason", "enough", "--json")
		}
	}
	s.run("", "job", "show", "job-nothing", "--local")
	s.run("", "audit", "list", "--local", "--limit", "1")
	s.run("", "audit", "list", "--local", "--subject", "in_003", "--json")
	s.wantGolden("bulk")
}

func TestAnInterruptedJobSaysHowItGoesOn(t *testing.T) {
	s := created(t)
	waiting(s, 400)
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	reopened := 0
	s.world.Lose = func(call string) error {
		if call == "Reopen" {
			if reopened++; reopened == 230 {
				cancel()
			}
		}
		return nil
	}
	r := s.quietly("", "inbox", "replay", "--all", "--local", "--since", "2h", "--reason", "ticket 7", "--yes")
	if r.code != exitFailed || !strings.Contains(r.err, "interrupted after 23") || !strings.Contains(r.err, "job resume job-") || !strings.Contains(r.err, "of 400 events after ") {
		t.Errorf("exit %d, error %q", r.code, r.err)
	}
}

func TestLedgerCommand(t *testing.T) {
	s := created(t)
	ev := webhook.Event{
		Tenant: "default", Provider: "stripe", Endpoint: "demo", InboxID: "in_1", Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_1"},
	}
	s.world.Items[business.LedgerBalanceKey(ev)] = webhook.Item{business.AttrEntries: int64(1), business.BalanceAttribute("EUR"): int64(4200)}
	s.world.Items[business.LedgerEntryKey(ev)] = webhook.Item{
		business.AttrInbox: "in_1", business.AttrRun: int64(0), business.AttrAmount: int64(4200), business.AttrCurrency: "EUR",
		business.AttrType: "payment_intent.succeeded",
	}
	s.run("", "ledger", "show", "--local", "--endpoint", "demo", "--object", "pi_1")
	s.run("", "ledger", "show", "--local", "--endpoint", "demo", "--object", "pi_1", "--json")
	s.run("", "ledger", "show", "--local", "--endpoint", "demo", "--object", "pi_2")
	s.wantGolden("ledger")
}

// Proves R3, O4: what waits is shown, a skip is done once and recorded.
func TestSequenceCommands(t *testing.T) {
	s := created(t)
	id := webhook.DeriveSequenceID(s.world.Endpoints["demo"].Tenant, "demo", webhook.Object, "obj_1")
	s.world.Sequences[id] = webhook.Sequence{ID: id, Last: 2, Parked: map[int64]webhook.InboxID{11: "in_11", 5: "in_5"}}
	s.world.Rows["in_5"] = webhook.Inbox{
		ID: "in_5", Endpoint: "demo", Status: webhook.Parked, Slot: webhook.Slot{Sequence: id, Number: 5}, BodyExpiresAt: s.world.Clock.Add(29 * 24 * time.Hour),
	}
	on := func(words ...string) []string {
		return append(words, "--local", "--endpoint", "demo", "--object", "obj_1")
	}
	skip := func(to string) []string {
		return append(on("sequence", "skip"), "--reason", "3 and 4 were tests", "--to", to)
	}
	s.run("", on("sequence", "show")...)
	s.run("", append(on("sequence", "show"), "--json")...)
	s.run("", append(on("sequence", "show"), "--type", "payment", "--json")...)
	s.run("", append(on("sequence", "show"), "--type", "payment")...)
	s.run("", skip("5")...)
	s.run("", skip("4")...)
	s.run("", skip("4")...)
	s.run("", append(skip("4"), "--json")...)
	s.run("", append(skip("9"), "--json")...)
	s.run("", "sequence", "show", "--local", "--endpoint", "nobody", "--object", "obj_1")
	s.run("", "audit", "list", "--local", "--subject", "object demo/object/obj_1")
	s.wantGolden("sequence")
}

// Proves X5: a schedule is shown in wall time, of either side.
func TestProfileCommands(t *testing.T) {
	s := newShell(t)
	s.run("", "profile", "list")
	s.run("", "profile", "list", "--json")
	for _, name := range backoff.ProfileNames() {
		s.run("", "profile", "show", name)
	}
	s.run("", "profile", "show", "standard", "--json")
	s.run("", "profile", "show", "hasty", "--json")
	s.run("", "profile", "list", "--outbound")
	for _, p := range delivery.Profiles() {
		s.run("", "profile", "show", p.Name, "--outbound")
	}
	s.run("", "profile", "show", "brisk", "--outbound", "--json")
	s.wantGolden("profile")
}

// Every line that makes no sense ends with 2, says what is wrong, and does nothing.
func TestUsageErrors(t *testing.T) {
	s := created(t)
	before := fmt.Sprint(s.world.Acts, len(s.world.Rows), s.world.Secrets)
	for _, args := range []string{
		"bogus",
		"endpoint bogus",
		"endpiont list --local",
		"inbox lst --local",
		"--local inbox list",
		"endpoint list",
		"endpoint list --local --stack prod",
		"endpoint list --local --region eu-west-1",
		"endpoint list --stack prod --local-url http://127.0.0.1:1",
		"endpoint list extra --local",
		"endpoint show --local",
		"endpoint list --local --nonsense",
		"endpoint create --local --provider stripe",
		"endpoint create --local --provider strip --id x --secret-file -",
		"endpoint create --local --provider stripe --id No --secret-file -",
		"endpoint create --local --provider stripe --id x --secret-file - --overlap long",
		"endpoint show BAD --local",
		"secret retire --local --endpoint demo",
		"secret list --local",
		"inbox list --local --endpoint demo --status lost",
		"inbox list --local --endpoint demo --since -1h",
		"inbox list --local --endpoint demo --limit 0",
		"inbox list --local --endpoint demo --since yesterday",
		"inbox list --local --until -1h",
		"inbox list --local --matched-secret-version k1",
		"inbox list --local --ids --json",
		"inbox show --local",
		"inbox replay --local",
		"inbox replay in_1 --all --local",
		"inbox replay in_1 --local --status FAILED",
		"inbox hold in_1 --local --yes",
		"inbox hold --all --local --endpoint demo",
		"inbox hold --all --local --endpoint demo --reason x --rate 0",
		"inbox hold --all --local --endpoint demo --reason x --reprocess h",
		"inbox fail --all --local --endpoint demo --reason x --status PROCESSED",
		"job show --local",
		"job list --local --limit 0",
		"audit list --local --since tomorrow",
		"endpoint update --local",
		"endpoint update demo --local --reason nothing",
		"endpoint update demo --local --rate many",
		"endpoint update demo --local --api-account x",
		"endpoint resume demo --local --rate 0 --yes",
		"endpoint create --local --provider stripe --id x --secret-file - --api-secret-file -",
		"secret finish --local",
		"secret list --local --endpoint demo --ids --json",
		"sequence show --local --endpoint demo",
		"sequence show --local --endpoint demo --object obj_1 --type objekt",
		"sequence skip --local --endpoint demo --object obj_1 --to 4",
		"sequence skip --local --endpoint demo --object obj_1 --reason x",
		"sequence skip --local --endpoint demo --object obj_1 --to four --reason x",
		"profile show",
		"profile show hasty",
		"subscription create --local --id x",
		"subscription create --local --id x --url http://partner.com/",
		"subscription create --local --id x --url https://partner.com/ --header X",
		"subscription create --local --id x --url https://partner.com/ --credential-header X-Key",
		"subscription show BAD --local",
		"subscription update partner --local",
		"subscription resume --local",
		"subscription resume partner --local --rate 0",
		"delivery list --local",
		"delivery list --local --subscription partner --status PARKED",
		"delivery dead --local --ids --json",
		"delivery show --local",
		"delivery replay --local",
		"delivery replay dl_1 --all --local",
		"delivery replay dl_1 --local --subscription partner",
		"delivery replay --all --local",
		"delivery cancel --all --local --reason x",
		"delivery resume --all --local --reason x --status DEAD --subscription partner",
		"ledger show --local --endpoint demo",
		"send --local --type x",
		"send --local --endpoint demo --type payment_intent.suceeded",
		"send --local --endpoint demo --type payment_intent.succeeded --seed -1",
		"send --local --endpoint demo --type payment_intent.succeeded --rate fast --shuffle",
		"send --local --endpoint demo --provider github --type x",
		"send --local --endpoint demo --type payment_intent.succeeded --at yesterday",
		"send --local --endpoint demo --type payment_intent.succeeded --versions 1,x",
		"send --local --endpoint demo --type payment_intent.succeeded --versions 1,2 --count 3",
		"send --local --endpoint demo --type payment_intent.succeeded --count 1 --duplicates 3",
		"send --local --endpoint demo --type payment_intent.succeeded --count 3 --event-id evt_1",
		"send --local --endpoint demo --type payment_intent.succeeded --count 3 --json --concurrency 0",
	} {
		if r := s.run(first, strings.Fields(args)...); r.code != exitUsage || r.out != "" || r.err == "" {
			t.Errorf("dakghar %s: exit %d, output %q, error %q; want 2, nothing and a reason", args, r.code, r.out, r.err)
		}
	}
	if after := fmt.Sprint(s.world.Acts, len(s.world.Rows), s.world.Secrets); after != before {
		t.Error("something was done")
	}
	s.wantGolden("usage")
}

func TestDevCommandPassesItsFlags(t *testing.T) {
	s := newShell(t)
	if r := s.quietly("", "dev", "--http", "127.0.0.1:9"); r.code != exitDone || r.out != "ready http://127.0.0.1:9\n" {
		t.Errorf("%+v", r)
	}
}
