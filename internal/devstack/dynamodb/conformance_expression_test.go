package dynamodb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
