package dynamodb_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// indexed is an item with index attributes: group g, score n and an attribute a.
func indexed(pk, sk, g, n string) attrs {
	return attrs{"pk": S(pk), "sk": N(sk), "g": S(g), "n": N(n), "a": S("a" + sk), "b": S("b")}
}

// query is a Query on the table or one of its indexes.
func query(index, condition string, values attrs) sdk.QueryInput {
	return sdk.QueryInput{IndexName: optional(index), KeyConditionExpression: &condition, ExpressionAttributeValues: values}
}

func limited(in sdk.QueryInput, limit int32) sdk.QueryInput {
	in.Limit = &limit
	return in
}

func backward(in sdk.QueryInput) sdk.QueryInput {
	in.ScanIndexForward = aws.Bool(false)
	return in
}

func (x *testTable) queryError(t *testing.T, in sdk.QueryInput) string {
	t.Helper()
	in.TableName = &x.name
	_, err := x.tables.Query(t.Context(), &in)
	return code(err)
}

// rows is the concatenation of all pages.
func (x *testTable) rows(t *testing.T, in sdk.QueryInput) []row {
	t.Helper()
	return slices.Concat(x.pages(t, in)...)
}

var indexChecks = []check{
	{"a numeric sort key sorts as numbers, both ways", func(t *testing.T, x *testTable) {
		for i, n := range []string{"10", "9", "-2", "0.5", "100", "11", "-10"} {
			x.put(t, indexed("a", strconv.Itoa(i), "g", n))
		}
		ascending := []string{"N:-10", "N:-2", "N:0.5", "N:9", "N:10", "N:11", "N:100"}
		in := query("scores", "g = :g", attrs{":g": S("g")})
		want(t, ascending, one(x.rows(t, limited(in, 2)), "n"))
		slices.Reverse(ascending)
		want(t, ascending, one(x.rows(t, backward(limited(in, 3))), "n"))
	}},
	{"a range on the numeric sort key", func(t *testing.T, x *testTable) {
		for i := range 20 {
			x.put(t, indexed("a", strconv.Itoa(i), "g", strconv.Itoa(i)))
		}
		values := attrs{":g": S("g"), ":lo": N("9"), ":hi": N("11")}
		want(t, []string{"N:9", "N:10", "N:11"}, one(x.rows(t, query("scores", "g = :g AND n BETWEEN :lo AND :hi", values)), "n"))
		delete(values, ":hi")
		want(t, 9, len(x.rows(t, query("scores", "g = :g AND n < :lo", values))))
		want(t, 11, len(x.rows(t, query("scores", "g = :g AND n >= :lo", values))))
	}},
	{"pages over equal sort keys lose and repeat nothing", func(t *testing.T, x *testTable) {
		for i := range 7 {
			x.put(t, indexed("p"+strconv.Itoa(i%3), strconv.Itoa(i), "g", "5"))
		}
		for _, in := range []sdk.QueryInput{limited(query("scores", "g = :g", attrs{":g": S("g")}), 2), backward(limited(query("scores", "g = :g AND n = :n", attrs{":g": S("g"), ":n": N("5")}), 3))} {
			got := one(x.rows(t, in), "sk")
			slices.Sort(got)
			want(t, []string{"N:0", "N:1", "N:2", "N:3", "N:4", "N:5", "N:6"}, got)
		}
	}},
	{"an item without the index attributes is not in the index", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"), with(key("a", "2"), "g", S("g")), with(key("a", "3"), "n", N("1")), indexed("a", "4", "g", "1"))
		want(t, []string{"N:4"}, one(x.rows(t, query("scores", "g = :g", attrs{":g": S("g")})), "sk"))
		scan, err := x.tables.Scan(t.Context(), &sdk.ScanInput{TableName: &x.name, IndexName: aws.String("scores")})
		want(t, "", code(err))
		want(t, int32(1), scan.Count)
		want(t, int32(1), scan.ScannedCount)
	}},
	{"REMOVE takes an item out of the index, SET puts it back elsewhere", func(t *testing.T, x *testTable) {
		x.put(t, indexed("a", "1", "g", "1"))
		in := query("scores", "g = :g", attrs{":g": S("g")})
		_, err := x.update(t, key("a", "1"), "REMOVE n", nil)
		want(t, "", code(err))
		want(t, 0, len(x.rows(t, in)))
		_, err = x.update(t, key("a", "1"), "SET n = :n", attrs{":n": N("9")})
		want(t, "", code(err))
		want(t, []string{"N:9"}, one(x.rows(t, in), "n"))
	}},
	{"projections are KEYS_ONLY, INCLUDE and ALL", func(t *testing.T, x *testTable) {
		x.put(t, indexed("a", "1", "g", "2"))
		got := map[string][]row{}
		for _, name := range []string{"scores", "some", "every"} {
			got[name] = x.rows(t, query(name, "g = :g", attrs{":g": S("g")}))
		}
		want(t, map[string][]row{
			"scores": {{"pk": "S:a", "sk": "N:1", "g": "S:g", "n": "N:2"}},
			"some":   {{"pk": "S:a", "sk": "N:1", "g": "S:g", "a": "S:a1"}},
			"every":  {{"pk": "S:a", "sk": "N:1", "g": "S:g", "n": "N:2", "a": "S:a1", "b": "S:b"}},
		}, got)
	}},
	{"an index follows changes and deletion of its rows", func(t *testing.T, x *testTable) {
		x.put(t, indexed("a", "1", "g", "2"))
		_, err := x.update(t, key("a", "1"), "SET b = :b", attrs{":b": S("new")})
		want(t, "", code(err))
		in := query("every", "g = :g", attrs{":g": S("g")})
		want(t, []string{"S:new"}, one(x.rows(t, in), "b"))
		_, err = x.tables.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: &x.name, Key: key("a", "1")})
		want(t, "", code(err))
		want(t, 0, len(x.rows(t, in)))
	}},
	{"a consistent read of an index is refused", func(t *testing.T, x *testTable) {
		in := query("scores", "g = :g", attrs{":g": S("g")})
		in.ConsistentRead = aws.Bool(true)
		want(t, validation, x.queryError(t, in))
		_, err := x.tables.Scan(t.Context(), &sdk.ScanInput{TableName: &x.name, IndexName: aws.String("scores"), ConsistentRead: aws.Bool(true)})
		refused(t, err, validation)
	}},
	{"attributes outside the projection are refused", func(t *testing.T, x *testTable) {
		all := query("scores", "g = :g", attrs{":g": S("g")})
		all.Select = types.SelectAllAttributes
		want(t, validation, x.queryError(t, all))
		projected := query("scores", "g = :g", attrs{":g": S("g")})
		projected.ProjectionExpression = aws.String("a")
		want(t, validation, x.queryError(t, projected))
		filtered := query("scores", "g = :g", attrs{":g": S("g"), ":v": S("x")})
		filtered.FilterExpression = aws.String("a = :v")
		want(t, validation, x.queryError(t, filtered))
	}},
	{"an empty or wrongly typed index key is refused", func(t *testing.T, x *testTable) {
		for _, it := range []attrs{with(key("a", "1"), "g", S("")), with(key("a", "1"), "g", N("1")), with(key("a", "1"), "n", S("1"))} {
			_, err := x.tables.PutItem(t.Context(), &sdk.PutItemInput{TableName: &x.name, Item: it})
			refused(t, err, validation)
		}
		for expression, v := range map[string]types.AttributeValue{"SET g = :v": S(""), "SET n = :v": S("1")} {
			_, err := x.update(t, key("a", "1"), expression, attrs{":v": v})
			refused(t, err, validation)
		}
	}},
	{"an index that is not there is refused", func(t *testing.T, x *testTable) {
		want(t, validation, x.queryError(t, query("nothing", "g = :g", attrs{":g": S("g")})))
	}},
}

var queryChecks = []check{
	{"key conditions of every kind", func(t *testing.T, x *testTable) {
		for i := range 10 {
			x.put(t, key("a", strconv.Itoa(i)), key("b", strconv.Itoa(i)))
		}
		got := map[string]int{}
		tests := map[string]int{
			"pk = :p": 10, "pk = :p AND sk = :s": 1, "pk = :p AND sk < :s": 5, "pk = :p AND sk <= :s": 6, "pk = :p AND sk > :s": 4,
			"pk = :p AND sk >= :s": 5, "pk = :p AND sk BETWEEN :s AND :s": 1, "sk = :s AND pk = :p": 1, "(pk = :p) AND (sk = :s)": 1, ":s < sk AND :p = pk": 4,
		}
		for condition := range tests {
			values := attrs{":p": S("a")}
			if strings.Contains(condition, ":s") {
				values[":s"] = N("5")
			}
			got[condition] = len(x.rows(t, query("", condition, values)))
		}
		want(t, tests, got)
	}},
	{"a text or binary sort key sorts by bytes and takes begins_with", func(t *testing.T, x *testTable) {
		for kind, wrap := range map[types.ScalarAttributeType]func(string) types.AttributeValue{types.ScalarAttributeTypeS: S, types.ScalarAttributeTypeB: B} {
			other := &testTable{uniqueName(), x.tables, x.streams}
			in := tableInput(other.name)
			in.GlobalSecondaryIndexes, in.AttributeDefinitions = nil, in.AttributeDefinitions[:2]
			in.AttributeDefinitions[1].AttributeType = kind
			_, err := x.tables.CreateTable(t.Context(), in)
			want(t, "", code(err))
			sorted := []string{"\x00", "A", "a", "a\x00", "a\x00b", "a#1", "a#10", "a#2", "ab", "b", "é"}
			for _, sk := range []string{"b", "a#2", "a", "é", "a#10", "\x00", "ab", "a#1", "A", "a\x00b", "a\x00"} {
				other.put(t, attrs{"pk": S("p"), "sk": wrap(sk)})
			}
			for condition, expected := range map[string][]string{
				"pk = :p": sorted, "pk = :p AND begins_with(sk, :s)": sorted[2:9], "pk = :p AND sk > :s": sorted[3:], "pk = :p AND sk <= :s": sorted[:3],
				"pk = :p AND sk BETWEEN :s AND :t": sorted[2:7],
			} {
				values := attrs{":p": S("p")}
				for name, v := range (attrs{":s": wrap("a"), ":t": wrap("a#10")}) {
					if strings.Contains(condition, name) {
						values[name] = v
					}
				}
				var shown []string
				for _, sk := range expected {
					shown = append(shown, show(wrap(sk)))
				}
				want(t, shown, one(other.rows(t, limited(query("", condition, values), 3)), "sk"))
				slices.Reverse(shown)
				want(t, shown, one(other.rows(t, backward(limited(query("", condition, values), 4))), "sk"))
			}
			_, err = x.tables.DeleteTable(t.Context(), &sdk.DeleteTableInput{TableName: &other.name})
			want(t, "", code(err))
		}
	}},
	{"what is not a key condition is refused", func(t *testing.T, x *testTable) {
		for _, condition := range []string{
			"sk = :s", "pk = :p OR sk = :s", "NOT pk = :p", "pk < :p", "pk = :p AND sk <> :s", "pk = :p AND v = :s", "pk = :p AND sk IN (:s)",
			"pk = :p AND sk > :s AND sk < :s", "pk = :p AND pk = :p", "pk = sk", "pk = :p AND attribute_exists(sk)", "pk = :p AND size(sk) = :s", "pk.x = :p",
			"pk = :s", "pk = :p AND sk = :p", "begins_with(pk, :p)", "",
		} {
			values := attrs{}
			for name, v := range (attrs{":p": S("a"), ":s": N("5")}) {
				if strings.Contains(condition, name) {
					values[name] = v
				}
			}
			if len(values) == 0 {
				values = nil
			}
			if got := x.queryError(t, query("", condition, values)); got != validation {
				t.Errorf("%q: got %q", condition, got)
			}
		}
	}},
	{"a limit counts what is read, not what the filter lets through", func(t *testing.T, x *testTable) {
		for i := range 6 {
			x.put(t, with(key("a", strconv.Itoa(i)), "v", N(strconv.Itoa(i%2))))
		}
		in := query("", "pk = :p", attrs{":p": S("a"), ":v": N("1")})
		in.FilterExpression = aws.String("v = :v")
		in.TableName, in.Limit = &x.name, aws.Int32(3)
		out, err := x.tables.Query(t.Context(), &in)
		want(t, "", code(err))
		want(t, []string{"N:1"}, one(plainAll(out.Items), "sk"))
		want(t, int32(1), out.Count)
		want(t, int32(3), out.ScannedCount)
		want(t, row{"pk": "S:a", "sk": "N:2"}, plain(out.LastEvaluatedKey))
	}},
	{"a page that ends exactly at the limit still has a last key", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"), key("a", "2"))
		sizes := func(limit int32) []int {
			var out []int
			for _, page := range x.pages(t, limited(query("", "pk = :p", attrs{":p": S("a")}), limit)) {
				out = append(out, len(page))
			}
			return out
		}
		want(t, []int{2, 0}, sizes(2))
		want(t, []int{2}, sizes(3))
	}},
	{"a page ends at 1 MB", func(t *testing.T, x *testTable) {
		for i := range 12 {
			x.put(t, with(key("a", strconv.Itoa(i)), "v", S(strings.Repeat("x", 100*1024))))
		}
		pages := x.pages(t, query("", "pk = :p", attrs{":p": S("a")}))
		want(t, 2, len(pages))
		want(t, 12, len(slices.Concat(pages...)))
		if len(pages[0]) != 10 && len(pages[0]) != 11 {
			t.Errorf("the first page has %d items of 100 KiB", len(pages[0]))
		}
	}},
	{"a start key need not exist", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"), key("a", "2"), key("a", "3"))
		in := query("", "pk = :p", attrs{":p": S("a")})
		in.ExclusiveStartKey = key("a", "1.5")
		want(t, []string{"N:2", "N:3"}, one(x.rows(t, in), "sk"))
		want(t, []string{"N:1"}, one(x.rows(t, backward(in)), "sk"))
	}},
	{"a start key that cannot be is refused", func(t *testing.T, x *testTable) {
		for _, start := range []attrs{key("b", "1"), {"pk": S("a")}, {"pk": S("a"), "sk": S("1")}, with(key("a", "1"), "v", N("1"))} {
			in := query("", "pk = :p", attrs{":p": S("a")})
			in.ExclusiveStartKey = start
			want(t, validation, x.queryError(t, in))
		}
		in := query("scores", "g = :g", attrs{":g": S("g")})
		in.ExclusiveStartKey = key("a", "1")
		want(t, validation, x.queryError(t, in))
	}},
	{"a filter on a key attribute is refused", func(t *testing.T, x *testTable) {
		in := query("", "pk = :p", attrs{":p": S("a"), ":v": N("1")})
		in.FilterExpression = aws.String("sk = :v")
		want(t, validation, x.queryError(t, in))
	}},
	{"COUNT counts without items", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"), key("a", "2"))
		in := query("", "pk = :p", attrs{":p": S("a")})
		in.TableName, in.Select = &x.name, types.SelectCount
		out, err := x.tables.Query(t.Context(), &in)
		want(t, "", code(err))
		want(t, fmt.Sprint(int32(2), int32(2), 0), fmt.Sprint(out.Count, out.ScannedCount, len(out.Items)))
	}},
	{"Select and its relatives must agree", func(t *testing.T, x *testTable) {
		for choice, projected := range map[types.Select]*string{
			types.SelectSpecificAttributes: nil, types.SelectCount: aws.String("v"), types.SelectAllAttributes: aws.String("v"),
			types.SelectAllProjectedAttributes: nil, "BOGUS": nil,
		} {
			in := query("", "pk = :p", attrs{":p": S("a")})
			in.Select, in.ProjectionExpression = choice, projected
			if got := x.queryError(t, in); got != validation {
				t.Errorf("%s: got %q", choice, got)
			}
		}
	}},
	{"a query consumes its bytes rounded up once", func(t *testing.T, x *testTable) {
		for i := range 10 {
			x.put(t, with(key("a", strconv.Itoa(i)), "v", S(strings.Repeat("x", 1000))))
		}
		in := query("", "pk = :p", attrs{":p": S("a")})
		in.TableName, in.ReturnConsumedCapacity = &x.name, types.ReturnConsumedCapacityTotal
		out, err := x.tables.Query(t.Context(), &in)
		want(t, "", code(err))
		want(t, 1.5, aws.ToFloat64(out.ConsumedCapacity.CapacityUnits))
	}},
	{"a scan reads everything, page by page", func(t *testing.T, x *testTable) {
		for i := range 9 {
			x.put(t, key("p"+strconv.Itoa(i), "1"))
		}
		in := &sdk.ScanInput{TableName: &x.name, Limit: aws.Int32(4), ProjectionExpression: aws.String("pk")}
		want(t, 9, len(x.scanAll(t, in)))
	}},
	{"parallel segments cover the table once", func(t *testing.T, x *testTable) {
		var wanted []string
		for i := range 40 {
			x.put(t, key(fmt.Sprintf("p%02d", i), "1"))
			wanted = append(wanted, fmt.Sprintf("S:p%02d", i))
		}
		var got []string
		for segment := range int32(3) {
			in := &sdk.ScanInput{TableName: &x.name, Segment: &segment, TotalSegments: aws.Int32(3), Limit: aws.Int32(5)}
			found := one(x.scanAll(t, in), "pk")
			if len(found) == 40 {
				t.Errorf("segment %d holds the whole table", segment)
			}
			got = append(got, found...)
		}
		slices.Sort(got)
		want(t, wanted, got)
	}},
	{"segments out of range are refused", func(t *testing.T, x *testTable) {
		for _, in := range []sdk.ScanInput{{Segment: aws.Int32(0)}, {TotalSegments: aws.Int32(2)}, {Segment: aws.Int32(2), TotalSegments: aws.Int32(2)}, {Limit: aws.Int32(0)}} {
			in.TableName = &x.name
			_, err := x.tables.Scan(t.Context(), &in)
			refused(t, err, validation)
		}
	}},
	{"a scan may filter on key attributes", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"), key("a", "2"), key("b", "3"))
		in := &sdk.ScanInput{TableName: &x.name, FilterExpression: aws.String("sk > :v"), ExpressionAttributeValues: attrs{":v": N("1")}}
		want(t, 2, len(x.scanAll(t, in)))
	}},
}

func (x *testTable) scanAll(t *testing.T, in *sdk.ScanInput) []row {
	t.Helper()
	var out []row
	for {
		answer, err := x.tables.Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, plainAll(answer.Items)...)
		if answer.LastEvaluatedKey == nil {
			return out
		}
		in.ExclusiveStartKey = answer.LastEvaluatedKey
	}
}

func (x *testTable) batchWrite(t *testing.T, requests ...types.WriteRequest) error {
	t.Helper()
	_, err := x.tables.BatchWriteItem(t.Context(), &sdk.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{x.name: requests}})
	return err
}

func putRequest(it attrs) types.WriteRequest {
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: it}}
}

func deleteRequest(k attrs) types.WriteRequest {
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: k}}
}

var batchChecks = []check{
	{"25 writes happen, 26 are refused", func(t *testing.T, x *testTable) {
		requests := make([]types.WriteRequest, 26)
		for i := range requests {
			requests[i] = putRequest(key("a", strconv.Itoa(i)))
		}
		refused(t, x.batchWrite(t, requests...), validation)
		want(t, "", code(x.batchWrite(t, requests[:25]...)))
		want(t, 25, len(x.rows(t, query("", "pk = :p", attrs{":p": S("a")}))))
	}},
	{"puts and deletes mix", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"))
		want(t, "", code(x.batchWrite(t, putRequest(key("a", "2")), deleteRequest(key("a", "1")), deleteRequest(key("a", "9")))))
		want(t, []string{"N:2"}, one(x.rows(t, query("", "pk = :p", attrs{":p": S("a")})), "sk"))
	}},
	{"the same item twice is refused", func(t *testing.T, x *testTable) {
		refused(t, x.batchWrite(t, putRequest(key("a", "1")), deleteRequest(key("a", "1"))), validation)
	}},
	{"one bad item refuses the batch", func(t *testing.T, x *testTable) {
		refused(t, x.batchWrite(t, putRequest(key("a", "1")), putRequest(attrs{"pk": S("a"), "sk": S("2")})), validation)
		want(t, row(nil), x.get(t, key("a", "1")))
	}},
	{"an empty batch is refused", func(t *testing.T, x *testTable) {
		refused(t, x.batchWrite(t), validation)
	}},
	{"100 keys are read, 101 refused, missing ones left out", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "7"), key("a", "99"))
		keys := make([]map[string]types.AttributeValue, 101)
		for i := range keys {
			keys[i] = key("a", strconv.Itoa(i))
		}
		get := func(keys []map[string]types.AttributeValue) (*sdk.BatchGetItemOutput, error) {
			return x.tables.BatchGetItem(t.Context(), &sdk.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				x.name: {Keys: keys, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("sk")},
			}})
		}
		_, err := get(keys)
		refused(t, err, validation)
		out, err := get(keys[:100])
		want(t, "", code(err))
		found := one(plainAll(out.Responses[x.name]), "sk")
		slices.Sort(found)
		want(t, []string{"N:7", "N:99"}, found)
		want(t, 0, len(out.UnprocessedKeys))
	}},
	{"a key twice is refused", func(t *testing.T, x *testTable) {
		_, err := x.tables.BatchGetItem(t.Context(), &sdk.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			x.name: {Keys: []map[string]types.AttributeValue{key("a", "1"), key("a", "1")}},
		}})
		refused(t, err, validation)
	}},
	{"an answer ends at 16 MB and says what is left", func(t *testing.T, x *testTable) {
		var keys []map[string]types.AttributeValue
		for i := range 44 {
			k := key("a", strconv.Itoa(i))
			x.put(t, with(k, "v", S(strings.Repeat("x", 390*1024))))
			keys = append(keys, k)
		}
		in := &sdk.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{x.name: {Keys: keys}}}
		rounds, found := 0, map[string]bool{}
		for ; len(in.RequestItems) > 0; rounds++ {
			out, err := x.tables.BatchGetItem(t.Context(), in)
			want(t, "", code(err))
			for _, sk := range one(plainAll(out.Responses[x.name]), "sk") {
				found[sk] = true
			}
			in.RequestItems = out.UnprocessedKeys
		}
		want(t, "2 rounds, 44 items", fmt.Sprintf("%d rounds, %d items", rounds, len(found)))
	}},
}
