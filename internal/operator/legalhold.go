package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"dakghar/internal/webhook"
)

// HoldByLaw keeps an ended event as it is until the hold is cleared: its row does
// not expire, a copy of its bytes is kept that does not expire either, and it is
// neither erased nor worked on again. kept is false where the bytes were gone
// already. The same again finishes what a death left.
func (o *Operator) HoldByLaw(ctx context.Context, id webhook.InboxID, why string) (row webhook.Inbox, kept bool, err error) {
	row, act, err := o.aboutHold(ctx, id, "legal-hold set", why)
	if err != nil {
		return row, false, err
	}
	if !row.LegalHold {
		if !row.ErasedAt.IsZero() {
			return row, false, refuse("erased", fmt.Sprintf("%s was erased: there is nothing left to keep", id), o.show(id))
		}
		change := row.HoldByLaw()
		written, err := o.Inbox.HoldByLawBy(ctx, change, webhook.HeldByLaw{InboxID: id, Endpoint: row.Endpoint, At: act.At, Who: act.Who, Why: why}, act)
		if row, err = o.done(row, change.Apply(row), written, err); err != nil {
			return row, false, err
		}
	}
	switch err := o.Bodies.HoldCopy(ctx, row.ID, row.BodyID); {
	case errors.Is(err, ErrNoBody):
		return row, false, nil
	case err != nil:
		return row, false, unreachable("the body store", err)
	}
	return row, true, nil
}

// ClearLegalHold ends a hold. The row is kept from now on as one that has just
// ended; the copy of the bytes goes, and the bytes themselves live as long as they
// would have. The same again finishes what a death left.
func (o *Operator) ClearLegalHold(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	row, act, err := o.aboutHold(ctx, id, "legal-hold clear", why)
	if err != nil {
		return row, err
	}
	if row.LegalHold {
		change := row.LetGo(act.At, o.KeepInbox)
		written, err := o.Inbox.LetGoBy(ctx, change, act)
		if row, err = o.done(row, change.Apply(row), written, err); err != nil {
			return row, err
		}
	}
	if err := o.Bodies.DropCopy(ctx, id); err != nil {
		return row, unreachable("the body store", err)
	}
	return row, nil
}

func (o *Operator) aboutHold(ctx context.Context, id webhook.InboxID, name, why string) (webhook.Inbox, webhook.Act, error) {
	if why == "" {
		return webhook.Inbox{}, webhook.Act{}, misuse("--reason is required: name the case, it is recorded with the hold")
	}
	row, err := o.Event(ctx, id)
	switch {
	case err != nil:
		return row, webhook.Act{}, err
	case !row.Status.Terminal():
		return row, webhook.Act{}, refuse("wrong_state", fmt.Sprintf("%s is %s: an open event does not expire, and is held once it has ended", id, row.Status),
			say("let it end, or end it as FAILED; then run the command again"), run("to end it:", "inbox", "fail", string(id)), o.show(id))
	}
	act, err := o.act(ctx, name, subjectOfEvent(id), why)
	return row, act, err
}

// LegalHolds yields the events under legal hold.
func (o *Operator) LegalHolds(ctx context.Context) iter.Seq2[webhook.HeldByLaw, error] {
	return listed("the registry", o.Inbox.LegalHolds(ctx), every)
}
