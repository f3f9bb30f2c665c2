package operator

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// Bulk asks for one deed to every event that matches.
type Bulk struct {
	// Act is what the record says: "inbox replay", "inbox hold", …
	Act    string
	Filter webhook.Filter
	// Handler, for replay, runs applied events again whose handler bears this name.
	Handler string
	Why     string // required, unless it is only to be planned
	Rate    int    // events a second, 1 to [RateMax]
	// PlanOnly says that nothing will be started.
	PlanOnly bool
}

// Bounds of a job.
const (
	// RateMax bounds the events a second of one job.
	RateMax = 1000
	// SampleMax is how many events a plan shows.
	SampleMax = 5
)

// Plan is what a job would do, counted before it is asked for. Rows may move on
// between the plan and the deed: each is looked at again when its turn comes.
type Plan struct {
	Job     webhook.Job // as it would be started
	Matched int
	// ByStatus and ByKind count them; ByKind by our names, or by the provider's
	// type where its adapter does not know it.
	ByStatus map[webhook.Status]int
	ByKind   map[string]int
	// Refused counts those that would not be changed, by the code of the refusal.
	Refused map[string]int
	Sample  []webhook.Inbox
	// Deliveries are the sample of a job that is done to deliveries.
	Deliveries []delivery.Delivery
	// Units are the write units of the deeds and their records; what a worker then
	// writes comes on top.
	Units int
	// Takes is how long it takes at the job's rate, at least.
	Takes time.Duration
}

// PlanBulk counts what a job would do. It writes nothing.
func (o *Operator) PlanBulk(ctx context.Context, b Bulk) (Plan, error) {
	d, j, err := o.prepare(ctx, b)
	if err != nil {
		return Plan{}, err
	}
	rows, err := o.list(ctx, j.Filter)
	if err != nil {
		return Plan{}, err
	}
	return o.count(ctx, d, j, rows)
}

// prepare turns a wish into a job that has not begun, or says what is wrong.
func (o *Operator) prepare(ctx context.Context, b Bulk) (deed, webhook.Job, error) {
	if b.Handler != "" {
		if b.Act != actReplay {
			return deed{}, webhook.Job{}, misuse("--reprocess goes with replay")
		}
		b.Act = actReprocess
	}
	d, ok := deedOf(b.Act)
	if err := checkBulk(b, "events", ok, webhook.Statuses(), d.from); err != nil {
		return d, webhook.Job{}, err
	}
	f := b.Filter
	if len(f.Statuses) == 0 && d.name != actErase { // what is open is counted as left: it is somebody's data as well
		f.Statuses = d.from
	}
	var err error
	b.Filter, err = o.settle(ctx, f)
	return d, o.jobOf(b), err
}

// checkBulk says what is wrong with a wish for many things at once, which are done
// to those in some of all states. Their act must be known.
func checkBulk[S ~string](b Bulk, things string, known bool, all, from []S) error {
	act := strings.Fields(b.Act)
	switch {
	case !known:
		return misuse(fmt.Sprintf("nothing called %q is done to %s", b.Act, things))
	case b.Why == "" && !b.PlanOnly:
		return misuse("--reason is required for many "+things+" at once: it is recorded with each", run("or only look what would be done:", append(act, "--all", "--plan")...))
	}
	if err := checkRate(b.Rate, things); err != nil {
		return err
	}
	for _, status := range b.Filter.Statuses {
		if s := S(status); slices.Contains(all, s) && !slices.Contains(from, s) {
			return misuse(fmt.Sprintf("%s is for %s that are %s, not %s", b.Act, things, oneOf(from), s), run("see what goes together:", append(act, "--help")...))
		}
	}
	return nil
}

func checkRate(rate int, things string) error {
	if rate < 1 || rate > RateMax {
		return misuse(fmt.Sprintf("--rate is 1 to %d %s a second", RateMax, things))
	}
	return nil
}

// jobOf is the job of a wish, before it has begun.
func (o *Operator) jobOf(b Bulk) webhook.Job {
	now := o.Now()
	return webhook.Job{Act: b.Act, Filter: b.Filter, Handler: b.Handler, Why: b.Why, Rate: b.Rate, CreatedAt: now, UpdatedAt: now, State: webhook.JobRunning}
}

func newPlan(j webhook.Job) Plan {
	return Plan{Job: j, ByStatus: map[webhook.Status]int{}, ByKind: map[string]int{}, Refused: map[string]int{}}
}

// count goes through all the events of a job.
func (o *Operator) count(ctx context.Context, d deed, j webhook.Job, rows iter.Seq2[webhook.Inbox, error]) (Plan, error) {
	p := newPlan(j)
	again := map[string]error{}
	for row, err := range rows {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return p, err
		}
		p.add(row, or(string(o.Kind(row)), string(row.EventType)))
		if code, err := o.foreseen(ctx, d, j, row, again); err != nil {
			return p, err
		} else if code != "" {
			p.Refused[code]++
		}
	}
	p.finish(d.units)
	return p, nil
}

func (p *Plan) add(row webhook.Inbox, kind string) {
	p.Matched++
	p.ByStatus[row.Status]++
	p.ByKind[kind]++
	if len(p.Sample) < SampleMax {
		p.Sample = append(p.Sample, row)
	}
}

func (p *Plan) finish(units int) {
	p.Job.Matched = p.Matched
	changed := p.Matched
	for _, n := range p.Refused {
		changed -= n
	}
	p.Units = changed * units
	p.Takes = time.Duration(p.Matched) * time.Second / time.Duration(p.Job.Rate)
}

// foreseen returns the code of the refusal that an event would meet, as far as
// its row tells. again remembers what was found out about a type.
func (o *Operator) foreseen(ctx context.Context, d deed, j webhook.Job, row webhook.Inbox, again map[string]error) (string, error) {
	switch {
	case row.LegalHold:
		return codeLegalHold, nil
	case d.name == actErase && !row.Status.Terminal():
		return "wrong_state", nil
	case d.name == actErase && !row.ErasedAt.IsZero():
		return codeErasedBefore, nil
	case !row.ErasedAt.IsZero():
		return "erased", nil
	}
	reopens := d.name == actReplay || d.name == actRelease || d.name == actReprocess
	if reopens && !row.Replayable(j.CreatedAt) {
		return "body_gone", nil
	}
	if d.name != actReprocess {
		return "", nil
	}
	what := string(row.Endpoint) + " " + string(row.EventType)
	err, known := again[what]
	if !known {
		err = o.mayRunAgain(ctx, row, j.Handler)
		again[what] = err
	}
	if err == nil {
		return "", nil
	}
	if code := codeOf(err); code != codeUnavailable {
		return code, nil
	}
	return "", err
}
