package main

import (
	"context"
	"errors"
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

type sendFlags struct {
	provider, endpoint, eventType, at, eventID, versions, file string
	traffic                                                    operator.Traffic
}

func (a *app) sendCommand() *cobra.Command {
	var s sendFlags
	c := a.onOperator(&cobra.Command{
		Use:   "send",
		Short: "Send signed sample events to an endpoint, as its provider would",
		Long: `Make sample events of an endpoint's provider, sign them with the endpoint's newest
trusted key, and post them to the front door.

The same command sends the same events again, which are then duplicates: what is
sent depends on the flags alone. Another --seed sends other events. Events of
different types with one seed are about the same object, so that a payment's
succeeded and processing belong together.

An event that was answered with a 5xx, or not at all, may not be stored. Its provider
would send it again, and so does this command, --retries times.

Latencies are counted from the time at which a request was due.`,
		Example: `  dakghar send --local --provider stripe --endpoint demo --type payment_intent.succeeded
  dakghar send --local --endpoint demo --type payment_intent.succeeded --count 500 --concurrency 64 --duplicates 500
  dakghar send --local --endpoint objects --type object.updated --versions 3,1,2
  dakghar send --local --endpoint demo --type payment_intent.succeeded --count 3000 --rate 300 --concurrency 64 --body-bytes 10240 --seed 7`,
	}, func(ctx context.Context, op *operator.Operator, _ []string) error {
		traffic, err := a.traffic(s)
		if err != nil {
			return err
		}
		sending, err := op.Prepare(ctx, traffic)
		if err != nil {
			return err
		}
		return a.send(ctx, sending, traffic)
	})
	s.register(c)
	return a.onStack(required(c, "endpoint"))
}

func (s *sendFlags) register(c *cobra.Command) {
	f, t := c.Flags(), &s.traffic
	f.StringVar(&s.provider, "provider", "", "the provider (default: the endpoint's)")
	f.StringVar(&s.endpoint, "endpoint", "", "the endpoint's id")
	f.StringVar(&s.eventType, "type", "", "the event type, in the provider's words")
	f.IntVar(&t.Count, "count", 0, "how many requests in all (default: one event and its copies)")
	f.IntVar(&t.Duplicates, "duplicates", 0, "how many more copies of each event are among them")
	f.StringVar(&s.versions, "versions", "", "send one event of one object for each of these versions, in this order: 3,1,2")
	f.BoolVar(&t.Shuffle, "shuffle", false, "mix the order")
	f.IntVar(&t.Concurrency, "concurrency", 1, "how many requests at once, at most")
	f.Float64Var(&t.Rate, "rate", 0, "requests a second, sent at their times whether or not earlier ones were answered (default: as fast as answers come)")
	f.IntVar(&t.Retries, "retries", 3, "how often to send again what was answered with a 5xx or not at all, after 250 ms and twice as long each time")
	f.Uint64Var(&t.Seed, "seed", 1, "number of the events: another seed, other events")
	f.IntVar(&t.BodyBytes, "body-bytes", 0, "pad bodies to this size")
	f.StringVar(&s.at, "at", "", "the event's time and the signed time: RFC 3339, or from now like -10m (default: the sample's, signed now)")
	f.StringVar(&s.eventID, "event-id", "", "the event's id (default: made from the seed)")
	f.StringVar(&t.ObjectID, "object-id", "", "the object's id (default: made from the seed)")
	f.StringVar(&t.State, "state", "", "the object's state, for types whose body says it")
	f.Int64Var(&t.Version, "version", 0, "the object's version")
	f.Int64Var(&t.Amount, "amount", 0, "the amount in minor units (default: the sample's)")
	f.StringVar(&t.Currency, "currency", "", "its currency (default: the sample's)")
	f.StringVar(&t.KeyVersion, "key-version", "", "sign with this version of the endpoint's secret, or its beginning (see secret list)")
	f.StringVar(&s.file, "secret-file", "", "sign with the secret in this file instead, - for standard input")
	f.StringVar(&t.URL, "url", "", "post to this address (default: the endpoint's)")
}

// traffic puts the flags together.
func (a *app) traffic(s sendFlags) (operator.Traffic, error) {
	t := s.traffic
	t.Provider, t.Endpoint, t.Type = webhook.Provider(s.provider), webhook.EndpointID(s.endpoint), webhook.EventType(s.eventType)
	t.EventID = s.eventID
	var err error
	if t.At, err = parseTime(s.at, a.now()); err != nil {
		return t, err
	}
	if t.Versions, err = parseVersions(s.versions); err != nil {
		return t, err
	}
	if s.file != "" {
		t.Secret, err = a.readSecret(s.file)
	}
	return t, err
}

func parseVersions(text string) ([]int64, error) {
	if text == "" {
		return nil, nil
	}
	var versions []int64
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, &operator.Refusal{
				Code: "usage", Usage: true, Problem: fmt.Sprintf("--versions %q: give whole numbers and commas, like 3,1,2", text),
			}
		}
		versions = append(versions, v)
	}
	return versions, nil
}

// listedMax bounds the requests that a person is shown one by one; of more than that
// the progress is told.
const listedMax = 10

func (a *app) send(ctx context.Context, sending *operator.Sending, t operator.Traffic) error {
	if !a.json {
		a.announce(sending)
	}
	progress, done := a.nowAndThen(), 0
	var last operator.Sent
	summary, err := sending.Run(ctx, func(sent operator.Sent) {
		done++
		last = sent
		a.showSent(sending, sent)
		if sending.Requests > listedMax {
			progress(func(after time.Duration) {
				a.notef("%d of %d requests answered after %s\n", done, sending.Requests, after)
			})
		}
	})
	if !a.json {
		if err := a.showSummary(summary); err != nil {
			return err
		}
		a.hint(sending, summary, last, t)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &operator.Refusal{Code: "interrupted", Problem: fmt.Sprintf("interrupted after %d of %d requests", summary.Sent, sending.Requests)}
	case err != nil:
		return err
	case len(summary.Refused) > 0:
		return errSaid
	}
	return nil
}

func (a *app) announce(s *operator.Sending) {
	signer := "key " + string(s.KeyVersion)
	if s.KeyVersion == "" {
		signer = "a secret of your own"
	}
	a.printf("Sending %s of %s to %s, signed with %s.\n", count(s.Requests, "request"), count(s.Events, "event"), s.URL, signer)
}

func (a *app) showSent(s *operator.Sending, sent operator.Sent) {
	if a.json {
		_ = a.printJSON(sentView{
			InboxID: word(sent.InboxID), EventID: string(sent.EventID), Result: sent.Result, Status: sent.Status,
			LatencyMS: millis(sent.Latency), Again: sent.Again, Error: cause(sent.Err),
		})
		return
	}
	if s.Requests > listedMax {
		return
	}
	why := ""
	if sent.Err != nil {
		why = ": " + sent.Err.Error()
	}
	a.printf("  %s  %s  %s  %s%s\n", statusOf(sent.Status), sent.Result, shown(string(sent.InboxID)), elapsed(sent.Latency), why)
}

// sentView is one request in JSON.
type sentView struct {
	InboxID   word    `json:"inbox_id"`
	EventID   string  `json:"event_id"`
	Result    string  `json:"result"`
	Status    int     `json:"status"`
	LatencyMS float64 `json:"latency_ms"`
	Again     int     `json:"sent_again,omitempty"`
	Error     string  `json:"error,omitempty"`
}

func cause(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func statusOf(status int) string {
	if status == 0 {
		return "---"
	}
	return number(status)
}

func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

func (a *app) showSummary(s operator.Summary) error {
	rows := [][]string{
		{"sent", number(s.Sent)}, {"accepted", number(s.Accepted)}, {"duplicates", number(s.Duplicates)},
	}
	if s.Again > 0 {
		rows = append(rows, []string{"sent again", number(s.Again)})
	}
	for _, status := range slices.Sorted(maps.Keys(s.Refused)) {
		rows = append(rows, []string{"refused, " + status, number(s.Refused[status])})
	}
	rows = append(rows,
		[]string{"latency p50", elapsed(s.P50)}, []string{"latency p95", elapsed(s.P95)}, []string{"latency p99", elapsed(s.P99)},
		[]string{"elapsed", elapsed(s.Elapsed)})
	return a.table("", rows)
}

// hint says what the result may have been meant for.
func (a *app) hint(s *operator.Sending, summary operator.Summary, last operator.Sent, t operator.Traffic) {
	var next []operator.Step
	if summary.Accepted == 0 && summary.Duplicates > 0 {
		next = append(next, operator.Step{Text: "these events were sent before; for new ones give another --seed"})
	}
	switch {
	case summary.Sent == 1 && last.InboxID != "":
		next = append(next, operator.Step{Text: "see what became of it:", Command: []string{"inbox", "show", string(last.InboxID)}})
	case summary.Accepted+summary.Duplicates > 0:
		next = append(next, operator.Step{Text: "see what became of them:", Command: []string{"inbox", "list", "--endpoint", string(t.Endpoint)}})
	}
	next = append(next, refusedSteps(summary.Refused, t.Endpoint, signer{own: s.KeyVersion == "", at: t.At})...)
	if len(next) > 0 {
		a.printf("Next:\n%s", a.steps(next))
	}
}

// signer is what a sender signed with: a secret of its own, a time of its own.
type signer struct {
	own bool
	at  time.Time
}

// refusedSteps say what refusals may mean, by their statuses.
func refusedSteps(refused map[string]int, endpoint webhook.EndpointID, by signer) []operator.Step {
	var next []operator.Step
	if refused["401"] > 0 {
		why := "the key was refused; see which are trusted:"
		switch {
		case by.own:
			why = "this secret is none that the endpoint trusts, or it does not take requests from here; see its keys:"
		case !by.at.IsZero():
			why = "the signed time was too far away (--at), or the key was refused; see which are trusted:"
		}
		next = append(next, operator.Step{Text: why, Command: []string{"secret", "list", "--endpoint", string(endpoint)}})
	}
	if refused["404"] > 0 {
		next = append(next, operator.Step{Text: "a new endpoint is known to every process within 30 s; then send again"})
	}
	if refused["503"] > 0 {
		next = append(next, operator.Step{Text: "a 503 says that an event may not be stored yet: send the same again, as a provider does"})
	}
	if refused["429"] > 0 {
		next = append(next, operator.Step{Text: "more than the endpoint's limit, or one address's; see the limit:", Command: []string{"endpoint", "show", string(endpoint)}})
	}
	return next
}
