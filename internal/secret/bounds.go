package secret

import "time"

// allowance bounds what one secret's misses may cost: a burst, then one call a
// second. An endpoint lists at most four versions, so an honest one never meets
// it; a list of versions that do not exist does.
type allowance struct {
	calls float64
	at    time.Time
}

const (
	allowanceMax     = 8
	allowancePerSecs = 1.0
)

// spend takes one call from the secret's allowance.
func (c *Cache) spend(secret string) bool {
	now := c.cfg.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.allowances[secret]
	if a == nil {
		makeRoom(c.allowances, c.cfg.EntriesMax, func(a *allowance) time.Time { return a.at })
		a = &allowance{calls: allowanceMax, at: now}
		c.allowances[secret] = a
	}
	a.calls = min(a.calls+now.Sub(a.at).Seconds()*allowancePerSecs, allowanceMax)
	a.at = now
	if a.calls < 1 {
		return false
	}
	a.calls--
	return true
}

// refund gives back a call that brought a value. Callers hold the lock.
func (c *Cache) refund(secret string) {
	if a := c.allowances[secret]; a != nil {
		a.calls = min(a.calls+1, allowanceMax)
	}
}

// pace spaces the look-ups of the whole process: one a second, twice as rare
// after each fruitless one, once a minute at the least.
type pace struct {
	interval time.Duration
	begun    time.Time // of the last look-up; zero before the first
	judged   bool      // its outcome was counted
}

const (
	paceMin = time.Second
	paceMax = time.Minute
)

func (p *pace) take(now time.Time) bool {
	if !p.begun.IsZero() && now.Before(p.begun.Add(p.interval)) {
		return false
	}
	p.begun, p.judged = now, false
	return true
}

// fruitless counts a look-up once, however many requests report it.
func (p *pace) fruitless() {
	if p.begun.IsZero() || p.judged {
		return
	}
	p.judged = true
	p.interval = min(2*p.interval, paceMax)
}

func (p *pace) fruitful() { p.judged, p.interval = true, paceMin }
