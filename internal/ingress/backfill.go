package ingress

import (
	"context"
	"errors"
	"slices"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/provider/remote"
	"dakghar/internal/webhook"
)

// Listing is a provider's own API, as far as a back-fill asks it. What it returns
// came from the provider's pinned host over TLS, for our credential: that stands
// in for a signature, and nothing else does.
type Listing interface {
	// Page reads a part of what the provider lists since a time.
	Page(ctx context.Context, e webhook.Endpoint, a *provider.Adapter, since time.Time, cursor string) (provider.Page, error)
	// Redeliver has the provider send a listed event again.
	Redeliver(ctx context.Context, e webhook.Endpoint, a *provider.Adapter, p provider.Past) error
}

// BackfillRows keeps how far the back-fills of the endpoints have come.
type BackfillRows interface {
	EndpointIDs(ctx context.Context) ([]webhook.EndpointID, error)
	Endpoint(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error)
	Backfill(ctx context.Context, id webhook.EndpointID) (webhook.Backfill, error)
	UpdateBackfill(ctx context.Context, b webhook.Backfill) (bool, error)
	Lease(ctx context.Context, name, owner string, now, until time.Time) (state string, ok bool, err error)
	Release(ctx context.Context, name, owner, state string) error
}

// Backfill finds the events that a provider had and no request brought, and takes
// them in: the only cure for an outage of ours with providers that do not send
// again by themselves.
//
//   - An event that is listed whole goes through the very acceptance of a request,
//     under the same unique key. Its row says [webhook.Backfilled] where a
//     request's names the key that matched. Whichever of the two comes second is a
//     duplicate, whatever its bytes.
//   - A delivery that is listed without its content is sent again by the provider,
//     and comes through the front door, signed.
//   - What is there already is left alone, after one consistent read. So a page
//     that is read twice, by a program that died or by two at once, is harmless.
//
// A run leaves its cursor after every page, and any program goes on from there.
// All fields are required.
type Backfill struct {
	// Receiver is whose acceptance is used: its Providers, Bodies, Inbox, Recent,
	// Limits, Budget (for each event), Now and NewID. The rest may be left out.
	Receiver *Receiver
	Listing  Listing
	Rows     BackfillRows
	// Lease keeps a second program away. It is renewed between events, and must
	// outlast a call for a page.
	Lease time.Duration
	// Slack is kept free at the end of the time for leaving the cursor behind.
	Slack time.Duration
	// RedeliverMax bounds how many deliveries one program asks for before it rests
	// for [RedeliverRest]: providers count such calls.
	RedeliverMax int
	Wait         func(ctx context.Context, d time.Duration) error
}

// RedeliverRest is how long a run rests after it asked for as many deliveries as it may.
const RedeliverRest = time.Minute

// BackfillAsk says what a run is for. The zero value is what the schedule asks
// for: to go on with a run that was left behind, or else to begin the next one.
type BackfillAsk struct {
	// Since begins a new run from this time on, in place of any that was left behind.
	Since time.Time
	// Tell, if set, hears of the row after each page.
	Tell func(webhook.Backfill)
}

// BackfillReport is what became of a run. It carries no payload or credential.
type BackfillReport struct {
	Endpoint webhook.EndpointID
	Provider webhook.Provider
	// Ran is false where another program has the lease, or it could not be told.
	Ran bool
	// Done is set where the list was walked to its end.
	Done bool
	// Counts are of this program's part of the run.
	Counts webhook.BackfillCounts
	// Row is how it was left behind.
	Row webhook.Backfill
	// Err is why the run stopped early; nil where the time was up, or where it rests
	// until the row's NotBefore.
	Err error
}

// ErrBackfillTaken is that another program works on the endpoint's back-fill.
var ErrBackfillTaken = fault.New(fault.Ours, "backfill_taken", nil)

// RunDue runs what the schedule asks for until all of it is done or the time is
// up. What was left alone longest comes first. The error is that it could not be
// told what is due.
func (b *Backfill) RunDue(ctx context.Context) ([]BackfillReport, error) {
	work, cancel := sooner(ctx, b.Slack)
	defer cancel()
	due, err := b.due(work)
	var reports []BackfillReport
	for _, e := range due {
		if work.Err() != nil {
			return reports, nil
		}
		reports = append(reports, b.Run(ctx, e, BackfillAsk{}))
	}
	return reports, err
}

// due returns the endpoints whose back-fill is due. One that cannot be read keeps
// no other from its turn.
func (b *Backfill) due(ctx context.Context) ([]webhook.Endpoint, error) {
	ids, err := b.Rows.EndpointIDs(ctx)
	if err != nil {
		return nil, err
	}
	type turn struct {
		endpoint webhook.Endpoint
		left     time.Time
	}
	var turns []turn
	for _, id := range ids {
		e, row, failed := b.wants(ctx, id)
		if failed != nil && err == nil {
			err = failed
		}
		if failed == nil && e.BackfillEvery > 0 && row.Due(e.BackfillEvery, b.Receiver.Now()) {
			turns = append(turns, turn{e, row.UpdatedAt})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return a.left.Compare(b.left) })
	var due []webhook.Endpoint
	for _, t := range turns {
		due = append(due, t.endpoint)
	}
	return due, err
}

// wants reads an endpoint, and its row if it asks for back-fills.
func (b *Backfill) wants(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, webhook.Backfill, error) {
	e, found, err := b.Rows.Endpoint(ctx, id)
	if err != nil || !found || e.BackfillEvery <= 0 {
		return webhook.Endpoint{}, webhook.Backfill{}, err
	}
	row, err := b.Rows.Backfill(ctx, id)
	return e, row, err
}

// Listed is what the first page of a list says, before anything is done.
type Listed struct {
	Items, Missing, Unwanted, Unreadable int
	More                                 bool // there are further pages
}

// Look reads the first page of what a provider lists since a time, and changes nothing.
func (b *Backfill) Look(ctx context.Context, e webhook.Endpoint, since time.Time) (Listed, error) {
	a, err := b.adapter(e)
	if err != nil {
		return Listed{}, err
	}
	page, err := b.Listing.Page(ctx, e, a, since, "")
	if err != nil {
		return Listed{}, err
	}
	l := Listed{Items: len(page.Items) + page.Unreadable, Unreadable: page.Unreadable, More: page.Next != ""}
	for _, past := range page.Items {
		if !e.KeepUnknown && !acts(a, e, past.Type) {
			l.Unwanted++
			continue
		}
		_, found, err := b.Receiver.Inbox.Inbox(ctx, webhook.DeriveInboxID(e.Scope, a.Name, past.EventID))
		if err != nil {
			return Listed{}, err
		}
		if !found {
			l.Missing++
		}
	}
	return l, nil
}

func (b *Backfill) adapter(e webhook.Endpoint) (*provider.Adapter, error) {
	a, ok := b.Receiver.Providers.Lookup(e.Provider)
	if !ok {
		return nil, fault.New(fault.Permanent, "provider_unknown", nil)
	}
	return a, nil
}

// Run works on an endpoint's back-fill until its list is at its end, the time is
// up, or something is in the way.
func (b *Backfill) Run(ctx context.Context, e webhook.Endpoint, ask BackfillAsk) BackfillReport {
	report := BackfillReport{Endpoint: e.ID, Provider: e.Provider}
	a, err := b.adapter(e)
	if err != nil {
		report.Err = err
		return report
	}
	c := &comparison{Backfill: b, endpoint: e, adapter: a, owner: b.Receiver.NewID(), tell: ask.Tell}
	if err := c.keepLease(ctx); err != nil {
		report.Err = err
		return report
	}
	report.Ran = true
	work, cancel := sooner(ctx, b.Slack)
	defer cancel()
	err = c.begin(work, ask.Since)
	if err == nil {
		report.Done, err = c.walk(work)
	}
	err = c.leave(ctx, work, err)
	report.Counts, report.Row, report.Err = c.counts, c.row, err
	return report
}

// comparison is one program's part of a run.
type comparison struct {
	*Backfill
	endpoint webhook.Endpoint
	adapter  *provider.Adapter
	owner    string
	tell     func(webhook.Backfill)
	row      webhook.Backfill
	counts   webhook.BackfillCounts
	renewAt  time.Time
}

// resting stops a run in order, for a while.
type resting struct{ wait time.Duration }

func (*resting) Error() string { return "the run rests" }

func (c *comparison) lease() string { return "backfill#" + string(c.endpoint.ID) }

// keepLease takes the lease, and again after half of its time.
func (c *comparison) keepLease(ctx context.Context) error {
	now := c.Receiver.Now()
	if now.Before(c.renewAt) {
		return nil
	}
	_, ok, err := c.Rows.Lease(ctx, c.lease(), c.owner, now, now.Add(c.Lease))
	switch {
	case err != nil:
		return err
	case !ok:
		return ErrBackfillTaken
	}
	c.renewAt = now.Add(c.Lease / 2)
	return nil
}

// begin reads the row, and begins a run unless one is to go on.
func (c *comparison) begin(ctx context.Context, since time.Time) error {
	var err error
	if c.row, err = c.Rows.Backfill(ctx, c.endpoint.ID); err != nil || since.IsZero() && c.row.Open() {
		return err
	}
	reach, now := time.Duration(0), c.Receiver.Now()
	if c.adapter.API != nil {
		reach = c.adapter.API.Reach
	}
	from := c.row.From(c.endpoint, reach, now)
	if since.IsZero() {
		since = from
	} else {
		c.row.Asked = nil // who begins a run by hand has reason to ask again
	}
	return c.write(ctx, c.row.Begin(since, from, now))
}

// write changes the row, if nobody else has.
func (c *comparison) write(ctx context.Context, row webhook.Backfill) error {
	ok, err := c.Rows.UpdateBackfill(ctx, row)
	switch {
	case err != nil:
		return err
	case !ok:
		return ErrBackfillTaken
	}
	row.Revision++
	c.row = row
	if c.tell != nil {
		c.tell(row)
	}
	return nil
}

// walk goes through the list page by page. The cursor moves only past a page whose
// every item was decided.
func (c *comparison) walk(ctx context.Context) (done bool, err error) {
	for {
		page, err := c.Listing.Page(ctx, c.endpoint, c.adapter, c.row.Since, c.row.Cursor)
		if err != nil {
			return false, err
		}
		c.count(webhook.BackfillCounts{Pages: 1, Unreadable: page.Unreadable})
		for _, past := range page.Items {
			if err := c.keepLease(ctx); err != nil {
				return false, err
			}
			decided, err := c.decide(ctx, past)
			if c.count(decided); err != nil {
				return false, err
			}
		}
		if err := c.write(ctx, c.row.Turned(page.Next, c.Receiver.Now())); err != nil {
			return false, err
		}
		if !c.row.Open() {
			return true, nil
		}
	}
}

func (c *comparison) count(n webhook.BackfillCounts) {
	c.counts, c.row.Counts = c.counts.Add(n), c.row.Counts.Add(n)
}

// decide does to one item what it needs, and counts it.
func (c *comparison) decide(ctx context.Context, past provider.Past) (webhook.BackfillCounts, error) {
	acted := acts(c.adapter, c.endpoint, past.Type)
	if !acted && !c.endpoint.KeepUnknown {
		return webhook.BackfillCounts{Unwanted: 1}, nil
	}
	id := webhook.DeriveInboxID(c.endpoint.Scope, c.adapter.Name, past.EventID)
	_, found, err := c.Receiver.Inbox.Inbox(ctx, id)
	switch {
	case err != nil:
		return webhook.BackfillCounts{}, err
	case found:
		return webhook.BackfillCounts{Duplicate: 1}, nil
	case past.Body == nil:
		return c.redeliver(ctx, past)
	}
	return c.takeIn(ctx, past, !acted)
}

// takeIn has an event that is listed whole accepted as a request's is.
func (c *comparison) takeIn(ctx context.Context, past provider.Past, unwanted bool) (webhook.BackfillCounts, error) {
	envelope, err := c.adapter.Envelope(past.Header, past.Body)
	if err != nil {
		return webhook.BackfillCounts{Unreadable: 1}, nil //nolint:nilerr // it is counted
	}
	for {
		ev := event{
			adapter: c.adapter, endpoint: c.endpoint, envelope: envelope, unwanted: unwanted, body: past.Body,
			matched: webhook.Backfilled, now: c.Receiver.Now(),
		}
		r := c.accept(ctx, ev)
		switch {
		case r.Decision == Accepted:
			return webhook.BackfillCounts{Accepted: 1}, nil
		case r.Decision == Duplicate || r.Decision == DuplicateVaried:
			return webhook.BackfillCounts{Duplicate: 1}, nil
		case r.Wait == 0 && r.Err == nil:
			return webhook.BackfillCounts{}, fault.New(fault.Ours, "backfill_undecided", nil) // our own rule was broken: the page is read again
		case r.Wait == 0:
			return webhook.BackfillCounts{}, r.Err
		}
		// The endpoint's own limit holds for what is fetched as well.
		if err := c.Wait(ctx, r.Wait); err != nil {
			return webhook.BackfillCounts{}, err
		}
	}
}

func (c *comparison) accept(ctx context.Context, ev event) Report {
	ctx, cancel := context.WithTimeout(ctx, c.Receiver.Budget)
	defer cancel()
	return c.Receiver.accept(ctx, ev, Report{})
}

// redeliver has a delivery sent again, once in a run and not for ever. What the
// provider does not send again holds nothing else up.
func (c *comparison) redeliver(ctx context.Context, past provider.Past) (webhook.BackfillCounts, error) {
	now := c.Receiver.Now()
	switch c.row.Asking(past.EventID, now) {
	case webhook.AskedIt:
		return webhook.BackfillCounts{Awaited: 1}, nil
	case webhook.GivenUp:
		c.row = c.row.Missed(past.EventID, now)
		return webhook.BackfillCounts{Refused: 1}, nil
	case webhook.AskNow:
	}
	if c.counts.Redelivered >= c.RedeliverMax {
		return webhook.BackfillCounts{}, &resting{RedeliverRest}
	}
	err := c.Listing.Redeliver(ctx, c.endpoint, c.adapter, past)
	switch code := fault.CodeOf(err); {
	case err == nil:
		c.row = c.row.Missed(past.EventID, now)
		return webhook.BackfillCounts{Redelivered: 1}, nil
	case code == "api_refused" || code == "redelivery_unsupported":
		return webhook.BackfillCounts{Refused: 1}, nil
	}
	return webhook.BackfillCounts{}, err
}

// leaveTime bounds leaving a run behind, which must not end with its time.
const leaveTime = 4 * time.Second

// leave writes down how far the run came and lets go of the lease. It is the one
// place of the run that classifies. What it cannot write is found out by whoever
// comes next: a page that is read again.
func (c *comparison) leave(ctx, work context.Context, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	now := c.Receiver.Now()
	rest, rests := errors.AsType[*resting](why)
	var err error
	switch {
	case why == nil || errors.Is(why, ErrBackfillTaken) || !c.row.Open():
		err = why
	case rests:
		err = c.write(ctx, c.row.Rested(rest.wait, now))
	case work.Err() != nil:
		err = c.write(ctx, c.row.Rested(0, now))
	default:
		err = errors.Join(why, c.write(ctx, c.row.Failed(fault.CodeOf(why), remote.After(why), c.lostPlace(why), now)))
	}
	return errors.Join(err, c.Rows.Release(ctx, c.lease(), c.owner, ""))
}

// lostPlace reports whether a list is to be walked from its start again: providers
// forget the places that their cursors name.
func (c *comparison) lostPlace(err error) bool {
	codes := []string{"api_refused", "cursor_invalid", "answer_cursor_missing", "answer_cursor_stuck"}
	return c.row.Cursor != "" && slices.Contains(codes, fault.CodeOf(err))
}

// sooner ends a context some time before its deadline.
func sooner(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-by))
}
