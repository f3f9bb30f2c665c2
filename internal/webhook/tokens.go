package webhook

import "time"

// Tokens is the row in which all processes that receive for one endpoint keep
// its limit. Its time is the row's own: it only moves forward, and refilling
// follows it, so that a clock that is ahead fills the row once at most, and
// never above what it may hold.
type Tokens struct {
	// Level is how many thousandths of a request may still be taken. Below zero it
	// is what was taken ahead of time.
	Level int64
	// At is the time up to which the row is refilled, in milliseconds; zero where there is no row.
	At time.Time
	// Seen counts the requests that processes have reported, taken or refused.
	Seen int64
}

// Settlement is what one process reports to the row, and charges it.
type Settlement struct {
	// Rate is how many requests a second refill the row, Most how many it holds.
	Rate, Most int
	// Spent is how many requests were let in since the process's last settlement,
	// Seen how many came.
	Spent, Seen int
	// Now is the process's idea of the row's time.
	Now time.Time
	// Last is the row as this process left it, Alone whether it was this process
	// that moved the row's time then: so it may be the only one.
	Last  Tokens
	Alone bool
}

// Settled is the row after a settlement.
type Settled struct {
	Tokens Tokens
	// Alone is the next settlement's Alone.
	Alone bool
	// Writes is how many writes it took, refused ones included.
	Writes int
}

// TokensStale is the age at which a settlement moves the row's time, and not
// only its level: until then a process reckons the refill by itself.
const TokensStale = time.Second

// Refilled returns the row as it is at now, filled at rate requests a second up
// to most. A row whose time is ahead is as it is; one that never was is full.
func (t Tokens) Refilled(rate, most int, now time.Time) Tokens {
	full := int64(most) * 1000
	if t.At.IsZero() {
		return Tokens{Level: full, At: now.Truncate(time.Millisecond), Seen: t.Seen}
	}
	elapsed := now.Sub(t.At).Milliseconds() // a request a second is a thousandth a millisecond
	if elapsed <= 0 {
		return t
	}
	t.At = t.At.Add(time.Duration(elapsed) * time.Millisecond)
	if missing := full - t.Level; missing <= 0 || elapsed > missing/int64(rate) {
		t.Level = full
	} else {
		t.Level += elapsed * int64(rate)
	}
	return t
}

// Stale reports whether the row's time is so old that a settlement moves it.
func (t Tokens) Stale(now time.Time) bool { return now.Sub(t.At) >= TokensStale }

// Charged returns the row with a settlement's requests taken off.
func (t Tokens) Charged(c Settlement) Tokens {
	t.Level -= int64(c.Spent) * 1000
	t.Seen += int64(c.Seen)
	return t
}
