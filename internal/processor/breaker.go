package processor

import (
	"sync"
	"time"

	"dakghar/internal/backoff"
)

// Breaker keeps a process from claiming events while a service that all of them
// need does not answer: a claim and its refund cost five writes, and help nobody.
// After some failures in a row it opens, and lets one event through each time it
// was open long enough; the first one that gets an answer closes it.
//
// It is one process's opinion and lost with it. It is safe for concurrent use.
type Breaker struct {
	// Trip is how many outages in a row open it; 0 never does.
	Trip int
	// Open grows with each fruitless probe.
	Open backoff.Schedule

	mu      sync.Mutex
	outages int
	probes  int
	until   time.Time // when the next probe may go; zero while closed
}

// Allow reports whether an event may be worked on now, and otherwise when the
// next one may.
func (b *Breaker) Allow(now time.Time) (bool, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.until.IsZero():
		return true, time.Time{}
	case now.Before(b.until):
		return false, b.until
	}
	// This event is the probe; the others wait until its answer, or its death, is known.
	b.until = now.Add(b.Open.Max)
	return true, time.Time{}
}

// Note takes in how an event ended. Chance spreads the probes of many processes.
func (b *Breaker) Note(outage bool, now time.Time, chance float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !outage {
		b.outages, b.probes, b.until = 0, 0, time.Time{}
		return
	}
	b.outages++
	if b.Trip > 0 && b.outages >= b.Trip {
		b.probes++
		b.until = now.Add(b.Open.Delay(b.probes, chance))
	}
}
