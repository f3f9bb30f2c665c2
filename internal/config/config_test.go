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

// Proves X2: the lease outlasts an attempt with its recording, whatever is configured.
func TestADeliverysLeaseOutlastsItsAttempt(t *testing.T) {
	t.Parallel()
	r := config.From(env(nil))
	d := config.ReadDelivery(r)
	if r.Err() != nil || d.Attempt != 25*time.Second || d.Lease != time.Minute {
		t.Errorf("defaults: %+v, %v", d, r.Err())
	}
	r = config.From(env(map[string]string{"DELIVERY_ATTEMPT_SECONDS": "1", "DELIVERY_LEASE_SECONDS": "31"}))
	if d := config.ReadDelivery(r); r.Err() != nil || d.Attempt != time.Second || d.Lease != 31*time.Second {
		t.Errorf("the shortest: %+v, %v", d, r.Err())
	}
	r = config.From(env(map[string]string{"DELIVERY_LEASE_SECONDS": "54"}))
	config.ReadDelivery(r)
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "DELIVERY_LEASE_SECONDS is 54, want at least 55") {
		t.Errorf("a lease that ends with its attempt: %v", err)
	}
}

// Proves X9: this machine is reached on the local stack alone. A function on AWS
// whose services were on its own machine would have none.
func TestLoopbackIsRefusedOnAWS(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		allow, services string
		want            bool
		problem         string
	}{
		{"", "", false, ""},
		{"", "http://127.0.0.1:8081", false, ""},
		{"false", "", false, ""},
		{"true", "http://127.0.0.1:8081", true, ""},
		{"true", "http://localhost:8081", true, ""},
		{"true", "http://[::1]:8081", true, ""},
		{"true", "", false, "ALLOW_LOOPBACK is set"},
		{"true", "https://vpce-1.dynamodb.eu-central-1.vpce.amazonaws.com", false, "ALLOW_LOOPBACK is set"},
		{"true", "http://127.0.0.1.example.com", false, "ALLOW_LOOPBACK is set"},
		{"true", "http://10.0.0.1:8081", false, "ALLOW_LOOPBACK is set"},
		{"true", "http://127.0.0.1:80:81", false, "ALLOW_LOOPBACK is set"},
		{"yes", "http://127.0.0.1:8081", false, `ALLOW_LOOPBACK is "yes"`},
	} {
		r := config.From(env(map[string]string{"ALLOW_LOOPBACK": tt.allow, "AWS_ENDPOINT_URL": tt.services}))
		got := config.ReadLoopback(r)
		if err := r.Err(); got != tt.want || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("ALLOW_LOOPBACK=%q with services at %q: %v, %v", tt.allow, tt.services, got, err)
		}
	}
}

// Deliveries inside AWS go where the operator's lists say, and never to a queue
// of the stack's own.
func TestSinksAreTheOperatorsList(t *testing.T) {
	t.Parallel()
	const queue, fifo, bus = "arn:aws:sqs:eu-central-1:123456789012:orders", "arn:aws-cn:sqs:cn-north-1:123456789012:orders.fifo", "arn:aws:events:eu-central-1:123456789012:event-bus/orders"
	r := config.From(env(map[string]string{"SINK_QUEUE_ARNS": queue + "," + fifo, "SINK_BUS_ARNS": bus}))
	want := config.Sinks{
		Queues: []string{"https://sqs.eu-central-1.amazonaws.com/123456789012/orders", "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders.fifo"},
		Buses:  []string{bus},
	}
	if diff := cmp.Diff(want, config.ReadSinks(r)); diff != "" || r.Err() != nil {
		t.Errorf("%v (-want +got):\n%s", r.Err(), diff)
	}
	if diff := cmp.Diff(config.Sinks{}, config.ReadSinks(config.From(env(nil)))); diff != "" {
		t.Errorf("without a list (-want +got):\n%s", diff)
	}
	r = config.From(env(map[string]string{
		"SINK_QUEUE_ARNS": "https://sqs.eu-central-1.amazonaws.com/123456789012/orders," + queue, "SINK_BUS_ARNS": "default",
		"DELIVERY_QUEUE_URL": "http://127.0.0.1:8081/123456789012/orders", "AWS_ENDPOINT_URL": "http://127.0.0.1:8081",
	}))
	config.ReadSinks(r)
	err := r.Err()
	if err == nil {
		t.Fatal("no problem was found")
	}
	for _, part := range []string{`SINK_QUEUE_ARNS has "https://sqs.`, `"` + queue + `", a queue of this stack's own`, `SINK_BUS_ARNS has "default"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message lacks %q:\n%v", part, err)
		}
	}
}

// A dispatcher that does not know its own front door would deliver to it: it does
// not start.
func TestOwnHostsAreThoseOfTheFrontDoor(t *testing.T) {
	t.Parallel()
	for given, want := range map[string][]string{
		"api.test,hooks.test": {"api.test", "hooks.test"}, "api.test,": {"api.test"}, ",": nil, "": nil,
	} {
		r := config.From(env(map[string]string{"OWN_HOSTS": given}))
		got := config.ReadOwnHosts(r)
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(want, got); diff != "" || (r.Err() == nil) != (want != nil) {
			t.Errorf("%q: %v (-want +got):\n%s", given, r.Err(), diff)
		}
	}
}
