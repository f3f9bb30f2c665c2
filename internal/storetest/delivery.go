package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// Effect returns what the n-th event of a name has brought about.
func Effect(name string, n int) webhook.Effect {
	row := Row(name, n)
	return webhook.Effect{
		ID: webhook.DeriveEffectID(row.ID, 0, 0), InboxID: row.ID, Tenant: "acme", Type: "payment.succeeded", Ordinal: 0,
		BodyID: row.BodyID, Digest: row.Digest, BodyExpiresAt: row.BodyExpiresAt, CreatedAt: now,
	}
}

func subscription(id delivery.SubscriptionID) delivery.Subscription {
	return delivery.Subscription{
		ID: id, Tenant: "acme", Target: delivery.Target{Kind: delivery.HTTP, URL: "https://partner.example.com/"}, Types: []string{"*"},
		ProfileName: delivery.Standard, Secret: "s", Keys: []delivery.Key{{ID: "k1", Version: "v1", AddedAt: now}}, State: delivery.Active, CreatedAt: now,
	}
}

func (s suite) created(t *testing.T, name string) delivery.Delivery {
	t.Helper()
	d := delivery.New(Effect(name, 1), subscription(delivery.SubscriptionID("sub-"+name)), now)
	if ok, err := s.CreateDelivery(t.Context(), d); err != nil || !ok {
		t.Fatalf("create: %v, %v", ok, err)
	}
	return d
}

func (s suite) wantDelivery(t *testing.T, want delivery.Delivery) {
	t.Helper()
	got, found, err := s.Delivery(t.Context(), want.ID)
	if err != nil || !found {
		t.Fatalf("delivery: %v, %v", found, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
}

func (s suite) createDelivery(t *testing.T) {
	d := s.created(t, "deliver-once")
	if ok, err := s.CreateDelivery(t.Context(), d); err != nil || ok {
		t.Errorf("again: %v, %v; want refused", ok, err)
	}
	s.wantDelivery(t, d)
}

// attemptOnce lets rivals begin the same attempt: one of them does.
func (s suite) attemptOnce(t *testing.T) {
	d := s.created(t, "deliver-rivals")
	var mu sync.Mutex
	var begun []delivery.ClaimID
	var group sync.WaitGroup
	for _, claim := range []delivery.ClaimID{"a", "b", "c", "d"} {
		group.Go(func() {
			c := d.Claim(claim, now, time.Minute)
			ok, err := s.BeginAttempt(t.Context(), c, delivery.Attempt{Delivery: d.ID, N: 1, At: now, KeyID: "k1"})
			if err == nil && ok {
				mu.Lock()
				defer mu.Unlock()
				begun = append(begun, claim)
			}
		})
	}
	group.Wait()
	if len(begun) != 1 {
		t.Fatalf("%v began the attempt, want one", begun)
	}
	c := d.Claim(begun[0], now, time.Minute)
	s.wantDelivery(t, c.Apply(d))
	// The reply of the one who did was lost: asking again says that it is ours.
	if ok, err := s.BeginAttempt(t.Context(), c, delivery.Attempt{Delivery: d.ID, N: 1, At: now, KeyID: "k1"}); err != nil || !ok {
		t.Errorf("again: %v, %v; want ours", ok, err)
	}
}

// attempts are kept in order, with how they ended, whatever the delivery has become.
func (s suite) attempts(t *testing.T) {
	d := s.created(t, "deliver-attempts")
	first := d.Claim("a", now, time.Minute)
	begun := delivery.Attempt{Delivery: d.ID, N: 1, At: now, KeyID: "k1"}
	if ok, err := s.BeginAttempt(t.Context(), first, begun); err != nil || !ok {
		t.Fatal(ok, err)
	}
	claimed := first.Apply(d)
	later := now.Add(2 * time.Minute)
	second := claimed.Claim("b", later, time.Minute)
	begun2 := delivery.Attempt{Delivery: d.ID, N: 2, At: later, KeyID: "k1"}
	if ok, err := s.BeginAttempt(t.Context(), second, begun2); err != nil || !ok {
		t.Fatal(ok, err)
	}
	// The first worker comes back late with a refusal, which changes nothing.
	ended := begun
	ended.Result, ended.Status, ended.Code, ended.Took, ended.Answer = delivery.Troubled, 503, "status_503", 1500*time.Millisecond, "try later"
	if ok, err := s.EndAttempt(t.Context(), claimed.Again(later, 503, "status_503"), ended); err != nil || ok {
		t.Errorf("a late refusal: %v, %v; want refused", ok, err)
	}
	s.wantDelivery(t, second.Apply(claimed))
	// A late acceptance is a fact.
	again := second.Apply(claimed)
	accepted := claimed.Deliver(later, 200)
	if ok, err := s.EndAttempt(t.Context(), accepted, ended); err != nil || !ok {
		t.Errorf("a late acceptance: %v, %v", ok, err)
	}
	s.wantDelivery(t, accepted.Apply(again))
	got, err := s.Attempts(t.Context(), d.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]delivery.Attempt{ended, begun2}, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// begun claims a delivery for its next attempt, and returns both as they stand then.
func (s suite) begun(t *testing.T, d delivery.Delivery, claim delivery.ClaimID, at time.Time) (delivery.Delivery, delivery.Attempt) {
	t.Helper()
	c := d.Claim(claim, at, time.Minute)
	a := delivery.Attempt{Delivery: d.ID, N: d.AttemptCount + 1, At: at, KeyID: "k1"}
	if ok, err := s.BeginAttempt(t.Context(), c, a); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return c.Apply(d), a
}

// lateRefusal meets a row that looks as its own end would have left it.
func (s suite) lateRefusal(t *testing.T) {
	first, a := s.begun(t, s.created(t, "deliver-late"), "a", now)
	later := now.Add(2 * time.Minute)
	second, b := s.begun(t, first, "b", later)
	a.Result, a.Status, a.Code = delivery.Troubled, 503, "status_503"
	b.Result, b.Status, b.Code = delivery.Troubled, 500, "status_500"
	again := second.Again(later, 500, "status_500")
	if ok, err := s.EndAttempt(t.Context(), again, b); err != nil || !ok {
		t.Errorf("in time: %v, %v", ok, err)
	}
	if ok, err := s.EndAttempt(t.Context(), first.Again(later, 503, "status_503"), a); err != nil || ok {
		t.Errorf("late: %v, %v; want false", ok, err)
	}
	s.wantDelivery(t, again.Apply(second))
	got, err := s.Attempts(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]delivery.Attempt{a, b}, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// acceptance of an attempt that the row does not know of, as after a restore, ends
// nothing; that of its newest one does.
func (s suite) acceptance(t *testing.T) {
	d, a := s.begun(t, s.created(t, "deliver-accepted"), "a", now)
	unknown := d
	unknown.AttemptCount++
	b := a
	b.N++
	if ok, err := s.EndAttempt(t.Context(), unknown.Deliver(now, 200), b); err != nil || ok {
		t.Errorf("of an attempt that never was: %v, %v; want false", ok, err)
	}
	s.wantDelivery(t, d)
	accepted := d.Deliver(now, 200)
	if ok, err := s.EndAttempt(t.Context(), accepted, a); err != nil || !ok {
		t.Errorf("of the newest attempt: %v, %v", ok, err)
	}
	s.wantDelivery(t, accepted.Apply(d))
}

// endTwice asks again after a reply that was lost.
func (s suite) endTwice(t *testing.T) {
	d := s.created(t, "deliver-lost-reply")
	c := d.Claim("a", now, time.Minute)
	a := delivery.Attempt{Delivery: d.ID, N: 1, At: now, KeyID: "k1"}
	if ok, err := s.BeginAttempt(t.Context(), c, a); err != nil || !ok {
		t.Fatal(ok, err)
	}
	claimed := c.Apply(d)
	kill := claimed.Kill(now, 400, "status_400")
	for range 2 {
		if ok, err := s.EndAttempt(t.Context(), kill, a); err != nil || !ok {
			t.Errorf("end: %v, %v", ok, err)
		}
	}
	s.wantDelivery(t, kill.Apply(claimed))
	var dead []delivery.ID
	for one, err := range s.DeadDeliveries(t.Context(), now.Add(-time.Minute), now.Add(time.Minute)) {
		if err != nil {
			t.Fatal(err)
		}
		if one.Subscription == d.Subscription {
			dead = append(dead, one.ID)
		}
	}
	if diff := cmp.Diff([]delivery.ID{d.ID}, dead); diff != "" {
		t.Errorf("dead (-want +got):\n%s", diff)
	}
}

// wakeDelivery finds deliveries whose wake time has come, and moves it once.
func (s suite) wakeDelivery(t *testing.T) {
	d := s.created(t, "deliver-wake")
	due := func(by time.Time) bool {
		t.Helper()
		ids, err := s.DueDeliveries(t.Context(), webhook.ShardOf(string(d.ID)), by, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if id == d.ID {
				return true
			}
		}
		return false
	}
	if due(d.WakeAt.Add(-time.Millisecond)) || !due(d.WakeAt) {
		t.Error("a delivery is found at its wake time, and not before")
	}
	next := d.WakeAgain(now)
	outdated := d
	outdated.Fence--
	if ok, err := s.RewakeDelivery(t.Context(), outdated, next); err != nil || ok {
		t.Errorf("rewake of what has changed since: %v, %v; want false", ok, err)
	}
	s.wantDelivery(t, d)
	for _, want := range []bool{true, false} { // the second one saw an outdated time
		if ok, err := s.RewakeDelivery(t.Context(), d, next); err != nil || ok != want {
			t.Errorf("rewake: %v, %v; want %v", ok, err, want)
		}
	}
	want := d
	want.WakeAt, want.Wakes = next, 1
	s.wantDelivery(t, want)
	if ok, err := s.ChangeDelivery(t.Context(), want.Cancel(now, "by_operator")); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if due(next.Add(time.Hour)) {
		t.Error("an ended delivery is still woken")
	}
}

// replayDelivery makes one successor, linked both ways.
func (s suite) replayDelivery(t *testing.T) {
	d := s.created(t, "deliver-replay")
	cancel := d.Cancel(now, "by_operator")
	if ok, err := s.ChangeDelivery(t.Context(), cancel); err != nil || !ok {
		t.Fatal(ok, err)
	}
	ended := cancel.Apply(d)
	next, change := ended.Replay(subscription(d.Subscription), now)
	act := webhook.Act{ID: "r", At: now, Name: "delivery replay", Subject: "delivery " + string(d.ID), Who: "test"}
	for _, want := range []bool{true, false} { // two operators at once
		if ok, err := s.ReplayDelivery(t.Context(), next, change, act); err != nil || ok != want {
			t.Errorf("replay: %v, %v; want %v", ok, err, want)
		}
	}
	s.wantDelivery(t, next)
	linked := change.Apply(ended)
	s.wantDelivery(t, linked)
	var recent []delivery.ID
	for one, err := range s.DeliveriesOf(t.Context(), d.Subscription, now.Add(-time.Minute), now.Add(time.Minute)) {
		if err != nil {
			t.Fatal(err)
		}
		recent = append(recent, one.ID)
	}
	if len(recent) != 2 {
		t.Errorf("the list has %v, want both", recent)
	}
}

// subscriptions are listed by tenant, and change only under their revision.
func (s suite) subscriptions(t *testing.T) {
	v := subscription("sub-registry")
	v.Tenant = "listed"
	act := webhook.Act{ID: "c", At: now, Name: "subscription create", Subject: "subscription sub-registry", Who: "test"}
	for _, want := range []bool{true, false} {
		if ok, err := s.CreateSubscriptionBy(t.Context(), v, act); err != nil || ok != want {
			t.Errorf("create: %v, %v; want %v", ok, err, want)
		}
	}
	v.Revision = 1
	other := v
	other.State = delivery.Paused
	for _, want := range []bool{true, false} {
		if ok, err := s.UpdateSubscription(t.Context(), other); err != nil || ok != want {
			t.Errorf("update: %v, %v; want %v", ok, err, want)
		}
	}
	other.Revision = 2
	got, err := s.Subscriptions(t.Context(), "listed")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]delivery.Subscription{other}, got); diff != "" {
		t.Errorf("subscriptions (-want +got):\n%s", diff)
	}
}

// manySubscriptions are listed whole and in order, though one call does not
// bring them all.
func (s suite) manySubscriptions(t *testing.T) {
	var want []delivery.Subscription
	for n := range 105 {
		v := subscription(delivery.SubscriptionID(fmt.Sprintf("sub-many-%03d", n)))
		v.Tenant = "many"
		act := webhook.Act{ID: fmt.Sprint("m", n), At: now, Name: "subscription create", Subject: "subscription " + string(v.ID), Who: "test"}
		if ok, err := s.CreateSubscriptionBy(t.Context(), v, act); err != nil || !ok {
			t.Fatal(ok, err)
		}
		v.Revision = 1
		want = append(want, v)
	}
	got, err := s.Subscriptions(t.Context(), "many")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subscriptions (-want +got):\n%s", diff)
	}
}

// effects keeps an effect's promise as it was made, with how far its fan-out is.
func (s suite) effects(t *testing.T) {
	row := Row("effects", 1)
	s.accept(t, row)
	claimed := s.claim(t, row.ID, "c", now)
	effect := Effect("effects", 1)
	o := webhook.NewEffectOutbox(effect, 0, claimed.Fence+1, now)
	verdict, err := s.Complete(t.Context(), webhook.Completion{
		Change: claimed.Complete(webhook.Applied, now, keep), Claim: "c", Mark: &webhook.Mark{InboxID: row.ID, At: now}, Promises: []webhook.Outbox{o},
	})
	if err != nil || verdict != webhook.Committed {
		t.Fatalf("%s, %v", verdict, err)
	}
	s.wantPromise(t, o.ID, &o)
	if ok, err := s.MoveCursor(t.Context(), o, "sub-7"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	o.Cursor = "sub-7"
	s.wantPromise(t, o.ID, &o)
	outdated := o
	outdated.Gen--
	if ok, err := s.MoveCursor(t.Context(), outdated, "sub-9"); err != nil || ok {
		t.Errorf("another generation: %v, %v; want refused", ok, err)
	}
}
