package dynamodb_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
