package limit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"dakghar/internal/webhook"
)

var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// Proves V1: strangers cannot fill the memory of a process, nor can endpoints.
func TestWhatLimitsRememberIsBounded(t *testing.T) {
	t.Parallel()
	sources := NewSources(1, 1)
	for n := range 2*sourcesMax + 1 {
		if _, ok := sources.Take(fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), start); !ok {
			t.Fatalf("the first request of source %d is refused", n)
		}
		if len(sources.known) > sourcesMax {
			t.Fatalf("%d sources are remembered, want at most %d", len(sources.known), sourcesMax)
		}
	}
	limiter := NewLimiter(&silent{}, time.Minute)
	for n := range 2*limitsMax + 1 {
		limiter.Take(t.Context(), Of{Name: fmt.Sprint("e", n), Rate: 1}, start)
		if len(limiter.known) > limitsMax {
			t.Fatalf("%d limits are remembered, want at most %d", len(limiter.known), limitsMax)
		}
	}
	if sources.known == nil || len(limiter.known) == 0 {
		t.Error("nothing is remembered")
	}
}

// silent is a store that does not answer.
type silent struct{ asked int }

func (s *silent) Settle(context.Context, string, webhook.Settlement) (webhook.Settled, error) {
	s.asked++
	return webhook.Settled{}, errors.New("down")
}

// Proves V1, A2: a store that does not answer is asked once a second at most, so
// that not every request waits for it.
func TestASilentStoreIsLeftAlone(t *testing.T) {
	t.Parallel()
	store := &silent{}
	limiter := NewLimiter(store, time.Minute)
	for n := range 10_000 {
		limiter.Take(t.Context(), Of{Name: "demo", Rate: 1000}, start.Add(time.Duration(n)*time.Millisecond))
	}
	if store.asked < 5 || store.asked > 11 {
		t.Errorf("the store was asked %d times in ten seconds, want about once a second", store.asked)
	}
}

// A clock that is set back neither fills a bucket nor stops it for good.
func TestABucketBearsAClockThatGoesBack(t *testing.T) {
	t.Parallel()
	b := fullBucket(1, start)
	b.take()
	b.refill(1, 1, start.Add(-time.Hour))
	if b.holds() {
		t.Error("going back filled the bucket")
	}
	b.refill(1, 1, start.Add(-time.Hour+999*time.Millisecond))
	if wait := b.wait(1); b.holds() || wait != time.Millisecond {
		t.Errorf("a millisecond early: holds %v, wait %v", b.holds(), wait)
	}
	b.refill(1, 1, start.Add(-time.Hour+time.Second))
	if !b.holds() {
		t.Error("a second later the bucket is still empty")
	}
}
