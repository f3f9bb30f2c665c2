package sim_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"dakghar/internal/business"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

const (
	stripeSecret   = "whsec_test_secret_for_the_simulation"
	standardSecret = "whsec_c2ltdWxhdGlvbiBzZWNyZXQgb2YgMzIgYnl0ZXMhISE="
)

func payment(id string) provider.SampleOptions {
	return provider.SampleOptions{Type: "payment_intent.succeeded", EventID: id, ObjectID: "pi_" + id, Amount: 1250, Currency: "EUR"}
}

func object(id string, version int64) provider.SampleOptions {
	return provider.SampleOptions{Type: "object.updated", EventID: id, ObjectID: "obj_1", Version: version}
}

func stripe(w *sim.World) *sim.Endpoint { return w.AddEndpoint("stripe", "demo", stripeSecret) }

// outcomes counts how rows ended: "PROCESSED applied".
func outcomes(w *sim.World) map[string]int {
	counts := map[string]int{}
	for _, r := range w.Inbox() {
		counts[strings.TrimSpace(string(r.Status)+" "+string(r.Outcome))]++
	}
	return counts
}

func wantOutcomes(want map[string]int) func(*sim.World) []string {
	return func(w *sim.World) []string {
		if got := outcomes(w); fmt.Sprint(got) != fmt.Sprint(want) {
			return []string{fmt.Sprintf("rows ended as %v, want %v", got, want)}
		}
		return nil
	}
}

// failing is a handler that fails as it is told, then leaves the work to another.
type failing struct {
	business.Handler
	err   error
	times int
}

func (f *failing) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	if f.times != 0 {
		f.times--
		return webhook.Plan{}, f.err
	}
	return f.Handler.Plan(ctx, ev, r)
}

var errPartner = errors.New("a handler's own dependency")

func handlersFailing(times int, err error) *business.Router {
	standard, ok := business.Standard().Handler(webhook.Event{Facts: webhook.Facts{ObjectType: webhook.Payment}, Policy: webhook.Monotonic})
	if !ok {
		panic("no handler for payments")
	}
	return business.NewRouter(map[webhook.ObjectType]business.Handler{
		webhook.Payment: &failing{Handler: standard, err: err, times: times},
	})
}

// scenarios are made anew for each run, since some of their handlers count.
func scenarios() []sim.Scenario {
	var e *sim.Endpoint
	arrange := func(w *sim.World) { e = stripe(w) }
	return []sim.Scenario{
		{
			Name: "accept and process", Arrange: arrange,
			Act:  func(w *sim.World) { w.Send(w.Event(e, payment("evt_1"))) },
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1}),
		},
		{
			Name: "three events at once", Arrange: arrange,
			Act: func(w *sim.World) {
				for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
					w.Send(w.Event(e, payment(id)))
				}
			},
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 3}),
		},
		{
			Name: "a duplicate before, during and after the work", Arrange: arrange,
			Act: func(w *sim.World) {
				d := w.Event(e, payment("evt_1"))
				w.Send(d)
				w.Send(d)
				w.PumpStream()
				w.Send(d)
				w.Settle()
				w.Send(d)
			},
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1}),
		},
		{
			Name:    "a known id with another body",
			Arrange: func(w *sim.World) { e = w.AddEndpoint("razorpay", "demo", "a text only the test knows") },
			Act: func(w *sim.World) {
				o := provider.SampleOptions{Type: "payment.captured", EventID: "evt_1", ObjectID: "pay_1", Amount: 100, Currency: "INR"}
				w.Send(w.Event(e, o))
				o.Amount = 9999
				w.Send(w.Event(e, o))
			},
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1, "HELD": 1}),
		},
		{
			Name: "a body too large for a row", Arrange: arrange, Options: sim.Options{InlineBytes: 1},
			Act: func(w *sim.World) {
				large := payment("evt_1")
				large.BodyBytes = 200 << 10
				w.Send(w.Event(e, large))
			},
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1}),
		},
		{
			Name:    "versions 3, 1, 2",
			Arrange: func(w *sim.World) { e = w.AddEndpoint("standard-webhooks", "objects", standardSecret) },
			Act: func(w *sim.World) {
				for _, v := range []int64{3, 1, 2} {
					w.Send(w.Event(e, object(fmt.Sprintf("msg_%d", v), v)))
					w.Settle()
				}
			},
			Want: func(w *sim.World) []string {
				// A death can change which of the older versions comes before the
				// newest; whatever the order, the newest stands at the end.
				counts := outcomes(w)
				if counts["PROCESSED applied"]+counts["PROCESSED stale"] != 3 || counts["PROCESSED applied"] < 1 {
					return []string{fmt.Sprintf("rows ended as %v", counts)}
				}
				if v := w.Projected("obj_1", business.AttrVersion); v != int64(3) {
					return []string{fmt.Sprintf("the object is at version %v, want 3", v)}
				}
				return nil
			},
		},
		{
			Name: "a handler that fails twice", Options: sim.Options{Handlers: handlersFailing(2, errPartner)}, Arrange: arrange,
			Act:  func(w *sim.World) { w.Send(w.Event(e, payment("evt_1"))) },
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1}),
		},
		{
			Name: "a handler that never succeeds", Options: sim.Options{Handlers: handlersFailing(-1, errPartner), AttemptsMax: 3}, Arrange: arrange,
			Act:  func(w *sim.World) { w.Send(w.Event(e, payment("evt_1"))) },
			Want: wantOutcomes(map[string]int{"FAILED": 1}),
		},
		{
			Name: "failed, and replayed by an operator", Options: sim.Options{Handlers: handlersFailing(3, errPartner), AttemptsMax: 3}, Arrange: arrange,
			Act: func(w *sim.World) {
				w.Send(w.Event(e, payment("evt_1")))
				w.Rest()
				w.Operate(webhook.DeriveInboxID("demo", "stripe", "evt_1"), webhook.Inbox.Replay)
			},
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1}),
		},
		{
			Name: "held while a worker has it, and released", Options: sim.Options{}, Arrange: arrange,
			Act: func(w *sim.World) {
				w.Send(w.Event(e, payment("evt_1")))
				w.PumpStream()
				id := webhook.DeriveInboxID("demo", "stripe", "evt_1")
				w.Operate(id, func(row webhook.Inbox, _ time.Time) webhook.Change { return row.Hold("held_by_operator") })
				w.Rest()
				w.Operate(id, webhook.Inbox.Release)
			},
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1}),
		},
		{
			Name: "a message that is lost", Arrange: arrange,
			Act: func(w *sim.World) {
				w.Send(w.Event(e, payment("evt_1")))
				for w.PumpStream() {
				}
				w.Purge()
			},
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1}),
		},
		{
			Name: "a stream that is lost", Arrange: arrange,
			Act: func(w *sim.World) {
				w.Send(w.Event(e, payment("evt_1")))
				w.DropStream()
			},
			Want: wantOutcomes(map[string]int{"PROCESSED applied": 1}),
		},
	}
}

// exhaustive reports whether every point is visited, as `make crash` asks for. A
// run of all tests visits a slice of them: with the race detector on, all would
// take minutes.
func exhaustive() bool { return os.Getenv("CRASH") == "all" }

// The slices of an ordinary run: every so many-th point or pair.
const (
	pointsEvery = 5
	pairsEvery  = 17
)

func slice(points []sim.Point, every, from int) []sim.Point {
	if exhaustive() {
		return points
	}
	var some []sim.Point
	for i := from % every; i < len(points); i += every {
		some = append(some, points[i])
	}
	return some
}

// TestCrash kills each program before and after each of its AWS calls, in every
// scenario, and lets the rest of the system come to rest.
//
// Proves A2, A6, D4, D5, W2, W4, R1, R2, T4, T7.
func TestCrash(t *testing.T) {
	t.Parallel()
	for i := range scenarios() {
		t.Run(scenarios()[i].Name, func(t *testing.T) {
			t.Parallel()
			all := scenarios()[i].Points(t)
			points := slice(all, pointsEvery, i)
			for _, point := range points {
				scenarios()[i].Die(t, point)
			}
			t.Logf("%d of %d crash points, all recovered: %v", len(points), len(all), !t.Failed())
		})
	}
}

// TestCrashTwice adds a second death after the first: pairs of points in
// different programs for the main scenario.
func TestCrashTwice(t *testing.T) {
	t.Parallel()
	points := scenarios()[0].Points(t)
	n, visited := 0, 0
	for _, a := range points {
		for _, b := range points {
			if a.Program >= b.Program {
				continue
			}
			if n++; exhaustive() || n%pairsEvery == 0 {
				scenarios()[0].Die(t, a, b)
				visited++
			}
		}
	}
	t.Logf("%d of %d pairs of crash points, all recovered: %v", visited, n, !t.Failed())
}
