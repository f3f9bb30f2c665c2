package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

const actErase = "erase"

// Codes of what keeps an event from being erased.
const (
	codeLegalHold    = "legal_hold"
	codeErasedBefore = "erased_before"
)

// settleTime is how long after bytes were stored or renewed the request that did so
// may still be on its way to its own row, with room for clocks that differ: a
// request has 1.2 s.
const settleTime = 10 * time.Minute

// Erase deletes what an ended event brought: its raw bytes, and what partners were
// told because of it. The row stays and says so. An event that was erased before
// is finished: whoever died half-way runs the same again.
func (o *Operator) Erase(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	if why == "" {
		return webhook.Inbox{}, misuse("--reason is required: it is recorded with the event that is gone")
	}
	row, err := o.one(ctx, id, actErase, "", why)
	if codeOf(err) == codeErasedBefore {
		err = nil
	}
	return row, err
}

// erase marks and lists the event first, and deletes afterwards: from the mark on
// nobody opens it again, and a death leaves a row that says what is to be done.
func (o *Operator) erase(ctx context.Context, row webhook.Inbox, act webhook.Act, _ string) (webhook.Inbox, error) {
	if row.LegalHold {
		return row, o.underLegalHold(row.ID)
	}
	if !row.ErasedAt.IsZero() {
		if err := o.finishErasing(ctx, row); err != nil {
			return row, err
		}
		return row, refuse(codeErasedBefore, fmt.Sprintf("%s was erased before", row.ID), o.show(row.ID))
	}
	effects, err := o.effectBytes(ctx, row)
	if err != nil {
		return row, err
	}
	if _, _, err := o.unshared(ctx, row); err != nil {
		return row, err
	}
	change := row.Erase(act.At)
	written, err := o.Inbox.EraseBy(ctx, change, webhook.Erased{
		InboxID: row.ID, Endpoint: row.Endpoint, Tenant: row.Tenant, BodyID: row.BodyID, Effects: effects, At: act.At,
	}, act)
	after, err := o.done(row, change.Apply(row), written, err)
	if err != nil {
		return row, err
	}
	return after, o.eraseBytes(ctx, after, effects)
}

func (o *Operator) underLegalHold(id webhook.InboxID) error {
	return refuse(codeLegalHold, fmt.Sprintf("%s is under legal hold: it is kept as it is", id),
		run("see the holds, and why:", "legal-hold", "list"), run("when the hold has ended:", "legal-hold", "clear", string(id)))
}

// finishErasing deletes what the erasing of an event left, or a restore brought back.
func (o *Operator) finishErasing(ctx context.Context, row webhook.Inbox) error {
	effects, err := o.effectBytes(ctx, row)
	if err != nil {
		return err
	}
	return o.eraseBytes(ctx, row, effects)
}

func (o *Operator) eraseBytes(ctx context.Context, row webhook.Inbox, effects []webhook.BodyID) error {
	kept, there, err := o.unshared(ctx, row)
	if err != nil {
		return err
	}
	if there {
		if err := o.eraseBody(ctx, row.ID, row.BodyID, kept.PutID); err != nil {
			return err
		}
	}
	for _, id := range effects {
		kept, there, err := o.Bodies.Look(ctx, id)
		switch {
		case err != nil:
			return unreachable("the body store", err)
		case !there:
			continue
		}
		if err := o.eraseBody(ctx, row.ID, id, kept.PutID); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operator) eraseBody(ctx context.Context, event webhook.InboxID, id webhook.BodyID, putID string) error {
	gone, err := o.Bodies.Erase(ctx, id, putID)
	switch {
	case err != nil:
		return unreachable("the body store", err)
	case !gone:
		return justStored(event)
	}
	return nil
}

func justStored(id webhook.InboxID) error {
	return refuse("body_fresh", fmt.Sprintf("the bytes of %s came again minutes ago, and it is not known yet what becomes of that request", id),
		say(fmt.Sprintf("wait %.0f minutes and run the command again; these bytes are there until then", settleTime.Minutes())))
}

// unshared returns who stored an event's body, if it is there, and refuses while
// another event may need it.
func (o *Operator) unshared(ctx context.Context, row webhook.Inbox) (webhook.Kept, bool, error) {
	if row.BodyID == "" {
		return webhook.Kept{}, false, nil
	}
	kept, there, err := o.Bodies.Look(ctx, row.BodyID)
	switch {
	case err != nil:
		return kept, false, unreachable("the body store", err)
	case !there || kept.First == row.ID && kept.RenewedAt.IsZero():
		return kept, there, nil // nobody else has ever had it
	case kept.RenewedAt.After(o.Now().Add(-settleTime)):
		return kept, there, justStored(row.ID)
	}
	if kept.First != row.ID {
		if _, found, err := o.Inbox.Inbox(ctx, kept.First); err != nil {
			return kept, there, unreachable("the inbox", err)
		} else if !found && kept.RenewedAt.IsZero() {
			return kept, there, refuse("body_shared", fmt.Sprintf("the bytes of %s were stored again by a request that has no event yet", row.ID),
				say("its sender comes again, or the bytes go when their life is over: run the command again later"))
		}
	}
	return kept, there, o.noOpenSharer(ctx, row)
}

// noOpenSharer looks for another event with the same bytes that has not ended. Any
// such event was received within a body's life.
func (o *Operator) noOpenSharer(ctx context.Context, row webhook.Inbox) error {
	now := o.Now()
	for other, err := range o.Inbox.RecentInbox(ctx, row.Endpoint, now.Add(-o.KeepBody-24*time.Hour), now.Add(clockAhead)) {
		switch {
		case err != nil:
			return unreachable("the inbox", err)
		case other.BodyID != row.BodyID || other.ID == row.ID:
		case other.LegalHold:
			return refuse("body_shared", fmt.Sprintf("%s has the same bytes as %s and is under legal hold", other.ID, row.ID), o.show(other.ID))
		case !other.Status.Terminal():
			return refuse("body_shared", fmt.Sprintf("%s has the same bytes as %s and is %s", other.ID, row.ID, other.Status),
				say("let it end, or end it; then run the command again"), o.show(other.ID))
		}
	}
	return nil
}

// effectBytes returns the bytes that partners were told because of an event. It
// refuses while somebody is still to be told.
func (o *Operator) effectBytes(ctx context.Context, row webhook.Inbox) ([]webhook.BodyID, error) {
	if row.Status != webhook.Processed && row.Run == 0 {
		return nil, nil // it was never applied
	}
	subscriptions, err := o.Deliveries.Subscriptions(ctx, row.Tenant)
	if err != nil {
		return nil, unreachable("the registry", err)
	}
	var all []webhook.BodyID
	for lap := range row.Run + 1 {
		for ordinal := range webhook.EffectsMax {
			id := webhook.NewOutboxID(row.ID, webhook.TopicEffect, lap*webhook.EffectsMax+ordinal)
			switch _, open, err := o.Inbox.Outbox(ctx, id); {
			case err != nil:
				return nil, unreachable("the outbox", err)
			case open:
				return nil, refuse("delivery_open", fmt.Sprintf("partners are still being told of %s", row.ID), o.show(row.ID))
			}
			effect := webhook.DeriveEffectID(row.ID, lap, ordinal)
			for _, s := range subscriptions {
				told, err := o.told(ctx, delivery.DeriveID(row.Tenant, effect, s.ID, 0))
				if err != nil {
					return nil, err
				}
				all = appendNew(all, told)
			}
		}
	}
	return all, nil
}

// told returns the bytes of a delivery and of all that repeat it, which are the
// same; empty where there is none.
func (o *Operator) told(ctx context.Context, id delivery.ID) (webhook.BodyID, error) {
	var bytes webhook.BodyID
	for id != "" {
		d, found, err := o.Deliveries.Delivery(ctx, id)
		switch {
		case err != nil:
			return "", unreachable("the deliveries", err)
		case !found:
			return bytes, nil
		case !d.Status.Terminal():
			return "", refuse("delivery_open", fmt.Sprintf("delivery %s of %s is %s", d.ID, d.Effect.InboxID, d.Status),
				run("let it end, or end it:", "delivery", "cancel", string(d.ID)))
		}
		bytes, id = d.Effect.BodyID, d.ReplayedAs
	}
	return bytes, nil
}

func appendNew(all []webhook.BodyID, id webhook.BodyID) []webhook.BodyID {
	if id == "" || slices.Contains(all, id) {
		return all
	}
	return append(all, id)
}

// Again is what erasing again came to.
type Again struct {
	Listed int // events in the list
	Erased int // marked once more: a restore had brought them back as they were
	Bytes  int // looked after: the bytes are gone now, if they were not before
	// Left counts those that were not erased, by the code of the refusal.
	Left map[string]int
}

// PlanAgain counts the events that were erased since a time.
func (o *Operator) PlanAgain(ctx context.Context, since time.Time) (Again, error) {
	return o.eachErased(ctx, since, func(webhook.Erased, *Again) error { return nil })
}

// EraseAgain erases what the list of erased events names, where a restore brought
// it back. What is erased already stays as it is. Whoever dies runs it again.
func (o *Operator) EraseAgain(ctx context.Context, since time.Time, why string) (Again, error) {
	if why == "" {
		return Again{}, misuse("--reason is required: it is recorded with each event that is erased again")
	}
	act, err := o.act(ctx, "erase again", "list erased", why)
	if err != nil {
		return Again{}, err
	}
	if err := o.Registry.RecordAct(ctx, act); err != nil {
		return Again{}, unreachable("the registry", err)
	}
	return o.eachErased(ctx, since, func(e webhook.Erased, done *Again) error {
		again, err := o.eraseListed(ctx, e, act)
		switch code := codeOf(err); {
		case err == nil && again:
			done.Erased++
		case err == nil:
			done.Bytes++
		case code == "" || code == codeUnavailable:
			return err
		default:
			done.Left[code]++
		}
		return nil
	})
}

// eachErased does something with each event of the list, once.
func (o *Operator) eachErased(ctx context.Context, since time.Time, do func(webhook.Erased, *Again) error) (Again, error) {
	done := Again{Left: map[string]int{}}
	f, err := o.settle(ctx, webhook.Filter{Since: since})
	if err != nil {
		return done, err
	}
	seen := map[webhook.InboxID]bool{}
	for e, err := range o.Inbox.ErasedEvents(ctx, f.Since, f.Until) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return done, unreachable("the registry", err)
		}
		if seen[e.InboxID] {
			continue
		}
		seen[e.InboxID] = true
		done.Listed++
		if err := do(e, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

// eraseListed erases one event of the list; true if its row had to be marked again.
func (o *Operator) eraseListed(ctx context.Context, e webhook.Erased, act webhook.Act) (bool, error) {
	row, found, err := o.Inbox.Inbox(ctx, e.InboxID)
	switch {
	case err != nil:
		return false, unreachable("the inbox", err)
	case !found: // its row is over, or of after the moment that was restored
		row = webhook.Inbox{ID: e.InboxID, Endpoint: e.Endpoint, Tenant: e.Tenant, BodyID: e.BodyID}
		return false, o.eraseBytes(ctx, row, e.Effects)
	case row.ErasedAt.IsZero():
		act.ID, act.At, act.Name, act.Subject = o.NewID(), o.Now(), actErase, subjectOfEvent(row.ID)
		if row, err = o.perform(ctx, row, act, ""); err != nil {
			return false, err
		}
		return true, o.eraseBytes(ctx, row, e.Effects)
	}
	return false, o.eraseBytes(ctx, row, e.Effects)
}
