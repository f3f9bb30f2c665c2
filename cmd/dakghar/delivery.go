package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/delivery"
	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

func (a *app) deliveryCommand() *cobra.Command {
	return a.onStack(a.group(&cobra.Command{
		Use:     "delivery",
		Short:   "See what partners were told, and do it again",
		Example: `  dakghar delivery list --local --subscription demo`,
	}, a.deliveryList(), a.deliveryDead(), a.deliveryShow(), a.deliveryAct(replayDelivery), a.deliveryAct(cancelDelivery), a.deliveryAct(resumeDelivery)))
}

// deliveryFilter are the flags that pick deliveries.
type deliveryFilter struct {
	subscription, kind, cause, since, until string
	statuses                                []string
}

func (f *deliveryFilter) add(c *cobra.Command, since string) {
	set := c.Flags()
	set.StringVar(&f.subscription, "subscription", "", "whose deliveries")
	set.StringVar(&f.kind, "type", "", `only events of this type or pattern: payment.succeeded, "payment.*"`)
	set.StringVar(&f.cause, "cause", "", "only those whose last error begins with this code")
	set.StringVar(&f.since, "since", since, "made since: how long ago (1h), a day (2026-03-01) or a time; of dead letters over all subscriptions, ended since")
	set.StringVar(&f.until, "until", "", "and until (default: now)")
}

func (f *deliveryFilter) status(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.statuses, "status", nil, "only deliveries in this state: PENDING, SENDING, RETRY, FAULTED, DELIVERED, DEAD, EXPIRED, CANCELLED; repeat it for several")
}

func (f *deliveryFilter) filter(now time.Time) (webhook.Filter, error) {
	w := webhook.Filter{Subscription: f.subscription, Statuses: states(f.statuses), Kind: f.kind, Cause: f.cause}
	var err error
	w.Since, w.Until, err = span(f.since, f.until, now)
	return w, err
}

func (a *app) deliveryList() *cobra.Command {
	var filter deliveryFilter
	c := a.listing(&cobra.Command{
		Use:   "list",
		Short: "List a subscription's deliveries, newest first",
		Long: `List a subscription's deliveries, the last that was made first. The list comes from an
index that is eventually consistent: a delivery of the last second may be missing.`,
		Example: `  dakghar delivery list --local --subscription demo
  dakghar delivery list --stack prod --subscription acme --status RETRY,FAULTED --since 6h --json`,
	}, &filter, "MADE", func(d delivery.Delivery) time.Time { return d.CreatedAt })
	filter.add(c, "24h")
	filter.status(c)
	return c
}

func (a *app) deliveryDead() *cobra.Command {
	filter := deliveryFilter{statuses: []string{string(delivery.Dead)}}
	c := a.listing(&cobra.Command{
		Use:   "dead",
		Short: "List dead letters of all subscriptions, the last that died first",
		Long: `List the deliveries that ended DEAD: their attempts are spent, or the partner's answer
was final. Nobody comes for them; "dakghar delivery replay" makes them once more.`,
		Example: `  dakghar delivery dead --local
  dakghar delivery dead --stack prod --since 168h --cause status_404 --ids`,
	}, &filter, "DIED", func(d delivery.Delivery) time.Time { return d.EndedAt })
	filter.add(c, "168h")
	return c
}

// listing finishes a command that lists deliveries.
func (a *app) listing(c *cobra.Command, filter *deliveryFilter, at string, of func(delivery.Delivery) time.Time) *cobra.Command {
	var (
		limit int
		ids   bool
	)
	c = a.command(c, func(ctx context.Context, _ []string) error {
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
		found, err := op.DeliveryList(ctx, operator.DeliveryQuery{Filter: f, Limit: limit})
		if err != nil {
			return err
		}
		return deliveries(at, of).within(limit, f.Since).print(a, found, ids)
	})
	c.Flags().IntVar(&limit, "limit", 50, "how many at most")
	c.Flags().BoolVar(&ids, "ids", false, "print the delivery ids alone, one a line")
	return c
}

// deliveries is how deliveries are listed, with one of their times.
func deliveries(at string, of func(delivery.Delivery) time.Time) list[delivery.Delivery] {
	return list[delivery.Delivery]{
		header: at + " SUBSCRIPTION STATUS ATTEMPTS ANSWER CAUSE TYPE DELIVERY_ID",
		row:    func(d delivery.Delivery) []string { return append([]string{when(of(d))}, deliveryColumns(d)...) },
		view:   func(d delivery.Delivery) any { return deliveryJSON(d) },
		id:     func(d delivery.Delivery) string { return string(d.ID) },
	}
}

// deliveryColumns are a delivery's columns behind its time.
func deliveryColumns(d delivery.Delivery) []string {
	answer := ""
	if d.LastStatus != 0 {
		answer = number(d.LastStatus)
	}
	return []string{string(d.Subscription), string(d.Status), number(d.AttemptCount), answer, d.LastError, d.Effect.Type, string(d.ID)}
}

func (a *app) deliveryShow() *cobra.Command {
	return a.onOperator(&cobra.Command{
		Use:   "show DELIVERY_ID",
		Short: "Show all that is kept about one delivery, its attempts, and what comes next",
		Long: `Show one delivery: its row, which never holds what was sent; each attempt, recorded
before it was sent, with the key that signed, the partner's answer and its beginning;
what operators did; and what comes next. An attempt without a result was abandoned:
its worker died, and it may have arrived.

The delivery id is the webhook-id that the partner sees.`,
		Example: `  dakghar delivery show dl_abcd2345 --local --json`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		story, err := op.Delivery(ctx, delivery.ID(args[0]))
		if err != nil {
			return err
		}
		return a.showDelivery(story)
	})
}

// deliveryDeed is one thing that an operator does to deliveries.
type deliveryDeed struct {
	use, short, long string
	do               func(*operator.Operator, context.Context, delivery.ID, string) (delivery.Delivery, error)
}

var (
	replayDelivery = deliveryDeed{"replay", "Make deliveries that have ended once more", `Make a delivery that has ended once more, with all its attempts: the same bytes, to the
subscription as it is today, under a new delivery id. The two are linked, so that
neither you nor the record takes one for the other; the partner sees a new webhook-id.
A delivery is replayed once; its replay can be replayed again.`, (*operator.Operator).ReplayDelivery}
	cancelDelivery = deliveryDeed{"cancel", "End deliveries that have not ended", `End a delivery that has not ended. An attempt that is under way may still arrive. It can
be replayed.`, (*operator.Operator).CancelDelivery}
	resumeDelivery = deliveryDeed{"resume", "Go on with deliveries that were set aside", `Go on with a FAULTED delivery, once what was missing is there: a signing key, a
credential, the event's bytes. Nothing was sent meanwhile.`, (*operator.Operator).ResumeDelivery}
)

func (a *app) deliveryAct(act deliveryDeed) *cobra.Command {
	var (
		bulk   bulkFlags
		filter deliveryFilter
		why    string
	)
	c := a.onOperator(&cobra.Command{
		Use:   act.use + " DELIVERY_ID...",
		Short: act.short,
		Long: act.long + `

With --all, do it to every delivery that matches: the plan is shown first, with a
sample and what it costs, and nothing is done before you say yes. Ctrl-C stops
between two deliveries; "dakghar job resume" goes on.

Who did it, and why, is recorded with each delivery (see audit list).`,
		Example: "  dakghar delivery " + act.use + ` dl_abcd2345 --local --reason "ticket 1234"
  dakghar delivery ` + act.use + ` --all --stack prod --subscription acme --since 6h --plan
  dakghar delivery ` + act.use + ` --all --stack prod --subscription acme --since 6h --reason "ticket 1234"`,
	}, func(ctx context.Context, op *operator.Operator, args []string) error {
		if bulk.all {
			return a.deliveriesInBulk(ctx, op, operator.Bulk{Act: "delivery " + act.use, Why: why, Rate: bulk.rate, PlanOnly: bulk.planOnly}, bulk, filter)
		}
		var failed error
		for _, id := range args {
			d, err := act.do(op, ctx, delivery.ID(id), why)
			if err == nil {
				err = a.showOneDelivery(d)
			}
			if err != nil && len(args) > 1 {
				a.printError(err) // the others are done all the same
				err = errSaid
			}
			failed = errors.Join(failed, err)
		}
		if len(args) > 1 && failed != nil {
			return errSaid
		}
		return failed
	})
	c.Args = bulk.orAll(c.Use, "delivery", "a delivery id", []string{"subscription", "status", "type", "cause", "since", "until"})
	f := c.Flags()
	f.BoolVar(&bulk.all, "all", false, "do it to every delivery that matches the flags below")
	f.StringVar(&why, "reason", "", "why, for the record; required with --all")
	filter.add(c, "168h")
	filter.status(c)
	bulk.job(c)
	f.Lookup("rate").Usage = "deliveries a second, at most"
	return c
}

// deliveriesInBulk plans, asks, and runs the job.
func (a *app) deliveriesInBulk(ctx context.Context, op *operator.Operator, b operator.Bulk, f bulkFlags, filter deliveryFilter) error {
	var err error
	if b.Filter, err = filter.filter(a.now()); err != nil {
		return err
	}
	plan, err := op.PlanDeliveries(ctx, b)
	if err != nil {
		return err
	}
	return a.doesPlanned(ctx, op, plan, f)
}

// showOneDelivery shows what an act has made of a delivery.
func (a *app) showOneDelivery(d delivery.Delivery) error {
	if a.json {
		return a.printJSON(deliveryJSON(d))
	}
	return a.table("", deliveryRows(d))
}

// showDelivery shows all that is kept about a delivery.
func (a *app) showDelivery(s operator.DeliveryStory) error {
	if a.json {
		v := deliveryStoryView{deliveryView: deliveryJSON(s.Row), Next: nextOf(s), Attempts: []attemptRowView{}, Acts: []actView{}}
		for _, t := range s.Attempts {
			v.Attempts = append(v.Attempts, attemptJSON(t))
		}
		for _, act := range s.Acts {
			v.Acts = append(v.Acts, actJSON(act))
		}
		return a.printJSON(v)
	}
	rows := append(deliveryRows(s.Row), []string{"to", targetText(s.Subscription.Target)}, []string{"next", nextOf(s)})
	if err := a.table("", rows); err != nil {
		return err
	}
	if err := a.attempts(s.Attempts); err != nil || len(s.Acts) == 0 {
		return err
	}
	a.printf("\nActs:\n")
	var acts [][]string
	for _, act := range slices.Backward(s.Acts) {
		acts = append(acts, []string{when(act.At), act.Name, act.Who, act.Job, act.Why})
	}
	return a.table("AT ACT WHO JOB WHY", acts)
}

func (a *app) attempts(all []delivery.Attempt) error {
	if len(all) == 0 {
		return nil
	}
	a.printf("\nAttempts:\n")
	var rows [][]string
	for _, t := range all {
		v := attemptJSON(t)
		status, took := "", ""
		if t.Status != 0 {
			status = number(t.Status)
		}
		if t.Result != delivery.Abandoned {
			took = t.Took.Round(time.Millisecond).String()
		}
		rows = append(rows, []string{number(t.N), when(t.At), v.Result, status, took, t.KeyID, t.Code, t.Answer})
	}
	return a.table("N AT RESULT STATUS TOOK KEY CAUSE ANSWER", rows)
}

// nextOf says what comes next, and when.
func nextOf(s operator.DeliveryStory) string {
	d := s.Row
	switch d.Status {
	case delivery.Pending, delivery.Retry:
		switch {
		case s.Subscription.State == delivery.Stopped:
			return "it is cancelled when its turn comes: its subscription is stopped"
		case s.Subscription.Holds(d):
			return "it waits while its subscription is " + string(s.Subscription.State) + ", and expires at " + when(d.Deadline)
		}
		return fmt.Sprintf("attempt %d at %s; it expires at %s", d.AttemptCount+1, when(d.NextAttemptAt), when(d.Deadline))
	case delivery.Sending:
		return "attempt " + number(d.AttemptCount) + " is under way; if its worker has died, another comes after " + when(d.LeaseUntil)
	case delivery.Faulted:
		return "nothing is sent until " + d.LastError + " is mended and it is resumed; it expires at " + when(d.Deadline)
	case delivery.Dead, delivery.Expired, delivery.Cancelled:
		if d.ReplayedAs != "" {
			return "nothing: it was replayed as " + string(d.ReplayedAs)
		}
		return "nothing, unless it is replayed"
	case delivery.Delivered:
	}
	return "nothing"
}

// deliveryRows is a delivery for a person: what it does not have is left out.
func deliveryRows(d delivery.Delivery) [][]string {
	answer := ""
	if d.LastStatus != 0 {
		answer = number(d.LastStatus)
	}
	rows := [][]string{
		{"delivery id", string(d.ID)}, {"status", string(d.Status)}, {"answer", answer}, {"last error", d.LastError}, {"subscription", string(d.Subscription)},
		{"tenant", string(d.Tenant)}, {"type", d.Effect.Type}, {"event", string(d.Effect.ID)}, {"inbox id", inboxOf(d)}, {"call", d.Effect.Call},
		{"replay of", string(d.ReplayOf)}, {"replayed as", string(d.ReplayedAs)},
		{"made", when(d.CreatedAt)}, {"next attempt", waitingUntil(d)}, {"lease until", when(d.LeaseUntil)}, {"deadline", when(d.Deadline)}, {"ended", when(d.EndedAt)},
		{"attempts", number(d.AttemptCount)}, {"fence", number(int(d.Fence))}, {"body", string(d.Effect.BodyID)}, {"body kept until", when(d.Effect.BodyExpiresAt)},
		{"payload hash", string(d.Effect.Digest)},
	}
	return filled(rows)
}

// inboxOf is the accepted event that a delivery goes back to; one that somebody
// else began has none.
func inboxOf(d delivery.Delivery) string {
	if !strings.HasPrefix(string(d.Effect.InboxID), "in_") {
		return ""
	}
	return string(d.Effect.InboxID)
}

func waitingUntil(d delivery.Delivery) string {
	if !d.Status.Waiting() {
		return ""
	}
	return when(d.NextAttemptAt)
}

// deliveryView is a delivery in JSON. Every member is always there, null when the
// row has none.
type deliveryView struct {
	DeliveryID     string `json:"delivery_id"`
	SubscriptionID string `json:"subscription_id"`
	Tenant         word   `json:"tenant"`
	Type           string `json:"type"`
	EventID        string `json:"event_id"`
	InboxID        word   `json:"inbox_id"`
	Call           word   `json:"call"`
	Generation     int    `json:"generation"`
	ReplayOf       word   `json:"replay_of"`
	ReplayedAs     word   `json:"replayed_as"`
	Status         string `json:"status"`
	Fence          int64  `json:"fence"`
	AttemptCount   int    `json:"attempt_count"`
	LastStatus     int    `json:"last_status"` // 0 where there was no answer
	LastError      word   `json:"last_error"`
	CreatedAt      stamp  `json:"created_at"`
	NextAttemptAt  stamp  `json:"next_attempt_at"`
	LeaseUntil     stamp  `json:"lease_until"`
	Deadline       stamp  `json:"deadline"`
	EndedAt        stamp  `json:"ended_at"`
	ExpiresAt      stamp  `json:"expires_at"`
	RawPayloadRef  word   `json:"raw_payload_ref"`
	PayloadHash    word   `json:"payload_hash"`
	BodyExpiresAt  stamp  `json:"body_expires_at"`
}

func deliveryJSON(d delivery.Delivery) deliveryView {
	v := deliveryView{
		DeliveryID: string(d.ID), SubscriptionID: string(d.Subscription), Tenant: word(d.Tenant), Type: d.Effect.Type, EventID: string(d.Effect.ID),
		InboxID: word(inboxOf(d)), Call: word(d.Effect.Call), Generation: d.Generation, ReplayOf: word(d.ReplayOf), ReplayedAs: word(d.ReplayedAs),
		Status: string(d.Status), Fence: int64(d.Fence), AttemptCount: d.AttemptCount, LastStatus: d.LastStatus, LastError: word(d.LastError),
		CreatedAt: stamp(d.CreatedAt), LeaseUntil: stamp(d.LeaseUntil), Deadline: stamp(d.Deadline), EndedAt: stamp(d.EndedAt), ExpiresAt: stamp(d.ExpiresAt),
		RawPayloadRef: word(d.Effect.BodyID), PayloadHash: word(d.Effect.Digest), BodyExpiresAt: stamp(d.Effect.BodyExpiresAt),
	}
	if d.Status.Waiting() {
		v.NextAttemptAt = stamp(d.NextAttemptAt)
	}
	return v
}

// deliveryStoryView is a delivery in JSON, with what stands beside it.
type deliveryStoryView struct {
	deliveryView

	Next     string           `json:"next"`
	Attempts []attemptRowView `json:"attempts"` // in order
	Acts     []actView        `json:"acts"`     // newest first
}

// attemptRowView is an attempt in JSON.
type attemptRowView struct {
	N         int     `json:"n"`
	At        stamp   `json:"at"`
	Result    string  `json:"result"` // abandoned where none was recorded
	Status    int     `json:"status"` // 0 without an answer
	Code      word    `json:"code"`
	TookS     float64 `json:"took_seconds"`
	KeyID     string  `json:"key_id"`
	Answer    word    `json:"answer"` // its beginning
	Redirects int     `json:"redirects"`
}

func attemptJSON(t delivery.Attempt) attemptRowView {
	result := string(t.Result)
	if t.Result == delivery.Abandoned {
		result = "abandoned"
	}
	return attemptRowView{t.N, stamp(t.At), result, t.Status, word(t.Code), t.Took.Seconds(), t.KeyID, word(t.Answer), t.Redirects}
}
