package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/spf13/cobra"

	"dakghar/internal/body"
	"dakghar/internal/config"
	"dakghar/internal/dynamo"
	"dakghar/internal/egress"
	"dakghar/internal/fault"
	"dakghar/internal/ingress"
	"dakghar/internal/limit"
	"dakghar/internal/operator"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/provider/remote"
	"dakghar/internal/secret"
	"dakghar/internal/webhook"
)

// The shape of an operator's back-fill: what a person's machine and patience bear.
const (
	backfillLease     = 2 * time.Minute
	backfillSlack     = 5 * time.Second
	backfillEventTime = 10 * time.Second
	backfillRedeliver = 60               // a minute; GitHub bears 80 calls that make something
	backfillPatience  = 10 * time.Minute // of waiting for a provider before the command gives up
)

// connectBackfill finds a stack and puts its acceptance behind what providers list.
func connectBackfill(ctx context.Context, t target, getenv func(string) string) (*ingress.Backfill, error) {
	s, err := t.find(ctx, getenv)
	if err != nil {
		return nil, err
	}
	env := config.From(s.setting)
	tables := dynamo.Tables{
		Inbox: env.Text("INBOX_TABLE"), Outbox: env.Text("OUTBOX_TABLE"), Body: env.Text("BODY_TABLE"), Registry: env.Text("REGISTRY_TABLE"),
	}
	db := dynamodb.NewFromConfig(s.aws)
	bodies := body.Config{
		Dynamo: db, KMS: kms.NewFromConfig(s.aws), S3: s3.NewFromConfig(s.aws, func(o *s3.Options) { o.UsePathStyle = s.local }),
		Table: tables.Body, Bucket: env.Text("BODY_BUCKET"), KeyID: env.Text("DATA_KEY_ID"),
		InlineBytes: env.Int("BODY_INLINE_BYTES", 1024, 300<<10, 32<<10), Life: config.ReadLife(env).Body,
		Now: time.Now, Rand: rand.Reader, NewID: rand.Text,
	}
	standIn := config.ReadProviderBase(env)
	if err := env.Err(); err != nil {
		return nil, fmt.Errorf("the stack does not name all its parts: %w", err)
	}
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		return nil, err
	}
	store := &dynamo.Store{DB: db, Tables: tables, Chance: mathrand.Float64, Wait: dynamo.Sleep}
	return &ingress.Backfill{
		Receiver: &ingress.Receiver{
			Providers: providers, Bodies: body.New(bodies), Inbox: store, Recent: ingress.NewRecent(1),
			Limits: limit.NewLimiter(store, limit.SettleTimeout), Budget: backfillEventTime, Now: time.Now, NewID: rand.Text,
		},
		Listing: &remote.Client{
			Secrets: secret.NewNamed(secret.Config{Client: secretsmanager.NewFromConfig(s.aws), Now: time.Now, CallTimeout: secretCall}),
			HTTP:    egress.Doer[remote.Request, remote.Response]{Client: egress.New(egress.Config{AllowLoopback: standIn != nil})},
			Now:     time.Now, Base: standIn,
		},
		Rows: store, Lease: backfillLease, Slack: backfillSlack, RedeliverMax: backfillRedeliver, Wait: dynamo.Sleep,
	}, nil
}

// backfillFlags say what is compared, and how far the command goes.
type backfillFlags struct {
	endpoint, since, why string
	resume, plan, yes    bool
}

func (a *app) backfillCommand() *cobra.Command {
	var f backfillFlags
	c := a.onStack(a.command(&cobra.Command{
		Use:   "backfill",
		Short: "Fetch the events that a provider had and that never came",
		Long: `List what a provider had since a time, by its own API, and take in what is missing, under
the same unique key as a delivery: what came is left alone, and what comes later is a
duplicate. Stripe and Paddle list events; GitHub lists deliveries, and is asked to send the
missing ones again; Shopify and Razorpay list objects, of which an event is made that says
what the object has become.

It shows what the first page says, and asks. It waits where the provider asks for that.
An interrupted run goes on with --resume, from its place in the list; so does the
schedule of an endpoint with --backfill-every. Who did it, and why, is recorded (see
audit list). Runbook: docs/operate/backfill.md.`,
		Example: `  dakghar backfill --stack prod --endpoint live --since 3h --plan
  dakghar backfill --stack prod --endpoint live --since 2026-03-01T09:00:00Z --reason "the front door was down"
  dakghar backfill --stack prod --endpoint live --resume --reason "the front door was down"`,
	}, func(ctx context.Context, _ []string) error { return a.runBackfill(ctx, f) }))
	flags := c.Flags()
	flags.StringVar(&f.endpoint, "endpoint", "", "the endpoint; it needs a credential for the provider's API (endpoint update --api-secret-file)")
	flags.StringVar(&f.since, "since", "", "from when on: how long ago (72h), a day (2026-03-01) or a time")
	flags.BoolVar(&f.resume, "resume", false, "go on with the run that was left behind, in place of --since")
	flags.BoolVar(&f.plan, "plan", false, "only show what the first page says")
	flags.BoolVar(&f.yes, "yes", false, "show the plan, and do not ask")
	flags.StringVar(&f.why, "reason", "", "why, for the record; required unless --plan")
	return c
}

func (f backfillFlags) check() error {
	usage := func(problem string) error { return &operator.Refusal{Code: "usage", Usage: true, Problem: problem} }
	switch {
	case f.endpoint == "":
		return usage("say which endpoint: --endpoint ENDPOINT")
	case f.resume == (f.since != ""):
		return usage("say from when on, --since 3h, or go on with a run: --resume")
	case f.why == "" && !f.plan:
		return usage("--reason says why, for the record; only --plan goes without")
	}
	return nil
}

func (a *app) runBackfill(ctx context.Context, f backfillFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	since, err := moment("since", f.since, a.now())
	if err != nil {
		return err
	}
	op, err := a.operator(ctx)
	if err != nil {
		return err
	}
	e, _, err := op.Endpoint(ctx, webhook.EndpointID(f.endpoint))
	if err != nil {
		return err
	}
	b, err := a.backfill(ctx, a.target, a.getenv)
	if err != nil {
		return err
	}
	if err := a.plannedBackfill(ctx, f, b, e, since); err != nil || f.plan {
		return err
	}
	if err := recordBackfill(ctx, op, f); err != nil {
		return err
	}
	return a.walkBackfill(ctx, b, e, since)
}

// backfillPlan is a plan in JSON. Of a run that goes on, only where it stands is known.
type backfillPlan struct {
	Record     string `json:"record"` // "plan"
	Endpoint   string `json:"endpoint_id"`
	Since      stamp  `json:"since"`
	Resumed    bool   `json:"resumed"`
	Listed     int    `json:"listed"`
	Missing    int    `json:"missing"`
	Unwanted   int    `json:"unwanted"`
	Unreadable int    `json:"unreadable"`
	More       bool   `json:"more"`
}

// plannedBackfill shows the plan, and asks whether to go on.
func (a *app) plannedBackfill(ctx context.Context, f backfillFlags, b *ingress.Backfill, e webhook.Endpoint, since time.Time) error {
	plan := backfillPlan{Record: "plan", Endpoint: f.endpoint, Since: stamp(since), Resumed: f.resume}
	if f.resume {
		row, err := b.Rows.Backfill(ctx, e.ID)
		switch {
		case err != nil:
			return fmt.Errorf("the run that was left behind cannot be read: %w", err)
		case !row.Open():
			return &operator.Refusal{
				Code: "nothing_to_resume", Problem: "no back-fill of endpoint " + f.endpoint + " was left behind",
				Next: []operator.Step{{Text: "begin one:", Command: []string{"backfill", "--endpoint", f.endpoint, "--since", "3h", "--reason", "…"}}},
			}
		}
		plan.Since, plan.Listed, plan.More = stamp(row.Since), row.Counts.Items(), true
	} else {
		l, err := b.Look(ctx, e, since)
		if err != nil {
			return backfillRefused(f.endpoint, err, false)
		}
		plan.Listed, plan.Missing, plan.Unwanted, plan.Unreadable, plan.More = l.Items, l.Missing, l.Unwanted, l.Unreadable, l.More
	}
	if a.json {
		if err := a.printJSON(plan); err != nil {
			return err
		}
	} else {
		a.printf("%s", plan)
	}
	return a.agreed(f.plan || f.yes, "Fetch what is missing at endpoint "+f.endpoint+".", "done")
}

func (p backfillPlan) String() string {
	if p.Resumed {
		return fmt.Sprintf("The run since %s was left behind after %s; it goes on from there.\n", when(time.Time(p.Since)), count(p.Listed, "item"))
	}
	which := "All that the provider lists"
	if p.More {
		which = "The first page of what the provider lists"
	}
	text := fmt.Sprintf("%s since %s: %s, %d of them missing here", which, when(time.Time(p.Since)), count(p.Listed, "item"), p.Missing)
	if p.Unwanted > 0 {
		text += fmt.Sprintf(", %d of types that the endpoint does not take", p.Unwanted)
	}
	if p.Unreadable > 0 {
		text += fmt.Sprintf(", %d unreadable", p.Unreadable)
	}
	return text + ".\n"
}

// recordBackfill notes who has what fetched and why, before it begins.
func recordBackfill(ctx context.Context, op *operator.Operator, f backfillFlags) error {
	who, err := op.Who(ctx)
	if err != nil {
		return &operator.Refusal{Code: "caller_unknown", Problem: "it cannot be told who you are, and every act is recorded", Err: err}
	}
	name := "backfill"
	if f.resume {
		name = "backfill --resume"
	}
	return op.Registry.RecordAct(ctx, webhook.Act{
		ID: op.NewID(), At: op.Now(), Name: name, Subject: "endpoint " + f.endpoint, Who: who, Why: f.why,
	})
}

// walkBackfill runs to the end of the list, and waits where the provider, or the
// pace of redeliveries, asks for it.
func (a *app) walkBackfill(ctx context.Context, b *ingress.Backfill, e webhook.Endpoint, since time.Time) error {
	var sum webhook.BackfillCounts
	ask := ingress.BackfillAsk{Since: since, Tell: a.tellBackfill()}
	for {
		r := b.Run(ctx, e, ask)
		sum, ask.Since = sum.Add(r.Counts), time.Time{}
		wait := r.Row.NotBefore.Sub(a.now())
		switch {
		case r.Done:
			return a.printBackfill(e, sum, r)
		case ctx.Err() != nil:
			return errors.Join(a.printBackfill(e, sum, r), backfillRefused(string(e.ID), context.Canceled, true))
		case r.Err != nil && (fault.CodeOf(r.Err) != "api_throttled" || wait > backfillPatience):
			return errors.Join(a.printBackfill(e, sum, r), backfillRefused(string(e.ID), r.Err, true))
		}
		a.notef("%s so far; the provider is left alone for %s\n", count(sum.Items(), "item"), wait.Round(time.Second))
		if err := b.Wait(ctx, wait); err != nil {
			return errors.Join(a.printBackfill(e, sum, r), backfillRefused(string(e.ID), err, true))
		}
	}
}

func (a *app) tellBackfill() func(webhook.Backfill) {
	progress := a.nowAndThen()
	return func(row webhook.Backfill) {
		if !row.Open() {
			return
		}
		progress(func(time.Duration) {
			a.notef("%s, %d accepted, %d asked for\n", count(row.Counts.Items(), "item"), row.Counts.Accepted, row.Counts.Redelivered)
		})
	}
}

// backfillView is the end of a command's part of a run in JSON.
type backfillView struct {
	Record      string `json:"record"` // "backfill"
	Endpoint    string `json:"endpoint_id"`
	Done        bool   `json:"done"`
	Pages       int    `json:"pages"`
	Items       int    `json:"items"`
	Accepted    int    `json:"accepted"`
	Duplicate   int    `json:"duplicate"`
	Redelivered int    `json:"redelivered"`
	Awaited     int    `json:"awaited"`
	Refused     int    `json:"refused"`
	Unwanted    int    `json:"unwanted"`
	Unreadable  int    `json:"unreadable"`
}

func (a *app) printBackfill(e webhook.Endpoint, c webhook.BackfillCounts, r ingress.BackfillReport) error {
	if !r.Ran && c == (webhook.BackfillCounts{}) {
		return nil
	}
	if a.json {
		return a.printJSON(backfillView{
			"backfill", string(e.ID), r.Done, c.Pages, c.Items(), c.Accepted, c.Duplicate, c.Redelivered, c.Awaited, c.Refused, c.Unwanted, c.Unreadable,
		})
	}
	var rows [][]string
	for _, line := range []struct {
		what string
		n    int
		then string
	}{
		{"accepted", c.Accepted, "were missing, and are events now"},
		{"duplicate", c.Duplicate, "were there already"},
		{"redelivered", c.Redelivered, "were missing: the provider was asked to send them again"},
		{"awaited", c.Awaited, "are missing, and were asked for before in this run"},
		{"refused", c.Refused, "are missing, and are not sent again"},
		{"unwanted", c.Unwanted, "are of types that the endpoint does not take"},
		{"unreadable", c.Unreadable, "could not be read"},
	} {
		if line.n > 0 {
			rows = append(rows, []string{line.what, fmt.Sprint(line.n), line.then})
		}
	}
	end := "to its end"
	if !r.Done {
		end = "in part"
	}
	a.printf("The list was walked %s: %s on %s.\n", end, count(c.Items(), "item"), count(c.Pages, "page"))
	return a.table("", rows)
}

// backfillRefused says what is in the way, and what to do about it. A run that has
// begun goes on from its place.
func backfillRefused(endpoint string, err error, begun bool) error {
	step := func(text string, command ...string) []operator.Step {
		return []operator.Step{{Text: text, Command: command}}
	}
	resume := step("it goes on from its place:", "backfill", "--endpoint", endpoint, "--resume", "--reason", "…")
	if !begun {
		resume = nil
	}
	code := fault.CodeOf(err)
	r := &operator.Refusal{Code: code, Problem: "the back-fill of endpoint " + endpoint + " stopped", Err: err, Next: resume}
	switch {
	case errors.Is(err, context.Canceled):
		r.Code, r.Problem, r.Err = "interrupted", "interrupted", nil
	case errors.Is(err, ingress.ErrBackfillTaken):
		r.Code, r.Problem, r.Err = "backfill_running", "another program works on the back-fill of endpoint "+endpoint+": the schedule, or another command", nil
		r.Next = step("wait for it; one that was killed is over after 2 minutes")
	case code == "api_unset":
		r.Problem, r.Err = "endpoint "+endpoint+" has no credential for its provider's API", nil
		r.Next = step("give it one:", "endpoint", "update", endpoint, "--api-secret-file", "FILE")
	case code == "api_unsupported", code == "history_unsupported":
		r.Problem, r.Err = "the provider of endpoint "+endpoint+" has no list of past events that its adapter knows", nil
		r.Next = step("ask it to send its events again from its own side")
	case code == "api_credential_refused", code == "api_credential_malformed":
		r.Problem, r.Err = "the provider's API refuses the credential of endpoint "+endpoint, nil
		r.Next = append(step("give it another one:", "endpoint", "update", endpoint, "--api-secret-file", "FILE"), resume...)
	case code == "api_account_missing", code == "api_account_invalid":
		r.Problem = "the provider's API must be told more about the account of endpoint " + endpoint
		r.Next = step("say it:", "endpoint", "update", endpoint, "--api-account", "NAME=VALUE")
	}
	return r
}
