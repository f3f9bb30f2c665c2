package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"dakghar/internal/body"
	"dakghar/internal/devstack"
	"dakghar/internal/devstack/lambda"
	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

// startStack runs the embedded services with the template's resources. Its
// functions do nothing; the front door's accepts everything.
func startStack(t *testing.T) *devstack.Stack {
	t.Helper()
	return startStackWith(t, func(*devstack.Options) {})
}

// startStackWith is [startStack] with other options.
func startStackWith(t *testing.T, change func(*devstack.Options)) *devstack.Stack {
	t.Helper()
	accepts := func(context.Context, func(string) string) (lambda.Handler, error) {
		return func(context.Context, []byte) ([]byte, error) {
			return []byte(`{"statusCode":200,"headers":{"content-type":"application/json"},"body":"{\"result\":\"accepted\",\"inbox_id\":\"in_1\"}"}`), nil
		}, nil
	}
	o := devstack.Options{
		TemplatePath: "../../template.yaml", HTTPAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0",
		InProcess: map[string]devstack.Factory{
			"IngressFunction": accepts, "RelayFunction": accepts, "ProcessorFunction": accepts, "ReconcilerFunction": accepts,
			"DispatcherFunction": accepts,
		},
	}
	change(&o)
	s, err := devstack.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// onStack runs a command on the stack, over the network, and returns what it printed.
func onStack(t *testing.T, s *devstack.Stack, wantCode int, stdin, line string) string {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{
		in: strings.NewReader(stdin), out: &out, err: &errs, now: time.Now, connect: connect, compare: connectComparison, backfill: connectBackfill, dev: runDev,
		getenv: func(name string) string { return map[string]string{"DAKGHAR_LOCAL_URL": s.AWSURL()}[name] },
	}
	if code := a.run(t.Context(), strings.Fields(line)); code != wantCode {
		t.Fatalf("dakghar %s: exit %d, want %d; it said %s%s", line, code, wantCode, out.String(), errs.String())
	}
	for _, secret := range []string{first, second} {
		if strings.Contains(out.String()+errs.String(), secret) {
			t.Errorf("dakghar %s shows a secret", line)
		}
	}
	return out.String()
}

// objects reads one JSON object a line.
func objects(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q is no JSON object: %v", line, err)
		}
		all = append(all, o)
	}
	return all
}

// column returns one member of each object.
func column(t *testing.T, out, member string) string {
	t.Helper()
	var values []string
	for _, o := range objects(t, out) {
		v, ok := o[member]
		if !ok {
			t.Fatalf("no member %q in %v", member, o)
		}
		values = append(values, fmt.Sprint(v))
	}
	return strings.Join(values, " ")
}

// Proves S2, S4 and R3 on the real adapters: DynamoDB, Secrets Manager, KMS and
// S3 as the SDK speaks to them, and the template's names for everything.
func TestTheCommandWorksOnARunningStack(t *testing.T) {
	s := startStack(t)
	run := func(stdin, line string) string { t.Helper(); return onStack(t, s, exitDone, stdin, line) }
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	file := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(file, []byte(second+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	create := "endpoint create --local --provider stripe --id demo --secret-file - --json"
	want("created", column(t, run(first, create), "existed"), "false")
	want("created again", column(t, run(first, create), "existed"), "true")
	onStack(t, s, exitFailed, second, create)
	want("endpoints", column(t, run("", "endpoint list --local --json"), "url"), s.FrontDoorURL()+"/in/stripe/demo")

	want("sent", column(t, run("", "send --local --endpoint demo --type payment_intent.succeeded --json"), "result"), "accepted")

	want("rotated", column(t, run("", "secret rotate --local --endpoint demo --json --secret-file "+file), "existed"), "false")
	want("rotated again", column(t, run("", "secret rotate --local --endpoint demo --json --secret-file "+file), "existed"), "true")
	list := "secret list --local --endpoint demo --json"
	want("keys", column(t, run("", list), "trust"), "trusted trusted")
	onStack(t, s, exitFailed, "", "secret finish --local --endpoint demo --yes")              // the new key has not matched
	onStack(t, s, exitFailed, "", "secret retire --local --endpoint demo --version k1 --yes") // which speaks against this as well
	want("retired", column(t, run("", "secret retire --local --endpoint demo --version k1 --yes --now --json"), "label_kept"), "false")
	want("keys", column(t, run("", list), "trust"), "trusted retired")
	run("", "secret retire --local --endpoint demo --version k2 --yes --now")
	onStack(t, s, exitFailed, second, "secret put --local --endpoint demo --secret-file -") // it was retired
	run(first+"x", "secret put --local --endpoint demo --secret-file -")
	want("keys", column(t, run("", list), "trust"), "trusted retired retired")

	forget(t, s, 20)
	run(second+"x", "secret rotate --local --endpoint demo --secret-file -")

	row := store(t, s, []byte(`{"a":1}`))
	id := string(row.ID)
	want("events", column(t, run("", "inbox list --local --endpoint demo --json"), "inbox_id"), id)
	want("failed", run("", "inbox list --local --status failed --json"), "")
	want("status", column(t, run("", "inbox show "+id+" --local --json"), "status"), "HELD")
	want("body", run("", "inbox show "+id+" --local --body --reason ticket"), `{"a":1}`)

	acts := run("", "audit list --local --json")
	want("who", column(t, acts, "who"), "local local local local local local local")
	want("acts", column(t, acts, "act"), "inbox body secret rotate secret put secret retire secret retire secret rotate endpoint create")

	release := "inbox release --all --local --endpoint demo --since 1h --kind none --json"
	want("planned", column(t, run("", release+" --plan"), "matched"), "0")
	release = "inbox release --all --local --since 1h --json --yes --reason ticket"
	want("released", column(t, run("", release), "record"), "plan job")
	want("status", column(t, run("", "inbox list --local --json --status received"), "inbox_id"), id)
	story := run("", "inbox show "+id+" --local --json")
	if outbox, ok := objects(t, story)[0]["outbox"].(map[string]any); !ok || outbox["generation"] != 1.0 {
		t.Errorf("its promise: %v", objects(t, story)[0]["outbox"])
	}
	want("acts on it", column(t, run("", "audit list --local --json --subject "+id), "act"), "inbox release inbox body")
	want("jobs", column(t, run("", "job list --local --json"), "done"), "1")

	file = filepath.Join(t.TempDir(), "api.txt")
	if err := os.WriteFile(file, []byte("rk_test_7Hq2Zx9Lw4Vb1Nc8Mk5Jd3Gf6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	update := "endpoint update demo --local --rate 50 --policy payment.succeeded=fetch --json --api-secret-file " + file
	want("updated", column(t, run("", update), "existed"), "false")
	want("updated again", column(t, run("", update), "existed"), "true")
	want("paused", column(t, run("", "endpoint pause demo --local --json"), "existed"), "false")
	want("waiting", column(t, run("", "endpoint resume demo --local --plan --json"), "matched"), "1")
}

// forget adds retired versions that the secret store does not hold any more.
func forget(t *testing.T, s *devstack.Stack, n int) {
	t.Helper()
	registry := &dynamo.Store{DB: dynamodb.NewFromConfig(s.Config()), Tables: dynamo.Tables{Registry: settings(s.Declared().Outputs)["REGISTRY_TABLE"]}}
	e, _, err := registry.Endpoint(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		e.Retired = append(e.Retired, webhook.KeyVersion(fmt.Sprintf("%036d", i)))
	}
	if ok, err := registry.UpdateEndpoint(t.Context(), e); err != nil || !ok {
		t.Fatalf("update: %v, error %v", ok, err)
	}
}

// store keeps an event that nobody works on, as the front door would.
func store(t *testing.T, s *devstack.Stack, raw []byte) webhook.Inbox {
	t.Helper()
	cfg, env := s.Config(), settings(s.Declared().Outputs)
	db := dynamodb.NewFromConfig(cfg)
	digest := webhook.DigestOf(raw)
	now := time.Now().Truncate(time.Millisecond).UTC()
	row := webhook.Inbox{
		ID: webhook.DeriveInboxID("demo", "stripe", "evt_1"), Provider: "stripe", Endpoint: "demo", Tenant: "default", EventID: "evt_1",
		ReceivedAt: now, BodyID: webhook.DeriveBodyID("demo", digest), Digest: digest, Status: webhook.Held,
		BodyExpiresAt: now.Add(30 * 24 * time.Hour),
	}
	bodies := body.New(body.Config{
		Dynamo: db, KMS: kms.NewFromConfig(cfg), S3: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
		Table: env["BODY_TABLE"], Bucket: env["BODY_BUCKET"], KeyID: env["DATA_KEY_ID"],
	})
	if _, err := bodies.Put(t.Context(), webhook.Body{ID: row.BodyID, Tenant: row.Tenant, Raw: raw, InboxID: row.ID, PutID: "p", At: now}); err != nil {
		t.Fatal(err)
	}
	inbox := &dynamo.Store{DB: db, Tables: dynamo.Tables{Inbox: env["INBOX_TABLE"]}, Wait: dynamo.Sleep, Chance: func() float64 { return 0 }}
	if existing, err := inbox.Accept(t.Context(), row, nil); err != nil || existing != nil {
		t.Fatalf("accept: existing %v, error %v", existing, err)
	}
	return row
}
