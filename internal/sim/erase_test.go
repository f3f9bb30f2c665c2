package sim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// Proves D6, A3: an erased event's repeat is a duplicate that leaves no bytes
// behind, also where the operator's clock is ahead of the front door's; what was
// applied stays applied.
func TestARepeatOfAnErasedEventBringsNothingBack(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"clocks agree": -time.Second, "the operator's is ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sim.New(t, sim.Options{})
			e := stripe(w)
			d := w.Event(e, intent("1", "succeeded"))
			w.Send(d)
			w.Settle()
			before := w.Inbox()[0]
			if before.Status != webhook.Processed || !w.BodyKept(before.Digest, "demo") {
				t.Fatalf("before: %+v", before)
			}
			op := w.Command(business.Standard())
			at := w.Now().Add(ahead)
			op.Now = func() time.Time { return at }
			if _, err := op.Erase(t.Context(), before.ID, "request 77"); err != nil {
				t.Fatal(err)
			}
			want := before
			want.Fence, want.ErasedAt, want.BodyExpiresAt = before.Fence+1, at.Truncate(time.Millisecond), at.Truncate(time.Millisecond)
			for range 2 {
				if diff := cmp.Diff([]webhook.Inbox{want}, w.Inbox()); diff != "" {
					t.Errorf("rows (-want +got):\n%s", diff)
				}
				if w.BodyKept(before.Digest, "demo") {
					t.Error("the bytes are there")
				}
				w.RestartIngress() // it would answer from memory
				if status := w.Post(d); status != 200 {
					t.Errorf("a repeat is answered %d", status)
				}
				w.Settle()
			}
		})
	}
}

// Proves D6, A3: so does the repeat of an event that came as another's id with
// another body, was held for that, ended and erased.
func TestARepeatOfAnErasedConflictBringsNothingBack(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("razorpay", "demo", "a text only the test knows")
	o := provider.SampleOptions{Type: "payment.captured", EventID: "evt_1", ObjectID: "pay_1", Amount: 100, Currency: "INR"}
	w.Send(w.Event(e, o))
	w.Settle()
	o.Amount = 9999
	d := w.Event(e, o)
	w.Send(d)
	var held webhook.Inbox
	for _, row := range w.Inbox() {
		if row.ConflictWith != "" {
			held = row
		}
	}
	op := w.Command(business.Standard())
	if _, err := op.Fail(t.Context(), held.ID, "a forgery"); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Erase(t.Context(), held.ID, "request 77"); err != nil {
		t.Fatal(err)
	}
	if held.Status != webhook.Held || w.BodyKept(held.Digest, "demo") {
		t.Fatalf("before: %+v", held)
	}
	if status := w.Post(d); status != 200 {
		t.Errorf("a repeat is answered %d", status)
	}
	if w.BodyKept(held.Digest, "demo") {
		t.Error("the bytes are there")
	}
}
