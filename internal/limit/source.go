package limit

import (
	"net/netip"
	"sync"
	"time"
)

// sourcesMax bounds the memory that strangers can fill.
const sourcesMax = 4096

// homeBits is what one customer of an IPv6 network has at least to itself.
const homeBits = 64

// Sources is the coarse limit before verification: what one source address may
// ask of this process, so that a flood of forgeries costs it no MAC. It knows
// nothing of endpoints, and losing what it knows only lets more in.
type Sources struct {
	rate, burst int

	mu    sync.Mutex
	known map[netip.Prefix]*bucket
}

// NewSources returns a limit of rate requests a second and burst at once for
// each source. A rate of 0 limits none.
func NewSources(rate, burst int) *Sources {
	return &Sources{rate: rate, burst: burst, known: map[netip.Prefix]*bucket{}}
}

// Take lets a request in, or says how long its source should stay away. What
// comes without an address did not come over the internet.
func (s *Sources) Take(source string, now time.Time) (wait time.Duration, ok bool) {
	if s.rate <= 0 {
		return 0, true
	}
	key, ok := networkOf(source)
	if !ok {
		return 0, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.known[key]
	if !ok {
		if len(s.known) >= sourcesMax {
			clear(s.known)
		}
		full := fullBucket(s.burst, now)
		b = &full
		s.known[key] = b
	}
	b.refill(s.rate, s.burst, now)
	if !b.holds() {
		return b.wait(s.rate), false
	}
	b.take()
	return 0, true
}

// networkOf is an IPv4 address itself, and an IPv6 address's network.
func networkOf(source string) (netip.Prefix, bool) {
	a, err := netip.ParseAddr(source)
	if err != nil {
		return netip.Prefix{}, false
	}
	a = a.Unmap()
	bits := a.BitLen()
	if a.Is6() {
		bits = homeBits
	}
	network, err := a.Prefix(bits)
	return network, err == nil
}
