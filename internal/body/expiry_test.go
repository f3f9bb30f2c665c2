package body_test

import (
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/body"
	devdynamodb "dakghar/internal/devstack/dynamodb"
	"dakghar/internal/devstack/stack"
)

// Proves D6 in part: a body, and the data key that opens it, are written with the attribute that the template has DynamoDB
// look at, in seconds, and after the body's days. Under any other name they would stay for ever.
func TestBodiesAndKeysExpireByTheAttributeThatTheTemplateDeclares(t *testing.T) {
	server := httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))
	defer server.Close()
	db := dynamodb.New(dynamodb.Options{BaseEndpoint: &server.URL, Region: "us-east-1", Credentials: local})
	if err := stack.CreateTables(ctx, db, "../../template.yaml", map[string]string{"BodyTable": "bodies"}); err != nil {
		t.Fatal(err)
	}
	declared, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("bodies")})
	if err != nil {
		t.Fatal(err)
	}
	cfg := newWorld().config()
	cfg.Dynamo, cfg.Table = db, "bodies"
	placed := put(t, body.New(cfg), request("1", "put1", sample(500)))

	rows, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("bodies")})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows.Items) != 2 {
		t.Fatalf("%d rows, want the body and its key", len(rows.Items))
	}
	for _, row := range rows.Items {
		n, ok := row[aws.ToString(declared.TimeToLiveDescription.AttributeName)].(*types.AttributeValueMemberN)
		if !ok {
			t.Errorf("row %v has no number that DynamoDB would look at", row["id"])
			continue
		}
		seconds, err := strconv.ParseInt(n.Value, 10, 64)
		if at := time.Unix(seconds, 0); err != nil || at.Before(placed.ExpiresAt) || at.After(placed.ExpiresAt.Add(year)) {
			t.Errorf("row %v expires at %v (%v), the body at %v", row["id"], at, err, placed.ExpiresAt)
		}
	}
}

const year = 365 * 24 * time.Hour
