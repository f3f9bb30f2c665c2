package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Change writes one transition of an inbox row. It returns the row after it and
// true, or the row as it stands and false when the guard does not hold; the row
// is nil when there is none.
func (s *Store) Change(ctx context.Context, c webhook.Change) (*webhook.Inbox, bool, error) {
	e := newExpression()
	guard, update := e.guard(c.Guard), e.change(c)
	out, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Inbox, Key: attributes{"id": str(string(c.ID))},
		ConditionExpression: &guard, UpdateExpression: &update,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err == nil {
		row, err := decodeInbox(out.Attributes)
		return &row, err == nil, err
	}
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return nil, false, unavailable("UpdateItem", err)
	}
	if len(failed.Item) == 0 {
		return nil, false, nil
	}
	row, err := decodeInbox(failed.Item)
	return &row, false, err
}

// Complete commits a plan: the row's PROCESSED, its processed mark, the step of
// its sequence and the business actions, all or nothing.
func (s *Store) Complete(ctx context.Context, c webhook.Completion) (webhook.Verdict, error) {
	if n := len(c.Actions) + len(c.Promises); n > webhook.ActionsMax {
		return 0, fault.New(fault.Permanent, "plan_too_large", fmt.Errorf("%d actions and effects, at most %d", n, webhook.ActionsMax))
	}
	writes := []types.TransactWriteItem{s.changeInbox(c.Change)}
	if c.Mark != nil {
		writes = append(writes, s.putMark(*c.Mark))
	}
	turn := len(writes)
	if c.Turn != nil {
		writes = append(writes, s.turnWrites(*c.Turn, false)...)
	}
	business := len(writes)
	for _, a := range c.Actions {
		w, err := s.businessWrite(a)
		if err != nil {
			return 0, err
		}
		writes = append(writes, w)
	}
	effects := len(writes)
	for _, o := range c.Promises {
		writes = append(writes, s.putOutbox(o))
	}
	reasons, err := s.commit(ctx, writes...)
	if err != nil {
		return 0, err
	}
	if reasons == nil {
		return webhook.Committed, nil
	}
	if verdict, err := claimVerdict(reasons[0], c.Claim); verdict != 0 || err != nil {
		return verdict, err
	}
	switch {
	case c.Mark != nil && refused(reasons[1]):
		return webhook.MarkExists, nil
	case slices.ContainsFunc(reasons[turn:business], refused):
		return webhook.TurnMoved, nil
	}
	return businessVerdict(reasons, reasons[business:effects], c.Actions)
}

// claimVerdict reads what a refused completion says about the row itself; 0 when
// the row is ours and another reason decides.
func claimVerdict(r types.CancellationReason, claim webhook.ClaimID) (webhook.Verdict, error) {
	switch {
	case !refused(r):
		return 0, nil
	case len(r.Item) == 0:
		return webhook.ClaimLost, nil
	}
	row, err := decodeInbox(r.Item)
	if err != nil {
		return 0, err
	}
	if row.Status == webhook.Processed && row.ClaimID == claim {
		return webhook.Committed, nil
	}
	return webhook.ClaimLost, nil
}

// businessVerdict reads the reasons of the actions in the protocol's order.
func businessVerdict(all, business []types.CancellationReason, actions []webhook.Action) (webhook.Verdict, error) {
	for _, order := range []struct {
		tag     webhook.Tag
		verdict webhook.Verdict
	}{
		{webhook.Newer, webhook.NotNewer},
		{webhook.Unchanged, webhook.RivalWrote},
		{webhook.Domain, webhook.RuleRefused},
	} {
		for i, r := range business {
			if refused(r) && actions[i].Tag == order.tag {
				return order.verdict, nil
			}
		}
	}
	return 0, cancelledByService(all)
}

// Retry puts a row back and promises to look at it again, in one transaction.
// False means that the guard no longer holds, and nothing was written.
func (s *Store) Retry(ctx context.Context, c webhook.Change, promise webhook.Outbox) (bool, error) {
	return s.commitFirst(ctx, s.changeInbox(c), s.putOutbox(promise))
}

// Fail ends a row and takes its promise away, in one transaction. The promise
// needs no condition: the row's fence shows that it belongs to this life.
func (s *Store) Fail(ctx context.Context, c webhook.Change, promise webhook.OutboxID) (bool, error) {
	return s.commitLeaving(ctx, c, s.deleteOutbox(promise))
}

func markKey(id webhook.InboxID, run int) webhook.Key {
	return webhook.Key{PK: fmt.Sprintf("mark#%s#%d", id, run), SK: "mark"}
}

// Marked reports whether a run of an event was applied.
func (s *Store) Marked(ctx context.Context, id webhook.InboxID, run int) (bool, error) {
	item, err := s.read(ctx, s.Tables.Business, keyOf(markKey(id, run)))
	return item != nil, err
}

func (s *Store) putMark(m webhook.Mark) types.TransactWriteItem {
	item := keyOf(markKey(m.InboxID, m.Run))
	item["at"] = ms(m.At)
	if !m.ExpiresAt.IsZero() {
		item["x"] = num(m.ExpiresAt.Unix())
	}
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &s.Tables.Business, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}}
}

func (s *Store) businessWrite(a webhook.Action) (types.TransactWriteItem, error) {
	e := newExpression()
	condition := e.conditions(a.When)
	key := keyOf(a.Key)
	var w types.TransactWriteItem
	switch a.Op {
	case webhook.Put:
		item := key
		for name, v := range a.Item {
			encoded, err := encodeValue(v)
			if err != nil {
				return w, err
			}
			item[name] = encoded
		}
		w.Put = &types.Put{
			TableName: &s.Tables.Business, Item: item, ConditionExpression: condition,
			ExpressionAttributeNames: e.namesOrNil(), ExpressionAttributeValues: e.valuesOrNil(),
		}
	case webhook.Update:
		update := e.update(a)
		w.Update = &types.Update{
			TableName: &s.Tables.Business, Key: key, ConditionExpression: condition, UpdateExpression: &update,
			ExpressionAttributeNames: e.namesOrNil(), ExpressionAttributeValues: e.valuesOrNil(),
		}
	case webhook.Delete:
		w.Delete = &types.Delete{
			TableName: &s.Tables.Business, Key: key, ConditionExpression: condition,
			ExpressionAttributeNames: e.namesOrNil(), ExpressionAttributeValues: e.valuesOrNil(),
		}
	case webhook.Check:
		w.ConditionCheck = &types.ConditionCheck{
			TableName: &s.Tables.Business, Key: key, ConditionExpression: condition,
			ExpressionAttributeNames: e.namesOrNil(), ExpressionAttributeValues: e.valuesOrNil(),
		}
	}
	return w, e.err
}
