package dynamo_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	devdynamodb "dakghar/internal/devstack/dynamodb"
	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

func effectOf(name string) webhook.Effect {
	id := webhook.InboxID(webhook.DeriveID("in_", name))
	return webhook.Effect{
		ID: webhook.DeriveEffectID(id, 0, 0), InboxID: id, Tenant: "acme", Type: "payment.succeeded", BodyID: webhook.BodyID(webhook.DeriveID("bd_", name)),
		Digest: webhook.DigestOf([]byte(name)), BodyExpiresAt: noon.Add(30 * 24 * time.Hour), CreatedAt: noon,
	}
}

// Proves X1 (recorded): an operator's promise to a partner commits with its
// record, once.
func TestAnOperatorsPromiseIsMadeOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		e := effectOf("test")
		e.Call = "partner"
		o := webhook.NewEffectOutbox(e, 0, 0, noon)
		act := webhook.Act{ID: "a1", At: noon, Name: "subscription test", Subject: "subscription partner", Who: "ada", Why: "is it there?"}
		if ok, err := s.AnnounceBy(t.Context(), o, act); err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		if ok, err := s.AnnounceBy(t.Context(), o, webhook.Act{ID: "a2", At: noon, Name: "subscription test", Subject: "subscription partner"}); err != nil || ok {
			t.Errorf("again: %v, %v; want refused", ok, err)
		}
		got, found, err := s.Outbox(t.Context(), o.ID)
		if err != nil || !found {
			t.Fatalf("%v, %v", found, err)
		}
		if diff := cmp.Diff(o, got); diff != "" {
			t.Errorf("promise (-want +got):\n%s", diff)
		}
		acts, err := s.ActsOn(t.Context(), "subscription partner")
		if diff := cmp.Diff([]webhook.Act{act}, acts); diff != "" || err != nil {
			t.Errorf("acts: %v (-want +got):\n%s", err, diff)
		}
	})
}

// The units that a plan for deliveries promises (deliveryDeeds and
// nearDeliveryUnits in package operator), by the local stack's size formula.
func TestWhatAnOperatorsActsOnDeliveriesCost(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))
	defer server.Close()
	s := storeAt(t, server.URL)
	sub := delivery.Subscription{ID: "partner-of-some-length", Tenant: "acme", ProfileName: delivery.Standard}
	m := &metered{Client: s.DB}
	s.DB = m
	fresh := func(name string) delivery.Delivery {
		t.Helper()
		d := delivery.New(effectOf(name), sub, noon)
		if ok, err := s.CreateDelivery(t.Context(), d); err != nil || !ok {
			t.Fatalf("create: %v, %v", ok, err)
		}
		m.units = 0
		return d
	}
	act := func(d delivery.Delivery, name string) webhook.Act {
		return webhook.Act{ID: "0123456789abcdefghijklmnop", At: noon, Name: name, Subject: "delivery " + string(d.ID), Who: "arn:aws:sts::123456789012:assumed-role/operator/ada", Why: "ticket 1234: the partner was down", Job: "job-20260301t120000-abcdefgh"}
	}
	got := map[string]float64{}
	cost := func(name string, ok bool, err error) {
		t.Helper()
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		got[name], m.units = m.units, 0
	}
	d := fresh("near")
	ok, err := s.ChangeDelivery(t.Context(), d.Postpone(noon.Add(time.Hour)))
	cost("near", ok, err)
	d = fresh("cancel")
	ok, err = s.ChangeDeliveryBy(t.Context(), d.Cancel(noon, "cancelled_by_operator"), act(d, "cancel"))
	cost("cancel", ok, err)
	d = fresh("resume")
	fault := d.Fault(noon, "key_missing")
	if ok, err := s.ChangeDelivery(t.Context(), fault); err != nil || !ok {
		t.Fatalf("fault: %v, %v", ok, err)
	}
	d, m.units = fault.Apply(d), 0
	ok, err = s.ChangeDeliveryBy(t.Context(), d.Resume(noon), act(d, "resume"))
	cost("resume", ok, err)
	d = fresh("replay")
	kill := d.Kill(noon, 404, "status_404")
	if ok, err := s.ChangeDelivery(t.Context(), kill); err != nil || !ok {
		t.Fatalf("kill: %v, %v", ok, err)
	}
	d, m.units = kill.Apply(d), 0
	next, change := d.Replay(sub, noon)
	ok, err = s.ReplayDelivery(t.Context(), next, change, act(d, "replay"))
	cost("replay", ok, err)
	want := map[string]float64{"near": 3, "cancel": 7, "resume": 8, "replay": 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("write units (-want +got):\n%s", diff)
	}
}
