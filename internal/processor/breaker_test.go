package processor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// While the body store is down, events beyond the breaker's trip are not claimed:
// their promises wait, carried by their due time, and all are applied afterwards
// with no attempt spent. Proves W4, A4, A6.
func TestAnOutageSpendsNoAttemptAndClaimsLittle(t *testing.T) {
	t.Parallel()
	faults := &sim.Faults{}
	var events []string
	for n := range 30 {
		events = append(events, fmt.Sprint("event-", n))
	}
	w := world(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"processor": faults.Middleware}}, events...)
	faults.Add(sim.Fault{Operation: "GetItem", Table: "BodyTable", Times: -1, Err: errors.New("the body table does not answer")})
	w.Settle()
	w.Settle()
	untouched := 0
	for _, event := range events {
		row := w.Row(id(event))
		if row.AttemptCount != 0 {
			t.Errorf("%s has spent %d attempts", event, row.AttemptCount)
		}
		if row.Fence == 0 {
			untouched++
		}
	}
	// A batch of ten may be claimed side by side before the first of it fails.
	if untouched < len(events)-10 {
		t.Errorf("only %d of %d events were left unclaimed", untouched, len(events))
	}
	for range 20 {
		w.Advance(3 * time.Minute)
		w.Settle()
		w.Reconcile()
	}
	faults.Clear()
	w.Rest()
	check(t, w)
	for _, event := range events {
		if diff := cmp.Diff(end{webhook.Processed, webhook.Applied, 1, w.Row(id(event)).LastError}, endOf(w.Row(id(event)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", event, diff)
		}
	}
}

// A paused endpoint's events are accepted and left alone, others are worked on;
// afterwards all are applied. Proves A4, A6.
func TestAPausedEndpointIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := world(t, sim.Options{})
	other := w.AddEndpoint("stripe", "other", "whsec_test_secret_of_the_other_one")
	e := w.AddEndpoint("stripe", "paused", "whsec_test_secret_of_the_paused_one")
	waits := webhook.DeriveInboxID("paused", "stripe", "waits")
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint { e.PausedAt = w.Now(); return e })
	send(t, w, w.Event(e, payment("waits")))
	send(t, w, w.Event(other, payment("goes_on")))
	for range 12 {
		w.Advance(time.Hour)
		w.Settle()
		w.Reconcile()
	}
	if diff := cmp.Diff(end{webhook.Received, "", 0, ""}, endOf(w.Row(waits))); diff != "" {
		t.Errorf("the paused one (-want +got):\n%s", diff)
	}
	if got := w.Row(webhook.DeriveInboxID("other", "stripe", "goes_on")); got.Outcome != webhook.Applied {
		t.Errorf("the other one is %s %s", got.Status, got.Outcome)
	}
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint { e.PausedAt = time.Time{}; return e })
	w.Rest()
	check(t, w)
	if got := w.Row(waits); got.Outcome != webhook.Applied {
		t.Errorf("the paused one ended %s %s", got.Status, got.Outcome)
	}
}
