package dynamodb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/dynamodb"
)

// What the service does and DynamoDB Local does not, or what only a server in
// this process can show.

func newEmbeddedTable(t testing.TB, c dynamodb.Config) (*dynamodb.Server, *testTable) {
	t.Helper()
	server, tables, streams := embedded(t, c)
	return server, newTable(t, tables, streams)
}

func TestATransactionBillsItsTableWritesDoubleAndItsIndexWritesOnce(t *testing.T) {
	server, x := newEmbeddedTable(t, dynamodb.Config{})
	out, err := x.tables.TransactWriteItems(t.Context(), &sdk.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			x.putAction(with(with(key("a", "1"), "g", S("g")), "n", N("1")), ""),
			x.putAction(with(key("b", "1"), "v", S(strings.Repeat("x", 1500))), ""),
		},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
	})
	want(t, "", code(err))
	capacity := out.ConsumedCapacity[0]
	want(t, []float64{9, 9, 6, 1, 1, 1}, []float64{
		*capacity.CapacityUnits, *capacity.WriteCapacityUnits, *capacity.Table.CapacityUnits,
		*capacity.GlobalSecondaryIndexes["scores"].CapacityUnits, *capacity.GlobalSecondaryIndexes["some"].CapacityUnits, *capacity.GlobalSecondaryIndexes["every"].CapacityUnits,
	})
	want(t, map[string]dynamodb.Units{x.name: {Write: 9, IndexWrite: 3}}, server.Usage())
	want(t, 9.0, server.Usage()[x.name].Total())
}

func TestUsageCountsByTheSizeFormula(t *testing.T) {
	server, x := newEmbeddedTable(t, dynamodb.Config{})
	tests := []struct {
		name string
		run  func()
		want dynamodb.Units
	}{
		{"a put bills its size", func() { x.put(t, with(key("a", "1"), "v", S(strings.Repeat("x", 2000)))) }, dynamodb.Units{Write: 2}},
		{"a smaller one over it bills the old size", func() { x.put(t, key("a", "1")) }, dynamodb.Units{Write: 2}},
		{"a failed condition bills the row it saw", func() { _, _ = x.holds(t, key("a", "1"), "attribute_not_exists(pk)", nil) }, dynamodb.Units{Write: 1}},
		{"an index entry that appears", func() { x.put(t, indexed("a", "1", "g", "1")) }, dynamodb.Units{Write: 4, IndexWrite: 3}},
		{"a change outside a projection leaves that index alone", func() { _, _ = x.update(t, key("a", "1"), "SET b = :v", attrs{":v": S("c")}) }, dynamodb.Units{Write: 2, IndexWrite: 1}},
		{"a changed index key is a removal and an insertion", func() { _, _ = x.update(t, key("a", "1"), "SET n = :v", attrs{":v": N("2")}) }, dynamodb.Units{Write: 4, IndexWrite: 3}},
		{"an eventual read of a small row", func() {
			_, _ = x.tables.GetItem(t.Context(), &sdk.GetItemInput{TableName: &x.name, Key: key("a", "1")})
		}, dynamodb.Units{Read: 0.5}},
		{"a consistent one", func() { x.get(t, key("a", "1")) }, dynamodb.Units{Read: 1}},
		{"a read of nothing", func() { x.get(t, key("zz", "1")) }, dynamodb.Units{Read: 1}},
		{"a query that finds nothing", func() { x.rowsOf(t, query("", "pk = :p", attrs{":p": S("zz")})) }, dynamodb.Units{Read: 0.5}},
		{"a batch with a missing key", func() {
			_, _ = x.tables.BatchGetItem(t.Context(), &sdk.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{x.name: {Keys: []map[string]types.AttributeValue{key("a", "1"), key("zz", "1")}}}})
		}, dynamodb.Units{Read: 1}},
		{"a query of an index", func() { x.rowsOf(t, query("scores", "g = :g", attrs{":g": S("g")})) }, dynamodb.Units{Read: 0.5}},
		{"a cancelled transaction bills what it prepared", func() {
			_ = x.transact(t, x.putAction(key("b", "1"), ""), x.checkAction(key("c", "1"), "attribute_exists(pk)"))
		}, dynamodb.Units{Write: 4}},
		{"a deletion bills the old row and its index entries", func() {
			_, _ = x.tables.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: &x.name, Key: key("a", "1")})
		}, dynamodb.Units{Write: 4, IndexWrite: 3}},
		{"a refused request is free", func() { _, _ = x.update(t, key("a", "1"), "SET", nil) }, dynamodb.Units{}},
	}
	for _, test := range tests {
		server.ResetUsage()
		test.run()
		if diff := cmp.Diff(test.want, server.Usage()[x.name]); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func (x *testTable) rowsOf(t testing.TB, in sdk.QueryInput) []row {
	t.Helper()
	return x.pages(t, in)[0]
}

func TestAReplayedTokenReadsInsteadOfWriting(t *testing.T) {
	clock := newClock()
	server, x := newEmbeddedTable(t, dynamodb.Config{Now: clock.Now})
	in := &sdk.TransactWriteItemsInput{
		ClientRequestToken: aws.String("once"), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		TransactItems: []types.TransactWriteItem{x.updateAction(key("a", "1"), "ADD v :one", "", attrs{":one": N("1")})},
	}
	units := func() []float64 {
		out, err := x.tables.TransactWriteItems(t.Context(), in)
		want(t, "", code(err))
		return []float64{aws.ToFloat64(out.ConsumedCapacity[0].WriteCapacityUnits), aws.ToFloat64(out.ConsumedCapacity[0].ReadCapacityUnits)}
	}
	want(t, []float64{2, 0}, units())
	want(t, []float64{0, 2}, units())
	clock.Advance(10*time.Minute - time.Second)
	want(t, []float64{0, 2}, units())
	clock.Advance(time.Second)
	want(t, []float64{2, 0}, units())
	want(t, row{"pk": "S:a", "sk": "N:1", "v": "N:2"}, x.get(t, key("a", "1")))
	want(t, dynamodb.Units{Write: 4, Read: 5}, server.Usage()[x.name])
}

func TestAnOperandFaultInATransactionIsAReasonOfItsAction(t *testing.T) {
	_, x := newEmbeddedTable(t, dynamodb.Config{})
	for expression, v := range map[string]types.AttributeValue{
		"SET v = gone + :v": N("1"), "SET g = :v": S(""), "SET n = :v": S("x"), "SET gone.x = :v": N("1"), "SET sk = :v": N("2"),
	} {
		err := x.transact(t, x.putAction(key("b", "1"), ""), x.updateAction(key("a", "1"), expression, "", attrs{":v": v}))
		want(t, []string{"None", "ValidationError"}, reasonCodes(err))
	}
}

func TestOneItemIsOneHoweverItsKeyIsWritten(t *testing.T) {
	_, x := newEmbeddedTable(t, dynamodb.Config{})
	refused(t, x.transact(t, x.putAction(key("a", "1"), ""), x.deleteAction(key("a", "1.0"), "")), validation)
	refused(t, x.batchWrite(t, putRequest(key("a", "1")), putRequest(key("a", "1e0"))), validation)
	_, err := x.tables.BatchGetItem(t.Context(), &sdk.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{x.name: {Keys: []map[string]types.AttributeValue{key("a", "1"), key("a", "1.0")}}}})
	refused(t, err, validation)
	x.put(t, with(key("a", "1.0"), "v", L(N("1e2"))))
	want(t, row{"pk": "S:a", "sk": "N:1", "v": "L[N:100]"}, x.get(t, key("a", "10e-1")))
}

func TestTableNamesAreCaseSensitive(t *testing.T) {
	_, x := newEmbeddedTable(t, dynamodb.Config{})
	_, err := x.tables.DescribeTable(t.Context(), &sdk.DescribeTableInput{TableName: aws.String(strings.ToUpper(x.name))})
	refused(t, err, "ResourceNotFoundException")
}

func TestAScanOfAnIndexCannotFilterOnWhatTheIndexLacks(t *testing.T) {
	_, x := newEmbeddedTable(t, dynamodb.Config{})
	_, err := x.tables.Scan(t.Context(), &sdk.ScanInput{TableName: &x.name, IndexName: aws.String("scores"), FilterExpression: aws.String("attribute_exists(b)")})
	refused(t, err, validation)
}

func TestUpdatedValuesAreExactlyTheNamedPaths(t *testing.T) {
	_, x := newEmbeddedTable(t, dynamodb.Config{})
	got := map[types.ReturnValue]row{}
	for _, form := range []types.ReturnValue{types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew} {
		x.put(t, attrs{"pk": S("a"), "sk": N("1"), "m": M(attrs{"x": N("1"), "y": N("2")}), "l": L(N("0"), N("1")), "w": N("1")})
		out, err := x.tables.UpdateItem(t.Context(), &sdk.UpdateItemInput{
			TableName: &x.name, Key: key("a", "1"), UpdateExpression: aws.String("SET m.x = :v, l[1] = :v"),
			ExpressionAttributeValues: attrs{":v": N("9")}, ReturnValues: form,
		})
		want(t, "", code(err))
		got[form] = plain(out.Attributes)
	}
	want(t, map[types.ReturnValue]row{
		"UPDATED_OLD": {"m": "M{x=N:1}", "l": "L[N:1]"},
		"UPDATED_NEW": {"m": "M{x=N:9}", "l": "L[N:9]"},
	}, got)
}

func TestExpiryHappensWhenAskedAndAsTheService(t *testing.T) {
	clock := newClock()
	server, x := newEmbeddedTable(t, dynamodb.Config{Now: clock.Now})
	_, err := x.tables.UpdateTimeToLive(t.Context(), &sdk.UpdateTimeToLiveInput{
		TableName: &x.name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("x"), Enabled: aws.Bool(true)},
	})
	want(t, "", code(err))
	at := func(offset time.Duration) types.AttributeValue {
		return N(strconv.FormatInt(clock.Now().Add(offset).Unix(), 10))
	}
	x.put(t,
		with(indexed("a", "1", "g", "1"), "x", at(-time.Second)), with(key("a", "2"), "x", at(0)), with(key("a", "3"), "x", at(time.Second)),
		with(key("a", "4"), "x", S("0")), with(key("a", "5"), "x", at(-6*365*24*time.Hour)), key("a", "6"))
	latest := x.iterator(t, streamtypes.ShardIteratorTypeLatest, nil)
	server.ResetUsage()

	want(t, 2, server.ExpireNow())
	want(t, 0, server.ExpireNow())
	want(t, dynamodb.Units{}, server.Usage()[x.name])
	want(t, []string{"N:3", "N:4", "N:5", "N:6"}, one(x.rowsOf(t, query("", "pk = :p", attrs{":p": S("a")})), "sk"))
	want(t, 0, len(x.rowsOf(t, query("scores", "g = :g", attrs{":g": S("g")}))))
	records, _ := x.records(t, latest, nil)
	want(t, 2, len(records))
	for _, r := range records {
		want(t, "REMOVE Service dynamodb.amazonaws.com", string(r.EventName)+" "+*r.UserIdentity.Type+" "+*r.UserIdentity.PrincipalId)
	}
}

func TestAWaiterHearsOfTheNextRecord(t *testing.T) {
	server, x := newEmbeddedTable(t, dynamodb.Config{})
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	first, other := server.Changed(x.name), server.Changed("another-table")
	want(t, false, closed(first))
	x.put(t, key("a", "1"))
	want(t, true, closed(first))
	second := server.Changed(x.name)
	x.put(t, key("a", "1")) // changes nothing
	want(t, false, closed(second))
	want(t, "", code(x.transact(t, x.putAction(key("b", "1"), ""))))
	want(t, true, closed(second))
	want(t, false, closed(other))
}

func TestStreamDataAgesAndIteratorsExpire(t *testing.T) {
	clock := newClock()
	_, x := newEmbeddedTable(t, dynamodb.Config{Now: clock.Now})
	x.put(t, key("a", "1"))
	old := x.iterator(t, streamtypes.ShardIteratorTypeTrimHorizon, nil)
	sequence := func() *string {
		records, _ := x.records(t, old, nil)
		return records[0].Dynamodb.SequenceNumber
	}()
	get := func(from *string) string {
		_, err := x.streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: from})
		return code(err)
	}
	clock.Advance(15*time.Minute + time.Second)
	want(t, "ExpiredIteratorException", get(old))

	clock.Advance(24 * time.Hour)
	fresh := x.iterator(t, streamtypes.ShardIteratorTypeAtSequenceNumber, sequence)
	want(t, "", get(fresh)) // nothing is dropped before something new arrives
	x.put(t, key("a", "2"))
	want(t, "TrimmedDataAccessException", get(fresh))
	records, _ := x.records(t, x.iterator(t, streamtypes.ShardIteratorTypeTrimHorizon, nil), nil)
	want(t, []change{{"INSERT", nil, row{"pk": "S:a", "sk": "N:2"}}}, changes(records))
}

func TestEveryOtherCallIsRefused(t *testing.T) {
	_, x := newEmbeddedTable(t, dynamodb.Config{})
	ctx := t.Context()
	calls := map[string]func() error{
		"TransactGetItems": func() error {
			_, err := x.tables.TransactGetItems(ctx, &sdk.TransactGetItemsInput{TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: &x.name, Key: key("a", "1")}}}})
			return err
		},
		"ExecuteStatement": func() error {
			_, err := x.tables.ExecuteStatement(ctx, &sdk.ExecuteStatementInput{Statement: aws.String("SELECT * FROM x")})
			return err
		},
		"UpdateTable": func() error {
			_, err := x.tables.UpdateTable(ctx, &sdk.UpdateTableInput{TableName: &x.name})
			return err
		},
		"UpdateContinuousBackups": func() error {
			_, err := x.tables.UpdateContinuousBackups(ctx, &sdk.UpdateContinuousBackupsInput{
				TableName: &x.name, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
			})
			return err
		},
	}
	for name, call := range calls {
		err := call()
		refused(t, err, "UnknownOperationException")
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "PutItem") {
			t.Errorf("%s: the message names neither the call nor what is spoken: %v", name, err)
		}
	}
	want(t, 19, len(dynamodb.Operations()))
}

func TestWhatIsNotImplementedIsRefusedNotIgnored(t *testing.T) {
	server, x := newEmbeddedTable(t, dynamodb.Config{})
	tests := map[string]string{
		"PutItem":        `{"TableName":"` + x.name + `","Item":{"pk":{"S":"a"},"sk":{"N":"1"}},"Expected":{}}`,
		"GetItem":        `{"TableName":"` + x.name + `","Key":{"pk":{"S":"a"},"sk":{"N":"1"}},"AttributesToGet":["v"]}`,
		"Query":          `{"TableName":"` + x.name + `","KeyConditions":{}}`,
		"Scan":           `{"TableName":"` + x.name + `","ScanFilter":{}}`,
		"UpdateItem":     `{"TableName":"` + x.name + `","Key":{"pk":{"S":"a"},"sk":{"N":"1"}},"AttributeUpdates":{}}`,
		"CreateTable":    `{"TableName":"other","LocalSecondaryIndexes":[]}`,
		"DescribeTable":  `{"TableName":"` + x.name + `","Verbose":true}`,
		"BatchGetItem":   `{"RequestItems":{"` + x.name + `":{"Keys":[],"AttributesToGet":[]}}}`,
		"BatchWriteItem": `{"RequestItems":{"` + x.name + `":[{"UpdateRequest":{}}]}}`,
	}
	for operation, body := range tests {
		status, answer, _ := post(t, server, operation, body)
		if status != http.StatusBadRequest || !strings.Contains(answer, "is not implemented by the local DynamoDB") {
			t.Errorf("%s: %d %s", operation, status, answer)
		}
	}
}

func TestAMalformedRequestIsRefused(t *testing.T) {
	server, x := newEmbeddedTable(t, dynamodb.Config{})
	for _, body := range []string{
		``, `{`, `[]`, `{"TableName":}`, `{"TableName":"x"} trailing`, `{"TableName":5}`, `{"TableName":"` + x.name + `","Item":{"pk":{"S":5}}}`,
		`{"TableName":"\ud800","Item":{"pk":{"B":"!!"}}}`, "{\"TableName\":\"\xff\"}", `{"TableName":"x" "Item":{}}`, `{"TableName":"` + x.name + `","Item":{"pk":{"S":"\q"}}}`,
		`{"TableName":"` + x.name + `","Item":` + strings.Repeat(`{"M":`, 5000) + strings.Repeat(`}`, 5000) + `}`,
	} {
		status, answer, _ := post(t, server, "PutItem", body)
		if status != http.StatusBadRequest {
			t.Errorf("%.60q: %d %s", body, status, answer)
		}
	}
}

// post sends one raw request to the server and returns its raw answer.
func post(t *testing.T, server *dynamodb.Server, operation, body string) (int, string, http.Header) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String(), recorder.Header()
}

func TestEveryAnswerCarriesItsChecksumAndLength(t *testing.T) {
	server, x := newEmbeddedTable(t, dynamodb.Config{})
	for operation, body := range map[string]string{
		"ListTables":    `{}`,
		"PutItem":       `{"TableName":"` + x.name + `","Item":{"pk":{"S":"a"},"sk":{"N":"1"}}}`,
		"DescribeTable": `{"TableName":"no-such-table"}`,
		"NoSuchCall":    `{}`,
		"Query":         `not json`,
	} {
		_, answer, header := post(t, server, operation, body)
		want(t, strconv.Itoa(len(answer)), header.Get("Content-Length"))
		want(t, strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(answer))), 10), header.Get("X-Amz-Crc32"))
		if strings.HasSuffix(answer, "\n") || !json.Valid([]byte(answer)) {
			t.Errorf("%s: %q", operation, answer)
		}
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	want(t, strconv.Itoa(recorder.Body.Len()), recorder.Header().Get("Content-Length"))
}

func TestErrorsAreTheSDKsTypedExceptions(t *testing.T) {
	_, x := newEmbeddedTable(t, dynamodb.Config{})
	x.put(t, with(key("a", "1"), "v", N("1")))
	err := x.transact(t, x.putAction(key("b", "1"), ""), x.putAction(key("a", "1"), "attribute_not_exists(pk)"))
	found, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	want(t, "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed]", found.ErrorMessage())
	want(t, "The conditional request failed", aws.ToString(found.CancellationReasons[1].Message))
	want(t, row{"pk": "S:a", "sk": "N:1", "v": "N:1"}, plain(found.CancellationReasons[1].Item))

	_, err = x.tables.DescribeTable(t.Context(), &sdk.DescribeTableInput{TableName: aws.String("no-such-table")})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerLargerThanOneReadArrivesWhole(t *testing.T) {
	server, x := newEmbeddedTable(t, dynamodb.Config{})
	front := httptest.NewServer(server)
	t.Cleanup(front.Close)
	x.put(t, with(key("a", "1"), "v", S(strings.Repeat("é\"\n", 100_000))))
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, front.URL,
		bytes.NewReader([]byte(`{"TableName":"`+x.name+`","Key":{"pk":{"S":"a"},"sk":{"N":"1"}}}`)))
	want(t, nil, err)
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.GetItem")
	answer, err := http.DefaultClient.Do(request)
	want(t, nil, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	want(t, nil, err)
	want(t, strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10), answer.Header.Get("X-Amz-Crc32"))
	want(t, int64(len(body)), answer.ContentLength)
}

// FuzzRequest looks for request bodies that make the server panic, answer with
// something that is not JSON, or lose the checksum.
func FuzzRequest(f *testing.F) {
	operations := []string{"PutItem", "UpdateItem", "GetItem", "Query", "Scan", "TransactWriteItems", "BatchWriteItem", "BatchGetItem", "CreateTable", "UpdateTimeToLive"}
	for i, body := range []string{
		`{"TableName":"things","Item":{"pk":{"S":"a"},"v":{"M":{"x":{"L":[{"N":"1"},{"BS":["AA=="]}]}}}},"ConditionExpression":"attribute_not_exists(pk)"}`,
		`{"TableName":"things","Key":{"pk":{"S":"a"}},"UpdateExpression":"SET #v = :v","ExpressionAttributeNames":{"#v":"v"},"ExpressionAttributeValues":{":v":{"NULL":true}}}`,
		`{"TableName":"things","Key":{"pk":{"S":"\u00e9\ud83d\ude00"}},"ProjectionExpression":"v.x[0]"}`,
		`{"TableName":"things","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}},"ExclusiveStartKey":{"pk":{"S":"a"}},"Limit":1}`,
		`{"TableName":"things","Segment":1,"TotalSegments":2,"Select":"COUNT"}`,
		`{"TransactItems":[{"Put":{"TableName":"things","Item":{"pk":{"S":"a"}}}},{"ConditionCheck":{"TableName":"things","Key":{"pk":{"S":"b"}},"ConditionExpression":"v = :v","ExpressionAttributeValues":{":v":{"B":""}}}}],"ClientRequestToken":"t"}`,
		`{"RequestItems":{"things":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"b"}}}}]}}`,
		`{"RequestItems":{"things":{"Keys":[{"pk":{"S":"a"}}],"ConsistentRead":true}}}`,
		`{"TableName":"other","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`,
		`{"TableName":"things","TimeToLiveSpecification":{"AttributeName":"x","Enabled":true}}`,
	} {
		f.Add(i, body)
	}
	f.Fuzz(func(t *testing.T, which int, body string) {
		server := dynamodb.New(dynamodb.Config{})
		status, answer, _ := post(t, server, "CreateTable", `{"TableName":"things","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`)
		if status != http.StatusOK {
			t.Fatal(answer)
		}
		status, answer, header := post(t, server, operations[uint(which)%uint(len(operations))], body)
		if status != http.StatusOK && status != http.StatusBadRequest {
			t.Fatalf("%d %s", status, answer)
		}
		if !json.Valid([]byte(answer)) || header.Get("X-Amz-Crc32") != strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(answer))), 10) {
			t.Fatalf("%q", answer)
		}
	})
}
