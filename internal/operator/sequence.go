package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"dakghar/internal/webhook"
)

// Sequences reads objects' sequences, and moves one by an operator.
type Sequences interface {
	// Sequence is an empty one where nothing was applied or parked yet.
	Sequence(ctx context.Context, id webhook.SequenceID) (webhook.Sequence, error)
	// Skip commits the turn with its record. False means that the sequence, or who
	// waits behind the turn, is not as it was read, and nothing was written.
	Skip(ctx context.Context, t webhook.Turn, act webhook.Act) (bool, error)
}

// Sequenced names an object whose events are numbered.
type Sequenced struct {
	Endpoint webhook.EndpointID
	Type     webhook.ObjectType
	ID       string
}

// Sequence returns how far an object's events were applied, and which wait.
func (o *Operator) Sequence(ctx context.Context, of Sequenced) (webhook.Sequence, error) {
	if of.ID == "" {
		return webhook.Sequence{}, misuse("--object says whose sequence")
	}
	if types := objectTypes(); !slices.Contains(types, of.Type) {
		return webhook.Sequence{}, misuse(fmt.Sprintf("--type %q is no type of object; it is %s", of.Type, oneOf(types)))
	}
	e, err := o.endpoint(ctx, of.Endpoint)
	if err != nil {
		return webhook.Sequence{}, err
	}
	seq, err := o.Sequences.Sequence(ctx, webhook.DeriveSequenceID(e.Tenant, e.ID, of.Type, of.ID))
	if err != nil {
		return seq, unreachable("the business table", err)
	}
	return seq, nil
}

// skipTries bounds how often a skip is decided anew because events went on.
const skipTries = 3

// Skip gives up an object's missing numbers: everything up to a number counts as
// passed, and the event behind it goes on. It is refused where the number was
// passed already, or where an event that waits would be passed over.
func (o *Operator) Skip(ctx context.Context, of Sequenced, to int64, why string) (webhook.Sequence, error) {
	act, err := o.act(ctx, "sequence skip", fmt.Sprintf("object %s/%s/%s to %d", of.Endpoint, of.Type, of.ID, to), why)
	if err != nil {
		return webhook.Sequence{}, err
	}
	for range skipTries {
		seq, err := o.Sequence(ctx, of)
		if err != nil {
			return seq, err
		}
		if err := skippable(seq, of, to); err != nil {
			return seq, err
		}
		turn := webhook.Turn{Sequence: seq.ID, Last: seq.Last, Number: to, Next: seq.Parked[to+1], Waiting: seq.Parked}
		if turn.Next != "" {
			next, found, err := o.Inbox.Inbox(ctx, turn.Next)
			if err != nil {
				return seq, unreachable("the inbox", err)
			}
			if found {
				turn.LetGo(next, act.At)
			}
		}
		done, err := o.Sequences.Skip(ctx, turn, act)
		if err != nil {
			return seq, unreachable("the business table", err)
		}
		if done {
			return o.Sequence(ctx, of)
		}
	}
	return webhook.Sequence{}, refuse("moved", "the sequence is moving: its events are being applied",
		of.show("look again:"))
}

// show is how to see the sequence.
func (of Sequenced) show(text string) Step {
	return run(text, "sequence", "show", "--endpoint", string(of.Endpoint), "--type", string(of.Type), "--object", of.ID)
}

func skippable(seq webhook.Sequence, of Sequenced, to int64) error {
	show := of.show("see where it stands:")
	if to <= seq.Last {
		return refuse("passed", fmt.Sprintf("the sequence stands at %d already", seq.Last), show)
	}
	for _, n := range slices.Sorted(maps.Keys(seq.Parked)) {
		if n <= to {
			return refuse("waiting", fmt.Sprintf("event %s waits as number %d and would be passed over", seq.Parked[n], n), show,
				say(fmt.Sprintf("skip to %d, and it goes on by itself", n-1)))
		}
	}
	return nil
}
