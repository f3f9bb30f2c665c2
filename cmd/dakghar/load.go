package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/capacity"
	"dakghar/internal/dynamo"
	"dakghar/internal/operator"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/webhook"
)

type loadFlags struct {
	provider, endpoint, eventType, mix, file string
	load                                     operator.Load
	patience                                 time.Duration
	sure                                     bool
}

func (a *app) loadCommand() *cobra.Command {
	var l loadFlags
	c := a.command(&cobra.Command{
		Use:   "load",
		Short: "Send events at a steady rate, and see that none was lost or applied twice",
		Long: `Send signed sample events of an endpoint at a steady rate, each at its time whether or
not the earlier ones were answered, so that a slow answer does not slow the sender down.
Latencies count from the time at which a request was due. Afterwards wait until every
acknowledged event is PROCESSED, and compare the rows and the ledgers: what was
acknowledged and has no row is lost, what was added twice is doubled.

It shows a plan and asks first: every event costs write units, on a deployed stack money.
Ctrl-C begins no more requests, waits for those under way, and reports.

With --url, --provider and --secret-file, and neither --local nor --stack, requests go to
that address, and what became of them is not looked at.

One process is a sender, and its machine a limit: requests that began late are counted,
and then the numbers are the sender's.`,
		Example: `  dakghar load --local --endpoint demo --type payment_intent.succeeded --rate 50 --duration 10s --yes
  dakghar load --stack prod --endpoint demo --type payment_intent.succeeded --rate 2000 --duration 5m --mix 2KiB:60,10KiB:35,1MiB:5 --duplicates 0.1 --shuffle
  dakghar load --url https://hooks.example.com/in/stripe/demo --provider stripe --secret-file secret.txt --endpoint demo --type payment_intent.succeeded --rate 10 --duration 1m`,
	}, func(ctx context.Context, _ []string) error { return a.load(ctx, l) })
	f, t := c.Flags(), &l.load
	f.StringVar(&l.endpoint, "endpoint", "", "the endpoint's id")
	f.StringVar(&l.provider, "provider", "", "the provider (default: the endpoint's)")
	f.StringVar(&l.eventType, "type", "", "the event type, in the provider's words")
	f.Float64Var(&t.Rate, "rate", 0, "requests a second")
	f.DurationVar(&t.Duration, "duration", 0, "how long to send, like 5m")
	f.StringVar(&l.mix, "mix", "", "sizes of bodies and their weights, like 2KiB:60,10KiB:35,1MiB:5 (default: the sample's own size)")
	f.Float64Var(&t.CopyRatio, "duplicates", 0, "share of the requests that send an earlier event once more, like 0.1")
	f.BoolVar(&t.Shuffle, "shuffle", false, "mix the order")
	f.IntVar(&t.InFlight, "in-flight", 1024, "requests that wait for an answer at once, at most")
	f.Uint64Var(&t.Seed, "seed", 0, "number of the events: the same seed sends the same events, which are duplicates then (default: from the clock)")
	f.StringVar(&t.KeyVersion, "key-version", "", "sign with this version of the endpoint's secret, or its beginning (see secret list)")
	f.StringVar(&l.file, "secret-file", "", "sign with the secret in this file instead, - for standard input")
	f.StringVar(&t.URL, "url", "", "post to this address (default: the endpoint's)")
	f.DurationVar(&l.patience, "wait", 2*time.Minute, "how long to wait until all is processed; 0 for not at all")
	f.BoolVar(&l.sure, "yes", false, "do not ask")
	return a.onStack(required(c, "endpoint", "rate", "duration"))
}

func (a *app) load(ctx context.Context, l loadFlags) error {
	t, err := a.loadOf(l)
	if err != nil {
		return err
	}
	op, stack, err := a.loadOperator(ctx, t)
	if err != nil {
		return err
	}
	loading, err := op.PrepareLoad(ctx, t)
	if err != nil {
		return err
	}
	if err := a.showLoadPlan(loading, t); err != nil {
		return err
	}
	if err := a.agreed(l.sure, fmt.Sprintf("Send %s to %s.", many(loading.Requests, "request"), loading.URL), "sent"); err != nil {
		return err
	}
	sent, err := loading.Run(ctx, a.loadProgress(fmt.Sprintf("of %d requests answered", loading.Requests)))
	if shown := a.showLoaded(sent); shown != nil {
		return shown
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &operator.Refusal{Code: "interrupted", Problem: fmt.Sprintf("interrupted after %d of %d requests; all of those were waited for", sent.Sent, loading.Requests)}
	case err != nil:
		return err
	}
	ok := len(sent.Refused) == 0
	if stack && l.patience > 0 {
		settled, err := loading.Settle(ctx, sent, l.patience, a.loadProgress("events are open"))
		switch {
		case err != nil && ctx.Err() != nil:
			return &operator.Refusal{Code: "interrupted", Problem: "interrupted while it waited for the events: all were sent, and what became of them is not known here"}
		case err != nil:
			return err
		}
		if err := a.showSettled(settled); err != nil {
			return err
		}
		ok = ok && settled.OK()
	}
	if ok {
		return nil
	}
	if next := refusedSteps(sent.Refused, t.Endpoint, signer{own: loading.KeyVersion == ""}); !a.json && len(next) > 0 {
		a.printf("Next:\n%s", a.steps(next))
	}
	return errSaid
}

// loadOf puts the flags together.
func (a *app) loadOf(l loadFlags) (operator.Load, error) {
	t := l.load
	t.Provider, t.Endpoint, t.Type = webhook.Provider(l.provider), webhook.EndpointID(l.endpoint), webhook.EventType(l.eventType)
	if t.Seed == 0 {
		t.Seed = uint64(max(1, a.now().UnixMilli()))
	}
	var err error
	if t.Mix, err = parseMix(l.mix); err != nil {
		return t, err
	}
	if l.file != "" {
		t.Secret, err = a.readSecret(l.file)
	}
	return t, err
}

// loadOperator connects to a stack, or to none where an address and a secret are all
// that is known; then what became of the events cannot be seen.
func (a *app) loadOperator(ctx context.Context, t operator.Load) (*operator.Operator, bool, error) {
	if a.target.local || a.target.stack != "" || t.URL == "" {
		op, err := a.operator(ctx)
		return op, true, err
	}
	if t.Provider == "" || t.Secret.Empty() {
		return nil, false, &operator.Refusal{
			Code: "usage", Usage: true, Problem: "an address alone does not say how to sign: add --provider and --secret-file, or name the stack with --local or --stack NAME",
		}
	}
	op, err := a.senderAlone()
	return op, false, err
}

// parseMix reads sizes with weights: "2KiB:60,10240:35,1MiB:5".
func parseMix(text string) ([]operator.BodyShare, error) {
	if text == "" {
		return nil, nil
	}
	var mix []operator.BodyShare
	for part := range strings.SplitSeq(text, ",") {
		size, weight, weighted := strings.Cut(strings.TrimSpace(part), ":")
		share := operator.BodyShare{Weight: 1}
		var err error
		if weighted {
			share.Weight, err = strconv.Atoi(weight)
		}
		bytes, parsed := parseBytes(size)
		if share.Bytes = bytes; err != nil || !parsed {
			return nil, &operator.Refusal{
				Code: "usage", Usage: true, Problem: fmt.Sprintf("--mix %q: give sizes with weights, like 2KiB:60,10KiB:35,1MiB:5", text),
			}
		}
		mix = append(mix, share)
	}
	return mix, nil
}

func parseBytes(text string) (int, bool) {
	unit := 1
	for suffix, u := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = rest, u
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || n*float64(unit) > provider.BodyBytesMax+1 {
		return 0, false
	}
	return int(n * float64(unit)), true
}

// Samples are filled with digests, which become half as large or, at some sizes, not
// smaller at all.
const sampleCompression = 1

// loadUnits are the write units of a load: at most, since a copy costs none at the
// process that remembers its event.
func loadUnits(l *operator.Loading) int {
	total := 0.0
	for _, s := range l.Sizes {
		c := capacity.Defaults()
		c.BodyKiB, c.Compression = float64(s.Bytes)/1024, sampleCompression
		once, _ := c.PerEvent()
		c.Copies = 1
		twice, _ := c.PerEvent()
		total += once*float64(s.Events) + (twice-once)*float64(s.Copies)
	}
	return int(total)
}

// loadPlanView is the plan in JSON.
type loadPlanView struct {
	Record     string     `json:"record"` // "plan"
	URL        string     `json:"url"`
	KeyVersion word       `json:"key_version"`
	Requests   int        `json:"requests"`
	Events     int        `json:"events"`
	Bytes      int64      `json:"bytes"`
	Rate       float64    `json:"rate"`
	DurationS  float64    `json:"duration_seconds"`
	Seed       uint64     `json:"seed"`
	Units      int        `json:"write_units_most"`
	USD        dollars    `json:"usd_write_units"`
	Sizes      []sizeView `json:"sizes"`
}

type sizeView struct {
	Bytes  int `json:"bytes"`
	Events int `json:"events"`
	Copies int `json:"copies"`
}

func (a *app) showLoadPlan(l *operator.Loading, t operator.Load) error {
	units := loadUnits(l)
	price := dollars(float64(units) * capacity.ListPrices().WriteUnit())
	if a.json {
		v := loadPlanView{
			Record: "plan", URL: l.URL, KeyVersion: word(l.KeyVersion), Requests: l.Requests, Events: l.Events, Bytes: l.Bytes(), Rate: t.Rate,
			DurationS: t.Duration.Seconds(), Seed: t.Seed, Units: units, USD: price, Sizes: []sizeView{},
		}
		for _, s := range l.Sizes {
			v.Sizes = append(v.Sizes, sizeView(s))
		}
		return a.printJSON(v)
	}
	rows := [][]string{
		{"to", l.URL}, {"sends", many(l.Requests, "request") + " of " + many(l.Events, "event")},
		{"rate", fmt.Sprintf("%g a second for %s", t.Rate, operator.Span(t.Duration))}, {"bytes", grouped(strconv.FormatInt(l.Bytes(), 10))},
		{"cost", fmt.Sprintf("at most %s write units with the built-in handlers, $%s at us-east-1's list price, and what requests cost", grouped(strconv.Itoa(units)), quantity(price))},
		{"seed", strconv.FormatUint(t.Seed, 10)},
	}
	for _, s := range l.Sizes {
		rows = append(rows, []string{grouped(strconv.Itoa(s.Bytes)) + " bytes", many(s.Events, "event") + ", " + many(s.Copies, "copy")})
	}
	return a.table("", rows)
}

// many is [count] for great numbers.
func many(n int, thing string) string {
	return strings.Replace(count(n, thing), strconv.Itoa(n), grouped(strconv.Itoa(n)), 1)
}

// loadProgress tells how far it has come, now and then, beside the output.
func (a *app) loadProgress(what string) func(int) {
	progress := a.nowAndThen()
	return func(n int) {
		progress(func(after time.Duration) { a.notef("%d %s after %s\n", n, what, after) })
	}
}

// loadedView is what was answered, in JSON.
type loadedView struct {
	Record       string         `json:"record"` // "sent"
	Sent         int            `json:"sent"`
	Accepted     int            `json:"accepted"`
	Duplicates   int            `json:"duplicates"`
	Statuses     map[string]int `json:"statuses"`
	Acknowledged int            `json:"acknowledged_events"`
	Unnamed      int            `json:"acknowledged_without_id"`
	P50          float64        `json:"p50_ms"`
	P95          float64        `json:"p95_ms"`
	P99          float64        `json:"p99_ms"`
	P999         float64        `json:"p999_ms"`
	Max          float64        `json:"max_ms"`
	Late         int            `json:"began_late"`
	LateMost     float64        `json:"began_late_most_ms"`
	ElapsedS     float64        `json:"elapsed_seconds"`
}

func (a *app) showLoaded(l operator.Loaded) error {
	if a.json {
		return a.printJSON(loadedView{
			Record: "sent", Sent: l.Sent, Accepted: l.Accepted, Duplicates: l.Duplicates, Statuses: l.Statuses, Acknowledged: l.Acknowledged(), Unnamed: l.Unnamed,
			P50: millis(l.P50), P95: millis(l.P95), P99: millis(l.P99), P999: millis(l.P999), Max: millis(l.Max),
			Late: l.Late, LateMost: millis(l.LateMost), ElapsedS: l.Elapsed.Round(time.Millisecond).Seconds(),
		})
	}
	rows := [][]string{{"sent", number(l.Sent)}, {"accepted", number(l.Accepted)}, {"duplicates", number(l.Duplicates)}}
	for _, status := range slices.Sorted(maps.Keys(l.Statuses)) {
		rows = append(rows, []string{"answered " + status, number(l.Statuses[status])})
	}
	rows = append(rows,
		[]string{"latency from the due time", fmt.Sprintf("p50 %s, p95 %s, p99 %s, p99.9 %s, most %s", elapsed(l.P50), elapsed(l.P95), elapsed(l.P99), elapsed(l.P999), elapsed(l.Max))},
		[]string{"elapsed", elapsed(l.Elapsed)})
	if l.Late > 0 {
		rows = append(rows, []string{"began late", fmt.Sprintf("%s, by %s at most: the sender was too slow, or --in-flight too small", count(l.Late, "request"), elapsed(l.LateMost))})
	}
	if l.Unnamed > 0 {
		rows = append(rows, []string{"without an id", number(l.Unnamed) + " acknowledgements name no row and are not looked for"})
	}
	return a.table("", rows)
}

// settledView is what became of the events, in JSON.
type settledView struct {
	Record       string                 `json:"record"` // "settled"
	Acknowledged int                    `json:"acknowledged_events"`
	ByStatus     map[webhook.Status]int `json:"by_status"`
	Lost         []webhook.InboxID      `json:"lost"`
	Ledgers      int                    `json:"ledgers_compared"`
	Doubled      []webhook.InboxID      `json:"doubled"`
	Unapplied    []webhook.InboxID      `json:"in_no_ledger"`
	P50          float64                `json:"processed_p50_ms"`
	P99          float64                `json:"processed_p99_ms"`
	WaitedS      float64                `json:"waited_seconds"`
}

func (a *app) showSettled(s operator.Settled) error {
	if a.json {
		ids := func(l []webhook.InboxID) []webhook.InboxID { return append([]webhook.InboxID{}, l...) }
		return a.printJSON(settledView{
			Record: "settled", Acknowledged: s.Acknowledged, ByStatus: s.ByStatus, Lost: ids(s.Lost), Ledgers: s.Accounts, Doubled: ids(s.Doubled),
			Unapplied: ids(s.Unapplied), P50: millis(s.P50), P99: millis(s.P99), WaitedS: s.Waited.Round(time.Millisecond).Seconds(),
		})
	}
	rows := [][]string{
		{"acknowledged", count(s.Acknowledged, "event")}, {"by status", counts(s.ByStatus)}, {"lost", some(s.Lost)},
		{"from receipt to PROCESSED", fmt.Sprintf("p50 %s, p99 %s", elapsed(s.P50), elapsed(s.P99))},
	}
	if s.Accounts == 0 {
		rows = append(rows, []string{"doubled", "not known: these events are in no ledger"})
	} else {
		rows = append(rows, []string{"doubled", some(s.Doubled)}, []string{"in no ledger", some(s.Unapplied)}, []string{"ledgers compared", number(s.Accounts)})
	}
	return a.table("", append(rows, []string{"waited", elapsed(s.Waited)}))
}

// some shows how many ids there are, and the first of them.
func some(ids []webhook.InboxID) string {
	const shownMax = 5
	switch {
	case len(ids) == 0:
		return "0"
	case len(ids) <= shownMax:
		return number(len(ids)) + ": " + joined(ids)
	}
	return number(len(ids)) + ": " + joined(ids[:shownMax]) + ", …"
}

// nowhere is the registry of somebody who knows no stack.
type nowhere struct{ operator.Registry }

// Endpoint knows none.
func (nowhere) Endpoint(context.Context, webhook.EndpointID) (webhook.Endpoint, bool, error) {
	return webhook.Endpoint{}, false, nil
}

// senderAlone is an operator without a stack: it can sign and send.
func (a *app) senderAlone() (*operator.Operator, error) {
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		return nil, err
	}
	return &operator.Operator{Registry: nowhere{}, Sender: newSender(), Providers: providers, Now: a.now, Wait: dynamo.Sleep, Mixed: permutation}, nil
}

func permutation(seed uint64, n int) []int {
	return mathrand.New(mathrand.NewPCG(seed, 0)).Perm(n) //nolint:gosec // an order to be repeated, not a secret
}
