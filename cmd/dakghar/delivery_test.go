package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// partnered makes the subscription of a partner, without noting it.
func partnered(t *testing.T) *shell {
	t.Helper()
	s := newShell(t)
	if r := s.quietly("", "subscription", "create", "--local", "--id", "partner", "--url", "https://hooks.partner.com/dakghar"); r.code != exitDone {
		t.Fatalf("create: %+v", r)
	}
	return s
}

// delivered adds a delivery to the partner.
func delivered(s *shell, id delivery.ID, status delivery.Status, change func(*delivery.Delivery)) {
	now := s.world.Clock
	d := delivery.Delivery{
		ID: id, Tenant: "default", Subscription: "partner", Status: status, Fence: 4, AttemptCount: 2, CreatedAt: now.Add(-time.Hour), NextAttemptAt: now.Add(10 * time.Minute),
		Deadline: now.Add(47 * time.Hour), LastStatus: 503, LastError: "status_503",
		Effect: webhook.Effect{ID: "ev_1", InboxID: "in_1", Tenant: "default", Type: "payment.succeeded", BodyID: "bd_1", Digest: "d1", BodyExpiresAt: now.Add(29 * 24 * time.Hour)},
	}
	if status.Terminal() {
		d.EndedAt, d.ExpiresAt = now.Add(-time.Minute), now.Add(90*24*time.Hour)
	}
	if change != nil {
		change(&d)
	}
	s.world.Deliveries[id] = d
}

// Proves X4, X10, X11: secrets are printed when they are made and never again,
// and every refusal says what to do next.
func TestSubscriptionCommands(t *testing.T) {
	s := newShell(t)
	create := func(words ...string) { s.run("", append([]string{"subscription", "create", "--local"}, words...)...) }
	s.run("", "subscription", "list", "--local")
	create("--id", "partner", "--url", "https://hooks.partner.com/dakghar", "--type", "payment.*", "--type", "refund.*", "--filter", "object.currency=EUR", "--header", "X-Team=payments",
		"--rate", "20", "--burst", "100", "--concurrency", "4", "--redirect-host", "eu.partner.com", "--profile", "patient", "--tenant", "acme", "--reason", "a new partner")
	made := s.world.Secrets["test/subscription/partner"]
	create("--id", "partner", "--url", "https://hooks.partner.com/dakghar")
	create("--url", "https://drawn.partner.com/", "--json")
	s.run("rk_live_made_up_for_this\n", "subscription", "create", "--local", "--id", "api", "--url", "https://api.partner.com/in", "--calls", "--credential-header", "Authorization", "--credential-file", "-")
	create("--id", "pair", "--to-queue", "https://sqs.eu-west-1.amazonaws.com/123456789012/ledger", "--ed25519")
	create("--id", "bus", "--to-bus", "arn:aws:events:eu-west-1:123456789012:event-bus/partner", "--json")
	create("--id", "bad", "--url", "https://ada:geheim@hooks.partner.com/")
	create("--id", "bad", "--url", "https://hooks.partner.com/?token=geheim", "--json")
	create("--id", "bad", "--url", "https://169.254.169.254/")
	create("--id", "bad", "--url", "https://door.test/in/stripe/demo", "--header", "Webhook-Id=x", "--profile", "hasty")
	create("--id", "bad", "--url", "https://a.com/", "--to-bus", "b")
	s.run("", "subscription", "list", "--local")
	s.run("", "subscription", "list", "--local", "--tenant", "acme", "--json")
	delivered(s, "dl_1", delivery.Retry, nil)
	s.run("", "subscription", "show", "partner", "--local")
	s.run("", "subscription", "show", "partner", "--local", "--json")
	s.run("", "subscription", "show", "api", "--local")
	s.run("", "subscription", "show", "nobody", "--local")
	s.run("", "subscription", "update", "partner", "--local", "--rate", "5", "--burst", "0", "--type", "all", "--filter", "object.currency=", "--header", "X-Team=", "--redirect-host", "none", "--reason", "simpler")
	s.run("", "subscription", "update", "partner", "--local", "--rate", "5", "--json")
	s.run("", "subscription", "update", "partner", "--local", "--header", "Host=evil.com")
	s.run("", "subscription", "update", "api", "--local", "--credential-header", "none", "--json")

	s.world.Advance(time.Hour)
	s.run("", "subscription", "rotate", "partner", "--local", "--reason", "yearly")
	s.run("", "subscription", "rotate", "partner", "--local")
	s.run("", "subscription", "keys", "partner", "--local")
	s.run("", "subscription", "keys", "partner", "--local", "--json")
	s.run("", "subscription", "keys", "partner", "--local", "--public")
	s.run("", "subscription", "rotate", "partner", "--local", "--now", "--reason", "leaked", "--json")
	s.run("", "subscription", "keys", "pair", "--local", "--public")

	s.run("", "subscription", "drain", "partner", "--local", "--reason", "they move")
	s.run("", "subscription", "drain", "partner", "--local", "--json")
	s.run("", "subscription", "pause", "partner", "--local")
	s.run("", "subscription", "pause", "partner", "--local")
	s.run("", "subscription", "test", "partner", "--local")
	s.run("", "delivery", "show", "dl_1", "--local")
	s.run("", "subscription", "resume", "partner", "--local", "--plan")
	s.run("no\n", "subscription", "resume", "partner", "--local")
	s.run("yes\n", "subscription", "resume", "partner", "--local", "--reason", "they have moved")
	s.run("", "subscription", "resume", "api", "--local", "--yes")
	s.run("", "subscription", "delete", "bus", "--local")
	s.run("yes\n", "subscription", "delete", "bus", "--local", "--reason", "contract ended")
	s.run("", "subscription", "delete", "bus", "--local", "--yes", "--json")
	s.run("", "subscription", "resume", "bus", "--local", "--yes")
	s.run("", "audit", "list", "--local", "--subject", "subscription partner")
	s.wantGolden("subscription")

	for _, secret := range made {
		if n := strings.Count(s.transcript.String(), secret); n != 1 {
			t.Errorf("the first secret is printed %d times, want once", n)
		}
	}
	if strings.Contains(s.transcript.String(), "rk_live_made_up") {
		t.Error("the credential is printed")
	}
}

// Proves X1, X4: a test shows its attempt, and fails unless it was accepted.
func TestSubscriptionTestCommand(t *testing.T) {
	s := partnered(t)
	answer := 204
	s.world.OnWake = func(wake webhook.Wake) {
		d := delivery.New(*s.world.Promises[wake.OutboxID].Effect, s.world.Subscriptions["partner"], s.world.Clock)
		d = d.Claim("c", s.world.Clock, time.Minute).Apply(d)
		a := delivery.Attempt{Delivery: d.ID, N: 1, At: s.world.Clock, KeyID: "k1", Status: answer, Took: 42 * time.Millisecond}
		if answer == 204 {
			d, a.Result = d.Deliver(s.world.Clock, answer).Apply(d), delivery.Accepted
		} else {
			d, a.Result, a.Code, a.Answer = d.Kill(s.world.Clock, answer, "status_401").Apply(d), delivery.Refused, "status_401", `{"error":"no such signature"}`
		}
		s.world.Deliveries[d.ID], s.world.Attempts[d.ID] = d, []delivery.Attempt{a}
	}
	s.run("", "subscription", "test", "partner", "--local", "--reason", "is it there?")
	s.run("", "subscription", "test", "partner", "--local", "--json")
	answer = 401
	s.run("", "subscription", "test", "partner", "--local")
	s.world.OnWake = nil
	s.run("", "subscription", "test", "partner", "--local", "--wait", "10s")
	s.wantGolden("subscription_test")
}

// Proves X5, X6, X8: deliveries are shown with their attempts and with what comes
// next, and are made again, ended and resumed one by one or many at once.
func TestDeliveryCommands(t *testing.T) {
	s := partnered(t)
	delivered(s, "dl_retry", delivery.Retry, nil)
	delivered(s, "dl_sending", delivery.Sending, func(d *delivery.Delivery) { d.LeaseUntil = s.world.Clock.Add(time.Minute) })
	delivered(s, "dl_faulted", delivery.Faulted, func(d *delivery.Delivery) { d.LastError, d.LastStatus = "key_missing", 0 })
	delivered(s, "dl_done", delivery.Delivered, func(d *delivery.Delivery) { d.LastStatus = 204 })
	delivered(s, "dl_dead", delivery.Dead, nil)
	for i := range 60 {
		delivered(s, delivery.ID(fmt.Sprintf("dl_%03d", i)), delivery.Dead, func(d *delivery.Delivery) {
			d.EndedAt, d.CreatedAt = s.world.Clock.Add(-time.Duration(i+2)*time.Minute), s.world.Clock.Add(-2*time.Hour-time.Duration(i)*time.Minute)
			d.LastStatus, d.LastError = 404, "status_404"
		})
	}
	s.world.Attempts["dl_retry"] = []delivery.Attempt{
		{Delivery: "dl_retry", N: 1, At: s.world.Clock.Add(-time.Hour), KeyID: "k1"},
		{Delivery: "dl_retry", N: 2, At: s.world.Clock.Add(-time.Minute), KeyID: "k1", Result: delivery.Troubled, Status: 503, Code: "status_503", Took: 1200 * time.Millisecond, Answer: "try later\x1b[2J"},
	}
	on := []string{"--local", "--subscription", "partner"}
	s.run("", append([]string{"delivery", "list", "--limit", "7"}, on...)...)
	s.run("", append([]string{"delivery", "list", "--status", "retry,faulted", "--json"}, on...)...)
	s.run("", append([]string{"delivery", "list", "--type", "refund.*"}, on...)...)
	s.run("", append([]string{"delivery", "list", "--limit", "2", "--ids"}, on...)...)
	s.run("", "delivery", "list", "--local")
	s.run("", "delivery", "dead", "--local", "--limit", "3")
	s.run("", "delivery", "dead", "--local", "--cause", "status_404", "--limit", "1", "--json")
	for _, id := range []string{"dl_retry", "dl_sending", "dl_faulted", "dl_done", "dl_dead", "dl_nothing", "in_other"} {
		s.run("", "delivery", "show", id, "--local")
	}
	s.run("", "delivery", "show", "dl_retry", "--local", "--json")
	s.run("", "delivery", "replay", "dl_dead", "--local", "--reason", "they are back")
	s.run("", "delivery", "replay", "dl_dead", "--local")
	s.run("", "delivery", "show", "dl_dead", "--local")
	s.run("", "delivery", "replay", "dl_done", "dl_retry", "--local", "--json")
	s.run("", "delivery", "cancel", "dl_sending", "--local", "--reason", "a mistake", "--json")
	s.run("", "delivery", "resume", "dl_faulted", "--local")
	s.run("", "delivery", "resume", "dl_faulted", "--local")
	s.run("", "delivery", "replay", "--all", "--local", "--plan")
	s.run("", append([]string{"delivery", "replay", "--all", "--cause", "status_404", "--plan", "--rate", "10", "--json"}, on...)...)
	s.run("no\n", "delivery", "replay", "--all", "--local", "--reason", "ticket 7")
	s.run("yes\n", "delivery", "replay", "--all", "--local", "--reason", "ticket 7", "--rate", "1000")
	s.run("", append([]string{"delivery", "cancel", "--all", "--reason", "ticket 8", "--yes", "--json"}, on...)...)
	s.run("", append([]string{"delivery", "resume", "--all", "--reason", "ticket 9", "--yes"}, on...)...)
	s.run("", "job", "list", "--local")
	s.run("", "audit", "list", "--local", "--subject", "dl_dead")
	s.wantGolden("delivery")
}
