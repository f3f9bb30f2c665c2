package dynamo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"dakghar/internal/webhook"
)

// What an operator's command reads and writes besides the rows of the protocol.
//
// Every act of an operator leaves two registry rows: pk "audit#<yyyymmdd>" of its
// UTC day, and pk "acts#<subject>", each with its time and id as sk, so that a day
// and a subject's whole history read in order. A job's act has "job#<job>" as its
// sk among the subject's: whether the job was here is one read. An act that
// changes a row commits together with its record.

// auditTime has a fixed width, so that its texts sort like the times.
const auditTime = "2006-01-02T15:04:05.000Z"

func auditDay(t time.Time) string { return "audit#" + t.UTC().Format("20060102") }

func encodeAct(a webhook.Act) attributes {
	item := attributes{
		"pk": str(auditDay(a.At)), "sk": str(a.At.UTC().Format(auditTime) + "#" + a.ID),
		"at": ms(a.At), "act": str(a.Name), "sub": str(a.Subject), "who": str(a.Who),
	}
	setStr(item, "id", a.ID)
	setStr(item, "why", a.Why)
	setStr(item, "job", a.Job)
	return item
}

func decodeAct(item attributes) (webhook.Act, error) {
	d := decoder{a: item}
	act := webhook.Act{ID: d.str("id"), At: d.ms("at"), Name: d.str("act"), Subject: d.str("sub"), Who: d.str("who"), Why: d.str("why"), Job: d.str("job")}
	if sort := d.str("sk"); act.ID == "" && len(sort) > len(auditTime) {
		act.ID = sort[len(auditTime)+1:] // a row of before the id had a column of its own
	}
	if act.ID == "" || act.Name == "" {
		d.fail("sk or act", errors.New("absent"))
	}
	return act, d.err
}

// with joins the writes that an act is about with those of its record.
func (s *Store) with(a webhook.Act, writes ...types.TransactWriteItem) []types.TransactWriteItem {
	return append(writes, s.putActs(a)...)
}

// putActs are the two rows of an act's record.
func (s *Store) putActs(a webhook.Act) []types.TransactWriteItem {
	byDay := encodeAct(a)
	bySubject := maps.Clone(byDay)
	maps.Copy(bySubject, subjectKey(a))
	var writes []types.TransactWriteItem
	for _, item := range []attributes{byDay, bySubject} {
		writes = append(writes, types.TransactWriteItem{Put: &types.Put{TableName: &s.Tables.Registry, Item: item}})
	}
	return writes
}

// RecordAct writes the record of an act that changes no row of ours.
func (s *Store) RecordAct(ctx context.Context, a webhook.Act) error {
	reasons, err := s.commit(ctx, s.with(a)...)
	if err == nil && reasons != nil {
		return cancelledByService(reasons)
	}
	return err
}

// CreateEndpointBy is [Store.CreateEndpoint] together with the record of the act.
func (s *Store) CreateEndpointBy(ctx context.Context, e webhook.Endpoint, a webhook.Act) (bool, error) {
	e.Revision = 1
	item, err := encodeEndpoint(e)
	if err != nil {
		return false, err
	}
	listed := attributes{"pk": str("endpoints"), "sk": str(string(e.ID))}
	return s.commitFirst(ctx, s.with(a,
		types.TransactWriteItem{Put: &types.Put{
			TableName: &s.Tables.Registry, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		}},
		types.TransactWriteItem{Put: &types.Put{TableName: &s.Tables.Registry, Item: listed}},
	)...)
}

// UpdateEndpointBy is [Store.UpdateEndpoint] together with the record of the act.
func (s *Store) UpdateEndpointBy(ctx context.Context, e webhook.Endpoint, a webhook.Act) (bool, error) {
	seen := e.Revision
	e.Revision++
	item, err := encodeEndpoint(e)
	if err != nil {
		return false, err
	}
	x := newExpression()
	condition := x.name("rev") + " = " + x.value(num(seen))
	return s.commitFirst(ctx, s.with(a, types.TransactWriteItem{Put: &types.Put{
		TableName: &s.Tables.Registry, Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}})...)
}

// Reopen opens a failed or held row again, with its promise and the record of
// the act, unless its run was applied. The verdict is [webhook.Committed],
// [webhook.ClaimLost] where the row has moved on or its body lives too short,
// or [webhook.MarkExists].
func (s *Store) Reopen(ctx context.Context, c webhook.Change, run int, promise webhook.Outbox, a webhook.Act) (webhook.Verdict, error) {
	notApplied := types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &s.Tables.Business, Key: keyOf(markKey(c.ID, run)), ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}}
	reasons, err := s.commit(ctx, s.with(a, s.changeInbox(c), notApplied, s.putOutbox(promise))...)
	switch {
	case err != nil:
		return 0, err
	case reasons == nil:
		return webhook.Committed, nil
	case refused(reasons[0]):
		return webhook.ClaimLost, nil
	case refused(reasons[1]):
		return webhook.MarkExists, nil
	}
	return 0, cancelledByService(reasons)
}

// Hold takes a row out of the work by an operator, leaves the promise that
// somebody comes before its body is gone, and records the act. False means that
// the row has moved on.
func (s *Store) Hold(ctx context.Context, c webhook.Change, promise webhook.Outbox, a webhook.Act) (bool, error) {
	return s.commitLeaving(ctx, c, s.with(a, s.putOutbox(promise))...)
}

// FailBy ends a row by an operator, takes its promise away and records the act.
// False means that the row has moved on.
func (s *Store) FailBy(ctx context.Context, c webhook.Change, promise webhook.OutboxID, a webhook.Act) (bool, error) {
	return s.commitLeaving(ctx, c, s.with(a, s.deleteOutbox(promise))...)
}

// commitFirst writes everything if the first write's condition holds; false
// means that it does not, and nothing was written.
func (s *Store) commitFirst(ctx context.Context, writes ...types.TransactWriteItem) (bool, error) {
	reasons, err := s.commit(ctx, writes...)
	switch {
	case err != nil:
		return false, err
	case reasons == nil:
		return true, nil
	case refused(reasons[0]):
		return false, nil
	}
	return false, cancelledByService(reasons)
}

// Acts yields the recorded acts from until back to since, newest first.
func (s *Store) Acts(ctx context.Context, since, until time.Time) iter.Seq2[webhook.Act, error] {
	return func(yield func(webhook.Act, error) bool) {
		for _, day := range daysBack(until, since) {
			x := newExpression()
			condition := x.name("pk") + " = " + x.value(str(auditDay(day))) + " AND " + x.name("sk") +
				" BETWEEN " + x.value(str(since.UTC().Format(auditTime))) + " AND " + x.value(str(until.UTC().Format(auditTime)+afterID))
			for item, err := range s.queryAll(ctx, &dynamodb.QueryInput{
				TableName: &s.Tables.Registry, KeyConditionExpression: &condition, ConsistentRead: aws.Bool(true),
				ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values, ScanIndexForward: aws.Bool(false),
			}) {
				var act webhook.Act
				if err == nil {
					act, err = decodeAct(item)
				}
				if !yield(act, err) || err != nil {
					return
				}
			}
		}
	}
}

// afterID sorts after every "#" and id that may follow a time.
const afterID = "$"

// daysBack returns the UTC days from now back to since, newest first; none if
// there is no time between them.
func daysBack(now, since time.Time) []time.Time {
	var days []time.Time
	if now.Before(since) {
		return nil // the service refuses a span whose end comes first
	}
	first := since.UTC().Truncate(24 * time.Hour)
	for day := now.UTC().Truncate(24 * time.Hour); !day.Before(first); day = day.AddDate(0, 0, -1) {
		days = append(days, day)
	}
	return days
}

// queryAll yields a query's items, page by page.
func (s *Store) queryAll(ctx context.Context, in *dynamodb.QueryInput) iter.Seq2[attributes, error] {
	return func(yield func(attributes, error) bool) {
		pages := dynamodb.NewQueryPaginator(s.DB, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, unavailable("read", err))
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// RecentInbox yields an endpoint's events that were received from since to until,
// both included, newest first. The index is eventually consistent, so an event of
// the last second may be missing; the rows themselves are read consistently.
func (s *Store) RecentInbox(ctx context.Context, e webhook.EndpointID, since, until time.Time) iter.Seq2[webhook.Inbox, error] {
	return func(yield func(webhook.Inbox, error) bool) {
		for _, day := range daysBack(until, since) {
			merged := s.newShards(s.Tables.Inbox, since, until, "recent", "rk", "ra", func(shard int) string { return recentKey(e, day, shard) })
			if !s.yieldRows(ctx, merged, yield) {
				return
			}
		}
	}
}

// FailedInbox yields the events of all endpoints that failed from since to until,
// both included, the last failed first. Like [Store.RecentInbox] it may miss the
// last second; a row that has left FAILED since is yielded as it is now.
func (s *Store) FailedInbox(ctx context.Context, since, until time.Time) iter.Seq2[webhook.Inbox, error] {
	return func(yield func(webhook.Inbox, error) bool) {
		if until.Before(since) {
			return
		}
		s.yieldRows(ctx, s.newShards(s.Tables.Inbox, since, until, "failed", "fk", "fa", failedKey), yield)
	}
}

// yieldRows reads the rows that the shards name, a batch at a time. False means
// that the caller has had enough, or that an error was yielded.
func (s *Store) yieldRows(ctx context.Context, from *shards, yield func(webhook.Inbox, error) bool) bool {
	for {
		ids, err := from.next(ctx, batchGetMax)
		if err == nil && len(ids) == 0 {
			return true
		}
		var rows []webhook.Inbox
		if err == nil {
			rows, err = s.Inboxes(ctx, namesOf[webhook.InboxID](ids))
		}
		if err != nil {
			yield(webhook.Inbox{}, err)
			return false
		}
		for _, row := range rows {
			if !yield(row, nil) {
				return false
			}
		}
	}
}

// namesOf turns texts into identifiers.
func namesOf[T ~string](texts []string) []T {
	names := make([]T, len(texts))
	for i, text := range texts {
		names[i] = T(text)
	}
	return names
}

// batchGetMax is the service's bound on the keys of one BatchGetItem.
const batchGetMax = 100

// Inboxes reads rows by id, strongly consistent, in the order of the ids. One
// that is gone is left out. At most 100 ids.
func (s *Store) Inboxes(ctx context.Context, ids []webhook.InboxID) ([]webhook.Inbox, error) {
	keys := make([]attributes, len(ids))
	for i, id := range ids {
		keys[i] = attributes{"id": str(string(id))}
	}
	found := make(map[webhook.InboxID]webhook.Inbox, len(ids))
	pause := conflictPause
	for len(keys) > 0 {
		out, err := s.DB.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			s.Tables.Inbox: {Keys: keys, ConsistentRead: aws.Bool(true)},
		}})
		if err != nil {
			return nil, unavailable("read", err)
		}
		for _, item := range out.Responses[s.Tables.Inbox] {
			row, err := decodeInbox(item)
			if err != nil {
				return nil, err
			}
			found[row.ID] = row
		}
		// What the service did not get to is asked again, after a growing pause.
		if keys = out.UnprocessedKeys[s.Tables.Inbox].Keys; len(keys) > 0 {
			if err := s.Wait(ctx, pause+time.Duration(s.Chance()*float64(pause))); err != nil {
				return nil, unavailable("read", err)
			}
			pause = min(2*pause, time.Second)
		}
	}
	rows := make([]webhook.Inbox, 0, len(found))
	for _, id := range ids {
		if row, ok := found[id]; ok {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// shards merges the partitions of a time-ordered index, newest first.
type shards struct {
	pages [webhook.Shards]shardPage
	read  func(ctx context.Context, shard int, from attributes) ([]stamp, attributes, error)
}

// shardPage is what was read of one partition and not handed out yet.
type shardPage struct {
	stamps []stamp
	from   attributes // where the next page begins
	ended  bool
}

// stamp is an index entry: a row and its place in time.
type stamp struct {
	id string
	at int64
}

// shardPageSize is how many entries are read of one partition at a time: for
// the usual list of 50 one page of each is enough.
const shardPageSize = 50

// newShards lists an index's entries between two times; key names a shard's partition.
func (s *Store) newShards(table string, since, until time.Time, index, hash, sort string, key func(shard int) string) *shards {
	return &shards{read: func(ctx context.Context, shard int, from attributes) ([]stamp, attributes, error) {
		x := newExpression()
		condition := x.name(hash) + " = " + x.value(str(key(shard))) + " AND " + x.name(sort) + " BETWEEN " + x.value(ms(since)) + " AND " + x.value(ms(until))
		out, err := s.DB.Query(ctx, &dynamodb.QueryInput{
			TableName: &table, IndexName: &index, KeyConditionExpression: &condition,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
			ScanIndexForward: aws.Bool(false), Limit: aws.Int32(shardPageSize), ExclusiveStartKey: from,
		})
		if err != nil {
			return nil, nil, unavailable("read", err)
		}
		stamps := make([]stamp, len(out.Items))
		for i, item := range out.Items {
			d := decoder{a: item}
			stamps[i] = stamp{d.str("id"), d.num(sort)}
			if d.err != nil {
				return nil, nil, fmt.Errorf("dynamo: index %s: %w", index, d.err)
			}
		}
		return stamps, out.LastEvaluatedKey, nil
	}}
}

// next returns up to limit ids, none at the end.
func (s *shards) next(ctx context.Context, limit int) ([]string, error) {
	var ids []string
	for len(ids) < limit {
		if err := s.fill(ctx); err != nil {
			return nil, err
		}
		newest := -1
		for i := range s.pages {
			if len(s.pages[i].stamps) > 0 && (newest < 0 || s.pages[i].stamps[0].at > s.pages[newest].stamps[0].at) {
				newest = i
			}
		}
		if newest < 0 {
			break
		}
		ids = append(ids, s.pages[newest].stamps[0].id)
		s.pages[newest].stamps = s.pages[newest].stamps[1:]
	}
	return ids, nil
}

// fill reads a page of every partition that has run dry, all at once: the
// newest of all can be told only when each shows its own.
func (s *shards) fill(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range s.pages {
		page := &s.pages[i]
		if len(page.stamps) > 0 || page.ended {
			continue
		}
		group.Go(func() error {
			for len(page.stamps) == 0 && !page.ended {
				stamps, from, err := s.read(ctx, i, page.from)
				if err != nil {
					return err
				}
				page.stamps, page.from, page.ended = stamps, from, len(from) == 0
			}
			return nil
		})
	}
	return group.Wait()
}

// Rows yields the business rows of one partition whose sort key has a prefix,
// with their keys and in their order, strongly consistent. No prefix is all.
func (s *Store) Rows(ctx context.Context, partition, prefix string) iter.Seq2[webhook.Item, error] {
	return func(yield func(webhook.Item, error) bool) {
		x := newExpression()
		condition := x.name("pk") + " = " + x.value(str(partition))
		if prefix != "" { // the service refuses an empty text here
			condition += " AND begins_with(" + x.name("sk") + ", " + x.value(str(prefix)) + ")"
		}
		for item, err := range s.queryAll(ctx, &dynamodb.QueryInput{
			TableName: &s.Tables.Business, KeyConditionExpression: &condition, ConsistentRead: aws.Bool(true),
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
		}) {
			var row webhook.Item
			if err == nil {
				row, err = decodeItem(item)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
