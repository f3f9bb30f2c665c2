package dynamo

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// MarkPublished records a publication of one generation. False means that the
// row has moved on, which is nobody's fault.
func (s *Store) MarkPublished(ctx context.Context, p webhook.Published) (bool, error) {
	e := newExpression()
	condition := "attribute_exists(" + e.name("id") + ") AND " + e.name("g") + " = " + e.value(num(int64(p.Gen)))
	if p.SeenWakeAt.IsZero() {
		condition += " AND attribute_not_exists(" + e.name("pa") + ")"
	} else {
		condition += " AND " + e.name("wa") + " = " + e.value(ms(p.SeenWakeAt))
	}
	update := "SET " + e.name("pa") + " = " + e.value(ms(p.At)) + ", " + e.name("wa") + " = " + e.value(ms(p.WakeAt)) +
		" ADD " + e.name("w") + " " + e.value(num(1)) + " REMOVE " + e.name("dk") + ", " + e.name("da")
	return s.updateOutbox(ctx, p.ID, condition, update, e)
}

// PushWake moves the time at which the reconciler looks again, and sends
// nothing: for rows that wait for an operator.
func (s *Store) PushWake(ctx context.Context, o webhook.Outbox, wakeAt time.Time) (bool, error) {
	e := newExpression()
	condition := e.name("g") + " = " + e.value(num(int64(o.Gen))) + " AND " + e.name("wa") + " = " + e.value(ms(o.WakeAt))
	update := "SET " + e.name("wa") + " = " + e.value(ms(wakeAt))
	return s.updateOutbox(ctx, o.ID, condition, update, e)
}

// Postpone moves a promise's due time without touching its subject, and lets the
// relay publish it again: the due index brings it where it is too far for the
// queue. False means that the row has moved on.
func (s *Store) Postpone(ctx context.Context, id webhook.OutboxID, gen webhook.Fence, due, now time.Time) (bool, error) {
	o := webhook.Outbox{ID: id, Gen: gen}.Postponed(due, now)
	e := newExpression()
	condition := e.name("g") + " = " + e.value(num(int64(gen)))
	update := "SET " + e.name("du") + " = " + e.value(ms(o.DueAt)) + ", " + e.name("wa") + " = " + e.value(ms(o.WakeAt))
	remove := []string{e.name("pa")}
	if o.InDueIndex {
		update += ", " + e.name("dk") + " = " + e.value(str(dueKey(webhook.ShardOf(string(id))))) + ", " + e.name("da") + " = " + e.value(ms(o.DueAt))
	} else {
		remove = append(remove, e.name("dk"), e.name("da"))
	}
	return s.updateOutbox(ctx, id, condition, update+" REMOVE "+strings.Join(remove, ", "), e)
}

func (s *Store) updateOutbox(ctx context.Context, id webhook.OutboxID, condition, update string, e *expression) (bool, error) {
	_, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Outbox, Key: outboxKey(id), ConditionExpression: &condition, UpdateExpression: &update,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	return writtenOrNot(err)
}

// DeleteOutbox removes a promise whose generation is at most upTo. False means
// that it is gone, or belongs to a newer life of its subject.
func (s *Store) DeleteOutbox(ctx context.Context, id webhook.OutboxID, upTo webhook.Fence) (bool, error) {
	e := newExpression()
	condition := e.name("g") + " <= " + e.value(num(int64(upTo)))
	_, err := s.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.Tables.Outbox, Key: outboxKey(id), ConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	return writtenOrNot(err)
}

// DeleteOrphan removes a promise whose subject does not exist, if it is still
// the generation that was scanned.
func (s *Store) DeleteOrphan(ctx context.Context, o webhook.Outbox) (bool, error) {
	e := newExpression()
	condition := e.name("g") + " = " + e.value(num(int64(o.Gen)))
	_, err := s.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.Tables.Outbox, Key: outboxKey(o.ID), ConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	return writtenOrNot(err)
}

func writtenOrNot(err error) (bool, error) {
	if err == nil {
		return true, nil
	}
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return false, nil
	}
	return false, unavailable("write", err)
}

// DueOutbox returns the ids in one shard of the due index that are due at or
// before a time, earliest first.
func (s *Store) DueOutbox(ctx context.Context, shard int, dueBy time.Time, limit int) ([]webhook.OutboxID, error) {
	e := newExpression()
	condition := e.name("dk") + " = " + e.value(str(dueKey(shard))) + " AND " + e.name("da") + " <= " + e.value(ms(dueBy))
	out, err := s.DB.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.Tables.Outbox, IndexName: aws.String("due"), KeyConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, Limit: aws.Int32(int32(limit)), //nolint:gosec // limits are small constants
	})
	if err != nil {
		return nil, unavailable("Query", err)
	}
	ids := make([]webhook.OutboxID, 0, len(out.Items))
	for _, item := range out.Items {
		d := decoder{a: item}
		ids = append(ids, webhook.OutboxID(d.str("id")))
	}
	return ids, nil
}

// ScanOutbox returns a page of one segment of the outbox: the rows whose wake
// time has come. A row that cannot be read is counted and passed over, so that
// it hides no other.
func (s *Store) ScanOutbox(ctx context.Context, segment, segments int, wakeBy time.Time, from string, limit int) (webhook.OutboxPage, error) {
	e := newExpression()
	filter := e.name("wa") + " <= " + e.value(ms(wakeBy))
	in := &dynamodb.ScanInput{
		TableName: &s.Tables.Outbox, FilterExpression: &filter, ConsistentRead: aws.Bool(true),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(segments)), Limit: aws.Int32(int32(limit)), //nolint:gosec // small constants
	}
	if from != "" {
		in.ExclusiveStartKey = attributes{"id": str(from)}
	}
	var page webhook.OutboxPage
	out, err := s.DB.Scan(ctx, in)
	if err != nil {
		return page, unavailable("Scan", err)
	}
	for _, item := range out.Items {
		row, err := decodeOutbox(item)
		if err != nil {
			page.Unreadable++
			continue
		}
		page.Rows = append(page.Rows, row)
	}
	last := decoder{a: out.LastEvaluatedKey}
	page.Next = last.str("id")
	return page, nil
}
