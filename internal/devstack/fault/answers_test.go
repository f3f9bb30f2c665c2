package fault_test

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/fault"
	"dakghar/internal/devstack/wiretest"
)

// Proves T4: the SDK reads a conflict as DynamoDB's own, with one reason a write,
// and only the transaction that touches the named table meets it.
func TestATransactionConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carriedOut := 0
		i := fault.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			carriedOut++
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("X-Amz-Crc32", "2745614147")
			_, _ = w.Write([]byte("{}"))
		}), nil)
		e := wiretest.Serve(t, i)
		c := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &e.URL, HTTPClient: e.Client, Credentials: creds, Retryer: aws.NopRetryer{}})
		mustAdd(t, i, fault.Fault{Service: "dynamodb", Operation: "TransactWriteItems", Table: "Business", Mode: fault.Conflict, Count: 1})
		write := func(tables ...string) error {
			var in dynamodb.TransactWriteItemsInput
			for _, table := range tables {
				in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String(table), Key: map[string]types.AttributeValue{}}})
			}
			_, err := c.TransactWriteItems(t.Context(), &in)
			return err
		}
		if err := write("x-Inbox", "x-Outbox"); err != nil {
			t.Errorf("a transaction on other tables: %v", err)
		}
		cancelled, ok := errors.AsType[*types.TransactionCanceledException](write("x-Inbox", "x-Business"))
		if !ok {
			t.Fatal("the transaction was not cancelled")
		}
		var codes []string
		for _, r := range cancelled.CancellationReasons {
			codes = append(codes, aws.ToString(r.Code))
		}
		if diff := cmp.Diff([]string{"TransactionConflict", "None"}, codes); diff != "" || carriedOut != 1 {
			t.Errorf("%d transactions were carried out, want 1; reasons (-want +got):\n%s", carriedOut, diff)
		}
	})
}

// Proves D5's other half: a batch that is taken in part says which entries were not.
func TestABatchIsTakenInPart(t *testing.T) {
	bubble(t, func(t *testing.T, i *fault.Injector, q *queue) {
		mustAdd(t, i, fault.Fault{Service: "sqs", Operation: "SendMessageBatch", Mode: fault.Part})
		var in []sqstypes.SendMessageBatchRequestEntry
		for n := range 5 {
			in = append(in, sqstypes.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(n)), MessageBody: aws.String("x")})
		}
		out, err := q.client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: q.url, Entries: in})
		if err != nil {
			t.Fatal(err)
		}
		var taken, failed []string
		for _, e := range out.Successful {
			taken = append(taken, aws.ToString(e.Id))
		}
		for _, e := range out.Failed {
			failed = append(failed, aws.ToString(e.Id))
		}
		if diff := cmp.Diff([][]string{{"0", "2", "4"}, {"1", "3"}}, [][]string{taken, failed}); diff != "" || q.sent() != "3" {
			t.Errorf("%s messages are there, want 3; taken and failed (-want +got):\n%s", q.sent(), diff)
		}
	})
}

// A reader of a stream loses records, or gets them again; an answer without
// records spends no fault.
func TestRecordsAreLostOrComeTwice(t *testing.T) {
	for mode, want := range map[fault.Mode][]string{
		fault.Lose:   {"@2", "@3", "c@4"},
		fault.Repeat: {"@2", "b@2", "b@3", "c@4"},
	} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Behind iterator 1 there is nothing yet, behind 2 is b, behind 3 is c.
				records := map[string]string{"1": "", "2": "b", "3": "c"}
				i := fault.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					at := strings.Trim(string(body[strings.IndexByte(string(body), ':')+1:]), `"}`)
					found := ""
					if records[at] != "" {
						found = `{"eventID":"` + records[at] + `"}`
					}
					next, _ := strconv.Atoi(at)
					_, _ = w.Write([]byte(`{"Records":[` + found + `],"NextShardIterator":"` + strconv.Itoa(next+1) + `"}`))
				}), nil)
				e := wiretest.Serve(t, i)
				c := dynamodbstreams.New(dynamodbstreams.Options{Region: "us-east-1", BaseEndpoint: &e.URL, HTTPClient: e.Client, Credentials: creds, Retryer: aws.NopRetryer{}})
				mustAdd(t, i, fault.Fault{Service: "dynamodbstreams", Operation: "GetRecords", Mode: mode, Count: 1})
				var got []string
				for at := "1"; at != "4"; {
					out, err := c.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: &at})
					if err != nil {
						t.Fatal(err)
					}
					at = aws.ToString(out.NextShardIterator)
					ids := ""
					for _, r := range out.Records {
						ids += aws.ToString(r.EventID)
					}
					got = append(got, ids+"@"+at)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("records and the next position (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Proves T4: a call arrives after its client has given up.
func TestALateCallIsCarriedOutWithoutItsClient(t *testing.T) {
	bubble(t, func(t *testing.T, i *fault.Injector, q *queue) {
		mustAdd(t, i, fault.Fault{Operation: "SendMessage", Mode: fault.Late, Delay: time.Minute, Count: 1})
		done := make(chan error, 1)
		go func() { done <- q.send(t.Context()) }()
		synctest.Wait()
		if got := q.sent(); got != "0" {
			t.Errorf("%s messages at once, want 0", got)
		}
		if err := <-done; err == nil {
			t.Error("a late call was answered")
		}
		if got := q.sent(); got != "1" {
			t.Errorf("%s messages a minute later, want 1", got)
		}
	})
}
