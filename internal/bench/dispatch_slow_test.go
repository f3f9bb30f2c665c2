package bench

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/dynamo"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/webhook"
)

// The fleet, and what it has to do: as many processes as the template lets run at
// once, each with one batch in hand as on Lambda, and an even stream of deliveries
// to the partners in turn.
const (
	fleetProcesses = 50
	fleetPartners  = 100
	fleetRate      = 100 // deliveries a second
	fleetTime      = 30 * time.Second
	fleetPatience  = 2 * time.Minute // with the machine, after the last wake-up
	fleetRounds    = 3
	usualAnswer    = 50 * time.Millisecond
	slowAnswer     = 30 * time.Second
	slowAttempt    = 25 * time.Second
)

// measureSlowPartner compares the 99th percentile of the time from a wake-up to
// its partner's answer, at the 99 other partners, of a fleet whose hundredth
// partner takes 30 s to answer, with that of a fleet whose hundredth answers at
// once. The others take 50 ms. Both fleets run at the same time, so that what the
// machine does besides meets both.
//
// A worker that waits for the slow one does nothing else, so what protects the
// others is that there are more workers, and that each process gives the slow one
// up after its first long attempt.
func measureSlowPartner(t *testing.T, f *figures) {
	fast, slow := &side{}, &side{}
	for range fleetRounds {
		fleets := []*fleet{newFleet(t, 0), newFleet(t, slowAnswer)}
		var both sync.WaitGroup
		for _, one := range fleets {
			both.Go(func() { one.run(t) })
		}
		both.Wait()
		fast.micros = append(fast.micros, float64(fleets[0].p99(t).Microseconds()))
		slow.micros = append(slow.micros, float64(fleets[1].p99(t).Microseconds()))
	}
	t.Logf("p99 at the others in µs: %.0f while all answer at once, %.0f beside a slow one", fast.micros, slow.micros)
	f.set(t, "dispatch_slow_partner_ratio", slow.ratio(fast))
}

// fleet is the dispatchers, their partners, and what they have to deliver.
type fleet struct {
	*race
	o    *outbound
	due  []delivery.Delivery
	slow time.Duration // of the first subscription's partner
	held atomic.Int64  // attempts there
	q    *lane
	stop context.CancelFunc
	all  []*lambdaedge.Dispatch
}

func newFleet(t *testing.T, slow time.Duration) *fleet {
	t.Helper()
	f := &fleet{
		race: &race{woken: map[string]time.Time{}, took: map[string]time.Duration{}}, slow: slow,
		o: newOutbound(t, "bench-slow", servicesOverLoopback(t)),
	}
	for n := range fleetPartners {
		if n == 0 {
			f.o.subscribe(f.partner(t, f.keep) + "/hooks")
			continue
		}
		if n == 1 {
			f.o.subscribe(f.partner(t, f.answer) + "/hooks")
			continue
		}
		f.o.subscribe(f.o.all[1].Target.URL)
	}
	f.due = f.o.deliveries(0, int(fleetRate*fleetTime.Seconds()), 1)
	ctx, stop := context.WithCancel(t.Context())
	f.stop, f.q = stop, &lane{ctx: ctx, waiting: make(chan webhook.Wake, 10*len(f.due))}
	for range fleetProcesses {
		d := f.o.open(f.o.store, f.q, slowAttempt)
		if _, err := d.Dispatcher.Subscriptions.Of(ctx, tenant, time.Now()); err != nil { // none is cold
			t.Fatal(err)
		}
		f.all = append(f.all, d)
	}
	return f
}

func (f *fleet) partner(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// keep is the first subscription's partner.
func (f *fleet) keep(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	f.held.Add(1)
	_ = dynamo.Sleep(r.Context(), f.slow)
}

// answer is every other partner.
func (f *fleet) answer(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = dynamo.Sleep(r.Context(), usualAnswer)
	f.answered(r.Header.Get("Webhook-Id"), time.Now())
}

// run delivers at an even pace, until all others have answered.
func (f *fleet) run(t *testing.T) {
	ctx := f.q.ctx
	var workers sync.WaitGroup
	for _, d := range f.all {
		workers.Go(func() {
			for batch := f.q.receive(); batch != nil; batch = f.q.receive() {
				if _, err := d.Handle(ctx, batchOf(t, batch...)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	began := time.Now()
	for n, dl := range f.due {
		_ = dynamo.Sleep(ctx, time.Until(began.Add(time.Duration(n)*time.Second/fleetRate)))
		if dl.Subscription != f.o.all[0].ID {
			f.wake(string(dl.ID))
		}
		f.q.Send(ctx, []webhook.Wake{dl.Wake()}, []time.Duration{0})
	}
	for end := time.Now().Add(fleetPatience); !f.over() && time.Now().Before(end); {
		_ = dynamo.Sleep(ctx, 10*time.Millisecond)
	}
	f.stop()
	workers.Wait()
}

// race remembers when deliveries were woken, and how long they took to be answered.
type race struct {
	mu    sync.Mutex
	woken map[string]time.Time
	took  map[string]time.Duration
}

func (r *race) wake(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.woken[id] = time.Now()
}

func (r *race) answered(id string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.took[id]; !again {
		r.took[id] = at.Sub(r.woken[id])
	}
}

// over reports whether all others have answered.
func (r *race) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.took) == len(r.woken)
}

func (f *fleet) p99(t *testing.T) time.Duration {
	t.Helper()
	if !f.over() {
		t.Errorf("%d of %d deliveries to the others were answered", len(f.took), len(f.woken))
	}
	all := slices.Collect(maps.Values(f.took))
	t.Logf("beside a partner who takes %s, and had %d attempts: %d deliveries to the others, p50 %s, p99 %s, slowest %s",
		f.slow, f.held.Load(), len(all), percentile(all, 0.5), percentile(all, 0.99), percentile(all, 1))
	return percentile(all, 0.99)
}

// lane is the queue of the fleet: at most ten wake-ups at a time, and delays.
type lane struct {
	ctx     context.Context
	waiting chan webhook.Wake
}

// Send implements the dispatcher's queue.
func (q *lane) Send(_ context.Context, wakes []webhook.Wake, delays []time.Duration) []error {
	for i, w := range wakes {
		if delays[i] == 0 {
			q.waiting <- w
			continue
		}
		time.AfterFunc(delays[i], func() {
			select {
			case q.waiting <- w:
			default: // nobody works any more
			}
		})
	}
	return make([]error, len(wakes))
}

// receive returns what waits, or nil when the fleet is to stop.
func (q *lane) receive() []webhook.Wake {
	var batch []webhook.Wake
	select {
	case <-q.ctx.Done():
		return nil
	case w := <-q.waiting:
		batch = append(batch, w)
	}
	for len(batch) < dispatchBatch {
		select {
		case w := <-q.waiting:
			batch = append(batch, w)
		default:
			return batch
		}
	}
	return batch
}
