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
// has it loses its claim. Before its body would expire it ends FAILED.
func (o *Operator) Hold(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	row, act, err := o.begin(ctx, id, "inbox hold", why)
	if err != nil {
		return row, err
	}
	if row.Status.Terminal() || row.Status == webhook.Held {
		return row, refuse("wrong_state", fmt.Sprintf("%s is %s; only events in the work are held", id, row.Status), o.show(id))
	}
	change := row.Hold("held_by_operator")
	after := change.Apply(row)
	written, err := o.Inbox.Hold(ctx, change, webhook.NewHeldOutbox(after, act.At), act)
	return o.done(row, after, written, err)
}

// Fail ends an open or held event as FAILED. It can be replayed.
func (o *Operator) Fail(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	row, act, err := o.begin(ctx, id, "inbox fail", why)
	if err != nil {
		return row, err
	}
	if row.Status.Terminal() {
		return row, refuse("wrong_state", fmt.Sprintf("%s is %s; only open events are failed", id, row.Status), o.show(id))
	}
	change := row.Fail(act.At, "failed_by_operator", o.KeepInbox)
	written, err := o.Inbox.FailBy(ctx, change, webhook.NewOutboxID(id, webhook.TopicProcess, 0), act)
	return o.done(row, change.Apply(row), written, err)
}

// done is the answer to a change that was or was not written.
func (o *Operator) done(before, after webhook.Inbox, written bool, err error) (webhook.Inbox, error) {
	switch {
	case err != nil:
		return before, unreachable("the inbox", err)
	case !written:
		return before, o.moved(before.ID)
	}
	return after, nil
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
