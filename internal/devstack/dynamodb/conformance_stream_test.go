package dynamodb_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

var tableChecks = []check{
	{"a table is described as it was created", func(t *testing.T, x *testTable) {
		out, err := x.tables.DescribeTable(t.Context(), &sdk.DescribeTableInput{TableName: &x.name})
		want(t, "", code(err))
		type index struct {
			Name, Projection string
			Included         []string
		}
		var indexes []index
		for _, g := range out.Table.GlobalSecondaryIndexes {
			indexes = append(indexes, index{*g.IndexName, string(g.Projection.ProjectionType), g.Projection.NonKeyAttributes})
		}
		slices.SortFunc(indexes, func(a, b index) int { return len(a.Projection) - len(b.Projection) })
		want(t, []index{{"every", "ALL", nil}, {"some", "INCLUDE", []string{"a"}}, {"scores", "KEYS_ONLY", nil}}, indexes)
		want(t, types.TableStatusActive, out.Table.TableStatus)
		want(t, types.StreamViewTypeNewAndOldImages, out.Table.StreamSpecification.StreamViewType)
		want(t, types.BillingModePayPerRequest, out.Table.BillingModeSummary.BillingMode)
		want(t, "pk HASH sk RANGE", *out.Table.KeySchema[0].AttributeName+" "+string(out.Table.KeySchema[0].KeyType)+" "+*out.Table.KeySchema[1].AttributeName+" "+string(out.Table.KeySchema[1].KeyType))
	}},
	{"a table is created once", func(t *testing.T, x *testTable) {
		_, err := x.tables.CreateTable(t.Context(), tableInput(x.name))
		refused(t, err, "ResourceInUseException")
	}},
	{"a deleted table is gone, and can come back empty", func(t *testing.T, x *testTable) {
		x.put(t, key("a", "1"))
		_, err := x.tables.DeleteTable(t.Context(), &sdk.DeleteTableInput{TableName: &x.name})
		want(t, "", code(err))
		_, err = x.tables.DescribeTable(t.Context(), &sdk.DescribeTableInput{TableName: &x.name})
		refused(t, err, "ResourceNotFoundException")
		_, err = x.tables.CreateTable(t.Context(), tableInput(x.name))
		want(t, "", code(err))
		want(t, row(nil), x.get(t, key("a", "1")))
	}},
	{"tables are listed in pages", func(t *testing.T, x *testTable) {
		in := &sdk.ListTablesInput{Limit: aws.Int32(1)}
		found := false
		for {
			out, err := x.tables.ListTables(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			found = found || slices.Contains(out.TableNames, x.name)
			if out.LastEvaluatedTableName == nil {
				break
			}
			in.ExclusiveStartTableName = out.LastEvaluatedTableName
		}
		want(t, true, found)
	}},
	{"a table that makes no sense is refused", func(t *testing.T, x *testTable) {
		spoilt := map[string]func(*sdk.CreateTableInput){
			"name":             func(in *sdk.CreateTableInput) { in.TableName = aws.String("ab") },
			"unused attribute": func(in *sdk.CreateTableInput) { in.GlobalSecondaryIndexes = nil },
			"undefined key":    func(in *sdk.CreateTableInput) { in.KeySchema[0].AttributeName = aws.String("zz") },
			"range first":      func(in *sdk.CreateTableInput) { slices.Reverse(in.KeySchema) },
			"two hashes":       func(in *sdk.CreateTableInput) { in.KeySchema[1].KeyType = types.KeyTypeHash },
			"empty indexes":    func(in *sdk.CreateTableInput) { in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{} },
			"index name":       func(in *sdk.CreateTableInput) { in.GlobalSecondaryIndexes[0].IndexName = aws.String("ab") },
			"index twice": func(in *sdk.CreateTableInput) {
				in.GlobalSecondaryIndexes[1].IndexName = in.GlobalSecondaryIndexes[0].IndexName
			},
			"keys with more": func(in *sdk.CreateTableInput) {
				in.GlobalSecondaryIndexes[0].Projection.NonKeyAttributes = []string{"a"}
			},
			"include nothing": func(in *sdk.CreateTableInput) { in.GlobalSecondaryIndexes[1].Projection.NonKeyAttributes = nil },
			"no view":         func(in *sdk.CreateTableInput) { in.StreamSpecification.StreamViewType = "" },
			"view but off":    func(in *sdk.CreateTableInput) { in.StreamSpecification.StreamEnabled = aws.Bool(false) },
		}
		for what, spoil := range spoilt {
			in := tableInput(uniqueName())
			spoil(in)
			if _, err := x.tables.CreateTable(t.Context(), in); code(err) != validation {
				t.Errorf("%s: got %v", what, err)
			}
		}
	}},
	{"time to live is switched on, described and switched off", func(t *testing.T, x *testTable) {
		describe := func() string {
			out, err := x.tables.DescribeTimeToLive(t.Context(), &sdk.DescribeTimeToLiveInput{TableName: &x.name})
			want(t, "", code(err))
			return string(out.TimeToLiveDescription.TimeToLiveStatus) + " " + aws.ToString(out.TimeToLiveDescription.AttributeName)
		}
		set := func(attribute string, on bool) string {
			_, err := x.tables.UpdateTimeToLive(t.Context(), &sdk.UpdateTimeToLiveInput{
				TableName: &x.name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: &on},
			})
			return code(err)
		}
		want(t, "DISABLED ", describe())
		want(t, validation, set("x", false))
		want(t, "", set("x", true))
		want(t, "ENABLED x", describe())
		want(t, validation, set("x", true))
		want(t, validation, set("y", true))
		want(t, "", set("x", false))
		want(t, "DISABLED ", describe())
	}},
	{"a call that does not exist is refused by name", func(t *testing.T, x *testTable) {
		_, err := x.tables.UpdateContinuousBackups(t.Context(), &sdk.UpdateContinuousBackupsInput{
			TableName: &x.name, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
		})
		refused(t, err, "UnknownOperationException")
	}},
}

// all reads the stream from its start.
func (x *testTable) all(t *testing.T) []streamtypes.Record {
	t.Helper()
	records, _ := x.records(t, x.iterator(t, streamtypes.ShardIteratorTypeTrimHorizon, nil), nil)
	return records
}

var streamChecks = []check{
	{"records come in the order of the writes, with both images", func(t *testing.T, x *testTable) {
		x.put(t, with(key("a", "1"), "v", N("1")), with(key("a", "1"), "v", N("2")))
		_, err := x.tables.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: &x.name, Key: key("a", "1")})
		want(t, "", code(err))
		first, second := row{"pk": "S:a", "sk": "N:1", "v": "N:1"}, row{"pk": "S:a", "sk": "N:1", "v": "N:2"}
		want(t, []change{{"INSERT", nil, first}, {"MODIFY", first, second}, {"REMOVE", second, nil}}, changes(x.all(t)))
	}},
	{"a transaction's records are there, in its order", func(t *testing.T, x *testTable) {
		x.put(t, key("c", "1"))
		err := x.transact(t, x.putAction(key("a", "1"), ""), x.deleteAction(key("c", "1"), ""), x.putAction(key("b", "1"), ""), x.checkAction(key("d", "1"), "attribute_not_exists(pk)"))
		want(t, "", code(err))
		a, b, c := row{"pk": "S:a", "sk": "N:1"}, row{"pk": "S:b", "sk": "N:1"}, row{"pk": "S:c", "sk": "N:1"}
		got := changes(x.all(t))[1:]
		slices.SortFunc(got, func(l, r change) int { return len(l.Event+l.New["pk"]) - len(r.Event+r.New["pk"]) })
		slices.SortStableFunc(got, func(l, r change) int { return slices.Compare([]string{l.New["pk"]}, []string{r.New["pk"]}) })
		want(t, []change{{"REMOVE", c, nil}, {"INSERT", nil, a}, {"INSERT", nil, b}}, got)
	}},
	{"a write that changes nothing is silent", func(t *testing.T, x *testTable) {
		it := with(key("a", "1"), "v", N("1"))
		x.put(t, it, it)
		_, err := x.update(t, key("a", "1"), "SET v = :v", attrs{":v": N("1")})
		want(t, "", code(err))
		_, err = x.tables.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: &x.name, Key: key("none", "1")})
		want(t, "", code(err))
		want(t, 1, len(x.all(t)))
	}},
	{"a cancelled transaction and a failed condition are silent", func(t *testing.T, x *testTable) {
		refused(t, x.transact(t, x.putAction(key("a", "1"), ""), x.checkAction(key("b", "1"), "attribute_exists(pk)")), cancelled)
		_, err := x.holds(t, key("a", "1"), "attribute_exists(pk)", nil)
		want(t, "", code(err))
		want(t, 0, len(x.all(t)))
	}},
	{"sequence numbers rise and event ids are unique", func(t *testing.T, x *testTable) {
		for i := range 30 {
			x.put(t, key("a", strconv.Itoa(i)))
		}
		records := x.all(t)
		ids := map[string]bool{}
		for i, r := range records {
			ids[*r.EventID] = true
			if i > 0 && *r.Dynamodb.SequenceNumber <= *records[i-1].Dynamodb.SequenceNumber {
				t.Errorf("%s comes after %s", *r.Dynamodb.SequenceNumber, *records[i-1].Dynamodb.SequenceNumber)
			}
		}
		want(t, 30, len(records))
		want(t, 30, len(ids))
	}},
	{"iterators begin at the horizon, the end, at and after a record", func(t *testing.T, x *testTable) {
		latest := x.iterator(t, streamtypes.ShardIteratorTypeLatest, nil)
		x.put(t, key("a", "1"), key("a", "2"), key("a", "3"))
		read := func(from *string) []string {
			records, _ := x.records(t, from, nil)
			var out []string
			for _, c := range changes(records) {
				out = append(out, c.New["sk"])
			}
			return out
		}
		second := x.all(t)[1].Dynamodb.SequenceNumber
		got := map[string][]string{
			"TRIM_HORIZON": read(x.iterator(t, streamtypes.ShardIteratorTypeTrimHorizon, nil)),
			"LATEST":       read(x.iterator(t, streamtypes.ShardIteratorTypeLatest, nil)),
			"LATEST first": read(latest),
			"AT":           read(x.iterator(t, streamtypes.ShardIteratorTypeAtSequenceNumber, second)),
			"AFTER":        read(x.iterator(t, streamtypes.ShardIteratorTypeAfterSequenceNumber, second)),
		}
		want(t, map[string][]string{
			"TRIM_HORIZON": {"N:1", "N:2", "N:3"}, "LATEST": nil, "LATEST first": {"N:1", "N:2", "N:3"}, "AT": {"N:2", "N:3"}, "AFTER": {"N:3"},
		}, got)
	}},
	{"a reader goes on where it stopped", func(t *testing.T, x *testTable) {
		from := x.iterator(t, streamtypes.ShardIteratorTypeTrimHorizon, nil)
		var got []string
		for i := range 7 {
			x.put(t, key("a", strconv.Itoa(i)))
			var records []streamtypes.Record
			if i%2 == 0 {
				records, from = x.records(t, from, aws.Int32(1))
			}
			for _, c := range changes(records) {
				got = append(got, c.New["sk"])
			}
		}
		records, _ := x.records(t, from, nil)
		for _, c := range changes(records) {
			got = append(got, c.New["sk"])
		}
		want(t, []string{"N:0", "N:1", "N:2", "N:3", "N:4", "N:5", "N:6"}, got)
	}},
	{"iterators that make no sense are refused", func(t *testing.T, x *testTable) {
		listed, err := x.streams.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: &x.name})
		want(t, "", code(err))
		described, err := x.streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: listed.Streams[0].StreamArn})
		want(t, "", code(err))
		shard := described.StreamDescription.Shards[0].ShardId
		ask := func(in dynamodbstreams.GetShardIteratorInput) string {
			in.StreamArn = listed.Streams[0].StreamArn
			_, err := x.streams.GetShardIterator(t.Context(), &in)
			return code(err)
		}
		want(t, validation, ask(dynamodbstreams.GetShardIteratorInput{ShardId: shard, ShardIteratorType: "AT_SEQUENCE_NUMBER"}))
		want(t, validation, ask(dynamodbstreams.GetShardIteratorInput{ShardId: shard, ShardIteratorType: "LATEST", SequenceNumber: aws.String("000000000000000000001")}))
		want(t, "ResourceNotFoundException", ask(dynamodbstreams.GetShardIteratorInput{ShardId: aws.String("shardId-00000001111111111111-aaaaaaaa"), ShardIteratorType: "LATEST"}))
		_, err = x.streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String("nonsense")})
		want(t, validation, code(err))
		_, err = x.streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/none/stream/none")})
		want(t, "ResourceNotFoundException", code(err))
	}},
	{"each view shows its images only", func(t *testing.T, x *testTable) {
		got := map[types.StreamViewType][2]bool{}
		for _, view := range []types.StreamViewType{types.StreamViewTypeKeysOnly, types.StreamViewTypeNewImage, types.StreamViewTypeOldImage} {
			other := &testTable{uniqueName(), x.tables, x.streams}
			in := tableInput(other.name)
			in.StreamSpecification.StreamViewType = view
			_, err := x.tables.CreateTable(t.Context(), in)
			want(t, "", code(err))
			other.put(t, with(key("a", "1"), "v", N("1")), with(key("a", "1"), "v", N("2")))
			second := changes(other.all(t))[1]
			got[view] = [2]bool{second.Old != nil, second.New != nil}
			_, err = x.tables.DeleteTable(context.WithoutCancel(t.Context()), &sdk.DeleteTableInput{TableName: &other.name})
			want(t, "", code(err))
		}
		want(t, map[types.StreamViewType][2]bool{"KEYS_ONLY": {false, false}, "NEW_IMAGE": {false, true}, "OLD_IMAGE": {true, false}}, got)
	}},
	{"a deleted table's stream ends", func(t *testing.T, x *testTable) {
		from := x.iterator(t, streamtypes.ShardIteratorTypeTrimHorizon, nil)
		x.put(t, key("a", "1"))
		_, err := x.tables.DeleteTable(t.Context(), &sdk.DeleteTableInput{TableName: &x.name})
		want(t, "", code(err))
		records, next := x.records(t, from, nil)
		want(t, 1, len(records))
		want(t, (*string)(nil), next)
	}},
}
