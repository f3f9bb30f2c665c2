package delivery_test

import (
	"testing"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

var pausedAt = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// Proves X6's neighbour, pause and drain: what was made before a drain goes out.
func TestAStateHoldsDeliveries(t *testing.T) {
	t.Parallel()
	before, at, after := pausedAt.Add(-time.Second), pausedAt, pausedAt.Add(time.Second)
	for _, tt := range []struct {
		state delivery.State
		made  time.Time
		want  bool
	}{
		{delivery.Active, after, false},
		{delivery.Paused, before, true},
		{delivery.Paused, after, true},
		{delivery.Draining, before, false},
		{delivery.Draining, at, false},
		{delivery.Draining, after, true},
		{delivery.Stopped, before, false}, // cancelled, not held
	} {
		s := delivery.Subscription{State: tt.state, StateAt: pausedAt}
		if got := s.Holds(delivery.Delivery{CreatedAt: tt.made}); got != tt.want {
			t.Errorf("%s, made %s: %v", tt.state, tt.made.Format(time.TimeOnly), got)
		}
	}
}

// Proves X1: a test reaches the subscription that it names, and no other.
func TestATestIsForOneSubscription(t *testing.T) {
	t.Parallel()
	test := webhook.Effect{Tenant: "acme", Type: delivery.TestType, Call: "a"}
	call := webhook.Effect{Tenant: "acme", Type: "order.placed", Call: "a"}
	for _, tt := range []struct {
		name   string
		s      delivery.Subscription
		effect webhook.Effect
		want   bool
	}{
		{"a test of it", delivery.Subscription{ID: "a", Tenant: "acme"}, test, true},
		{"a test of another", delivery.Subscription{ID: "b", Tenant: "acme", Types: []string{"*"}}, test, false},
		{"a test of another's address for calls", delivery.Subscription{ID: "b", Tenant: "acme", Calls: true}, test, false},
		{"a test of an address for calls", delivery.Subscription{ID: "a", Tenant: "acme", Calls: true}, test, true},
		{"another tenant's test", delivery.Subscription{ID: "a", Tenant: "other"}, test, false},
		{"a stopped one's test", delivery.Subscription{ID: "a", Tenant: "acme", State: delivery.Stopped}, test, false},
		{"a call, which is for addresses of calls alone", delivery.Subscription{ID: "a", Tenant: "acme", Types: []string{"*"}}, call, false},
	} {
		none := func(string) (string, bool) { return "", false }
		if got := tt.s.Wants(tt.effect, none); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
