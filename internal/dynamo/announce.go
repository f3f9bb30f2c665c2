package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// AnnounceBy inserts an operator's promise that a partner is told something,
// together with the record of the act. False means that it is there already.
func (s *Store) AnnounceBy(ctx context.Context, o webhook.Outbox, a webhook.Act) (bool, error) {
	return s.commitFirst(ctx, s.with(a, types.TransactWriteItem{Put: &types.Put{
		TableName: &s.Tables.Outbox, Item: encodeOutbox(o), ConditionExpression: aws.String("attribute_not_exists(id)"),
	}})...)
}
