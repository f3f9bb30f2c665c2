package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"dakghar/internal/webhook"
)

// Scope is what an operator's comparison covers: one endpoint's events from a
// time on, or, when the endpoint is empty, the whole inbox.
type Scope struct {
	Endpoint    webhook.EndpointID
	Since, Till time.Time // [Since, Till), by when they were received
}

// Pass is a comparison that an operator asked for. It leaves its cursors with its
// lease, so that it goes on where it was interrupted.
type Pass struct {
	*Comparer
	Scope Scope
	// Anew begins from the start, whatever an earlier pass has left.
	Anew bool
	// Progress is told how far the pass has come, now and then.
	Progress func(PassProgress)
}

// PassProgress is how far a pass has come, from its very beginning.
type PassProgress struct {
	Tally
	Resumed bool // it goes on from an earlier one
	Done    bool
}

// ErrPassTaken says that another operator's pass holds the lease.
var ErrPassTaken = errors.New("another comparison is running")

const (
	passLeaseName = "reconcile"
	// passLease outlasts the pages between two renewals by far.
	passLease = 5 * time.Minute
	// passPages is how many pages of a lane are compared between two renewals.
	passPages = 50
	// sizePage is how many index entries are counted at a time.
	sizePage = 1000
	// passSegments are the parts of a whole scan.
	passSegments = 8
)

// passState is what a pass leaves behind. Times are epoch milliseconds.
type passState struct {
	Endpoint webhook.EndpointID `json:"endpoint,omitempty"`
	Since    int64              `json:"since,omitempty"`
	Till     int64              `json:"till,omitempty"`
	Day      int64              `json:"day,omitempty"` // the day that is walked
	Lanes    Lanes              `json:"lanes"`
	Compared int                `json:"compared"`
	Found    []foundState       `json:"found,omitempty"`
}

type foundState struct {
	Kind  Kind `json:"kind"`
	Deed  Deed `json:"deed"`
	Count int  `json:"count"`
}

// Run compares everything in the scope. On an error, or when the context is over,
// what was compared so far stays compared: the same pass, run again, goes on.
func (p *Pass) Run(ctx context.Context) (PassProgress, error) {
	owner := p.NewID()
	state, resumed, err := p.begin(ctx, owner)
	if err != nil {
		return PassProgress{}, err
	}
	progress := PassProgress{Tally: state.tally(), Resumed: resumed}
	for !progress.Done {
		var t Tally
		t, progress.Done, err = p.step(ctx, &state)
		progress.merge(t)
		state.keep(progress.Tally)
		if left := p.leave(ctx, owner, state, progress.Done); err == nil {
			err = left
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return progress, err
		}
		if p.Progress != nil {
			p.Progress(progress)
		}
		if !progress.Done {
			if err := p.renew(ctx, owner); err != nil {
				return progress, err
			}
		}
	}
	return progress, nil
}

func (p *Pass) begin(ctx context.Context, owner string) (passState, bool, error) {
	now := p.Now()
	stored, ok, err := p.Store.Lease(ctx, passLeaseName, owner, now, now.Add(passLease))
	if err == nil && !ok {
		err = ErrPassTaken
	}
	if err != nil {
		return passState{}, false, err
	}
	fresh := p.fresh()
	var left passState
	if !p.Anew && json.Unmarshal([]byte(stored), &left) == nil && left.continues(fresh) {
		return left, true, nil
	}
	return fresh, false, nil
}

func (p *Pass) fresh() passState {
	if p.Scope.Endpoint == "" {
		return passState{Lanes: newLanes(passSegments)}
	}
	since := p.Scope.Since.UnixMilli()
	return passState{Endpoint: p.Scope.Endpoint, Since: since, Till: p.Scope.Till.UnixMilli(), Day: since, Lanes: newLanes(webhook.Shards)}
}

// continues reports whether an interrupted pass covers what is asked for now. One
// of an endpoint keeps the end that it began with: what came later is no older
// than the interruption.
func (s passState) continues(fresh passState) bool {
	return s.Endpoint == fresh.Endpoint && s.Since <= fresh.Since && s.Lanes.of(len(fresh.Lanes.After))
}

// step compares the next pages of every lane.
func (p *Pass) step(ctx context.Context, s *passState) (t Tally, done bool, err error) {
	if s.Endpoint == "" {
		t, err = p.walk(ctx, &s.Lanes, passPages, p.segment)
		return t, s.Lanes.whole(), err
	}
	from, to := dayOf(time.UnixMilli(s.Day), time.UnixMilli(s.Till))
	t, err = p.walk(ctx, &s.Lanes, passPages, p.recent(s.Endpoint, from, to))
	if !s.Lanes.whole() {
		return t, false, err
	}
	s.Day, s.Lanes = to.UnixMilli(), newLanes(webhook.Shards)
	return t, s.Day >= s.Till, err
}

// dayOf returns the part of [from, till) that lies in from's UTC day.
func dayOf(from, till time.Time) (start, end time.Time) {
	end = from.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	if till.Before(end) {
		end = till.UTC()
	}
	return from.UTC(), end
}

// Size counts the events of an endpoint's pass.
func (p *Pass) Size(ctx context.Context) (int64, error) {
	var n int64
	for day := p.Scope.Since; day.Before(p.Scope.Till); {
		from, to := dayOf(day, p.Scope.Till)
		for shard := range webhook.Shards {
			for after, more := "", true; more; more = after != "" {
				ids, next, err := p.Store.RecentPage(ctx, p.Scope.Endpoint, shard, from, to, after, sizePage)
				if err != nil {
					return 0, err
				}
				n, after = n+int64(len(ids)), next
			}
		}
		day = to
	}
	return n, nil
}

func (p *Pass) segment(ctx context.Context, segment int, after string) (page, error) {
	rows, unreadable, next, err := p.Store.InboxPage(ctx, segment, passSegments, after, comparePage)
	return page{rows: rows, unreadable: unreadable, next: next}, err
}

// leave stores the cursors and lets the lease go: a pass that dies keeps nobody
// waiting, and one that is done leaves nothing.
func (p *Pass) leave(ctx context.Context, owner string, s passState, done bool) error {
	text := ""
	if !done {
		b, err := json.Marshal(s)
		if err != nil {
			panic("reconciler: a pass's state does not encode: " + err.Error())
		}
		text = string(b)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Slack)
	defer cancel()
	return p.Store.Release(ctx, passLeaseName, owner, text)
}

func (p *Pass) renew(ctx context.Context, owner string) error {
	now := p.Now()
	_, ok, err := p.Store.Lease(ctx, passLeaseName, owner, now, now.Add(passLease))
	if err == nil && !ok {
		err = ErrPassTaken
	}
	return err
}

func (s passState) tally() Tally {
	t := Tally{Compared: s.Compared}
	for _, f := range s.Found {
		t.merge(Tally{Found: map[Finding]int{{f.Kind, f.Deed}: f.Count}})
	}
	return t
}

func (s *passState) keep(t Tally) {
	s.Compared, s.Found = t.Compared, nil
	for _, kind := range Kinds() {
		for _, deed := range Deeds() {
			if n := t.Found[Finding{kind, deed}]; n > 0 {
				s.Found = append(s.Found, foundState{kind, deed, n})
			}
		}
	}
}
