package operator_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// told is an applied event with its body, and one delivery of what it brought about.
func told(status delivery.Status) (*operatortest.World, webhook.Inbox) {
	w, row := eventIn(webhook.Processed)
	row.Tenant, row.BodyID, row.ObjectID = "acme", "bd_event", "cus_1"
	w.Rows[row.ID], w.Bodies[row.BodyID], w.Bodies["bd_effect"] = row, []byte("raw"), []byte("told")
	w.Subscriptions["partner"] = delivery.Subscription{ID: "partner", Tenant: "acme"}
	effect := webhook.Effect{ID: webhook.DeriveEffectID(row.ID, 0, 1), InboxID: row.ID, Tenant: "acme", BodyID: "bd_effect", BodyExpiresAt: w.Clock.Add(20 * 24 * time.Hour)}
	d := delivery.Delivery{
		ID: delivery.DeriveID("acme", effect.ID, "partner", 0), Tenant: "acme", Subscription: "partner", Effect: effect, Status: status,
	}
	w.Deliveries[d.ID] = d
	return w, row
}

func codeIs(t *testing.T, err error, want string) {
	t.Helper()
	refusal, ok := errors.AsType[*operator.Refusal](err)
	if !ok || refusal.Code != want {
		t.Errorf("error %v, want the refusal %s", err, want)
	}
}

// Proves D6, R3: what an event brought is gone, the row keeps its identity and says
// so, the event is listed, and the act is recorded. It is not opened again.
func TestErasingAnEventDeletesWhatItBrought(t *testing.T) {
	t.Parallel()
	w, row := told(delivery.Delivered)
	o := w.Operator()
	want := row
	want.Fence, want.ErasedAt, want.BodyExpiresAt = row.Fence+1, w.Clock, w.Clock
	for range 2 { // the second is that of somebody who does not know of the first
		if _, err := o.Erase(t.Context(), row.ID, "request 77"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.Rows[row.ID]); diff != "" {
			t.Errorf("row (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[webhook.BodyID][]byte{}, w.Bodies); diff != "" {
			t.Errorf("bytes that are left (-want +got):\n%s", diff)
		}
		list := []webhook.Erased{{InboxID: row.ID, Endpoint: "demo", Tenant: "acme", BodyID: "bd_event", Effects: []webhook.BodyID{"bd_effect"}, At: w.Clock}}
		if diff := cmp.Diff(list, w.Erased); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		acts := []webhook.Act{{ID: "act-1", At: w.Clock, Name: "erase", Subject: "event in_1", Who: "ada", Why: "request 77"}}
		if diff := cmp.Diff(acts, w.Acts); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
	}
	w.Applied = map[webhook.InboxID]bool{}
	_, err := o.Reprocess(t.Context(), row.ID, "search-index", "")
	codeIs(t, err, "erased")
	for id := range w.Deliveries {
		_, err = o.ReplayDelivery(t.Context(), id, "")
		codeIs(t, err, "body_gone")
	}
	_, err = o.Body(t.Context(), row.ID, "to see")
	codeIs(t, err, "body_gone")
}

// Proves D6: what is refused keeps its bytes and its row.
func TestWhatIsNotErased(t *testing.T) {
	t.Parallel()
	sharer := func(w *operatortest.World, change func(*webhook.Inbox)) {
		w.Kept["bd_event"] = webhook.Kept{PutID: "put", First: "in_1", RenewedAt: w.Clock.Add(-time.Hour)}
		other := webhook.Inbox{ID: "in_2", Endpoint: "demo", BodyID: "bd_event", Status: webhook.Retry, ReceivedAt: w.Clock.Add(-time.Hour)}
		change(&other)
		w.Rows[other.ID] = other
	}
	tests := []struct {
		name    string
		arrange func(w *operatortest.World, r *webhook.Inbox)
		code    string
	}{
		{"an open event", func(_ *operatortest.World, r *webhook.Inbox) { r.Status = webhook.Retry }, "wrong_state"},
		{"a held event", func(_ *operatortest.World, r *webhook.Inbox) { r.Status = webhook.Held }, "wrong_state"},
		{"an event under legal hold", func(_ *operatortest.World, r *webhook.Inbox) { r.LegalHold = true }, "legal_hold"},
		{"bytes that an open event shares", func(w *operatortest.World, _ *webhook.Inbox) {
			sharer(w, func(*webhook.Inbox) {})
		}, "body_shared"},
		{"bytes that an event under legal hold shares", func(w *operatortest.World, _ *webhook.Inbox) {
			sharer(w, func(r *webhook.Inbox) { r.Status, r.LegalHold = webhook.Failed, true })
		}, "body_shared"},
		{"bytes that were put again by a request without an event", func(w *operatortest.World, _ *webhook.Inbox) {
			w.Kept["bd_event"] = webhook.Kept{PutID: "put", First: "in_9"}
		}, "body_shared"},
		{"bytes that came again a moment ago", func(w *operatortest.World, _ *webhook.Inbox) {
			w.Kept["bd_event"] = webhook.Kept{PutID: "put", First: "in_1", RenewedAt: w.Clock.Add(-time.Minute)}
		}, "body_fresh"},
		{"what a partner is still to be told", func(w *operatortest.World, _ *webhook.Inbox) {
			for id, d := range w.Deliveries {
				d.Status = delivery.Retry
				w.Deliveries[id] = d
			}
		}, "delivery_open"},
		{"what is still to be fanned out", func(w *operatortest.World, r *webhook.Inbox) {
			id := webhook.NewOutboxID(r.ID, webhook.TopicEffect, 1)
			w.Promises[id] = webhook.Outbox{ID: id, InboxID: r.ID}
		}, "delivery_open"},
		{"an event whose body store is down", func(w *operatortest.World, _ *webhook.Inbox) {
			w.Fail = operatortest.Down("Look")
		}, "unavailable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, row := told(delivery.Dead)
			tt.arrange(w, &row)
			w.Rows[row.ID] = row
			_, err := w.Operator().Erase(t.Context(), row.ID, "request 77")
			codeIs(t, err, tt.code)
			if diff := cmp.Diff(row, w.Rows[row.ID]); diff != "" || len(w.Acts)+len(w.Erased) > 0 {
				t.Errorf("row changed (-before +after):\n%s; %d records, %d listed", diff, len(w.Acts), len(w.Erased))
			}
			if diff := cmp.Diff(map[webhook.BodyID][]byte{"bd_event": []byte("raw"), "bd_effect": []byte("told")}, w.Bodies); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
		})
	}
	w, row := told(delivery.Delivered)
	_, err := w.Operator().Erase(t.Context(), row.ID, "")
	codeIs(t, err, "usage")
}

// An event with the same bytes that has ended does not keep them.
func TestBytesThatAnEndedEventSharesAreErased(t *testing.T) {
	t.Parallel()
	w, row := told(delivery.Delivered)
	w.Rows["in_2"] = webhook.Inbox{ID: "in_2", Endpoint: "demo", BodyID: "bd_event", Status: webhook.Failed, ReceivedAt: w.Clock.Add(-2 * time.Hour)}
	w.Kept["bd_event"] = webhook.Kept{PutID: "put", First: "in_2", RenewedAt: w.Clock.Add(-time.Hour)}
	if _, err := w.Operator().Erase(t.Context(), row.ID, "request 77"); err != nil {
		t.Fatal(err)
	}
	if len(w.Bodies) > 0 {
		t.Errorf("left: %v", w.Bodies)
	}
}

// dying ends a command at its n-th call of a store, before or after its effect;
// every later call finds the same dead command.
func dying(w *operatortest.World, n int, after bool) (died func() bool) {
	calls, dead := 0, false
	w.Fail = func(string) error {
		if calls++; dead || !after && calls >= n {
			dead = true
			return operatortest.ErrDown
		}
		return nil
	}
	w.Lose = func(string) error {
		if after && calls >= n {
			dead = true
			return operatortest.ErrDown
		}
		return nil
	}
	return func() bool { return dead }
}

func alive(w *operatortest.World) {
	w.Fail, w.Lose = func(string) error { return nil }, func(string) error { return nil }
}

// afterEachDeath runs a command that dies at each of its calls in turn, runs it
// again, and looks at the end, which is always the same.
func afterEachDeath(t *testing.T, arrange func() *operatortest.World, command func(*operatortest.World) error, end func(*operatortest.World) any) {
	t.Helper()
	whole := arrange()
	if err := command(whole); err != nil {
		t.Fatal(err)
	}
	for _, after := range []bool{false, true} {
		deaths := 0
		for n := 1; ; n++ {
			w := arrange()
			died := dying(w, n, after)
			err := command(w)
			if !died() {
				break
			}
			deaths++
			alive(w)
			if again := command(w); again != nil {
				t.Fatalf("call %d, after %v: died with %v; run again: %v", n, after, err, again)
			}
			if diff := cmp.Diff(end(whole), end(w)); diff != "" {
				t.Errorf("call %d, after %v (-whole +died and run again):\n%s", n, after, diff)
			}
		}
		if deaths < 2 {
			t.Errorf("after %v: it died %d times", after, deaths)
		}
	}
}

type remains struct {
	Row    webhook.Inbox
	Bodies map[webhook.BodyID][]byte
	Copies map[webhook.InboxID][]byte
	Listed int
	Holds  int
	Acts   []string
}

func remaining(w *operatortest.World) any {
	r := remains{Row: w.Rows["in_1"], Bodies: w.Bodies, Copies: w.Copies, Listed: len(w.Erased), Holds: len(w.LegalHolds)}
	for _, a := range w.Acts {
		r.Acts = append(r.Acts, a.Name)
	}
	return r
}

// Proves D6, R3: whoever dies at any point of an erasing, or of a legal hold, runs
// the command again and has the same end.
func TestDyingAtAnyPointOfAnErasingAndRunningItAgain(t *testing.T) {
	t.Parallel()
	arrange := func() *operatortest.World { w, _ := told(delivery.Delivered); return w }
	t.Run("erase", func(t *testing.T) {
		t.Parallel()
		afterEachDeath(t, arrange, func(w *operatortest.World) error {
			_, err := w.Operator().Erase(t.Context(), "in_1", "request 77")
			return err
		}, remaining)
	})
	t.Run("legal-hold set", func(t *testing.T) {
		t.Parallel()
		afterEachDeath(t, arrange, func(w *operatortest.World) error {
			_, _, err := w.Operator().HoldByLaw(t.Context(), "in_1", "case 14")
			return err
		}, remaining)
	})
	t.Run("legal-hold clear", func(t *testing.T) {
		t.Parallel()
		afterEachDeath(t, func() *operatortest.World {
			w := arrange()
			if _, _, err := w.Operator().HoldByLaw(t.Context(), "in_1", "case 14"); err != nil {
				t.Fatal(err)
			}
			return w
		}, func(w *operatortest.World) error {
			_, err := w.Operator().ClearLegalHold(t.Context(), "in_1", "closed")
			return err
		}, remaining)
	})
}

// Proves D6, R3: many are erased as a job, and a job that died is resumed to the
// same end: an event that it marked and no more is finished.
func TestManyEventsAreErasedAsAJob(t *testing.T) {
	t.Parallel()
	arrange := func() (*operatortest.World, *operator.Operator) {
		w, o := crowd(t, 6)
		o.Workers = 1
		for id, row := range w.Rows {
			row.BodyID, row.ObjectID = webhook.BodyID("bd_"+id), "cus_1"
			w.Rows[id], w.Bodies[row.BodyID] = row, []byte("raw")
		}
		change := func(id webhook.InboxID, do func(*webhook.Inbox)) {
			row := w.Rows[id]
			do(&row)
			w.Rows[id] = row
		}
		change("in_001", func(r *webhook.Inbox) { r.LegalHold = true })
		change("in_002", func(r *webhook.Inbox) { r.ObjectID = "cus_2" })
		change("in_003", func(r *webhook.Inbox) { r.Status = webhook.Retry })
		return w, o
	}
	wish := func(w *operatortest.World) operator.Bulk {
		b := bulk(w, "erase")
		b.Filter.Object = "cus_1"
		return b
	}
	w, o := arrange()
	plan := planned(t, o, wish(w))
	if diff := cmp.Diff(map[string]int{"legal_hold": 1, "wrong_state": 1}, plan.Refused); diff != "" || plan.Matched != 5 || plan.Units != 24 {
		t.Errorf("plan: %d match, %d units, refused (-want +got):\n%s", plan.Matched, plan.Units, diff)
	}
	j, err := o.Start(t.Context(), plan, quiet)
	if err != nil || j.Done != 3 || j.State != webhook.JobDone {
		t.Fatalf("job %+v, error %v", j, err)
	}
	left := map[webhook.BodyID][]byte{"bd_in_001": []byte("raw"), "bd_in_002": []byte("raw"), "bd_in_003": []byte("raw")}
	if diff := cmp.Diff(left, w.Bodies); diff != "" {
		t.Errorf("bytes that are left (-want +got):\n%s", diff)
	}
	again := planned(t, o, wish(w))
	if diff := cmp.Diff(map[string]int{"legal_hold": 1, "wrong_state": 1, "erased_before": 3}, again.Refused); diff != "" {
		t.Errorf("planned again (-want +got):\n%s", diff)
	}

	for n := 1; ; n++ {
		w, o := arrange()
		plan := planned(t, o, wish(w))
		died := dying(w, n, n%2 == 0)
		j, err := o.Start(t.Context(), plan, quiet)
		if !died() {
			break
		}
		alive(w)
		switch _, made := w.Jobs[j.ID]; {
		case err == nil:
			t.Fatalf("call %d: the job noticed nothing", n)
		case !made: // died before it began
			_, err = o.Start(t.Context(), plan, quiet)
		case w.Jobs[j.ID].State.Over():
			err = nil
		default:
			_, err = o.ResumeJob(t.Context(), j.ID, "", quiet)
		}
		if err != nil {
			t.Fatalf("call %d: resumed: %v", n, err)
		}
		if diff := cmp.Diff(left, w.Bodies); diff != "" || len(w.Erased) != 3 {
			t.Errorf("call %d: %d listed; bytes that are left (-want +got):\n%s", n, len(w.Erased), diff)
		}
	}
}

// Proves D6: what a restore brings back is erased again from the list, whatever of
// it came back; what does not stand in the list stays.
func TestARestoreIsErasedAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		restore func(w *operatortest.World, before webhook.Inbox)
		want    operator.Again
	}{
		{"the bodies", func(w *operatortest.World, _ webhook.Inbox) {
			w.Bodies["bd_event"], w.Bodies["bd_effect"] = []byte("raw"), []byte("told")
		}, operator.Again{Listed: 1, Bytes: 1, Left: map[string]int{}}},
		{"the inbox", func(w *operatortest.World, before webhook.Inbox) {
			w.Rows[before.ID] = before
		}, operator.Again{Listed: 1, Erased: 1, Left: map[string]int{}}},
		{"both", func(w *operatortest.World, before webhook.Inbox) {
			w.Rows[before.ID], w.Bodies["bd_event"], w.Bodies["bd_effect"] = before, []byte("raw"), []byte("told")
		}, operator.Again{Listed: 1, Erased: 1, Left: map[string]int{}}},
		{"the bodies, and the inbox of before the event", func(w *operatortest.World, before webhook.Inbox) {
			delete(w.Rows, before.ID)
			w.Bodies["bd_event"], w.Kept["bd_event"] = []byte("raw"), webhook.Kept{PutID: "put", First: before.ID}
		}, operator.Again{Listed: 1, Bytes: 1, Left: map[string]int{}}},
		{"the deliveries are over, and the bodies", func(w *operatortest.World, _ webhook.Inbox) {
			w.Deliveries = map[delivery.ID]delivery.Delivery{}
			w.Bodies["bd_effect"] = []byte("told")
		}, operator.Again{Listed: 1, Bytes: 1, Left: map[string]int{}}},
		{"the inbox, where it is open", func(w *operatortest.World, before webhook.Inbox) {
			before.Status = webhook.Retry
			w.Rows[before.ID] = before
		}, operator.Again{Listed: 1, Left: map[string]int{"wrong_state": 1}}},
		{"nothing", func(*operatortest.World, webhook.Inbox) {}, operator.Again{Listed: 1, Bytes: 1, Left: map[string]int{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, row := told(delivery.Delivered)
			o := w.Operator()
			if _, err := o.Erase(t.Context(), row.ID, "request 77"); err != nil {
				t.Fatal(err)
			}
			w.Advance(time.Hour)
			tt.restore(w, row)
			w.Bodies["bd_other"] = []byte("another's")
			got, err := o.EraseAgain(t.Context(), w.Clock.Add(-48*time.Hour), "restored")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("came to (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[webhook.BodyID][]byte{"bd_other": []byte("another's")}, w.Bodies); diff != "" {
				t.Errorf("bytes that are left (-want +got):\n%s", diff)
			}
			if row, there := w.Rows[row.ID]; there && row.Status.Terminal() && row.ErasedAt.IsZero() {
				t.Errorf("not marked again: %+v", row)
			}
		})
	}
}

// Proves D6: a hold keeps row and bytes beyond their expiry, and the event as it is.
func TestALegalHoldKeepsAnEventAsItIs(t *testing.T) {
	t.Parallel()
	w, row := told(delivery.Delivered)
	o := w.Operator()
	held, kept, err := o.HoldByLaw(t.Context(), row.ID, "case 14")
	if err != nil || !kept {
		t.Fatalf("kept %v, error %v", kept, err)
	}
	want := row
	want.Fence, want.LegalHold, want.ExpiresAt = row.Fence+1, true, time.Time{}
	if diff := cmp.Diff(want, held); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[webhook.InboxID]webhook.HeldByLaw{"in_1": {InboxID: "in_1", Endpoint: "demo", At: w.Clock, Who: "ada", Why: "case 14"}}, w.LegalHolds); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	_, err = o.Erase(t.Context(), row.ID, "request 77")
	codeIs(t, err, "legal_hold")
	_, err = o.Reprocess(t.Context(), row.ID, "search-index", "")
	codeIs(t, err, "legal_hold")
	delete(w.Bodies, row.BodyID) // its life is over
	if raw, err := o.Body(t.Context(), row.ID, "for the court"); err != nil || string(raw) != "raw" {
		t.Errorf("body %q, error %v", raw, err)
	}

	w.Advance(time.Hour)
	cleared, err := o.ClearLegalHold(t.Context(), row.ID, "closed")
	if err != nil {
		t.Fatal(err)
	}
	want.Fence, want.LegalHold, want.ExpiresAt = row.Fence+2, false, w.Clock.Add(400*24*time.Hour)
	if diff := cmp.Diff(want, cleared); diff != "" || len(w.Copies)+len(w.LegalHolds) > 0 {
		t.Errorf("%d copies, %d holds; row (-want +got):\n%s", len(w.Copies), len(w.LegalHolds), diff)
	}
	if _, err := o.Erase(t.Context(), row.ID, "request 77"); err != nil {
		t.Error(err)
	}
}

// Proves D6: what cannot be held is told.
func TestWhatIsNotHeldByLaw(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*webhook.Inbox)
		why    string
		code   string
	}{
		"open":             {func(r *webhook.Inbox) { r.Status = webhook.Held }, "case 14", "wrong_state"},
		"erased":           {func(r *webhook.Inbox) { r.ErasedAt = r.ReceivedAt }, "case 14", "erased"},
		"without a reason": {func(*webhook.Inbox) {}, "", "usage"},
	} {
		w, row := told(delivery.Delivered)
		tt.change(&row)
		w.Rows[row.ID] = row
		_, _, err := w.Operator().HoldByLaw(t.Context(), row.ID, tt.why)
		codeIs(t, err, tt.code)
		if fmt.Sprint(w.Rows[row.ID]) != fmt.Sprint(row) || len(w.Acts) > 0 {
			t.Errorf("%s: something was done", name)
		}
	}
	w, row := told(delivery.Delivered)
	delete(w.Bodies, row.BodyID)
	if held, kept, err := w.Operator().HoldByLaw(t.Context(), row.ID, "case 14"); err != nil || kept || !held.LegalHold {
		t.Errorf("without bytes: held %v, kept %v, error %v; want the row alone", held.LegalHold, kept, err)
	}
}
