package sim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
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
