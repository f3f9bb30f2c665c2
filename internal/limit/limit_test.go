package limit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"dakghar/internal/limit"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// sharedRow is an endpoint's row in memory, under the conditions of the real one.
type sharedRow struct {
	tokens webhook.Tokens
	writes int
	// err is what every settlement ends with, late after it was made.
	err  error
	late bool
}

func (r *sharedRow) Settle(_ context.Context, _ string, c webhook.Settlement) (webhook.Settled, error) {
	if r.err != nil && !r.late {
		return webhook.Settled{}, r.err
	}
	before := r.writes
	alone := (c.Alone || c.Last.At.IsZero()) && r.refill(c, c.Last)
	if !alone {
		r.writes++
		r.tokens = r.tokens.Charged(c)
		if r.tokens.Stale(c.Now) {
			c.Spent, c.Seen = 0, 0
			alone = r.refill(c, r.tokens)
		}
	}
	return webhook.Settled{Tokens: r.tokens, Alone: alone, Writes: r.writes - before}, r.err
}

func (r *sharedRow) refill(c webhook.Settlement, read webhook.Tokens) bool {
	r.writes++
	if !r.tokens.At.Equal(read.At) {
		return false
	}
	filled := read.Refilled(c.Rate, c.Most, c.Now)
	r.tokens.Level, r.tokens.At = r.tokens.Level+filled.Level-read.Level, filled.At
	r.tokens = r.tokens.Charged(c)
	return true
}

// traffic is what a simulated crowd of processes is asked.
type traffic struct {
	processes   int
	rate, burst int
	offered     float64       // requests a second, at random moments, to random processes
	lasts       time.Duration // in all
	favoured    float64       // the part of all requests that the first process gets besides
}

// outcome is what came of it.
type outcome struct {
	asked, taken, writes int
	over                 float64 // what was let in, of rate·t + burst
	least                float64 // the part let in of the requests of the worst-served process
}

// run lets traffic meet processes that join one after the other, whose clocks are
// up to 30 s off.
func (tr traffic) run(t *testing.T, seed uint64) outcome {
	t.Helper()
	type process struct {
		limiter      *limit.Limiter
		off          time.Duration
		asked, taken int
	}
	random := rand.New(rand.NewPCG(seed, 1))
	row := &sharedRow{}
	crowd := make([]*process, tr.processes)
	for i := range crowd {
		crowd[i] = &process{limiter: limit.NewLimiter(row, time.Minute), off: time.Duration(random.IntN(60_001)-30_000) * time.Millisecond}
	}
	endpoint := limit.Of{Name: "demo", Rate: tr.rate, Burst: tr.burst}
	var out outcome
	joining := tr.lasts.Seconds() / 20
	for at := 0.0; at < tr.lasts.Seconds(); at += random.ExpFloat64() / tr.offered {
		joined := min(tr.processes/2+1+int(float64(tr.processes)*at/joining), tr.processes)
		p := crowd[random.IntN(joined)]
		if random.Float64() < tr.favoured {
			p = crowd[0]
		}
		now := sim.Start.Add(time.Duration(at * float64(time.Second))).Add(p.off)
		out.asked++
		p.asked++
		if p.limiter.Take(t.Context(), endpoint, now).OK {
			out.taken++
			p.taken++
		}
	}
	out.writes, out.least = row.writes, 1
	for _, p := range crowd {
		out.least = min(out.least, float64(p.taken)/float64(max(p.asked, 1)))
	}
	out.over = float64(out.taken) / (float64(tr.rate)*tr.lasts.Seconds() + float64(tr.burst))
	return out
}

// Proves V1: over a long time, any number of processes lets in what the rate
// allows and at most a tenth more, whatever their clocks say; each write stands
// for twenty requests; nobody is starved; and what stays below the rate is
// hardly ever refused.
func TestAnEndpointsLimitHoldsOverManyProcesses(t *testing.T) {
	t.Parallel()
	for name, tr := range map[string]traffic{
		"one process, half the rate":                     {processes: 1, rate: 1, burst: 5, offered: 0.5, lasts: 2000 * time.Second},
		"one process, a flood":                           {processes: 1, rate: 10, burst: 20, offered: 100, lasts: 100 * time.Second},
		"one process, just below the rate":               {processes: 1, rate: 100, burst: 100, offered: 90, lasts: 100 * time.Second},
		"two processes, twice the rate":                  {processes: 2, rate: 10, burst: 10, offered: 20, lasts: 500 * time.Second},
		"four processes, just below the rate":            {processes: 4, rate: 100, burst: 100, offered: 90, lasts: 100 * time.Second},
		"fifty processes, half a low rate":               {processes: 50, rate: 10, burst: 20, offered: 5, lasts: 2000 * time.Second},
		"fifty processes, twice a low rate":              {processes: 50, rate: 10, burst: 20, offered: 20, lasts: 1500 * time.Second},
		"fifty processes, fifty times a low rate":        {processes: 50, rate: 10, burst: 20, offered: 500, lasts: 200 * time.Second},
		"fifty processes, half the rate":                 {processes: 50, rate: 100, burst: 100, offered: 50, lasts: 300 * time.Second},
		"fifty processes, twice the rate":                {processes: 50, rate: 100, burst: 100, offered: 200, lasts: 150 * time.Second},
		"fifty processes, twice the rate, one favoured":  {processes: 50, rate: 100, burst: 100, offered: 200, lasts: 150 * time.Second, favoured: 0.6},
		"fifty processes, twice a high rate":             {processes: 50, rate: 1000, burst: 1000, offered: 2000, lasts: 20 * time.Second},
		"fifty processes, one request a second, a flood": {processes: 50, rate: 1, burst: 1, offered: 100, lasts: 1000 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(3) {
				got := tr.run(t, seed)
				if got.over > 1.10 {
					t.Errorf("seed %d: let in %.3f of what the limit allows, want at most 1.10", seed, got.over)
				}
				if most := got.asked/20 + 9*tr.processes; got.writes > most {
					t.Errorf("seed %d: %d writes for %d requests, want at most %d", seed, got.writes, got.asked, most)
				}
				part := float64(got.taken) / float64(got.asked)
				if got.least < part/3 {
					t.Errorf("seed %d: the worst-served process let in %.3f of its requests, all of them %.3f", seed, got.least, part)
				}
				if fair := min(float64(tr.rate)/tr.offered, 1); part < 0.9*fair {
					t.Errorf("seed %d: %.3f of all requests were let in, want nearly %.3f", seed, part, fair)
				}
			}
		})
	}
}

// Proves V1: where the row's answers are lost after the charge, nothing is
// charged twice, and a process that knew its share lets in what it would have.
func TestALostAnswerChangesNoDecision(t *testing.T) {
	t.Parallel()
	endpoint := limit.Of{Name: "demo", Rate: 100, Burst: 100}
	run := func(late bool) int {
		row, random := &sharedRow{}, rand.New(rand.NewPCG(1, 1))
		limiter := limit.NewLimiter(row, time.Minute)
		taken := 0
		for at := 0.0; at < 60; at += random.ExpFloat64() / 300 {
			if row.late, row.err = late, nil; late && at > 20 && at < 40 {
				row.err = errors.New("lost")
			}
			if limiter.Take(t.Context(), endpoint, sim.Start.Add(time.Duration(at*float64(time.Second)))).OK {
				taken++
			}
		}
		return taken
	}
	whole, lost := run(false), run(true)
	if most := 100*60 + 100; whole > most || lost > most || lost < whole*98/100 {
		t.Errorf("let in %d, and %d with answers lost for a third of the time; want the same, at most %d", whole, lost, most)
	}
}

// Proves V1: one process alone lets in the whole burst at once, whatever its
// size, and no more; then what the rate brings.
func TestOneProcessAloneLetsInItsBurst(t *testing.T) {
	t.Parallel()
	for _, burst := range []int{1, 2, 3, 5, 8, 13, 20, 24, 25, 30, 50, 100, 250, 1000} {
		limiter := limit.NewLimiter(&sharedRow{}, time.Minute)
		endpoint := limit.Of{Name: "demo", Rate: 2, Burst: burst}
		taken := 0
		for range 2*burst + 2 {
			if limiter.Take(t.Context(), endpoint, sim.Start).OK {
				taken++
			}
		}
		if taken != burst {
			t.Errorf("burst %d: %d requests were let in at once", burst, taken)
		}
		if got := limiter.Take(t.Context(), endpoint, sim.Start); got.OK || got.Wait != 500*time.Millisecond {
			t.Errorf("burst %d: one more: %+v, want a wait of half a second", burst, got)
		}
		if got := limiter.Take(t.Context(), endpoint, sim.Start.Add(500*time.Millisecond)); !got.OK {
			t.Errorf("burst %d: half a second later: %+v", burst, got)
		}
	}
}

// An endpoint without a rate has no limit, and asks no store.
func TestAnEndpointWithoutARateHasNoLimit(t *testing.T) {
	t.Parallel()
	row := &sharedRow{err: errors.New("asked")}
	limiter := limit.NewLimiter(row, time.Minute)
	for range 1000 {
		if got := limiter.Take(t.Context(), limit.Of{Name: "demo", Burst: 1}, sim.Start); got != (limit.Taken{OK: true}) {
			t.Fatalf("a request without a limit: %+v", got)
		}
	}
}
