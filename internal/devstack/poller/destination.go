package poller

import (
	"encoding/json"
	"fmt"
)

// destinationDocument is what an SQS on-failure destination receives: where the
// records were, never the records.
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
type destinationDocument struct {
	RequestContext  requestContext   `json:"requestContext"`
	ResponseContext *responseContext `json:"responseContext,omitempty"`
	Version         string           `json:"version"`
	Timestamp       string           `json:"timestamp"`
	Batch           batchInfo        `json:"DDBStreamBatchInfo"`
}

type requestContext struct {
	RequestID   string `json:"requestId"`
	FunctionARN string `json:"functionArn"`
	Condition   string `json:"condition"`
	Invocations int    `json:"approximateInvokeCount"`
}

type responseContext struct {
	StatusCode      int     `json:"statusCode"`
	ExecutedVersion string  `json:"executedVersion"`
	FunctionError   *string `json:"functionError"`
}

type batchInfo struct {
	ShardID       string `json:"shardId"`
	StartSequence string `json:"startSequenceNumber"`
	EndSequence   string `json:"endSequenceNumber"`
	ArrivalFirst  string `json:"approximateArrivalOfFirstRecord"`
	ArrivalLast   string `json:"approximateArrivalOfLastRecord"`
	BatchSize     int    `json:"batchSize"`
	StreamARN     string `json:"streamArn"`
}

func (l *lane) failureDocument(condition string, batch []record, invocations int, last outcome) []byte {
	first, end := batch[0], batch[len(batch)-1]
	doc := destinationDocument{
		RequestContext: requestContext{RequestID: l.cfg.NewID(), FunctionARN: l.cfg.FunctionARN + ":$LATEST", Condition: condition, Invocations: invocations},
		Version:        "1.0",
		Timestamp:      utcMillis(l.cfg.Clock.Now()),
		Batch: batchInfo{
			ShardID: l.shardID, StreamARN: l.cfg.StreamARN, BatchSize: len(batch),
			StartSequence: first.sequence, EndSequence: end.sequence,
			ArrivalFirst: utcSecond(first.created), ArrivalLast: utcSecond(end.created),
		},
	}
	if invocations > 0 {
		doc.ResponseContext = &responseContext{StatusCode: 200, ExecutedVersion: "$LATEST"}
		if last.functionError != "" {
			doc.ResponseContext.FunctionError = &last.functionError
		}
	}
	encoded, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("poller: encoding a document of texts and numbers: %v", err))
	}
	return encoded
}
