// Package directory remembers endpoints for a bounded time, so that a stage can
// look one up for every event without reading the registry for each.
//
// Invariants:
//
//   - What it tells is at most [Age] old. What cannot be read again by then is an
//     error: no retired key is trusted, and no paused endpoint worked on, because
//     of an outage.
//   - What strangers ask for fills a bounded memory.
//
// It decides nothing about an endpoint, and changes one only under its revision.
package directory

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"dakghar/internal/webhook"
)

// Age is how long an endpoint is remembered, an unknown one too. It
// bounds how long a retirement takes to reach every process.
const Age = 30 * time.Second

// knownMax bounds the memory that strangers can fill with unknown names.
const knownMax = 10_000

// noteTime bounds what noting a key may add to an answer.
const noteTime = 200 * time.Millisecond

// readTime bounds one read, which outlives the request that asked for it,
// so that a stalled one does not hold up those that come after it.
const readTime = time.Second

// Registry reads and changes endpoints.
type Registry interface {
	Endpoint(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error)
	UpdateEndpoint(ctx context.Context, e webhook.Endpoint) (bool, error)
}

// Directory remembers endpoints for [Age]. What cannot be read again
// by then is an error, so that no retired key is trusted because of an outage.
type Directory struct {
	registry Registry
	flight   singleflight.Group

	mu    sync.Mutex
	known map[webhook.EndpointID]entry
}

type entry struct {
	endpoint webhook.Endpoint
	found    bool
	readAt   time.Time
}

// New returns an empty directory over a registry.
func New(registry Registry) *Directory {
	return &Directory{registry: registry, known: map[webhook.EndpointID]entry{}}
}

// Find returns the endpoint as it was at most [Age] ago.
func (d *Directory) Find(ctx context.Context, id webhook.EndpointID, now time.Time) (webhook.Endpoint, bool, error) {
	d.mu.Lock()
	e, ok := d.known[id]
	d.mu.Unlock()
	if ok && now.Sub(e.readAt) < Age {
		return e.endpoint, e.found, nil
	}
	// One read for all that wait. Each waits only as long as its own request may.
	result := d.flight.DoChan(string(id), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
		defer cancel()
		endpoint, found, err := d.registry.Endpoint(ctx, id)
		if err != nil {
			return entry{}, err
		}
		e := entry{endpoint, found, now}
		d.remember(id, e)
		return e, nil
	})
	select {
	case <-ctx.Done():
		return webhook.Endpoint{}, false, ctx.Err()
	case res := <-result:
		if res.Err != nil {
			return webhook.Endpoint{}, false, res.Err
		}
		e := res.Val.(entry) //nolint:forcetypeassert // the function above returns nothing else
		return e.endpoint, e.found, nil
	}
}

func (d *Directory) remember(id webhook.EndpointID, e entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= knownMax {
		clear(d.known)
	}
	d.known[id] = e
}

// Matched records that a version was seen in use for the first time, which
// starts the overlap of the one before it. Failing is harmless: the next match
// of the version tries again.
func (d *Directory) Matched(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion, now time.Time) {
	if e, ok := e.WithFirstMatch(v, now); ok {
		d.change(ctx, e)
	}
}

// Adopt lists a version that verified because it is the secret store's current
// one. Failing is harmless: the next request finds it there again.
func (d *Directory) Adopt(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion, now time.Time) {
	if e, ok := e.Add(webhook.TrustedKey{Version: v, AddedAt: now, FirstMatch: now, Adopted: true}); ok {
		d.change(ctx, e)
	}
}

// change writes an endpoint under its revision and forgets the outdated copy,
// whoever was faster.
func (d *Directory) change(ctx context.Context, e webhook.Endpoint) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if _, err := d.registry.UpdateEndpoint(ctx, e); err != nil {
		return
	}
	d.mu.Lock()
	delete(d.known, e.ID)
	d.mu.Unlock()
}
