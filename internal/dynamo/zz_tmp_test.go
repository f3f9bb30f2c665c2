package dynamo_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	ddb "dakghar/internal/devstack/dynamodb"
	"dakghar/internal/dynamo"
	"dakghar/internal/storetest"
)

func TestTmp(t *testing.T) {
	srv := httptest.NewServer(http.Handler(ddb.New(ddb.Config{Now: time.Now})))
	defer srv.Close()
	db := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &srv.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	mk := func(name string, sort bool, gsis ...[3]string) {
		in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
		attr := func(n string, ty types.ScalarAttributeType) {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(n), AttributeType: ty})
		}
		if sort {
			attr("pk", "S")
			attr("sk", "S")
			in.KeySchema = []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}, {AttributeName: aws.String("sk"), KeyType: "RANGE"}}
		} else {
			attr("id", "S")
			in.KeySchema = []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}}
		}
		for _, g := range gsis {
			attr(g[1], "S")
			attr(g[2], "N")
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{IndexName: aws.String(g[0]), Projection: &types.Projection{ProjectionType: "KEYS_ONLY"},
				KeySchema: []types.KeySchemaElement{{AttributeName: aws.String(g[1]), KeyType: "HASH"}, {AttributeName: aws.String(g[2]), KeyType: "RANGE"}}})
		}
		if _, err := db.CreateTable(context.Background(), in); err != nil {
			t.Fatal(err)
		}
	}
	mk("inbox", false, [3]string{"recent", "rk", "ra"}, [3]string{"failed", "fk", "fa"})
	mk("outbox", false, [3]string{"due", "dk", "da"})
	mk("business", true)
	mk("registry", true)
	storetest.Run(t, &dynamo.Store{DB: db, Tables: dynamo.Tables{Inbox: "inbox", Outbox: "outbox", Business: "business", Registry: "registry"}, Chance: func() float64 { return 0.5 }, Wait: dynamo.Sleep})
}
