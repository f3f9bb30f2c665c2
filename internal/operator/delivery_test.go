package operator_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// Proves X6: a replay is another delivery, of the same event and under an id of
// its own, linked both ways, recorded, and there once.
func TestAReplayIsALinkedDeliveryOfItsOwn(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	deliveryAt(w, "dl_dead", delivery.Dead, nil)
	old := w.Deliveries["dl_dead"]
	w.Advance(time.Minute)
	next, err := o.ReplayDelivery(t.Context(), "dl_dead", "they are back")
	if err != nil {
		t.Fatal(err)
	}
	want := delivery.Delivery{
		ID: delivery.DeriveID("default", old.Effect.ID, "partner", 1), Tenant: "default", Subscription: "partner", Effect: old.Effect, Generation: 1, ReplayOf: "dl_dead",
		Status: delivery.Pending, NextAttemptAt: w.Clock, CreatedAt: w.Clock, Deadline: w.Clock.Add(48 * time.Hour), WakeAt: w.Clock.Add(time.Minute),
	}
	if diff := cmp.Diff([]delivery.Delivery{want, want}, []delivery.Delivery{next, w.Deliveries[want.ID]}); diff != "" {
		t.Errorf("the new one (-want +got):\n%s", diff)
	}
	old.ReplayedAs, old.Fence = want.ID, 3
	if diff := cmp.Diff(old, w.Deliveries["dl_dead"]); diff != "" {
		t.Errorf("the old one (-want +got):\n%s", diff)
	}
	act := webhook.Act{ID: "act-2", At: w.Clock, Name: "delivery replay", Subject: "delivery dl_dead", Who: "ada", Why: "they are back"}
	if diff := cmp.Diff(act, w.Acts[len(w.Acts)-1]); diff != "" {
		t.Errorf("act (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]webhook.Wake{want.Wake()}, w.Woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	_, err = o.ReplayDelivery(t.Context(), "dl_dead", "")
	wantCode(t, "again", err, "replayed_before")
	_, err = o.ReplayDelivery(t.Context(), want.ID, "")
	wantCode(t, "the new one, which has not ended", err, "wrong_state")
}

// Proves X6, X10: what may be done to a delivery depends on where it stands.
func TestWhatIsDoneToADeliveryDependsOnItsState(t *testing.T) {
	t.Parallel()
	type do = func(*operator.Operator, *testing.T, delivery.ID) (delivery.Delivery, error)
	replay := func(o *operator.Operator, t *testing.T, id delivery.ID) (delivery.Delivery, error) {
		return o.ReplayDelivery(t.Context(), id, "why")
	}
	cancel := func(o *operator.Operator, t *testing.T, id delivery.ID) (delivery.Delivery, error) {
		return o.CancelDelivery(t.Context(), id, "why")
	}
	resume := func(o *operator.Operator, t *testing.T, id delivery.ID) (delivery.Delivery, error) {
		return o.ResumeDelivery(t.Context(), id, "why")
	}
	for _, tt := range []struct {
		name   string
		from   delivery.Status
		change func(w *operatortest.World, d *delivery.Delivery)
		do     do
		code   string
		want   delivery.Status // of what is returned
	}{
		{"cancel of one that waits", delivery.Pending, nil, cancel, "", delivery.Cancelled},
		{"cancel of one under way", delivery.Sending, nil, cancel, "", delivery.Cancelled},
		{"cancel of one set aside", delivery.Faulted, nil, cancel, "", delivery.Cancelled},
		{"cancel of one that has ended", delivery.Dead, nil, cancel, "wrong_state", ""},
		{"resume of one set aside", delivery.Faulted, nil, resume, "", delivery.Retry},
		{"resume of one that waits", delivery.Retry, nil, resume, "wrong_state", ""},
		{"resume of one whose time is over", delivery.Faulted, func(w *operatortest.World, d *delivery.Delivery) { d.Deadline = w.Clock }, resume, "deadline_passed", ""},
		{"replay of one that arrived", delivery.Delivered, nil, replay, "", delivery.Pending},
		{"replay of one that was cancelled", delivery.Cancelled, nil, replay, "", delivery.Pending},
		{"replay of one that expired", delivery.Expired, nil, replay, "", delivery.Pending},
		{"replay of one set aside", delivery.Faulted, nil, replay, "wrong_state", ""},
		{"replay without bytes", delivery.Dead, func(w *operatortest.World, d *delivery.Delivery) {
			d.Effect.BodyExpiresAt = w.Clock.Add(23 * time.Hour)
		}, replay, "body_gone", ""},
		{"replay to a partner that is gone", delivery.Dead, func(w *operatortest.World, _ *delivery.Delivery) {
			w.Subscriptions["partner"] = w.Subscriptions["partner"].Stop("gone", w.Clock)
		}, replay, "subscription_stopped", ""},
	} {
		w, o, _ := subscribed(t)
		deliveryAt(w, "dl_1", tt.from, func(d *delivery.Delivery) {
			if tt.change != nil {
				tt.change(w, d)
			}
		})
		before := w.Deliveries["dl_1"]
		got, err := tt.do(o, t, "dl_1")
		if tt.code != "" {
			wantCode(t, tt.name, err, tt.code)
			if diff := cmp.Diff(before, w.Deliveries["dl_1"]); diff != "" || len(w.Deliveries) != 1 || len(w.Acts) != 1 {
				t.Errorf("%s: something was written (-want +got):\n%s", tt.name, diff)
			}
			continue
		}
		if err != nil || got.Status != tt.want || len(w.Acts) != 2 || w.Acts[1].Why != "why" || w.Acts[1].Subject != "delivery dl_1" {
			t.Errorf("%s: %v, %s, acts %v", tt.name, err, got.Status, w.Acts)
		}
	}
	w, o, _ := subscribed(t)
	_, err := o.CancelDelivery(t.Context(), "dl_nothing", "")
	wantCode(t, "nothing", err, "delivery_unknown")
	deliveryAt(w, "dl_1", delivery.Pending, nil)
	w.Fail = func(call string) error {
		if call == "ChangeDeliveryBy" {
			d := w.Deliveries["dl_1"] // a worker is faster
			w.Deliveries["dl_1"] = d.Claim("c", d.NextAttemptAt, time.Minute).Apply(d)
		}
		return nil
	}
	_, err = o.CancelDelivery(t.Context(), "dl_1", "")
	wantCode(t, "beside a worker", err, "moved_on")
}

// deadDeliveries adds n dead letters of the partner's, the i-th ended i seconds ago.
func deadDeliveries(w *operatortest.World, n int) {
	for i := range n {
		deliveryAt(w, delivery.ID(fmt.Sprintf("dl_%03d", i)), delivery.Dead, func(d *delivery.Delivery) {
			d.EndedAt, d.CreatedAt = w.Clock.Add(-time.Duration(i)*time.Second), w.Clock.Add(-time.Hour-time.Duration(i)*time.Second)
		})
	}
}

func bulkReplay(w *operatortest.World, f webhook.Filter) operator.Bulk {
	f.Since = w.Clock.Add(-24 * time.Hour)
	return operator.Bulk{Act: "delivery replay", Filter: f, Why: "ticket 7", Rate: 100}
}

// Proves X6 (bulk): a replay of many is planned, and does each once, whenever its
// command dies and whoever goes on.
func TestManyAreReplayedOnceEach(t *testing.T) {
	t.Parallel()
	for _, f := range []webhook.Filter{{}, {Subscription: "partner"}} {
		w, o, _ := subscribed(t)
		o.Workers = 8
		deadDeliveries(w, 130)
		deliveryAt(w, "dl_other", delivery.Dead, func(d *delivery.Delivery) { d.Effect.Type = "refund.failed" })
		deliveryAt(w, "dl_gone", delivery.Dead, func(d *delivery.Delivery) { d.Effect.BodyExpiresAt = w.Clock })
		f.Kind, f.Cause = "payment.*", "status_503"
		p, err := o.PlanDeliveries(t.Context(), bulkReplay(w, f))
		if err != nil || p.Matched != 131 || p.Refused["body_gone"] != 1 || p.Units != 1300 || p.ByStatus["DEAD"] != 131 {
			t.Fatalf("plan: %v, %+v", err, p)
		}
		var calls atomic.Int64
		w.Lose = func(call string) error {
			if call == "ReplayDelivery" && calls.Add(1) == 60 {
				return operatortest.ErrDown // its answer alone
			}
			return nil
		}
		w.Fail = func(call string) error {
			if call == "ReplayDelivery" && calls.Load() >= 90 {
				return operatortest.ErrDown
			}
			return nil
		}
		j, err := o.Start(t.Context(), p, quiet)
		wantCode(t, "while the store is down", err, "job_stopped")
		w.Fail = func(string) error { return nil }
		j, err = o.ResumeJob(t.Context(), j.ID, "", quiet)
		if err != nil || j.State != webhook.JobDone {
			t.Fatalf("resumed: %v, %+v", err, j)
		}
		replays := map[delivery.ID]int{}
		for _, d := range w.Deliveries {
			if d.ReplayOf != "" {
				replays[d.ReplayOf]++
			}
		}
		if len(replays) != 130 {
			t.Errorf("%d replays, want 130", len(replays))
		}
		for id, n := range replays {
			if n != 1 || w.Deliveries[id].ReplayedAs == "" {
				t.Errorf("%s was replayed %d times", id, n)
			}
		}
		acts := 0
		for _, a := range w.Acts {
			if a.Name == "delivery replay" && a.Job == j.ID && a.Who == "ada" && a.Why == "ticket 7" {
				acts++
			}
		}
		if acts != 130 {
			t.Errorf("%d acts, want 130", acts)
		}
	}
}

// Proves X6, X10: many that were set aside go on once the key is there.
func TestManyThatWereSetAsideGoOn(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	for i := range 70 {
		deliveryAt(w, delivery.ID(fmt.Sprintf("dl_%03d", i)), delivery.Faulted, func(d *delivery.Delivery) { d.LastError = "key_missing" })
	}
	p, err := o.PlanDeliveries(t.Context(), operator.Bulk{
		Act: "delivery resume", Filter: webhook.Filter{Subscription: "partner", Since: w.Clock.Add(-24 * time.Hour)}, Why: "rotated", Rate: 100,
	})
	if err != nil || p.Matched != 70 {
		t.Fatalf("plan: %v, %+v", err, p)
	}
	j, err := o.Start(t.Context(), p, quiet)
	if err != nil || j.Done != 70 {
		t.Fatalf("%v, %+v", err, j)
	}
	for id, d := range w.Deliveries {
		if d.Status != delivery.Retry || d.NextAttemptAt.After(w.Clock) {
			t.Errorf("%s is %s, due %s", id, d.Status, d.NextAttemptAt)
		}
	}
}

// Proves X6: dead letters are listed over all subscriptions, everything else by its own.
func TestDeliveriesAreListed(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	deadDeliveries(w, 3)
	deliveryAt(w, "dl_other", delivery.Dead, func(d *delivery.Delivery) { d.Subscription, d.EndedAt = "other", w.Clock.Add(time.Second) })
	deliveryAt(w, "dl_open", delivery.Retry, nil)
	ids := func(f webhook.Filter, limit int) (got []delivery.ID) {
		f.Since = w.Clock.Add(-24 * time.Hour)
		rows, err := o.DeliveryList(t.Context(), operator.DeliveryQuery{Filter: f, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		for d, err := range rows {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d.ID)
		}
		return got
	}
	for _, tt := range []struct {
		name  string
		f     webhook.Filter
		limit int
		want  []delivery.ID
	}{
		{"dead letters, the last that died first", webhook.Filter{Statuses: []webhook.Status{"DEAD"}}, 50, []delivery.ID{"dl_other", "dl_000", "dl_001", "dl_002"}},
		{"a subscription's, the last that was made first", webhook.Filter{Subscription: "partner"}, 2, []delivery.ID{"dl_000", "dl_open"}},
		{"by state", webhook.Filter{Subscription: "partner", Statuses: []webhook.Status{"RETRY"}}, 50, []delivery.ID{"dl_open"}},
		{"by type", webhook.Filter{Subscription: "partner", Kind: "refund.*"}, 50, nil},
	} {
		if diff := cmp.Diff(tt.want, ids(tt.f, tt.limit)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	since := w.Clock.Add(-time.Hour)
	for name, q := range map[string]operator.DeliveryQuery{
		"nobody's":         {Filter: webhook.Filter{Since: since}, Limit: 1},
		"nothing":          {Filter: webhook.Filter{Since: since, Subscription: "partner"}},
		"an unknown state": {Filter: webhook.Filter{Since: since, Subscription: "partner", Statuses: []webhook.Status{"PARKED"}}, Limit: 1},
		"the future":       {Filter: webhook.Filter{Since: w.Clock.Add(time.Hour), Subscription: "partner"}, Limit: 1},
		"the far past":     {Filter: webhook.Filter{Since: w.Clock.Add(-120 * 24 * time.Hour), Subscription: "partner"}, Limit: 1},
		"a broken pattern": {Filter: webhook.Filter{Since: since, Subscription: "partner", Kind: "a["}, Limit: 1},
	} {
		_, err := o.DeliveryList(t.Context(), q)
		wantCode(t, name, err, "usage")
	}
	_, err := o.DeliveryList(t.Context(), operator.DeliveryQuery{Filter: webhook.Filter{Since: since, Subscription: "nobody"}, Limit: 1})
	wantCode(t, "an unknown subscription", err, "subscription_unknown")
}

// A plan for many that makes no sense is refused.
func TestADeliveryPlanThatMakesNoSense(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	for name, change := range map[string]func(*operator.Bulk){
		"no reason":                       func(b *operator.Bulk) { b.Why = "" },
		"no rate":                         func(b *operator.Bulk) { b.Rate = 0 },
		"a deed for events":               func(b *operator.Bulk) { b.Act = "inbox replay" },
		"a state that is not replayed":    func(b *operator.Bulk) { b.Filter.Statuses = []webhook.Status{"FAULTED"} },
		"cancel of everybody's":           func(b *operator.Bulk) { b.Act = "delivery cancel" },
		"everybody's that were cancelled": func(b *operator.Bulk) { b.Filter.Statuses = []webhook.Status{"CANCELLED"} },
	} {
		b := bulkReplay(w, webhook.Filter{})
		change(&b)
		_, err := o.PlanDeliveries(t.Context(), b)
		wantCode(t, name, err, "usage")
	}
}

// Proves X6, X8: a delivery is shown with its attempts and its acts.
func TestADeliveryIsShownWithItsAttempts(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	deliveryAt(w, "dl_1", delivery.Dead, nil)
	w.Attempts["dl_1"] = []delivery.Attempt{{Delivery: "dl_1", N: 1, KeyID: "k1", Result: delivery.Refused, Status: 404}}
	if _, err := o.ReplayDelivery(t.Context(), "dl_1", "why"); err != nil {
		t.Fatal(err)
	}
	got, err := o.Delivery(t.Context(), "dl_1")
	if err != nil {
		t.Fatal(err)
	}
	want := operator.DeliveryStory{Row: w.Deliveries["dl_1"], Subscription: w.Subscriptions["partner"], Attempts: w.Attempts["dl_1"], Acts: w.Acts[1:]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
