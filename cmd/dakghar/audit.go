package main

import (
	"context"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) auditCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:     "audit",
		Short:   "See what operators did",
		Example: `  dakghar audit list --local`,
	}, a.auditList()))
}

func (a *app) auditList() *cobra.Command {
	var (
		q            operator.Acts
		since, until string
	)
	c := a.onOperator(&cobra.Command{
		Use:   "list",
		Short: "List the recorded acts, newest first",
		Long: `List what operators did: every act by who, when, why and to what. Who is the caller's
AWS identity; on the local stack it is "local".`,
		Example: `  dakghar audit list --stack prod --since 720h --json
  dakghar audit list --stack prod --subject in_abcd2345 --since 9600h
  dakghar audit list --stack prod --subject "endpoint live" --since 2026-03-01 --until 2026-03-02
  dakghar audit list --stack prod --who user/ada`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		var err error
		if q.Since, q.Until, err = span(since, until, a.now()); err != nil {
			return err
		}
		acts, err := op.Acts(ctx, q)
		if err != nil {
			return err
		}
		return list[webhook.Act]{
			header: "AT WHO ACT SUBJECT WHY",
			row:    func(act webhook.Act) []string { return []string{when(act.At), act.Who, act.Name, act.Subject, act.Why} },
			view:   func(act webhook.Act) any { return actJSON(act) },
		}.within(q.Limit, q.Since).print(a, acts, false)
	})
	f := c.Flags()
	f.StringVar(&q.Subject, "subject", "", `what it was done to: an inbox id, an endpoint's or a job's, or the record's own words ("endpoint live")`)
	f.StringVar(&q.Who, "who", "", "only acts of this person: the AWS identity, or a part of it")
	f.StringVar(&since, "since", "24h", "since when: how long ago (1h), a day (2026-03-01) or a time")
	f.StringVar(&until, "until", "", "and until (default: now)")
	f.IntVar(&q.Limit, "limit", 100, "how many at most")
	return c
}

// actView is a recorded act in JSON.
type actView struct {
	ID      string `json:"act_id"`
	At      stamp  `json:"at"`
	Who     string `json:"who"`
	Act     string `json:"act"`
	Subject string `json:"subject"`
	Why     word   `json:"why"`
	Job     word   `json:"job_id"` // null for an act by itself
}

func actJSON(act webhook.Act) actView {
	return actView{act.ID, stamp(act.At), act.Who, act.Name, act.Subject, word(act.Why), word(act.Job)}
}
