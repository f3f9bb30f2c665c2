package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/business"
	"dakghar/internal/devstack"
	"dakghar/internal/dynamo"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// binaries is where TestMain built the functions, with the crash points in.
var binaries string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "dakghar-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"Ingress", "Relay", "Processor", "Dispatcher", "Reconciler", "Canary"} {
		out := filepath.Join(dir, name+"Function", "bootstrap")
		build := exec.Command("go", "build", "-tags", "lambda.norpc,crashtest", "-o", out, "dakghar/functions/"+strings.ToLower(name))
		if said, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%w: %s", err, said)
		}
	}
	if err := writeTemplate(filepath.Join(dir, "template.yaml")); err != nil {
		return 0, err
	}
	binaries = dir
	return m.Run(), nil
}

// visibility is how soon a killed worker's message comes back: later than the
// shortest lease, as in the template the one is later than the other.
const visibility, shortestLease = 25, "20"

// The same for a delivery, whose attempt takes a second at most.
const deliveryVisibility, attemptSeconds, shortestDeliveryLease = 36, "1", "31"

// writeTemplate copies the template with shorter visibility timeouts, which are
// the one thing that a test would have to wait minutes for.
func writeTemplate(path string) error {
	text, err := os.ReadFile("../../template.yaml")
	if err != nil {
		return err
	}
	shorter := string(text)
	for from, to := range map[int]int{180: visibility, 360: deliveryVisibility} {
		was := fmt.Sprint("VisibilityTimeout: ", from)
		if strings.Count(shorter, was) != 1 {
			return fmt.Errorf("the template's %s is not where it was", was)
		}
		shorter = strings.Replace(shorter, was, fmt.Sprint("VisibilityTimeout: ", to), 1)
	}
	return os.WriteFile(path, []byte(shorter), 0o600)
}

// system is a running stack with one Stripe endpoint.
type system struct {
	t       *testing.T
	stack   *devstack.Stack
	store   *dynamo.Store
	adapter *provider.Adapter
	key     signature.Key
	log     *lockedBuffer
}

const secretText = "whsec_test_secret_for_the_whole"

func start(t *testing.T, env map[string]map[string]string) *system {
	t.Helper()
	return startWith(t, env, nil)
}

// startWith starts a stack with other parameters than the template's own.
func startWith(t *testing.T, env map[string]map[string]string, parameters map[string]string) *system {
	t.Helper()
	s := &system{t: t, log: &lockedBuffer{}}
	stack, err := devstack.Start(t.Context(), devstack.Options{
		TemplatePath: filepath.Join(binaries, "template.yaml"), BuildDir: binaries, HTTPAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0",
		FunctionEnv: env, Parameters: parameters, ScheduleEvery: 5 * time.Second, Log: s.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stack.Stop()
		wantNoneDenied(t, stack)
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	s.stack = stack
	s.open()
	return s
}

// wantNoneDenied checks that the roles of the template let the functions do their
// work. A program may well survive a denial here that it would not on AWS.
func wantNoneDenied(t *testing.T, s *devstack.Stack) {
	t.Helper()
	for _, line := range s.Denied() {
		t.Error(line)
	}
}

// open makes the endpoint, and the eyes of the test.
func (s *system) open() {
	s.t.Helper()
	ctx := s.t.Context()
	ref := func(id string) string { return s.stack.Declared().Resources[id].Ref }
	s.store = &dynamo.Store{
		DB: dynamodb.NewFromConfig(s.stack.Config()), Chance: rand.Float64, Wait: dynamo.Sleep,
		Tables: dynamo.Tables{
			Inbox: ref("InboxTable"), Outbox: ref("OutboxTable"), Business: ref("BusinessTable"), Registry: ref("RegistryTable"), Delivery: ref("DeliveryTable"),
		},
	}
	registry, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.adapter, _ = registry.Lookup("stripe")
	name := "dakghar-local/endpoint/demo"
	made, err := secretsmanager.NewFromConfig(s.stack.Config()).CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretString: aws.String(secretText)})
	if err != nil {
		s.t.Fatal(err)
	}
	version := webhook.KeyVersion(aws.ToString(made.VersionId))
	decoded, err := s.adapter.Scheme.DecodeKey(secretText)
	if err != nil {
		s.t.Fatal(err)
	}
	s.key = signature.Key{Version: string(version), Secret: decoded}
	now := time.Now()
	ok, err := s.store.CreateEndpoint(ctx, webhook.Endpoint{
		ID: "demo", Provider: "stripe", Tenant: "acme", Scope: "demo", Secret: name, Overlap: time.Hour, CreatedAt: now,
		Keys: []webhook.TrustedKey{{Version: version, AddedAt: now, FirstMatch: now}},
	})
	if err != nil || !ok {
		s.t.Fatalf("endpoint: %v, %v", ok, err)
	}
}

func payment(id string) provider.SampleOptions {
	return provider.SampleOptions{Type: "payment_intent.succeeded", EventID: id, ObjectID: "pi_" + id, Amount: 1250, Currency: "EUR"}
}

func inboxID(event string) webhook.InboxID {
	return webhook.DeriveInboxID("demo", "stripe", webhook.EventID(event))
}

// post signs and sends one event. Status 0 means that no answer came.
func (s *system) post(ctx context.Context, o provider.SampleOptions) (status int, result string) {
	s.t.Helper()
	sample, err := s.adapter.Sample(o)
	if err != nil {
		s.t.Fatal(err)
	}
	headers := signature.Header{"content-type": "application/json"}
	maps.Copy(headers, sample.Header)
	signed, err := s.adapter.Scheme.Sign(signature.Request{Method: http.MethodPost, Header: headers, Body: sample.Body}, s.key, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	maps.Copy(headers, signed)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.stack.FrontDoorURL()+"/in/stripe/demo", bytes.NewReader(sample.Body))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	var said struct {
		Result string `json:"result"`
	}
	body, _ := io.ReadAll(resp.Body)
	_ = json.Unmarshal(body, &said)
	return resp.StatusCode, said.Result
}

// postUntilAcknowledged is a provider's retry: it sends until it sees a 2xx.
func (s *system) postUntilAcknowledged(o provider.SampleOptions) (answers []int) {
	s.t.Helper()
	for range 20 {
		status, _ := s.post(s.t.Context(), o)
		answers = append(answers, status)
		if status >= 200 && status < 300 {
			return answers
		}
		if dynamo.Sleep(s.t.Context(), 250*time.Millisecond) != nil {
			break
		}
	}
	s.t.Fatalf("never acknowledged: %v", answers)
	return nil
}

// await polls a fact of the tables until it holds; the test's own deadline ends it.
func (s *system) await(what string, within time.Duration, holds func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	for !holds() {
		if dynamo.Sleep(ctx, 20*time.Millisecond) != nil {
			s.t.Fatalf("%s: not within %s", what, within)
		}
	}
}

func (s *system) row(event string) webhook.Inbox {
	s.t.Helper()
	row, _, err := s.store.Inbox(s.t.Context(), inboxID(event))
	if err != nil {
		s.t.Fatal(err)
	}
	return row
}

// wantAppliedOnce checks the end of one event: its row, its ledger, no promise.
func (s *system) wantAppliedOnce(event string, within time.Duration) {
	s.t.Helper()
	s.await(event+" is processed", within, func() bool { return s.row(event).Status.Terminal() })
	if row := s.row(event); row.Status != webhook.Processed || row.Outcome != webhook.Applied {
		s.t.Errorf("%s ended %s %s (%s)", event, row.Status, row.Outcome, row.LastError)
	}
	key := business.LedgerBalanceKey(webhook.Event{
		Tenant: "acme", Provider: "stripe", Endpoint: "demo", InboxID: inboxID(event),
		Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: "pi_" + event},
	})
	balance, _, err := s.store.Get(s.t.Context(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	if balance["balance_EUR"] != int64(1250) || balance[business.AttrEntries] != int64(1) {
		s.t.Errorf("%s: balance %v after %v entries, want 1250 after 1", event, balance["balance_EUR"], balance[business.AttrEntries])
	}
}

// promises counts the rows of the outbox.
func (s *system) promises() int {
	s.t.Helper()
	out, err := s.store.DB.Scan(s.t.Context(), &dynamodb.ScanInput{TableName: &s.store.Tables.Outbox, ConsistentRead: aws.Bool(true)})
	if err != nil {
		s.t.Fatal(err)
	}
	return len(out.Items)
}
