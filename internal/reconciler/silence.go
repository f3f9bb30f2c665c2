package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"dakghar/internal/webhook"
)

// Silence says at how many endpoints nothing of their provider's was accepted for
// longer than they expect.
type Silence struct {
	Known   bool // of every endpoint that asks it is known
	Silent  int
	OldestS float64 // seconds since the last event of the one that is silent longest; 0 without one
	// Told are the endpoints that a line is written of in this run.
	Told []SilentEndpoint
}

// SilentEndpoint is one that is silent, or is not any more.
type SilentEndpoint struct {
	ID       webhook.EndpointID
	Provider webhook.Provider
	Over     bool
	// LastEventAt is when the last event was received; zero where none was found as
	// far back as the endpoint expects one.
	LastEventAt time.Time
	ExpectEvery time.Duration
}

// SilenceBounds are how much of a run goes to looking for silent endpoints. What does
// not fit is left to the next one.
type SilenceBounds struct {
	Time  time.Duration
	Days  int // of an endpoint that are looked at; each is a query for each shard, or more
	Rows  int // that are read; but for canaries and what a back-fill brought the first one ends a look
	Lines int // that name an endpoint
}

const (
	// tellAgain is how long after a line of a silent endpoint the next one comes.
	tellAgain = time.Hour
	// indexLag is how late an event may appear in the index of recent events.
	indexLag = 2 * time.Minute
	// ingressAhead is how far the front door's clock may be ahead.
	ingressAhead = time.Minute
)

// ears remember of each endpoint what was heard, so that most runs read nothing: one
// that was heard is looked at again when that is as long ago as it expects, and of a
// silent one only what came since the last look is read. The memory is the
// process's; a new process looks anew, so nothing is ever written for it.
type ears struct {
	mu sync.Mutex
	of map[webhook.EndpointID]*ear
}

// ear is what is known of one endpoint.
type ear struct {
	last  time.Time // of the newest event that counts; zero where there is none since `since`
	since time.Time // as far back as was looked, where nothing was found
	until time.Time // nothing that counts came after last, or since, until then; zero before the first look
	// A look goes back in time, a day after the other, and may take several runs: nothing
	// that counts is in (at, top]. Without one both are zero.
	top, at  time.Time
	silent   bool
	toldAt   time.Time // of the last line that said so; zero while none is to be taken back
	lookedAt time.Time
}

// silence finds which of the endpoints that ask for it heard nothing for too long.
// As for rotations, a figure that lacks an endpoint would look like a good one.
func (r *Reconciler) silence(ctx context.Context, endpoints []webhook.Endpoint, report *Report) {
	ctx, cancel := context.WithTimeout(ctx, r.Policy.Silence.Time)
	defer cancel()
	r.ears.mu.Lock()
	defer r.ears.mu.Unlock()
	now := r.Now()
	left := &looks{days: r.Policy.Silence.Days, rows: r.Policy.Silence.Rows}
	seen := Silence{Known: true}
	for _, e := range r.ears.asked(endpoints) {
		ear := r.ears.of[e.ID]
		known, err := true, error(nil)
		if ear.quiet(e, now) > e.ExpectEvery {
			if known, err = r.listen(ctx, e, ear, now, left); err != nil {
				report.note(unlessOver(ctx, fmt.Errorf("endpoint %s: %w", e.ID, err)))
			}
		}
		if known {
			ear.silent = ear.quiet(e, now) > e.ExpectEvery
		}
		// One that was silent is so until something is heard.
		seen.Known = seen.Known && err == nil && (known || ear.silent)
		if ear.silent {
			seen.Silent++
			seen.OldestS = max(seen.OldestS, ear.quiet(e, now).Seconds())
		}
		seen.tell(e, ear, now, r.Policy.Silence.Lines)
	}
	report.Silence = seen
}

// asked returns the endpoints that expect something, those first that were looked at
// longest ago, and forgets the others.
func (s *ears) asked(endpoints []webhook.Endpoint) []webhook.Endpoint {
	of := map[webhook.EndpointID]*ear{}
	var asked []webhook.Endpoint
	for _, e := range endpoints {
		if e.ExpectEvery <= 0 {
			continue
		}
		asked = append(asked, e)
		if of[e.ID] = s.of[e.ID]; of[e.ID] == nil {
			of[e.ID] = &ear{}
		}
	}
	s.of = of
	slices.SortStableFunc(asked, func(a, b webhook.Endpoint) int {
		return cmp.Or(of[a.ID].lookedAt.Compare(of[b.ID].lookedAt), cmp.Compare(a.ID, b.ID))
	})
	return asked
}

// quiet is for how long, as far as is known, nothing was heard. An endpoint that is
// new has as long as any other.
func (k *ear) quiet(e webhook.Endpoint, now time.Time) time.Duration {
	return now.Sub(latest(e.CreatedAt, k.last, k.since))
}

// looks are how much a run may still read.
type looks struct{ days, rows int }

func (l *looks) spent() bool { return l.days <= 0 || l.rows <= 0 }

// listen looks for the newest event that counts, from now back to where it looked
// before, or as far as the endpoint expects one. False means that it did not come to
// the end of that in this run, and goes on in the next.
func (r *Reconciler) listen(ctx context.Context, e webhook.Endpoint, k *ear, now time.Time, left *looks) (bool, error) {
	floor := latest(e.CreatedAt, now.Add(-e.ExpectEvery-time.Minute)) // a minute more: what is there is too old
	if k.last.IsZero() && k.since.After(floor) {
		*k = ear{silent: k.silent, toldAt: k.toldAt} // it expects less by now: look further back
	}
	bottom := floor
	if !k.until.IsZero() {
		bottom = latest(k.last, k.since, k.until.Add(-indexLag))
	}
	if k.top.IsZero() {
		k.top, k.at = now, now.Add(ingressAhead)
	}
	k.lookedAt = now
	for !k.at.Before(bottom) {
		if left.spent() || ctx.Err() != nil {
			return false, nil //nolint:nilerr // the time is up: the next run goes on from here
		}
		from := latest(bottom, k.at.UTC().Truncate(24*time.Hour))
		heard, whole, err := r.hear(ctx, e.ID, k, from, left)
		if heard || !whole || err != nil {
			return heard, err
		}
		k.at = from.Add(-time.Millisecond)
	}
	if k.last.IsZero() && k.since.IsZero() {
		k.since = floor
	}
	k.until, k.top, k.at = k.top, time.Time{}, time.Time{}
	return true, nil
}

// hear looks through a part of a day, newest first, for an event that counts. Whole
// says that it came to the end without one.
func (r *Reconciler) hear(ctx context.Context, id webhook.EndpointID, k *ear, from time.Time, left *looks) (heard, whole bool, err error) {
	left.days--
	for row, err := range r.Store.Arrivals(ctx, id, from, k.at) {
		if err != nil {
			return false, false, err
		}
		if row.Heard() {
			k.last, k.until = row.ReceivedAt, k.top
			k.top, k.at = time.Time{}, time.Time{}
			return true, true, nil
		}
		k.at = row.ReceivedAt
		if left.rows--; left.rows <= 0 {
			return false, false, nil
		}
	}
	return false, true, nil
}

// tell adds an endpoint to what is told if that is new, or was told long ago.
func (s *Silence) tell(e webhook.Endpoint, k *ear, now time.Time, lines int) {
	begins := k.silent && (k.toldAt.IsZero() || now.Sub(k.toldAt) >= tellAgain)
	ends := !k.silent && !k.toldAt.IsZero()
	if !begins && !ends || len(s.Told) == lines {
		return
	}
	s.Told = append(s.Told, SilentEndpoint{ID: e.ID, Provider: e.Provider, Over: ends, LastEventAt: k.last, ExpectEvery: e.ExpectEvery})
	k.toldAt = time.Time{}
	if begins {
		k.toldAt = now
	}
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
