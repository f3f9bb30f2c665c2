package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"dakghar/internal/capacity"
	"dakghar/internal/operator"
)

// pricesFileMax bounds a file of prices.
const pricesFileMax = 1 << 20

func (a *app) capacityCommand() *cobra.Command {
	load := capacity.Defaults()
	var file string
	var only []string
	var show bool
	c := a.command(&cobra.Command{
		Use:   "capacity",
		Short: "Compute what a rate of events asks of an account, and what it costs",
		Long: `Compute what a rate of events asks for: write units by stage and table, warm throughput,
Lambda concurrency, processor time, calls, storage, the quotas to raise, and the bill at
list prices without free tiers or discounts. It asks no service.

Units are those that the tests count. Times are yours to measure: the defaults of
--ingress-ms, --relay-ms, --process-ms and --partner-ms are assumptions, and Lambda's
concurrency and price follow from them.

--rps is the peak, for which quotas and tables must suffice; --average-rps what is paid
for, the peak all month long unless given.`,
		Example: `  dakghar capacity --rps 2000 --body-kib 10
  dakghar capacity --rps 2000 --only table,quota
  dakghar capacity --rps 2000 --average-rps 200 --subscriptions 2 --retry-ratio 0.05
  dakghar capacity --rps 500 --body-kib 200 --compression 1.5 --json
  dakghar capacity --print-prices > eu-west-1.json
  dakghar capacity --rps 500 --region-prices eu-west-1.json`,
	}, func(context.Context, []string) error {
		if show {
			_, err := a.out.Write(capacity.PricesFile())
			return err
		}
		if err := load.Check(); err != nil {
			return &operator.Refusal{Code: "usage", Usage: true, Problem: err.Error()}
		}
		prices, err := readPrices(file)
		if err != nil {
			return &operator.Refusal{
				Code: "prices_file", Problem: err.Error(),
				Next: []operator.Step{{Text: "begin with the prices of us-east-1: dakghar capacity --print-prices > FILE"}},
			}
		}
		shown, err := chosen(sections(capacity.Estimate(load, prices)), only)
		if err != nil {
			return err
		}
		return a.showCapacity(shown)
	})
	f := c.Flags()
	f.StringVar(&file, "region-prices", "", "file of another region's prices, as --print-prices prints them (default: us-east-1's)")
	f.StringSliceVar(&only, "only", nil, "print only these tables: units, table, function, cpu, calls, storage, burst, quota, cost")
	f.BoolVar(&show, "print-prices", false, "print the prices that are used, with their sources, and nothing else")
	for _, x := range []struct {
		at          *float64
		name, usage string
	}{
		{&load.RPS, "rps", "new events a second, at the peak"},
		{&load.AverageRPS, "average-rps", "new events a second over the month (default: the peak)"},
		{&load.BodyKiB, "body-kib", "size of a body"},
		{&load.Compression, "compression", "how many times smaller a body becomes: 4.2 is a payment's, 1.9 one that is half digests"},
		{&load.InlineKiB, "inline-kib", "sealed size up to which a body stays in its table (BodyInlineBytes)"},
		{&load.BusinessRows, "business-rows", "rows that the handler writes for an event; the built-in ones write 3"},
		{&load.Copies, "copies", "how often a provider sends an event once more, on average"},
		{&load.RetryRatio, "retry-ratio", "how often an event, and a delivery, is tried once more, on average"},
		{&load.Subscriptions, "subscriptions", "partners that are told of an event"},
		{&load.EffectKiB, "effect-kib", "size of what they are told"},
		{&load.Endpoints, "endpoints", "endpoints, each with a secret of its own"},
		{&load.Regions, "regions", "regions that the tables are replicated to, the first included"},
		{&load.IngressMS, "ingress-ms", "time of ingress for a request"},
		{&load.RelayMS, "relay-ms", "time of the relay for a batch"},
		{&load.ProcessMS, "process-ms", "time of the processor for a batch"},
		{&load.PartnerMS, "partner-ms", "time that a partner takes to answer"},
		{&load.StreamBatch, "stream-batch", "records that the relay gets at once, on average; at most 100"},
		{&load.QueueBatch, "queue-batch", "messages that a worker gets at once, on average; at most 10"},
		{&load.BodyDays, "body-days", "days that bodies are kept (BodyDays)"},
		{&load.InboxDays, "inbox-days", "days that events are remembered (InboxDays)"},
		{&load.LogDays, "log-days", "days that logs are kept (LogDays)"},
		{&load.BusinessMonths, "business-months", "months of business rows that are counted: they are kept for ever"},
	} {
		f.Float64Var(x.at, x.name, *x.at, x.usage)
	}
	return c
}

func readPrices(file string) (capacity.Prices, error) {
	if file == "" {
		return capacity.ListPrices(), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return capacity.Prices{}, fmt.Errorf("the file of prices cannot be read: %w", err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, pricesFileMax))
	if err != nil {
		return capacity.Prices{}, fmt.Errorf("the file of prices cannot be read: %w", err)
	}
	return capacity.ParsePrices(raw)
}

// capacitySection is one table of the report.
type capacitySection struct {
	record string // of its lines in JSON
	title  string
	// columns name the fields in JSON; those of headings are shown, in their order.
	columns, headings []string
	rows              [][]any
}

// chosen leaves out the sections that are not asked for.
func chosen(all []capacitySection, only []string) ([]capacitySection, error) {
	if len(only) == 0 {
		return all, nil
	}
	var names []string
	for _, s := range all {
		names = append(names, s.record)
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, &operator.Refusal{Code: "usage", Usage: true, Problem: fmt.Sprintf("--only %q: there is %s", name, strings.Join(names, ", "))}
		}
	}
	return slices.DeleteFunc(all, func(s capacitySection) bool { return !slices.Contains(only, s.record) }), nil
}

func (a *app) showCapacity(all []capacitySection) error {
	for i, s := range all {
		if a.json {
			if err := a.capacityJSON(s); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			a.printf("\n")
		}
		a.printf("%s\n", s.title)
		rows := [][]string{}
		for _, row := range append([][]any{heading(s.headings)}, s.rows...) {
			shown := make([]string, len(row))
			for i, v := range row {
				shown[i] = quantity(v)
			}
			shown[0] = "  " + shown[0]
			rows = append(rows, shown)
		}
		if err := a.table("", rows); err != nil {
			return err
		}
	}
	return nil
}

func heading(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

func (a *app) capacityJSON(s capacitySection) error {
	for _, row := range s.rows {
		line := map[string]any{"record": s.record}
		for i, v := range row {
			if n, ok := v.(float64); ok {
				v = rounded(n)
			}
			line[s.columns[i]] = v
		}
		if err := a.printJSON(line); err != nil {
			return err
		}
	}
	return nil
}

// sections lay a report out.
func sections(r capacity.Report) []capacitySection {
	return []capacitySection{workSection(r), tableSection(r), functionSection(r), cpuSection(r), callSection(r), storedSection(r), burstSection(r), quotaSection(r), costSection(r)}
}

func workSection(r capacity.Report) capacitySection {
	s := capacitySection{
		record: "units", title: "Units of one event, by stage",
		columns:  []string{"stage", "table", "write_units", "index_write_units", "read_units", "times_per_event", "what"},
		headings: []string{"stage", "table", "write", "of it index", "read", "times", "what"},
	}
	index := 0.0
	for _, w := range r.Work {
		s.rows = append(s.rows, []any{string(w.Stage), string(w.Table), w.Write, w.Index, w.Read, w.Times, w.What})
		index += w.Index * w.Times
	}
	s.rows = append(s.rows, []any{"all", "all", r.Write, index, r.Read, 1.0, "one event"})
	return s
}

func tableSection(r capacity.Report) capacitySection {
	s := capacitySection{
		record: "table", title: "Tables at the peak, units a second",
		columns:  []string{"table", "write_per_s", "index_write_per_s", "read_per_s", "warm_write_units", "warm_index_write_units"},
		headings: []string{"table", "write", "of it index", "read", "warm write", "warm indexes"},
	}
	for _, t := range r.Tables {
		s.rows = append(s.rows, []any{string(t.Table), t.Write, t.Index, t.Read, t.Warm, t.WarmIndex})
	}
	return s
}

func functionSection(r capacity.Report) capacitySection {
	s := capacitySection{
		record: "function", title: "Functions at the peak",
		columns:  []string{"function", "memory_mb", "invocations_per_s", "ms", "concurrency"},
		headings: []string{"function", "MB", "invocations a second", "ms each", "environments"},
	}
	for _, f := range r.Functions {
		s.rows = append(s.rows, []any{f.Name, f.MemoryMB, f.Invocations, f.MS, f.Concurrency})
	}
	return s
}

func cpuSection(r capacity.Report) capacitySection {
	s := capacitySection{
		record: "cpu", title: "Processor time",
		columns:  []string{"what", "us_each", "cores", "note"},
		headings: []string{"what", "µs each", "cores at the peak", "note"},
	}
	for _, c := range r.CPU {
		s.rows = append(s.rows, []any{c.What, c.Micros, c.Cores, c.Note})
	}
	return s
}

func callSection(r capacity.Report) capacitySection {
	s := capacitySection{
		record: "calls", title: "Calls, stream and logs",
		columns:  []string{"what", "per_s", "per_month", "note"},
		headings: []string{"what", "a second at the peak", "a month", "note"},
	}
	for _, c := range r.Calls {
		s.rows = append(s.rows, []any{c.What, c.PerSecond, c.PerMonth, c.Note})
	}
	logs := r.Load.LogBytes()
	s.rows = append(s.rows,
		[]any{"megabytes of log", logs * r.Load.RPS / 1e6, r.Month() * logs / 1e6, fmt.Sprintf("bytes an event %.4g", logs)},
		[]any{"shards of the outbox's stream", r.Load.Shards(), "", "one a partition; the relay may work on 10 batches of each at once"})
	return s
}

func storedSection(r capacity.Report) capacitySection {
	s := capacitySection{
		record: "storage", title: "Storage, once as much ends as comes",
		columns:  []string{"what", "gb", "days"},
		headings: []string{"what", "GB", "days"},
	}
	for _, x := range r.Stored {
		s.rows = append(s.rows, []any{x.What, x.GB, x.Days})
	}
	return s
}

func burstSection(r capacity.Report) capacitySection {
	s := capacitySection{
		record: "burst", title: "What is not there at once",
		columns:  []string{"what", "seconds", "note"},
		headings: []string{"what", "seconds", "why"},
	}
	for _, b := range r.Bursts {
		s.rows = append(s.rows, []any{b.What, b.Seconds, b.Note})
	}
	return s
}

func quotaSection(r capacity.Report) capacitySection {
	s := capacitySection{
		record: "quota", title: "Quotas",
		columns:  []string{"what", "default", "need", "raise", "page"},
		headings: []string{"quota", "default", "needed", "raise", "where it stands"},
	}
	for _, q := range r.Quotas {
		s.rows = append(s.rows, []any{q.What, q.Default, q.Need, q.Raise, q.URL})
	}
	return s
}

func costSection(r capacity.Report) capacitySection {
	s := capacitySection{
		record: "cost", title: "Cost in dollars, list prices of " + r.Region,
		columns:  []string{"what", "usd_per_million", "usd_per_month"},
		headings: []string{"what", "$ a million events", "$ a month"},
	}
	for _, c := range append(r.Costs, r.Total()) {
		s.rows = append(s.rows, []any{c.What, dollars(c.PerMillion), dollars(c.Monthly)})
	}
	return s
}

// dollars are shown with cents.
type dollars float64

// MarshalJSON writes dollars as a number, with cents.
func (d dollars) MarshalJSON() ([]byte, error) { //nolint:unparam // the interface is json.Marshaler's
	return strconv.AppendFloat(nil, float64(d), 'f', 2, 64), nil
}

// quantity writes a value for a person.
func quantity(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "raise it"
		}
		return "suffices"
	case dollars:
		return grouped(strconv.FormatFloat(float64(v), 'f', 2, 64))
	case float64:
		return grouped(strconv.FormatFloat(rounded(v), 'f', -1, 64))
	}
	return fmt.Sprint(v)
}

// significant is how many digits of a number are worth something.
const significant = 3

// rounded leaves a number its worthy digits; whole ones below a million keep all.
func rounded(v float64) float64 {
	if v == 0 || v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return v
	}
	n, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', significant, 64), 64)
	if err != nil {
		return v // it cannot be: it was a number
	}
	return n
}

// grouped puts commas between thousands.
func grouped(s string) string {
	whole, rest, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return sign + whole
}
