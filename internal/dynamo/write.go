package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Codes of a cancelled transaction's reasons.
const (
	reasonNone      = "None"
	reasonCondition = "ConditionalCheckFailed"
	reasonConflict  = "TransactionConflict"
	reasonInvalid   = "ValidationError"
)

// commit writes everything or nothing. A cancellation comes back as its
// reasons, one per write in the order of the writes; every other failure as an
// error. The SDK's own request token covers its own retries; a further call of
// ours is a new transaction, so that the conditions decide and not the token.
func (s *Store) commit(ctx context.Context, writes ...types.TransactWriteItem) ([]types.CancellationReason, error) {
	_, err := s.DB.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
	if err == nil {
		return nil, nil
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && len(cancelled.CancellationReasons) == len(writes) {
		return cancelled.CancellationReasons, nil
	}
	return nil, unavailable("TransactWriteItems", err)
}

func refused(r types.CancellationReason) bool { return aws.ToString(r.Code) == reasonCondition }

func anyReason(reasons []types.CancellationReason, code string) bool {
	for _, r := range reasons {
		if aws.ToString(r.Code) == code {
			return true
		}
	}
	return false
}

// cancelledByService turns reasons that carry no refused condition into a fact:
// a conflict, a throttle, or a write that the service will never take.
func cancelledByService(reasons []types.CancellationReason) error {
	for _, r := range reasons {
		switch code := aws.ToString(r.Code); code {
		case reasonNone, reasonCondition:
		case reasonInvalid:
			return fault.New(fault.Permanent, "store_refused", errors.New("TransactWriteItems: "+code))
		default:
			return contended(code)
		}
	}
	return contended("no reason")
}

// changeInbox renders a change as a transaction's write, which returns the row
// it found when the guard does not hold.
func (s *Store) changeInbox(c webhook.Change) types.TransactWriteItem {
	e := newExpression()
	guard, update := e.guard(c.Guard), e.change(c)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.Tables.Inbox, Key: attributes{"id": str(string(c.ID))},
		ConditionExpression: &guard, UpdateExpression: &update,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// putOutbox inserts a promise without a condition: a new generation replaces an
// older one, and the subject's guard in the same transaction decides whether
// this life of the row exists at all.
func (s *Store) putOutbox(o webhook.Outbox) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &s.Tables.Outbox, Item: encodeOutbox(o)}}
}

func (s *Store) deleteOutbox(id webhook.OutboxID) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: &s.Tables.Outbox, Key: outboxKey(id)}}
}
