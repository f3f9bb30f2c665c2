package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// Accepting collides with itself when copies of one event arrive together: the
// losers try again, after 10 to 40 ms, then read.
const (
	acceptTries   = 3
	conflictPause = 10 * time.Millisecond
)

// Accept commits an event: its inbox row, which must not be there, and its
// outbox row. It returns the row that was there before, nil when this call
// accepted the event. An error means that nothing is known to be committed:
// the caller must not acknowledge.
func (s *Store) Accept(ctx context.Context, row webhook.Inbox, promise *webhook.Outbox) (*webhook.Inbox, error) {
	item, err := encodeInbox(row)
	if err != nil {
		return nil, err
	}
	writes := []types.TransactWriteItem{{Put: &types.Put{
		TableName: &s.Tables.Inbox, Item: item,
		ConditionExpression:                 aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}}
	if promise != nil {
		writes = append(writes, s.putOutbox(*promise))
	}
	for try := 1; ; try++ {
		reasons, err := s.commit(ctx, writes...)
		switch {
		case err != nil:
			return nil, err
		case reasons == nil:
			return nil, nil
		case refused(reasons[0]):
			existing, err := decodeInbox(reasons[0].Item)
			return &existing, err
		case !anyReason(reasons, reasonConflict):
			return nil, cancelledByService(reasons)
		case try == acceptTries:
			return s.acceptedByRival(ctx, row)
		}
		pause := conflictPause + time.Duration(s.Chance()*float64(3*conflictPause))
		if err := s.Wait(ctx, pause); err != nil {
			return nil, contended("TransactionConflict")
		}
	}
}

// acceptedByRival ends a row of conflicts: a rival holds the key. Only a row
// that is there counts as accepted.
func (s *Store) acceptedByRival(ctx context.Context, row webhook.Inbox) (*webhook.Inbox, error) {
	existing, ok, err := s.Inbox(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, contended("TransactionConflict")
	}
	return &existing, nil
}
