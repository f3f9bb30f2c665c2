package ingress

import (
	"context"
	"errors"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/limit"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// event is a verified request on its way into the inbox.
type event struct {
	adapter  *provider.Adapter
	endpoint webhook.Endpoint
	envelope provider.Envelope
	unwanted bool // of a type that the endpoint keeps and does not act on
	canary   bool // ours, and so no sign of which key its provider uses
	body     []byte
	hops     int
	matched  webhook.KeyVersion
	now      time.Time
}

// bodyTries bounds the dance with the expiry sweep: put, found, gone before the
// renewal, put again.
const bodyTries = 3

// accept makes the event durable and only then reports success.
func (r *Receiver) accept(ctx context.Context, ev event, report Report) Report {
	digest := webhook.DigestOf(ev.body)
	id := webhook.DeriveInboxID(ev.endpoint.Scope, ev.adapter.Name, ev.envelope.EventID)
	report.InboxID = id
	if r.Recent.Has(id, digest) {
		return report.succeed(ev.adapter.SuccessCode, Duplicate)
	}
	taken := r.Limits.Take(ctx, limit.Of{Name: string(ev.endpoint.ID), Rate: ev.endpoint.Rate, Burst: ev.endpoint.Burst}, ev.now)
	report.LimiterErr = taken.Err
	if !taken.OK {
		return report.limit("endpoint_limited", taken.Wait)
	}
	noted := r.noteMatch(ctx, ev)
	defer func() { <-noted }()

	body := webhook.Body{
		ID: webhook.DeriveBodyID(ev.endpoint.ID, digest), Tenant: ev.endpoint.Tenant, Raw: ev.body,
		InboxID: id, PutID: r.NewID(), At: ev.now,
	}
	placed, existing, err := r.placeBody(ctx, body)
	if err != nil {
		return report.fail(err)
	}
	row := r.newRow(ev, id, digest, body, placed)
	if existing == nil {
		began := r.Now()
		existing, err = r.commit(ctx, row)
		report.Commit = r.Now().Sub(began)
	}
	switch {
	case err != nil:
		return report.fail(err)
	case existing == nil:
		r.Recent.Add(id, digest)
		return report.succeed(ev.adapter.SuccessCode, Accepted)
	}
	return r.known(ctx, ev, row, *existing, body, placed, report)
}

// noteMatch records a key's first match beside the acceptance, not before it. A
// canary's is none: it would end the trust in the previous key while the provider
// still signs with that.
func (r *Receiver) noteMatch(ctx context.Context, ev event) <-chan struct{} {
	done := make(chan struct{})
	if _, isFirst := ev.endpoint.WithFirstMatch(ev.matched, ev.now); !isFirst || ev.canary {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		r.Endpoints.Matched(ctx, ev.endpoint, ev.matched, ev.now)
	}()
	return done
}

// placeBody stores the bytes. Where they stood already, it reads the event's row
// and returns it if it is there; otherwise it always renews the body, whose
// life may be nearly over, and puts it again if the sweep was faster.
func (r *Receiver) placeBody(ctx context.Context, body webhook.Body) (webhook.Placed, *webhook.Inbox, error) {
	placed, err := r.Bodies.Put(ctx, body)
	if err != nil || !placed.Existed {
		return placed, nil, err
	}
	row, found, err := r.Inbox.Inbox(ctx, body.InboxID)
	if err != nil || found {
		return placed, &row, err
	}
	placed, err = r.renewBody(ctx, body, placed)
	return placed, nil, err
}

// renewBody gives bytes that are there already a whole life for one more row.
func (r *Receiver) renewBody(ctx context.Context, body webhook.Body, placed webhook.Placed) (webhook.Placed, error) {
	for range bodyTries {
		renewed, ok, err := r.Bodies.Renew(ctx, body)
		if err != nil {
			return placed, err
		}
		if ok {
			renewed.Existed, renewed.FirstInbox = true, placed.FirstInbox
			return renewed, nil
		}
		placed, err = r.Bodies.Put(ctx, body)
		if err != nil || !placed.Existed {
			return placed, err
		}
	}
	return placed, fault.New(fault.Ours, "body_contended", errors.New("the body came and went"))
}

func (r *Receiver) newRow(ev event, id webhook.InboxID, digest webhook.Digest, body webhook.Body, placed webhook.Placed) webhook.Inbox {
	row := webhook.Inbox{
		ID: id, Provider: ev.adapter.Name, Endpoint: ev.endpoint.ID, Tenant: ev.endpoint.Tenant,
		EventID: ev.envelope.EventID, EventType: ev.envelope.Type,
		ObjectID:          clip(ev.envelope.ObjectID, webhook.ObjectIDBytesMax),
		ObjectVersion:     clip(ev.envelope.ObjectVersion, webhook.ObjectVersionBytesMax),
		ProviderCreatedAt: ev.envelope.CreatedAt, ReceivedAt: ev.now,
		BodyID: body.ID, BodyExpiresAt: placed.ExpiresAt, Digest: digest, MatchedVersion: ev.matched, Unwanted: ev.unwanted, Hops: ev.hops,
		Status: webhook.Received, NextAttemptAt: ev.now,
	}
	// The same bytes under a fresh id are possible only where the id is not
	// signed: then they may be a captured request. Such senders have no kinds that
	// add up, so applying it converges.
	if placed.Existed && placed.FirstInbox != id && !ev.adapter.Covers.ID {
		row.SameBodyAs = placed.FirstInbox
	}
	return row
}

// commit writes the row and its promise. A held row's is only that somebody comes
// before its body is gone.
func (r *Receiver) commit(ctx context.Context, row webhook.Inbox) (*webhook.Inbox, error) {
	promise := webhook.NewOutbox(row, row.ReceivedAt, row.ReceivedAt)
	if row.Status == webhook.Held {
		promise = webhook.NewHeldOutbox(row, row.ReceivedAt)
	}
	return r.Inbox.Accept(ctx, row, &promise)
}

// known answers for an event whose row was there before. Nothing that happened
// to that row withdraws its acceptance.
func (r *Receiver) known(ctx context.Context, ev event, row, existing webhook.Inbox, body webhook.Body, placed webhook.Placed, report Report) Report {
	switch {
	case existing.Digest == row.Digest:
		r.takeBack(ctx, existing, body, placed, ev.now)
		r.Recent.Add(row.ID, row.Digest)
		return report.succeed(ev.adapter.SuccessCode, Duplicate)
	case existing.MatchedVersion == webhook.Backfilled, row.MatchedVersion == webhook.Backfilled:
		// A list writes an event otherwise than a delivery does, so between the two
		// other bytes say nothing.
		return report.succeed(ev.adapter.SuccessCode, Duplicate)
	case ev.adapter.BodyVaries != provider.Never:
		return report.succeed(ev.adapter.SuccessCode, DuplicateVaried)
	}
	if placed.Existed {
		renewed, err := r.renewBody(ctx, body, placed)
		if err != nil {
			return report.fail(err)
		}
		placed = renewed
	}
	conflict := row
	conflict.BodyExpiresAt = placed.ExpiresAt
	conflict.ID = webhook.DeriveConflictID(ev.endpoint.Scope, ev.adapter.Name, ev.envelope.EventID, row.Digest)
	conflict.ConflictWith, conflict.SameBodyAs = existing.ID, ""
	conflict.Status = webhook.Held
	before, err := r.commit(ctx, conflict)
	if err != nil {
		return report.fail(err)
	}
	if before != nil {
		r.takeBack(ctx, *before, body, placed, ev.now)
	}
	report.InboxID = conflict.ID
	return report.succeed(ev.adapter.SuccessCode, Conflict)
}

// takeBack removes the copy that a duplicate has brought of a body that was let go
// with its event. Failing leaves it to its expiry.
func (r *Receiver) takeBack(ctx context.Context, existing webhook.Inbox, body webhook.Body, placed webhook.Placed, now time.Time) {
	if r.bodyIsSpent(existing, placed, now) {
		_ = r.Bodies.Remove(ctx, body.ID, body.PutID)
	}
}

// bodyIsSpent reports whether the body that a repeat has just stored is nobody's:
// the event has ended, and its body's life is over, or it was erased, whatever the
// operator's clock said then.
func (r *Receiver) bodyIsSpent(existing webhook.Inbox, placed webhook.Placed, now time.Time) bool {
	return !placed.Existed && existing.Status.Terminal() && (existing.BodyExpiresAt.Before(now) || !existing.ErasedAt.IsZero())
}

func clip(s string, bytesMax int) string { return s[:min(len(s), bytesMax)] }
