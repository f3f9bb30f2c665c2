package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"dakghar/internal/body"
	"dakghar/internal/devstack"
	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

// Proves D6, R3: plan, question, record and refusals of erasing and of legal holds.
func TestEraseCommands(t *testing.T) {
	s := created(t)
	for i, object := range []string{"cus_1", "cus_1", "cus_2", "cus_1", "cus_1"} {
		id := webhook.InboxID(fmt.Sprintf("in_%d", i))
		row := webhook.Inbox{
			ID: id, Provider: "stripe", Endpoint: "demo", Tenant: "default", EventID: webhook.EventID(fmt.Sprintf("evt_%d", i)), EventType: "charge.failed", ObjectID: object,
			Status: webhook.Processed, Outcome: webhook.Applied, Fence: 2, ReceivedAt: s.world.Clock.Add(-time.Duration(i) * time.Hour),
			ProcessedAt: s.world.Clock, ExpiresAt: s.world.Clock.Add(400 * 24 * time.Hour), BodyID: webhook.BodyID("bd_" + id), BodyExpiresAt: s.world.Clock.Add(24 * time.Hour),
		}
		s.world.Rows[id], s.world.Bodies[row.BodyID] = row, []byte("raw")
	}
	open := s.world.Rows["in_4"]
	open.Status, open.Outcome, open.ProcessedAt, open.ExpiresAt = webhook.Retry, "", time.Time{}, time.Time{}
	s.world.Rows["in_4"] = open

	s.run("", "legal-hold", "list", "--local")
	s.run("", "legal-hold", "set", "in_1", "--local")
	s.run("", "legal-hold", "set", "in_1", "--local", "--reason", "case 14")
	s.run("", "legal-hold", "set", "in_1", "--local", "--reason", "case 14", "--json")
	s.run("", "legal-hold", "set", "in_4", "--local", "--reason", "case 14")
	s.run("", "legal-hold", "list", "--local")
	s.run("", "legal-hold", "list", "--local", "--json")
	s.run("", "legal-hold", "list", "--local", "--ids")

	s.run("", "erase", "in_0", "--local", "--plan")
	s.run("", "erase", "in_0", "--local")
	s.run("no\n", "erase", "in_0", "--local", "--reason", "request 77")
	s.run("yes\n", "erase", "in_0", "--local", "--reason", "request 77")
	s.run("", "erase", "in_0", "--local", "--reason", "request 77", "--yes", "--json")
	s.run("", "erase", "in_1", "--local", "--reason", "request 77", "--yes")
	s.run("", "erase", "in_4", "--local", "--reason", "request 77", "--yes")
	s.run("", "erase", "--local", "--endpoint", "demo", "--object", "cus_1", "--plan")
	s.run("", "erase", "--local", "--endpoint", "demo", "--object", "cus_1", "--plan", "--json")
	s.run("yes\n", "erase", "--local", "--endpoint", "demo", "--object", "cus_1", "--reason", "request 78")
	s.run("", "erase", "--local", "--all", "--kind", "charge.failed", "--reason", "request 79", "--yes", "--json")
	s.run("", "inbox", "show", "in_0", "--local")
	s.run("", "inbox", "show", "in_0", "--local", "--body", "--reason", "to see")

	s.world.Bodies["bd_in_0"] = []byte("raw")
	s.run("", "erase", "--again", "--local", "--since", "24h", "--plan", "--json")
	s.run("no\n", "erase", "--again", "--local", "--since", "24h", "--reason", "restored")
	s.run("yes\n", "erase", "--again", "--local", "--since", "24h", "--reason", "restored")
	s.run("", "erase", "--again", "--local", "--since", "24h", "--reason", "restored", "--yes", "--json")
	s.run("", "legal-hold", "clear", "in_1", "--local")
	s.run("", "legal-hold", "clear", "in_1", "--local", "--reason", "closed")
	s.run("", "legal-hold", "list", "--local", "--json")
	s.run("", "audit", "list", "--local")
	if left := fmt.Sprint(len(s.world.Bodies), len(s.world.Copies)); left != "2 0" {
		t.Errorf("bodies and copies that are left: %s; want those of the open event and of the one that was held", left)
	}
	for _, line := range []string{
		"erase --local",
		"erase in_2 --local --all",
		"erase in_2 --local --kind x",
		"erase in_2 --local --yes",
		"erase --local --object cus_1",
		"erase --local --object cus_1 --again",
		"erase --local --again --kind x",
		"erase --local --all --status RETRY --reason x",
		"erase --local --all",
		"erase --local --all --reason x --rate 0",
		"legal-hold set --local",
		"legal-hold clear --local",
		"legal-hold list extra --local",
		"legal-hold list --local --ids --json",
	} {
		if r := s.run("", strings.Fields(line)...); r.code != exitUsage {
			t.Errorf("dakghar %s: exit %d, want 2", line, r.code)
		}
	}
	s.wantGolden("erase")
}

// Proves D6, R3 on the real adapters: the hold outlives the body, the erasing
// leaves the row alone, a restored row and body are erased again.
func TestErasingOnARunningStack(t *testing.T) {
	s := startStack(t)
	run := func(stdin, line string) string { t.Helper(); return onStack(t, s, exitDone, stdin, line) }
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	run(first, "endpoint create --local --provider stripe --id demo --secret-file - --json")
	raw := []byte(`{"a":1}`)
	row := store(t, s, raw)
	id := string(row.ID)
	onStack(t, s, exitFailed, "", "erase "+id+" --local --reason r --yes") // it is HELD
	run("", "inbox fail "+id+" --local --json")

	want("held", column(t, run("", "legal-hold set "+id+" --local --reason case --json"), "legal_hold"), "true")
	want("holds", column(t, run("", "legal-hold list --local --json"), "inbox_id"), id)
	onStack(t, s, exitFailed, "", "erase "+id+" --local --reason r --yes")
	onStack(t, s, exitFailed, "", "inbox replay "+id+" --local")
	want("expires", column(t, run("", "inbox show "+id+" --local --json"), "expires_at"), "<nil>")
	removeBody(t, s, row)
	want("body", run("", "inbox show "+id+" --local --body --reason case"), string(raw))
	want("cleared", column(t, run("", "legal-hold clear "+id+" --local --reason closed --json"), "legal_hold"), "false")
	want("holds", run("", "legal-hold list --local --json"), "")

	before, _, err := rowsOf(s).Inbox(t.Context(), row.ID)
	if err != nil {
		t.Fatal(err)
	}
	putBody(t, s, row, raw)
	erased := run("", "erase --local --endpoint demo --all --reason r --yes --json")
	want("erased", column(t, erased, "record"), "plan job")
	onStack(t, s, exitFailed, "", "inbox show "+id+" --local --body --reason r")
	onStack(t, s, exitFailed, "", "inbox replay "+id+" --local")

	putBody(t, s, row, raw) // a restore
	restoreRow(t, s, before)
	want("again", column(t, run("", "erase --local --again --since 1h --reason r --yes --json"), "erased"), "1")
	want("again", column(t, run("", "erase --local --again --since 1h --reason r --yes --json"), "erased"), "0")
	onStack(t, s, exitFailed, "", "inbox show "+id+" --local --body --reason r")
	onStack(t, s, exitFailed, "", "legal-hold set "+id+" --local --reason case")
	want("acts on it", column(t, run("", "audit list --local --json --subject "+id), "act"),
		"inbox body erase inbox body erase legal-hold clear inbox body legal-hold set inbox fail")
}

func rowsOf(s *devstack.Stack) *dynamo.Store {
	env := settings(s.Declared().Outputs)
	return &dynamo.Store{DB: dynamodb.NewFromConfig(s.Config()), Tables: dynamo.Tables{Inbox: env["INBOX_TABLE"]}, Wait: dynamo.Sleep, Chance: func() float64 { return 0 }}
}

func bodiesOf(s *devstack.Stack) *body.Store {
	cfg, env := s.Config(), settings(s.Declared().Outputs)
	return body.New(body.Config{
		Dynamo: dynamodb.NewFromConfig(cfg), KMS: kms.NewFromConfig(cfg), S3: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
		Table: env["BODY_TABLE"], Bucket: env["BODY_BUCKET"], KeyID: env["DATA_KEY_ID"],
	})
}

func putBody(t *testing.T, s *devstack.Stack, row webhook.Inbox, raw []byte) {
	t.Helper()
	if _, err := bodiesOf(s).Put(t.Context(), webhook.Body{ID: row.BodyID, Tenant: row.Tenant, Raw: raw, InboxID: row.ID, PutID: "p", At: row.ReceivedAt}); err != nil {
		t.Fatal(err)
	}
}

func removeBody(t *testing.T, s *devstack.Stack, row webhook.Inbox) {
	t.Helper()
	if err := bodiesOf(s).Remove(t.Context(), row.BodyID, "p"); err != nil {
		t.Fatal(err)
	}
}

// restoreRow brings a row back as it was read.
func restoreRow(t *testing.T, s *devstack.Stack, row webhook.Inbox) {
	t.Helper()
	store := rowsOf(s)
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: string(row.ID)}}
	if _, err := dynamodb.NewFromConfig(s.Config()).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &store.Tables.Inbox, Key: key}); err != nil {
		t.Fatal(err)
	}
	if existing, err := store.Accept(t.Context(), row, nil); err != nil || existing != nil {
		t.Fatalf("existing %v, error %v", existing, err)
	}
}
