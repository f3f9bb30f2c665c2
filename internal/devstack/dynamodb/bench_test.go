package dynamodb_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/devstack/dynamodb"
)

// BenchmarkTransactTwoPuts is the pipeline's accept: two small conditional puts in
// one transaction, through the SDK and a loopback connection.
func BenchmarkTransactTwoPuts(b *testing.B) {
	_, x := newEmbeddedTable(b, dynamodb.Config{})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		pk := strconv.Itoa(n)
		_, err := x.tables.TransactWriteItems(b.Context(), &sdk.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			x.putAction(indexed("i"+pk, "1", "g"+pk, pk), "attribute_not_exists(pk)"),
			x.putAction(with(key("o"+pk, "1"), "v", S("pending")), "attribute_not_exists(pk)"),
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkServeTransactTwoPuts is the server's share of the same call: no SDK, no
// network.
func BenchmarkServeTransactTwoPuts(b *testing.B) {
	server, x := newEmbeddedTable(b, dynamodb.Config{})
	const body = `{"ClientRequestToken":"t%[2]d","TransactItems":[
		{"Put":{"TableName":%[1]q,"ConditionExpression":"attribute_not_exists(pk)","ReturnValuesOnConditionCheckFailure":"ALL_OLD","Item":{"pk":{"S":"i%[2]d"},"sk":{"N":"1"},"g":{"S":"g%[2]d"},"n":{"N":"%[2]d"},"a":{"S":"a1"},"b":{"S":"b"}}}},
		{"Put":{"TableName":%[1]q,"ConditionExpression":"attribute_not_exists(pk)","Item":{"pk":{"S":"o%[2]d"},"sk":{"N":"1"},"v":{"S":"pending"}}}}]}`
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", strings.NewReader(fmt.Sprintf(body, x.name, n)))
		request.Header.Set("X-Amz-Target", "DynamoDB_20120810.TransactWriteItems")
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, request)
		if recorder.Code != http.StatusOK {
			b.Fatal(recorder.Body.String())
		}
	}
}
