package ingress

import (
	"sync"

	"dakghar/internal/webhook"
)

// Recent remembers the last accepted events of this process, and answers a copy
// of one without a write. Losing it changes no answer: the row itself decides.
type Recent struct {
	mu     sync.Mutex
	known  map[webhook.InboxID]webhook.Digest
	order  []webhook.InboxID
	oldest int
}

// NewRecent returns a memory of the last n events.
func NewRecent(n int) *Recent {
	return &Recent{known: make(map[webhook.InboxID]webhook.Digest, n), order: make([]webhook.InboxID, n)}
}

// Has reports whether this very event with these very bytes was accepted here.
func (r *Recent) Has(id webhook.InboxID, digest webhook.Digest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.known[id]
	return ok && d == digest
}

// Add remembers an accepted event in place of the oldest one.
func (r *Recent) Add(id webhook.InboxID, digest webhook.Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.known[id]; ok {
		return
	}
	delete(r.known, r.order[r.oldest])
	r.order[r.oldest] = id
	r.oldest = (r.oldest + 1) % len(r.order)
	r.known[id] = digest
}
