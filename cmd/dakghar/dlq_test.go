package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dakghar/internal/business"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// dead puts letters of several fates, and reports of the stream, into the world.
func dead(s *shell) {
	past := s.world.Clock.Add(-2 * time.Hour)
	for i, row := range []webhook.Inbox{
		{ID: "in_due", Status: webhook.Received, NextAttemptAt: past},
		{ID: "in_later", Status: webhook.Retry, NextAttemptAt: s.world.Clock.Add(time.Hour), LastError: "partner_503"},
		{ID: "in_failed", Status: webhook.Failed, LastError: "handler_panic", BodyExpiresAt: s.world.Clock.Add(72 * time.Hour)},
		{ID: "in_old", Status: webhook.Failed, LastError: "schema", BodyExpiresAt: s.world.Clock.Add(time.Hour)},
		{ID: "in_done", Status: webhook.Processed, Outcome: webhook.Applied},
		{ID: "in_held", Status: webhook.Held},
	} {
		row.Provider, row.Endpoint = "stripe", "demo"
		s.world.Rows[row.ID] = row
		if row.Status.Waiting() {
			p := webhook.NewOutbox(row, row.NextAttemptAt, past)
			s.world.Promises[p.ID] = p
		}
		s.world.EventLetters.Put(fmt.Sprintf("m-%d", i+1), fmt.Sprintf(`{"v":1,"outbox_id":"o","inbox_id":%q,"endpoint_id":"demo","topic":"process","gen":0}`, row.ID), past)
	}
	s.world.EventLetters.Put("m-7", "hello \x1b[2J", past)
	s.world.RelayLetters.Put("r-1", `{"requestContext":{"condition":"RetryAttemptsExhausted","approximateInvokeCount":21},"version":"1.0",
		"DDBStreamBatchInfo":{"shardId":"shardId-0001","startSequenceNumber":"100","endSequenceNumber":"102","approximateArrivalOfFirstRecord":"2026-03-01T05:00:00Z",
		"approximateArrivalOfLastRecord":"2026-03-01T05:00:02Z","batchSize":3,"streamArn":"s"}}`, past)
	s.world.RelayLetters.Put("r-2", "hello", past)
}

// Proves R3: what lies in the dead letters is shown with what becomes of it, and
// a redrive shows its plan, asks, and does it.
func TestDLQCommands(t *testing.T) {
	s := created(t)
	s.run("", "dlq", "list", "--local")
	s.run("", "dlq", "list", "--local", "--json")
	s.run("", "dlq", "redrive", "--local", "--plan")
	dead(s)
	s.run("", "dlq", "list", "--local")
	s.run("", "dlq", "list", "--local", "--json")
	s.run("", "dlq", "list", "--local", "--queue", "events", "--limit", "1")
	redrive := func(words ...string) []string { return append([]string{"dlq", "redrive", "--local"}, words...) }
	s.run("", redrive("--plan")...)
	s.run("", redrive("--plan", "--prune", "--replay-failed", "--json")...)
	s.run("no\n", redrive("--reason", "ticket 7")...)
	s.run("", redrive("--queue", "relay", "--reason", "ticket 7", "--yes")...)
	s.run("yes\n", redrive("--queue", "events", "--prune", "--replay-failed", "--reason", "ticket 7", "--rate", "10")...)
	s.world.EventLetters.Put("m-8", "hello", s.world.Clock)
	s.world.EventLetters.Task = &webhook.Move{StartedAt: s.world.Clock, Running: true, ToMove: 1}
	s.run("", "dlq", "list", "--local", "--queue", "events")
	s.run("", redrive("--reason", "ticket 7", "--yes", "--json")...)
	s.world.EventLetters.Put("m-9", "hello", s.world.Clock)
	s.world.Lose = func(call string) error {
		if call == "Move" {
			s.world.EventLetters.Task = &webhook.Move{Failure: "CouldNotDetermineMessageSource"}
		}
		return nil
	}
	s.run("", redrive("--reason", "ticket 7", "--yes")...)
	s.world.Fail = func(call string) error {
		if call == "Receive" {
			return operatortest.ErrDown
		}
		return nil
	}
	s.run("", "dlq", "list", "--local")
	s.world.Fail = func(string) error { return nil }
	s.run("", "audit", "list", "--local")
	for _, args := range []string{
		"dlq list --local --queue both", "dlq list --local --limit 0", "dlq redrive --local", "dlq redrive --local --reason x --rate 501",
		"dlq redrive --local --queue relay --reason x --prune", "dlq redrive --local --queue x --plan",
	} {
		if r := s.run("", strings.Fields(args)...); r.code != exitUsage || r.out != "" {
			t.Errorf("dakghar %s: exit %d, output %q; want 2 and nothing", args, r.code, r.out)
		}
	}
	s.wantGolden("dlq")
}

func TestAnInterruptedRedriveSaysHowItGoesOn(t *testing.T) {
	s := created(t)
	dead(s)
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	s.world.Lose = func(call string) error {
		if call == "Move" {
			cancel()
		}
		return nil
	}
	r := s.quietly("", "dlq", "redrive", "--local", "--queue", "events", "--reason", "ticket 7", "--yes")
	if r.code != exitFailed || !strings.Contains(r.err, "goes on by itself") || !strings.Contains(r.err, "the same command goes on") {
		t.Errorf("exit %d, error %q", r.code, r.err)
	}
}

// Proves R3: recorded events are handled once more and what differs is shown;
// with --fail-on-difference the exit code says so too.
func TestShadowCommand(t *testing.T) {
	s := created(t)
	s.quietly("", "send", "--local", "--endpoint", "demo", "--type", "payment_intent.succeeded", "--object-id", "pi_1", "--amount", "1250", "--currency", "EUR", "--json")
	var id webhook.InboxID
	for i, row := range s.world.Rows {
		row.Status, row.Outcome, row.ProcessedAt = webhook.Processed, webhook.Applied, s.world.Clock
		s.world.Rows[i], id = row, i
	}
	shadow := func(words ...string) {
		s.run("", append([]string{"shadow", "--local", "--endpoint", "demo", "--since", "1h", "--reason", "release 12"}, words...)...)
	}
	shadow() // no ledger tells of it: its history is unknown, and it is applied to the rows as they are
	ev := webhook.Event{
		Tenant: "default", Provider: "stripe", Endpoint: "demo", InboxID: id, Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_1"},
	}
	s.world.Items[business.LedgerEntryKey(ev)] = webhook.Item{business.AttrAmount: int64(7), "old": "x\x1b[2J"}
	s.world.Items[business.Key(ev, "left over")] = webhook.Item{"a": true}
	shadow()
	shadow("--json")
	shadow("--fail-on-difference")
	row := s.world.Rows[id]
	row.Outcome = webhook.Stale
	s.world.Rows[id] = row
	shadow("--limit", "1", "--fail-on-difference", "--json")
	delete(s.world.Bodies, row.BodyID)
	shadow("--fail-on-difference")
	s.run("", "shadow", "--local", "--endpoint", "demo", "--since", "1h")
	s.run("", "shadow", "--local", "--endpoint", "nobody", "--since", "1h", "--reason", "x")
	shadow("--limit", "0")
	s.run("", "audit", "list", "--local", "--limit", "1")
	s.wantGolden("shadow")
}

// Proves R3, D5 on the real adapters: the queues that the template names, over the network.
func TestDeadLettersOnARunningStack(t *testing.T) {
	s := startStack(t)
	onStack(t, s, exitDone, first, "endpoint create --local --provider stripe --id demo --secret-file -")
	row := store(t, s, []byte(`{"a":1}`)) // HELD
	env, client := settings(s.Declared().Outputs), sqs.NewFromConfig(s.Config())
	put := func(queue, body string) {
		url := env[queue]
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	put("EVENT_DEAD_LETTERS_URL", fmt.Sprintf(`{"v":1,"inbox_id":%q,"topic":"process"}`, row.ID))
	put("RELAY_FAILURES_URL", `{"DDBStreamBatchInfo":{"shardId":"shardId-1","batchSize":1}}`)
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	for range 2 { // a look takes nothing out
		want("events", column(t, onStack(t, s, exitDone, "", "dlq list --local --queue events --limit 1 --json"), "record"), "letter queue")
	}
	want("all", column(t, onStack(t, s, exitDone, "", "dlq list --local --json"), "record"), "letter queue report queue behind")
	letter, _, _ := strings.Cut(onStack(t, s, exitDone, "", "dlq list --local --queue events --json"), "\n")
	want("becomes", column(t, letter+"\n", "becomes"), "held")
	redrive := "dlq redrive --local --prune --reason ticket --yes --json"
	done := lastLine(onStack(t, s, exitDone, "", redrive))
	want("deleted", column(t, done, "deleted"), "1")
	want("reports", column(t, done, "reports_deleted"), "1")
	want("left", column(t, onStack(t, s, exitDone, "", "dlq list --local --json"), "record"), "queue queue behind")
	want("acts", column(t, onStack(t, s, exitDone, "", "audit list --local --json"), "act"), "dlq redrive dlq redrive endpoint create")
	want("shadow", column(t, onStack(t, s, exitDone, "", "shadow --local --endpoint demo --since 1h --reason ticket --json"), "events"), "0")
}

func lastLine(text string) string {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return all[len(all)-1] + "\n"
}
