package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) shadowCommand() *cobra.Command {
	var (
		q                      operator.Shadow
		endpoint, since, until string
		fail                   bool
	)
	c := a.onStack(a.onOperator(&cobra.Command{
		Use:   "shadow",
		Short: "Run this command's handlers over recorded events, and show what differs",
		Long: `Handle PROCESSED events once more, in the order in which they were processed, with the
handlers that this command was built with. What they write is kept in memory and thrown
away. Shown is every event that ends otherwise than it did, and, for objects whose whole
history lies in the range, every row that would not be as it is stored.

Nothing is written but the record of who did it and why (see audit list): the events'
bodies are read. Use it before a handler's release; see docs/extend/handlers.md.`,
		Example: `  dakghar shadow --local --endpoint demo --since 24h --reason "before release 12"
  dakghar shadow --stack prod --endpoint live --since 72h --limit 5000 --reason "release 12" --fail-on-difference --json`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		var err error
		q.Endpoint = webhook.EndpointID(endpoint)
		if q.Since, q.Until, err = span(since, until, a.now()); err != nil {
			return err
		}
		return a.shadow(ctx, op, q, fail)
	}))
	f := c.Flags()
	f.StringVar(&endpoint, "endpoint", "", "whose events (required)")
	f.StringVar(&since, "since", "", "received since: how long ago (24h), a day (2026-03-01) or a time (required)")
	f.StringVar(&until, "until", "", "and until (default: now)")
	f.IntVar(&q.Limit, "limit", 1000, "how many events at most, the newest")
	f.StringVar(&q.Why, "reason", "", "why, for the record: bodies are read (required)")
	f.BoolVar(&fail, "fail-on-difference", false, "exit with 1 if there is any difference")
	return required(c, "endpoint", "since", "reason")
}

func (a *app) shadow(ctx context.Context, op *operator.Operator, q operator.Shadow, fail bool) error {
	var failed error
	got, err := op.Shadow(ctx, q, func(d operator.Difference) {
		if failed == nil {
			failed = a.showDifference(d)
		}
	})
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	}
	if err := a.showShadow(got); err != nil {
		return err
	}
	if fail && got.Differences() > 0 {
		return errSaid
	}
	return nil
}

func (a *app) showDifference(d operator.Difference) error {
	if a.json {
		return a.printJSON(differenceJSON(d))
	}
	switch {
	case d.Event != nil:
		a.printf("%s %s: was %s, now %s\n", d.Event.ID, shown(string(d.Event.EventType)), d.Recorded, ended(d))
	case d.Attribute != "":
		a.printf("%s %s: stored %s, now %s\n", shown(d.Key.PK+" "+d.Key.SK), shown(d.Attribute), value(d.Stored), value(d.Made))
	case d.Made != nil:
		a.printf("%s: a row that is not stored\n", shown(d.Key.PK+" "+d.Key.SK))
	default:
		a.printf("%s: stored, and not written now\n", shown(d.Key.PK+" "+d.Key.SK))
	}
	return nil
}

func ended(d operator.Difference) string {
	if d.Code == "" {
		return d.Now
	}
	return d.Now + " (" + d.Code + ")"
}

// value writes a stored value; a text stands in quotes, so that it is told from a number.
func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return strconv.Quote(v)
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	}
	return fmt.Sprint(v)
}

func (a *app) showShadow(s operator.Shadowed) error {
	if a.json {
		return a.printJSON(shadowView{
			"shadow", s.Events, s.Truncated, s.Compared, s.Skipped, s.Undecided, s.Objects, s.Partial, s.Outcomes, s.Rows,
		})
	}
	rows := [][]string{
		{"events", number(s.Events)}, {"compared", number(s.Compared)}, {"skipped", counts(s.Skipped)},
		{"undecided", undecided(s.Undecided)},
		{"objects", fmt.Sprintf("%d with their whole history, %d without", s.Objects, s.Partial)},
		{"differences", fmt.Sprintf("%s, %s", count(s.Outcomes, "outcome"), count(s.Rows, "row value"))},
	}
	if s.Truncated {
		rows = append(rows, []string{"limit", "reached: there are older events in the range"})
	}
	return a.table("", filled(rows))
}

func undecided(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + ": the rows hold their effect already"
}

// differenceView is one difference in JSON.
type differenceView struct {
	Record   string `json:"record"` // "outcome" or "row"
	InboxID  word   `json:"inbox_id"`
	Type     word   `json:"event_type"`
	Object   word   `json:"object_id"`
	Recorded word   `json:"recorded"`
	Now      word   `json:"now"`
	Code     word   `json:"code"`

	PK        word `json:"pk"`
	SK        word `json:"sk"`
	Attribute word `json:"attribute"` // null: the whole row
	Stored    any  `json:"stored"`
	Made      any  `json:"made"`
}

func differenceJSON(d operator.Difference) differenceView {
	if d.Event != nil {
		return differenceView{
			Record: "outcome", InboxID: word(d.Event.ID), Type: word(d.Event.EventType), Object: word(d.Event.ObjectID),
			Recorded: word(d.Recorded), Now: word(d.Now), Code: word(d.Code),
		}
	}
	return differenceView{Record: "row", PK: word(d.Key.PK), SK: word(d.Key.SK), Attribute: word(d.Attribute), Stored: d.Stored, Made: d.Made}
}

type shadowView struct {
	Record    string         `json:"record"` // "shadow"
	Events    int            `json:"events"`
	Truncated bool           `json:"truncated"`
	Compared  int            `json:"compared"`
	Skipped   map[string]int `json:"skipped"`
	Undecided int            `json:"undecided"`
	Objects   int            `json:"objects"`
	Partial   int            `json:"partial_objects"`
	Outcomes  int            `json:"outcome_differences"`
	Rows      int            `json:"row_differences"`
}
