package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

// bulkFlags are those of an act on many events.
type bulkFlags struct {
	all, sure, planOnly bool
	rate                int
	filter              filterFlags
}

// rateDefault is gentle: the work that a replay makes for the workers comes on top.
const rateDefault = 50

func (b *bulkFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&b.all, "all", false, "do it to every event that matches the flags below")
	b.filter.add(c, "720h")
	b.job(c)
}

// job adds the flags of whatever runs as a job.
func (b *bulkFlags) job(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&b.planOnly, "plan", false, "only show what would be done")
	f.BoolVar(&b.sure, "yes", false, "show the plan, and do not ask")
	f.IntVar(&b.rate, "rate", rateDefault, "events a second, at most")
}

// orAll takes what a usage line names, or --all and its flags: the filter's, and
// those of a job.
func (b *bulkFlags) orAll(use, thing, id string, filter []string) cobra.PositionalArgs {
	name, several := strings.CutSuffix(strings.Fields(use)[1], "...")
	return func(c *cobra.Command, args []string) error {
		if b.all {
			if len(args) > 0 {
				return fmt.Errorf("--all goes without %s: %q is one too many", id, args[0])
			}
			return nil
		}
		for _, flag := range slices.Concat(filter, []string{"plan", "yes", "rate"}) {
			if c.Flags().Changed(flag) {
				return fmt.Errorf("--%s goes with --all", flag)
			}
		}
		if len(args) == 0 || len(args) > 1 && !several {
			return fmt.Errorf("say which %s: %s %s; or every one that matches: %s --all", thing, c.CommandPath(), name, c.CommandPath())
		}
		return nil
	}
}

// confirmedPlan shows a plan, and asks. False without an error means that there is
// nothing to do.
func (a *app) confirmedPlan(p operator.Plan, b bulkFlags) (bool, error) {
	if err := a.showPlan(p); err != nil {
		return false, err
	}
	if b.planOnly {
		return false, nil
	}
	err := a.agreed(b.sure, question(p), "done")
	return err == nil, err
}

// question says what a yes does. To resume is to end a pause first, whether or not
// something waits.
func question(p operator.Plan) string {
	switch act := p.Job.Act; act {
	case "endpoint resume", "subscription resume":
		return fmt.Sprintf("%s: the pause ends; waiting: %s.", act, count(p.Matched, thing(p)))
	default:
		return fmt.Sprintf("%s: %s.", act, count(p.Matched, thing(p)))
	}
}

func (a *app) showPlan(p operator.Plan) error {
	if a.json {
		return a.printJSON(bulkPlanJSON(p))
	}
	a.printf("%s: %s.\n", p.Job.Act, matching(p))
	if p.Matched == 0 {
		return nil
	}
	rows := [][]string{
		{"  by status", counts(p.ByStatus)}, {"  by kind", counts(p.ByKind)}, {"  left alone", counts(p.Refused)},
		{"  cost", fmt.Sprintf("%s, and what the work itself then writes", count(p.Units, "write unit"))},
		{"  time", fmt.Sprintf("at least %s, at %s a second", operator.Span(p.Takes.Round(time.Second)), count(p.Job.Rate, thing(p)))},
	}
	if err := a.table("", filled(rows)); err != nil {
		return err
	}
	a.printf("For example:\n")
	var sample [][]string
	for _, row := range p.Sample {
		sample = append(sample, append([]string{"  " + when(row.ReceivedAt)}, eventColumns(row)...))
	}
	for _, d := range p.Deliveries {
		sample = append(sample, append([]string{"  " + when(d.CreatedAt)}, deliveryColumns(d)...))
	}
	return a.table("", sample)
}

// thing names one of what a plan goes through.
func thing(p operator.Plan) string {
	one, _ := operator.Things(p.Job.Act)
	return one
}

func matching(p operator.Plan) string {
	one, many := operator.Things(p.Job.Act)
	switch p.Matched {
	case 0:
		return "no " + one + " matches"
	case 1:
		return "1 " + one + " matches"
	}
	return strconv.Itoa(p.Matched) + " " + many + " match"
}

// counts writes numbers by name, the greatest first.
func counts[K ~string](m map[K]int) string {
	names := slices.SortedFunc(maps.Keys(m), func(x, y K) int {
		if m[x] != m[y] {
			return m[y] - m[x]
		}
		return strings.Compare(string(x), string(y))
	})
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = string(name) + " " + strconv.Itoa(m[name])
	}
	return strings.Join(parts, ", ")
}

// doesPlanned shows a plan, asks, and runs its job.
func (a *app) doesPlanned(ctx context.Context, op *operator.Operator, plan operator.Plan, f bulkFlags) error {
	f.planOnly = f.planOnly || plan.Matched == 0
	if sure, err := a.confirmedPlan(plan, f); err != nil || !sure {
		return err
	}
	return a.runs(ctx, func(ctx context.Context, tell func(webhook.Job)) (webhook.Job, error) {
		return op.Start(ctx, plan, tell)
	})
}

// runs runs a job, shows its progress beside the output, and then what became of it.
func (a *app) runs(ctx context.Context, start func(context.Context, func(webhook.Job)) (webhook.Job, error)) error {
	progress := a.nowAndThen()
	j, err := start(ctx, func(j webhook.Job) {
		progress(func(after time.Duration) {
			_, many := operator.Things(j.Act)
			a.notef("%d of %d %s after %s\n", j.Handled(), j.Matched, many, after)
		})
	})
	if err != nil {
		return err
	}
	return a.showJob(j)
}

// bulkPlanView is a plan in JSON.
type bulkPlanView struct {
	Record    string                 `json:"record"` // "plan"
	Act       string                 `json:"act"`
	Filter    filterView             `json:"filter"`
	Handler   word                   `json:"reprocess_handler"`
	Matched   int                    `json:"matched"`
	ByStatus  map[webhook.Status]int `json:"by_status"`
	ByKind    map[string]int         `json:"by_kind"`
	LeftAlone map[string]int         `json:"left_alone"`
	Units     int                    `json:"write_units"`
	Rate      int                    `json:"rate"`
	TakesS    float64                `json:"takes_seconds"`
	Sample    []string               `json:"sample"`
}

func bulkPlanJSON(p operator.Plan) bulkPlanView {
	v := bulkPlanView{
		Record: "plan", Act: p.Job.Act, Filter: filterJSON(p.Job.Filter), Handler: word(p.Job.Handler), Matched: p.Matched,
		ByStatus: p.ByStatus, ByKind: p.ByKind, LeftAlone: p.Refused, Units: p.Units, Rate: p.Job.Rate, TakesS: p.Takes.Seconds(), Sample: []string{},
	}
	for _, row := range p.Sample {
		v.Sample = append(v.Sample, string(row.ID))
	}
	for _, d := range p.Deliveries {
		v.Sample = append(v.Sample, string(d.ID))
	}
	return v
}

// filterView is a filter in JSON.
type filterView struct {
	Endpoint       word             `json:"endpoint_id"`
	Subscription   word             `json:"subscription_id"`
	Statuses       []webhook.Status `json:"statuses"`
	Kind           word             `json:"kind"`
	Object         word             `json:"object_id"`
	Cause          word             `json:"cause"`
	MatchedVersion word             `json:"matched_secret_version"`
	Since          stamp            `json:"since"`
	Until          stamp            `json:"until"`
}

func filterJSON(f webhook.Filter) filterView {
	return filterView{
		word(f.Endpoint), word(f.Subscription), append([]webhook.Status{}, f.Statuses...), word(f.Kind), word(f.Object), word(f.Cause), word(f.MatchedVersion), stamp(f.Since), stamp(f.Until),
	}
}
