package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Load is a traffic at a steady rate, whose requests are sent at their times
// whether or not the earlier ones were answered.
type Load struct {
	// Traffic says whom, what and with which key. Its Rate and Seed are the load's;
	// its Count, Duplicates and Concurrency follow from the load.
	Traffic
	Duration time.Duration
	// Mix is the bodies' sizes; none for the sample's own.
	Mix []BodyShare
	// CopyRatio is the share of the requests that send an earlier event once more.
	CopyRatio float64
	// InFlight bounds the requests that wait for an answer at once. One that finds no
	// place begins late, and its latency says so.
	InFlight int
}

// BodyShare is a size of bodies and how many of all have it, by weight.
type BodyShare struct{ Bytes, Weight int }

// Bounds of a load.
const (
	loadRateMax     = 100_000
	loadDurationMax = 24 * time.Hour
	mixMax          = 20
	weightMax       = 1000
	copyRatioMax    = 0.99
)

func (l Load) check() error {
	var problems []string
	wrong := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	wrong(!(l.Rate > 0 && l.Rate <= loadRateMax), "--rate is above 0, to %d", loadRateMax)
	wrong(l.Duration <= 0 || l.Duration > loadDurationMax, "--duration is above 0, to %s", Span(loadDurationMax))
	wrong(!(l.CopyRatio >= 0 && l.CopyRatio <= copyRatioMax), "--duplicates is the share of the requests that are copies: 0 to %g", copyRatioMax)
	wrong(l.InFlight < 1 || l.InFlight > 4096, "--in-flight is 1 to 4096")
	wrong(len(l.Mix) > mixMax, "--mix has at most %d sizes", mixMax)
	for _, m := range l.Mix {
		wrong(m.Bytes < 1 || m.Bytes > provider.BodyBytesMax, "--mix: a body has 1 to %d bytes", provider.BodyBytesMax)
		wrong(m.Weight < 1 || m.Weight > weightMax, "--mix: a weight is 1 to %d", weightMax)
	}
	wrong(l.Rate*l.Duration.Seconds() > RequestsMax, "--rate and --duration make more than %d requests", RequestsMax)
	if len(problems) > 0 {
		return misuse(strings.Join(problems, "; "), run("see what the flags mean:", "load", "--help"))
	}
	return nil
}

// Loading is a load that is ready to go.
type Loading struct {
	Requests, Events int
	// Sizes are the bodies, with how many events and copies have each.
	Sizes      []LoadSize
	URL        string
	KeyVersion webhook.KeyVersion

	operator *Operator
	load     Load
	sendings []*Sending // one a size
	order    []int      // which event each request carries
	sizeOf   []int      // by an event's place in the mix
}

// LoadSize is a size of bodies in a load.
type LoadSize struct{ Bytes, Events, Copies int }

// Bytes is what all bodies have together.
func (l *Loading) Bytes() int64 {
	total := int64(0)
	for _, s := range l.Sizes {
		total += int64(s.Bytes) * int64(s.Events+s.Copies)
	}
	return total
}

// PrepareLoad finds the endpoint, its key and the samples, and refuses what cannot
// be sent.
func (o *Operator) PrepareLoad(ctx context.Context, l Load) (*Loading, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	l.Count, l.Concurrency = max(1, int(l.Rate*l.Duration.Seconds())), l.InFlight
	p := &Loading{operator: o, load: l, Requests: l.Count}
	mix := l.Mix
	if len(mix) == 0 {
		mix = []BodyShare{{Weight: 1}}
	}
	for _, m := range mix {
		t := l.Traffic
		if m.Bytes > 0 {
			t.BodyBytes = m.Bytes
		}
		s, err := o.Prepare(ctx, t)
		if err != nil {
			return nil, err
		}
		first, err := s.sampler.event(0)
		if err != nil {
			return nil, err
		}
		p.sendings, p.Sizes = append(p.sendings, s), append(p.Sizes, LoadSize{Bytes: len(first.body)})
		p.URL, p.KeyVersion = s.URL, s.KeyVersion
	}
	p.sizeOf = places(mix, o.Mixed(l.Seed, weights(mix)))
	p.arrange()
	return p, nil
}

func weights(mix []BodyShare) int {
	total := 0
	for _, m := range mix {
		total += m.Weight
	}
	return total
}

// places spreads the sizes over as many places as there are weights.
func places(mix []BodyShare, mixed []int) []int {
	out, next := make([]int, len(mixed)), 0
	for size, m := range mix {
		for range m.Weight {
			out[mixed[next]] = size
			next++
		}
	}
	return out
}

func (l *Loading) size(event int) int { return l.sizeOf[event%len(l.sizeOf)] }

// copyReach is how many of the latest events a copy is one of.
const copyReach = 1000

// arrange decides which event each request carries. Copies are spread evenly, each
// of one of the latest events.
func (l *Loading) arrange() {
	l.order = make([]int, l.Requests)
	for i := range l.order {
		copies := int(float64(i+1)*l.load.CopyRatio) - int(float64(i)*l.load.CopyRatio)
		if copies == 0 || l.Events == 0 {
			l.order[i] = l.Events
			l.Sizes[l.size(l.Events)].Events++
			l.Events++
			continue
		}
		const stride = 7919 // a prime, so that copies are of all ages
		l.order[i] = l.Events - 1 - i*stride%min(l.Events, copyReach)
		l.Sizes[l.size(l.order[i])].Copies++
	}
	if l.load.Shuffle {
		mixed := make([]int, l.Requests)
		for i, from := range l.operator.Mixed(l.load.Seed+1, l.Requests) {
			mixed[i] = l.order[from]
		}
		l.order = mixed
	}
}

// Loaded is what became of the requests.
type Loaded struct {
	Summary

	P999 time.Duration
	// Statuses counts the answers by status, and those that never came.
	Statuses map[string]int
	// Late counts the requests that began more than [LateAfter] after their time, and
	// LateMost is by how much the last of them did: then the sender was too slow, not the
	// front door alone.
	Late     int
	LateMost time.Duration
	// Unnamed counts acknowledgements that name no row.
	Unnamed int

	acknowledged map[webhook.InboxID]bool
}

// LateAfter is how late a request may begin before it is counted.
const LateAfter = 10 * time.Millisecond

// Acknowledged is how many rows were promised.
func (l Loaded) Acknowledged() int { return len(l.acknowledged) }

type loadedOne struct {
	Sent

	late time.Duration
}

// Run sends the load. each is called for every answer, one call at a time. When the
// context ends nothing more is begun, what is under way is waited for, and the error
// is the context's.
func (l *Loading) Run(ctx context.Context, each func(done int)) (Loaded, error) {
	began := l.operator.Now()
	results := make(chan loadedOne)
	var failed error
	go func() {
		failed = l.send(ctx, began, results)
		close(results)
	}()
	out := Loaded{Summary: Summary{Refused: map[string]int{}}, Statuses: map[string]int{}, acknowledged: map[webhook.InboxID]bool{}}
	var latencies []time.Duration
	for one := range results {
		out.take(one)
		latencies = append(latencies, one.Latency)
		each(out.Sent)
	}
	out.measure(latencies, l.operator.Now().Sub(began))
	if n := len(latencies); n > 0 { // sorted by now
		out.P999 = latencies[(n*999+999)/1000-1]
	}
	return out, failed
}

func (l *Loaded) take(one loadedOne) {
	l.count(one.Sent)
	l.Statuses[statusText(one.Status)]++
	if one.late > LateAfter {
		l.Late++
		l.LateMost = max(l.LateMost, one.late)
	}
	switch {
	case !one.OK():
	case one.InboxID == "":
		l.Unnamed++
	default:
		l.acknowledged[one.InboxID] = true
	}
}

// send begins each request at its time, or as soon as one of the places is free. It
// returns once all that was begun has ended.
func (l *Loading) send(ctx context.Context, began time.Time, results chan<- loadedOne) error {
	var under sync.WaitGroup
	defer under.Wait()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	places := make(chan struct{}, l.load.InFlight)
	finish := context.WithoutCancel(ctx)
	for i, event := range l.order {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		due := began.Add(time.Duration(float64(i) / l.load.Rate * float64(time.Second)))
		if wait := due.Sub(l.operator.Now()); wait > 0 {
			if err := l.operator.Wait(ctx, wait); err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		under.Go(func() {
			late := l.operator.Now().Sub(due)
			sent, err := l.sendings[l.size(event)].request(finish, job{event: event, due: due})
			if err != nil { // a sample that cannot be made
				stop(err)
			} else {
				results <- loadedOne{sent, late}
			}
			<-places
		})
	}
	under.Wait()
	return context.Cause(ctx)
}

// Settled is what became of the events that were acknowledged.
type Settled struct {
	Acknowledged int
	// ByStatus counts their rows as they stand.
	ByStatus map[webhook.Status]int
	// Lost are acknowledged events that have no row.
	Lost []webhook.InboxID
	// P50 and P99 are from receipt to PROCESSED.
	P50, P99, Waited time.Duration
	// Accounts is how many ledgers were looked at; Doubled are events that were added
	// more than once, and Unapplied those that are PROCESSED and in no ledger.
	Accounts           int
	Doubled, Unapplied []webhook.InboxID
}

// OK reports whether nothing was lost, doubled or left over.
func (s Settled) OK() bool {
	return s.ByStatus[webhook.Processed] == s.Acknowledged && len(s.Lost)+len(s.Doubled)+len(s.Unapplied) == 0
}

// Bounds of settling: rows are read a hundred at a time, and at most this many
// ledgers are looked at, evenly spread.
const (
	settleBatch  = 100
	settlePause  = time.Second
	AccountsMost = 2000
)

// Settle waits until every acknowledged event is PROCESSED or FAILED, as long as
// patience lasts, and then compares the ledgers. each is told how many are open.
func (l *Loading) Settle(ctx context.Context, sent Loaded, patience time.Duration, each func(open int)) (Settled, error) {
	o, began := l.operator, l.operator.Now()
	s := Settled{Acknowledged: sent.Acknowledged(), ByStatus: map[webhook.Status]int{}}
	var open []webhook.InboxID
	for id := range sent.acknowledged {
		open = append(open, id)
	}
	slices.Sort(open)
	var ended []webhook.Inbox
	for {
		found, err := o.rows(ctx, open)
		if err != nil {
			return s, err
		}
		last := o.Now().Sub(began) >= patience
		var still []webhook.InboxID
		s.Lost = nil
		for _, id := range open {
			row, ok := found[id]
			switch {
			case ok && row.Status.Terminal():
				s.ByStatus[row.Status]++
				ended = append(ended, row)
			case !ok && last:
				s.Lost = append(s.Lost, id)
			case last:
				s.ByStatus[row.Status]++
			default:
				still = append(still, id)
			}
		}
		each(len(still))
		if open = still; len(open) == 0 {
			break
		}
		if err := o.Wait(ctx, settlePause); err != nil {
			return s, cmp.Or(context.Cause(ctx), err)
		}
	}
	s.Waited = o.Now().Sub(began)
	s.pace(ended)
	return s, o.compareAccounts(ctx, l.load.Endpoint, ended, &s)
}

// rows reads rows by id.
func (o *Operator) rows(ctx context.Context, ids []webhook.InboxID) (map[webhook.InboxID]webhook.Inbox, error) {
	found := map[webhook.InboxID]webhook.Inbox{}
	for some := range slices.Chunk(ids, settleBatch) {
		rows, err := o.Inbox.Inboxes(ctx, some)
		if err != nil {
			return nil, unreachable("the inbox", err)
		}
		for _, row := range rows {
			found[row.ID] = row
		}
	}
	return found, nil
}

func (s *Settled) pace(ended []webhook.Inbox) {
	var took []time.Duration
	for _, row := range ended {
		if row.Status == webhook.Processed {
			took = append(took, row.ProcessedAt.Sub(row.ReceivedAt))
		}
	}
	if len(took) == 0 {
		return
	}
	var m Summary
	m.measure(took, 0)
	s.P50, s.P99 = m.P50, m.P99
}

// compareAccounts looks in the ledgers for events that were added twice or not at
// all. An endpoint whose first event is in no ledger has handlers that keep none.
func (o *Operator) compareAccounts(ctx context.Context, id webhook.EndpointID, ended []webhook.Inbox, s *Settled) error {
	e, err := o.endpoint(ctx, id)
	if err != nil {
		return err
	}
	applied := slices.DeleteFunc(slices.Clone(ended), func(row webhook.Inbox) bool { return row.Outcome != webhook.Applied || row.ObjectID == "" })
	var kept webhook.ObjectType
	step := (len(applied) + AccountsMost - 1) / AccountsMost
	for i := 0; i < len(applied); i += step {
		row := applied[i]
		types := []webhook.ObjectType{kept}
		if kept == "" {
			types = objectTypes()
		}
		var found *Account
		for _, t := range types {
			account, ok, err := o.account(ctx, webhook.Event{
				Tenant: e.Tenant, Provider: e.Provider, Endpoint: e.ID, Facts: webhook.Facts{ObjectType: t, ObjectID: row.ObjectID},
			})
			if err != nil {
				return unreachable("the business table", err)
			}
			if ok {
				found, kept = &account, t
				break
			}
		}
		if kept == "" && i > 0 {
			break
		}
		s.Accounts++
		s.compare(row, found)
	}
	if kept == "" {
		s.Accounts, s.Unapplied = 0, nil
	}
	return nil
}

func (s *Settled) compare(row webhook.Inbox, a *Account) {
	times := 0
	if a != nil {
		for _, entry := range a.Entries {
			if entry.InboxID == row.ID {
				times++
			}
		}
	}
	switch {
	case times == 0:
		s.Unapplied = append(s.Unapplied, row.ID)
	case times > row.Run+1 || a.Applied > int64(len(a.Entries)):
		s.Doubled = append(s.Doubled, row.ID)
	}
}
