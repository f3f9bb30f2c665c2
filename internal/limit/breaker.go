package limit

import (
	"sync"
	"time"

	"dakghar/internal/backoff"
)

// Breaker keeps a process from asking one that does not answer: a store that all
// events need, or a partner. After some failures in a row it opens, and lets one
// probe through each time it was open long enough; the first answer closes it.
//
// It is one process's opinion and lost with it. It is safe for concurrent use.
type Breaker struct {
	// Trip is how many failures in a row open it; 0 never does.
	Trip int
	// Open grows with each fruitless probe.
	Open backoff.Schedule

	mu       sync.Mutex
	failures int
	probes   int
	until    time.Time // when the next probe may go; zero while closed
}

// Allow reports whether one may be tried now, and otherwise when the
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
	// This one is the probe; the others wait until its answer, or its death, is known.
	b.until = now.Add(b.Open.Max)
	return true, time.Time{}
}

// Note takes in how one ended. Chance spreads the probes of many processes.
func (b *Breaker) Note(failed bool, now time.Time, chance float64) {
	if failed {
		b.NoteFailure(1, now, chance)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.probes, b.until = 0, 0, time.Time{}
}

// NoteFailure takes in one failure that is worth as many as weight, at least 1:
// one that held its caller for long.
func (b *Breaker) NoteFailure(weight int, now time.Time, chance float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures += max(weight, 1)
	if b.Trip > 0 && b.failures >= b.Trip {
		b.probes++
		b.until = now.Add(b.Open.Delay(b.probes, chance))
	}
}
