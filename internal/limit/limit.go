package limit

import (
	"context"
	"sync"
	"time"

	"dakghar/internal/webhook"
)

// A limit of many processes is kept by two buckets. The process's own, of the whole
// rate and burst, refuses what one process alone must not let in, and costs
// nothing. Its row, which all processes share, is told of a whole
// batch of requests at once, and afterwards: what the process let in is charged,
// and the answer says how the row stands.
//
// Until it settles again the process may let in its share of what the row held
// and of what refills it meanwhile. Its share is its part of the requests that
// all processes reported, so the shares add up to one. A guess that was too high
// is charged with the next batch and missing then: in the long run all processes
// together let in what the rate allows, whatever each of them guessed.
//
// For a batch of b requests and p processes that leaves, in any time t:
//
//	let in  ≤ rate·t + burst + b + 3·p·b   b, because the row holds a batch more than a burst: batches are
//	                                       charged in one piece; 3·p·b are let in and not charged yet
//	writes  ≤ requests/b + 9·p             a settlement takes one write as a rule and three at most, and each
//	                                       stands for a batch; a new process makes three early settlements
//
// Nothing is charged before it is let in, so no process hoards what another
// could use, and one that ends takes at most 3·b uncharged requests with it. A
// new process lets in its first few requests without asking: an idle endpoint
// costs nothing.
//
// Clocks need not agree. The row's time only moves forward; a process whose clock
// is behind it goes on from the row's time, and one whose clock is ahead fills
// the row once, never above what it may hold.
//
// A row that does not answer refuses nobody by that: the process goes on as if
// the other processes let in what their shares say.

// Tokens keeps the rows of limits.
type Tokens interface {
	// Settle charges what a process let in. On an error it is not known whether it did.
	Settle(ctx context.Context, name string, c webhook.Settlement) (webhook.Settled, error)
}

const (
	// batchMin is a little more than the twenty requests that a write may be had
	// for: the rest pays for the early settlements.
	batchMin = 24
	// A fast endpoint's batches are longer: perSecond of them are a second's
	// requests, but none is longer than batchMax.
	perSecond = 50
	batchMax  = 200
	// limitsMax bounds the memory. Losing it loses what was not charged yet.
	limitsMax = 10_000
)

// SettleTimeout is how long a request may wait for its limit's row.
const SettleTimeout = 150 * time.Millisecond

// Limiter keeps this process's part in limits.
type Limiter struct {
	tokens  Tokens
	timeout time.Duration

	mu    sync.Mutex
	known map[string]*lease
}

// NewLimiter returns a limiter that waits for a row at most for timeout.
func NewLimiter(tokens Tokens, timeout time.Duration) *Limiter {
	return &Limiter{tokens: tokens, timeout: timeout, known: map[string]*lease{}}
}

// Of is one limit: requests a second in the long run, and at once. No rate is no
// limit; without a burst it is what a second brings.
type Of struct {
	Name        string
	Rate, Burst int
}

// Taken is a limiter's answer to one request.
type Taken struct {
	// OK is false where the limit is reached.
	OK bool
	// Wait is how long a refused request should stay away.
	Wait time.Duration
	// Err is why the row could not be asked, which by itself refuses nobody.
	Err error
}

// Take lets one request in, or refuses it.
func (l *Limiter) Take(ctx context.Context, e Of, now time.Time) Taken {
	if e.Rate <= 0 {
		return Taken{OK: true}
	}
	t := limitOf(e)
	s := l.lease(e.Name, t, now)
	s.mu.Lock() // while the row is asked, too: its answer decides for those who wait
	defer s.mu.Unlock()
	return s.take(t, now, func(c webhook.Settlement) (webhook.Settled, error) {
		ctx, cancel := context.WithTimeout(ctx, l.timeout)
		defer cancel()
		return l.tokens.Settle(ctx, e.Name, c)
	})
}

func (l *Limiter) lease(id string, t numbers, now time.Time) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.known[id]
	if !ok {
		if len(l.known) >= limitsMax {
			clear(l.known)
		}
		s = newLease(t, now)
		l.known[id] = s
	}
	return s
}

// numbers is a limit in numbers: requests a second, at once, and to a batch.
type numbers struct{ rate, burst, batch int }

func limitOf(e Of) numbers {
	t := numbers{rate: e.Rate, burst: e.Burst}
	if t.burst <= 0 {
		t.burst = t.rate
	}
	t.batch = min(max(t.rate/perSecond, batchMin), batchMax)
	return t
}
