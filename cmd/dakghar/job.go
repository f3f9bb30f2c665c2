package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) jobCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:   "job",
		Short: "See, resume and cancel acts on many events",
		Long: `An act on many events (inbox replay --all and its like, endpoint resume) is a job.
Its row says which events it is for and how far it has come, so another command can
go on with it after the first one died. An event that it has done is never done
again by the same job.`,
		Example: `  dakghar job list --local`,
	}, a.jobList(), a.jobShow(), a.jobResume(), a.jobCancel()))
}

func (a *app) jobList() *cobra.Command {
	var limit int
	c := a.onOperator(&cobra.Command{
		Use:     "list",
		Short:   "List the jobs, newest first",
		Example: `  dakghar job list --stack prod --json`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		jobs, err := op.JobList(ctx, limit)
		if err != nil {
			return err
		}
		return list[webhook.Job]{
			header: "JOB STATE ACT HANDLED UPDATED WHO WHY",
			row: func(j webhook.Job) []string {
				return []string{j.ID, string(j.State), j.Act, fmt.Sprintf("%d of %d", j.Handled(), j.Matched), when(j.UpdatedAt), j.Who, j.Why}
			},
			view: func(j webhook.Job) any { return jobJSON(j) },
		}.print(a, jobs, false)
	})
	c.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return c
}

func (a *app) jobShow() *cobra.Command {
	return a.onOperator(&cobra.Command{
		Use:   "show JOB",
		Short: "Show one job: what it is for, and how far it has come",
		Long: `Show a job. A job that is RUNNING and was not updated for a minute has lost its
command: resume it. The counts are written every few events; after a crash they may
be behind what was done, which each event's own row and record tell.`,
		Example: `  dakghar job show job-20260301t120000123-abcd2345 --local`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		j, err := op.Job(ctx, args[0])
		if err != nil {
			return err
		}
		return a.showJob(j)
	})
}

func (a *app) jobResume() *cobra.Command {
	var why string
	c := a.onOperator(&cobra.Command{
		Use:   "resume JOB",
		Short: "Go on with a job where its command left it",
		Long: `Go on with a job that was interrupted, or whose command died. A command that still
runs it notices, and stops.`,
		Example: `  dakghar job resume job-20260301t120000123-abcd2345 --local`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		return a.runs(ctx, func(ctx context.Context, tell func(webhook.Job)) (webhook.Job, error) {
			return op.ResumeJob(ctx, args[0], why, tell)
		})
	})
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

func (a *app) jobCancel() *cobra.Command {
	var why string
	c := a.onOperator(&cobra.Command{
		Use:   "cancel JOB",
		Short: "End a job: what was done stays, nothing more is done",
		Long: `End a job for good. A command that runs it stops within a few events. What was done
stays done: to undo a hold, release what it held.`,
		Example: `  dakghar job cancel job-20260301t120000123-abcd2345 --local --reason "a mistake"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		j, err := op.CancelJob(ctx, args[0], why)
		if err != nil {
			return err
		}
		return a.showJob(j)
	})
	c.Flags().StringVar(&why, "reason", "", "why, for the record")
	return c
}

func (a *app) showJob(j webhook.Job) error {
	if a.json {
		return a.printJSON(jobJSON(j))
	}
	f := j.Filter
	rows := [][]string{
		{"job", j.ID}, {"state", string(j.State)}, {"act", j.Act}, {"handler", j.Handler},
		{"endpoint", string(f.Endpoint)}, {"subscription", f.Subscription}, {"status", joined(f.Statuses)}, {"kind", f.Kind}, {"object", f.Object}, {"cause", f.Cause}, {"key", string(f.MatchedVersion)},
		{"since", when(f.Since)}, {"until", when(f.Until)},
		{"matched", number(j.Matched)}, {"done", number(j.Done)}, {"left alone", counts(j.Left)},
		{"rate", number(j.Rate)}, {"begins", when(j.NotBefore)}, {"created", when(j.CreatedAt)}, {"updated", when(j.UpdatedAt)}, {"who", j.Who}, {"why", j.Why},
	}
	if err := a.table("", filled(rows)); err != nil {
		return err
	}
	if !j.State.Over() {
		a.printf("Next:\n%s", a.steps([]operator.Step{
			{Text: "to go on:", Command: []string{"job", "resume", j.ID}},
			{Text: "to leave it at that:", Command: []string{"job", "cancel", j.ID}},
		}))
	}
	return nil
}

// jobView is a job in JSON.
type jobView struct {
	Record    string         `json:"record"` // "job"
	ID        string         `json:"job_id"`
	State     string         `json:"state"`
	Act       string         `json:"act"`
	Filter    filterView     `json:"filter"`
	Handler   word           `json:"reprocess_handler"`
	Matched   int            `json:"matched"`
	Handled   int            `json:"handled"`
	Done      int            `json:"done"`
	LeftAlone map[string]int `json:"left_alone"`
	Rate      int            `json:"rate"`
	NotBefore stamp          `json:"not_before"`
	CreatedAt stamp          `json:"created_at"`
	UpdatedAt stamp          `json:"updated_at"`
	Who       string         `json:"who"`
	Why       word           `json:"why"`
}

func jobJSON(j webhook.Job) jobView {
	left := j.Left
	if left == nil {
		left = map[string]int{}
	}
	return jobView{
		Record: "job", ID: j.ID, State: string(j.State), Act: j.Act, Filter: filterJSON(j.Filter), Handler: word(j.Handler),
		Matched: j.Matched, Handled: j.Handled(), Done: j.Done, LeftAlone: left, Rate: j.Rate, NotBefore: stamp(j.NotBefore),
		CreatedAt: stamp(j.CreatedAt), UpdatedAt: stamp(j.UpdatedAt), Who: j.Who, Why: word(j.Why),
	}
}
