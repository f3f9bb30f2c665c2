package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// EncodeInbox lets a test measure a stored row.
func EncodeInbox(r webhook.Inbox) (map[string]types.AttributeValue, error) { return encodeInbox(r) }
