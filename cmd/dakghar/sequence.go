package main

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) sequenceCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:   "sequence",
		Short: "See and mend the order of numbered events",
		Long: `Where an endpoint has the policy "sequence" for a kind, its events are applied by
their numbers, one by one. An event that comes before its turn is PARKED; when those
before it have not come by its deadline, it ends FAILED with the cause gap_expired.`,
		Example: `  dakghar sequence show --local --endpoint demo --object obj_1`,
	}, a.sequenceShow(), a.sequenceSkip()))
}

// ofObject adds the flags that name an object, and says which others are required.
func ofObject(c *cobra.Command, of *operator.Sequenced, also ...string) *cobra.Command {
	var endpoint, kind string
	f := c.Flags()
	f.StringVar(&endpoint, "endpoint", "", "the endpoint's id")
	f.StringVar(&of.ID, "object", "", "the object's id, as inbox list shows it")
	f.StringVar(&kind, "type", string(webhook.Object), "the object's type: object, payment, order, subscription, refund, dispute, account")
	c.PreRun = func(*cobra.Command, []string) {
		of.Endpoint, of.Type = webhook.EndpointID(endpoint), webhook.ObjectType(kind)
	}
	return required(c, append([]string{"endpoint", "object"}, also...)...)
}

func (a *app) sequenceShow() *cobra.Command {
	var of operator.Sequenced
	c := a.onOperator(&cobra.Command{
		Use:     "show",
		Short:   "Show how far an object's events were applied, and which wait",
		Example: `  dakghar sequence show --local --endpoint demo --object obj_1 --json`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		seq, err := op.Sequence(ctx, of)
		if err != nil {
			return err
		}
		return a.printSequence(seq)
	})
	return ofObject(c, &of)
}

func (a *app) sequenceSkip() *cobra.Command {
	var (
		of  operator.Sequenced
		to  int64
		why string
	)
	c := a.onOperator(&cobra.Command{
		Use:   "skip",
		Short: "Give up missing numbers, so that the events behind them go on",
		Long: `Give up an object's numbers up to --to: they count as passed, and an event that
comes with one of them later is stale. Do this only when you know that they never
come, or have put right by hand what they would have done. It also begins a sequence
in the middle, for an object whose earlier events you never had.

Who did it, and why, is recorded with it (see audit list).`,
		Example: `  dakghar sequence skip --local --endpoint demo --object obj_1 --to 4 --reason "4 was a test"`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		seq, err := op.Skip(ctx, of, to, why)
		if err != nil {
			return err
		}
		return a.printSequence(seq)
	})
	f := c.Flags()
	f.Int64Var(&to, "to", 0, "the last number that is given up")
	f.StringVar(&why, "reason", "", "why, for the record")
	return ofObject(c, &of, "to", "reason")
}

// sequenceView is a sequence in JSON.
type sequenceView struct {
	Last   int64        `json:"last"`
	Parked []parkedView `json:"parked"`
}

type parkedView struct {
	Number  int64  `json:"number"`
	InboxID string `json:"inbox_id"`
}

func (a *app) printSequence(seq webhook.Sequence) error {
	view := sequenceView{Last: seq.Last, Parked: []parkedView{}}
	rows := [][]string{{"applied up to", strconv.FormatInt(seq.Last, 10)}}
	for _, n := range slices.Sorted(maps.Keys(seq.Parked)) {
		view.Parked = append(view.Parked, parkedView{n, string(seq.Parked[n])})
		rows = append(rows, []string{"number " + strconv.FormatInt(n, 10) + " waits", string(seq.Parked[n])})
	}
	if a.json {
		return a.printJSON(view)
	}
	if seq.Last == 0 && len(seq.Parked) == 0 {
		a.notef("No event of this object was applied by its number, and none waits: see that --object and --type are right, and that the endpoint has the policy sequence.\n")
	}
	return a.table("", rows)
}
