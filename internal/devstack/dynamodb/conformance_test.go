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
				err := x.transact(t,
					x.putAction(with(key("inbox", "1"), "who", who), "attribute_not_exists(pk)"),
					x.putAction(with(key("outbox", "1"), "who", who), "attribute_not_exists(pk)"))
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

// judged is a check of conditions against one stored item.
func judged(it attrs, tests map[string]bool, values attrs) func(t *testing.T, x *testTable) {
	return func(t *testing.T, x *testTable) {
		x.put(t, it)
		got := map[string]bool{}
		for condition := range tests {
			used := attrs{}
			for name, v := range values {
				if strings.Contains(condition, name) {
					used[name] = v
				}
			}
			if len(used) == 0 {
				used = nil
			}
			held, err := x.holds(t, it, condition, used)
			if err != nil {
				t.Errorf("%s: %v", condition, err)
			}
			got[condition] = held
		}
		want(t, tests, got)
	}
}

// refusedConditions is a check that each condition is a ValidationException.
func refusedConditions(conditions map[string]attrs) func(t *testing.T, x *testTable) {
	return func(t *testing.T, x *testTable) {
		for condition, values := range conditions {
			if _, err := x.holds(t, key("a", "1"), condition, values); code(err) != validation {
				t.Errorf("%s: got %v", condition, err)
			}
		}
	}
}

var conditionChecks = []check{
	{"numbers compare as numbers", judged(with(key("a", "1"), "v", N("9")), map[string]bool{
		"v < :ten": true, "v > :ten": false, "v <= :nine": true, "v = :nine": true, "v <> :nine": false, "v >= :ten": false,
	}, attrs{":ten": N("10"), ":nine": N("9.0")})},
	{"types that differ are unequal, and never ordered", judged(with(key("a", "1"), "v", N("9")), map[string]bool{
		"v = :text": false, "v <> :text": true, "v < :text": false, "v > :text": false,
	}, attrs{":text": S("9")})},
	{"a missing attribute is unequal to everything", judged(key("a", "1"), map[string]bool{
		"gone = :v": false, "gone <> :v": true, "gone < :v": false, "NOT gone = :v": true, "gone IN (:v)": false, "gone BETWEEN :v AND :v": false,
	}, attrs{":v": N("1")})},
	{"OR with attribute_not_exists", judged(with(key("a", "1"), "v", N("1")), map[string]bool{
		"attribute_not_exists(gone) OR gone < :v": true, "attribute_not_exists(v) OR v < :v": false, "attribute_not_exists(v) OR v <= :v": true,
	}, attrs{":v": N("1")})},
	{"AND binds before OR, NOT before both", judged(with(key("a", "1"), "v", N("1")), map[string]bool{
		"v = :one OR v = :one AND v = :two": true, "(v = :one OR v = :one) AND v = :two": false, "NOT v = :two AND v = :one": true,
	}, attrs{":one": N("1"), ":two": N("2")})},
	{"size counts characters, bytes and members", judged(attrs{
		"pk": S("a"), "sk": N("1"), "s": S("grüße"), "b": B("abc"), "l": L(N("1"), N("2")), "m": M(attrs{"x": N("1")}), "e": SS("a", "b", "c"),
	}, map[string]bool{
		"size(s) = :five": true, "size(b) = :three": true, "size(l) = :two": true, "size(m) = :one": true, "size(e) = :three": true,
		"size(gone) = :one": false, "size(sk) = :one": false,
	}, attrs{":one": N("1"), ":two": N("2"), ":three": N("3"), ":five": N("5")})},
	{"nested paths reach into maps and lists", judged(attrs{
		"pk": S("a"), "sk": N("1"), "m": M(attrs{"l": L(N("7"), M(attrs{"x": S("deep")}))}),
	}, map[string]bool{
		"m.l[0] = :seven": true, "m.l[1].x = :deep": true, "m.l[2] = :seven": false, "attribute_exists(m.l[1].x)": true, "attribute_exists(m.x)": false,
	}, attrs{":seven": N("7"), ":deep": S("deep")})},
	{"IN and BETWEEN", judged(with(key("a", "1"), "v", N("5")), map[string]bool{
		"v IN (:one, :five)": true, "v IN (:one, :text)": false, "v BETWEEN :one AND :five": true, "v BETWEEN :six AND :nine": false,
	}, attrs{":one": N("1"), ":five": N("5"), ":six": N("6"), ":nine": N("9"), ":text": S("5")})},
	{"begins_with and contains", judged(attrs{
		"pk": S("a"), "sk": N("1"), "s": S("hello"), "e": SS("x", "y"), "l": L(N("1"), S("z")), "b": B("abc"),
	}, map[string]bool{
		"begins_with(s, :he)": true, "begins_with(s, :lo)": false, "begins_with(sk, :he)": false, "begins_with(b, :ab)": true,
		"contains(s, :lo)": true, "contains(e, :x)": true, "contains(e, :he)": false, "contains(l, :n1)": true, "contains(sk, :n1)": false,
	}, attrs{":he": S("he"), ":lo": S("lo"), ":x": S("x"), ":n1": N("1.0"), ":ab": B("ab")})},
	{"attribute_type", judged(attrs{"pk": S("a"), "sk": N("1"), "nil": Null()}, map[string]bool{
		"attribute_type(pk, :S)": true, "attribute_type(pk, :N)": false, "attribute_type(nil, :void)": true, "attribute_type(gone, :S)": false,
	}, attrs{":S": S("S"), ":N": S("N"), ":void": S("NULL")})},
	{"lists, maps and sets are equal by value", judged(attrs{
		"pk": S("a"), "sk": N("1"), "l": L(N("1"), S("x")), "m": M(attrs{"a": N("1")}), "e": SS("b", "a"), "q": NS("2", "1"),
	}, map[string]bool{
		"l = :l": true, "m = :m": true, "e = :e": true, "q = :q": true, "l = :m": false, "e <> :e": false,
	}, attrs{":l": L(N("1.0"), S("x")), ":m": M(attrs{"a": N("1")}), ":e": SS("a", "b"), ":q": NS("1.0", "2")})},
	{"an unused value is refused", refusedConditions(map[string]attrs{"attribute_exists(pk)": {":v": N("1")}})},
	{"an undefined value or name is refused", refusedConditions(map[string]attrs{"v = :v": nil, "v = :w": {":v": N("1")}, "#v = :v": {":v": N("1")}})},
	{"a reserved word is refused", refusedConditions(map[string]attrs{"name = :v": {":v": N("1")}, "m.Status = :v": {":v": N("1")}})},
	{"a name stands for a reserved word", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "name", S("x")))
		_, err := x.tables.DeleteItem(t.Context(), &sdk.DeleteItemInput{
			TableName: &x.name, Key: key("a", "1"), ConditionExpression: aws.String("#n = :v"),
			ExpressionAttributeNames: map[string]string{"#n": "name"}, ExpressionAttributeValues: attrs{":v": S("x")},
		})
		want(t, "", code(err))
	}},
	{"an unused name is refused", func(t *testing.T, x *testTable) {
		_, err := x.tables.GetItem(t.Context(), &sdk.GetItemInput{
			TableName: &x.name, Key: key("a", "1"), ProjectionExpression: aws.String("v"), ExpressionAttributeNames: map[string]string{"#n": "name"},
		})
		refused(t, err, validation)
	}},
	{"what is not an expression is refused", refusedConditions(map[string]attrs{
		"v": nil, "v ==  :v": {":v": N("1")}, "v = :v AND": {":v": N("1")}, "((v = :v))": {":v": N("1")}, "v = v": nil, "foo(v)": nil,
		"size(v)": nil, "v < :v": {":v": Bool(true)}, "begins_with(v, :v)": {":v": N("1")}, "v BETWEEN :b AND :a": {":a": N("1"), ":b": N("2")},
	})},
	{"values without an expression are refused", func(t *testing.T, x *testTable) {
		_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: key("a", "1"), ExpressionAttributeValues: attrs{":v": N("1")}})
		refused(t, err, validation)
	}},
	{"a path into a key attribute is refused", refusedConditions(map[string]attrs{"pk.x = :v": {":v": N("1")}})},
	{"a failed put shows the item with ALL_OLD", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", N("1")))
		_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{
			TableName: &x.name, Item: key("a", "1"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		wantOld(t, err, row{"pk": "S:a", "sk": "N:1", "v": "N:1"})
	}},
	{"a failed update shows the item with ALL_OLD", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", N("1")))
		_, err := x.tables.UpdateItem(t.Context(), &sdk.UpdateItemInput{
			TableName: &x.name, Key: key("a", "1"), UpdateExpression: aws.String("SET v = :two"), ConditionExpression: aws.String("v = :two"),
			ExpressionAttributeValues:           attrs{":two": N("2")},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		wantOld(t, err, row{"pk": "S:a", "sk": "N:1", "v": "N:1"})
	}},
	{"a failed delete shows the item with ALL_OLD, or none", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"))
		for sk, old := range map[string]row{"1": {"pk": "S:a", "sk": "N:1"}, "2": nil} {
			_, err := x.tables.DeleteItem(t.Context(), &sdk.DeleteItemInput{
				TableName: &x.name, Key: key("a", sk), ConditionExpression: aws.String("attribute_exists(v)"),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			})
			wantOld(t, err, old)
		}
	}},
}

func wantOld(t *testing.T, err error, old row) {
	t.Helper()
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	want(t, old, plain(failed.Item))
}

// updated is a check that an expression turns one item into another.
func updated(it attrs, expression string, values attrs, after row) func(t *testing.T, x *testTable) {
	return func(t *testing.T, x *testTable) {
		x.put(t, it)
		got, err := x.update(t, attrs{"pk": it["pk"], "sk": it["sk"]}, expression, values)
		want(t, "", code(err))
		want(t, after, got)
	}
}

var updateChecks = []check{
	{"SET adds and subtracts", updated(with(key("a", "1"), "v", N("5")), "SET v = v + :two, w = v - :two", attrs{":two": N("2")},
		row{"pk": "S:a", "sk": "N:1", "v": "N:7", "w": "N:3"})},
	{"SET sees the item as it was", updated(attrs{"pk": S("a"), "sk": N("1"), "v": S("left"), "w": S("right")}, "SET v = w, w = v", nil,
		row{"pk": "S:a", "sk": "N:1", "v": "S:right", "w": "S:left"})},
	{"if_not_exists counts from nothing", updated(key("a", "1"), "SET v = if_not_exists(v, :zero) + :one", attrs{":zero": N("0"), ":one": N("1")},
		row{"pk": "S:a", "sk": "N:1", "v": "N:1"})},
	{"list_append at either end", updated(with(key("a", "1"), "v", L(N("1"))), "SET v = list_append(v, :l), w = list_append(:l, v)", attrs{":l": L(N("2"))},
		row{"pk": "S:a", "sk": "N:1", "v": "L[N:1 N:2]", "w": "L[N:2 N:1]"})},
	{"ADD counts and unites", updated(attrs{"pk": S("a"), "sk": N("1"), "v": N("1"), "e": SS("a")}, "ADD v :two, e :b, fresh :two", attrs{":two": N("2"), ":b": SS("b", "a")},
		row{"pk": "S:a", "sk": "N:1", "v": "N:3", "e": "SS[a b]", "fresh": "N:2"})},
	{"DELETE takes members out, and the last one takes the set", updated(attrs{"pk": S("a"), "sk": N("1"), "e": SS("a", "b"), "f": NS("1")}, "DELETE e :b, f :one", attrs{":b": SS("b", "zz"), ":one": NS("1.0")},
		row{"pk": "S:a", "sk": "N:1", "e": "SS[a]"})},
	{"REMOVE takes attributes and elements", updated(attrs{"pk": S("a"), "sk": N("1"), "v": N("1"), "l": L(N("0"), N("1"), N("2")), "m": M(attrs{"x": N("1"), "y": N("2")})}, "REMOVE v, l[0], l[1], m.x, gone", nil,
		row{"pk": "S:a", "sk": "N:1", "l": "L[N:2]", "m": "M{y=N:2}"})},
	{"SET beyond a list's end appends", updated(with(key("a", "1"), "l", L(N("0"))), "SET l[7] = :v", attrs{":v": N("1")},
		row{"pk": "S:a", "sk": "N:1", "l": "L[N:0 N:1]"})},
	{"all four sections at once", updated(attrs{"pk": S("a"), "sk": N("1"), "v": N("1"), "e": SS("a", "b"), "w": S("x")}, "SET v = :two REMOVE w ADD u :two DELETE e :b", attrs{":two": N("2"), ":b": SS("b")},
		row{"pk": "S:a", "sk": "N:1", "v": "N:2", "u": "N:2", "e": "SS[a]"})},
	{"an update of nothing creates the item", func(t *testing.T, x *testTable) {
		got, err := x.update(t, key("a", "1"), "REMOVE v", nil)
		want(t, "", code(err))
		want(t, row{"pk": "S:a", "sk": "N:1"}, got)
	}},
	{"38 digits are exact", updated(with(key("a", "1"), "v", N("12345678901234567890123456789012345677")), "ADD v :one", attrs{":one": N("1")},
		row{"pk": "S:a", "sk": "N:1", "v": "N:12345678901234567890123456789012345678"})},
	{"tenths are exact", updated(with(key("a", "1"), "v", N("0.1")), "SET v = v + :v", attrs{":v": N("0.2")},
		row{"pk": "S:a", "sk": "N:1", "v": "N:0.3"})},
	{"what cannot be added is refused", func(t *testing.T, x *testTable) {
		x.put(t, attrs{"pk": S("a"), "sk": N("1"), "v": N("5"), "s": S("x")})
		for expression, values := range map[string]attrs{
			"SET v = v + :v": {":v": N("1e-38")}, "SET s = s + :v": {":v": N("1")}, "SET w = gone + :v": {":v": N("1")}, "ADD s :v": {":v": N("1")},
			"SET gone.x = :v": {":v": N("1")}, "SET v = v + :s": {":s": S("x")}, "ADD v :s": {":s": S("x")}, "SET v = :v, v = :v": {":v": N("1")}, "SET name = :v": {":v": N("1")},
		} {
			_, err := x.update(t, key("a", "1"), expression, values)
			refused(t, err, validation)
		}
	}},
	{"a key attribute cannot be updated", func(t *testing.T, x *testTable) {
		_, err := x.update(t, key("a", "1"), "SET sk = :v", attrs{":v": N("2")})
		refused(t, err, validation)
	}},
	{"ReturnValues in all its forms", func(t *testing.T, x *testTable) {
		got := map[types.ReturnValue]row{}
		for _, form := range []types.ReturnValue{"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"} {
			x.put(t, attrs{"pk": S("a"), "sk": N("1"), "v": N("1"), "w": N("1")})
			out, err := x.tables.UpdateItem(t.Context(), &sdk.UpdateItemInput{
				TableName: &x.name, Key: key("a", "1"), UpdateExpression: aws.String("SET v = :v, u = :v"),
				ExpressionAttributeValues: attrs{":v": N("2")}, ReturnValues: form,
			})
			want(t, "", code(err))
			got[form] = plain(out.Attributes)
		}
		want(t, map[types.ReturnValue]row{
			"NONE":        nil,
			"ALL_OLD":     {"pk": "S:a", "sk": "N:1", "v": "N:1", "w": "N:1"},
			"ALL_NEW":     {"pk": "S:a", "sk": "N:1", "v": "N:2", "w": "N:1", "u": "N:2"},
			"UPDATED_OLD": {"v": "N:1"},
			"UPDATED_NEW": {"v": "N:2", "u": "N:2"},
		}, got)
	}},
	{"an update beyond 400 KB is refused, one just below is not", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"))
		_, err := x.update(t, key("a", "1"), "SET v = :v", attrs{":v": S(strings.Repeat("x", 400*1024))})
		refused(t, err, validation)
		_, err = x.update(t, key("a", "1"), "SET v = :v", attrs{":v": S(strings.Repeat("x", 399*1024))})
		want(t, "", code(err))
	}},
}

var itemChecks = []check{
	{"every type comes back as it went in", func(t *testing.T, x *testTable) {
		x.put(t, attrs{
			"pk": S("a"), "sk": N("-1.50"), "b": B("\x00\xff\n"), "y": Bool(true), "z": Null(), "l": L(S(""), L(), M(attrs{})),
			"m": M(attrs{"x": N("100"), "quote\"": S("\\\n\u2028é")}), "ss": SS("b", "a"), "ns": NS("10", "9"),
			"bs": &types.AttributeValueMemberBS{Value: [][]byte{{2}, {1}}},
		})
		want(t, row{
			"pk": "S:a", "sk": "N:-1.5", "b": "B:00ff0a", "y": "BOOL:true", "z": "NULL", "l": "L[S: L[] M{}]",
			"m": "M{quote\"=S:\\\n\u2028é x=N:100}", "ss": "SS[a b]", "ns": "NS[10 9]", "bs": "BS[01 02]",
		}, x.get(t, key("a", "-1.5")))
	}},
	{"an item beyond 400 KB is refused, one just below is not", func(t *testing.T, x *testTable) {
		for size, name := range map[int]string{400 * 1024: validation, 399 * 1024: ""} {
			_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: with(key("a", "1"), "v", S(strings.Repeat("x", size)))})
			want(t, name, code(err))
		}
	}},
	{"the limit is 400 KiB to the byte", func(t *testing.T, x *testTable) {
		const fixed = len("pk") + len("a") + len("sk") + 2 + len("v")
		for over, name := range map[int]string{0: "", 1: validation} {
			_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: with(key("a", "1"), "v", S(strings.Repeat("x", 400*1024-fixed+over)))})
			want(t, name, code(err))
		}
	}},
	{"a put of 10 KiB consumes 11 units", func(t *testing.T, x *testTable) {
		out, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{
			TableName: &x.name, Item: with(key("a", "1"), "v", B(strings.Repeat("x", 10*1024))), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		want(t, "", code(err))
		want(t, 11.0, aws.ToFloat64(out.ConsumedCapacity.CapacityUnits))
	}},
	{"INDEXES splits the units of table and indexes", func(t *testing.T, x *testTable) {
		it := with(with(key("a", "1"), "g", S("g")), "n", N("1"))
		out, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: it, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
		want(t, "", code(err))
		got := map[string]float64{"total": aws.ToFloat64(out.ConsumedCapacity.CapacityUnits), "table": aws.ToFloat64(out.ConsumedCapacity.Table.CapacityUnits)}
		for name, c := range out.ConsumedCapacity.GlobalSecondaryIndexes {
			got[name] = aws.ToFloat64(c.CapacityUnits)
		}
		want(t, map[string]float64{"total": 4, "table": 1, "scores": 1, "some": 1, "every": 1}, got)
	}},
	{"reads consume half a unit, consistent ones a whole", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", S(strings.Repeat("x", 5000))))
		for consistent, units := range map[bool]float64{false: 1, true: 2} {
			out, err := x.tables.GetItem(t.Context(), &sdk.GetItemInput{
				TableName: &x.name, Key: key("a", "1"), ConsistentRead: &consistent, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
			})
			want(t, "", code(err))
			want(t, units, aws.ToFloat64(out.ConsumedCapacity.CapacityUnits))
		}
	}},
	{"a projection reads parts of an item", func(t *testing.T, x *testTable) {
		x.put(t, attrs{"pk": S("a"), "sk": N("1"), "v": N("1"), "l": L(N("0"), N("1"), N("2")), "m": M(attrs{"x": N("1"), "y": N("2")})})
		out, err := x.tables.GetItem(t.Context(), &sdk.GetItemInput{
			TableName: &x.name, Key: key("a", "1"), ProjectionExpression: aws.String("l[2], #m.x, l[0], gone"), ExpressionAttributeNames: map[string]string{"#m": "m"},
		})
		want(t, "", code(err))
		want(t, row{"l": "L[N:0 N:2]", "m": "M{x=N:1}"}, plain(out.Item))
	}},
	{"put and delete return the old item on request", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", N("1")))
		put, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: with(key("a", "1"), "v", N("2")), ReturnValues: types.ReturnValueAllOld})
		want(t, "", code(err))
		want(t, row{"pk": "S:a", "sk": "N:1", "v": "N:1"}, plain(put.Attributes))
		deleted, err := x.tables.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: &x.name, Key: key("a", "1"), ReturnValues: types.ReturnValueAllOld})
		want(t, "", code(err))
		want(t, row{"pk": "S:a", "sk": "N:1", "v": "N:2"}, plain(deleted.Attributes))
	}},
	{"put and delete refuse the update's return values", func(t *testing.T, x *testTable) {
		_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: key("a", "1"), ReturnValues: types.ReturnValueAllNew})
		refused(t, err, validation)
		_, err = x.tables.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: &x.name, Key: key("a", "1"), ReturnValues: types.ReturnValueUpdatedOld})
		refused(t, err, validation)
	}},
	{"a key that does not fit the schema is refused", func(t *testing.T, x *testTable) {
		for _, k := range []attrs{{"pk": S("a")}, {"pk": S("a"), "sk": S("1")}, {"pk": S(""), "sk": N("1")}, with(key("a", "1"), "v", N("1"))} {
			_, err := x.tables.GetItem(t.Context(), &sdk.GetItemInput{TableName: &x.name, Key: k})
			refused(t, err, validation)
			_, err = x.tables.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: &x.name, Key: k})
			refused(t, err, validation)
		}
	}},
	{"an item without a proper key is refused", func(t *testing.T, x *testTable) {
		for _, it := range []attrs{{"pk": S("a")}, {"pk": S("a"), "sk": S("1")}, {"pk": S(""), "sk": N("1")}, {"pk": N("1"), "sk": N("1")}} {
			_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: it})
			refused(t, err, validation)
		}
	}},
	{"values that cannot be are refused", func(t *testing.T, x *testTable) {
		for _, v := range []types.AttributeValue{
			N("abc"), N(""), N("1e126"), N("1e-131"), N(strings.Repeat("1", 39)), SS(), SS("a", "a"), NS("1", "1.0"),
			&types.AttributeValueMemberNULL{Value: false},
		} {
			_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: with(key("a", "1"), "v", v)})
			refused(t, err, validation)
		}
	}},
	{"nesting ends at 32 levels", func(t *testing.T, x *testTable) {
		nested := func(levels int) types.AttributeValue {
			v := N("1")
			for range levels {
				v = L(v)
			}
			return v
		}
		for levels, name := range map[int]string{31: "", 33: validation} {
			_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: with(key("a", "1"), "v", nested(levels))})
			want(t, name, code(err))
		}
	}},
	{"a table that is not there is not found", func(t *testing.T, x *testTable) {
		_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: aws.String("no-such-table"), Item: key("a", "1")})
		refused(t, err, "ResourceNotFoundException")
	}},
}
