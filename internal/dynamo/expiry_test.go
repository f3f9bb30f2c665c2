package dynamo_test

import (
	"maps"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	devdynamodb "dakghar/internal/devstack/dynamodb"
	"dakghar/internal/dynamo"
)

// Proves D6 in part: what is to expire is written under the attribute that the template has DynamoDB look at, in seconds.
// Under any other name rows would stay for ever, and nothing would say so.
func TestRowsExpireByTheAttributeThatTheTemplateDeclares(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))
	defer server.Close()
	s := storeAt(t, server.URL)
	db := s.DB.(*dynamodb.Client)
	tables := map[string]string{"InboxTable": s.Tables.Inbox, "BusinessTable": s.Tables.Business, "DeliveryTable": s.Tables.Delivery}
	seconds := strconv.FormatInt(noon.Unix(), 10)

	for logical, rows := range dynamo.RowsThatExpire(noon) {
		out, err := db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(tables[logical])})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{aws.ToString(out.TimeToLiveDescription.AttributeName)}
		for _, row := range rows {
			var got []string
			for _, name := range slices.Sorted(maps.Keys(row)) {
				if n, ok := row[name].(*types.AttributeValueMemberN); ok && n.Value == seconds {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: attribute of the expiry (-declared +written):\n%s", logical, diff)
			}
		}
	}
}
