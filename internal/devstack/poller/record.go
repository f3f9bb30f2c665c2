package poller

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// record is a stream record on its way to the function.
type record struct {
	key      string // the item's key, the same text for the same item
	sequence string
	created  time.Time
	event    map[string]any // decoded, for the filter
	encoded  []byte         // the same as JSON
}

// newRecord turns a record of the Streams API into one of a Lambda event.
func newRecord(r types.Record, streamARN, region string) (record, error) {
	if r.Dynamodb == nil {
		return record{}, fmt.Errorf("stream record %s has no change", aws.ToString(r.EventID))
	}
	change, err := changeJSON(r.Dynamodb)
	if err != nil {
		return record{}, err
	}
	event := map[string]any{
		"eventID":        aws.ToString(r.EventID),
		"eventName":      string(r.EventName),
		"eventVersion":   aws.ToString(r.EventVersion),
		"eventSource":    "aws:dynamodb",
		"awsRegion":      region,
		"dynamodb":       change,
		"eventSourceARN": streamARN,
	}
	if id := r.UserIdentity; id != nil {
		event["userIdentity"] = map[string]any{"type": aws.ToString(id.Type), "principalId": aws.ToString(id.PrincipalId)}
	}
	key, err := json.Marshal(change["Keys"]) // keys of a map come out sorted
	if err != nil {
		return record{}, err
	}
	encoded, err := json.Marshal(event)
	if err != nil {
		return record{}, err
	}
	return record{
		key: string(key), sequence: aws.ToString(r.Dynamodb.SequenceNumber),
		created: aws.ToTime(r.Dynamodb.ApproximateCreationDateTime), event: event, encoded: encoded,
	}, nil
}

func changeJSON(c *types.StreamRecord) (map[string]any, error) {
	change := map[string]any{
		"ApproximateCreationDateTime": float64(aws.ToTime(c.ApproximateCreationDateTime).Unix()), // whole seconds, as on AWS
		"SequenceNumber":              aws.ToString(c.SequenceNumber),
		"SizeBytes":                   float64(aws.ToInt64(c.SizeBytes)),
		"StreamViewType":              string(c.StreamViewType),
	}
	for name, image := range map[string]map[string]types.AttributeValue{"Keys": c.Keys, "NewImage": c.NewImage, "OldImage": c.OldImage} {
		if image == nil {
			continue
		}
		encoded, err := mapJSON(image)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		change[name] = encoded
	}
	return change, nil
}

func mapJSON(m map[string]types.AttributeValue) (map[string]any, error) {
	out := make(map[string]any, len(m))
	for name, v := range m {
		encoded, err := valueJSON(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = encoded
	}
	return out, nil
}

// valueJSON is DynamoDB's JSON of a value, of the types that decoding it would
// give, as the filter compares those: a number stays a string, bytes become base64.
func valueJSON(v types.AttributeValue) (map[string]any, error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}, nil
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}, nil
	case *types.AttributeValueMemberB:
		return map[string]any{"B": base64.StdEncoding.EncodeToString(v.Value)}, nil
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}, nil
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}, nil
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": list(v.Value, func(s string) any { return s })}, nil
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": list(v.Value, func(s string) any { return s })}, nil
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": list(v.Value, func(b []byte) any { return base64.StdEncoding.EncodeToString(b) })}, nil
	case *types.AttributeValueMemberM:
		m, err := mapJSON(v.Value)
		return map[string]any{"M": m}, err
	case *types.AttributeValueMemberL:
		elements := make([]any, 0, len(v.Value))
		for _, element := range v.Value {
			encoded, err := valueJSON(element)
			if err != nil {
				return nil, err
			}
			elements = append(elements, encoded)
		}
		return map[string]any{"L": elements}, nil
	}
	return nil, fmt.Errorf("attribute value of unknown type %T", v)
}

func list[T any](values []T, encode func(T) any) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = encode(v)
	}
	return out
}

// payload is the event of a batch.
func payload(batch []record) []byte {
	encoded := make([][]byte, len(batch))
	for i, r := range batch {
		encoded[i] = r.encoded
	}
	return slices.Concat([]byte(`{"Records":[`), bytes.Join(encoded, []byte(",")), []byte(`]}`))
}
