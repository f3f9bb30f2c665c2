package dynamo

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// What the comparison of accepted events with their promises and marks reads,
// many rows at a time.
//
// A row that cannot be read hides no other: it is told apart from one that is
// not there, and the rest of its page is returned.

// RecentPage returns the ids of an endpoint's events in one shard of the recent
// index that were received in [from, to), which lie in one UTC day, oldest first,
// and where the next page begins: empty at the end. The index is eventually
// consistent: it is for events that are older than a moment.
func (s *Store) RecentPage(ctx context.Context, e webhook.EndpointID, shard int, from, to time.Time, after string, limit int) ([]webhook.InboxID, string, error) {
	hash := recentKey(e, from, shard)
	x := newExpression()
	condition := x.name("rk") + " = " + x.value(str(hash)) + " AND " + x.name("ra") + " BETWEEN " + x.value(ms(from)) + " AND " + x.value(num(to.UnixMilli()-1))
	in := &dynamodb.QueryInput{
		TableName: &s.Tables.Inbox, IndexName: aws.String("recent"), KeyConditionExpression: &condition,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values, Limit: aws.Int32(int32(limit)), //nolint:gosec // limits are small constants
	}
	if after != "" {
		at, id, _ := strings.Cut(after, "|")
		in.ExclusiveStartKey = attributes{"rk": str(hash), "ra": &types.AttributeValueMemberN{Value: at}, "id": str(id)}
	}
	out, err := s.DB.Query(ctx, in)
	if err != nil {
		return nil, "", unavailable("Query", err)
	}
	ids := make([]webhook.InboxID, 0, len(out.Items))
	for _, item := range out.Items {
		d := decoder{a: item}
		ids = append(ids, webhook.InboxID(d.str("id")))
	}
	if len(out.LastEvaluatedKey) == 0 {
		return ids, "", nil
	}
	last := decoder{a: out.LastEvaluatedKey}
	next := strconv.FormatInt(last.num("ra"), 10) + "|" + last.str("id")
	return ids, next, last.err
}

// InboxPage returns a page of one segment of the inbox, strongly consistent: the
// rows, the ids of those that cannot be read, and where the next page begins,
// empty at the end.
func (s *Store) InboxPage(ctx context.Context, segment, segments int, after string, limit int) (rows []webhook.Inbox, unreadable []webhook.InboxID, next string, err error) {
	in := &dynamodb.ScanInput{
		TableName: &s.Tables.Inbox, ConsistentRead: aws.Bool(true),
		Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(segments)), Limit: aws.Int32(int32(limit)), //nolint:gosec // small constants
	}
	if after != "" {
		in.ExclusiveStartKey = attributes{"id": str(after)}
	}
	out, err := s.DB.Scan(ctx, in)
	if err != nil {
		return nil, nil, "", unavailable("Scan", err)
	}
	for _, item := range out.Items {
		row, err := decodeInbox(item)
		if err != nil {
			d := decoder{a: item}
			unreadable = append(unreadable, webhook.InboxID(d.str("id")))
			continue
		}
		rows = append(rows, row)
	}
	last := decoder{a: out.LastEvaluatedKey}
	return rows, unreadable, last.str("id"), nil
}

// InboxRows reads rows by id, strongly consistent, at most 100. One that is gone
// is in neither answer; one that cannot be read is named.
func (s *Store) InboxRows(ctx context.Context, ids []webhook.InboxID) (map[webhook.InboxID]webhook.Inbox, []webhook.InboxID, error) {
	items, err := s.batch(ctx, s.Tables.Inbox, "id", true, false, keysOf(ids))
	if err != nil {
		return nil, nil, err
	}
	rows := make(map[webhook.InboxID]webhook.Inbox, len(items))
	var unreadable []webhook.InboxID
	for id, item := range items {
		row, err := decodeInbox(item)
		if err != nil {
			unreadable = append(unreadable, webhook.InboxID(id))
			continue
		}
		rows[row.ID] = row
	}
	slices.Sort(unreadable)
	return rows, unreadable, nil
}

// Promises reads outbox rows by id, at most 100, eventually consistent: what is
// told here is a suspicion, to be confirmed by [Store.Outbox]. One that cannot be
// read is not told.
func (s *Store) Promises(ctx context.Context, ids []webhook.OutboxID) (map[webhook.OutboxID]webhook.Outbox, error) {
	items, err := s.batch(ctx, s.Tables.Outbox, "id", false, false, keysOf(ids))
	if err != nil {
		return nil, err
	}
	rows := make(map[webhook.OutboxID]webhook.Outbox, len(items))
	for _, item := range items {
		if row, err := decodeOutbox(item); err == nil {
			rows[row.ID] = row
		}
	}
	return rows, nil
}

// MarksOf tells which events' current runs have their processed mark, at most
// 100, eventually consistent: to be confirmed by [Store.Marked].
func (s *Store) MarksOf(ctx context.Context, rows []webhook.Inbox) (map[webhook.InboxID]bool, error) {
	keys, of := make(map[string]attributes, len(rows)), make(map[string]webhook.InboxID, len(rows))
	for _, row := range rows {
		k := markKey(row.ID, row.Run)
		keys[k.PK], of[k.PK] = keyOf(k), row.ID
	}
	items, err := s.batch(ctx, s.Tables.Business, "pk", false, true, keys)
	if err != nil {
		return nil, err
	}
	marked := make(map[webhook.InboxID]bool, len(items))
	for pk := range items {
		marked[of[pk]] = true
	}
	return marked, nil
}

// BodyKept reports whether a body is stored and not past its expiry at a time,
// strongly consistent. Bytes that were too large for the table are not looked for
// in the bucket.
func (s *Store) BodyKept(ctx context.Context, id webhook.BodyID, now time.Time) (bool, error) {
	out, err := s.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.Tables.Body, Key: attributes{"id": str(string(id))}, ConsistentRead: aws.Bool(true),
		ProjectionExpression: aws.String("#x"), ExpressionAttributeNames: map[string]string{"#x": "x"},
	})
	if err != nil {
		return false, unavailable("GetItem", err)
	}
	d := decoder{a: out.Item}
	return d.expiry().After(now), d.err
}

// DropPromise removes a promise of another life of its subject: [gen = the one
// seen], while the subject is as it was seen. False means that either has moved on.
func (s *Store) DropPromise(ctx context.Context, subject webhook.Inbox, promise webhook.Outbox) (bool, error) {
	e := newExpression()
	guard := e.guard(webhook.Guard{From: []webhook.Status{subject.Status}, Fence: subject.Fence})
	x := newExpression()
	condition := x.name("g") + " = " + x.value(num(int64(promise.Gen)))
	reasons, err := s.commit(ctx,
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &s.Tables.Inbox, Key: attributes{"id": str(string(subject.ID))}, ConditionExpression: &guard,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		}},
		types.TransactWriteItem{Delete: &types.Delete{
			TableName: &s.Tables.Outbox, Key: outboxKey(promise.ID), ConditionExpression: &condition,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
		}},
	)
	switch {
	case err != nil:
		return false, err
	case reasons == nil:
		return true, nil
	case refused(reasons[0]) || refused(reasons[1]):
		return false, nil
	}
	return false, cancelledByService(reasons)
}

func keysOf[T ~string](ids []T) map[string]attributes {
	keys := make(map[string]attributes, len(ids))
	for _, id := range ids {
		keys[string(id)] = attributes{"id": str(string(id))}
	}
	return keys
}

// batch reads items by key, by the text of their hash key. What the service did
// not get to is asked again, after a growing pause. Bare reads nothing but the
// hash key.
func (s *Store) batch(ctx context.Context, table, hash string, consistent, bare bool, keys map[string]attributes) (map[string]attributes, error) {
	ask := types.KeysAndAttributes{Keys: slices.Collect(maps.Values(keys)), ConsistentRead: &consistent}
	if bare {
		ask.ProjectionExpression = aws.String("#k")
		ask.ExpressionAttributeNames = map[string]string{"#k": hash}
	}
	found := make(map[string]attributes, len(keys))
	pause := conflictPause
	for len(ask.Keys) > 0 {
		out, err := s.DB.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: ask}})
		if err != nil {
			return nil, unavailable("BatchGetItem", err)
		}
		for _, item := range out.Responses[table] {
			d := decoder{a: item}
			found[d.str(hash)] = item
		}
		if ask.Keys = out.UnprocessedKeys[table].Keys; len(ask.Keys) > 0 {
			if err := s.Wait(ctx, pause+time.Duration(s.Chance()*float64(pause))); err != nil {
				return nil, fault.New(fault.Ours, "store_contended", err)
			}
			pause = min(2*pause, time.Second)
		}
	}
	return found, nil
}
