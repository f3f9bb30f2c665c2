package devstack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/dynamodb"
	"dakghar/internal/devstack/fault"
	"dakghar/internal/devstack/lambda"
	"dakghar/internal/devstack/testdata/pipeline"
)

var buildDir string // <LogicalId>/bootstrap of the test's functions, built once

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "devstack")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	buildDir = dir
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "building the functions:", err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	binary := filepath.Join(dir, "bootstrap")
	cmd := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", binary, "./testdata/bootstrap")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	for _, id := range []string{"FrontFunction", "RelayFunction", "WorkerFunction", "TickerFunction"} {
		if err := os.Mkdir(filepath.Join(dir, id), 0o755); err != nil {
			return err
		}
		if err := os.Link(binary, filepath.Join(dir, id, "bootstrap")); err != nil {
			return err
		}
	}
	return nil
}

type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func inProcess() map[string]Factory {
	out := map[string]Factory{}
	for _, id := range []string{"FrontFunction", "RelayFunction", "WorkerFunction", "TickerFunction"} {
		out[id] = func(_ context.Context, getenv func(string) string) (lambda.Handler, error) {
			h, err := pipeline.New(id, getenv)
			return lambda.Handler(h), err
		}
	}
	return out
}

func start(t *testing.T, change func(*Options)) (*Stack, *output) {
	t.Helper()
	log := &output{}
	o := Options{TemplatePath: "testdata/template.yaml", BuildDir: buildDir, HTTPAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", StackName: "test", Log: log}
	if change != nil {
		change(&o)
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	t.Cleanup(s.Stop)
	return s, log
}

func post(t *testing.T, url string) (status int, body string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(read)
}

// done waits until the worker has put a row, told by the table's stream.
func done(t *testing.T, s *Stack, changed func(string) <-chan struct{}, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := awsdynamodb.NewFromConfig(s.Config())
	table := s.Declared().Outputs["DoneTable"]
	for {
		next := changed(table)
		out, err := db.GetItem(ctx, &awsdynamodb.GetItemInput{
			TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}, ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			t.Fatal(err)
		}
		if out.Item != nil {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			t.Fatalf("%s is not done", id)
		}
	}
}

func get(t *testing.T, url string, into any) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}

// One request goes through everything: the front door, a function, a table, its
// stream, a function, a queue, a function, another table.
func TestARequestPassesTheWholePipelineOfRealProcesses(t *testing.T) {
	s, log := start(t, nil)
	if !strings.HasSuffix(log.String(), "ready "+s.FrontDoorURL()+"\n") {
		t.Errorf("log %q, want it to end in ready", log)
	}
	for _, id := range []string{"one", "two", "three"} {
		if status, body := post(t, s.FrontDoorURL()+"/rows/"+id); status != 202 || body != id {
			t.Errorf("%s: %d %s", id, status, body)
		}
	}
	for _, id := range []string{"one", "two", "three", "tick"} {
		done(t, s, s.services.changed, id)
	}
	var functions map[string]FunctionState
	get(t, s.AWSURL()+"/_dakghar/functions", &functions)
	var pids []int
	for id, f := range functions {
		if f.InProcess || len(f.Processes) == 0 {
			t.Errorf("%s: %+v", id, f)
		}
		for _, p := range f.Processes {
			pids = append(pids, p.PID)
		}
	}
	s.Stop()
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d lives on: %v", pid, err)
		}
	}
	if _, err := http.Get(s.FrontDoorURL()); err == nil {
		t.Error("the front door still answers")
	}
}

func TestARequestPassesTheWholePipelineInProcess(t *testing.T) {
	s, _ := start(t, func(o *Options) { o.InProcess, o.BuildDir = inProcess(), "nowhere" })
	if status, _ := post(t, s.FrontDoorURL()+"/rows/one"); status != 202 {
		t.Errorf("status %d", status)
	}
	done(t, s, s.services.changed, "one")
	var functions map[string]FunctionState
	get(t, s.AWSURL()+"/_dakghar/functions", &functions)
	if diff := cmp.Diff(FunctionState{InProcess: true, Processes: []lambda.Process{}}, functions["FrontFunction"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnotherDynamoDBCanStandBehindTheSameAddress(t *testing.T) {
	other := dynamodb.New(dynamodb.Config{})
	server := httptest.NewServer(other)
	t.Cleanup(server.Close)
	s, _ := start(t, func(o *Options) { o.DynamoDBEndpoint, o.InProcess = server.URL, inProcess() })
	if status, _ := post(t, s.FrontDoorURL()+"/rows/one"); status != 202 {
		t.Errorf("status %d", status)
	}
	done(t, s, other.Changed, "one")
	_, err := Start(t.Context(), Options{TemplatePath: "testdata/template.yaml", HTTPAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", DynamoDBEndpoint: "8000"})
	if want := `DynamoDB endpoint "8000" is no URL such as http://127.0.0.1:8000`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Streams are positioned before Start returns, so whether anybody reads them shows at once.
func TestWithoutTriggersRequestsAreServedAndNothingElseIsRead(t *testing.T) {
	for _, none := range []bool{false, true} {
		other, log := dynamodb.New(dynamodb.Config{}), &output{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(log, r.Header.Get("X-Amz-Target"))
			other.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		s, told := start(t, func(o *Options) { o.DynamoDBEndpoint, o.InProcess, o.NoTriggers = server.URL, inProcess(), none })
		if status, _ := post(t, s.FrontDoorURL()+"/rows/one"); status != 202 {
			t.Errorf("status %d", status)
		}
		if read := strings.Contains(log.String(), "DynamoDBStreams_20120810.GetShardIterator"); read == none {
			t.Errorf("without triggers %v: a stream was read %v\n%s", none, read, log)
		}
		if said := strings.Contains(told.String(), "streams, queues and schedules call no function\n"); said != none {
			t.Errorf("without triggers %v, it said so %v", none, said)
		}
	}
}

// DynamoDB Local keeps tables apart by access key, and each function has its own.
func TestAnotherDynamoDBSeesOneAccessKey(t *testing.T) {
	for given, want := range map[string]string{
		"AWS4-HMAC-SHA256 Credential=IngressFunction/20260301/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0": "AWS4-HMAC-SHA256 Credential=local/20260301/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
		"AWS4-HMAC-SHA256 Credential=": "AWS4-HMAC-SHA256 Credential=",
		"Bearer x":                     "Bearer x",
	} {
		h := http.Header{"Authorization": {given}}
		if shareTables(h); h.Get("Authorization") != want {
			t.Errorf("%q becomes %q, want %q", given, h.Get("Authorization"), want)
		}
	}
}

// Proves T4's ground: killed sandboxes are replaced, and the pipeline goes on.
func TestKilledFunctionsComeBack(t *testing.T) {
	s, _ := start(t, nil)
	post(t, s.FrontDoorURL()+"/rows/one")
	done(t, s, s.services.changed, "one")
	for _, id := range []string{"FrontFunction", "RelayFunction", "WorkerFunction"} {
		res, err := http.Post(s.AWSURL()+"/_dakghar/kill", "application/json", strings.NewReader(fmt.Sprintf(`{"function":%q}`, id)))
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Killed int }
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.Killed < 1 {
			t.Errorf("%s: killed %d, %v", id, answer.Killed, err)
		}
		res.Body.Close()
	}
	if status, _ := post(t, s.FrontDoorURL()+"/rows/two"); status != 202 {
		t.Errorf("status %d", status)
	}
	done(t, s, s.services.changed, "two")
	for _, refused := range []struct {
		contentType, body string
		want              int
	}{
		{"application/json", `{"function":"Nobody"}`, 404},
		{"application/json", `{"functions":"x"}`, 400},
		{"text/plain", `{"function":"FrontFunction"}`, 400},
	} {
		res, err := http.Post(s.AWSURL()+"/_dakghar/kill", refused.contentType, strings.NewReader(refused.body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != refused.want {
			t.Errorf("%+v: %d", refused, res.StatusCode)
		}
	}
}

// Proves A4 for the local stack: a queue that fails for a while is made good later.
func TestFaultsCanBePutBeforeTheServices(t *testing.T) {
	s, _ := start(t, func(o *Options) { o.InProcess = inProcess() })
	res, err := http.Post(s.AWSURL()+fault.Path, "application/json", strings.NewReader(`{"service":"sqs","operation":"SendMessage","mode":"fail","count":1}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("status %d", res.StatusCode)
	}
	if status, _ := post(t, s.FrontDoorURL()+"/rows/one"); status != 202 {
		t.Errorf("status %d", status)
	}
	done(t, s, s.services.changed, "one")
	if got := s.Faults().List(); len(got) != 1 || got[0].Hit != 1 {
		t.Errorf("faults %+v, want one that hit once", got)
	}
}

func TestAPoisonRecordEndsInTheDestinationQueue(t *testing.T) {
	s, _ := start(t, func(o *Options) { o.InProcess = inProcess() })
	post(t, s.FrontDoorURL()+"/rows/poison-1")
	url := s.Declared().Resources["GivenUp"].Ref
	out, err := awssqs.NewFromConfig(s.Config()).ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Messages) != 1 {
		t.Fatalf("%d messages, want 1", len(out.Messages))
	}
	var doc struct {
		RequestContext struct {
			FunctionARN string `json:"functionArn"`
			Condition   string `json:"condition"`
		} `json:"requestContext"`
		Batch struct {
			BatchSize int `json:"batchSize"`
		} `json:"DDBStreamBatchInfo"`
	}
	if err := json.Unmarshal([]byte(*out.Messages[0].Body), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.RequestContext.Condition != "RetryAttemptsExhausted" || doc.Batch.BatchSize != 1 || doc.RequestContext.FunctionARN != "arn:aws:lambda:us-east-1:000000000000:function:RelayFunction:$LATEST" {
		t.Errorf("document %+v", doc)
	}
}

func TestAFunctionCanBeGivenFurtherVariables(t *testing.T) {
	got := make(chan string, 1)
	start(t, func(o *Options) {
		o.InProcess = inProcess()
		o.FunctionEnv = map[string]map[string]string{"RelayFunction": {"CRASH": "before:x"}}
		o.InProcess["RelayFunction"] = func(_ context.Context, getenv func(string) string) (lambda.Handler, error) {
			got <- getenv("CRASH") + " " + getenv("AWS_REGION")
			return func(context.Context, []byte) ([]byte, error) { return nil, nil }, nil
		}
	})
	if env := <-got; env != "before:x us-east-1" {
		t.Errorf("environment %q", env)
	}
}

// A process is known by its credentials, and held to its role in the template.
// Proves D6.
func TestAFunctionIsHeldToItsRole(t *testing.T) {
	text, err := os.ReadFile("testdata/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const function = "  FrontFunction:\n    Type: AWS::Serverless::Function\n    Properties:\n"
	if strings.Count(string(text), function) != 1 {
		t.Fatal("the front function is not where it was")
	}
	path := filepath.Join(t.TempDir(), "template.yaml")
	restricted := strings.Replace(string(text), function, `  FrontRole:
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyName: Front
          PolicyDocument:
            Version: "2012-10-17"
            Statement:
              - {Effect: Allow, Action: ["dynamodb:PutItem"], Resource: !GetAtt Rows.Arn, Condition: {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": "good#*"}}}
`+function+"      Role: !GetAtt FrontRole.Arn\n", 1)
	if err := os.WriteFile(path, []byte(restricted), 0o600); err != nil {
		t.Fatal(err)
	}
	processes := &output{}
	s, log := start(t, func(o *Options) { o.TemplatePath, o.FunctionLog = path, processes })
	if status, _ := post(t, s.FrontDoorURL()+"/rows/good%23one"); status != 202 {
		t.Errorf("a row that it may put: %d", status)
	}
	if len(s.Denied()) != 0 {
		t.Errorf("denied: %q", s.Denied())
	}
	if status, _ := post(t, s.FrontDoorURL()+"/rows/bad%23one"); status != 500 {
		t.Errorf("a row that it may not put: %d", status)
	}
	want := []string{"[FrontFunction] DENIED FrontRole: dynamodb:PutItem on " + s.Declared().Resources["Rows"].Attributes["Arn"] +
		", key bad#…, because no identity-based policy allows the dynamodb:PutItem action"}
	if diff := cmp.Diff(want, s.Denied()); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	if !strings.Contains(log.String(), want[0]+"\n") || !strings.Contains(log.String(), "[WorkerFunction] has no Role in the template: whatever it calls is allowed here\n") {
		t.Errorf("log %q, want the denial and who has no role", log)
	}
	const said = "api error AccessDeniedException"
	if !strings.Contains(processes.String(), "[FrontFunction] ") || !strings.Contains(processes.String(), said) || strings.Contains(log.String(), said) {
		t.Errorf("the functions' own log %q, the stack's %q; want what the process wrote in its own alone", processes, log)
	}
}

func TestTheStackDescribesItself(t *testing.T) {
	s, _ := start(t, func(o *Options) { o.InProcess = inProcess() })
	var got Description
	get(t, s.AWSURL()+"/_dakghar/stack", &got)
	if got.FrontDoor != s.FrontDoorURL() || got.AWS != s.AWSURL() || got.DynamoDB != "embedded" || got.Name != "test" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(map[string]string{"QUEUE_URL": s.AWSURL() + "/000000000000/test-Work"}, got.Functions["RelayFunction"].Env); diff != "" {
		t.Errorf("relay's environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"DoneTable": "test-Done"}, got.Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
}

func TestCapacityIsCountedByTable(t *testing.T) {
	s, _ := start(t, func(o *Options) { o.InProcess = inProcess() })
	done(t, s, s.services.changed, "tick")
	post(t, s.FrontDoorURL()+"/rows/one")
	done(t, s, s.services.changed, "one")
	var before map[string]dynamodb.Units
	get(t, s.AWSURL()+"/_dakghar/usage", &before)
	if before["test-Rows"].Write != 1 || before["test-Done"].Write != 2 {
		t.Errorf("usage %+v, want 1 write unit of test-Rows and 2 of test-Done", before)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.AWSURL()+"/_dakghar/usage", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	var after map[string]dynamodb.Units
	get(t, s.AWSURL()+"/_dakghar/usage", &after)
	if len(after) != 0 {
		t.Errorf("usage after the reset %+v", after)
	}
}

func TestFunctionsCanBeInvokedAsOnAWS(t *testing.T) {
	s, _ := start(t, func(o *Options) { o.InProcess = inProcess() })
	for _, test := range []struct {
		function, kind, body string
		status               int
		functionError, error string
	}{
		{"FrontFunction", "", `{"pathParameters":{"id":"x"}}`, 200, "", ""},
		{"arn:aws:lambda:us-east-1:000000000000:function:FrontFunction", "RequestResponse", `{"pathParameters":{"id":"x"}}`, 200, "", ""},
		{"FrontFunction", "RequestResponse", `[]`, 200, "Unhandled", ""},
		{"FrontFunction", "DryRun", `{}`, 204, "", ""},
		{"FrontFunction", "", strings.Repeat(" ", lambda.PayloadBytesMax+1), 413, "", "RequestTooLargeException"},
		{"Nobody", "", `{}`, 404, "", "ResourceNotFoundException"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.AWSURL()+"/2015-03-31/functions/"+test.function+"/invocations", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Amz-Invocation-Type", test.kind)
		res, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != test.status || res.Header.Get("X-Amz-Function-Error") != test.functionError || res.Header.Get("X-Amzn-ErrorType") != test.error {
			t.Errorf("%s %s: %d %v", test.function, test.kind, res.StatusCode, res.Header)
		}
	}
}

func TestWhatKeepsTheStackFromStartingIsToldWithWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"port in use":  {func(o *Options) { o.AWSAddr = taken.Addr().String() }, fmt.Sprintf("port %d of 127.0.0.1 is in use, perhaps by another local stack: stop that program (lsof -i :%d names it) or choose another port", port, port)},
		"not loopback": {func(o *Options) { o.HTTPAddr = "0.0.0.0:8080" }, `address "0.0.0.0:8080" is not on the loopback interface: the local stack checks no signatures and listens nowhere else`},
		"no template":  {func(o *Options) { o.TemplatePath = "nowhere.yaml" }, "template: open nowhere.yaml: no such file or directory"},
		"not built": {func(o *Options) {
			o.BuildDir = "nowhere"
			o.InProcess = inProcess()
			delete(o.InProcess, "RelayFunction")
		}, "nowhere/RelayFunction/bootstrap is not built: run `make build`"},
		"unknown function": {func(o *Options) { o.InProcess = map[string]Factory{"Nobody": nil} }, "function Nobody, named by an option, is not in the template"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{TemplatePath: "testdata/template.yaml", BuildDir: buildDir, HTTPAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0"}
			test.change(&o)
			if _, err := Start(t.Context(), o); err == nil || err.Error() != test.want {
				t.Errorf("error %v\nwant  %s", err, test.want)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ready := &signalWriter{prefix: "ready ", found: make(chan string, 1)}
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{TemplatePath: "testdata/template.yaml", HTTPAddr: "127.0.0.1:0", AWSAddr: "127.0.0.1:0", InProcess: inProcess(), Log: ready})
	}()
	url := strings.TrimSpace(<-ready.found)
	if status, _ := post(t, url+"/rows/one"); status != 202 {
		t.Errorf("status %d", status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// signalWriter tells of the first line with a prefix.
type signalWriter struct {
	prefix string
	found  chan string
}

func (w *signalWriter) Write(p []byte) (int, error) {
	if rest, ok := strings.CutPrefix(string(p), w.prefix); ok {
		w.found <- rest
	}
	return len(p), nil
}
