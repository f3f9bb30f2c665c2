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

// Codec lets a test put rows that an earlier release wrote through today's reader, and today's through none.
type Codec struct {
	Encode func() (map[string]types.AttributeValue, error)
	Decode func(map[string]types.AttributeValue) (any, error)
}

// CodecOf is the codec of a value's kind of row. An attempt expires with its delivery, at the time given.
func CodecOf(v any, expires time.Time) Codec {
	switch v := v.(type) {
	case webhook.Inbox:
		return codec(func() (attributes, error) { return encodeInbox(v) }, decodeInbox)
	case webhook.Outbox:
		return codec(func() (attributes, error) { return encodeOutbox(v), nil }, decodeOutbox)
	case delivery.Delivery:
		return codec(func() (attributes, error) { return encodeDelivery(v), nil }, decodeDelivery)
	case delivery.Attempt:
		return codec(func() (attributes, error) { return encodeAttempt(v, expires), nil }, decodeAttempt)
	case webhook.Endpoint:
		return codec(func() (attributes, error) { return encodeEndpoint(v) }, decodeEndpoint)
	case delivery.Subscription:
		return codec(func() (attributes, error) { return encodeSubscription(v) }, decodeSubscription)
	}
	panic("no row of this kind")
}

func codec[T any](encode func() (attributes, error), decode func(attributes) (T, error)) Codec {
	return Codec{
		Encode: func() (map[string]types.AttributeValue, error) { return encode() },
		Decode: func(a map[string]types.AttributeValue) (any, error) { return decode(a) },
	}
}
