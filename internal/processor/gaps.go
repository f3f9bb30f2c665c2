package processor

import (
	"context"
	"sync"
	"time"

	"dakghar/internal/webhook"
)

// Asker asks for the events that a provider has and we do not.
type Asker interface {
	WantBackfill(ctx context.Context, id webhook.EndpointID, now time.Time) error
}

// askEvery is how often a process asks for one endpoint's missing events: a flood
// behind one gap is one question.
const askEvery = time.Minute

// gapsMax bounds the memory; losing it asks once more than needed.
const gapsMax = 10_000

// Gaps asks for what is missing before a parked event. A nil one asks for nothing.
type Gaps struct {
	asker Asker

	mu    sync.Mutex
	asked map[webhook.EndpointID]time.Time
}

// NewGaps returns one that has not asked yet.
func NewGaps(asker Asker) *Gaps {
	return &Gaps{asker: asker, asked: map[webhook.EndpointID]time.Time{}}
}

// met notes that an event waits for others, once it is parked. Its endpoint must
// ask for back-fills. Failing is harmless: the next event behind the gap asks
// again, and the gap's own deadline ends the wait.
func (g *Gaps) met(ctx context.Context, e webhook.Endpoint, now time.Time) {
	if g == nil || e.API == nil || e.BackfillEvery <= 0 || !g.turn(e.ID, now) {
		return
	}
	_ = g.asker.WantBackfill(ctx, e.ID, now)
}

func (g *Gaps) turn(id webhook.EndpointID, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if last, ok := g.asked[id]; ok && now.Before(last.Add(askEvery)) {
		return false
	}
	if len(g.asked) >= gapsMax {
		clear(g.asked)
	}
	g.asked[id] = now
	return true
}
