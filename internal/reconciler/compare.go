package reconciler

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Evidences reads and mends what a comparison looks at.
type Evidences interface {
	Inbox(ctx context.Context, id webhook.InboxID) (webhook.Inbox, bool, error)
	Outbox(ctx context.Context, id webhook.OutboxID) (webhook.Outbox, bool, error)
	Marked(ctx context.Context, id webhook.InboxID, run int) (bool, error)
	BodyKept(ctx context.Context, id webhook.BodyID, now time.Time) (bool, error)

	EndpointIDs(ctx context.Context) ([]webhook.EndpointID, error)
	RecentPage(ctx context.Context, e webhook.EndpointID, shard int, from, to time.Time, after string, limit int) (ids []webhook.InboxID, next string, err error)
	InboxPage(ctx context.Context, segment, segments int, after string, limit int) (rows []webhook.Inbox, unreadable []webhook.InboxID, next string, err error)
	InboxRows(ctx context.Context, ids []webhook.InboxID) (rows map[webhook.InboxID]webhook.Inbox, unreadable []webhook.InboxID, err error)
	Promises(ctx context.Context, ids []webhook.OutboxID) (map[webhook.OutboxID]webhook.Outbox, error)
	MarksOf(ctx context.Context, rows []webhook.Inbox) (map[webhook.InboxID]bool, error)

	Retry(ctx context.Context, c webhook.Change, promise webhook.Outbox) (bool, error)
	DeleteOutbox(ctx context.Context, id webhook.OutboxID, upTo webhook.Fence) (bool, error)
	DropPromise(ctx context.Context, subject webhook.Inbox, promise webhook.Outbox) (bool, error)

	Lease(ctx context.Context, name, owner string, now, until time.Time) (state string, ok bool, err error)
	Release(ctx context.Context, name, owner, state string) error
}

// Comparer compares accepted events with their promises, marks and bodies. All
// fields but ReportOnly and Tell are required.
type Comparer struct {
	Store Evidences
	Now   func() time.Time
	NewID func() string
	// AtOnce is how many pages are compared side by side.
	AtOnce int
	// Slack is the time that a page which was begun may take to be finished, after
	// the time of its pass is up.
	Slack time.Duration
	// ReportOnly changes nothing.
	ReportOnly bool
	// Tell, if set, is told each finding once, one at a time.
	Tell func(Detail)
}

const (
	// comparePage is how many events are read together, the service's bound on one batch.
	comparePage = 100
	// compareLooks bounds how often an event is read again that changes meanwhile.
	compareLooks = 4
)

// page is a page of events, read or only named yet.
type page struct {
	ids        []webhook.InboxID // named by an index: to be read
	rows       []webhook.Inbox   // read
	unreadable []webhook.InboxID
	next       string
}

// compared is what came of a page.
type compared struct {
	events  int // 0 where it is to be compared again
	details []Detail
}

// compare compares one page whole. On an error the page is to be compared again:
// what was mended by then is in the details, and not found a second time.
func (c *Comparer) compare(ctx context.Context, p page) (compared, error) {
	rows, suspects, unreadable := p.rows, []webhook.InboxID(nil), p.unreadable
	if len(p.ids) > 0 {
		found, odd, err := c.Store.InboxRows(ctx, p.ids)
		if err != nil {
			return compared{}, err
		}
		unreadable = append(unreadable, odd...)
		for _, id := range p.ids {
			if row, ok := found[id]; ok {
				rows = append(rows, row)
			} else if !slices.Contains(odd, id) {
				suspects = append(suspects, id)
			}
		}
	}
	events := len(rows) + len(suspects) + len(unreadable)
	differing, err := c.suspect(ctx, rows)
	if err != nil {
		return compared{}, err
	}
	// From here on the page is finished, though the time of the pass be up.
	ctx, cancel := c.finishing(ctx)
	defer cancel()
	details, err := c.settleAll(ctx, append(suspects, differing...))
	if err != nil {
		return compared{details: details}, err
	}
	for _, id := range unreadable {
		details = append(details, Detail{id, Finding{RowUnreadable, Reported}})
	}
	return compared{events, details}, nil
}

// finishing outlasts the time of a pass by the slack; where that has no end, and
// is only ever cancelled, the slack is all.
func (c *Comparer) finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	whole := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(whole, end.Add(c.Slack))
	}
	return context.WithTimeout(whole, c.Slack)
}

// suspect returns the rows that may differ. Promises and marks are read after
// the rows, many at a time and not consistently: a row that agrees by that is
// fine, since a mark never goes while its row is there and an open row's promise
// is never removed; whatever does not is looked at by itself.
func (c *Comparer) suspect(ctx context.Context, rows []webhook.Inbox) ([]webhook.InboxID, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]webhook.OutboxID, len(rows))
	for i, row := range rows {
		ids[i] = webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0)
	}
	promises, err := c.Store.Promises(ctx, ids)
	if err != nil {
		return nil, err
	}
	marks, err := c.Store.MarksOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	var suspects []webhook.InboxID
	for i, row := range rows {
		e := Evidence{Row: row, Marked: marks[row.ID]}
		if promise, ok := promises[ids[i]]; ok {
			e.Promise = &promise
		}
		if err := c.lookForBody(ctx, &e); err != nil {
			return nil, err
		}
		if len(e.Differences()) > 0 {
			suspects = append(suspects, row.ID)
		}
	}
	return suspects, nil
}

// lookForBody looks up the body of an open row; there are few of those.
func (c *Comparer) lookForBody(ctx context.Context, e *Evidence) error {
	if e.Row.Status.Terminal() || e.Row.BodyID == "" {
		return nil
	}
	kept, err := c.Store.BodyKept(ctx, e.Row.BodyID, c.Now())
	e.BodyGone = !kept
	return err
}

// settleAll settles each event. On an error it returns what was mended; what is
// only reported will be found again.
func (c *Comparer) settleAll(ctx context.Context, ids []webhook.InboxID) ([]Detail, error) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(c.AtOnce)
	var details []Detail
	for _, id := range ids {
		group.Go(func() error {
			found, err := c.settle(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			for _, f := range found {
				details = append(details, Detail{id, f})
			}
			return err
		})
	}
	err := group.Wait()
	if err != nil {
		details = slices.DeleteFunc(details, func(d Detail) bool { return d.Deed == Reported })
	}
	return details, err
}

// settle looks at one event consistently, and acts. A look counts only if the
// row did not change under it: a write proves that by its guard, and where
// nothing is written, by the fence, read again.
func (c *Comparer) settle(ctx context.Context, id webhook.InboxID) ([]Finding, error) {
	for range compareLooks {
		e, found, err := c.look(ctx, id)
		switch {
		case fault.KindOf(err) == fault.Permanent && err != nil:
			return []Finding{{RowUnreadable, Reported}}, nil //nolint:nilerr // that is the finding
		case err != nil:
			return nil, err
		case !found:
			return []Finding{{RowGone, Reported}}, nil
		}
		kinds := e.Differences()
		if len(kinds) == 0 {
			return nil, nil
		}
		deed, held, err := c.mend(ctx, e)
		if err != nil {
			return nil, err
		}
		if held {
			return findings(kinds, deed), nil
		}
	}
	return []Finding{{Unsettled, Reported}}, nil
}

// findings names each difference with what was done about it: the deed mends the
// promise, and the others are for a person.
func findings(kinds []Kind, deed Deed) []Finding {
	found := make([]Finding, len(kinds))
	for i, k := range kinds {
		found[i] = Finding{k, Reported}
		if k == OpenWithoutPromise || k == PromiseLeft || k == PromiseAhead {
			found[i].Deed = deed
		}
	}
	return found
}

// look reads the subject first, and everything else after it.
func (c *Comparer) look(ctx context.Context, id webhook.InboxID) (Evidence, bool, error) {
	row, found, err := c.Store.Inbox(ctx, id)
	if err != nil || !found {
		return Evidence{}, false, err
	}
	e := Evidence{Row: row}
	promise, promised, err := c.Store.Outbox(ctx, webhook.NewOutboxID(id, webhook.TopicProcess, 0))
	if err != nil {
		return e, true, err
	}
	if promised {
		e.Promise = &promise
	}
	if e.Marked, err = c.Store.Marked(ctx, id, row.Run); err != nil {
		return e, true, err
	}
	return e, true, c.lookForBody(ctx, &e)
}

// mend does what is safe about a difference. False means that the row, or its
// promise, has moved on since it was read.
func (c *Comparer) mend(ctx context.Context, e Evidence) (Deed, bool, error) {
	deed := e.deed()
	if c.ReportOnly {
		deed = Reported
	}
	switch deed {
	case Requeued:
		change := e.Row.Requeue()
		held, err := c.Store.Retry(ctx, change, promiseAnew(change.Apply(e.Row), c.Now()))
		return deed, held, err
	case Deleted:
		if e.Promise.Gen > e.Row.Fence {
			held, err := c.Store.DropPromise(ctx, e.Row, *e.Promise)
			return deed, held, err
		}
		held, err := c.Store.DeleteOutbox(ctx, e.Promise.ID, e.Row.Fence)
		return deed, held, err
	case Reported:
	}
	again, found, err := c.Store.Inbox(ctx, e.Row.ID)
	return Reported, found && again.Fence == e.Row.Fence, err
}
