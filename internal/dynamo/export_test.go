package dynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// EncodeInbox lets a test measure a stored row.
func EncodeInbox(r webhook.Inbox) (map[string]types.AttributeValue, error) { return encodeInbox(r) }

// RowsThatExpire lets a test look at every kind of row that time to live deletes, by the table that it is in.
func RowsThatExpire(at time.Time) map[string][]map[string]types.AttributeValue {
	s := &Store{}
	inbox, err := encodeInbox(webhook.Inbox{ExpiresAt: at})
	if err != nil {
		panic(err) // an empty row has nothing that could not be encoded
	}
	return map[string][]map[string]types.AttributeValue{
		"InboxTable":    {inbox},
		"BusinessTable": {s.putMark(webhook.Mark{ExpiresAt: at}).Put.Item},
		"DeliveryTable": {encodeDelivery(delivery.Delivery{ExpiresAt: at}), encodeAttempt(delivery.Attempt{}, at)},
	}
}
