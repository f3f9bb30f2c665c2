package capacity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/capacity"
	"dakghar/internal/crashtest"
	"dakghar/internal/delivery"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// oneRow is the handler that writes one small row.
type oneRow struct{}

func (oneRow) Plan(_ context.Context, ev webhook.Event, _ business.Reader) (webhook.Plan, error) {
	row := webhook.Item{"amount": ev.Facts.Amount, "currency": ev.Facts.Currency, "inbox_id": string(ev.InboxID)}
	return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{webhook.PutItem(business.Key(ev, "paid"), row)}}, nil
}

// onceTroubled fails the first try of each event.
type onceTroubled struct{ tried sync.Map }

func (o *onceTroubled) Plan(ctx context.Context, ev webhook.Event, r business.Reader) (webhook.Plan, error) {
	if _, before := o.tried.LoadOrStore(ev.InboxID, true); !before {
		return webhook.Plan{}, fault.New(fault.Theirs, "partner_503", errors.New("not now"))
	}
	return oneRow{}.Plan(ctx, ev, r)
}

const number = "000000000000"

// payment is the body that the figures are measured with.
func payment(t *testing.T, n int) []byte {
	t.Helper()
	body, err := os.ReadFile("../bench/testdata/payment_intent.json")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(body, []byte(number), fmt.Appendf(nil, "%012d", n))
}

// filled is a payment of the same size of which half is entropy.
func filled(t *testing.T, e *sim.Endpoint, n int) []byte {
	t.Helper()
	sample, err := e.Adapter.Sample(provider.SampleOptions{
		Type: "payment_intent.succeeded", EventID: fmt.Sprintf("evt_%012d", n), ObjectID: fmt.Sprintf("pi_%012d", n), BodyBytes: 10 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	return sample.Body
}

const events = 10

// counted is a world whose units are counted a stage at a time.
type counted struct {
	*sim.World
	endpoint *sim.Endpoint
	body     func(n int) []byte
	stages   map[capacity.Stage]map[capacity.Table]capacity.Units
}

func count(t *testing.T, handlers *business.Router, partners int) *counted {
	t.Helper()
	w := &counted{World: sim.New(t, sim.Options{Handlers: handlers}), stages: map[capacity.Stage]map[capacity.Table]capacity.Units{}}
	w.endpoint = w.AddEndpoint("stripe", "demo", "whsec_secret_of_the_benchmark")
	w.body = func(n int) []byte { return payment(t, n) }
	for n := range partners {
		w.Subscribe(delivery.SubscriptionID(fmt.Sprintf("sub_%02d", n)), nil)
	}
	return w
}

// warm brings the data keys and fills the caches.
func (w *counted) warm() {
	w.send(1_000_000)
	w.Rest()
	w.DynamoDB.ResetUsage()
}

func (w *counted) send(n int) {
	w.T.Helper()
	if status := w.Send(&sim.Delivery{Endpoint: w.endpoint, Sample: provider.Sample{Body: w.body(n)}}); status != 200 {
		w.T.Fatalf("event %d: status %d", n, status)
	}
}

// took notes what was used since, for each of n. The registry is left out: its
// rows are read once a process and half a minute.
func (w *counted) took(stage capacity.Stage, n float64) {
	used := map[capacity.Table]capacity.Units{}
	for _, table := range capacity.Tables() {
		u := w.DynamoDB.Usage()["sim-"+string(table)+"Table"]
		if table != capacity.Registry && (u.Write > 0 || u.Read > 0) {
			used[table] = capacity.Units{Write: u.Write / n, Index: u.IndexWrite / n, Read: u.Read / n}
		}
	}
	w.stages[stage] = used
	w.DynamoDB.ResetUsage()
}

func (w *counted) pump(once func() bool) {
	for once() {
	}
}

// way sends events and counts each stage of their way.
func (w *counted) way(partners float64) {
	w.T.Helper()
	w.warm()
	for n := range events {
		w.send(n)
	}
	w.took(capacity.Accept, events)
	w.pump(w.PumpStream)
	w.took(capacity.Relay, events)
	w.pump(w.PumpQueue)
	w.took(capacity.Process, events)
	if partners > 0 {
		w.pump(w.PumpStream)
		w.took(capacity.Effect, events)
		w.pump(w.PumpDeliveries)
		w.took(capacity.FanOut, events)
	}
	for _, row := range w.Inbox() {
		if row.Status != webhook.Processed {
			w.T.Fatalf("%s ended %s", row.EventID, row.Status)
		}
	}
}

// want is what the calculator says of some stages together, for one event.
func want(l capacity.Load, stages ...capacity.Stage) map[capacity.Table]capacity.Units {
	out := map[capacity.Table]capacity.Units{}
	for _, w := range l.Work() {
		for _, s := range stages {
			if w.Stage == s && w.Times > 0 {
				u := out[w.Table]
				u.Write += w.Write * w.Times
				u.Index += w.Index * w.Times
				u.Read += w.Read * w.Times
				out[w.Table] = u
			}
		}
	}
	return out
}

func (w *counted) compare(what string, stage capacity.Stage, want map[capacity.Table]capacity.Units) {
	w.T.Helper()
	if diff := cmp.Diff(want, w.stages[stage]); diff != "" {
		w.T.Errorf("%s, %s: what the calculator says (-) and what was counted (+):\n%s", what, stage, diff)
	}
}

// Proves L4: the calculator's units are those that are counted, by stage and table.
func TestTheCalculatorsUnitsAreThoseThatAreCounted(t *testing.T) {
	t.Parallel()
	standard := business.Standard()
	one := business.Standard().With(webhook.Payment, oneRow{})
	load := capacity.Defaults()
	for _, tt := range []struct {
		name     string
		handlers *business.Router
		filled   bool
		change   func(*capacity.Load)
		total    float64
	}{
		{"one business row", one, false, func(l *capacity.Load) { l.BusinessRows = 1 }, 17},
		{"the built-in handlers", standard, false, func(*capacity.Load) {}, 21},
		{"half of the body is entropy", one, true, func(l *capacity.Load) { l.BusinessRows, l.Compression = 1, 1.9 }, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := load
			tt.change(&l)
			w := count(t, tt.handlers, 0)
			if tt.filled {
				w.body = func(n int) []byte { return filled(t, w.endpoint, n) }
			}
			w.way(0)
			for _, stage := range []capacity.Stage{capacity.Accept, capacity.Relay, capacity.Process} {
				wanted := want(l, stage)
				if tt.handlers == one { // it reads nothing
					wanted = withoutReads(wanted, capacity.Business)
				}
				w.compare(tt.name, stage, wanted)
			}
			if write, _ := l.PerEvent(); write != tt.total {
				t.Errorf("%g write units an event, want %g", write, tt.total)
			}
		})
	}
}

func withoutReads(all map[capacity.Table]capacity.Units, table capacity.Table) map[capacity.Table]capacity.Units {
	if u, ok := all[table]; ok {
		u.Read = 0
		all[table] = u
	}
	return all
}

// Proves L4, X2: the outbound half's units.
func TestAFanOutsUnitsAreThoseThatAreCounted(t *testing.T) {
	t.Parallel()
	for _, partners := range []int{1, 3} {
		t.Run(fmt.Sprint(partners), func(t *testing.T) {
			t.Parallel()
			l := capacity.Defaults()
			l.Subscriptions = float64(partners)
			w := count(t, business.Standard(), partners)
			w.way(l.Subscriptions)
			// The effect's bytes and promise are put by the worker, and published by the relay.
			together := map[capacity.Table]capacity.Units{}
			for _, stage := range []capacity.Stage{capacity.Process, capacity.Effect, capacity.FanOut} {
				for table, u := range w.stages[stage] {
					together[table] = together[table].Plus(u)
				}
			}
			w.stages["outbound"] = together
			w.compare("told", "outbound", want(l, capacity.Process, capacity.Effect, capacity.FanOut, capacity.Attempt))
		})
	}
}

// Proves L4, W4: what a try costs that did not succeed, of an event and of a delivery.
func TestARetrysUnitsAreThoseThatAreCounted(t *testing.T) {
	t.Parallel()
	w := count(t, business.Standard().With(webhook.Payment, &onceTroubled{}), 0)
	w.warm()
	for n := range events {
		w.send(n)
	}
	w.pump(w.PumpStream)
	w.DynamoDB.ResetUsage()
	w.pump(w.PumpQueue)
	w.pump(w.PumpStream)
	w.took(capacity.Retry, events)
	l := capacity.Defaults()
	l.RetryRatio = 1
	w.compare("an event", capacity.Retry, want(l, capacity.Retry))
}

// Proves L4, D4: what a copy costs at a process that does not remember the event;
// the one that accepted it asks nobody.
func TestACopysUnitsAreThoseThatAreCounted(t *testing.T) {
	t.Parallel()
	w := count(t, business.Standard(), 0)
	w.way(0)
	w.DynamoDB.ResetUsage()
	for n := range events {
		w.send(n)
	}
	w.took(capacity.Copy, events)
	w.compare("remembered", capacity.Copy, map[capacity.Table]capacity.Units{})

	w.Ingress.Switch.KillAt(1, crashtest.Before)
	w.Post(&sim.Delivery{Endpoint: w.endpoint, Sample: provider.Sample{Body: w.body(events)}})
	w.send(1_000_000) // the new process's own data key
	w.DynamoDB.ResetUsage()
	for n := range events {
		w.send(n)
	}
	w.took(capacity.Copy, events)
	l := capacity.Defaults()
	l.Copies = 1
	w.compare("elsewhere", capacity.Copy, want(l, capacity.Copy))
}

// Proves L4, X4: one more attempt of a delivery. Only one is refused, so that no
// breaker stands in the way of the others.
func TestOneMoreAttemptsUnitsAreThoseThatAreCounted(t *testing.T) {
	t.Parallel()
	once := func(refused bool) capacity.Units {
		w := count(t, business.Standard(), 1)
		w.warm()
		if refused {
			w.Partner.Answer(sim.PartnerAnswer{Status: 503})
		}
		w.send(1)
		w.pump(w.PumpStream)
		w.pump(w.PumpQueue)
		w.pump(w.PumpStream)
		w.DynamoDB.ResetUsage()
		for range 20 { // until the partner's second answer
			w.pump(w.PumpDeliveries)
			w.Advance(1e9)
		}
		w.took(capacity.Attempt, 1)
		for _, d := range w.Deliveries() {
			if d.Status != delivery.Delivered {
				t.Fatalf("a delivery is %s", d.Status)
			}
		}
		return w.stages[capacity.Attempt][capacity.Delivery]
	}
	l := capacity.Defaults()
	l.Subscriptions, l.RetryRatio = 1, 1
	got := once(true).Minus(once(false))
	if diff := cmp.Diff(want(l, capacity.Again)[capacity.Delivery], got); diff != "" {
		t.Errorf("what the calculator says (-) and what was counted (+):\n%s", diff)
	}
}
