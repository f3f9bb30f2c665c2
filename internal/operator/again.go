package operator

import (
	"context"
	"fmt"

	"dakghar/internal/business"
	"dakghar/internal/webhook"
)

// mayRunAgain refuses an applied event whose handler does not declare, under the
// name that the operator gave, that it may be run on it once more.
func (o *Operator) mayRunAgain(ctx context.Context, row webhook.Inbox, handler string) error {
	object, h, err := o.handlerOf(ctx, row)
	if err != nil {
		return err
	}
	safe, ok := h.(business.Reprocessable)
	if !ok {
		return refuse("not_reprocessable",
			fmt.Sprintf("%s was applied, and the handler of %q does not declare that it may be run again: what it adds would be added twice", row.ID, object),
			say("docs/extend/handlers.md says how a handler of yours declares it"))
	}
	if name, why := safe.Reprocessable(); name != handler {
		return refuse("other_handler", fmt.Sprintf("the handler of %q is called %q, not %q", object, name, handler),
			say("it says of itself: "+why), say("name it if that is what you mean: --reprocess "+name))
	}
	return nil
}

// handlerOf returns the handler that the processor would give an event to.
func (o *Operator) handlerOf(ctx context.Context, row webhook.Inbox) (webhook.ObjectType, business.Handler, error) {
	a, err := o.adapter(row.Provider)
	if err != nil {
		return "", nil, err
	}
	k, ok := a.Kind(row.EventType)
	if !ok {
		return "", nil, refuse("kind_unknown", fmt.Sprintf("%s is of type %q, which no handler knows", row.ID, row.EventType))
	}
	e, found, err := o.Registry.Endpoint(ctx, row.Endpoint)
	if err != nil {
		return "", nil, unreachable("the registry", err)
	}
	policy := k.Policy
	if found {
		policy = e.PolicyFor(k.Name, k.Policy)
	}
	h, ok := o.Router.Handler(webhook.Event{Policy: policy, Facts: webhook.Facts{ObjectType: k.Object}})
	if !ok {
		return k.Object, nil, refuse("handler_unknown", fmt.Sprintf("%s is about a %q, which has no handler", row.ID, k.Object))
	}
	return k.Object, h, nil
}
