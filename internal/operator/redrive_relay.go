package operator

import (
	"context"

	"dakghar/internal/webhook"
)

// relay brings every late promise near and then removes the reports that were
// there before: what a report was about is in the outbox since before the report
// was, so the promises that were gone through hold all of it.
func (d *redriver) relay(ctx context.Context) error {
	reports, err := d.o.take(ctx, d.o.RelayFailures, LettersMax, reportsHide)
	if err == nil && len(reports) > 0 {
		err = d.record(ctx, QueueRelay)
		if err == nil {
			err = d.near(ctx)
		}
	}
	if err != nil {
		_ = d.o.RelayFailures.GiveBack(context.WithoutCancel(ctx), reports) // they show themselves otherwise
		if codeOf(err) == "" {
			err = unreachable("the queue", err)
		}
		return err
	}
	if err := d.o.RelayFailures.Remove(ctx, reports); err != nil {
		return unreachable("the queue", err)
	}
	d.done.Reports = len(reports)
	d.tell(d.done)
	return nil
}

// near writes the late promises anew, so that the stream tells the relay of them.
func (d *redriver) near(ctx context.Context) error {
	paused := d.o.pauses()
	return d.o.pages(ctx, func(promises []webhook.Outbox) error {
		byID := map[webhook.InboxID]webhook.Outbox{}
		ids := make([]webhook.InboxID, 0, len(promises))
		for _, p := range promises {
			byID[p.InboxID] = p
			ids = append(ids, p.InboxID)
		}
		if len(ids) == 0 {
			return nil
		}
		rows, err := d.o.Inbox.Inboxes(ctx, ids)
		if err != nil {
			return unreachable("the inbox", err)
		}
		for _, row := range rows {
			if err := d.bring(ctx, row, byID[row.ID], paused); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *redriver) bring(ctx context.Context, row webhook.Inbox, p webhook.Outbox, paused pauseReader) error {
	if !row.Status.Waiting() {
		return nil // nobody is to work on it now; the reconciler sees to its promise
	}
	if is, err := paused(ctx, row.Endpoint); err != nil || is {
		return err // resuming brings it near
	}
	written, err := d.o.Inbox.BringNear(ctx, p.Near(row, d.o.Now()))
	if err != nil {
		return unreachable("the outbox", err)
	}
	if written {
		d.done.Near++
		d.tell(d.done)
	}
	return d.pace(ctx)
}
