package reconciler

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"dakghar/internal/webhook"
)

// The daily comparison. Every accepted event is compared once, when it is a day
// old: a window of time moves along, from where the last one ended to a day ago.
const (
	auditLease = "audit"
	// AuditAge is how old an event is when its turn comes; [AuditAgeMax] is how old
	// it may get before that, or the comparison does not keep up.
	AuditAge    = 24 * time.Hour
	AuditAgeMax = 48 * time.Hour
	// auditWindow is the least length of a window: each is one query for each
	// endpoint and shard, whether there are events or not.
	auditWindow = time.Hour
	// detailsMax bounds what one run says of single events; counts have no bound.
	detailsMax = 100
)

// AuditReport is what a run of the daily comparison found and did.
type AuditReport struct {
	Ran bool // false: another runner holds the lease
	Tally
	// Details are the first findings, at most 100.
	Details []Detail
	// Age is how old the next event to be compared would be: a day and a bit, or the
	// comparison is behind.
	Age time.Duration
	Err error // the first error met
}

// auditState is what the comparison leaves for the next run. Times are epoch
// milliseconds.
type auditState struct {
	From int64 `json:"from"` // everything received before it was compared
	To   int64 `json:"to"`   // the end of the window that is open; 0 without one
	// Endpoint is whose events are walked; those before it, in order, are done.
	Endpoint webhook.EndpointID `json:"endpoint,omitempty"`
	Lanes    Lanes              `json:"lanes"`
}

func decodeAudit(state string, now time.Time) auditState {
	var s auditState
	if err := json.Unmarshal([]byte(state), &s); err != nil || s.From <= 0 {
		// A first run has nothing to catch up with: see `dakghar reconcile` for that.
		return auditState{From: now.Add(-AuditAge).UnixMilli()}
	}
	return s
}

func (s auditState) encode() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("reconciler: the audit's state does not encode: " + err.Error())
	}
	return string(b)
}

// open begins the next window, if enough time has gone by. A window lies in one
// day, because the index does.
func (s *auditState) open(now time.Time) bool {
	if s.To != 0 {
		return true
	}
	from := time.UnixMilli(s.From).UTC()
	dayEnd := from.Truncate(24 * time.Hour).Add(24 * time.Hour)
	end := now.Add(-AuditAge)
	switch {
	case !end.Before(dayEnd):
		end = dayEnd
	case end.Sub(from) < auditWindow:
		return false
	}
	s.To = end.UnixMilli()
	return true
}

// Audit goes on with the daily comparison until it has caught up or the context
// is over.
func (c *Comparer) Audit(ctx context.Context, lease time.Duration) AuditReport {
	owner, now := c.NewID(), c.Now()
	stored, ok, err := c.Store.Lease(ctx, auditLease, owner, now, now.Add(lease))
	if err != nil || !ok {
		return AuditReport{Err: err}
	}
	report := AuditReport{Ran: true}
	state := decodeAudit(stored, now)
	c.Tell = func(d Detail) {
		if len(report.Details) < detailsMax {
			report.Details = append(report.Details, d)
		}
	}
	report.Err = c.auditOn(ctx, &state, &report.Tally)
	report.Age = c.Now().Sub(time.UnixMilli(state.From))
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Slack)
	defer cancel()
	if err := c.Store.Release(leave, auditLease, owner, state.encode()); err != nil && report.Err == nil {
		report.Err = err
	}
	return report
}

func (c *Comparer) auditOn(ctx context.Context, state *auditState, total *Tally) error {
	var endpoints []webhook.EndpointID
	for state.open(c.Now()) {
		if endpoints == nil {
			listed, err := c.Store.EndpointIDs(ctx)
			if err != nil {
				return unlessOver(ctx, err)
			}
			endpoints = slices.Sorted(slices.Values(listed))
		}
		if done, err := c.auditWindow(ctx, endpoints, state, total); !done {
			return err
		}
		*state = auditState{From: state.To}
	}
	return nil
}

// auditWindow walks the endpoints of a window in order. False means that it is
// not at its end.
func (c *Comparer) auditWindow(ctx context.Context, endpoints []webhook.EndpointID, state *auditState, total *Tally) (bool, error) {
	from, to := time.UnixMilli(state.From).UTC(), time.UnixMilli(state.To).UTC()
	for _, endpoint := range endpoints {
		if endpoint < state.Endpoint {
			continue
		}
		if endpoint != state.Endpoint || !state.Lanes.of(webhook.Shards) {
			state.Endpoint, state.Lanes = endpoint, newLanes(webhook.Shards)
		}
		t, err := c.walk(ctx, &state.Lanes, pagesUnbounded, c.recent(endpoint, from, to))
		total.merge(t)
		if !state.Lanes.whole() {
			return false, err
		}
	}
	return true, nil
}

const pagesUnbounded = 1 << 30

// recent reads an endpoint's events of one day's window, a shard a lane.
func (c *Comparer) recent(e webhook.EndpointID, from, to time.Time) func(context.Context, int, string) (page, error) {
	return func(ctx context.Context, shard int, after string) (page, error) {
		ids, next, err := c.Store.RecentPage(ctx, e, shard, from, to, after, comparePage)
		return page{ids: ids, next: next}, err
	}
}
