package dispatcher

import (
	"context"
	"sync"
	"time"

	"dakghar/internal/backoff"
	"dakghar/internal/delivery"
	"dakghar/internal/limit"
)

// Partners keeps this process from asking too much of one partner: the rate is
// shared by all processes, what is side by side and the breaker are this
// process's own. It is safe for concurrent use.
type Partners struct {
	Rates *limit.Limiter
	// Trip and Open are each partner's breaker; see [limit.Breaker].
	Trip int
	Open backoff.Schedule
	// Chance spreads those that come back after a wait.
	Chance func() float64

	mu    sync.Mutex
	known map[delivery.SubscriptionID]*partner
}

type partner struct {
	breaker limit.Breaker
	inside  int
}

const (
	// partnersMax bounds the memory. Losing it forgets who was failing.
	partnersMax = 10_000
	// crowdedWait is how long a delivery stays away that found all places taken.
	crowdedWait = 2 * time.Second
	// heldWorth is how long a failed attempt holds a worker for another failure's worth.
	heldWorth = 5 * time.Second
)

// Enter lets one attempt go to a partner. leave is nil where it may not go before
// until; otherwise it must be called when the attempt is over.
func (p *Partners) Enter(ctx context.Context, s delivery.Subscription, now time.Time) (leave func(), until time.Time) {
	one := p.partner(s.ID)
	if s.Concurrency > 0 && !p.place(one, s.Concurrency) {
		return nil, now.Add(p.spread(crowdedWait))
	}
	leave = func() {}
	if s.Concurrency > 0 {
		leave = func() { p.free(one) }
	}
	if ok, until := one.breaker.Allow(now); !ok {
		leave()
		return nil, now.Add(p.spread(until.Sub(now)))
	}
	taken := p.Rates.Take(ctx, limit.Of{Name: "subscription/" + string(s.ID), Rate: s.Rate, Burst: s.Burst}, now)
	if !taken.OK {
		leave()
		return nil, now.Add(p.spread(max(taken.Wait, time.Second)))
	}
	return leave, time.Time{}
}

// Note takes in how an attempt ended, and how long it held its worker. One that
// failed counts once more for each [heldWorth]: on Lambda a worker that waits for
// a silent partner does nothing else, and a few of them must not be all of them.
func (p *Partners) Note(s delivery.Subscription, troubled bool, took time.Duration, now time.Time, chance float64) {
	breaker := &p.partner(s.ID).breaker
	if !troubled {
		breaker.Note(false, now, chance)
		return
	}
	breaker.NoteFailure(1+int(took/heldWorth), now, chance)
}

// spread lengthens a wait by up to half, so that those who wait do not all come at once.
func (p *Partners) spread(d time.Duration) time.Duration {
	return d + time.Duration(p.Chance()*float64(d)/2)
}

func (p *Partners) partner(id delivery.SubscriptionID) *partner {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, ok := p.known[id]
	if !ok {
		if p.known == nil || len(p.known) >= partnersMax {
			p.known = map[delivery.SubscriptionID]*partner{}
		}
		one = &partner{breaker: limit.Breaker{Trip: p.Trip, Open: p.Open}}
		p.known[id] = one
	}
	return one
}

func (p *Partners) place(one *partner, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.inside >= most {
		return false
	}
	one.inside++
	return true
}

func (p *Partners) free(one *partner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.inside--
}
