package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dakghar/internal/webhook"
)

// RedriveRateMax is the most that SQS moves in a second.
const RedriveRateMax = 500

// Redrive asks for what lies in the dead letters to be dealt with.
type Redrive struct {
	Queues []Queue
	// Prune removes letters that change nothing when they are sent again, before the
	// rest is moved.
	Prune bool
	// ReplayFailed replays the FAILED events that letters name, each as
	// [Operator.Replay] does, and removes their letters. A delivery that ended is not
	// replayed here: that is a new delivery, which its partner sees as another one.
	ReplayFailed bool
	Why          string
	Rate         int // letters, or promises, a second: 1 to [RedriveRateMax]
	PlanOnly     bool
}

// RedrivePlan is what a redrive would do, counted before it is asked for.
type RedrivePlan struct {
	Redrive

	// Wakes has the queues of wake-ups that were asked for, in the order of [Queues].
	Wakes []WakePlan

	RelayDepth webhook.Depth
	Reports    int
	Behind     Behind
}

// WakePlan is a plan's part for one queue of wake-ups.
type WakePlan struct {
	Queue Queue
	// Depth is about what the queue holds, ByFate what a look into it found.
	Depth   webhook.Depth
	Sampled int
	ByFate  map[Fate]int
	// Moving is a move that runs already; the redrive follows it, and does nothing
	// else to this queue.
	Moving *webhook.Move
}

// Has reports whether the redrive is for a queue.
func (r Redrive) Has(q Queue) bool { return slices.Contains(r.Queues, q) }

// Nothing reports whether there is nothing to do.
func (p RedrivePlan) Nothing() bool {
	return p.Reports == 0 && p.RelayDepth.Waiting == 0 && !slices.ContainsFunc(p.Wakes, func(w WakePlan) bool {
		return w.Sampled > 0 || w.Depth.Waiting > 0 || w.Moving != nil
	})
}

// Redriven is what a redrive did.
type Redriven struct {
	// Judged counts the letters of the queue that is sifted at this moment; it is 0
	// when no sift goes on.
	Judged   int
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
	p := RedrivePlan{Redrive: r}
	if err := r.check(); err != nil {
		return p, err
	}
	for _, q := range Queues() {
		if !r.Has(q) || q == QueueRelay {
			continue
		}
		w, err := o.planWakes(ctx, q)
		if err != nil {
			return p, err
		}
		p.Wakes = append(p.Wakes, w)
	}
	if r.Has(QueueRelay) {
		reports, behind, err := o.RelayReports(ctx, LettersMax)
		if err != nil {
			return p, err
		}
		p.RelayDepth, p.Reports, p.Behind = reports.Depth, len(reports.Found), behind
	}
	return p, nil
}

func (r Redrive) check() error {
	switch {
	case !slices.ContainsFunc(Queues(), r.Has):
		return misuse("say which dead letters: events, deliveries, relay or all")
	case r.Rate < 1 || r.Rate > RedriveRateMax:
		return misuse(fmt.Sprintf("--rate is 1 to %d a second", RedriveRateMax))
	case r.Why == "" && !r.PlanOnly:
		return misuse("--reason is required: it is recorded", run("or only look what would be done:", "dlq", "redrive", "--plan"))
	case r.ReplayFailed && !r.Has(QueueEvents):
		return misuse("--replay-failed is for the dead letters of events",
			run("a delivery that ended is made once more, under a new id, by:", "delivery", "replay", "--help"))
	case r.Prune && !r.Has(QueueEvents) && !r.Has(QueueDeliveries):
		return misuse("--prune is for the dead letters of events and deliveries")
	}
	return nil
}

func (o *Operator) planWakes(ctx context.Context, q Queue) (WakePlan, error) {
	w := WakePlan{Queue: q, ByFate: map[Fate]int{}}
	letters, err := o.Letters(ctx, q, LettersMax)
	if err != nil {
		return w, err
	}
	w.Depth, w.Sampled = letters.Depth, len(letters.Found)
	for _, l := range letters.Found {
		w.ByFate[l.Fate]++
	}
	if letters.Move != nil && letters.Move.Running {
		w.Moving = letters.Move
	}
	return w, nil
}

// Redrive does what a plan says. Each letter is judged again when its turn comes.
// Whatever is interrupted is done by the same command, run again: a letter goes
// only after what it stood for was done.
func (o *Operator) Redrive(ctx context.Context, p RedrivePlan, tell func(Redriven)) (Redriven, error) {
	d := &redriver{o: o, Redrive: p.Redrive, tell: tell}
	err := d.queues(ctx)
	switch {
	case err == nil:
		return d.done, nil
	case ctx.Err() != nil:
		return d.done, refuse("interrupted",
			fmt.Sprintf("interrupted after %d replayed, %d deleted, about %d moved, %d brought near; a move that the queue has begun goes on by itself", d.done.Replayed, d.done.Removed, d.done.Moved, d.done.Near),
			say("the same command goes on from there"))
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

// queues deals with one queue after the other. One that fails leaves those behind
// it alone.
func (d *redriver) queues(ctx context.Context) error {
	for _, q := range Queues() {
		if !d.Has(q) {
			continue
		}
		var err error
		if w, ok := d.o.wakeQueue(q); ok {
			err = d.wakes(ctx, w)
		} else {
			err = d.relay(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *redriver) record(ctx context.Context, queue Queue) error {
	act, err := d.o.act(ctx, "dlq redrive", "queue "+string(queue), d.Why)
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

// wakes replays and prunes where that is asked for, and has the rest moved.
func (d *redriver) wakes(ctx context.Context, w wakeQueue) error {
	move, err := w.lastMove(ctx)
	if err != nil {
		return err
	}
	if move != nil && move.Running {
		return d.follow(ctx, w)
	}
	if err := d.record(ctx, w.name); err != nil {
		return err
	}
	kept := 0
	if d.Prune || d.replays(w) {
		if kept, err = d.sift(ctx, w); err != nil {
			return err
		}
	}
	return d.move(ctx, w, kept)
}

// move has the letters moved that wait, and looks on. What the sift gave back a
// moment ago waits, whatever the queue's depth says: that may lag by a minute.
//
// A move of somebody else's may have begun before our letters were back, or end
// between our try and our look at it: there is a second try.
func (d *redriver) move(ctx context.Context, w wakeQueue, kept int) error {
	var refused error
	for range 2 {
		if kept == 0 {
			depth, err := w.letters.Depth(ctx)
			switch {
			case err != nil:
				return unreachable("the queue", err)
			case depth.Waiting == 0:
				return nil
			}
		}
		if refused = w.letters.Move(ctx, d.Rate); refused == nil {
			return d.follow(ctx, w)
		}
		// Begun by somebody else, or by us and the answer was lost?
		if now, look := w.lastMove(ctx); look != nil || now == nil || !now.Running {
			continue
		}
		if err := d.follow(ctx, w); err != nil {
			return err
		}
		refused, kept = nil, 0
	}
	if refused != nil {
		return unreachable("the queue", refused)
	}
	return nil
}

// moveLook is how often a move is looked at.
const moveLook = time.Second

// follow looks on until the queue's own move is over.
func (d *redriver) follow(ctx context.Context, w wakeQueue) error {
	before := d.done.Moved // of other queues
	for {
		m, err := w.lastMove(ctx)
		switch {
		case err != nil:
			return err
		case m == nil:
			return nil
		}
		d.done.Moved = before + m.Moved
		d.tell(d.done)
		switch {
		case m.Failure != "":
			return &Refusal{
				Code: "move_failed", Problem: fmt.Sprintf("the queue moved about %d letters and then gave up (%s)", m.Moved, m.Failure),
				Next: []Step{
					run("see what lies there:", "dlq", "list", "--queue", string(w.name)),
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
