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

// Reprocessable is what a handler implements besides, that may be given an event
// a second time after it was applied: what it writes replaces, and never adds. An
// operator has to say the name, so that nobody runs another one by mistake. The
// built-in handlers add to a ledger, and do not declare it.
type Reprocessable interface {
	// Reprocessable returns the handler's name, and why a second run is harmless.
	Reprocessable() (name, why string)
}

// Router finds the handler of an event by the type of its object and by what
// decides its order. It is immutable and safe for concurrent use.
type Router struct {
	handlers map[route]Handler
}

// route is an object type and a policy; either may be empty, which is any.
type route struct {
	object webhook.ObjectType
	policy webhook.Policy
}

// NewRouter returns a router over a copy of handlers. It panics on an object
// type without a name and on a nil handler, which are mistakes of the program.
func NewRouter(handlers map[webhook.ObjectType]Handler) *Router {
	r := &Router{handlers: map[route]Handler{}}
	for t, h := range handlers {
		if t == "" {
			panic("business: a route needs an object type")
		}
		r = r.with(route{object: t}, h)
	}
	return r
}

// Standard returns a router with the built-in handlers. What is fetched or
// sequenced has a handler of its own, whatever the object.
func Standard() *Router {
	return NewRouter(map[webhook.ObjectType]Handler{
		webhook.Payment:      Lifecycle{Graph: ordering.Must(payments())},
		webhook.Order:        Lifecycle{Graph: ordering.Must(orders())},
		webhook.Subscription: Lifecycle{Graph: ordering.Must(subscriptions())},
		webhook.Refund:       Lifecycle{Graph: ordering.Must(refunds()), Voids: []string{"failed", "cancelled"}},
		webhook.Dispute:      Lifecycle{Graph: ordering.Must(disputes())},
		webhook.Account:      Notices{},
		webhook.Object:       Versioned{},
	}).WithPolicy("", webhook.ByFetch, Converged{}).WithPolicy("", webhook.BySequence, Sequenced{})
}

// With returns a copy of the router in which h handles t, whether or not
// another handler did before.
func (r *Router) With(t webhook.ObjectType, h Handler) *Router {
	if t == "" {
		panic("business: a route needs an object type")
	}
	return r.with(route{object: t}, h)
}

// WithPolicy returns a copy of the router in which h handles the events of t
// whose order p decides; an empty t is every object type without a handler of
// its own for p.
func (r *Router) WithPolicy(t webhook.ObjectType, p webhook.Policy, h Handler) *Router {
	if p == "" {
		panic("business: a route of a policy needs one")
	}
	return r.with(route{t, p}, h)
}

func (r *Router) with(to route, h Handler) *Router {
	if h == nil {
		panic("business: a route needs a handler")
	}
	handlers := maps.Clone(r.handlers)
	handlers[to] = h
	return &Router{handlers: handlers}
}

// Handler returns the handler for an event, and false when there is none: the
// event's type is not supported. The closest route counts: object type and
// policy, then the policy for any object, then the object type.
func (r *Router) Handler(ev webhook.Event) (Handler, bool) {
	for _, to := range []route{{ev.Facts.ObjectType, ev.Policy}, {"", ev.Policy}, {ev.Facts.ObjectType, ""}} {
		if h, ok := r.handlers[to]; ok {
			return h, true
		}
	}
	return nil, false
}
