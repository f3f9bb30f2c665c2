package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
)

const outputsJSON = `{
	"InboxTableName": "i", "OutboxTableName": "o", "BodyTableName": "b", "BusinessTableName": "u", "RegistryTableName": "r",
	"BodyBucketName": "bb", "DataKeyArn": "k", "SecretPrefix": "s/endpoint/", "FrontDoorUrl": "https://elsewhere", "Other": "x",
	"DeliveryTableName": "d", "DeliveryQueueUrl": "dq", "SubscriptionSecretPrefix": "s/subscription/"}`

func wantEnv() map[string]string {
	return map[string]string{
		"INBOX_TABLE": "i", "OUTBOX_TABLE": "o", "BODY_TABLE": "b", "BUSINESS_TABLE": "u", "REGISTRY_TABLE": "r",
		"EVENT_DEAD_LETTERS_URL": "", "RELAY_FAILURES_URL": "", "BODY_BUCKET": "bb", "DATA_KEY_ID": "k", "INBOX_DAYS": "", "SECRET_PREFIX": "s/endpoint/",
		"BODY_DAYS": "", "BODY_INLINE_BYTES": "", "DELIVERY_TABLE": "d", "EVENT_QUEUE_URL": "", "DELIVERY_QUEUE_URL": "dq", "DELIVERY_DEAD_LETTERS_URL": "",
		"SUBSCRIPTION_SECRET_PREFIX": "s/subscription/",
	}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheLocalStackSaysWhereItIs(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_dakghar/stack" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		fmt.Fprintf(w, `{"frontDoor":"http://127.0.0.1:1","aws":"http://127.0.0.1:2","region":"us-east-1","outputs":%s}`, outputsJSON)
	})
	for name, tt := range map[string]struct {
		target target
		env    string
	}{
		"by its flag":          {target{local: true, localURL: url + "/"}, "http://127.0.0.1:9"},
		"by its environment":   {target{local: true}, url},
		"the flag comes first": {target{local: true, localURL: url}, ""},
	} {
		got, err := tt.target.find(t.Context(), func(string) string { return tt.env })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !got.local || got.frontDoor != "http://127.0.0.1:1" || aws.ToString(got.aws.BaseEndpoint) != "http://127.0.0.1:2" || got.aws.Region != "us-east-1" {
			t.Errorf("%s: %+v", name, got)
		}
		if diff := cmp.Diff(wantEnv(), got.env); diff != "" {
			t.Errorf("%s: settings (-want +got):\n%s", name, diff)
		}
		c, err := got.aws.Credentials.Retrieve(t.Context())
		if err != nil || c.AccessKeyID != "local" || c.SecretAccessKey != "local" {
			t.Errorf("%s: credentials of %s, error %v", name, c.AccessKeyID, err)
		}
	}
}

func TestALocalStackThatIsNotThereIsSaidToBe(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, url := range map[string]string{
		"nobody":      closed.URL,
		"starting":    serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }),
		"another":     serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }),
		"another API": serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }),
		"no address":  "http://[",
	} {
		_, err := target{local: true, localURL: url}.find(t.Context(), func(string) string { return "" })
		r, ok := errors.AsType[*operator.Refusal](err)
		if !ok || r.Code != "stack_unreachable" || len(r.Next) == 0 || !strings.Contains(r.Next[0].Text, "make run") {
			t.Errorf("%s: error %v, want stack_unreachable with what to do", name, err)
		}
	}
}

// cloudFormation answers DescribeStacks in the service's own form.
func cloudFormation(t *testing.T, status int, answer string) aws.Config {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.PostForm.Get("Action") != "DescribeStacks" || r.PostForm.Get("StackName") != "prod" {
			t.Errorf("asked %v, error %v", r.PostForm, err)
		}
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: &url, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	}
}

func describeStacks(outputs ...string) string {
	var members strings.Builder
	for i := 0; i < len(outputs); i += 2 {
		fmt.Fprintf(&members, "<member><OutputKey>%s</OutputKey><OutputValue>%s</OutputValue></member>", outputs[i], outputs[i+1])
	}
	return `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member>` +
		`<StackName>prod</StackName><CreationTime>2026-03-01T12:00:00Z</CreationTime><StackStatus>CREATE_COMPLETE</StackStatus><Outputs>` +
		members.String() + `</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`
}

func TestADeployedStackIsReadFromItsOutputs(t *testing.T) {
	cfg := cloudFormation(t, http.StatusOK, describeStacks(
		"InboxTableName", "i", "OutboxTableName", "o", "BodyTableName", "b", "BusinessTableName", "u", "RegistryTableName", "r",
		"BodyBucketName", "bb", "DataKeyArn", "k", "SecretPrefix", "s/endpoint/", "FrontDoorUrl", "https://door.test/",
		"DeliveryTableName", "d", "DeliveryQueueUrl", "dq", "SubscriptionSecretPrefix", "s/subscription/"))
	got, err := findDeployed(t.Context(), cfg, "prod")
	if err != nil {
		t.Fatal(err)
	}
	if got.local || got.frontDoor != "https://door.test" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(wantEnv(), got.env); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestADeployedStackThatCannotBeUsedIsSaidToBe(t *testing.T) {
	_, err := findDeployed(t.Context(), cloudFormation(t, http.StatusOK, describeStacks("Something", "else")), "prod")
	if r, ok := errors.AsType[*operator.Refusal](err); !ok || r.Code != "stack_foreign" {
		t.Errorf("error %v, want stack_foreign", err)
	}
	missing := `<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type>` +
		`<Code>ValidationError</Code><Message>Stack with id prod does not exist</Message></Error><RequestId>1</RequestId></ErrorResponse>`
	_, err = findDeployed(t.Context(), cloudFormation(t, http.StatusBadRequest, missing), "prod")
	const want = "stack prod cannot be described in region eu-west-1: ValidationError: Stack with id prod does not exist"
	if r, ok := errors.AsType[*operator.Refusal](err); !ok || r.Code != "stack_unreachable" || r.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestAStackThatDoesNotNameItsPartsIsRefused(t *testing.T) {
	_, err := wire(stack{env: map[string]string{"INBOX_TABLE": "i"}})
	if err == nil || !strings.Contains(err.Error(), "REGISTRY_TABLE is not set") || !strings.Contains(err.Error(), "SECRET_PREFIX is not set") {
		t.Errorf("error %v, want all that is missing", err)
	}
}

// A provider's request is what it is: no redirect is followed, and the body and
// headers arrive as they were signed.
func TestTheSenderPostsWhatItIsGiven(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || string(body) != "raw" || r.Header.Get("X-Signature") != "v1,abc" {
			t.Errorf("%s with %q and %v, error %v", r.Method, body, r.Header, err)
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	status, _, err := newSender().Post(t.Context(), url, map[string]string{"x-signature": "v1,abc"}, []byte("raw"))
	if err != nil || status != http.StatusTemporaryRedirect {
		t.Errorf("status %d, error %v, want 307", status, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := newSender().Post(ctx, url, nil, nil); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), url) {
		t.Errorf("error %v, want cancelled, without the address", err)
	}
}
