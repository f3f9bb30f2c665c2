package dynamodb_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"dakghar/internal/devstack/dynamodb"
)

// plainBody hides that a request body can write itself. smithy-go closes the body
// when the answer's headers are there; its WriteTo then reports io.EOF as an error,
// on which net/http closes the connection under the answer that is still being
// read ("use of closed network connection", 4 % of answers of 300 kB from this
// server). Its Read has no such fault. Seen in smithy-go v1.28.9.
type plainBody struct{ io.ReadCloser }

// httpClient is the SDK's own, with plain bodies.
type httpClient struct{ inner *awshttp.BuildableClient }

func (c httpClient) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = plainBody{r.Body}
	}
	return c.inner.Do(r)
}

// clients returns SDK clients for an address. DynamoDB Local sends no checksum
// with its errors, so the check is off for it and on for the embedded server.
func clients(url string, checksums bool) (*sdk.Client, *dynamodbstreams.Client) {
	front := httpClient{awshttp.NewBuildableClient()}
	local := credentials.NewStaticCredentialsProvider("local", "local", "")
	tables := sdk.New(sdk.Options{
		BaseEndpoint:                    &url,
		Region:                          "us-east-1",
		Credentials:                     local,
		RetryMaxAttempts:                1,
		HTTPClient:                      front,
		DisableValidateResponseChecksum: !checksums,
	})
	streams := dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint:     &url,
		Region:           "us-east-1",
		Credentials:      local,
		RetryMaxAttempts: 1,
		HTTPClient:       front,
	})
	return tables, streams
}

// embedded starts a server of its own for the test.
func embedded(t testing.TB, c dynamodb.Config) (*dynamodb.Server, *sdk.Client, *dynamodbstreams.Client) {
	t.Helper()
	server := dynamodb.New(c)
	front := httptest.NewServer(server)
	t.Cleanup(front.Close)
	tables, streams := clients(front.URL, true)
	return server, tables, streams
}

// localURL is where DynamoDB Local listens; without it the test is skipped.
func localURL(t testing.TB) string {
	t.Helper()
	url := os.Getenv("DYNAMODB_LOCAL_URL")
	if url == "" {
		t.Skip("DYNAMODB_LOCAL_URL is not set: the comparison with DynamoDB Local is left out")
	}
	return url
}

// clock is a settable time.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// attrs is an item as it is sent.
type attrs = map[string]types.AttributeValue

func S(v string) types.AttributeValue     { return &types.AttributeValueMemberS{Value: v} }
func N(v string) types.AttributeValue     { return &types.AttributeValueMemberN{Value: v} }
func B(v string) types.AttributeValue     { return &types.AttributeValueMemberB{Value: []byte(v)} }
func Bool(v bool) types.AttributeValue    { return &types.AttributeValueMemberBOOL{Value: v} }
func Null() types.AttributeValue          { return &types.AttributeValueMemberNULL{Value: true} }
func SS(v ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: v} }
func NS(v ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: v} }
func M(v attrs) types.AttributeValue      { return &types.AttributeValueMemberM{Value: v} }
func L(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: v}
}

// row is an item as it is compared: each value written as "S:text", "L[N:1 N:2]"
// and so on, with map members and set members sorted.
type row map[string]string

func plain(it attrs) row {
	if it == nil {
		return nil
	}
	out := row{}
	for name, v := range it {
		out[name] = show(v)
	}
	return out
}

func plainAll(items []map[string]types.AttributeValue) []row {
	out := make([]row, len(items))
	for i, it := range items {
		out[i] = plain(it)
	}
	return out
}

func show(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "S:" + v.Value
	case *types.AttributeValueMemberN:
		return "N:" + v.Value
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("B:%x", v.Value)
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprintf("BOOL:%t", v.Value)
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberSS:
		return "SS" + fmt.Sprint(slices.Sorted(slices.Values(v.Value)))
	case *types.AttributeValueMemberNS:
		return "NS" + fmt.Sprint(slices.Sorted(slices.Values(v.Value)))
	case *types.AttributeValueMemberBS:
		parts := make([]string, len(v.Value))
		for i, b := range v.Value {
			parts[i] = fmt.Sprintf("%x", b)
		}
		sort.Strings(parts)
		return "BS" + fmt.Sprint(parts)
	case *types.AttributeValueMemberL:
		parts := make([]string, len(v.Value))
		for i, e := range v.Value {
			parts[i] = show(e)
		}
		return "L[" + strings.Join(parts, " ") + "]"
	case *types.AttributeValueMemberM:
		var parts []string
		for name, e := range v.Value {
			parts = append(parts, name+"="+show(e))
		}
		sort.Strings(parts)
		return "M{" + strings.Join(parts, " ") + "}"
	}
	return fmt.Sprintf("%T", v)
}

// fromStream turns a stream record's image into a row.
func fromStream(it map[string]streamtypes.AttributeValue) row {
	if it == nil {
		return nil
	}
	out := row{}
	for name, v := range it {
		switch v := v.(type) {
		case *streamtypes.AttributeValueMemberS:
			out[name] = "S:" + v.Value
		case *streamtypes.AttributeValueMemberN:
			out[name] = "N:" + v.Value
		default:
			out[name] = fmt.Sprintf("%T", v)
		}
	}
	return out
}

// code is the error's name, empty for none.
func code(err error) string {
	if err == nil {
		return ""
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return err.Error()
}

// reasonCodes are the codes of a cancelled transaction, nil for any other error.
func reasonCodes(err error) []string {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return nil
	}
	out := make([]string, len(cancelled.CancellationReasons))
	for i, r := range cancelled.CancellationReasons {
		out[i] = aws.ToString(r.Code)
	}
	return out
}

// testTable is a table with the shapes the checks need: a sparse KEYS_ONLY index
// "scores" on g and n, an INCLUDE index "some" and an ALL index "every" on g and
// sk, and a stream.
type testTable struct {
	name    string
	tables  *sdk.Client
	streams *dynamodbstreams.Client
}

// uniqueName is new in this run, and in a store that outlives it.
func uniqueName() string { return "check-" + rand.Text() }

func index(name, hash, sort string, projection types.ProjectionType, include ...string) types.GlobalSecondaryIndex {
	return types.GlobalSecondaryIndex{
		IndexName: &name,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: &hash, KeyType: types.KeyTypeHash},
			{AttributeName: &sort, KeyType: types.KeyTypeRange},
		},
		Projection: &types.Projection{ProjectionType: projection, NonKeyAttributes: include},
	}
}

func tableInput(name string) *sdk.CreateTableInput {
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	return &sdk.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			attribute("pk", types.ScalarAttributeTypeS), attribute("sk", types.ScalarAttributeTypeN),
			attribute("g", types.ScalarAttributeTypeS), attribute("n", types.ScalarAttributeTypeN),
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			index("scores", "g", "n", types.ProjectionTypeKeysOnly),
			index("some", "g", "sk", types.ProjectionTypeInclude, "a"),
			index("every", "g", "sk", types.ProjectionTypeAll),
		},
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled:  aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}
}

func newTable(t testing.TB, tables *sdk.Client, streams *dynamodbstreams.Client) *testTable {
	t.Helper()
	table := &testTable{uniqueName(), tables, streams}
	if _, err := tables.CreateTable(t.Context(), tableInput(table.name)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = tables.DeleteTable(context.WithoutCancel(t.Context()), &sdk.DeleteTableInput{TableName: &table.name})
	})
	return table
}

func key(pk, sk string) attrs { return attrs{"pk": S(pk), "sk": N(sk)} }

// with adds attributes to a key.
func with(it attrs, name string, v types.AttributeValue) attrs {
	out := attrs{name: v}
	for n, v := range it {
		out[n] = v
	}
	return out
}

func (x *testTable) put(t testing.TB, items ...attrs) {
	t.Helper()
	for _, it := range items {
		if _, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: it}); err != nil {
			t.Fatal(err)
		}
	}
}

func (x *testTable) get(t testing.TB, k attrs) row {
	t.Helper()
	out, err := x.tables.GetItem(t.Context(), &sdk.GetItemInput{TableName: &x.name, Key: k, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return plain(out.Item)
}

// update runs one update expression and returns the whole item after it.
func (x *testTable) update(t testing.TB, k attrs, expression string, values attrs) (row, error) {
	t.Helper()
	out, err := x.tables.UpdateItem(t.Context(), &sdk.UpdateItemInput{
		TableName: &x.name, Key: k, UpdateExpression: &expression,
		ExpressionAttributeValues: values, ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return nil, err
	}
	return plain(out.Attributes), nil
}

// holds puts an item that is already there under a condition and tells whether
// the condition held; any other failure is returned.
func (x *testTable) holds(t testing.TB, it attrs, condition string, values attrs) (bool, error) {
	t.Helper()
	_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{
		TableName: &x.name, Item: it, ConditionExpression: &condition, ExpressionAttributeValues: values,
	})
	if code(err) == "ConditionalCheckFailedException" {
		return false, nil
	}
	return err == nil, err
}

// putAction and its brothers are actions of a transaction.
func (x *testTable) putAction(it attrs, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &x.name, Item: it, ConditionExpression: optional(condition),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func (x *testTable) updateAction(k attrs, expression, condition string, values attrs) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &x.name, Key: k, UpdateExpression: &expression, ConditionExpression: optional(condition),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func (x *testTable) checkAction(k attrs, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &x.name, Key: k, ConditionExpression: &condition,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func (x *testTable) deleteAction(k attrs, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{
		TableName: &x.name, Key: k, ConditionExpression: optional(condition),
	}}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (x *testTable) transact(t testing.TB, actions ...types.TransactWriteItem) error {
	t.Helper()
	_, err := x.tables.TransactWriteItems(t.Context(), &sdk.TransactWriteItemsInput{TransactItems: actions})
	return err
}

// pages follows a query to its end and returns the pages' rows.
func (x *testTable) pages(t testing.TB, in sdk.QueryInput) [][]row {
	t.Helper()
	in.TableName = &x.name
	var out [][]row
	for {
		answer, err := x.tables.Query(t.Context(), &in)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, plainAll(answer.Items))
		if answer.LastEvaluatedKey == nil {
			return out
		}
		in.ExclusiveStartKey = answer.LastEvaluatedKey
	}
}

// one is the values of a single attribute over rows.
func one(rows []row, name string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r[name]
	}
	return out
}

// iterator opens the table's only shard.
func (x *testTable) iterator(t testing.TB, kind streamtypes.ShardIteratorType, sequence *string) *string {
	t.Helper()
	listed, err := x.streams.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: &x.name})
	if err != nil {
		t.Fatal(err)
	}
	described, err := x.streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: listed.Streams[0].StreamArn})
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: listed.Streams[0].StreamArn, ShardId: described.StreamDescription.Shards[0].ShardId,
		ShardIteratorType: kind, SequenceNumber: sequence,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.ShardIterator
}

func (x *testTable) records(t testing.TB, from *string, limit *int32) ([]streamtypes.Record, *string) {
	t.Helper()
	out, err := x.streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: from, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return out.Records, out.NextShardIterator
}

// change is a stream record as it is compared.
type change struct {
	Event    string
	Old, New row
}

func changes(records []streamtypes.Record) []change {
	var out []change
	for _, r := range records {
		out = append(out, change{string(r.EventName), fromStream(r.Dynamodb.OldImage), fromStream(r.Dynamodb.NewImage)})
	}
	return out
}
