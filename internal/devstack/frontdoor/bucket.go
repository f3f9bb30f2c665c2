package frontdoor

import (
	"sync"
	"time"
)

// bucket is a token bucket: rate tokens a second, at most burst of them.
type bucket struct {
	rate, burst float64
	now         func() time.Time

	mu     sync.Mutex
	tokens float64
	filled time.Time
}

func newBucket(rate float64, burst int, now func() time.Time) *bucket {
	size := max(float64(burst), 1)
	return &bucket{rate: rate, burst: size, now: now, tokens: size, filled: now()}
}

func (b *bucket) take() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.tokens = min(b.burst, b.tokens+b.rate*now.Sub(b.filled).Seconds())
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
