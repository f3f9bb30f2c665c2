package main

import (
	"context"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) inboxCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:     "inbox",
		Short:   "See accepted events and what became of them",
		Example: `  dakghar inbox list --local --endpoint demo`,
	}, a.inboxList(), a.inboxShow(), a.inboxAct(replayAct), a.inboxAct(releaseAct), a.inboxAct(holdAct), a.inboxAct(failAct)))
}

func (a *app) inboxList() *cobra.Command {
	var (
		filter filterFlags
		limit  int
		ids    bool
	)
	c := a.command(&cobra.Command{
		Use:   "list",
		Short: "List accepted events, newest first",
		Long: `List accepted events, of one endpoint or of all, the last received first. With
--status FAILED alone, list the failed events, the last failed first.

The list comes from an index that is eventually consistent: an event of the last
second may be missing. What is shown of each is its row as it stands.`,
		Example: `  dakghar inbox list --local --endpoint demo
  dakghar inbox list --local --endpoint demo --status RETRY --since 1h --json
  dakghar inbox list --stack prod --status FAILED --since 168h --cause partner_503
  dakghar inbox list --stack prod --kind payment.succeeded --since 2026-03-01 --until 2026-03-02
  dakghar inbox list --stack prod --status FAILED --limit 1 --ids`,
	}, func(ctx context.Context, _ []string) error {
		if err := a.idsAlone(ids); err != nil {
			return err
		}
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		f, err := filter.filter(a.now())
		if err != nil {
			return err
		}
		events, err := op.Events(ctx, operator.Events{Filter: f, Limit: limit})
		if err != nil {
			return err
		}
		return list[webhook.Inbox]{
			header: "RECEIVED ENDPOINT STATUS OUTCOME TYPE OBJECT INBOX_ID",
			row:    func(row webhook.Inbox) []string { return append([]string{when(row.ReceivedAt)}, eventColumns(row)...) },
			view:   func(row webhook.Inbox) any { return eventJSON(row) },
			id:     func(row webhook.Inbox) string { return string(row.ID) },
		}.within(limit, f.Since).print(a, events, ids)
	})
	filter.add(c, "24h")
	c.Flags().IntVar(&limit, "limit", 50, "how many at most")
	c.Flags().BoolVar(&ids, "ids", false, "print the inbox ids alone, one a line")
	return c
}

// eventColumns are an event's columns behind its time.
func eventColumns(row webhook.Inbox) []string {
	return []string{string(row.Endpoint), string(row.Status), string(row.Outcome), string(row.EventType), row.ObjectID, string(row.ID)}
}

func (a *app) inboxShow() *cobra.Command {
	var (
		raw bool
		why string
	)
	c := a.command(&cobra.Command{
		Use:   "show INBOX_ID",
		Short: "Show all that is kept about one event, or its raw bytes",
		Long: `Show one accepted event: its row, which never holds the payload; its outbox row, the
promise that somebody comes for it; its processed mark, the proof that it was
applied; and what operators did to it. With --body, write the raw bytes as they
were signed to standard output, and nothing else; who asked for them, and why, is
recorded first.`,
		Example: `  dakghar inbox show in_abcd2345 --local --json
  dakghar inbox show in_abcd2345 --stack prod --body --reason "ticket 1234" > body.json`,
	}, func(ctx context.Context, args []string) error {
		if raw && a.json {
			return &operator.Refusal{Code: "usage", Usage: true, Problem: "--body writes raw bytes, --json the row: choose one"}
		}
		op, err := a.operator(ctx)
		if err != nil {
			return err
		}
		id := webhook.InboxID(args[0])
		if raw {
			bytes, err := op.Body(ctx, id, why)
			if err != nil {
				return err
			}
			_, err = a.out.Write(bytes)
			return err
		}
		story, err := op.Story(ctx, id)
		if err != nil {
			return err
		}
		return a.showStory(story)
	})
	c.Flags().BoolVar(&raw, "body", false, "write the raw bytes (recorded)")
	c.Flags().StringVar(&why, "reason", "", "why, for the record of --body")
	return c
}

// eventAct is one thing that an operator does to events.
type eventAct struct {
	use, short, long string
	do               func(*operator.Operator, context.Context, webhook.InboxID, string) (webhook.Inbox, error)
}

var (
	replayAct = eventAct{"replay", "Work on failed events again", `Let a FAILED event be worked on again, with all its attempts. It is refused
where the event was applied, and where its body would not last another day.

With --reprocess HANDLER, let a PROCESSED event be applied once more. That is refused
unless the handler of its object declares, under this name, that a second run is
harmless; the built-in ones do not, since they add to a ledger.`, (*operator.Operator).Replay}
	releaseAct = eventAct{"release", "Let held events be worked on", `Let a HELD event be worked on: one that you held, or one that repeats a known
event id with another body. Look at it first: it is applied as an event of its own.`, (*operator.Operator).Release}
	holdAct = eventAct{"hold", "Take open events out of the work", `Take an open event out of the work until you release it. A worker that has it
loses its claim, and what it does is not written.`, (*operator.Operator).Hold}
	failAct = eventAct{"fail", "End open events as failed", `End an open or held event as FAILED. It can be replayed.`, (*operator.Operator).Fail}
)

func (a *app) inboxAct(act eventAct) *cobra.Command {
	var (
		why, handler string
		bulk         bulkFlags
	)
	c := a.onOperator(&cobra.Command{
		Use:   act.use + " INBOX_ID",
		Short: act.short,
		Long: act.long + `

With --all, do it to every event that matches: the plan is shown first, with a
sample and what it costs, and nothing is done before you say yes. Ctrl-C stops
between two events; "dakghar job resume" goes on.

Who did it, and why, is recorded with each event (see audit list).`,
		Example: "  dakghar inbox " + act.use + ` in_abcd2345 --local --reason "ticket 1234"
  dakghar inbox ` + act.use + ` --all --stack prod --endpoint live --since 6h --plan
  dakghar inbox ` + act.use + ` --all --stack prod --endpoint live --since 6h --reason "ticket 1234"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		if bulk.all {
			return a.actOnAll(ctx, op, operator.Bulk{Act: "inbox " + act.use, Handler: handler, Why: why, Rate: bulk.rate, PlanOnly: bulk.planOnly}, bulk)
		}
		do := act.do
		if handler != "" {
			do = func(o *operator.Operator, ctx context.Context, id webhook.InboxID, why string) (webhook.Inbox, error) {
				return o.Reprocess(ctx, id, handler, why)
			}
		}
		row, err := do(op, ctx, webhook.InboxID(args[0]), why)
		if err != nil {
			return err
		}
		return a.showEvent(row)
	})
	c.Args = bulk.orAll(c.Use, "event", "an inbox id", filterNames())
	c.Flags().StringVar(&why, "reason", "", "why, for the record; required with --all")
	if act.use == "replay" {
		c.Flags().StringVar(&handler, "reprocess", "", "run PROCESSED events again, whose handler declares itself safe under this name")
	}
	bulk.add(c)
	return c
}

// actOnAll plans, asks, and runs the job.
func (a *app) actOnAll(ctx context.Context, op *operator.Operator, b operator.Bulk, f bulkFlags) error {
	object := b.Filter.Object
	filter, err := f.filter.filter(a.now())
	if err != nil {
		return err
	}
	b.Filter, b.Filter.Object = filter, object
	plan, err := op.PlanBulk(ctx, b)
	if err != nil {
		return err
	}
	return a.doesPlanned(ctx, op, plan, f)
}

// eventView is an inbox row in JSON. Every member is always there, null when the
// row has none.
type eventView struct {
	InboxID              string `json:"inbox_id"`
	Provider             string `json:"provider"`
	EndpointID           string `json:"endpoint_id"`
	Tenant               word   `json:"tenant"`
	ProviderEventID      string `json:"provider_event_id"`
	EventType            word   `json:"event_type"`
	ObjectID             word   `json:"object_id"`
	ObjectVersion        word   `json:"object_version"`
	Status               string `json:"status"`
	Outcome              word   `json:"outcome"`
	AttemptCount         int    `json:"attempt_count"`
	Fence                int64  `json:"fence"`
	Run                  int    `json:"run"`
	MatchedSecretVersion word   `json:"matched_secret_version"`
	ProviderCreatedAt    stamp  `json:"provider_created_at"`
	ReceivedAt           stamp  `json:"received_at"`
	ProcessedAt          stamp  `json:"processed_at"`
	NextAttemptAt        stamp  `json:"next_attempt_at"`
	LeaseUntil           stamp  `json:"lease_until"`
	LastError            word   `json:"last_error"`
	RawPayloadRef        word   `json:"raw_payload_ref"`
	PayloadHash          word   `json:"payload_hash"`
	BodyExpiresAt        stamp  `json:"body_expires_at"`
	ExpiresAt            stamp  `json:"expires_at"`
	SameBodyAs           word   `json:"same_body_as"`
	ConflictWith         word   `json:"conflict_with"`
	Uncovered            bool   `json:"uncovered"`
	ErasedAt             stamp  `json:"erased_at"`
	LegalHold            bool   `json:"legal_hold"`
}

func eventJSON(r webhook.Inbox) eventView {
	return eventView{
		InboxID: string(r.ID), Provider: string(r.Provider), EndpointID: string(r.Endpoint), Tenant: word(r.Tenant),
		ProviderEventID: string(r.EventID), EventType: word(r.EventType), ObjectID: word(r.ObjectID), ObjectVersion: word(r.ObjectVersion),
		Status: string(r.Status), Outcome: word(r.Outcome), AttemptCount: r.AttemptCount, Fence: int64(r.Fence), Run: r.Run,
		MatchedSecretVersion: word(r.MatchedVersion), ProviderCreatedAt: stamp(r.ProviderCreatedAt), ReceivedAt: stamp(r.ReceivedAt),
		ProcessedAt: stamp(r.ProcessedAt), NextAttemptAt: stamp(r.NextAttemptAt), LeaseUntil: stamp(r.LeaseUntil), LastError: word(r.LastError),
		RawPayloadRef: word(r.BodyID), PayloadHash: word(r.Digest), BodyExpiresAt: stamp(r.BodyExpiresAt), ExpiresAt: stamp(r.ExpiresAt),
		SameBodyAs: word(r.SameBodyAs), ConflictWith: word(r.ConflictWith), Uncovered: r.Uncovered,
		ErasedAt: stamp(r.ErasedAt), LegalHold: r.LegalHold,
	}
}

// nextAttempt is when an event that waits is due: the time stays on the row of one
// that does not, where it would be read as a plan.
func nextAttempt(r webhook.Inbox) string {
	if !r.Status.Waiting() && r.Status != webhook.Parked {
		return ""
	}
	return when(r.NextAttemptAt)
}

// eventRows is an inbox row for a person: what it does not have is left out.
func eventRows(r webhook.Inbox) [][]string {
	legalHold := ""
	if r.LegalHold {
		legalHold = "yes"
	}
	return filled([][]string{
		{"inbox id", string(r.ID)}, {"status", string(r.Status)}, {"outcome", string(r.Outcome)}, {"last error", r.LastError},
		{"provider", string(r.Provider)}, {"endpoint", string(r.Endpoint)}, {"tenant", string(r.Tenant)},
		{"event", string(r.EventID)}, {"type", string(r.EventType)}, {"object", r.ObjectID}, {"version", r.ObjectVersion},
		{"created", when(r.ProviderCreatedAt)}, {"received", when(r.ReceivedAt)}, {"processed", when(r.ProcessedAt)},
		{"next attempt", nextAttempt(r)}, {"lease until", when(r.LeaseUntil)},
		{"attempts", number(r.AttemptCount)}, {"fence", number(int(r.Fence))},
		{"key", string(r.MatchedVersion)}, {"body", string(r.BodyID)}, {"body kept until", when(r.BodyExpiresAt)}, {"payload hash", string(r.Digest)},
		{"same body as", string(r.SameBodyAs)}, {"conflict with", string(r.ConflictWith)},
		{"erased", when(r.ErasedAt)}, {"legal hold", legalHold},
	})
}
