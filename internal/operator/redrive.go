package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dakghar/internal/webhook"
)

// RedriveRateMax is the most that SQS moves in a second.
const RedriveRateMax = 500

// Redrive asks for what lies in the dead letters to be dealt with.
type Redrive struct {
	Events, Relay bool // which queues
	// Prune removes letters that change nothing when they are sent again, before the
	// rest is moved.
	Prune bool
	// ReplayFailed replays the FAILED events that letters name, each as
	// [Operator.Replay] does, and removes their letters.
	ReplayFailed bool
	Why          string
	Rate         int // letters, or promises, a second: 1 to [RedriveRateMax]
	PlanOnly     bool
}

// RedrivePlan is what a redrive would do, counted before it is asked for.
type RedrivePlan struct {
	Redrive

	// Depth is about what the queue of wake-ups holds, ByFate what a look into it
	// found.
	Depth   webhook.Depth
	Sampled int
	ByFate  map[Fate]int
	// Moving is a move that runs already; the redrive follows it, and does nothing else.
	Moving *webhook.Move

	RelayDepth webhook.Depth
	Reports    int
	Behind     Behind
}

// Nothing reports whether there is nothing to do.
func (p RedrivePlan) Nothing() bool {
	return p.Sampled == 0 && p.Depth.Waiting == 0 && p.Moving == nil && p.Reports == 0 && p.RelayDepth.Waiting == 0
}

// Redriven is what a redrive did.
type Redriven struct {
	Replayed int
	// Left counts the FAILED events that could not be replayed, by the refusal's code.
	Left    map[string]int
	Removed int // letters that change nothing, and those of replayed events
	Moved   int // about, by the queue's own service
	// Near counts the promises that were brought near, Reports the reports removed after that.
	Near, Reports int
}

// PlanRedrive looks into the queues and counts. It changes nothing.
func (o *Operator) PlanRedrive(ctx context.Context, r Redrive) (RedrivePlan, error) {
	p := RedrivePlan{Redrive: r, ByFate: map[Fate]int{}}
	switch {
	case !r.Events && !r.Relay:
		return p, misuse("say which dead letters: events, relay or all")
	case r.Rate < 1 || r.Rate > RedriveRateMax:
		return p, misuse(fmt.Sprintf("--rate is 1 to %d a second", RedriveRateMax))
	case r.Why == "" && !r.PlanOnly:
		return p, misuse("--reason is required: it is recorded", run("or only look what would be done:", "dlq", "redrive", "--plan"))
	case (r.Prune || r.ReplayFailed) && !r.Events:
		return p, misuse("--prune and --replay-failed are for the dead letters of events")
	}
	if r.Events {
		letters, err := o.EventLetters(ctx, LettersMax)
		if err != nil {
			return p, err
		}
		p.Depth, p.Sampled = letters.Depth, len(letters.Found)
		for _, l := range letters.Found {
			p.ByFate[l.Fate]++
		}
		if letters.Move != nil && letters.Move.Running {
			p.Moving = letters.Move
		}
	}
	if r.Relay {
		reports, behind, err := o.RelayReports(ctx, LettersMax)
		if err != nil {
			return p, err
		}
		p.RelayDepth, p.Reports, p.Behind = reports.Depth, len(reports.Found), behind
	}
	return p, nil
}

// Redrive does what a plan says. Each letter is judged again when its turn comes.
// Whatever is interrupted is done by the same command, run again: a letter goes
// only after what it stood for was done.
func (o *Operator) Redrive(ctx context.Context, p RedrivePlan, tell func(Redriven)) (Redriven, error) {
	d := &redriver{o: o, Redrive: p.Redrive, tell: tell}
	var err error
	if p.Events {
		err = d.events(ctx)
	}
	if err == nil && p.Relay {
		err = d.relay(ctx)
	}
	switch {
	case err == nil:
		return d.done, nil
	case ctx.Err() != nil:
		return d.done, refuse("interrupted", "interrupted; a move that the queue has begun goes on by itself", say("the same command goes on from there"))
	}
	return d.done, err
}

// redriver is one run of a redrive.
type redriver struct {
	Redrive

	o    *Operator
	tell func(Redriven)
	done Redriven
}

func (d *redriver) record(ctx context.Context, queue string) error {
	act, err := d.o.act(ctx, "dlq redrive", "queue "+queue, d.Why)
	if err != nil {
		return err
	}
	if err := d.o.Registry.RecordAct(ctx, act); err != nil {
		return unreachable("the registry", err)
	}
	return nil
}

// pace keeps to the rate. What was begun is finished all the same.
func (d *redriver) pace(ctx context.Context) error {
	return d.o.Wait(ctx, time.Second/time.Duration(d.Rate))
}

// events replays and prunes where that is asked for, and has the rest moved.
func (d *redriver) events(ctx context.Context) error {
	move, err := d.o.lastMove(ctx)
	if err != nil {
		return err
	}
	if move != nil && move.Running {
		return d.follow(ctx)
	}
	if err := d.record(ctx, "events"); err != nil {
		return err
	}
	if d.Prune || d.ReplayFailed {
		if err := d.sift(ctx); err != nil {
			return err
		}
	}
	depth, err := d.o.EventDeadLetters.Depth(ctx)
	switch {
	case err != nil:
		return unreachable("the queue", err)
	case depth.Waiting == 0:
		return nil
	}
	if err := d.o.EventDeadLetters.Move(ctx, d.Rate); err != nil {
		// Begun by somebody else, or by us and the answer was lost?
		if now, look := d.o.lastMove(ctx); look != nil || now == nil || !now.Running {
			return unreachable("the queue", err)
		}
	}
	return d.follow(ctx)
}

// moveLook is how often a move is looked at.
const moveLook = time.Second

// follow looks on until the queue's own move is over.
func (d *redriver) follow(ctx context.Context) error {
	for {
		m, err := d.o.lastMove(ctx)
		switch {
		case err != nil:
			return err
		case m == nil:
			return nil
		}
		d.done.Moved = m.Moved
		d.tell(d.done)
		switch {
		case m.Failure != "":
			return &Refusal{
				Code: "move_failed", Problem: fmt.Sprintf("the queue moved about %d letters and then gave up (%s)", m.Moved, m.Failure),
				Next: []Step{
					run("see what lies there:", "dlq", "list"),
					say("a letter that was put there by hand has no way back; remove what is useless with --prune"),
				},
			}
		case !m.Running:
			return nil
		}
		if err := d.o.Wait(ctx, moveLook); err != nil {
			return err
		}
	}
}

// sift deals with the letters that need no move. The others are given back at the
// end, so that the move finds them.
func (d *redriver) sift(ctx context.Context) error {
	letters, err := d.o.take(ctx, d.o.EventDeadLetters, LettersMax, redriveHides)
	if err != nil {
		err = unreachable("the queue", err)
	}
	var kept []webhook.Letter
	judge := d.o.judge()
	for i, l := range letters {
		if err != nil {
			kept = append(kept, letters[i:]...)
			break
		}
		var goes bool
		if goes, err = d.letter(ctx, judge, l); !goes {
			kept = append(kept, l)
		}
	}
	return errors.Join(err, d.giveBack(ctx, kept))
}

func (d *redriver) giveBack(ctx context.Context, letters []webhook.Letter) error {
	if err := d.o.EventDeadLetters.GiveBack(context.WithoutCancel(ctx), letters); err != nil {
		return unreachable("the queue", err)
	}
	return nil
}

// letter deals with one letter, and says whether it is gone.
func (d *redriver) letter(ctx context.Context, judge func(context.Context, webhook.Letter) (DeadLetter, error), l webhook.Letter) (bool, error) {
	letter, err := judge(ctx, l)
	if err != nil {
		return false, err
	}
	switch {
	case letter.Fate == FateFailed && d.ReplayFailed:
		if replayed, err := d.replay(ctx, letter); err != nil || !replayed {
			return false, err
		}
	case !d.Prune || !letter.Fate.Useless():
		return false, nil
	}
	if err := d.o.EventDeadLetters.Remove(ctx, []webhook.Letter{l}); err != nil {
		return false, unreachable("the queue", err)
	}
	d.done.Removed++
	d.tell(d.done)
	return true, d.pace(ctx)
}

// replay replays a letter's event. One that is refused keeps its letter.
func (d *redriver) replay(ctx context.Context, l DeadLetter) (bool, error) {
	_, err := d.o.Replay(ctx, l.Wake.InboxID, d.Why)
	if err == nil {
		d.done.Replayed++
		return true, nil
	}
	code := codeOf(err)
	if code == "" || code == codeUnavailable || code == "caller_unknown" {
		return false, err
	}
	if d.done.Left == nil {
		d.done.Left = map[string]int{}
	}
	d.done.Left[code]++
	return false, nil
}

// relay brings every late promise near and then removes the reports that were
// there before: what a report was about is in the outbox since before the report
// was, so the promises that were gone through hold all of it.
func (d *redriver) relay(ctx context.Context) error {
	reports, err := d.o.take(ctx, d.o.RelayFailures, LettersMax, redriveHides)
	if err == nil && len(reports) > 0 {
		err = d.record(ctx, "relay")
		if err == nil {
			err = d.near(ctx)
		}
	}
	if err != nil {
		_ = d.o.RelayFailures.GiveBack(context.WithoutCancel(ctx), reports) // they show themselves otherwise
		if codeOf(err) == "" {
			err = unreachable("the queue", err)
		}
		return err
	}
	if err := d.o.RelayFailures.Remove(ctx, reports); err != nil {
		return unreachable("the queue", err)
	}
	d.done.Reports = len(reports)
	d.tell(d.done)
	return nil
}

// near writes the late promises anew, so that the stream tells the relay of them.
func (d *redriver) near(ctx context.Context) error {
	paused := map[webhook.EndpointID]bool{}
	return d.o.pages(ctx, func(promises []webhook.Outbox) error {
		byID := map[webhook.InboxID]webhook.Outbox{}
		ids := make([]webhook.InboxID, 0, len(promises))
		for _, p := range promises {
			byID[p.InboxID] = p
			ids = append(ids, p.InboxID)
		}
		if len(ids) == 0 {
			return nil
		}
		rows, err := d.o.Inbox.Inboxes(ctx, ids)
		if err != nil {
			return unreachable("the inbox", err)
		}
		for _, row := range rows {
			if err := d.bring(ctx, row, byID[row.ID], paused); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *redriver) bring(ctx context.Context, row webhook.Inbox, p webhook.Outbox, paused map[webhook.EndpointID]bool) error {
	if !row.Status.Waiting() {
		return nil // nobody is to work on it now; the reconciler sees to its promise
	}
	is, known := paused[row.Endpoint]
	if !known {
		e, _, err := d.o.Registry.Endpoint(ctx, row.Endpoint)
		if err != nil {
			return unreachable("the registry", err)
		}
		is = !e.PausedAt.IsZero()
		paused[row.Endpoint] = is
	}
	if is {
		return nil // resuming brings it near
	}
	written, err := d.o.Inbox.BringNear(ctx, p.Near(row, d.o.Now()))
	if err != nil {
		return unreachable("the outbox", err)
	}
	if written {
		d.done.Near++
		d.tell(d.done)
	}
	return d.pace(ctx)
}
