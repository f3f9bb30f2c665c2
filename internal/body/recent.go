package body

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"dakghar/internal/webhook"
)

// Recent opens bodies and remembers them for a moment: what is told to many
// partners is read and opened once for all of those whose turn comes together.
// It is safe for concurrent use.
//
// What it returns is shared: do not change it. A body that is erased meanwhile
// still opens for at most [RecentAge].
type Recent struct {
	*Store
	// BytesMax bounds what is remembered.
	BytesMax int
	Now      func() time.Time

	flight singleflight.Group
	mu     sync.Mutex
	known  map[recentKey]recentBody
	order  []recentKey // oldest first
	bytes  int
}

// RecentAge is how long a body is remembered.
const RecentAge = 30 * time.Second

type recentKey struct {
	id     webhook.BodyID
	tenant webhook.Tenant
	digest webhook.Digest
}

type recentBody struct {
	raw []byte
	at  time.Time
}

// Open is [Store.Open].
func (r *Recent) Open(ctx context.Context, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error) {
	k := recentKey{id, tenant, digest}
	if raw, ok := r.recall(k); ok {
		return raw, nil
	}
	// The flight is not the first caller's alone: his giving up must not fail the others.
	result := r.flight.DoChan(string(id)+"\x00"+string(tenant)+"\x00"+string(digest), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTime)
		defer cancel()
		raw, err := r.Store.Open(ctx, id, tenant, digest)
		if err == nil {
			r.remember(k, raw)
		}
		return raw, err
	})
	select {
	case <-ctx.Done():
		return nil, ours("table", "GetItem", ctx.Err())
	case got := <-result:
		if got.Err != nil {
			return nil, got.Err
		}
		return got.Val.([]byte), nil //nolint:forcetypeassert // the function above returns nothing else
	}
}

// openTime bounds one opening, with the SDK's own tries.
const openTime = 15 * time.Second

func (r *Recent) recall(k recentKey) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.known[k]
	if !ok || r.Now().Sub(b.at) >= RecentAge {
		return nil, false
	}
	return b.raw, true
}

func (r *Recent) remember(k recentKey, raw []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, again := r.known[k]; again {
		r.known[k] = recentBody{old.raw, r.Now()}
		return
	}
	if len(raw) > r.BytesMax {
		return
	}
	if r.known == nil {
		r.known = map[recentKey]recentBody{}
	}
	for r.bytes+len(raw) > r.BytesMax {
		oldest := r.order[0]
		r.order = r.order[1:]
		r.bytes -= len(r.known[oldest].raw)
		delete(r.known, oldest)
	}
	r.known[k] = recentBody{raw, r.Now()}
	r.order = append(r.order, k)
	r.bytes += len(raw)
}
