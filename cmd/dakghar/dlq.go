package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) dlqCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:   "dlq",
		Short: "See what lies in the dead letters, and have it dealt with",
		Long: `There are three queues of dead letters. "events" has the wake-ups that the processor
could not run for, "deliveries" those that the dispatcher could not run for; "relay" has
what the stream's trigger reports as given up. None is ever the only copy of anything:
what is to be done stands in the rows, and the reconciler comes for it by itself.
Runbooks: docs/operate/redrive.md, poison-events.md.`,
		Example: `  dakghar dlq list --local`,
	}, a.dlqList(), a.dlqRedrive()))
}

// queueFlag is which dead letters a command is for.
type queueFlag string

func (q *queueFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(q), "queue", "all", "which dead letters: events, deliveries, relay or all")
}

func (q queueFlag) which() ([]operator.Queue, error) {
	all := operator.Queues()
	switch {
	case q == "all":
		return all, nil
	case slices.Contains(all, operator.Queue(q)):
		return []operator.Queue{operator.Queue(q)}, nil
	}
	return nil, &operator.Refusal{Code: "usage", Usage: true, Problem: fmt.Sprintf("--queue %q is none of events, deliveries, relay, all", string(q))}
}

func (a *app) dlqList() *cobra.Command {
	var (
		queue queueFlag
		limit int
	)
	c := a.command(&cobra.Command{
		Use:   "list",
		Short: "List dead letters, and what becomes of each when it is sent again",
		Long: `List what lies in the dead letters. For each wake-up: the event or the delivery that it
names, the row as it stands now, and what a worker would make of it:

  claimed                   it is due: it is worked on, or sent, or fanned out
  expired                   an event waited too long for those before it: it ends FAILED;
                            or a delivery is beyond its deadline: it ends EXPIRED
  cancelled                 a delivery's subscription is stopped: it ends CANCELLED
  failed                    dropped; the event is FAILED, and yours to replay
  dead                      dropped; the delivery ended without its partner's 2xx, and a
                            replay is a new one: see delivery replay
  not_due, working, parked, held, paused, faulted, unaddressed
                            dropped; the row's own promise wakes somebody, or you do
  processed, ended, missing dropped; nothing is left to do
  not_a_wake, newer_wake    nobody can read it: it comes back here

Nothing is taken out. SQS shows a sample, never surely all; each look counts as one more
receive, and hides the letters from others for a moment.`,
		Example: `  dakghar dlq list --local
  dakghar dlq list --stack prod --queue events --limit 500 --json`,
	}, func(ctx context.Context, _ []string) error {
		queues, err := queue.which()
		if err != nil {
			return err
		}
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		for _, q := range queues {
			if q == operator.QueueRelay {
				err = a.listReports(ctx, op, limit)
			} else {
				err = a.listLetters(ctx, op, q, limit)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	queue.add(c)
	c.Flags().IntVar(&limit, "limit", 100, "how many letters of each queue at most")
	return c
}

// listLetters lists a queue of wake-ups.
func (a *app) listLetters(ctx context.Context, op *operator.Operator, q operator.Queue, limit int) error {
	letters, err := op.Letters(ctx, q, limit)
	if err != nil {
		return err
	}
	if a.json {
		for _, l := range letters.Found {
			if err := a.printJSON(letterJSON(q, l)); err != nil {
				return err
			}
		}
		return a.printJSON(depthView{"queue", string(q), letters.Depth.Waiting, letters.Depth.Hidden, len(letters.Found), moveJSON(letters.Move)})
	}
	name := "Events"
	if q == operator.QueueDeliveries {
		name = "Deliveries"
	}
	a.printf("%s: %s, %d shown.\n", name, held(letters.Depth), len(letters.Found))
	if m := letters.Move; m != nil && m.Running {
		a.printf("A move is running since %s: about %d of %d moved.\n", when(m.StartedAt), m.Moved, m.ToMove)
	}
	if len(letters.Found) == 0 {
		return nil
	}
	header, rows := "SENT RECEIVED EVENT STATUS BECOMES MEANS", make([][]string, len(letters.Found))
	if q == operator.QueueDeliveries {
		header = "SENT RECEIVED DELIVERY SUBSCRIPTION STATUS BECOMES MEANS"
	}
	for i, l := range letters.Found {
		v := letterJSON(q, l)
		rows[i] = []string{when(l.SentAt), number(l.Receives), subject(l)}
		if q == operator.QueueDeliveries {
			rows[i] = append(rows[i], string(v.Subscription))
		}
		rows[i] = append(rows[i], string(v.Status), v.Becomes, told(q, l.Fate))
	}
	return a.table(header, rows)
}

// subject is what a letter names: a delivery, or else the event that is to be
// processed or whose effect is to be fanned out.
func subject(l operator.DeadLetter) string {
	if l.Wake.Delivery != "" {
		return l.Wake.Delivery
	}
	return string(l.Wake.InboxID)
}

func held(d webhook.Depth) string {
	text := "about " + count(d.Waiting, "letter")
	if d.Hidden > 0 {
		text += fmt.Sprintf(", %d more in somebody's hands", d.Hidden)
	}
	return text
}

// told says what becomes of a letter, in few words.
func told(q operator.Queue, f operator.Fate) string {
	switch f {
	case operator.FateClaimed:
		return "a worker takes it"
	case operator.FateExpired:
		if q == operator.QueueDeliveries {
			return "a worker ends it EXPIRED"
		}
		return "a worker ends it FAILED"
	case operator.FateCancelled:
		return "a worker ends it CANCELLED"
	case operator.FateFailed:
		return "dropped; replay the event"
	case operator.FateDead:
		return "dropped; delivery replay makes a new one"
	case operator.FateNotDue, operator.FateParked:
		return "dropped; its own wake comes"
	case operator.FateWorking:
		return "dropped; a worker has it"
	case operator.FateHeld:
		return "dropped; release the event"
	case operator.FatePaused:
		if q == operator.QueueDeliveries {
			return "dropped; resume its subscription"
		}
		return "dropped; resume its endpoint"
	case operator.FateFaulted:
		return "dropped; resume the delivery"
	case operator.FateUnaddressed:
		return "dropped; create the subscription that it calls"
	case operator.FateProcessed, operator.FateEnded:
		return "dropped; it has ended"
	case operator.FateMissing:
		if q == operator.QueueDeliveries {
			return "dropped; it is gone, or was fanned out"
		}
		return "dropped; there is no such row"
	case operator.FateNewer:
		return "comes back; deploy the newer release"
	case operator.FateForeign:
		return "comes back; it is none of ours"
	}
	return ""
}

func (a *app) listReports(ctx context.Context, op *operator.Operator, limit int) error {
	reports, behind, err := op.RelayReports(ctx, limit)
	if err != nil {
		return err
	}
	if a.json {
		for _, r := range reports.Found {
			if err := a.printJSON(reportJSON(r)); err != nil {
				return err
			}
		}
		if err := a.printJSON(depthView{"queue", "relay", reports.Depth.Waiting, reports.Depth.Hidden, len(reports.Found), nil}); err != nil {
			return err
		}
		return a.printJSON(behindView{"behind", behind.Unpublished, stamp(behind.OldestDue), stamp(behind.LastWake)})
	}
	a.printf("Relay: %s, %d shown. A report names a stretch of the stream, not its rows.\n", held(reports.Depth), len(reports.Found))
	if len(reports.Found) > 0 {
		rows := make([][]string, len(reports.Found))
		for i, r := range reports.Found {
			rows[i] = []string{when(r.SentAt), number(r.Receives), r.Condition, number(r.Records), r.Shard, r.First + "-" + r.Last}
			if !r.Readable {
				rows[i] = []string{when(r.SentAt), number(r.Receives), "no report", "", "", ""}
			}
		}
		if err := a.table("SENT RECEIVED CONDITION RECORDS SHARD SEQUENCE", rows); err != nil {
			return err
		}
	}
	a.printf("%s\n", behindText(behind))
	return nil
}

func behindText(b operator.Behind) string {
	if b.Unpublished == 0 {
		return "No promise is behind: whatever a report was about has been published, or has ended."
	}
	return fmt.Sprintf("%s due and not published, the oldest since %s. The reconciler comes for the last of them at %s by itself.",
		count(b.Unpublished, "promise"), when(b.OldestDue), when(b.LastWake))
}

func (a *app) dlqRedrive() *cobra.Command {
	var (
		r     operator.Redrive
		queue queueFlag
		sure  bool
	)
	c := a.command(&cobra.Command{
		Use:   "redrive",
		Short: "Have the dead letters dealt with: move, prune, replay, publish again",
		Long: `Deal with what lies in the dead letters, after a plan that says what becomes of it.

Events, deliveries: SQS itself moves the letters back to their queue, at --rate; a move
goes on when this command ends, and the same command follows it. Before that,
--replay-failed replays the FAILED events that letters name, each as "inbox replay" does,
and --prune deletes the letters that would be dropped anyway. A delivery that ended DEAD
is not replayed here: that makes a new one, with an id that its partner does not know.
Do that with "delivery replay".

Relay: every promise that is due and not published is brought near, so that the relay
publishes it; then the reports that were there before are deleted.

Who did it, and why, is recorded (see audit list). It is harmless to run it twice, and
an interrupted run, run again, does the rest. Put the cause right first.`,
		Example: `  dakghar dlq redrive --local --plan
  dakghar dlq redrive --local --reason "workers were out of memory" --yes
  dakghar dlq redrive --stack prod --queue events --prune --replay-failed --rate 20 --reason "ticket 1234"`,
	}, func(ctx context.Context, _ []string) error {
		var err error
		if r.Queues, err = queue.which(); err != nil {
			return err
		}
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		plan, err := op.PlanRedrive(ctx, r)
		if err != nil {
			return err
		}
		if goOn, err := a.confirmedRedrive(plan, sure); err != nil || !goOn {
			return err
		}
		return a.redrive(ctx, op, plan)
	})
	queue.add(c)
	f := c.Flags()
	f.BoolVar(&r.Prune, "prune", false, "delete letters that would be dropped")
	f.BoolVar(&r.ReplayFailed, "replay-failed", false, "replay the FAILED events that letters name")
	f.BoolVar(&r.PlanOnly, "plan", false, "only show what would be done")
	f.BoolVar(&sure, "yes", false, "show the plan, and do not ask")
	f.IntVar(&r.Rate, "rate", rateDefault, "letters or promises a second, at most")
	f.StringVar(&r.Why, "reason", "", "why, for the record (required, unless it is only planned)")
	return c
}

// confirmedRedrive shows a plan, and asks. False without an error means that there
// is nothing to do.
func (a *app) confirmedRedrive(p operator.RedrivePlan, sure bool) (bool, error) {
	if err := a.showRedrive(p); err != nil {
		return false, err
	}
	if p.PlanOnly || p.Nothing() {
		return false, nil
	}
	err := a.agreed(sure, "Redrive.", "done")
	return err == nil, err
}

func (a *app) showRedrive(p operator.RedrivePlan) error {
	if a.json {
		return a.printJSON(redrivePlanJSON(p))
	}
	var rows [][]string
	for _, w := range p.Wakes {
		rows = append(rows, []string{string(w.Queue), held(w.Depth)})
		for _, fate := range fates() {
			if n := w.ByFate[fate]; n > 0 {
				rows = append(rows, []string{"  " + string(fate), number(n) + ": " + done(p, w.Queue, fate)})
			}
		}
		if m := w.Moving; m != nil {
			rows = append(rows, []string{"  a move runs", fmt.Sprintf("about %d of %d moved: it is followed, and nothing else is done to %s", m.Moved, m.ToMove, w.Queue)})
		}
	}
	if p.Has(operator.QueueRelay) {
		rows = append(rows, []string{"relay", held(p.RelayDepth)})
		if p.Reports > 0 {
			rows = append(rows, []string{"  behind", count(p.Behind.Unpublished, "promise") + ": brought near, then the reports are deleted"})
		}
	}
	rows = append(rows, []string{"rate", number(p.Rate) + " a second"})
	if err := a.table("", rows); err != nil {
		return err
	}
	if p.Nothing() {
		a.printf("There is nothing to do.\n")
	}
	return nil
}

// fates lists those of letters, in the order in which a plan shows them.
func fates() []operator.Fate {
	return []operator.Fate{
		operator.FateClaimed, operator.FateExpired, operator.FateCancelled, operator.FateFailed, operator.FateDead, operator.FateNotDue, operator.FateWorking,
		operator.FateParked, operator.FateHeld, operator.FatePaused, operator.FateFaulted, operator.FateUnaddressed, operator.FateProcessed, operator.FateEnded,
		operator.FateMissing, operator.FateNewer, operator.FateForeign,
	}
}

// done says what a plan does to a queue's letters of a fate.
func done(p operator.RedrivePlan, q operator.Queue, f operator.Fate) string {
	switch {
	case f == operator.FateFailed && p.ReplayFailed:
		return "replayed, then deleted"
	case f == operator.FateFailed:
		return "moved, then dropped; --replay-failed replays the events"
	case p.Prune && f.Useless():
		return "deleted"
	}
	return "moved, then " + told(q, f)
}

func (a *app) redrive(ctx context.Context, op *operator.Operator, p operator.RedrivePlan) error {
	progress := a.nowAndThen()
	got, err := op.Redrive(ctx, p, func(d operator.Redriven) {
		progress(func(after time.Duration) {
			sifted := ""
			if d.Judged > 0 {
				sifted = fmt.Sprintf("%d looked at, ", d.Judged)
			}
			a.notef("%s%d replayed, %d deleted, about %d moved, %d brought near after %s\n", sifted, d.Replayed, d.Removed, d.Moved, d.Near, after)
		})
	})
	if err != nil {
		return err
	}
	if a.json {
		left := got.Left
		if left == nil {
			left = map[string]int{}
		}
		return a.printJSON(redrivenView{"redriven", got.Replayed, left, got.Removed, got.Moved, got.Near, got.Reports})
	}
	rows := [][]string{
		{"replayed", number(got.Replayed)}, {"not replayed", counts(got.Left)}, {"deleted", number(got.Removed)}, {"moved", number(got.Moved)},
		{"brought near", number(got.Near)}, {"reports deleted", number(got.Reports)},
	}
	rows = slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" || row[1] == "0" })
	if len(rows) == 0 {
		a.printf("Nothing was left to do.\n")
		return nil
	}
	return a.table("", rows)
}
