package ingress_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// unsignedID is where this sender puts its event id, which nothing signs: the same
// bytes may come under another one.
const unsignedID = "x-razorpay-event-id"

// captured is an endpoint of that sender, and what makes an event of a payment.
func captured(w *sim.World) func(id string, amount int64) *sim.Delivery {
	e := w.AddEndpoint("razorpay", "demo", "a text only the test knows")
	return func(id string, amount int64) *sim.Delivery {
		return w.Event(e, provider.SampleOptions{Type: "payment.captured", EventID: id, ObjectID: "pay_1", Amount: amount, Currency: "INR"})
	}
}

// under is the same request under another id.
func under(d *sim.Delivery, id string) *sim.Delivery {
	again := *d
	again.Sample.Header = maps.Clone(d.Sample.Header)
	again.Sample.Header[unsignedID], again.Answers = id, nil
	return &again
}

func row(w *sim.World, id webhook.EventID) webhook.Inbox {
	return w.Row(webhook.DeriveInboxID("demo", "razorpay", id))
}

// Proves D6, A6: the same bytes under a fresh id are kept for a whole life more, so
// that the second event does not lose them with the first one's.
func TestBytesThatComeAgainLiveAsLongAsTheirLastEvent(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	first := captured(w)("evt_1", 100)
	w.Send(first)
	w.Settle()
	w.Advance(20 * 24 * time.Hour)
	w.Send(under(first, "evt_2"))
	w.Settle()
	type life struct {
		SameBodyAs    webhook.InboxID
		BodyExpiresAt time.Time
	}
	got, want := row(w, "evt_2"), life{row(w, "evt_1").ID, w.Now().Truncate(time.Second).Add(30 * 24 * time.Hour)}
	if diff := cmp.Diff(want, life{got.SameBodyAs, got.BodyExpiresAt}); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if kept, err := w.Outside.BodyKept(t.Context(), got.BodyID, got.BodyExpiresAt); err != nil || !kept {
		t.Errorf("kept to the end of the row's word: %v, %v", kept, err)
	}
}

// Proves D6, A6: so are bytes that come again as a conflict.
func TestAConflictsBytesLiveAsLongAsItsRow(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	payment := captured(w)
	other := payment("evt_2", 9999)
	w.Send(payment("evt_1", 100))
	w.Send(other)
	w.Settle()
	w.Advance(20 * 24 * time.Hour)
	conflict := under(other, "evt_1")
	w.Send(conflict)
	got := w.Row(webhook.DeriveConflictID("demo", "razorpay", "evt_1", webhook.DigestOf(conflict.Sample.Body)))
	want := w.Now().Truncate(time.Second).Add(30 * 24 * time.Hour)
	if got.Status != webhook.Held || !got.BodyExpiresAt.Equal(want) {
		t.Errorf("%s, its body until %s, want HELD until %s", got.Status, got.BodyExpiresAt, want)
	}
	if kept, err := w.Outside.BodyKept(t.Context(), got.BodyID, got.BodyExpiresAt); err != nil || !kept {
		t.Errorf("kept to the end of the row's word: %v, %v", kept, err)
	}
}

// Proves D6, A6: the repeat of an erased event takes back no bytes that another
// event has come with since and still needs.
func TestARepeatOfAnErasedEventLeavesOthersTheirBytes(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	payment := captured(w)
	w.Send(payment("evt_1", 100))
	w.Settle()
	conflict := payment("evt_1", 9999)
	w.Send(conflict)
	id := webhook.DeriveConflictID("demo", "razorpay", "evt_1", webhook.DigestOf(conflict.Sample.Body))
	op := w.Command(business.Standard())
	if _, err := op.Fail(t.Context(), id, "a forgery"); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Erase(t.Context(), id, "request 77"); err != nil {
		t.Fatal(err)
	}
	w.Send(under(conflict, "evt_2"))
	if status := w.Post(conflict); status != 200 {
		t.Errorf("a repeat is answered %d", status)
	}
	w.Rest()
	if got := row(w, "evt_2"); got.Status != webhook.Processed {
		t.Errorf("the other event is %s (%s)", got.Status, got.LastError)
	}
}
