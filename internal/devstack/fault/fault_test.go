package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/fault"
	fakesqs "dakghar/internal/devstack/sqs"
	"dakghar/internal/devstack/wiretest"
)

// bubble runs f with an injector in front of a queue service.
func bubble(t *testing.T, f func(t *testing.T, i *fault.Injector, q *queue)) {
	synctest.Test(t, func(t *testing.T) {
		s := fakesqs.New(fakesqs.Config{})
		t.Cleanup(s.Close)
		i := fault.New(s, nil)
		t.Cleanup(func() { i.Clear("") })
		e := wiretest.Serve(t, i)
		q := &queue{t: t, client: sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &e.URL, HTTPClient: e.Client, Credentials: creds, Retryer: aws.NopRetryer{}})}
		out, err := q.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("work")})
		if err != nil {
			t.Fatal(err)
		}
		q.url = out.QueueUrl
		f(t, i, q)
	})
}

var creds = credentials.NewStaticCredentialsProvider("local", "local", "")

// queue is a client whose calls are the ones that suffer.
type queue struct {
	t      *testing.T
	client *sqs.Client
	url    *string
}

func (q *queue) send(ctx context.Context) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: q.url, MessageBody: aws.String("x")})
	return err
}

// sent counts the messages that are in the queue.
func (q *queue) sent() string {
	q.t.Helper()
	out, err := q.client.GetQueueAttributes(q.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: q.url, AttributeNames: []sqsAttribute{"ApproximateNumberOfMessages"}})
	if err != nil {
		q.t.Fatal(err)
	}
	return out.Attributes["ApproximateNumberOfMessages"]
}

func mustAdd(t *testing.T, i *fault.Injector, f fault.Fault) {
	t.Helper()
	if err := i.Add(f); err != nil {
		t.Fatal(err)
	}
}

func code(err error) string {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return refused.ErrorCode()
	}
	return ""
}

// The figures behind L2: a stalled service answers nothing until the caller's own deadline.
func TestStalledCallIsHeldUntilTheClientGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, i *fault.Injector, q *queue) {
		mustAdd(t, i, fault.Fault{Service: "sqs", Operation: "SendMessage", Mode: fault.Stall})
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := q.send(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the stalled call returned %v", err)
		}
		if took := time.Since(start); took != 1500*time.Millisecond {
			t.Errorf("the stalled call took %v", took)
		}
		synctest.Wait()
		want := []fault.Report{{Fault: fault.Fault{Service: "sqs", Operation: "SendMessage", Mode: fault.Stall}, Seen: 1, Hit: 1}}
		if diff := cmp.Diff(want, i.List()); diff != "" {
			t.Errorf("faults (-want +got):\n%s", diff)
		}
		i.Clear("")
		if got := q.sent(); got != "0" {
			t.Errorf("an abandoned call was carried out: %s messages", got)
		}
	})
}

func TestStalledCallGoesThroughWhenItsFaultIsCleared(t *testing.T) {
	bubble(t, func(t *testing.T, i *fault.Injector, q *queue) {
		mustAdd(t, i, fault.Fault{Service: "sqs", Operation: "SendMessage", Mode: fault.Stall})
		done := make(chan error, 1)
		go func() { done <- q.send(t.Context()) }()
		synctest.Wait()
		if got := i.List()[0].Waiting; got != 1 {
			t.Errorf("%d calls are held", got)
		}
		i.Clear("kms")
		synctest.Wait()
		if len(done) != 0 {
			t.Error("clearing another service's faults let the call through")
		}
		i.Clear("sqs")
		if err := <-done; err != nil {
			t.Errorf("the call that was let through: %v", err)
		}
		if got := q.sent(); got != "1" {
			t.Errorf("%s messages were sent", got)
		}
	})
}

func TestDelayedCallIsLateAndCarriedOut(t *testing.T) {
	bubble(t, func(t *testing.T, i *fault.Injector, q *queue) {
		mustAdd(t, i, fault.Fault{Operation: "SendMessage", Mode: fault.Delay, Delay: 3 * time.Second})
		start := time.Now()
		if err := q.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("the call took %v", took)
		}
	})
}

// Proves the two sides of an unknown commit (T4): the client sees the same, the store does not.
func TestDroppedCallIsCarriedOutOrNot(t *testing.T) {
	for mode, want := range map[fault.Mode]string{fault.DropBefore: "0", fault.DropAfter: "1"} {
		t.Run(string(mode), func(t *testing.T) {
			bubble(t, func(t *testing.T, i *fault.Injector, q *queue) {
				mustAdd(t, i, fault.Fault{Operation: "SendMessage", Mode: mode, Count: 1})
				err := q.send(t.Context())
				var sending interface{ ConnectionError() bool }
				if !errors.As(err, &sending) || code(err) != "" {
					t.Errorf("the dropped call returned %v, want a connection error", err)
				}
				if got := q.sent(); got != want {
					t.Errorf("%s messages were sent, want %s", got, want)
				}
			})
		})
	}
}

func TestFaultHitsOnlyTheCallsItNames(t *testing.T) {
	bubble(t, func(t *testing.T, i *fault.Injector, q *queue) {
		mustAdd(t, i, fault.Fault{Service: "kms", Mode: fault.Fail})
		mustAdd(t, i, fault.Fault{Service: "sqs", Operation: "ReceiveMessage", Mode: fault.Fail})
		mustAdd(t, i, fault.Fault{Service: "sqs", Operation: "SendMessage", Mode: fault.Fail, After: 2, Count: 2})
		var got []string
		for range 6 {
			got = append(got, code(q.send(t.Context())))
		}
		if diff := cmp.Diff([]string{"", "", "InternalError", "InternalError", "", ""}, got); diff != "" {
			t.Errorf("six sends (-want +got):\n%s", diff)
		}
		var counts [][2]int
		for _, r := range i.List() {
			counts = append(counts, [2]int{r.Seen, r.Hit})
		}
		if diff := cmp.Diff([][2]int{{0, 0}, {0, 0}, {6, 2}}, counts); diff != "" {
			t.Errorf("seen and hit (-want +got):\n%s", diff)
		}
	})
}

func TestOldestMatchingFaultIsSuffered(t *testing.T) {
	bubble(t, func(t *testing.T, i *fault.Injector, q *queue) {
		mustAdd(t, i, fault.Fault{Mode: fault.Fail, Code: "First", Count: 1})
		mustAdd(t, i, fault.Fault{Mode: fault.Fail, Code: "Second", HTTPStatus: 400})
		if got := []string{code(q.send(t.Context())), code(q.send(t.Context()))}; !cmp.Equal(got, []string{"First", "Second"}) {
			t.Errorf("the errors are %v", got)
		}
	})
}

// Every SDK must read an injected error as its own service's, and find it worth a retry.
func TestInjectedErrorsAreTheServicesOwn(t *testing.T) {
	tests := []struct {
		service, operation, throttled, failed string
		call                                  func(context.Context, wiretest.Endpoint) error
	}{
		{"dynamodb", "GetItem", "ProvisionedThroughputExceededException", "InternalServerError", func(ctx context.Context, e wiretest.Endpoint) error {
			c := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &e.URL, HTTPClient: e.Client, Credentials: creds, Retryer: aws.NopRetryer{}})
			_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: map[string]dynamodbValue{}})
			return err
		}},
		{"dynamodbstreams", "ListStreams", "LimitExceededException", "InternalServerError", func(ctx context.Context, e wiretest.Endpoint) error {
			c := dynamodbstreams.New(dynamodbstreams.Options{Region: "us-east-1", BaseEndpoint: &e.URL, HTTPClient: e.Client, Credentials: creds, Retryer: aws.NopRetryer{}})
			_, err := c.ListStreams(ctx, &dynamodbstreams.ListStreamsInput{})
			return err
		}},
		{"sqs", "ListQueues", "RequestThrottled", "InternalError", func(ctx context.Context, e wiretest.Endpoint) error {
			c := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &e.URL, HTTPClient: e.Client, Credentials: creds, Retryer: aws.NopRetryer{}})
			_, err := c.ListQueues(ctx, &sqs.ListQueuesInput{})
			return err
		}},
		{"secretsmanager", "GetSecretValue", "ThrottlingException", "InternalServiceError", func(ctx context.Context, e wiretest.Endpoint) error {
			c := secretsmanager.New(secretsmanager.Options{Region: "us-east-1", BaseEndpoint: &e.URL, HTTPClient: e.Client, Credentials: creds, Retryer: aws.NopRetryer{}})
			_, err := c.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String("s")})
			return err
		}},
		{"kms", "Decrypt", "ThrottlingException", "KMSInternalException", func(ctx context.Context, e wiretest.Endpoint) error {
			c := kms.New(kms.Options{Region: "us-east-1", BaseEndpoint: &e.URL, HTTPClient: e.Client, Credentials: creds, Retryer: aws.NopRetryer{}})
			_, err := c.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: []byte("x")})
			return err
		}},
		{"s3", "PutObject", "SlowDown", "InternalError", func(ctx context.Context, e wiretest.Endpoint) error {
			c := s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &e.URL, HTTPClient: e.Client, Credentials: creds, UsePathStyle: true, Retryer: aws.NopRetryer{}})
			_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: strings.NewReader("x")})
			return err
		}},
	}
	retryable := retry.IsErrorRetryables(retry.DefaultRetryables)
	for _, tt := range tests {
		t.Run(tt.service, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := fault.New(http.NotFoundHandler(), nil)
				e := wiretest.Serve(t, i)
				mustAdd(t, i, fault.Fault{Service: tt.service, Operation: tt.operation, Mode: fault.Throttle, Count: 1})
				mustAdd(t, i, fault.Fault{Service: tt.service, Operation: tt.operation, Mode: fault.Fail, Count: 1})
				throttled, failed := tt.call(t.Context(), e), tt.call(t.Context(), e)
				if got := []string{code(throttled), code(failed)}; !cmp.Equal(got, []string{tt.throttled, tt.failed}) {
					t.Errorf("the errors are %v (%v, %v)", got, throttled, failed)
				}
				for _, err := range []error{throttled, failed} {
					if retryable.IsErrorRetryable(err) != aws.TrueTernary {
						t.Errorf("not worth a retry: %v", err)
					}
				}
			})
		})
	}
}

func TestFaultThatCannotBeIsRefused(t *testing.T) {
	i := fault.New(http.NotFoundHandler(), nil)
	for _, f := range []fault.Fault{
		{},
		{Mode: "explode"},
		{Mode: fault.Stall, Service: "lambda"},
		{Mode: fault.Stall, Count: -1},
		{Mode: fault.Stall, After: -1},
		{Mode: fault.Delay},
		{Mode: fault.Stall, Delay: time.Second},
		{Mode: fault.Stall, Code: "X"},
		{Mode: fault.Fail, HTTPStatus: 200},
		{Mode: fault.Late},
		{Mode: fault.Conflict, Service: "dynamodb"},
		{Mode: fault.Part, Service: "sqs", Operation: "SendMessage"},
		{Mode: fault.Lose, Service: "dynamodb", Operation: "GetRecords"},
	} {
		if err := i.Add(f); err == nil {
			t.Errorf("%+v was accepted", f)
		}
	}
	if got := i.List(); len(got) != 0 {
		t.Errorf("refused faults are in the list: %v", got)
	}
}

func TestControlAddsListsAndClears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := wiretest.Serve(t, fault.New(http.NotFoundHandler(), nil).Control())
		do := func(method, query, contentType, body string) (int, any) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, e.URL+fault.Path+query, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", contentType)
			answer, err := e.Client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(text, &v); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return answer.StatusCode, v
		}
		const asJSON = "application/json"
		stall := map[string]any{"service": "kms", "operation": "Decrypt", "mode": "stall", "count": 2.0, "seen": 0.0, "hit": 0.0, "waiting": 0.0}
		late := map[string]any{"service": "s3", "mode": "delay", "after": 1.0, "delay_ms": 250.0, "seen": 0.0, "hit": 0.0, "waiting": 0.0}
		failing := map[string]any{"mode": "fail", "code": "X", "status": 503.0, "seen": 0.0, "hit": 0.0, "waiting": 0.0}
		steps := []struct {
			name, method, query, contentType, body string
			status                                 int
			want                                   any
		}{
			{"an empty list", "GET", "", "", "", 200, []any{}},
			{"a stall", "POST", "", asJSON, `{"service":"kms","operation":"Decrypt","mode":"stall","count":2}`, 200, []any{stall}},
			{"a delay", "POST", "", asJSON, `{"service":"s3","mode":"delay","delay_ms":250,"after":1}`, 200, []any{stall, late}},
			{"an error of one's own", "POST", "", asJSON, `{"mode":"fail","code":"X","status":503}`, 200, []any{stall, late, failing}},
			{"all of them", "GET", "", "", "", 200, []any{stall, late, failing}},
			{"one service cleared", "DELETE", "?service=kms", "", "", 200, []any{late, failing}},
			{"everything cleared", "DELETE", "", "", "", 200, []any{}},
			{"a mode that is none", "POST", "", asJSON, `{"mode":"explode"}`, 400, map[string]any{"error": "fault: mode must be stall, fail, throttle, delay, drop-before, drop-after, conflict, part, lose, repeat or late"}},
			{"a member that is none", "POST", "", asJSON, `{"mode":"stall","colour":"blue"}`, 400, map[string]any{"error": `json: unknown field "colour"`}},
			{"a count that is ours", "POST", "", asJSON, `{"mode":"stall","hit":1}`, 400, map[string]any{"error": "seen, hit and waiting are counted here and cannot be set"}},
			{"a form of a web page", "POST", "", "text/plain", `{"mode":"stall"}`, 400, map[string]any{"error": "the content type must be application/json"}},
			{"another method", "PUT", "", asJSON, `{}`, 405, map[string]any{"error": "GET, POST or DELETE"}},
		}
		for _, s := range steps {
			status, got := do(s.method, s.query, s.contentType, s.body)
			if diff := cmp.Diff(s.want, got); diff != "" || status != s.status {
				t.Errorf("%s: HTTP %d, want %d (-want +got):\n%s", s.name, status, s.status, diff)
			}
		}
	})
}
