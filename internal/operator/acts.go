package operator

import (
	"context"
	"fmt"
	"time"

	"dakghar/internal/webhook"
)

// Replay lets a FAILED event be worked on again, with all its attempts. It is
// refused where the event was applied, or where its body would not last.
func (o *Operator) Replay(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	return o.reopen(ctx, id, webhook.Failed, "inbox replay", why, webhook.Inbox.Replay)
}

// Release lets a HELD event be worked on.
func (o *Operator) Release(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	return o.reopen(ctx, id, webhook.Held, "inbox release", why, webhook.Inbox.Release)
}

// reopen commits the change with its promise and its record, in one transaction.
func (o *Operator) reopen(ctx context.Context, id webhook.InboxID, from webhook.Status, name, why string, decide func(webhook.Inbox, time.Time) webhook.Change) (webhook.Inbox, error) {
	row, act, err := o.begin(ctx, id, name, why)
	if err != nil {
		return row, err
	}
	now := act.At
	switch {
	case row.Status != from:
		return row, refuse("wrong_state", fmt.Sprintf("%s is %s; %s is for %s events", id, row.Status, name, from), o.show(id))
	case !row.Replayable(now):
		return row, refuse("body_gone", fmt.Sprintf("the body of %s does not last another day", id),
			say("bodies are kept for a bounded time; the provider may be able to send the event again"))
	}
	change := decide(row, now)
	after := change.Apply(row)
	verdict, err := o.Inbox.Reopen(ctx, change, row.Run, webhook.NewOutbox(after, now, now), act)
	switch {
	case err != nil:
		return row, unreachable("the inbox", err)
	case verdict == webhook.MarkExists:
		return row, refuse("already_applied", fmt.Sprintf("%s was applied; working on it again would do nothing", id), o.show(id))
	case verdict != webhook.Committed:
		return row, o.moved(id)
	}
	return after, nil
}

// Hold takes an open event out of the work until it is released. A worker that
// has it loses its claim.
func (o *Operator) Hold(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	return o.suspend(ctx, id, "inbox hold", why, func(row webhook.Inbox, _ time.Time) webhook.Change { return row.Hold("held_by_operator") })
}

// Fail ends an open event as FAILED. It can be replayed.
func (o *Operator) Fail(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	return o.suspend(ctx, id, "inbox fail", why, func(row webhook.Inbox, now time.Time) webhook.Change {
		return row.Fail(now, "failed_by_operator", o.KeepInbox)
	})
}

func (o *Operator) suspend(ctx context.Context, id webhook.InboxID, name, why string, decide func(webhook.Inbox, time.Time) webhook.Change) (webhook.Inbox, error) {
	row, act, err := o.begin(ctx, id, name, why)
	if err != nil {
		return row, err
	}
	if row.Status.Terminal() || row.Status == webhook.Held && name == "inbox hold" {
		return row, refuse("wrong_state", fmt.Sprintf("%s is %s; %s is for events that are still open", id, row.Status, name), o.show(id))
	}
	change := decide(row, act.At)
	written, err := o.Inbox.Suspend(ctx, change, webhook.NewOutboxID(id, webhook.TopicProcess, 0), act)
	switch {
	case err != nil:
		return row, unreachable("the inbox", err)
	case !written:
		return row, o.moved(id)
	}
	return change.Apply(row), nil
}

// begin reads the event and begins the record of the act on it.
func (o *Operator) begin(ctx context.Context, id webhook.InboxID, name, why string) (webhook.Inbox, webhook.Act, error) {
	row, err := o.Event(ctx, id)
	if err != nil {
		return row, webhook.Act{}, err
	}
	act, err := o.act(ctx, name, "event "+string(id), why)
	return row, act, err
}

func (o *Operator) moved(id webhook.InboxID) error {
	return refuse("moved_on", fmt.Sprintf("%s changed while you decided, and nothing was written", id), o.show(id))
}

func (o *Operator) show(id webhook.InboxID) Step {
	return run("see where it stands:", "inbox", "show", string(id))
}
