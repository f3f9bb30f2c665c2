package delivery_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func toPartner() delivery.Subscription {
	return delivery.Subscription{ID: "sub_1", Tenant: "acme", Types: []string{"*"}, ProfileName: delivery.Standard, State: delivery.Active}
}

func pending() delivery.Delivery {
	return delivery.New(webhook.Effect{ID: "ev_1", Tenant: "acme", Type: "payment.succeeded"}, toPartner(), noon)
}

func sending() delivery.Delivery { return pending().Claim("c", noon, time.Minute).Apply(pending()) }

func in(d delivery.Delivery, s delivery.Status) delivery.Delivery {
	d.Status, d.ClaimID, d.LeaseUntil = s, "", time.Time{}
	return d
}

// Proves X1, X6, X7: each transition's whole result.
func TestTransitionsChangeTheWholeDeliveryAsStated(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Hour)
	tests := []struct {
		name   string
		row    delivery.Delivery
		change delivery.Change
		want   func(*delivery.Delivery)
	}{
		{"a claim counts the attempt before anything is sent", pending(), pending().Claim("c", noon, time.Minute), func(d *delivery.Delivery) {
			d.Status, d.Fence, d.AttemptCount, d.ClaimID = delivery.Sending, 1, 1, "c"
			d.LeaseUntil, d.WakeAt = noon.Add(time.Minute), noon.Add(2*time.Minute)
		}},
		{"a 2xx ends it", sending(), sending().Deliver(later, 204), func(d *delivery.Delivery) {
			*d = in(*d, delivery.Delivered)
			d.Fence, d.LastStatus, d.EndedAt, d.ExpiresAt, d.WakeAt = 2, 204, later, later.Add(delivery.Keep), time.Time{}
		}},
		{"trouble makes it wait", sending(), sending().Again(later, 503, "status_503"), func(d *delivery.Delivery) {
			*d = in(*d, delivery.Retry)
			d.Fence, d.LastStatus, d.LastError, d.NextAttemptAt, d.WakeAt = 2, 503, "status_503", later, later.Add(time.Minute)
		}},
		{"a final answer ends it", sending(), sending().Kill(later, 400, "status_400"), func(d *delivery.Delivery) {
			*d = in(*d, delivery.Dead)
			d.Fence, d.LastStatus, d.LastError, d.EndedAt, d.ExpiresAt, d.WakeAt = 2, 400, "status_400", later, later.Add(delivery.Keep), time.Time{}
		}},
		{"its deadline ends it", pending(), pending().Expire(later), func(d *delivery.Delivery) {
			d.Status, d.Fence, d.LastError, d.EndedAt, d.ExpiresAt, d.WakeAt = delivery.Expired, 1, "deadline_passed", later, later.Add(delivery.Keep), time.Time{}
		}},
		{"without a key it is set aside until its deadline", pending(), pending().Fault(later, "key_missing"), func(d *delivery.Delivery) {
			d.Status, d.Fence, d.LastError, d.WakeAt = delivery.Faulted, 1, "key_missing", d.Deadline
		}},
		{"an operator lets it go on", in(pending(), delivery.Faulted), in(pending(), delivery.Faulted).Resume(later), func(d *delivery.Delivery) {
			d.Status, d.Fence, d.NextAttemptAt, d.WakeAt = delivery.Retry, 1, later, later.Add(time.Minute)
		}},
		{"waiting for a limit spends no attempt", pending(), pending().Postpone(later), func(d *delivery.Delivery) {
			d.Fence, d.NextAttemptAt, d.WakeAt = 1, later, later.Add(time.Minute)
		}},
		{"an operator cancels it", pending(), pending().Cancel(later, "by_operator"), func(d *delivery.Delivery) {
			d.Status, d.Fence, d.LastError, d.EndedAt, d.ExpiresAt, d.WakeAt = delivery.Cancelled, 1, "by_operator", later, later.Add(delivery.Keep), time.Time{}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.row
			tt.want(&want)
			if diff := cmp.Diff(want, tt.change.Apply(tt.row)); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
			if !tt.change.Guard.Allows(tt.row) {
				t.Error("the guard refuses the very delivery that it was decided on")
			}
			moved := tt.row
			moved.Fence += 5
			if tt.change.Transition != "deliver" && tt.change.Guard.Allows(moved) {
				t.Error("the guard allows a delivery that has moved on")
			}
		})
	}
}

// Proves X8, X12: a late 2xx is a fact for a delivery that has not ended, and for
// no other.
func TestALateAcceptanceHoldsUntilTheEnd(t *testing.T) {
	t.Parallel()
	late := sending().Deliver(noon, 200)
	second := sending()
	second.AttemptCount, second.Fence = 2, 7
	for status, want := range map[delivery.Status]bool{
		delivery.Sending: true, delivery.Retry: true, delivery.Faulted: true, delivery.Pending: false,
		delivery.Delivered: false, delivery.Dead: false, delivery.Expired: false, delivery.Cancelled: false,
	} {
		if got := late.Guard.Allows(in(second, status)); got != want {
			t.Errorf("%s: %t, want %t", status, got, want)
		}
	}
}

// Proves X6: a replay has an identity of its own and names the delivery that it repeats.
func TestAReplayIsAnotherDelivery(t *testing.T) {
	t.Parallel()
	dead := in(sending(), delivery.Dead)
	next, change := dead.Replay(toPartner(), noon)
	if next.ID == dead.ID || next.ReplayOf != dead.ID || next.Generation != 1 || change.ReplayedAs != next.ID || next.Status != delivery.Pending || next.AttemptCount != 0 {
		t.Errorf("replayed as %+v by %+v", next, change)
	}
	again, _ := in(next, delivery.Dead).Replay(toPartner(), noon)
	if again.ID == next.ID || again.ID == dead.ID {
		t.Error("two replays share an identity")
	}
}

// Proves X5: no delivery is attempted longer than its bytes live, so that it ends
// EXPIRED, and is not set aside for bytes that nothing brings back.
func TestADeliveryEndsWithItsBytes(t *testing.T) {
	t.Parallel()
	profile := noon.Add(toPartner().Profile().Deadline)
	for name, tt := range map[string]struct{ bytes, want time.Time }{
		"they live longer":       {profile.Add(time.Hour), profile},
		"they end before":        {noon.Add(30 * time.Hour), noon.Add(30 * time.Hour)},
		"nothing of it is known": {time.Time{}, profile},
	} {
		e := sending().Effect
		e.BodyExpiresAt = tt.bytes
		if got := delivery.New(e, toPartner(), noon).Deadline; !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// Proves X11: the previous key signs until no retry can be under way.
func TestARotationKeepsThePreviousKeyForItsRetries(t *testing.T) {
	t.Parallel()
	s := toPartner()
	s.Keys = []delivery.Key{{ID: "k1", Version: "v1", AddedAt: noon}}
	s = s.Rotate(delivery.Key{ID: "k2", Version: "v2", AddedAt: noon}, noon)
	ids := func(at time.Time) (ids []string) {
		for _, k := range s.Signing(at) {
			ids = append(ids, k.ID)
		}
		return ids
	}
	end := noon.Add(s.Profile().Deadline)
	if diff := cmp.Diff([][]string{{"k2", "k1"}, {"k2", "k1"}, {"k2"}}, [][]string{ids(noon), ids(end.Add(-1)), ids(end)}); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	s = s.Rotate(delivery.Key{ID: "k3", Version: "v3", AddedAt: noon}, noon)
	if diff := cmp.Diff([]string{"k3", "k2"}, ids(noon)); diff != "" {
		t.Errorf("after a second one (-want +got):\n%s", diff)
	}
}

func TestDaysOfFailurePause(t *testing.T) {
	t.Parallel()
	s := toPartner()
	s, changed := s.Judged(false, noon)
	if !changed || !s.FailingSince.Equal(noon) {
		t.Fatalf("the first failure is not noted: %+v", s)
	}
	if _, changed := s.Judged(false, noon.Add(delivery.FailingMax-1)); changed {
		t.Error("it is paused too soon")
	}
	if paused, changed := s.Judged(false, noon.Add(delivery.FailingMax)); !changed || paused.State != delivery.Paused || paused.StateWhy != "failing" {
		t.Errorf("it is not paused: %+v", paused)
	}
	if fine, changed := s.Judged(true, noon); !changed || !fine.FailingSince.IsZero() {
		t.Errorf("an acceptance does not end the count: %+v", fine)
	}
	if _, changed := toPartner().Judged(true, noon); changed {
		t.Error("nothing changes, and something is written")
	}
}

// Proves X5: what a partner asks for is read, or ignored.
func TestRetryAfterIsReadInBothForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2020 12:00:00 GMT": 0,
	} {
		if got, ok := delivery.RetryAfter(text, noon); !ok || got.Sub(noon) != want {
			t.Errorf("%q: %s, %t; want %s", text, got.Sub(noon), ok, want)
		}
	}
	for _, text := range []string{"", "soon", "-1", "1.5", "99999999999999999999"} {
		if got, ok := delivery.RetryAfter(text, noon); ok {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

func TestAnAnswerIsShownCutAndPrintable(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"fine\r\nline\ttwo": "fine  line two", "\x1b[31mred\x00": "[31mred", "über": "über", "\xff\xfe": "",
	} {
		if got := delivery.Printable([]byte(answer)); got != want {
			t.Errorf("%q is shown as %q, want %q", answer, got, want)
		}
	}
	long := delivery.Printable([]byte(strings.Repeat("ü", 5000)))
	if len(long) > delivery.AnswerBytesMax || !utf8.ValidString(long) || long == "" {
		t.Errorf("a long answer is shown in %d bytes: %q", len(long), long)
	}
}

func TestMembersAreFoundByTheirPath(t *testing.T) {
	t.Parallel()
	member := delivery.Members([]byte(`{"type":"t","data":{"a":{"b":"x","n":12345678901234567890,"yes":true,"none":null,"list":[1]},"top":"y"}}`))
	for path, want := range map[string]string{"a.b": "x", "a.n": "12345678901234567890", "a.yes": "true", "top": "y"} {
		if got, ok := member(path); !ok || got != want {
			t.Errorf("%s: %q, %t; want %q", path, got, ok, want)
		}
	}
	for _, path := range []string{"", "a", "a.none", "a.list", "a.b.c", "type", "a..b"} {
		if got, ok := member(path); ok {
			t.Errorf("%s: %q", path, got)
		}
	}
	if _, ok := delivery.Members([]byte("no event"))("a"); ok {
		t.Error("what is no event has members")
	}
}

// The named profiles end within their deadline, and well before the bytes of an
// event do.
func TestProfilesFitTheirDeadlines(t *testing.T) {
	t.Parallel()
	for _, p := range delivery.Profiles() {
		if _, longest := p.Span(); longest > p.Deadline || p.Deadline > 20*24*time.Hour || p.Skew != 5*time.Minute {
			t.Errorf("%s: attempts for %s, deadline %s, skew %s", p.Name, longest, p.Deadline, p.Skew)
		}
	}
	if got := (delivery.Subscription{ProfileName: "gone"}).Profile().Name; got != delivery.Standard {
		t.Errorf("an unknown profile is %s", got)
	}
}
