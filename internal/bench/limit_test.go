package bench

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dakghar/internal/dynamo"
	"dakghar/internal/limit"
	"dakghar/internal/webhook"
)

// The limit, and the processes that share it. Each is asked at random moments, five
// times as often in all as the limit allows.
const (
	limitRate      = 200
	limitBurst     = 200
	limitProcesses = 50
	limitOffered   = 5 * limitRate
	limitTime      = 30 * time.Second
)

// countedTokens counts the writes of settlements.
type countedTokens struct {
	*dynamo.Store
	writes *atomic.Int64
}

func (c countedTokens) Settle(ctx context.Context, name string, s webhook.Settlement) (webhook.Settled, error) {
	settled, err := c.Store.Settle(ctx, name, s)
	c.writes.Add(int64(settled.Writes))
	return settled, err
}

// measureLimit lets processes that begin at the same moment share one endpoint's
// limit over the embedded store. The figure is what they let in beyond rate·t +
// burst, as a part of that; below zero they let in less. Only limiters are
// measured: no request is verified or stored.
func measureLimit(t *testing.T, f *figures) {
	s := newSite(t, "limit", "")
	var writes, asked, taken atomic.Int64
	tokens := countedTokens{s.store(), &writes}
	limited := limit.Of{Name: "limited", Rate: limitRate, Burst: limitBurst}
	began := time.Now()
	var processes sync.WaitGroup
	for p := range limitProcesses {
		processes.Go(func() {
			limiter := limit.NewLimiter(tokens, time.Minute)
			random := rand.New(rand.NewPCG(uint64(p), 1))
			next := began
			for {
				next = next.Add(time.Duration(random.ExpFloat64() * limitProcesses / limitOffered * float64(time.Second)))
				if next.Sub(began) >= limitTime || dynamo.Sleep(t.Context(), time.Until(next)) != nil {
					return
				}
				asked.Add(1)
				got := limiter.Take(t.Context(), limited, time.Now())
				if got.Err != nil {
					t.Errorf("the row could not be asked: %v", got.Err)
				}
				if got.OK {
					taken.Add(1)
				}
			}
		})
	}
	processes.Wait()
	allowed := limitRate*time.Since(began).Seconds() + limitBurst
	t.Logf("%d requests, %d let in of %.0f allowed, %d writes", asked.Load(), taken.Load(), allowed, writes.Load())
	if most := asked.Load()/20 + 9*limitProcesses; writes.Load() > most {
		t.Errorf("%d writes for %d requests, want at most %d", writes.Load(), asked.Load(), most)
	}
	if float64(taken.Load()) < 0.8*allowed {
		t.Errorf("%d requests were let in of %.0f that the limit allows", taken.Load(), allowed)
	}
	f.set(t, "rate_limit_overgrant", float64(taken.Load())/allowed-1)
}
