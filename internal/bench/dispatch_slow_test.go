package bench

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

// The fleet, and what it has to do: as many processes as the template lets run at
// once, each with one batch in hand as on Lambda, and an even stream of deliveries
// to the partners in turn.
const (
	fleetProcesses = 50
	fleetPartners  = 100
	fleetRate      = 100 // deliveries a second
	fleetTime      = 60 * time.Second
	slowAnswer     = 30 * time.Second
	slowAttempt    = 25 * time.Second
)

// measureSlowPartner compares the 99th percentile of the time from a wake-up to
// its arrival, at the 99 other partners, while one partner takes 30 s to answer,
// with the same while it answers at once.
//
// A worker that waits for the slow one does nothing else, so what protects the
// others is that there are more workers, and that each process gives the slow one
// up after its first long attempt.
func measureSlowPartner(t *testing.T, f *figures) {
	fast := othersP99(t, 0)
	slow := othersP99(t, slowAnswer)
	t.Logf("p99 at the others: %s while all answer at once, %s beside a slow one", fast, slow)
	f.set(t, "dispatch_slow_partner_ratio", float64(slow)/float64(fast))
}

func othersP99(t *testing.T, slow time.Duration) time.Duration {
	t.Helper()
	o := newOutbound(t, "bench-slow", servicesOverLoopback(t))
	r := &race{woken: map[string]time.Time{}, took: map[string]time.Duration{}}
	others := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		at := time.Now()
		_, _ = io.Copy(io.Discard, req.Body)
		r.arrived(req.Header.Get("Webhook-Id"), at)
	}))
	defer others.Close()
	one := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = dynamo.Sleep(req.Context(), slow)
	}))
	defer one.Close()
	for n := range fleetPartners {
		if n == 0 {
			o.subscribe(one.URL + "/hooks")
			continue
		}
		o.subscribe(others.URL + "/hooks")
	}
	due := o.deliveries(0, int(fleetRate*fleetTime.Seconds()), 1)

	ctx, stop := context.WithCancel(t.Context())
	q := &lane{ctx: ctx, waiting: make(chan webhook.Wake, 10*len(due))}
	var fleet sync.WaitGroup
	for range fleetProcesses {
		d := o.open(o.store, q, slowAttempt)
		if _, err := d.Dispatcher.Subscriptions.Of(ctx, tenant, time.Now()); err != nil { // none is cold
			t.Fatal(err)
		}
		fleet.Go(func() {
			for {
				batch := q.receive()
				if batch == nil {
					return
				}
				if _, err := d.Handle(ctx, batchOf(t, batch...)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	began := time.Now()
	for n, dl := range due {
		_ = dynamo.Sleep(ctx, time.Until(began.Add(time.Duration(n)*time.Second/fleetRate)))
		if dl.Subscription != o.all[0].ID {
			r.wake(string(dl.ID))
		}
		q.Send(ctx, []webhook.Wake{dl.Wake()}, []time.Duration{0})
	}
	for end := time.Now().Add(fleetTime); !r.over(due, o.all[0].ID) && time.Now().Before(end); {
		_ = dynamo.Sleep(ctx, 10*time.Millisecond)
	}
	stop()
	one.CloseClientConnections()
	fleet.Wait()
	return r.p99(t, due, o.all[0].ID)
}

// race remembers when deliveries were woken, and how long they took to arrive.
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

func (r *race) arrived(id string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.took[id]; !again {
		r.took[id] = at.Sub(r.woken[id])
	}
}

func (r *race) over(due []delivery.Delivery, but delivery.SubscriptionID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range due {
		if _, ok := r.took[string(d.ID)]; !ok && d.Subscription != but {
			return false
		}
	}
	return true
}

func (r *race) p99(t *testing.T, due []delivery.Delivery, but delivery.SubscriptionID) time.Duration {
	t.Helper()
	var all []time.Duration
	for _, d := range due {
		took, ok := r.took[string(d.ID)]
		switch {
		case d.Subscription == but:
		case ok:
			all = append(all, took)
		default:
			t.Errorf("%s never arrived", d.ID)
		}
	}
	t.Logf("%d deliveries to the others: p50 %s, p99 %s, slowest %s", len(all), percentile(all, 0.5), percentile(all, 0.99), percentile(all, 1))
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
