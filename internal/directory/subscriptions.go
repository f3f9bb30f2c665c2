package directory

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// Lists reads a tenant's subscriptions, in the order of their ids.
type Lists interface {
	Subscriptions(ctx context.Context, t webhook.Tenant) ([]delivery.Subscription, error)
}

// Subscriptions remembers what tenants' partners want, for [Age].
type Subscriptions struct {
	lists  Lists
	flight singleflight.Group

	mu    sync.Mutex
	known map[webhook.Tenant]listed
}

type listed struct {
	all    []delivery.Subscription
	readAt time.Time
}

// NewSubscriptions returns an empty memory over a registry.
func NewSubscriptions(lists Lists) *Subscriptions {
	return &Subscriptions{lists: lists, known: map[webhook.Tenant]listed{}}
}

// listTime bounds one reading of a tenant's list, which may have thousands.
const listTime = 20 * time.Second

// Of returns a tenant's subscriptions as they were at most [Age] ago. The slice
// is shared: do not change it.
func (s *Subscriptions) Of(ctx context.Context, t webhook.Tenant, now time.Time) ([]delivery.Subscription, error) {
	s.mu.Lock()
	l, ok := s.known[t]
	s.mu.Unlock()
	if ok && now.Sub(l.readAt) < Age {
		return l.all, nil
	}
	result := s.flight.DoChan(string(t), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTime)
		defer cancel()
		all, err := s.lists.Subscriptions(ctx, t)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.known) >= knownMax {
			clear(s.known)
		}
		s.known[t] = listed{all, now}
		return all, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.([]delivery.Subscription), nil //nolint:forcetypeassert // the function above returns nothing else
	}
}

// Wanted reports whether any subscription of a tenant wants events of a type.
func (s *Subscriptions) Wanted(ctx context.Context, t webhook.Tenant, eventType string, now time.Time) (bool, error) {
	all, err := s.Of(ctx, t, now)
	if err != nil {
		return false, err
	}
	for _, one := range all {
		if one.State != delivery.Stopped && !one.Calls && one.WantsType(eventType) {
			return true, nil
		}
	}
	return false, nil
}
