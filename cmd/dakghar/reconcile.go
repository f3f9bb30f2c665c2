package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"dakghar/internal/config"
	"dakghar/internal/dynamo"
	"dakghar/internal/operator"
	"dakghar/internal/reconciler"
	"dakghar/internal/webhook"
)

// comparison is what `dakghar reconcile` works with on one stack.
type comparison struct {
	*reconciler.Comparer
	// size tells about how many events the inbox holds, and their bytes.
	size func(ctx context.Context) (events, bytes int64, err error)
}

// The shape of an operator's comparison: what a person's machine bears.
const (
	comparesAtOnce = 8
	compareSlack   = 30 * time.Second
)

// connectComparison finds a stack and puts the parts together over it.
func connectComparison(ctx context.Context, t target, getenv func(string) string) (*comparison, error) {
	s, err := t.find(ctx, getenv)
	if err != nil {
		return nil, err
	}
	env := config.From(func(name string) string { return s.env[name] })
	tables := dynamo.Tables{
		Inbox: env.Text("INBOX_TABLE"), Outbox: env.Text("OUTBOX_TABLE"), Body: env.Text("BODY_TABLE"),
		Business: env.Text("BUSINESS_TABLE"), Registry: env.Text("REGISTRY_TABLE"),
	}
	if err := env.Err(); err != nil {
		return nil, fmt.Errorf("the stack does not name all its parts: %w", err)
	}
	db := dynamodb.NewFromConfig(s.aws)
	return &comparison{
		Comparer: &reconciler.Comparer{
			Store: &dynamo.Store{DB: db, Tables: tables, Chance: mathrand.Float64, Wait: dynamo.Sleep},
			Now:   time.Now, NewID: rand.Text, AtOnce: comparesAtOnce, Slack: compareSlack,
		},
		size: func(ctx context.Context) (int64, int64, error) {
			out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &tables.Inbox})
			if err != nil {
				return 0, 0, err
			}
			return aws.ToInt64(out.Table.ItemCount), aws.ToInt64(out.Table.TableSizeBytes), nil
		},
	}, nil
}

// reconcileFlags say what is compared, and how far the command goes.
type reconcileFlags struct {
	full, plan, reportOnly, yes, anew bool
	endpoint, since, why              string
}

func (a *app) reconcileCommand() *cobra.Command {
	var f reconcileFlags
	c := a.onStack(a.command(&cobra.Command{
		Use:   "reconcile",
		Short: "Compare accepted events with their promises, marks and bodies",
		Long: `Compare accepted events with what the other tables say of them, mend what is safe
to mend, and report every difference by its kind. The schedule does this by itself
for each event, a day after it was accepted; use this after a restore.

It shows its plan first, and asks. An interrupted run, run again, goes on where it
stopped. Who did it, and why, is recorded (see audit list). The kinds are explained
in docs/understand/reconciler.md, a restore in docs/operate/after-a-restore.md.`,
		Example: `  dakghar reconcile --local --full --plan
  dakghar reconcile --stack prod --full --reason "restored the inbox to 12:00"
  dakghar reconcile --stack prod --endpoint live --since 72h --report-only`,
	}, func(ctx context.Context, _ []string) error { return a.reconcile(ctx, f) }))
	flags := c.Flags()
	flags.BoolVar(&f.full, "full", false, "compare every event of the stack")
	flags.StringVar(&f.endpoint, "endpoint", "", "compare only this endpoint's events, together with --since")
	flags.StringVar(&f.since, "since", "", "received since: how long ago (72h), a day (2026-03-01) or a time")
	flags.BoolVar(&f.plan, "plan", false, "only show what would be compared")
	flags.BoolVar(&f.reportOnly, "report-only", false, "compare and report, and change nothing")
	flags.BoolVar(&f.anew, "anew", false, "begin from the start, in place of going on with an interrupted run")
	flags.BoolVar(&f.yes, "yes", false, "show the plan, and do not ask")
	flags.StringVar(&f.why, "reason", "", "why, for the record; required unless nothing is changed")
	return c
}

func (f reconcileFlags) check() error {
	usage := func(problem string) error { return &operator.Refusal{Code: "usage", Usage: true, Problem: problem} }
	switch {
	case f.full == (f.endpoint != ""):
		return usage("say what to compare: --full, or --endpoint ENDPOINT --since 72h")
	case f.endpoint != "" && f.since == "":
		return usage("--endpoint needs --since: how long ago (72h), a day or a time")
	case f.full && f.since != "":
		return usage("--full compares everything: leave --since out")
	case f.why == "" && !f.plan && !f.reportOnly:
		return usage("--reason says why, for the record; only --plan and --report-only go without")
	}
	return nil
}

func (f reconcileFlags) scope(now time.Time) (reconciler.Scope, error) {
	if f.full {
		return reconciler.Scope{}, nil
	}
	since, err := moment("since", f.since, now)
	return reconciler.Scope{Endpoint: webhook.EndpointID(f.endpoint), Since: since, Till: now}, err
}

func (f reconcileFlags) subject() string {
	if f.full {
		return "the whole inbox"
	}
	return "endpoint " + f.endpoint
}

func (a *app) reconcile(ctx context.Context, f reconcileFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	op, err := a.operator(ctx)
	if err != nil {
		return err
	}
	if f.endpoint != "" {
		if _, _, err := op.Endpoint(ctx, webhook.EndpointID(f.endpoint)); err != nil {
			return err
		}
	}
	c, err := a.compare(ctx, a.target, a.getenv)
	if err != nil {
		return err
	}
	c.ReportOnly = f.reportOnly
	examples := map[reconciler.Kind]webhook.InboxID{}
	c.Tell = func(d reconciler.Detail) {
		if examples[d.Kind] == "" {
			examples[d.Kind] = d.InboxID
		}
		if a.json {
			_ = a.printJSON(detailView{"difference", string(d.InboxID), string(d.Kind), d.Kind.Fault(), string(d.Deed)}) // the summary's error is the output's as well
		}
	}
	pass := &reconciler.Pass{Comparer: c.Comparer, Anew: f.anew, Progress: a.progress()}
	if pass.Scope, err = f.scope(a.now()); err != nil {
		return err
	}
	if err := a.planned(ctx, f, c, pass); err != nil || f.plan {
		return err
	}
	if !f.reportOnly {
		if err := record(ctx, op, f); err != nil {
			return err
		}
	}
	done, err := pass.Run(ctx)
	if errors.Is(err, reconciler.ErrPassTaken) && done.Compared == 0 {
		return a.passFailed(done, err)
	}
	return errors.Join(a.printPass(done, examples), a.passFailed(done, err))
}

// record notes who compares what and why, before it begins.
func record(ctx context.Context, op *operator.Operator, f reconcileFlags) error {
	who, err := op.Who(ctx)
	if err != nil {
		return &operator.Refusal{Code: "caller_unknown", Problem: "it cannot be told who you are, and every act is recorded", Err: err}
	}
	return op.Registry.RecordAct(ctx, webhook.Act{
		ID: op.NewID(), At: op.Now(), Name: "reconcile", Subject: f.subject(), Who: who, Why: f.why,
	})
}

// comparePlan is a plan in JSON.
type comparePlan struct {
	Record    string `json:"record"` // "plan"
	Of        string `json:"of"`
	Events    int64  `json:"events"`
	ReadUnits int64  `json:"read_units"`
	Mends     bool   `json:"mends"`
}

// planned shows the plan, and asks whether to go on.
func (a *app) planned(ctx context.Context, f reconcileFlags, c *comparison, pass *reconciler.Pass) error {
	plan := comparePlan{Record: "plan", Of: f.subject(), Mends: !f.reportOnly}
	var err error
	if f.full {
		var bytes int64
		plan.Events, bytes, err = c.size(ctx)
		plan.ReadUnits = bytes/4096 + plan.Events
	} else {
		plan.Events, err = pass.Size(ctx)
		plan.ReadUnits = 2 * plan.Events
	}
	if err != nil {
		return fmt.Errorf("the inbox cannot be counted: %w", err)
	}
	if a.json {
		if err := a.printJSON(plan); err != nil {
			return err
		}
	} else {
		a.printf("%s", plan)
	}
	return a.agreed(f.plan || f.yes || f.reportOnly, "Compare "+plan.Of+".", "done")
}

func (p comparePlan) String() string {
	then := "What is safe is mended: lost promises are put anew, left ones are removed. The rest is reported."
	if !p.Mends {
		then = "Nothing is changed."
	}
	return fmt.Sprintf("Compare %s: about %s, about %d read units.\n%s\n", p.Of, count(int(p.Events), "event"), p.ReadUnits, then)
}

func (a *app) progress() func(reconciler.PassProgress) {
	progress := a.nowAndThen()
	return func(p reconciler.PassProgress) {
		if !p.Done {
			progress(func(time.Duration) { a.notef("%s compared\n", count(p.Compared, "event")) })
		}
	}
}

// detailView is one finding in JSON.
type detailView struct {
	Record  string `json:"record"` // "difference"
	InboxID string `json:"inbox_id"`
	Kind    string `json:"kind"`
	Fault   bool   `json:"fault"`
	Done    string `json:"done"`
}

// passView is the end of a run in JSON.
type passView struct {
	Record      string `json:"record"` // "compared"
	Compared    int    `json:"compared"`
	Differences int    `json:"differences"`
	Faults      int    `json:"faults"`
	Resumed     bool   `json:"resumed"`
	Done        bool   `json:"done"`
}

// printPass tells the end: for a person each kind of difference with an example,
// for a program the totals, after the findings that it has been told already.
func (a *app) printPass(p reconciler.PassProgress, examples map[reconciler.Kind]webhook.InboxID) error {
	var rows [][]string
	differences := 0
	for _, kind := range reconciler.Kinds() {
		for _, deed := range reconciler.Deeds() {
			if n := p.Found[reconciler.Finding{Kind: kind, Deed: deed}]; n > 0 {
				differences += n
				rows = append(rows, []string{string(kind), strconv.Itoa(n), string(deed), string(examples[kind])})
			}
		}
	}
	if a.json {
		return a.printJSON(passView{"compared", p.Compared, differences, p.Faults(), p.Resumed, p.Done})
	}
	if len(rows) > 0 {
		if err := a.table("KIND FOUND DONE EXAMPLE", rows); err != nil {
			return err
		}
	}
	went := ""
	if p.Resumed {
		went = ", going on with an interrupted run"
	}
	a.printf("%s compared%s: %s.\n", count(p.Compared, "event"), went, count(differences, "difference"))
	return nil
}

func (a *app) passFailed(p reconciler.PassProgress, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, reconciler.ErrPassTaken):
		return &operator.Refusal{
			Code: "comparison_running", Problem: "another comparison is running on this stack",
			Next: []operator.Step{{Text: "wait for it; one that was killed is over after 5 minutes"}},
		}
	case errors.Is(err, context.Canceled):
		return &operator.Refusal{
			Code: "interrupted", Problem: "interrupted after " + count(p.Compared, "event"),
			Next: []operator.Step{{Text: "the same command goes on from there"}},
		}
	}
	return &operator.Refusal{
		Code: "unavailable", Problem: "the comparison met an error after " + count(p.Compared, "event"), Err: err,
		Next: []operator.Step{{Text: "the same command goes on from there"}},
	}
}
