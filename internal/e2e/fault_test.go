package e2e_test

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"dakghar/internal/devstack"
	"dakghar/internal/devstack/fault/live"
	"dakghar/internal/dynamo"
	"dakghar/internal/operator"
)

// TestFaultsLive shows every fault of `dakghar dev --fault` on the real programs,
// as a person would see it; those that wait for a lease only with CRASH=all. They
// share one stack, so they run one after the other.
//
// Proves A2, A3, D4, D5, O1, O3, W1, W2, W4, R1, R3, T4, T5.
func TestFaultsLive(t *testing.T) {
	log := &lockedBuffer{}
	provider, err := live.ServeProvider()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Stop)
	stack, err := devstack.Start(t.Context(), live.Prepare(devstack.Options{
		TemplatePath: "../../template.yaml", BuildDir: binaries, HTTPAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", Log: log,
	}, provider.URL()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stack.Stop()
		wantNoneDenied(t, stack)
	})
	said := &lockedBuffer{}
	site, err := live.Open(t.Context(), live.Config{Stack: stack, Provider: provider, Operator: operatorOf(stack), Out: said, Now: time.Now, Chance: mathrand.Float64})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range live.List() {
		if t.Failed() {
			break // what a fault left behind would be the next one's
		}
		t.Run(f.Name, func(t *testing.T) {
			if f.Slow && os.Getenv("CRASH") != "all" {
				t.Skip("takes tens of seconds: a lease has to run out. CRASH=all shows it")
			}
			if _, err := site.Show(t.Context(), f); err != nil {
				t.Errorf("%v\n%s", err, said.String())
			}
		})
	}
	if t.Failed() {
		t.Log(log.String())
	}
}

// operatorOf acts on a stack's events as the command does.
func operatorOf(s *devstack.Stack) *operator.Operator {
	ref := func(id string) string { return s.Declared().Resources[id].Ref }
	store := &dynamo.Store{
		DB: dynamodb.NewFromConfig(s.Config()), Chance: mathrand.Float64, Wait: dynamo.Sleep,
		Tables: dynamo.Tables{Inbox: ref("InboxTable"), Outbox: ref("OutboxTable"), Business: ref("BusinessTable"), Registry: ref("RegistryTable")},
	}
	return &operator.Operator{
		Registry: store, Inbox: store, Now: time.Now, NewID: rand.Text, KeepInbox: time.Hour,
		Who: func(context.Context) (string, error) { return "the test", nil },
	}
}
