package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/delivery"
	"dakghar/internal/devstack"
	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

// deliveriesOn returns the rows of a stack's outbound half.
func deliveriesOn(s *devstack.Stack) *dynamo.Store {
	env := settings(s.Declared().Outputs)
	return &dynamo.Store{
		DB: dynamodb.NewFromConfig(s.Config()), Wait: dynamo.Sleep, Chance: func() float64 { return 0 },
		Tables: dynamo.Tables{Registry: env["REGISTRY_TABLE"], Delivery: env["DELIVERY_TABLE"], Outbox: env["OUTBOX_TABLE"]},
	}
}

// Proves X4, X6, X10, X11 on the real adapters: DynamoDB, Secrets Manager, KMS, S3
// and SQS as the SDK speaks to them, and the template's names for everything.
func TestTheOutboundCommandsWorkOnARunningStack(t *testing.T) {
	s := startStack(t)
	run := func(stdin, line string) string { t.Helper(); return onStack(t, s, exitDone, stdin, line) }
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	credential := filepath.Join(t.TempDir(), "credential.txt")
	if err := os.WriteFile(credential, []byte("Bearer made-up-for-this-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	made := run("", "subscription create --local --id partner --url http://127.0.0.1:9/hooks --credential-header Authorization --credential-file "+credential+" --json")
	secret := column(t, made, "signing_secret")
	onStack(t, s, exitFailed, "", "subscription create --local --id partner --url http://127.0.0.1:9/hooks")
	onStack(t, s, exitUsage, "", "subscription create --local --id back --url "+s.FrontDoorURL()+"/in/stripe/demo")
	onStack(t, s, exitUsage, "", "subscription create --local --id back --to-queue "+settings(s.Declared().Outputs)["EVENT_QUEUE_URL"])
	want("rotated", column(t, run("", "subscription rotate partner --local --json"), "key_id"), "k2")
	want("keys", column(t, run("", "subscription keys partner --local --json"), "key_id"), "k2 k1")
	wantVersion(t, s, "partner", 1, secret)
	onStack(t, s, exitFailed, "", "subscription keys partner --local --public")
	run("", "subscription create --local --id pair --url https://hooks.partner.com/ --ed25519 --json")
	want("rotated", column(t, run("", "subscription rotate pair --local --json"), "key_id"), "k2")
	var published struct {
		Keys []struct {
			KeyID string `json:"kid"`
		} `json:"keys"`
	}
	if err := json.Unmarshal([]byte(run("", "subscription keys pair --local --public")), &published); err != nil || len(published.Keys) != 2 {
		t.Errorf("published: %v, %+v", err, published)
	}

	onStack(t, s, exitFailed, "", "subscription test partner --local --wait 0s") // nobody works here
	store := deliveriesOn(s)
	sub, _, err := store.Subscription(t.Context(), "partner")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Millisecond).UTC()
	effect := webhook.Effect{ID: "ev_1", InboxID: "in_1", Tenant: "default", Type: "payment.succeeded", BodyID: "bd_1", Digest: "d", BodyExpiresAt: now.Add(30 * 24 * time.Hour), CreatedAt: now}
	dead := delivery.New(effect, sub, now)
	effect.ID = "ev_2"
	waits := delivery.New(effect, sub, now)
	for _, d := range []delivery.Delivery{dead, waits} {
		if ok, err := store.CreateDelivery(t.Context(), d); err != nil || !ok {
			t.Fatalf("create: %v, %v", ok, err)
		}
	}
	if ok, err := store.ChangeDelivery(t.Context(), dead.Kill(now, 404, "status_404")); err != nil || !ok {
		t.Fatalf("kill: %v, %v", ok, err)
	}
	want("dead", column(t, run("", "delivery dead --local --json"), "delivery_id"), string(dead.ID))
	want("waiting", column(t, run("", "delivery list --local --subscription partner --status PENDING --json"), "delivery_id"), string(waits.ID))
	replay := run("", "delivery replay "+string(dead.ID)+" --local --reason ticket --json")
	want("replayed", column(t, replay, "replay_of"), string(dead.ID))
	want("linked", column(t, run("", "delivery show "+string(dead.ID)+" --local --json"), "replayed_as"), column(t, replay, "delivery_id"))
	want("cancelled", column(t, run("", "delivery cancel --all --local --subscription partner --reason ticket --yes --json"), "record"), "plan job")
	want("states", column(t, run("", "delivery list --local --subscription partner --status CANCELLED --json"), "status"), "CANCELLED CANCELLED")
	want("paused", column(t, run("", "subscription pause partner --local --json"), "state"), "paused")
	want("planned", column(t, run("", "subscription resume partner --local --plan --json"), "matched"), "0")
	run("", "subscription resume partner --local --yes")
	want("deleted", column(t, run("", "subscription delete partner --local --yes --json"), "state_why"), "deleted")
	want("all", column(t, run("", "subscription list --local --json"), "state"), "active stopped")

	for _, line := range []string{"subscription show partner --local --json", "subscription list --local --json", "audit list --local --json", "subscription keys partner --local"} {
		if out := run("", line); strings.Contains(out, secret) || strings.Contains(out, "made-up-for-this-test") {
			t.Errorf("dakghar %s prints a secret", line)
		}
	}
}

// wantVersion compares a key in Secrets Manager, which is kept alive by a label of
// its own; at is its place among the subscription's keys, the newest first.
func wantVersion(t *testing.T, s *devstack.Stack, id delivery.SubscriptionID, at int, want string) {
	t.Helper()
	sub, found, err := deliveriesOn(s).Subscription(t.Context(), id)
	if err != nil || !found {
		t.Fatalf("%v, %v", found, err)
	}
	client := secretsmanager.NewFromConfig(s.Config())
	version := string(sub.Keys[at].Version)
	value, err := client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: &sub.Secret, VersionId: &version})
	if err != nil {
		t.Fatal(err)
	}
	if *value.SecretString != want || !strings.Contains(strings.Join(value.VersionStages, " "), "dk-"+version) {
		t.Errorf("another secret, or the labels %v", value.VersionStages)
	}
}
