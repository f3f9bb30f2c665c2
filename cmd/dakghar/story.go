package main

import (
	"slices"
	"time"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

// showStory shows all that is kept about an event.
func (a *app) showStory(s operator.Story) error {
	if a.json {
		return a.printJSON(storyJSON(s))
	}
	rows := eventRows(s.Row)
	if s.Kind != "" {
		rows = append(rows, []string{"kind", string(s.Kind)})
	}
	if s.Row.Run > 0 {
		rows = append(rows, []string{"run", number(s.Row.Run)})
	}
	if err := a.table("", rows); err != nil {
		return err
	}
	a.printf("\nTimeline:\n")
	if err := a.table("", timeline(s)); err != nil {
		return err
	}
	if s.Missing() {
		a.printf("\nThis event is open, and no outbox row promises that somebody comes for it.\nNext:\n%s", a.steps([]operator.Step{
			{Text: "the daily comparison puts it back; to do it now, hold and release it:", Command: []string{"inbox", "hold", string(s.Row.ID)}},
		}))
	}
	return nil
}

// happening is one line of a timeline.
type happening struct {
	at   time.Time
	what string
}

// timeline tells what happened and what comes next, in the order of time.
func timeline(s operator.Story) [][]string {
	all := happenings(s)
	slices.SortStableFunc(all, func(a, b happening) int { return a.at.Compare(b.at) })
	rows := make([][]string, len(all))
	for i, h := range all {
		rows[i] = []string{"  " + when(h.at), h.what}
	}
	return rows
}

func happenings(s operator.Story) []happening {
	r := s.Row
	var all []happening
	add := func(at time.Time, what string) {
		if !at.IsZero() {
			all = append(all, happening{at, what})
		}
	}
	add(r.ReceivedAt, "received")
	for i := len(s.Acts) - 1; i >= 0; i-- {
		act := s.Acts[i]
		what := act.Name + " by " + act.Who
		if act.Job != "" {
			what += " in " + act.Job
		}
		if act.Why != "" {
			what += ": " + act.Why
		}
		add(act.At, what)
	}
	attempts := count(r.AttemptCount, "attempt") + " spent"
	if r.LastError != "" {
		attempts += ", last error " + r.LastError
	}
	if s.Mark != nil {
		add(s.Mark.At, "applied: the processed mark of run "+number(s.Mark.Run))
	}
	switch r.Status {
	case webhook.Processed, webhook.Failed:
		add(r.ProcessedAt, string(r.Status)+" after "+attempts)
	case webhook.Processing:
		add(r.LeaseUntil, "the worker's lease ends; "+attempts)
	case webhook.Received, webhook.Retry:
		add(r.NextAttemptAt, "due; "+attempts)
	case webhook.Parked:
		add(r.NextAttemptAt, "waits for the events before it until then; "+attempts)
	case webhook.Held:
		add(r.BodyExpiresAt, "held until released; its body is kept until then")
	}
	if o := s.Promise; o != nil {
		add(o.PublishedAt, "last published, "+count(o.Wakes, "time")+" in all")
		add(o.DueAt, "promised")
		add(o.WakeAt, "the reconciler looks again")
	}
	return all
}

// storyView is an event in JSON, with what stands beside it. The members of the
// row are those that inbox list has.
type storyView struct {
	eventView

	Kind   word        `json:"kind"`
	Outbox *outboxView `json:"outbox"` // null where there is no row
	Mark   *markView   `json:"mark"`   // null where there is none
	Acts   []actView   `json:"acts"`   // newest first
}

type outboxView struct {
	OutboxID    string `json:"outbox_id"`
	Topic       string `json:"topic"`
	Generation  int64  `json:"generation"`
	CreatedAt   stamp  `json:"created_at"`
	PublishedAt stamp  `json:"published_at"`
	DueAt       stamp  `json:"due_at"`
	WakeAt      stamp  `json:"wake_at"`
	Wakes       int    `json:"wakes"`
}

type markView struct {
	Run       int   `json:"run"`
	At        stamp `json:"at"`
	ExpiresAt stamp `json:"expires_at"`
}

func storyJSON(s operator.Story) storyView {
	v := storyView{eventView: eventJSON(s.Row), Kind: word(s.Kind), Acts: []actView{}}
	if o := s.Promise; o != nil {
		v.Outbox = &outboxView{
			string(o.ID), string(o.Topic), int64(o.Gen), stamp(o.CreatedAt), stamp(o.PublishedAt), stamp(o.DueAt), stamp(o.WakeAt), o.Wakes,
		}
	}
	if m := s.Mark; m != nil {
		v.Mark = &markView{m.Run, stamp(m.At), stamp(m.ExpiresAt)}
	}
	for _, act := range s.Acts {
		v.Acts = append(v.Acts, actJSON(act))
	}
	return v
}
