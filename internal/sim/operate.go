package sim

import (
	"time"

	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

// act is what an operator decides about a row, and from which states.
type act struct {
	name   string
	from   func(webhook.Inbox) bool
	commit func(w *World, s *dynamo.Store, row webhook.Inbox, record webhook.Act) (bool, error)
}

// Replay lets an operator open a FAILED event again. What a death has made of
// the event in the meantime decides whether there is anything to do.
func (w *World) Replay(id webhook.InboxID) {
	w.operate(id, reopening("replay", webhook.Failed, webhook.Inbox.Replay))
}

// Release lets an operator open a HELD event.
func (w *World) Release(id webhook.InboxID) {
	w.operate(id, reopening("release", webhook.Held, webhook.Inbox.Release))
}

// Hold lets an operator take an open event out of the work.
func (w *World) Hold(id webhook.InboxID) {
	w.operate(id, act{
		name: "hold",
		from: func(row webhook.Inbox) bool { return !row.Status.Terminal() && row.Status != webhook.Held },
		commit: func(w *World, s *dynamo.Store, row webhook.Inbox, record webhook.Act) (bool, error) {
			change := row.Hold("held_by_operator")
			return s.Hold(w.T.Context(), change, webhook.NewHeldOutbox(change.Apply(row), record.At), record)
		},
	})
}

func reopening(name string, from webhook.Status, decide func(webhook.Inbox, time.Time) webhook.Change) act {
	return act{
		name: name,
		from: func(row webhook.Inbox) bool { return row.Status == from },
		commit: func(w *World, s *dynamo.Store, row webhook.Inbox, record webhook.Act) (bool, error) {
			change := decide(row, record.At)
			verdict, err := s.Reopen(w.T.Context(), change, row.Run, webhook.NewOutbox(change.Apply(row), record.At, record.At), record)
			return verdict == webhook.Committed, err
		},
	}
}

// operate reads the event and commits the act where its state permits it. A
// person whose command dies runs it again, and reads anew.
func (w *World) operate(id webhook.InboxID, a act) {
	w.T.Helper()
	for range operateMax {
		switch err := w.try(id, a); {
		case w.Operator.Switch.Dead():
			w.Operator.restart()
		case err != nil:
			w.T.Fatal(err)
		default:
			return
		}
	}
	w.T.Fatalf("%s of %s comes to no end", a.name, id)
}

// operateMax is more often than a test ends the operator's command.
const operateMax = 5

func (w *World) try(id webhook.InboxID, a act) error {
	store := running[*dynamo.Store](w.Operator)
	row, found, err := store.Inbox(w.T.Context(), id)
	if err != nil || !found || !a.from(row) {
		return err
	}
	_, err = a.commit(w, store, row, w.record(a.name, id))
	return err
}

func (w *World) record(name string, id webhook.InboxID) webhook.Act {
	return webhook.Act{ID: w.NewID(), At: w.Now(), Name: name, Subject: "event " + string(id), Who: "the test"}
}

// ReplayTwice lets two operators replay a FAILED event at once: both have read
// it before either writes. It returns how many of them wrote.
func (w *World) ReplayTwice(id webhook.InboxID) (written int) {
	w.T.Helper()
	a := reopening("replay", webhook.Failed, webhook.Inbox.Replay)
	row := w.Row(id)
	if !a.from(row) {
		w.T.Fatalf("%s is %s, want FAILED", id, row.Status)
	}
	for range 2 {
		ok, err := a.commit(w, w.Outside, row, w.record(a.name, id))
		if err != nil {
			w.T.Fatal(err)
		}
		if ok {
			written++
		}
	}
	return written
}
