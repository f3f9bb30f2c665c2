package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/config"
)

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

// All problems come in one message, so that a deployment is mended once.
func TestAllProblemsAreReportedTogether(t *testing.T) {
	t.Parallel()
	r := config.From(env(map[string]string{"LEASE_SECONDS": "x", "ATTEMPTS_MAX": "0", "INBOX_DAYS": "20"}))
	r.Text("INBOX_TABLE")
	config.ReadWork(r)
	config.ReadLife(r)
	err := r.Err()
	if err == nil {
		t.Fatal("no problem was found")
	}
	for _, part := range []string{"INBOX_TABLE is not set", `LEASE_SECONDS is "x"`, `ATTEMPTS_MAX is "0"`, "INBOX_DAYS is 20, want at least 90", "INBOX_DAYS must be more than BODY_DAYS"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message lacks %q:\n%v", part, err)
		}
	}
}

// Proves D6: the defaults keep identities longer than every redelivery window.
func TestDefaultsHold(t *testing.T) {
	t.Parallel()
	r := config.From(env(nil))
	life := config.ReadLife(r)
	work := config.ReadWork(r)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Life{Inbox: 400 * 24 * time.Hour, Body: 30 * 24 * time.Hour}, life); diff != "" {
		t.Errorf("life (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(config.Coarse{Rate: 1000, Burst: 2000}, config.ReadCoarse(r)); diff != "" {
		t.Errorf("coarse limit (-want +got):\n%s", diff)
	}
	if work.Lease != time.Minute || work.AttemptsMax != 8 {
		t.Errorf("work %+v", work)
	}
}

// Proves P5: a provider's pinned host is replaced on the local stack and nowhere else.
func TestAStandInForProvidersIsRefusedOnAWS(t *testing.T) {
	t.Parallel()
	r := config.From(env(map[string]string{"PROVIDER_API_BASE": "http://127.0.0.1:9000/", "AWS_ENDPOINT_URL": "http://127.0.0.1:8081"}))
	if base := config.ReadProviderBase(r); r.Err() != nil || base("stripe") != "http://127.0.0.1:9000/stripe" {
		t.Errorf("on the local stack: %q, %v", base("stripe"), r.Err())
	}
	if base := config.ReadProviderBase(config.From(env(nil))); base != nil {
		t.Error("without the variable there is a stand-in")
	}
	r = config.From(env(map[string]string{"PROVIDER_API_BASE": "http://127.0.0.1:9000"}))
	config.ReadProviderBase(r)
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "PROVIDER_API_BASE is set, and AWS_ENDPOINT_URL is not") {
		t.Errorf("on AWS: %v", err)
	}
}
