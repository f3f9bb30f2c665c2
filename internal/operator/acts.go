package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dakghar/internal/webhook"
)

// deed is one thing that an operator does to an event, by itself or in a job.
type deed struct {
	name string // as the record has it
	// from are the states in which it may be done.
	from []webhook.Status
	// units is what it costs in write units, see [Plan].
	units int
	do    func(o *Operator, ctx context.Context, row webhook.Inbox, act webhook.Act, handler string) (webhook.Inbox, error)
}

// open are the states of work that has not ended and that nobody holds.
func open() []webhook.Status {
	return []webhook.Status{webhook.Received, webhook.Retry, webhook.Processing, webhook.Parked}
}

// The names of the deeds, which are those of the commands.
const (
	actReplay    = "inbox replay"
	actReprocess = "inbox reprocess"
	actRelease   = "inbox release"
	actHold      = "inbox hold"
	actFail      = "inbox fail"
	actResume    = "endpoint resume"
)

// deeds lists what can be done to an event. Each write of a transaction counts
// twice, an index entry once; the two rows of the record are 4 of the units. A
// test in package dynamo counts them.
func deeds() []deed {
	return []deed{
		{actReplay, []webhook.Status{webhook.Failed}, 11, (*Operator).reopenFailed},
		{actReprocess, []webhook.Status{webhook.Processed}, 10, (*Operator).reprocess},
		{actRelease, []webhook.Status{webhook.Held}, 11, (*Operator).reopenHeld},
		{actHold, open(), 9, (*Operator).hold},
		{actFail, append(open(), webhook.Held), 9, (*Operator).fail},
		{actErase, []webhook.Status{webhook.Processed, webhook.Failed}, 8, (*Operator).erase},
	}
}

func deedOf(name string) (deed, bool) {
	all := deeds()
	i := slices.IndexFunc(all, func(d deed) bool { return d.name == name })
	if i < 0 {
		return deed{}, false
	}
	return all[i], true
}

// Replay lets a FAILED event be worked on again, with all its attempts. It is
// refused where the event was applied, or where its body would not last.
func (o *Operator) Replay(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	return o.one(ctx, id, actReplay, "", why)
}

// Reprocess lets a PROCESSED event be applied once more, if the handler of its
// object declares that this is safe, under the name that is given.
func (o *Operator) Reprocess(ctx context.Context, id webhook.InboxID, handler, why string) (webhook.Inbox, error) {
	if handler == "" {
		return webhook.Inbox{}, misuse("--reprocess names the handler that is to be run again")
	}
	return o.one(ctx, id, actReprocess, handler, why)
}

// Release lets a HELD event be worked on.
func (o *Operator) Release(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	return o.one(ctx, id, actRelease, "", why)
}

// Hold takes an open event out of the work until it is released. A worker that
// has it loses its claim. Before its body would expire it ends FAILED.
func (o *Operator) Hold(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	return o.one(ctx, id, actHold, "", why)
}

// Fail ends an open or held event as FAILED. It can be replayed.
func (o *Operator) Fail(ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
	return o.one(ctx, id, actFail, "", why)
}

// one does a deed to one event.
func (o *Operator) one(ctx context.Context, id webhook.InboxID, name, handler, why string) (webhook.Inbox, error) {
	row, err := o.Event(ctx, id)
	if err != nil {
		return row, err
	}
	act, err := o.act(ctx, name, subjectOfEvent(id), why)
	if err != nil {
		return row, err
	}
	return o.perform(ctx, row, act, handler)
}

func subjectOfEvent(id webhook.InboxID) string { return "event " + string(id) }

// perform does the deed that an act names to an event as it was read.
func (o *Operator) perform(ctx context.Context, row webhook.Inbox, act webhook.Act, handler string) (webhook.Inbox, error) {
	d, ok := deedOf(act.Name)
	switch {
	case !ok:
		return row, misuse(fmt.Sprintf("nothing called %q is done to an event", act.Name))
	case !slices.Contains(d.from, row.Status):
		return row, o.wrongState(row, d)
	}
	return d.do(o, ctx, row, act, handler)
}

func (o *Operator) wrongState(row webhook.Inbox, d deed) error {
	if row.Status == webhook.Processed && d.name == actReplay {
		return refuse("wrong_state", fmt.Sprintf("%s is PROCESSED: it was applied, and replaying it would do nothing", row.ID),
			say("only a handler that declares itself safe can be run on an applied event again; name it with --reprocess HANDLER"), o.show(row.ID))
	}
	if d.name == actErase {
		return refuse("wrong_state", fmt.Sprintf("%s is %s: an event is erased once it has ended", row.ID, row.Status),
			say("let it end, or end it as FAILED; then run the command again"), run("to end it:", "inbox", "fail", string(row.ID)), o.show(row.ID))
	}
	return refuse("wrong_state", fmt.Sprintf("%s is %s; %s is for events that are %s", row.ID, row.Status, d.name, oneOf(d.from)), o.show(row.ID))
}

// oneOf joins words as alternatives.
func oneOf[T ~string](words []T) string {
	text := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			text += " or "
		default:
			text += ", "
		}
		text += string(w)
	}
	return text
}

func (o *Operator) reopenFailed(ctx context.Context, row webhook.Inbox, act webhook.Act, _ string) (webhook.Inbox, error) {
	return o.reopen(ctx, row, act, webhook.Inbox.Replay)
}

func (o *Operator) reopenHeld(ctx context.Context, row webhook.Inbox, act webhook.Act, _ string) (webhook.Inbox, error) {
	return o.reopen(ctx, row, act, webhook.Inbox.Release)
}

func (o *Operator) reprocess(ctx context.Context, row webhook.Inbox, act webhook.Act, handler string) (webhook.Inbox, error) {
	if err := o.mayRunAgain(ctx, row, handler); err != nil {
		return row, err
	}
	return o.reopen(ctx, row, act, webhook.Inbox.Reprocess)
}

// reopen commits the change with its promise and its record, in one transaction.
func (o *Operator) reopen(ctx context.Context, row webhook.Inbox, act webhook.Act, decide func(webhook.Inbox, time.Time) webhook.Change) (webhook.Inbox, error) {
	switch {
	case row.LegalHold:
		return row, o.underLegalHold(row.ID)
	case !row.ErasedAt.IsZero():
		return row, refuse("erased", fmt.Sprintf("%s was erased at %s: there is nothing left to work on", row.ID, row.ErasedAt.UTC().Format(time.RFC3339)), o.show(row.ID))
	case !row.Replayable(act.At):
		return row, bodyGone(fmt.Sprintf("the body of %s does not last another day", row.ID))
	}
	change := decide(row, act.At)
	after := change.Apply(row)
	verdict, err := o.Inbox.Reopen(ctx, change, after.Run, webhook.NewOutbox(after, act.At, act.At), act)
	switch {
	case err != nil:
		return row, unreachable("the inbox", err)
	case verdict == webhook.MarkExists:
		return row, refuse("already_applied", fmt.Sprintf("%s was applied; working on it again would do nothing", row.ID), o.show(row.ID))
	case verdict != webhook.Committed:
		return row, o.moved(row.ID)
	}
	return after, nil
}

func (o *Operator) hold(ctx context.Context, row webhook.Inbox, act webhook.Act, _ string) (webhook.Inbox, error) {
	change := row.Hold("held_by_operator")
	after := change.Apply(row)
	written, err := o.Inbox.Hold(ctx, change, webhook.NewHeldOutbox(after, act.At), act)
	return o.done(row, after, written, err)
}

func (o *Operator) fail(ctx context.Context, row webhook.Inbox, act webhook.Act, _ string) (webhook.Inbox, error) {
	change := row.Fail(act.At, "failed_by_operator", o.KeepInbox)
	written, err := o.Inbox.FailBy(ctx, change, webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0), act)
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

func (o *Operator) moved(id webhook.InboxID) error {
	return refuse("moved_on", fmt.Sprintf("%s changed while you decided, and nothing was written", id), o.show(id))
}

func (o *Operator) show(id webhook.InboxID) Step {
	return run("see where it stands:", "inbox", "show", string(id))
}

func bodyGone(problem string) error {
	return refuse("body_gone", problem, say("bodies are kept for a bounded time; the provider may be able to send the event again"))
}
