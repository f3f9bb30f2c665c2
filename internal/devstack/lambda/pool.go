package lambda

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Pool is a function that runs as processes.
type Pool struct {
	cfg Config
	log *lineWriter

	mu        sync.Mutex
	closed    bool
	inFlight  int           // accepted and not yet answered
	queue     []*invocation // accepted and not yet given to a sandbox, oldest first
	sandboxes []*sandbox    // every one whose process is not known to be gone, oldest first
	idle      []*sandbox    // those that wait for work; the last one worked most recently
	later     bool          // match will be called again when somebody's patience ends
	exits     sync.WaitGroup
}

var _ Function = (*Pool)(nil)

// invocation is one call, from acceptance to its answer.
type invocation struct {
	id      string
	payload []byte
	since   time.Time
	done    chan result // capacity 1: the answer never waits for a caller that left
}

// New makes a pool. No process starts before the first invocation.
func New(cfg Config) (*Pool, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Pool{cfg: cfg, log: newLineWriter(cfg.Log, "["+cfg.Name+"] ")}, nil
}

// Name is the function's name.
func (p *Pool) Name() string { return p.cfg.Name }

// Invoke implements Function.
func (p *Pool) Invoke(ctx context.Context, payload []byte) ([]byte, string, error) {
	if len(payload) > PayloadBytesMax {
		return nil, "", ErrPayloadTooLarge
	}
	inv := &invocation{id: p.cfg.NewID(), payload: payload, since: time.Now(), done: make(chan result, 1)}
	if err := p.accept(inv); err != nil {
		return nil, "", err
	}
	select {
	case r := <-inv.done:
		return r.response, r.functionError, r.err
	case <-ctx.Done():
		p.withdraw(inv)
		return nil, "", ctx.Err()
	}
}

func (p *Pool) accept(inv *invocation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if p.cfg.Reserved != nil && p.inFlight >= *p.cfg.Reserved {
		return &ThrottledError{Function: p.cfg.Name, Reserved: *p.cfg.Reserved}
	}
	p.inFlight++
	p.queue = append(p.queue, inv)
	p.match()
	return nil
}

// withdraw drops an invocation that no sandbox has yet; one that runs goes on.
func (p *Pool) withdraw(inv *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue, inv); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		p.inFlight--
	}
}

// answer ends an invocation. The lock is held.
func (p *Pool) answer(inv *invocation, r result) {
	p.inFlight--
	inv.done <- r
}

// match gives waiting invocations to idle sandboxes, then starts as many
// sandboxes as there are invocations that no sandbox will soon be free for. The
// lock is held.
func (p *Pool) match() {
	for len(p.queue) > 0 && len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		inv := p.queue[0]
		p.queue = slices.Delete(p.queue, 0, 1)
		s.dispatch(inv)
	}
	starting, settling := p.count(stateStarting), p.count(stateSettling)
	for need := len(p.queue) - starting - settling; need > 0; need-- {
		if p.closed || starting >= p.cfg.StartsMax || len(p.sandboxes) >= p.cfg.SandboxesMax {
			return
		}
		if len(p.sandboxes) >= p.cfg.EagerMax && !p.outOfPatience(p.queue[len(p.queue)-need]) {
			return
		}
		p.start()
		starting++
	}
}

// outOfPatience reports whether an invocation has waited long enough for a
// sandbox of its own. If not, match is called again when it has. The lock is held.
func (p *Pool) outOfPatience(inv *invocation) bool {
	left := p.cfg.Patience - time.Since(inv.since)
	if left <= 0 {
		return true
	}
	if !p.later {
		p.later = true
		time.AfterFunc(left, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.later = false
			p.match()
		})
	}
	return false
}

// failOldest answers the invocation that has waited longest, if there is one:
// each failed start costs one invocation, so a function that cannot start never
// makes a loop of starts. The lock is held.
func (p *Pool) failOldest(f failure) {
	if len(p.queue) == 0 {
		return
	}
	inv := p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	p.answer(inv, f.result())
}

func (p *Pool) count(st state) (n int) {
	for _, s := range p.sandboxes {
		if s.state == st {
			n++
		}
	}
	return n
}

// cannotStart removes a sandbox that never became a process.
func (p *Pool) cannotStart(s *sandbox, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sandboxes = remove(p.sandboxes, s)
	p.log.printf("cannot start: %v", err)
	p.failOldest(failure{Type: "Runtime.InvalidEntrypoint", Message: err.Error()})
	p.match()
}

// launched records that a sandbox has its process, which may already be unwanted.
func (p *Pool) launched(s *sandbox, process *os.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.process = process
	switch {
	case s.state == stateDead || s.initError != nil:
		s.signalKill()
	case s.state == stateStarting: // else it was quick, and has asked for work already
		s.timer = time.AfterFunc(p.cfg.InitTimeout, func() { p.initExpired(s) })
	}
}

// ready records that a sandbox asks for work and returns where it will come from:
// from nowhere, for one that is about to be killed, which then waits for that. It
// reports false for a sandbox that already waits or works.
func (p *Pool) ready(s *sandbox) (<-chan *invocation, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case s.state == stateDead || s.initError != nil:
		return nil, true
	case s.state == stateIdle || s.state == stateBusy:
		return nil, false
	}
	s.stopTimer()
	s.state = stateIdle
	s.work = make(chan *invocation, 1)
	p.idle = append(p.idle, s)
	work := s.work
	p.match()
	return work, true
}

// take marks the sandbox's invocation as on its way to the process: from here on
// it is never given to another.
func (p *Pool) take(s *sandbox) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.sent = s.state == stateBusy
	return s.sent
}

// hungUp takes a sandbox out of service whose runtime closed the connection on
// which it waited for work.
func (p *Pool) hungUp(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.state != stateIdle && s.state != stateBusy {
		return
	}
	p.log.printf("sandbox %d hung up", s.pid())
	s.kill()
	p.idle = remove(p.idle, s)
	p.settleDebt(s, "the runtime hung up")
	p.match()
}

// settleDebt deals with the invocation of a sandbox that will not answer it: one
// that was never sent goes back to the head of the queue. The lock is held.
func (p *Pool) settleDebt(s *sandbox, how string) {
	inv := s.current
	if inv == nil {
		return
	}
	s.current = nil
	if s.sent || p.closed {
		p.answer(inv, exited(inv.id, how).result())
		return
	}
	p.queue = slices.Insert(p.queue, 0, inv)
}

// finish records a sandbox's answer to the invocation with this id. It reports
// false when the sandbox has no such invocation: never had, or too late.
func (p *Pool) finish(s *sandbox, id string, r result) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	inv := s.current
	if inv == nil || inv.id != id {
		return false
	}
	s.stopTimer()
	s.current = nil
	s.state = stateSettling
	s.timer = time.AfterFunc(p.cfg.SettleTime, func() { p.slow(s) })
	p.answer(inv, r)
	return true
}

// slow stops counting on a sandbox that answered and has not asked again.
func (p *Pool) slow(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.state == stateSettling {
		s.state = stateSlow
		p.match()
	}
}

// expire ends an invocation at its deadline and the sandbox with it.
func (p *Pool) expire(s *sandbox, inv *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.current != inv {
		return
	}
	s.current = nil
	f := timedOut(inv.id, p.cfg.Timeout)
	p.log.printf("%s", f.Message)
	s.kill()
	p.answer(inv, f.result())
}

// initExpired kills a sandbox that never asked for work.
func (p *Pool) initExpired(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.state != stateStarting {
		return
	}
	s.initError = &failure{Type: "Sandbox.Timedout", Message: fmt.Sprintf("Init timed out after %.2f seconds", p.cfg.InitTimeout.Seconds())}
	s.signalKill()
}

// gone removes a sandbox whose process has exited, answers what it still owed,
// and makes room for a replacement.
func (p *Pool) gone(s *sandbox, how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.stopTimer()
	was := s.state
	s.state = stateDead
	p.sandboxes = remove(p.sandboxes, s)
	p.idle = remove(p.idle, s)
	switch {
	case was == stateDead:
		// Told to die, and whoever told it said why.
	case was == stateStarting:
		p.initFailed(s, how)
	default:
		p.log.printf("sandbox %d exited: %s", s.pid(), how)
	}
	p.settleDebt(s, how)
	p.match()
}

func (p *Pool) initFailed(s *sandbox, how string) {
	f := failure{Type: "Runtime.ExitError", Message: "init failed: Runtime exited with error: " + how}
	if s.initError != nil {
		f = *s.initError
	}
	p.log.printf("init failed: %s: %s", f.Type, f.Message)
	p.failOldest(f)
}

// Processes implements Function.
func (p *Pool) Processes() []Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []Process{}
	for _, s := range p.sandboxes {
		if s.state != stateDead && s.process != nil {
			list = append(list, Process{PID: s.pid(), Busy: s.current != nil})
		}
	}
	return list
}

// Kill implements Function.
func (p *Pool) Kill(pids ...int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	hit := 0
	for _, s := range p.sandboxes {
		if s.state != stateDead && (len(pids) == 0 || slices.Contains(pids, s.pid())) {
			s.kill()
			p.idle = remove(p.idle, s)
			hit++
		}
	}
	return hit
}

// Close implements Function. A sandbox that registered an extension, as
// aws-lambda-go does for a SIGTERM hook, gets SIGTERM and the grace first.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for _, inv := range p.queue {
		p.answer(inv, result{err: ErrClosed})
	}
	p.queue, p.idle = nil, nil
	for _, s := range p.sandboxes {
		if s.state != stateDead {
			s.shutdown(p.cfg.Grace)
		}
	}
	p.mu.Unlock()
	p.exits.Wait()
}

func remove(list []*sandbox, s *sandbox) []*sandbox {
	return slices.DeleteFunc(list, func(x *sandbox) bool { return x == s })
}
