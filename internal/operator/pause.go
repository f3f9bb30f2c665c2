package operator

import (
	"context"
	"iter"
	"slices"
	"time"

	"dakghar/internal/webhook"
)

// PauseWithin is how long it takes until every process knows of a pause, or of
// its end: the age at which endpoints are read again.
const PauseWithin = 30 * time.Second

// resumeMargin is added to [PauseWithin] before events are brought near: a worker
// that still believed in the pause would put them far away again.
const resumeMargin = 5 * time.Second

// Paused is an endpoint that accepts and does not process.
type Paused struct {
	Endpoint webhook.Endpoint
	// Existed is set when it was paused before.
	Existed bool
}

// Pause lets an endpoint accept events and work on none, within [PauseWithin].
// What a worker has in hand is finished. Repeated, it changes nothing.
func (o *Operator) Pause(ctx context.Context, id webhook.EndpointID, why string) (Paused, error) {
	act, err := o.act(ctx, "endpoint pause", "endpoint "+string(id), why)
	if err != nil {
		return Paused{}, err
	}
	var p Paused
	p.Endpoint, err = o.change(ctx, id, act, func(e webhook.Endpoint) (webhook.Endpoint, bool, error) {
		p.Existed = !e.PausedAt.IsZero()
		if !p.Existed {
			e.PausedAt = act.At
		}
		return e, p.Existed, nil
	})
	return p, err
}

// waiting are the states of events that a pause keeps from being worked on.
func waiting() []webhook.Status {
	return []webhook.Status{webhook.Received, webhook.Retry, webhook.Processing}
}

// pauseReader reports whether an endpoint is paused.
type pauseReader func(context.Context, webhook.EndpointID) (bool, error)

// pauses returns a reader that remembers what it has read.
func (o *Operator) pauses() pauseReader {
	paused := map[webhook.EndpointID]bool{}
	return func(ctx context.Context, id webhook.EndpointID) (bool, error) {
		if is, known := paused[id]; known {
			return is, nil
		}
		e, _, err := o.Registry.Endpoint(ctx, id)
		if err != nil {
			return false, unreachable("the registry", err)
		}
		paused[id] = !e.PausedAt.IsZero()
		return paused[id], nil
	}
}

// nearUnits are the write units of one promise that is brought near.
const nearUnits = 1

// PlanResume counts the events of an endpoint that wait. It writes nothing.
func (o *Operator) PlanResume(ctx context.Context, id webhook.EndpointID, rate int, why string) (Plan, error) {
	if err := checkRate(rate, "events"); err != nil {
		return Plan{}, err
	}
	if _, err := o.endpoint(ctx, id); err != nil {
		return Plan{}, err
	}
	p := newPlan(o.jobOf(Bulk{Act: actResume, Filter: webhook.Filter{Endpoint: id, Statuses: waiting()}, Why: why, Rate: rate}))
	for b, err := range o.waitingBatches(ctx, p.Job.Filter, "") {
		if err != nil {
			return p, err
		}
		for _, c := range b.events {
			p.add(c.row, or(string(o.Kind(c.row)), string(c.row.EventType)))
		}
	}
	p.finish(nearUnits)
	return p, nil
}

// Resume ends a pause and then, as a job, brings every waiting event of the
// endpoint near, so that the relay publishes it again. The job begins when every
// process knows that the pause is over. Repeated, also after a crash anywhere,
// it does the rest.
func (o *Operator) Resume(ctx context.Context, p Plan, tell func(webhook.Job)) (webhook.Job, error) {
	id := p.Job.Filter.Endpoint
	act, err := o.act(ctx, actResume, "endpoint "+string(id), p.Job.Why)
	if err != nil {
		return p.Job, err
	}
	if _, err := o.change(ctx, id, act, func(e webhook.Endpoint) (webhook.Endpoint, bool, error) {
		was := e.PausedAt
		e.PausedAt = time.Time{}
		return e, was.IsZero(), nil
	}); err != nil {
		return p.Job, err
	}
	p.Job.NotBefore = o.Now().Add(PauseWithin + resumeMargin)
	return o.Start(ctx, p, tell)
}

// bringNear writes an event's promise anew, due as soon as the event may be
// worked on.
func (r *runner) bringNear(ctx context.Context, c candidate, _ bool) error {
	written, err := r.o.Inbox.BringNear(ctx, c.promise.Near(c.row, r.o.Now()))
	switch {
	case err != nil:
		return unreachable("the outbox", err)
	case !written:
		return r.o.moved(c.row.ID)
	}
	return nil
}

// promisesPage is how many outbox rows are read at a time: as many inbox rows can
// be read in one call.
const promisesPage = 100

// waitingBatches yields the events of an endpoint that wait for a worker, by the
// promises that there are, a page at a time. The outbox holds only work in
// flight, so it is far shorter than any list of events. Once the endpoint is
// paused again there is nothing to bring near.
func (o *Operator) waitingBatches(ctx context.Context, f webhook.Filter, cursor string) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		for {
			page, err := o.Inbox.OpenPromises(ctx, cursor, promisesPage)
			if err != nil {
				yield(batch{}, unreachable("the outbox", err))
				return
			}
			b := batch{cursor: page.Next, indivisible: true}
			if b.events, err = o.waitingOf(ctx, f, page.Rows); err != nil {
				yield(b, err)
				return
			}
			if !yield(b, nil) || page.Next == "" {
				return
			}
			cursor = page.Next
		}
	}
}

// waitingOf reads the subjects of promises and keeps those that match.
func (o *Operator) waitingOf(ctx context.Context, f webhook.Filter, promises []webhook.Outbox) ([]candidate, error) {
	byID := map[webhook.InboxID]webhook.Outbox{}
	var ids []webhook.InboxID
	for _, p := range promises {
		if p.Topic == webhook.TopicProcess && (p.Endpoint == f.Endpoint || p.Endpoint == "") {
			byID[p.InboxID] = p
			ids = append(ids, p.InboxID)
		}
	}
	var waiting []candidate
	for some := range slices.Chunk(ids, promisesPage) {
		rows, err := o.Inbox.Inboxes(ctx, some)
		if err != nil {
			return nil, unreachable("the inbox", err)
		}
		for _, row := range rows {
			if o.matches(f, row) {
				waiting = append(waiting, candidate{row: row, promise: byID[row.ID]})
			}
		}
	}
	return waiting, nil
}
