package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

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
		since time.Duration
		limit int
	)
	c := a.command(&cobra.Command{
		Use:     "list",
		Short:   "List the recorded acts, newest first",
		Example: `  dakghar audit list --stack prod --since 720h --json`,
	}, func(ctx context.Context, _ []string) error {
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		acts, err := op.Acts(ctx, since, limit)
		if err != nil {
			return err
		}
		var rows [][]string
		for act, err := range acts {
			if err != nil {
				return err
			}
			if a.json {
				if err := a.printJSON(actJSON(act)); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, []string{when(act.At), act.Who, act.Name, act.Subject, act.Why})
		}
		if a.json {
			return nil
		}
		return a.table("AT WHO ACT SUBJECT WHY", rows)
	})
	c.Flags().DurationVar(&since, "since", 24*time.Hour, "how far back")
	c.Flags().IntVar(&limit, "limit", 100, "how many at most")
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
}

func actJSON(act webhook.Act) actView {
	return actView{act.ID, stamp(act.At), act.Who, act.Name, act.Subject, word(act.Why)}
}
