package guard_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/guard"
	"dakghar/internal/devstack/iam"
)

const sealing = "arn:aws:kms:us-east-1:000000000000:key/seal"

// policy is what the one function of these tests may do.
const policy = `{"Version":"2012-10-17","Statement":[
	{"Sid":"Rows","Effect":"Allow","Action":["dynamodb:GetItem","dynamodb:PutItem","dynamodb:BatchGetItem","dynamodb:Query"],
	 "Resource":"arn:aws:dynamodb:us-east-1:000000000000:table/T","Condition":{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":"endpoint#*"}}},
	{"Sid":"Due","Effect":"Allow","Action":"dynamodb:Query","Resource":"arn:aws:dynamodb:us-east-1:000000000000:table/T/index/due"},
	{"Sid":"Check","Effect":"Allow","Action":["dynamodb:ConditionCheckItem","dynamodb:UpdateItem","dynamodb:DeleteItem"],"Resource":"arn:aws:dynamodb:us-east-1:000000000000:table/U"},
	{"Sid":"Send","Effect":"Allow","Action":"sqs:SendMessage","Resource":"arn:aws:sqs:us-east-1:000000000000:work"},
	{"Sid":"Secrets","Effect":"Allow","Action":"secretsmanager:GetSecretValue","Resource":"arn:aws:secretsmanager:us-east-1:000000000000:secret:s/endpoint/*"},
	{"Sid":"Seal","Effect":"Allow","Action":"kms:GenerateDataKey","Resource":"` + sealing + `","Condition":{"StringEquals":{"kms:EncryptionContext:purpose":"body"}}},
	{"Sid":"Store","Effect":"Allow","Action":["kms:GenerateDataKey","kms:Decrypt"],"Resource":"` + sealing + `","Condition":{"StringEquals":{"kms:ViaService":"s3.us-east-1.amazonaws.com"}}},
	{"Sid":"Bodies","Effect":"Allow","Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::bodies/b/*"},
	{"Sid":"Open","Effect":"Allow","Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::plain/*"},
	{"Sid":"List","Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::plain"},
	{"Sid":"Bus","Effect":"Allow","Action":"events:PutEvents","Resource":"arn:aws:events:us-east-1:000000000000:event-bus/ours"}]}`

// world is a guard before services that find everything, but nothing in the
// buckets.
type world struct {
	handler http.Handler
	guard   *guard.Guard
	log     []string
	reached int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	p, err := iam.Parse([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	w.guard = guard.New(guard.Config{
		Account: "000000000000", Region: "us-east-1",
		Roles:         map[string]iam.Role{"WorkerFunction": {Name: "WorkerRole", Policy: p}},
		Tables:        map[string]string{"T": "arn:aws:dynamodb:us-east-1:000000000000:table/T", "Far": "arn:aws:dynamodb:ddblocal:000000000000:table/Far"},
		PartitionKeys: map[string]string{"Far": "id", "T": "pk", "T/due": "dk", "U": "id"},
		BucketKeys:    map[string]string{"bodies": sealing, "sealed": "arn:aws:kms:us-east-1:000000000000:key/other"},
		Logf:          func(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) },
	})
	w.handler = w.guard.Before(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.reached++
		if r.Method == http.MethodGet {
			http.Error(rw, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
			return
		}
		_, _ = io.Copy(rw, r.Body)
	}))
	return w
}

// call makes a call as somebody. What is "METHOD /path", or a target as the SDK
// has it.
func (w *world) call(who, what, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if method, path, ok := strings.Cut(what, " "); ok {
		r = httptest.NewRequest(method, path, strings.NewReader(body))
	} else {
		r.Header.Set("X-Amz-Target", what)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+who+"/20260301/us-east-1/any/aws4_request, SignedHeaders=host, Signature=0")
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// Proves D6: calls are read as AWS reads them, and judged part by part.
func TestCallsAreJudged(t *testing.T) {
	t.Parallel()
	const denied = "because no identity-based policy allows the "
	ddb := func(action, resource string) string {
		return "dynamodb:" + action + " on arn:aws:dynamodb:us-east-1:000000000000:table/" + resource
	}
	for name, tt := range map[string]struct{ what, body, want string }{
		"a row":                              {"DynamoDB_20120810.GetItem", `{"TableName":"T","Key":{"pk":{"S":"endpoint#a"},"sk":{"S":"x"}}}`, ""},
		"a row of a table by its ARN":        {"DynamoDB_20120810.GetItem", `{"TableName":"arn:aws:dynamodb:us-east-1:000000000000:table/T","Key":{"pk":{"S":"endpoint#a"}}}`, ""},
		"a row of another kind":              {"DynamoDB_20120810.GetItem", `{"TableName":"T","Key":{"pk":{"S":"audit#1"}}}`, ddb("GetItem", "T, key audit#…, ") + denied + "dynamodb:GetItem action"},
		"a row that is put":                  {"DynamoDB_20120810.PutItem", `{"TableName":"T","Item":{"pk":{"S":"endpoint#a"},"v":{"N":"1"}}}`, ""},
		"a row without its key":              {"DynamoDB_20120810.PutItem", `{"TableName":"T","Item":{"v":{"N":"1"}}}`, "dynamodb:PutItem on *, because the local stack cannot read it: an item without its partition key"},
		"a row of an unknown table":          {"DynamoDB_20120810.GetItem", `{"TableName":"V","Key":{"pk":{"S":"endpoint#a"}}}`, "dynamodb:GetItem on *, because the local stack cannot read it: table V is not the template's"},
		"a row of another DynamoDB's table":  {"DynamoDB_20120810.GetItem", `{"TableName":"Far","Key":{"id":{"S":"a"}}}`, "dynamodb:GetItem on arn:aws:dynamodb:ddblocal:000000000000:table/Far, " + denied + "dynamodb:GetItem action"},
		"no JSON":                            {"DynamoDB_20120810.GetItem", `{`, "dynamodb:GetItem on *, because the local stack cannot read it: unexpected end of JSON input"},
		"a batch":                            {"DynamoDB_20120810.BatchGetItem", `{"RequestItems":{"T":{"Keys":[{"pk":{"S":"endpoint#a"}},{"pk":{"S":"endpoint#b"}}]}}}`, ""},
		"a batch with one of another kind":   {"DynamoDB_20120810.BatchGetItem", `{"RequestItems":{"T":{"Keys":[{"pk":{"S":"endpoint#a"}},{"pk":{"S":"jobs"}}]}}}`, ddb("BatchGetItem", "T, key endpoint#…, ") + denied + "dynamodb:BatchGetItem action"},
		"a batch of writes":                  {"DynamoDB_20120810.BatchWriteItem", `{"RequestItems":{"U":[{"PutRequest":{"Item":{"id":{"S":"a"}}}},{"DeleteRequest":{"Key":{"id":{"S":"b"}}}}]}}`, ddb("BatchWriteItem", "U, ") + denied + "dynamodb:BatchWriteItem action"},
		"a query":                            {"DynamoDB_20120810.Query", `{"TableName":"T","KeyConditionExpression":"#n0 = :v0 AND begins_with(sk, :v1)","ExpressionAttributeNames":{"#n0":"pk"},"ExpressionAttributeValues":{":v0":{"S":"endpoint#a"},":v1":{"S":"x"}}}`, ""},
		"a query, its key written last":      {"DynamoDB_20120810.Query", `{"TableName":"T","KeyConditionExpression":"sk = :s and pk = :p","ExpressionAttributeValues":{":p":{"S":"jobs"},":s":{"S":"endpoint#a"}}}`, ddb("Query", "T, ") + denied + "dynamodb:Query action"},
		"a query whose key is not found":     {"DynamoDB_20120810.Query", `{"TableName":"T","KeyConditionExpression":"sk = :s","ExpressionAttributeValues":{":s":{"S":"endpoint#a"}}}`, "dynamodb:Query on *, because the local stack cannot read it: a query whose partition key is not found"},
		"an index":                           {"DynamoDB_20120810.Query", `{"TableName":"T","IndexName":"due","KeyConditionExpression":"dk = :v","ExpressionAttributeValues":{":v":{"N":"1"}}}`, ""},
		"a scan":                             {"DynamoDB_20120810.Scan", `{"TableName":"T"}`, ddb("Scan", "T, ") + denied + "dynamodb:Scan action"},
		"a transaction":                      {"DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"T","Item":{"pk":{"S":"endpoint#a"}}}},{"ConditionCheck":{"TableName":"U","Key":{"id":{"S":"1"}}}},{"Update":{"TableName":"U","Key":{"id":{"S":"1"}}}},{"Delete":{"TableName":"U","Key":{"id":{"S":"1"}}}}]}`, ""},
		"a transaction with a part too much": {"DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[{"ConditionCheck":{"TableName":"U","Key":{"id":{"S":"1"}}}},{"Put":{"TableName":"U","Item":{"id":{"S":"1"}}}}]}`, ddb("PutItem", "U, ") + denied + "dynamodb:PutItem action"},
		"a transaction of reads":             {"DynamoDB_20120810.TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"U","Key":{"id":{"S":"1"}}}}]}`, ddb("GetItem", "U, ") + denied + "dynamodb:GetItem action"},
		"a table":                            {"DynamoDB_20120810.DescribeTable", `{"TableName":"T"}`, ddb("DescribeTable", "T, ") + denied + "dynamodb:DescribeTable action"},
		"all tables":                         {"DynamoDB_20120810.ListTables", `{}`, "dynamodb:ListTables on *, " + denied + "dynamodb:ListTables action"},
		"a stream":                           {"DynamoDBStreams_20120810.DescribeStream", `{"StreamArn":"arn:s"}`, "dynamodb:DescribeStream on arn:s, " + denied + "dynamodb:DescribeStream action"},
		"a message":                          {"AmazonSQS.SendMessage", `{"QueueUrl":"http://127.0.0.1:8081/000000000000/work","MessageBody":"x"}`, ""},
		"messages":                           {"AmazonSQS.SendMessageBatch", `{"QueueUrl":"http://127.0.0.1:8081/000000000000/work","Entries":[]}`, ""},
		"a message to another queue":         {"AmazonSQS.SendMessage", `{"QueueUrl":"http://127.0.0.1:8081/000000000000/other"}`, "sqs:SendMessage on arn:aws:sqs:us-east-1:000000000000:other, " + denied + "sqs:SendMessage action"},
		"a secret":                           {"secretsmanager.GetSecretValue", `{"SecretId":"s/endpoint/demo"}`, ""},
		"a secret by its ARN":                {"secretsmanager.GetSecretValue", `{"SecretId":"arn:aws:secretsmanager:us-east-1:000000000000:secret:s/endpoint/demo-AbCdEf"}`, ""},
		"another's secret":                   {"secretsmanager.GetSecretValue", `{"SecretId":"s/api/demo"}`, "secretsmanager:GetSecretValue on arn:aws:secretsmanager:us-east-1:000000000000:secret:s/api/demo-000000, " + denied + "secretsmanager:GetSecretValue action"},
		"a data key":                         {"TrentService.GenerateDataKey", `{"KeyId":"seal","EncryptionContext":{"purpose":"body","tenant":"t"}}`, ""},
		"a data key for another purpose":     {"TrentService.GenerateDataKey", `{"KeyId":"` + sealing + `","EncryptionContext":{"purpose":"x"}}`, "kms:GenerateDataKey on " + sealing + ", " + denied + "kms:GenerateDataKey action"},
		"opening, which only S3 may":         {"TrentService.Decrypt", `{"KeyId":"` + sealing + `","EncryptionContext":{"purpose":"body"}}`, "kms:Decrypt on " + sealing + ", " + denied + "kms:Decrypt action"},
		"opening with a key not named":       {"TrentService.Decrypt", `{}`, "kms:Decrypt on *, because the local stack cannot read it: Decrypt names no key"},
		"events":                             {"AWSEvents.PutEvents", `{"Entries":[{"EventBusName":"ours"}]}`, ""},
		"events to another bus":              {"AWSEvents.PutEvents", `{"Entries":[{"EventBusName":"ours"},{"EventBusName":"arn:bus"}]}`, "events:PutEvents on arn:bus, " + denied + "events:PutEvents action"},
		"another service":                    {"Kinesis_20131202.PutRecord", `{}`, "Kinesis_20131202.PutRecord on *, because the local stack cannot read it: service Kinesis_20131202 is not known"},
		"an object is put":                   {"PUT /bodies/b/1", "x", ""},
		"an object beside the prefix":        {"PUT /bodies/c/1", "x", "s3:PutObject on arn:aws:s3:::bodies/c/1, " + denied + "s3:PutObject action"},
		"an object under another key":        {"PUT /sealed/b/1", "x", "s3:PutObject on arn:aws:s3:::sealed/b/1, " + denied + "s3:PutObject action"},
		"an object is deleted":               {"DELETE /bodies/b/1", "", "s3:DeleteObject on arn:aws:s3:::bodies/b/1, " + denied + "s3:DeleteObject action"},
		"a bucket":                           {"PUT /new", "", "s3:CreateBucket on *, because the local stack cannot read it: no PUT of S3 is known that functions make"},
		"a function":                         {"POST /2015-03-31/functions/OtherFunction/invocations", "{}", "lambda:InvokeFunction on arn:aws:lambda:us-east-1:000000000000:function:OtherFunction, " + denied + "lambda:InvokeFunction action"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			answer := w.call("WorkerFunction", tt.what, tt.body)
			var want []string
			wantStatus, wantReached := http.StatusOK, 1
			if tt.want != "" {
				want, wantReached, wantStatus = []string{"[WorkerFunction] DENIED WorkerRole: " + tt.want}, 0, http.StatusBadRequest
				if slices.Contains([]string{"sqs", "s3", "lambda"}, strings.SplitN(tt.want, ":", 2)[0]) {
					wantStatus = http.StatusForbidden
				}
			}
			if diff := cmp.Diff(want, w.log); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if answer.Code != wantStatus || w.reached != wantReached {
				t.Errorf("status %d, %d calls reached the services; want %d, %d", answer.Code, w.reached, wantStatus, wantReached)
			}
			if tt.want == "" && answer.Body.String() != tt.body {
				t.Errorf("the service read %q, want %q", answer.Body, tt.body)
			}
		})
	}
}

// Whoever is no function is not restricted.
func TestTheOperatorIsNotRestricted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, who := range []string{"local", "", "AKIAEXAMPLE"} {
		if answer := w.call(who, "DynamoDB_20120810.Scan", `{"TableName":"T"}`); answer.Code != http.StatusOK {
			t.Errorf("%q is answered %d", who, answer.Code)
		}
	}
	if len(w.log) != 0 {
		t.Errorf("log: %q", w.log)
	}
}

// A denial reads as its service's own.
func TestDenialsAreAWSs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := w.call("WorkerFunction", "AmazonSQS.SendMessage", `{"QueueUrl":"http://h/000000000000/other"}`)
	var got map[string]string
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	const said = "User: arn:aws:sts::000000000000:assumed-role/WorkerRole/WorkerFunction is not authorized to perform: sqs:SendMessage on resource: arn:aws:sqs:us-east-1:000000000000:other because no identity-based policy allows the sqs:SendMessage action"
	want := map[string]string{"__type": "com.amazon.coral.service#AccessDeniedException", "message": said, "Message": said}
	if diff := cmp.Diff(want, got); diff != "" || answer.Code != http.StatusForbidden {
		t.Errorf("status %d, answer (-want +got):\n%s", answer.Code, diff)
	}
	answer = w.call("WorkerFunction", "GET /other/key", "")
	const wantXML = "<Error><Code>AccessDenied</Code><Message>User: arn:aws:sts::000000000000:assumed-role/WorkerRole/WorkerFunction is not authorized to perform: s3:GetObject on resource: arn:aws:s3:::other/key because no identity-based policy allows the s3:GetObject action</Message></Error>"
	if answer.Code != http.StatusForbidden || answer.Body.String() != wantXML {
		t.Errorf("status %d, %s; want 403, %s", answer.Code, answer.Body, wantXML)
	}
}

// S3 tells that an object is not there only to whoever may list its bucket.
func TestAbsenceIsToldToThoseWhoMayList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if answer := w.call("WorkerFunction", "GET /plain/gone", ""); answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "NoSuchKey") {
		t.Errorf("with s3:ListBucket: %d %s", answer.Code, answer.Body)
	}
	answer := w.call("WorkerFunction", "GET /bodies/b/gone", "")
	if want := "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"; answer.Code != http.StatusForbidden || answer.Body.String() != want {
		t.Errorf("without it: %d %s", answer.Code, answer.Body)
	}
	want := []string{"[WorkerFunction] DENIED WorkerRole: the object is not there, and that may not be told: s3:ListBucket on arn:aws:s3:::bodies, because no identity-based policy allows the s3:ListBucket action"}
	if diff := cmp.Diff(want, w.log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// Used tells exactly which grants were needed.
func TestUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call("WorkerFunction", "PUT /bodies/b/1", "x")
	w.call("WorkerFunction", "DynamoDB_20120810.Scan", `{"TableName":"T"}`)
	w.call("local", "AmazonSQS.SendMessage", `{"QueueUrl":"http://h/000000000000/work"}`)
	const through = "kms:viaservice StringEquals s3.us-east-1.amazonaws.com"
	want := map[iam.Grant]bool{
		{Sid: "Bodies", Action: "s3:PutObject", Resource: "arn:aws:s3:::bodies/b/*"}:  true,
		{Sid: "Store", Action: "kms:GenerateDataKey", Resource: sealing, If: through}: true,
		{Sid: "Store", Action: "kms:Decrypt", Resource: sealing, If: through}:         true,
	}
	if diff := cmp.Diff(want, w.guard.Used("WorkerRole")); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
}
