package stack_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dakghar/internal/devstack/iam"
	"dakghar/internal/devstack/stack"
)

// recorder answers the calls of Create as the services do, and keeps them.
type recorder struct {
	mu     sync.Mutex
	calls  []string // "Operation body"
	exists string   // description of tables that exist already, "" none
	url    string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, operation, isJSON := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	if !isJSON {
		operation, body = req.Method+" "+req.URL.Path, nil
	}
	r.mu.Lock()
	r.calls = append(r.calls, strings.TrimSpace(operation+" "+string(body)))
	r.mu.Unlock()
	answer, status := r.answer(operation, body)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE([]byte(answer))))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func (r *recorder) answer(operation string, body []byte) (string, int) {
	var in struct{ TableName, QueueName, QueueUrl string }
	_ = json.Unmarshal(body, &in)
	name := in.QueueUrl[strings.LastIndexByte(in.QueueUrl, '/')+1:]
	switch operation {
	case "CreateTable":
		if r.exists != "" {
			return `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceInUseException","message":"exists"}`, 400
		}
		return `{}`, 200
	case "DescribeTable":
		if r.exists != "" {
			return r.exists, 200
		}
		return fmt.Sprintf(`{"Table":{"TableStatus":"ACTIVE","TableArn":"arn:table/%s","LatestStreamArn":"arn:table/%s/stream/1"}}`, in.TableName, in.TableName), 200
	case "DescribeTimeToLive":
		return `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`, 200
	case "CreateQueue":
		return fmt.Sprintf(`{"QueueUrl":"%s/000000000000/%s"}`, r.url, in.QueueName), 200
	case "GetQueueAttributes":
		return fmt.Sprintf(`{"Attributes":{"QueueArn":"arn:queue:%s"}}`, name), 200
	case "CreateKey":
		return `{"KeyMetadata":{"KeyId":"key-1","Arn":"arn:key/key-1"}}`, 200
	}
	return "", 200
}

func (r *recorder) count(operation string) (n int) {
	for _, c := range r.calls {
		if strings.HasPrefix(c, operation+" ") {
			n++
		}
	}
	return n
}

func configure(t *testing.T, r *recorder) aws.Config {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")}
}

func create(t *testing.T, r *recorder, path string, change func(*stack.Options)) (*stack.Stack, error) {
	t.Helper()
	cfg := configure(t, r)
	o := stack.Options{TemplatePath: path, Name: "test", Clients: stack.Clients{
		DynamoDB: dynamodb.NewFromConfig(cfg), SQS: sqs.NewFromConfig(cfg), KMS: kms.NewFromConfig(cfg),
		S3: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
	}}
	if change != nil {
		change(&o)
	}
	return stack.Create(t.Context(), o)
}

func TestATemplateBecomesAStack(t *testing.T) {
	r := &recorder{}
	got, err := create(t, r, "testdata/template.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	workURL, deadURL := r.url+"/000000000000/test-Work", r.url+"/000000000000/test-Dead"
	const alphaARN = "arn:aws:lambda:us-east-1:000000000000:function:AlphaFunction"
	want := &stack.Stack{
		Name: "test", Region: "us-east-1",
		Resources: map[string]stack.Resource{
			"AlphaFunction": {Type: "AWS::Serverless::Function", Ref: "AlphaFunction", Attributes: map[string]string{"Arn": alphaARN}},
			"AlphaRole":     {Type: "AWS::IAM::Role", Ref: "test-AlphaRole", Attributes: map[string]string{"Arn": "arn:aws:iam::000000000000:role/test-AlphaRole"}},
			"AlphaMayLog":   {Type: "AWS::IAM::Policy", Ref: "AlphaMayLog"},
			"Work":          {Type: "AWS::SQS::Queue", Ref: workURL, Attributes: map[string]string{"Arn": "arn:queue:test-Work", "QueueName": "test-Work", "QueueUrl": workURL}},
			"Dead":          {Type: "AWS::SQS::Queue", Ref: deadURL, Attributes: map[string]string{"Arn": "arn:queue:test-Dead", "QueueName": "test-Dead", "QueueUrl": deadURL}},
			"Rows":          {Type: "AWS::DynamoDB::Table", Ref: "test-Rows", Attributes: map[string]string{"Arn": "arn:table/test-Rows", "StreamArn": "arn:table/test-Rows/stream/1"}},
			"Blobs":         {Type: "AWS::S3::Bucket", Ref: "test-blobs", Attributes: map[string]string{"Arn": "arn:aws:s3:::test-blobs"}},
			"Seal":          {Type: "AWS::KMS::Key", Ref: "key-1", Attributes: map[string]string{"Arn": "arn:key/key-1", "KeyId": "key-1"}},
			"Door":          {Type: "AWS::ApiGatewayV2::Api", Ref: "Door", Attributes: map[string]string{"ApiId": "Door"}},
			"DoorStage":     {Type: "AWS::ApiGatewayV2::Stage", Ref: "DoorStage"},
			"DoorToAlpha":   {Type: "AWS::ApiGatewayV2::Integration", Ref: "DoorToAlpha"},
			"RouteA":        {Type: "AWS::ApiGatewayV2::Route", Ref: "RouteA"},
			"RouteB":        {Type: "AWS::ApiGatewayV2::Route", Ref: "RouteB"},
		},
		Outputs: map[string]string{"Table": "test-Rows", "Door": "https://Door.execute-api.us-east-1.amazonaws.com"},
		Functions: map[string]stack.Function{"AlphaFunction": {
			ARN: alphaARN, Alias: "live", Handler: "functions/alpha", MemoryMB: 512, Timeout: 5 * time.Second,
			Env: map[string]string{
				"TABLE": "test-Rows", "QUEUE_URL": workURL, "BUCKET": "test-blobs", "KEY": "arn:key/key-1", "PREFIX": "test/endpoint/",
				"MIXED": "info-arn:table/test-Rows-${Literal}-us-east-1", "JOINED": "a:test-Rows", "KEEP": "30", "ATTEMPTS": "8", "VERBOSE": "true",
			},
		}},
		Routes: []stack.Route{
			{Key: "POST /in/a/{id}", Function: "AlphaFunction", Timeout: 3 * time.Second, RatePerSecond: 50, Burst: 100},
			{Key: "POST /in/b/{id}", Function: "AlphaFunction", Timeout: 3 * time.Second},
		},
		Streams: []stack.StreamSource{{
			Function: "AlphaFunction", StreamARN: "arn:table/test-Rows/stream/1", BatchSize: 50, Window: time.Second, Parallelization: 10, Latest: true,
			Patterns: []string{`{"eventName":["INSERT"]}`}, ReportBatchItemFailures: true, Bisect: true, RetriesMax: 20, RecordAgeMax: time.Hour, OnFailureQueueARN: "arn:queue:test-Dead",
		}},
		Queues:        []stack.QueueSource{{Function: "AlphaFunction", QueueARN: "arn:queue:test-Work", BatchSize: 10, ConcurrencyMax: 7, ReportBatchItemFailures: true}},
		Schedules:     []stack.Schedule{{Function: "AlphaFunction", ARN: "arn:aws:scheduler:us-east-1:000000000000:schedule/default/test-AlphaFunctionMinute", Every: time.Minute, Input: `{"sweep":true}`}},
		TableARNs:     map[string]string{"test-Rows": "arn:table/test-Rows"},
		PartitionKeys: map[string]string{"test-Rows": "id", "test-Rows/due": "dk"},
		BucketKeys:    map[string]string{"test-blobs": "arn:key/key-1"},
	}
	wantGrants := []iam.Grant{
		{Sid: "Rows", Action: "dynamodb:GetItem", Resource: "arn:table/test-Rows"},
		{Sid: "Logs", Action: "logs:PutLogEvents", Resource: "AlphaLogs.Arn"},
	}
	if role := got.Roles["AlphaFunction"]; len(got.Roles) != 1 || role.Name != "AlphaRole" || !cmp.Equal(wantGrants, role.Policy.Grants()) {
		t.Errorf("roles %+v, want AlphaRole with %v", got.Roles, wantGrants)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(stack.Stack{}, "Roles")); diff != "" {
		t.Errorf("stack (-want +got):\n%s", diff)
	}
	wantCalls := []string{
		`CreateQueue {"QueueName":"test-Dead","Attributes":{"MessageRetentionPeriod":"1209600"}}`,
		`GetQueueAttributes {"QueueUrl":"` + deadURL + `","AttributeNames":["QueueArn"]}`,
		`CreateKey {"Description":"seals"}`,
		`CreateQueue {"QueueName":"test-Work","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:queue:test-Dead\",\"maxReceiveCount\":5}","VisibilityTimeout":"180"}}`,
		`GetQueueAttributes {"QueueUrl":"` + workURL + `","AttributeNames":["QueueArn"]}`,
		"PUT /test-blobs",
		`CreateTable {"TableName":"test-Rows","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"dk","AttributeType":"S"},{"AttributeName":"da","AttributeType":"N"}],"BillingMode":"PAY_PER_REQUEST",` +
			`"GlobalSecondaryIndexes":[{"IndexName":"due","KeySchema":[{"AttributeName":"dk","KeyType":"HASH"},{"AttributeName":"da","KeyType":"RANGE"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}}`,
		`DescribeTable {"TableName":"test-Rows"}`,
		`DescribeTimeToLive {"TableName":"test-Rows"}`,
		`UpdateTimeToLive {"TableName":"test-Rows","TimeToLiveSpecification":{"AttributeName":"x","Enabled":true}}`,
	}
	if diff := cmp.Diff(canonical(t, wantCalls), canonical(t, r.calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// canonical makes calls comparable whatever the order of their members.
func canonical(t *testing.T, calls []string) []string {
	t.Helper()
	var out []string
	for _, c := range calls {
		operation, body, _ := strings.Cut(c, " ")
		var members map[string]any
		if json.Unmarshal([]byte(body), &members) == nil {
			encoded, err := json.Marshal(members)
			if err != nil {
				t.Fatal(err)
			}
			body = string(encoded)
		}
		out = append(out, operation+" "+body)
	}
	return out
}

func TestParametersReplaceDefaultsAndSwitchConditions(t *testing.T) {
	got, err := create(t, &recorder{}, "testdata/template.yaml", func(o *stack.Options) {
		o.Parameters = map[string]string{"Reserve": "3", "Rate": "0.5"}
	})
	if err != nil {
		t.Fatal(err)
	}
	f := got.Functions["AlphaFunction"]
	if f.Reserved == nil || *f.Reserved != 3 || f.Env["GONE"] != "present" {
		t.Errorf("reserved %v, GONE %q", f.Reserved, f.Env["GONE"])
	}
	if _, ok := got.Resources["Conditional"]; !ok || got.Outputs["Absent"] == "" || got.Routes[0].RatePerSecond != 0.5 {
		t.Errorf("conditional resource %v, output %q, rate %v", ok, got.Outputs["Absent"], got.Routes[0].RatePerSecond)
	}
}

// There is one version here, so a function and its alias are the same.
func TestTheFrontDoorLeadsToAFunctionOrItsAlias(t *testing.T) {
	text, err := os.ReadFile("testdata/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const alias = "!Sub \"${AlphaFunction.Arn}:live\""
	if !strings.Contains(string(text), alias) {
		t.Fatal("the template names no alias")
	}
	path := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), alias, "!GetAtt AlphaFunction.Arn", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	byAlias, err := create(t, &recorder{}, "testdata/template.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	byName, err := create(t, &recorder{}, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byAlias.Routes, byName.Routes); diff != "" || len(byName.Routes) != 2 {
		t.Errorf("routes (-by the alias +by the name):\n%s", diff)
	}
}

func describe(index, view string) string {
	return fmt.Sprintf(`{"Table":{"TableStatus":"ACTIVE","TableArn":"arn:rows","LatestStreamArn":"arn:rows/stream/0","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"da","AttributeType":"N"},{"AttributeName":"dk","AttributeType":"S"}],
		"GlobalSecondaryIndexes":[{"IndexName":%q,"KeySchema":[{"AttributeName":"dk","KeyType":"HASH"},{"AttributeName":"da","KeyType":"RANGE"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}],
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":%q}}}`, index, view)
}

func TestATableThatExistsIsUsedOnlyIfItIsTheDeclaredOne(t *testing.T) {
	var log strings.Builder
	got, err := create(t, &recorder{exists: describe("due", "NEW_IMAGE")}, "testdata/template.yaml", func(o *stack.Options) {
		o.Logf = func(format string, args ...any) { fmt.Fprintf(&log, format, args...) }
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "used as they are: tables test-Rows; what an earlier run sealed stays sealed, as its key is gone"; log.String() != want {
		t.Errorf("log %q", &log)
	}
	if arn := got.Streams[0].StreamARN; arn != "arn:rows/stream/0" {
		t.Errorf("stream %s", arn)
	}
	for _, other := range []string{describe("other", "NEW_IMAGE"), describe("due", "KEYS_ONLY")} {
		if _, err := create(t, &recorder{exists: other}, "testdata/template.yaml", nil); err == nil || !strings.Contains(err.Error(), "exists with other keys, indexes or stream") {
			t.Errorf("error %v", err)
		}
	}
}

func TestTablesCanBeHadAlone(t *testing.T) {
	r := &recorder{}
	db := dynamodb.NewFromConfig(configure(t, r))
	if err := stack.CreateTables(t.Context(), db, "testdata/template.yaml", map[string]string{"Rows": "rows-of-a-test"}); err != nil {
		t.Fatal(err)
	}
	if len(r.calls) != 4 || !strings.Contains(r.calls[0], `"TableName":"rows-of-a-test"`) || r.count("UpdateTimeToLive") != 1 {
		t.Errorf("calls %q", r.calls)
	}
	err := stack.CreateTables(t.Context(), db, "testdata/template.yaml", map[string]string{"Work": "w"})
	if want := "template testdata/template.yaml declares no table Work"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestWhatTheLocalStackDoesNotKnowIsRefusedByName(t *testing.T) {
	function := func(rest string) string {
		return "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties:\n      Runtime: provided.al2023\n" + rest
	}
	const queue = "  Q: {Type: AWS::SQS::Queue}\n"
	for name, test := range map[string]struct{ template, want string }{
		"type":                 {"Resources: {T: {Type: AWS::SNS::Topic}}", "T: the local stack does not know resources of type AWS::SNS::Topic"},
		"property":             {"Resources: {Q: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true}}}", `unknown field "FifoQueue"`},
		"globals":              {"Globals: {Function: {Timeout: 3}}\nResources: {}", "globals are not read locally"},
		"parameter":            {"Parameters: {P: {Type: String}}\nResources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !Ref P}}}", "parameter P has no default"},
		"reference":            {"Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !Ref Nobody}}}", "Ref Nobody: no such parameter or resource"},
		"attribute's resource": {"Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !GetAtt Nobody.Arn}}}", "Fn::GetAtt Nobody.Arn: no such resource"},
		"attribute":            {"Resources:\n" + queue + "  R: {Type: AWS::SQS::Queue, Properties: {QueueName: !GetAtt Q.Colour}}", "Q of type AWS::SQS::Queue has no attribute Colour locally"},
		"condition":            {"Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !If [Nobody, a, b]}}}", "condition Nobody is not declared"},
		"import":               {"Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !ImportValue x}}}", "Fn::ImportValue is not imitated locally"},
		"circle":               {"Resources: {A: {Type: AWS::SQS::Queue, Properties: {QueueName: !Ref B}}, B: {Type: AWS::SQS::Queue, Properties: {QueueName: !Ref A}}}", "in a circle: A waits for B, B waits for A"},
		"use of a log group":   {function("      Environment: {Variables: {LOGS: !GetAtt L.Arn}}\n  L: {Type: AWS::Logs::LogGroup}"), "refers to L, which the local stack does not create"},
		"another's role":       {function("      Role: arn:aws:iam::111122223333:role/theirs"), "F: role arn:aws:iam::111122223333:role/theirs is none of this stack"},
		"another's policy":     {"Resources: {P: {Type: AWS::IAM::Policy, Properties: {Roles: [theirs], PolicyDocument: {Version: '2012-10-17', Statement: []}}}}", "role theirs is none of this stack"},
		"managed policies":     {"Resources: {R: {Type: AWS::IAM::Role, Properties: {ManagedPolicyArns: [arn:aws:iam::aws:policy/AdministratorAccess]}}}", "does not know what AWS's policies allow"},
		"condition operator": {
			"Resources: {R: {Type: AWS::IAM::Role, Properties: {Policies: [{PolicyName: Own, PolicyDocument: {Version: '2012-10-17', Statement: [{Effect: Allow, Action: 's3:*', Resource: '*', Condition: {IpAddress: {'aws:SourceIp': 10.0.0.0/8}}}]}}]}}}",
			"Own: policy: statement 1 (): condition operator IpAddress is not known here",
		},
		"runtime":                 {strings.Replace(function(""), "provided.al2023", "nodejs20.x", 1), `runtime "nodejs20.x"`},
		"event":                   {function("      Events: {E: {Type: S3}}"), "event E: the local stack does not know events of type S3"},
		"event's property":        {function("      Events: {E: {Type: SQS, Properties: {ProvisionedPollerConfig: {}}}}"), `unknown field "ProvisionedPollerConfig"`},
		"cron":                    {function("      Events: {E: {Type: ScheduleV2, Properties: {ScheduleExpression: 'cron(0 12 * * ? *)'}}}"), "knows rate(N minutes|hours|days) only"},
		"another's queue":         {function("      Events: {E: {Type: SQS, Properties: {Queue: arn:other}}}"), `Queue "arn:other" is no ARN of a queue of this stack`},
		"stream without a stream": {function("      Events: {E: {Type: DynamoDB, Properties: {StartingPosition: LATEST}}}"), "Stream is missing"},
		"starting position":       {function("      Events: {E: {Type: DynamoDB, Properties: {Stream: s, StartingPosition: AT_TIMESTAMP}}}"), `StartingPosition "AT_TIMESTAMP"`},
		"filter":                  {function("      Events: {E: {Type: DynamoDB, Properties: {Stream: s, StartingPosition: LATEST, FilterCriteria: {Filters: [{Pattern: '{}'}]}}}}"), "an empty object matches nothing"},
		"destination's type":      {function("      Events: {E: {Type: DynamoDB, Properties: {Stream: s, StartingPosition: LATEST, DestinationConfig: {OnFailure: {Destination: !GetAtt Q.Arn}}}}}\n" + queue), "on-failure destination without Type: SQS"},
		"young record age":        {function("      Events: {E: {Type: DynamoDB, Properties: {Stream: s, StartingPosition: LATEST, MaximumRecordAgeInSeconds: 30}}}"), "MaximumRecordAgeInSeconds 30 is under 60"},
		"response type":           {function("      Events: {E: {Type: DynamoDB, Properties: {Stream: s, StartingPosition: LATEST, FunctionResponseTypes: [Other]}}}"), `function response type "Other" is unknown`},
		"billing":                 {"Resources: {T: {Type: AWS::DynamoDB::Table, Properties: {BillingMode: PROVISIONED}}}", "knows PAY_PER_REQUEST only"},
		"stage":                   {"Resources: {S: {Type: AWS::ApiGatewayV2::Stage, Properties: {StageName: prod, AutoDeploy: true}}}", `StageName "prod"`},
		"settings of no route":    {"Resources: {S: {Type: AWS::ApiGatewayV2::Stage, Properties: {StageName: $default, AutoDeploy: true, RouteSettings: {GET /x: {ThrottlingRateLimit: 1}}}}}", `RouteSettings of "GET /x", which is no route`},
		"route to nowhere":        {"Resources: {R: {Type: AWS::ApiGatewayV2::Route, Properties: {RouteKey: GET /x, Target: integrations/y}}}", "is no integration of this stack"},
		"another's alias":         {function("      AutoPublishAlias: live\n  I: {Type: AWS::ApiGatewayV2::Integration, Properties: {IntegrationType: AWS_PROXY, PayloadFormatVersion: '2.0', IntegrationUri: !Sub '${F.Arn}:other'}}"), `function:F:other" is no function of this stack`},
		"payload format":          {"Resources: {I: {Type: AWS::ApiGatewayV2::Integration, Properties: {IntegrationType: AWS_PROXY, PayloadFormatVersion: '1.0'}}}", "knows AWS_PROXY with 2.0 only"},
		"not YAML":                {"a: [", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "template.yaml")
			if err := os.WriteFile(path, []byte(test.template), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := create(t, &recorder{}, path, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// The template that goes to AWS must also run here, whatever is added to it.
func TestTheProductsTemplateIsUnderstoodWhole(t *testing.T) {
	const path = "../../../template.yaml"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	got, err := create(t, r, path, func(o *stack.Options) { o.Parameters = map[string]string{"Canary": "true"} })
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{
		"AWS::DynamoDB::Table": r.count("CreateTable"), "AWS::SQS::Queue": r.count("CreateQueue"), "AWS::KMS::Key": r.count("CreateKey"),
		"AWS::S3::Bucket": r.count("PUT"), "AWS::Serverless::Function": len(got.Functions), "AWS::ApiGatewayV2::Route": len(got.Routes),
	}
	declared := map[string]int{}
	for kind := range made {
		declared[kind] = strings.Count(string(text), "Type: "+kind+"\n")
	}
	if diff := cmp.Diff(declared, made); diff != "" {
		t.Errorf("resources (-declared +made):\n%s", diff)
	}
	if without, err := create(t, &recorder{}, path, nil); err != nil || len(without.Functions) != len(got.Functions)-1 {
		t.Errorf("without canaries: %d functions, error %v", len(without.Functions), err)
	}
	if len(got.Streams) == 0 || len(got.Queues) == 0 || len(got.Schedules) == 0 {
		t.Errorf("%d streams, %d queues, %d schedules: want some of each", len(got.Streams), len(got.Queues), len(got.Schedules))
	}
}
