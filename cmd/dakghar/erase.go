package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

// eraseSince reaches as far back as rows are kept by default, less a day.
const eraseSince = "9576h"

// eraseFlags say what is to be erased.
type eraseFlags struct {
	bulkFlags

	again       bool
	object, why string
}

func (a *app) eraseCommand() *cobra.Command {
	var f eraseFlags
	c := a.command(&cobra.Command{
		Use:   "erase [INBOX_ID...]",
		Short: "Delete what events brought, for good",
		Long: `Delete the raw bytes of events that have ended, and the bytes that partners were told
because of them: of one event or some, of every event about one object (--object and
--endpoint), or of every event that matches (--all). It cannot be undone.

The row stays: provider, ids, type, object id, digest, times and outcome, so that a
repeat is still known as one. So do the business rows, which are yours, the record of
acts, and what backups keep until they age out. docs/operate/erase.md lists it all.

Refused and left alone are events that are open, that are under legal hold, whose
bytes another open event shares, or of which a partner is still to be told.

Erased events are listed. After a restore, --again erases what it brought back.`,
		Example: `  dakghar erase in_abcd2345 --local --reason "request 77"
  dakghar erase --local --endpoint demo --object cus_1 --plan
  dakghar erase --stack prod --endpoint live --object cus_1 --reason "request 77"
  dakghar erase --stack prod --all --endpoint live --kind customer.created --since 2026-03-01 --until 2026-03-02 --reason "request 78"
  dakghar erase --stack prod --again --reason "restored the bodies to 12:00"`,
	}, func(ctx context.Context, args []string) error {
		op, err := a.operator(ctx)
		switch {
		case err != nil:
			return err
		case f.again:
			return a.eraseAgain(ctx, op, f)
		case len(args) > 0:
			return a.eraseNamed(ctx, op, args, f)
		}
		b := operator.Bulk{Act: "erase", Why: f.why, Rate: f.rate, PlanOnly: f.planOnly}
		b.Filter.Object = f.object
		return a.actOnAll(ctx, op, b, f.bulkFlags)
	})
	c.Args = f.args
	flags := c.Flags()
	flags.StringVar(&f.why, "reason", "", "why, for the record; required")
	flags.StringVar(&f.object, "object", "", "every event of --endpoint about this object, by the provider's id")
	flags.BoolVar(&f.again, "again", false, "erase again what was erased since --since and a restore brought back")
	flags.BoolVar(&f.all, "all", false, "every event that matches the flags below")
	f.filter.add(c, eraseSince)
	f.job(c)
	return a.onStack(c)
}

// args takes ids, or one of --object, --all and --again.
func (f *eraseFlags) args(c *cobra.Command, args []string) error {
	ways := 0
	for _, way := range []bool{len(args) > 0, f.object != "", f.all, f.again} {
		if way {
			ways++
		}
	}
	switch {
	case ways == 0:
		return fmt.Errorf("say which events: %s INBOX_ID, or --object ID --endpoint ENDPOINT, or --all; or --again after a restore", c.CommandPath())
	case ways > 1:
		return fmt.Errorf("ids, --object, --all and --again go each by itself")
	case f.object != "" && f.filter.endpoint == "":
		return fmt.Errorf("--object goes with --endpoint: two providers may give the same id")
	case f.all || f.object != "":
		return nil
	}
	for _, name := range append(filterNames(), "rate") {
		if c.Flags().Changed(name) && (!f.again || name != "since") {
			return fmt.Errorf("--%s goes with --object or --all", name)
		}
	}
	return nil
}

// eraseNamed erases events by their ids, in the order they were given. The first
// that is refused ends it; running the same again goes on there.
func (a *app) eraseNamed(ctx context.Context, op *operator.Operator, ids []string, f eraseFlags) error {
	var rows [][]string
	for _, id := range ids {
		row, err := op.Event(ctx, webhook.InboxID(id))
		if err != nil {
			return err
		}
		rows = append(rows, append([]string{"  " + when(row.ReceivedAt)}, eventColumns(row)...))
	}
	if !a.json {
		a.printf("erase: %s.\n", count(len(ids), "event"))
		if err := a.table("", rows); err != nil {
			return err
		}
	}
	if f.planOnly {
		return nil
	}
	if err := a.sureToErase(f, count(len(ids), "event")); err != nil {
		return err
	}
	for _, id := range ids {
		row, err := op.Erase(ctx, webhook.InboxID(id), f.why)
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(eventJSON(row)); err != nil {
				return err
			}
			continue
		}
		a.printf("%s erased %s\n", row.ID, when(row.ErasedAt))
	}
	return nil
}

func (a *app) sureToErase(f eraseFlags, what string) error {
	if f.why == "" {
		return &operator.Refusal{Code: "usage", Usage: true, Problem: "--reason is required: it is recorded with what is gone"}
	}
	return a.agreed(f.sure, fmt.Sprintf("erase: %s. It cannot be undone.", what), "done")
}

func (a *app) eraseAgain(ctx context.Context, op *operator.Operator, f eraseFlags) error {
	since, err := moment("since", f.filter.since, a.now())
	if err != nil {
		return err
	}
	plan, err := op.PlanAgain(ctx, since)
	if err != nil {
		return err
	}
	if !a.json {
		a.printf("erase again: %s since %s.\n", count(plan.Listed, "event"), when(since))
	}
	if f.planOnly || plan.Listed == 0 {
		return a.showAgain(plan)
	}
	if err := a.sureToErase(f, "what a restore brought back of "+count(plan.Listed, "event")); err != nil {
		return err
	}
	done, err := op.EraseAgain(ctx, since, f.why)
	if err != nil {
		return err
	}
	return a.showAgain(done)
}

// againView is what erasing again came to, in JSON.
type againView struct {
	Record    string         `json:"record"` // "erase_again"
	Listed    int            `json:"listed"`
	Erased    int            `json:"erased"`
	Checked   int            `json:"checked"`
	LeftAlone map[string]int `json:"left_alone"`
}

func (a *app) showAgain(g operator.Again) error {
	if a.json {
		return a.printJSON(againView{"erase_again", g.Listed, g.Erased, g.Bytes, g.Left})
	}
	if g.Erased+g.Bytes+len(g.Left) == 0 {
		return nil
	}
	rows := [][]string{{"  erased again", number(g.Erased)}, {"  erased already, bytes checked", number(g.Bytes)}}
	if len(g.Left) > 0 {
		rows = append(rows, []string{"  left alone", counts(g.Left)})
	}
	return a.table("", rows)
}

func (a *app) legalHoldCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:   "legal-hold",
		Short: "Keep events beyond their time, for a case",
		Long: `Keep ended events as they are until you clear the hold: the row does not expire, a
copy of the raw bytes is kept that does not expire either, and the event is neither
erased nor worked on again.`,
		Example: `  dakghar legal-hold list --local`,
	}, a.legalHoldSet(), a.legalHoldClear(), a.legalHoldList()))
}

func (a *app) legalHoldSet() *cobra.Command {
	var why string
	c := a.onOperator(&cobra.Command{
		Use:     "set INBOX_ID",
		Short:   "Put an event under legal hold",
		Long:    "Put an ended event under legal hold. The same again finishes what a death left half done.",
		Example: `  dakghar legal-hold set in_abcd2345 --stack prod --reason "case 2026-14"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		row, kept, err := op.HoldByLaw(ctx, webhook.InboxID(args[0]), why)
		if err != nil {
			return err
		}
		if !kept {
			a.notef("its bytes were gone already: the row alone is kept\n")
		}
		return a.showEvent(row)
	})
	c.Flags().StringVar(&why, "reason", "", "the case, for the record; required")
	return c
}

func (a *app) legalHoldClear() *cobra.Command {
	var why string
	c := a.onOperator(&cobra.Command{
		Use:     "clear INBOX_ID",
		Short:   "End a legal hold",
		Long:    "End a legal hold: the copy of the bytes goes, and the row is kept from now on as one that has just ended.",
		Example: `  dakghar legal-hold clear in_abcd2345 --stack prod --reason "case 2026-14 is closed"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		row, err := op.ClearLegalHold(ctx, webhook.InboxID(args[0]), why)
		if err != nil {
			return err
		}
		return a.showEvent(row)
	})
	c.Flags().StringVar(&why, "reason", "", "why, for the record; required")
	return c
}

func (a *app) legalHoldList() *cobra.Command {
	var ids bool
	c := a.command(&cobra.Command{
		Use:     "list",
		Short:   "List the events under legal hold",
		Example: `  dakghar legal-hold list --stack prod --json`,
	}, func(ctx context.Context, _ []string) error {
		if err := a.idsAlone(ids); err != nil {
			return err
		}
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		return list[webhook.HeldByLaw]{
			header: "SINCE ENDPOINT INBOX_ID WHO WHY",
			row: func(h webhook.HeldByLaw) []string {
				return []string{when(h.At), string(h.Endpoint), string(h.InboxID), h.Who, h.Why}
			},
			view: func(h webhook.HeldByLaw) any {
				return legalHoldView{string(h.InboxID), string(h.Endpoint), stamp(h.At), h.Who, word(h.Why)}
			},
			id: func(h webhook.HeldByLaw) string { return string(h.InboxID) },
		}.print(a, op.LegalHolds(ctx), ids)
	})
	c.Flags().BoolVar(&ids, "ids", false, "print the inbox ids alone, one a line")
	return c
}

// legalHoldView is a legal hold in JSON.
type legalHoldView struct {
	InboxID    string `json:"inbox_id"`
	EndpointID string `json:"endpoint_id"`
	Since      stamp  `json:"since"`
	Who        string `json:"who"`
	Why        word   `json:"why"`
}

func (a *app) showEvent(row webhook.Inbox) error {
	if a.json {
		return a.printJSON(eventJSON(row))
	}
	return a.table("", eventRows(row))
}
