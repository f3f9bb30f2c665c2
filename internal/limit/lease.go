package limit

import (
	"sync"
	"time"

	"dakghar/internal/webhook"
)

const (
	// crowd is how many processes may begin at once: until it knows its share, each
	// counts on that part. The guess weighs crowdWeight requests of its own.
	crowd       = 50
	crowdWeight = 0.2
	// assumed is how many processes share a limit whose row never answered this one.
	assumed = 4
	// eager is how many settlements a process makes before it has seen a batch,
	// each as soon as it would refuse: they tell it its share.
	eager = 3
	// restAfterFault spares the requests of a second the wait for a row that does not answer.
	restAfterFault = time.Second
	// waitMax bounds how long a provider is asked to stay away: by then much may have changed.
	waitMax = 30 * time.Second
)

// lease is one process's part in one limit.
type lease struct {
	mu  sync.Mutex
	own bucket

	// row is the row as it was left, alone whether this process moved its time last.
	row   webhook.Tokens
	alone bool
	// view is how the row stood at at, as far as is known. The row's time is ahead
	// of this process's clock by ahead.
	view  webhook.Tokens
	at    time.Time
	ahead time.Duration
	// every is how long the batch before this one took.
	every time.Duration

	// mine of all requests were this process's, recent ones counting more: its share.
	mine, all, share float64
	// carry is the part of a request that the last batch left over.
	carry float64

	settled     int // times
	seen, spent int // requests of this batch: that came, that were let in
	batch       int // requests until the row is asked again
	blind       bool
	restUntil   time.Time
}

func newLease(t numbers, now time.Time) *lease {
	return &lease{
		own: fullBucket(t.burst, now), at: now, batch: t.batch,
		mine: crowdWeight, all: crowdWeight * crowd, share: 1.0 / crowd,
	}
}

type settle func(webhook.Settlement) (webhook.Settled, error)

func (s *lease) take(t numbers, now time.Time, ask settle) Taken {
	s.seen++
	s.own.refill(t.rate, t.burst, now)
	if !s.own.holds() {
		return Taken{Wait: s.own.wait(t.rate)}
	}
	var err error
	if s.due(t, now) {
		err = s.settle(t, now, ask)
	}
	if float64(s.spent+1) > s.allowed(t, now) {
		return Taken{Wait: s.wait(t, now), Err: err}
	}
	s.own.take()
	s.spent++
	return Taken{OK: true, Err: err}
}

// due reports whether the row is to be asked before the request at hand.
func (s *lease) due(t numbers, now time.Time) bool {
	if now.Before(s.restUntil) {
		return false
	}
	return s.seen > s.batch || s.settled < eager && float64(s.spent+1) > s.allowed(t, now)
}

// allowed is how many requests of this batch may be let in by now.
func (s *lease) allowed(t numbers, now time.Time) float64 {
	if s.settled == 0 && !s.blind {
		return float64(min(max(t.burst/crowd, 1), t.batch))
	}
	have := float64(s.view.Level)/1000 + float64(t.rate)*s.counted(now).Seconds()
	if s.settled < eager && have >= 1 {
		return max(s.share*have, 1) // its share is a guess that may be far too low
	}
	return max(s.share*have, 0) + s.carry
}

// counted is the time whose refill this batch counts on: what has passed, and a
// while ahead, since a batch is let in before it has passed. Of the time that
// the last batch took it is a half, because the others' batches are not charged
// yet either; without the row, which would show that, it is all.
func (s *lease) counted(now time.Time) time.Duration {
	ahead := s.every
	if !s.blind {
		ahead /= 2
	}
	return max(now.Sub(s.at), ahead)
}

// wait is how long it takes until one more is allowed.
func (s *lease) wait(t numbers, now time.Time) time.Duration {
	missing := (float64(s.spent+1)-s.carry)/s.share - float64(s.view.Level)/1000
	seconds := missing/float64(t.rate) - now.Sub(s.at).Seconds()
	return time.Duration(min(seconds, waitMax.Seconds()) * float64(time.Second))
}

// settle reports the batch, without the request at hand, and begins another one.
func (s *lease) settle(t numbers, now time.Time, ask settle) error {
	c := webhook.Settlement{
		Rate: t.rate, Most: t.burst + t.batch, Spent: s.spent, Seen: s.seen - 1,
		Now: now.Add(s.ahead), Last: s.row, Alone: s.alone,
	}
	left := s.allowed(t, now) - float64(s.spent)
	settled, err := ask(c)
	if err != nil {
		s.reckon(c, now)
	} else {
		s.learn(settled, c, now)
		s.batch = t.batch * max(settled.Writes, 1)
	}
	s.carry = min(max(left, 0), 1)
	s.every, s.at = max(now.Sub(s.at), 0), now
	s.seen, s.spent = 1, 0
	return err
}

// learn takes over what the row says.
func (s *lease) learn(settled webhook.Settled, c webhook.Settlement, now time.Time) {
	row := settled.Tokens
	if s.settled > 0 && !s.blind {
		// Others report in pieces: sums are nearer to the truth than each piece.
		mine := max(int64(c.Seen), 1)
		s.mine = s.mine/2 + float64(mine)
		s.all = s.all/2 + float64(max(row.Seen-s.row.Seen, mine))
	}
	s.share = s.mine / s.all
	s.ahead = max(s.ahead, row.At.Sub(now))
	s.row, s.alone, s.blind = row, settled.Alone, false
	s.settled++
	s.view = row.Refilled(c.Rate, c.Most, now.Add(s.ahead))
}

// reckon goes on without the row, as if the others had let in what their shares
// say. What this process let in is not charged later: it may have been already,
// and charging it twice could refuse somebody because of the store.
func (s *lease) reckon(c webhook.Settlement, now time.Time) {
	if s.settled < eager {
		s.share = 1.0 / assumed
	}
	s.view = s.view.Refilled(c.Rate, c.Most, c.Now)
	s.view.Level -= int64(float64(c.Spent) / s.share * 1000)
	s.alone, s.blind, s.restUntil = false, true, now.Add(restAfterFault)
}
