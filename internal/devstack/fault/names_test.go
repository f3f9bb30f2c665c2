package fault_test

import (
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Both SDKs call their package types.
type (
	sqsAttribute  = sqstypes.QueueAttributeName
	dynamodbValue = ddbtypes.AttributeValue
)
