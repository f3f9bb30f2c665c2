package dynamodb_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/dynamodb"
)

// The suite below is the store's side of D3 and D4 (one atomic conditional write,
// inbox and outbox in one transaction) and of T3 (one winner of many copies).

func TestTheEmbeddedServerConforms(t *testing.T) {
	_, tables, streams := embedded(t, dynamodb.Config{})
	conformance(t, tables, streams)
}

func TestDynamoDBLocalConforms(t *testing.T) {
	tables, streams := clients(localURL(t), false)
	conformance(t, tables, streams)
}

// conformance holds for the embedded server and for DynamoDB Local alike. What
// only the service and the embedded server do is in embedded_test.go.
func conformance(t *testing.T, c *sdk.Client, s *dynamodbstreams.Client) {
	groups := []struct {
		name   string
		checks []check
	}{
		{"transactions", transactionChecks},
		{"conditions", conditionChecks},
		{"updates", updateChecks},
		{"items", itemChecks},
		{"indexes", indexChecks},
		{"queries", queryChecks},
		{"batches", batchChecks},
		{"tables", tableChecks},
		{"streams", streamChecks},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, check := range group.checks {
				t.Run(check.name, func(t *testing.T) {
					check.run(t, newTable(t, c, s))
				})
			}
		})
	}
}

// check is one statement about the store, with the test that it is true.
type check struct {
	name string
	run  func(t *testing.T, x *testTable)
}

// want fails the test unless got is exactly want.
func want(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// refused fails the test unless err is the named exception.
func refused(t *testing.T, err error, name string) {
	t.Helper()
	if code(err) != name {
		t.Errorf("got %v, want a %s", err, name)
	}
}

const (
	validation = "ValidationException"
	conditionF = "ConditionalCheckFailedException"
	cancelled  = "TransactionCanceledException"
)

var transactionChecks = []check{
	{"two puts happen together", func(t *testing.T, x *testTable) {
		want(t, "", code(x.transact(t, x.putAction(key("a", "1"), ""), x.putAction(key("b", "1"), ""))))
		want(t, row{"pk": "S:a", "sk": "N:1"}, x.get(t, key("a", "1")))
		want(t, row{"pk": "S:b", "sk": "N:1"}, x.get(t, key("b", "1")))
	}},
	{"a failed condition undoes everything", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", S("old")))
		err := x.transact(t,
			x.putAction(key("b", "1"), ""),
			x.updateAction(key("c", "1"), "SET v = :v", "", attrs{":v": N("1")}),
			x.putAction(with(key("a", "1"), "v", S("new")), "attribute_not_exists(pk)"),
			x.deleteAction(key("d", "1"), ""))
		refused(t, err, cancelled)
		want(t, row{"pk": "S:a", "sk": "N:1", "v": "S:old"}, x.get(t, key("a", "1")))
		want(t, row(nil), x.get(t, key("b", "1")))
		want(t, row(nil), x.get(t, key("c", "1")))
	}},
	{"the reasons are in the order of the actions, None for the others", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"), key("c", "1"))
		err := x.transact(t,
			x.putAction(key("a", "1"), "attribute_not_exists(pk)"),
			x.putAction(key("b", "1"), "attribute_not_exists(pk)"),
			x.checkAction(key("c", "1"), "attribute_not_exists(pk)"),
			x.deleteAction(key("d", "1"), "attribute_exists(pk)"))
		want(t, []string{"ConditionalCheckFailed", "None", "ConditionalCheckFailed", "ConditionalCheckFailed"}, reasonCodes(err))
	}},
	{"ALL_OLD shows the item that made the condition fail, and only then", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", S("there")))
		err := x.transact(t,
			x.putAction(key("a", "1"), "attribute_not_exists(pk)"),
			x.putAction(key("b", "1"), ""),
			x.updateAction(key("c", "1"), "SET v = :v", "attribute_exists(pk)", attrs{":v": N("1")}),
			x.deleteAction(key("d", "1"), "attribute_exists(pk)"))
		found, ok := errors.AsType[*types.TransactionCanceledException](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		var items []row
		for _, r := range found.CancellationReasons {
			items = append(items, plain(r.Item))
		}
		want(t, []row{{"pk": "S:a", "sk": "N:1", "v": "S:there"}, nil, nil, nil}, items)
	}},
	{"the same item twice is refused", func(t *testing.T, x *testTable) {
		err := x.transact(t, x.putAction(key("a", "1"), ""), x.deleteAction(key("a", "1"), ""))
		refused(t, err, validation)
	}},
	{"a hundred actions happen, a hundred and one are refused", func(t *testing.T, x *testTable) {
		actions := make([]types.TransactWriteItem, 101)
		for i := range actions {
			actions[i] = x.putAction(key("a", strconv.Itoa(i)), "")
		}
		refused(t, x.transact(t, actions...), validation)
		want(t, "", code(x.transact(t, actions[:100]...)))
	}},
	{"more than 4 MB are refused", func(t *testing.T, x *testTable) {
		actions := make([]types.TransactWriteItem, 11)
		for i := range actions {
			actions[i] = x.putAction(with(key("a", strconv.Itoa(i)), "v", S(strings.Repeat("x", 390*1024))), "")
		}
		refused(t, x.transact(t, actions...), validation)
		want(t, row(nil), x.get(t, key("a", "0")))
		want(t, "", code(x.transact(t, actions[:10]...)))
	}},
	{"update, check and put happen together", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", N("1")), key("guard", "1"))
		err := x.transact(t,
			x.updateAction(key("a", "1"), "SET v = v + :one", "v = :one", attrs{":one": N("1")}),
			x.checkAction(key("guard", "1"), "attribute_exists(pk)"),
			x.putAction(key("b", "1"), "attribute_not_exists(pk)"))
		want(t, "", code(err))
		want(t, row{"pk": "S:a", "sk": "N:1", "v": "N:2"}, x.get(t, key("a", "1")))
		want(t, row{"pk": "S:b", "sk": "N:1"}, x.get(t, key("b", "1")))
	}},
	{"a failed check keeps update and put away", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", N("1")))
		err := x.transact(t,
			x.updateAction(key("a", "1"), "SET v = v + :one", "v = :one", attrs{":one": N("1")}),
			x.checkAction(key("guard", "1"), "attribute_exists(pk)"),
			x.putAction(key("b", "1"), "attribute_not_exists(pk)"))
		want(t, []string{"None", "ConditionalCheckFailed", "None"}, reasonCodes(err))
		want(t, row{"pk": "S:a", "sk": "N:1", "v": "N:1"}, x.get(t, key("a", "1")))
	}},
	{"a token makes a repetition harmless", func(t *testing.T, x *testTable) {
		in := &sdk.TransactWriteItemsInput{ClientRequestToken: aws.String(uniqueName()), TransactItems: []types.TransactWriteItem{
			x.putAction(key("a", "1"), "attribute_not_exists(pk)"),
			x.updateAction(key("n", "1"), "ADD v :one", "", attrs{":one": N("1")}),
		}}
		for range 3 {
			_, err := x.tables.TransactWriteItems(t.Context(), in)
			want(t, "", code(err))
		}
		want(t, row{"pk": "S:n", "sk": "N:1", "v": "N:1"}, x.get(t, key("n", "1")))
	}},
	{"a token with other actions is a mismatch", func(t *testing.T, x *testTable) {
		token := aws.String(uniqueName())
		for i, name := range []string{"", "IdempotentParameterMismatchException"} {
			_, err := x.tables.TransactWriteItems(t.Context(), &sdk.TransactWriteItemsInput{
				ClientRequestToken: token,
				TransactItems:      []types.TransactWriteItem{x.putAction(key("a", strconv.Itoa(i)), "")},
			})
			want(t, name, code(err))
		}
	}},
	{"a cancelled transaction does not use up its token", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"))
		in := &sdk.TransactWriteItemsInput{ClientRequestToken: aws.String(uniqueName()), TransactItems: []types.TransactWriteItem{
			x.putAction(key("a", "1"), "attribute_not_exists(pk)"),
		}}
		_, err := x.tables.TransactWriteItems(t.Context(), in)
		refused(t, err, cancelled)
		want(t, "", code(x.transact(t, x.deleteAction(key("a", "1"), ""))))
		_, err = x.tables.TransactWriteItems(t.Context(), in)
		want(t, "", code(err))
	}},
	{"of 200 concurrent copies one wins, on both items", func(t *testing.T, x *testTable) {
		const copies = 200
		results := make([]string, copies)
		var all sync.WaitGroup
		for i := range copies {
			all.Go(func() {
				who := S(strconv.Itoa(i))
				attempt := func() error {
					return x.transact(t,
						x.putAction(with(key("inbox", "1"), "who", who), "attribute_not_exists(pk)"),
						x.putAction(with(key("outbox", "1"), "who", who), "attribute_not_exists(pk)"))
				}
				err := attempt()
				// DynamoDB Local gives up waiting for its lock after 10 s, which a
				// busy machine reaches; the SDK's retryer would repeat the call.
				for tries := 0; code(err) == "InternalServerError" && tries < 5; tries++ {
					err = attempt()
				}
				results[i] = fmt.Sprint(code(err), reasonCodes(err))
			})
		}
		all.Wait()
		won := slices.Index(results, "[]")
		count := map[string]int{}
		for _, r := range results {
			count[r]++
		}
		want(t, map[string]int{"[]": 1, cancelled + "[ConditionalCheckFailed ConditionalCheckFailed]": copies - 1}, count)
		who := "S:" + strconv.Itoa(won)
		want(t, row{"pk": "S:inbox", "sk": "N:1", "who": who}, x.get(t, key("inbox", "1")))
		want(t, row{"pk": "S:outbox", "sk": "N:1", "who": who}, x.get(t, key("outbox", "1")))
	}},
	{"an expression fault refuses the call, not one action", func(t *testing.T, x *testTable) {
		refused(t, x.transact(t, x.putAction(key("a", "1"), ""), x.putAction(key("b", "1"), "v =")), validation)
		refused(t, x.transact(t, x.putAction(key("a", "1"), ""), x.putAction(key("b", "1"), "name = name")), validation)
		want(t, row(nil), x.get(t, key("a", "1")))
	}},
	{"a wrongly typed key or index key cancels with ValidationError", func(t *testing.T, x *testTable) {
		bad := attrs{"pk": S("a"), "sk": S("one")}
		want(t, []string{"None", "ValidationError"}, reasonCodes(x.transact(t, x.putAction(key("a", "1"), ""), x.putAction(bad, ""))))
		badIndex := with(key("b", "1"), "n", S("one"))
		want(t, []string{"None", "ValidationError"}, reasonCodes(x.transact(t, x.putAction(key("a", "1"), ""), x.putAction(badIndex, ""))))
	}},
	{"an update beyond 400 KB cancels with ValidationError", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", S(strings.Repeat("x", 300*1024))))
		err := x.transact(t, x.putAction(key("b", "1"), ""),
			x.updateAction(key("a", "1"), "SET w = :w", "", attrs{":w": S(strings.Repeat("x", 200*1024))}))
		want(t, []string{"None", "ValidationError"}, reasonCodes(err))
	}},
	{"a put beyond 400 KB is refused", func(t *testing.T, x *testTable) {
		refused(t, x.transact(t, x.putAction(with(key("a", "1"), "v", S(strings.Repeat("x", 400*1024))), "")), validation)
	}},
	{"a table that is not there fails the call", func(t *testing.T, x *testTable) {
		other := &testTable{name: "no-such-table", tables: x.tables}
		refused(t, x.transact(t, x.putAction(key("a", "1"), ""), other.putAction(key("b", "1"), "")), "ResourceNotFoundException")
		want(t, row(nil), x.get(t, key("a", "1")))
	}},
}
