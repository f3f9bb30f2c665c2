package business

import (
	"context"
	"maps"

	"dakghar/internal/ordering"
	"dakghar/internal/webhook"
)

// Reader reads business rows, strongly consistent: what it returns is at least
// as new as every write that was acknowledged before the call.
type Reader interface {
	// Get returns a row without its key, and whether it is there.
	Get(ctx context.Context, k webhook.Key) (webhook.Item, bool, error)
}

// Handler turns one event into a plan. It may be called several times for one
// event: when a rival was faster, when a worker died, and with
// [webhook.Event.DomainRefused] set after one of its own Domain conditions was
// found false. It must therefore be free of side effects, and its answer must
// depend on nothing but the event and what it reads.
//
// An error of kind Permanent fails the event at once; one of kind Ours is tried
// again without limit; every other within the attempt budget.
type Handler interface {
	Plan(ctx context.Context, ev webhook.Event, r Reader) (webhook.Plan, error)
}

// Router finds the handler of an event by the type of its object. It is
// immutable and safe for concurrent use.
type Router struct {
	handlers map[webhook.ObjectType]Handler
}

// NewRouter returns a router over a copy of handlers. It panics on an object
// type without a name and on a nil handler, which are mistakes of the program.
func NewRouter(handlers map[webhook.ObjectType]Handler) *Router {
	for t, h := range handlers {
		if t == "" || h == nil {
			panic("business: a route needs an object type and a handler")
		}
	}
	return &Router{handlers: maps.Clone(handlers)}
}

// Standard returns a router with the built-in handlers.
func Standard() *Router {
	return NewRouter(map[webhook.ObjectType]Handler{
		webhook.Payment:      Lifecycle{Graph: ordering.Must(payments())},
		webhook.Order:        Lifecycle{Graph: ordering.Must(orders())},
		webhook.Subscription: Lifecycle{Graph: ordering.Must(subscriptions())},
		webhook.Refund:       Lifecycle{Graph: ordering.Must(refunds()), Voids: []string{"failed", "cancelled"}},
		webhook.Dispute:      Lifecycle{Graph: ordering.Must(disputes())},
		webhook.Account:      Notices{},
		webhook.Object:       Versioned{},
	})
}

// With returns a copy of the router in which h handles t, whether or not
// another handler did before.
func (r *Router) With(t webhook.ObjectType, h Handler) *Router {
	handlers := map[webhook.ObjectType]Handler{t: h}
	for known, handler := range r.handlers {
		if known != t {
			handlers[known] = handler
		}
	}
	return NewRouter(handlers)
}

// Handler returns the handler for an event's object, and false when there is
// none: the event's type is not supported.
func (r *Router) Handler(ev webhook.Event) (Handler, bool) {
	h, ok := r.handlers[ev.Facts.ObjectType]
	return h, ok
}
