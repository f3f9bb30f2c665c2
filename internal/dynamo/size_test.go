package dynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/dynamo"
	"dakghar/internal/storetest"
)

// sizeOf is the service's formula: names and values in bytes; a number takes
// one byte for two digits, and one more.
func sizeOf(t *testing.T, item map[string]types.AttributeValue) int {
	t.Helper()
	size := 0
	for name, value := range item {
		size += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			size += len(v.Value)
		case *types.AttributeValueMemberN:
			size += (len(v.Value)+1)/2 + 1
		case *types.AttributeValueMemberB:
			size += len(v.Value)
		case *types.AttributeValueMemberBOOL:
			size++
		default:
			t.Fatalf("attribute %s is a %T", name, value)
		}
	}
	return size
}

// A state row costs one write unit however long its columns are, since an
// update bills the whole row. The failed index adds its two attributes.
func TestTheLargestStateRowIsOneWriteUnit(t *testing.T) {
	t.Parallel()
	item, err := dynamo.EncodeInbox(storetest.LargestRow())
	if err != nil {
		t.Fatal(err)
	}
	item["fk"] = &types.AttributeValueMemberS{Value: "F#15"}
	item["fa"] = &types.AttributeValueMemberN{Value: "1772366400000"}
	if size := sizeOf(t, item); size > 1024 {
		t.Errorf("the largest row has %d bytes, want at most 1024", size)
	}
}
