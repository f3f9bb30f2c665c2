package awsconfig_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/awsconfig"
)

func lambda(more map[string]string) func(string) string {
	return func(name string) string {
		if v, ok := more[name]; ok {
			return v
		}
		return map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": "token"}[name]
	}
}

// The variables that Lambda sets are what is used, and each must be there.
func TestLoadReadsLambdasVariables(t *testing.T) {
	t.Parallel()
	cfg, err := awsconfig.Load(lambda(nil), awsconfig.Request())
	if err != nil {
		t.Fatal(err)
	}
	got, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil || cfg.Region != "eu-west-1" || got.AccessKeyID != "id" || got.SecretAccessKey != "key" || got.SessionToken != "token" {
		t.Errorf("region %s, credentials %v, error %v", cfg.Region, got.HasKeys(), err)
	}
	for _, name := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if _, err := awsconfig.Load(lambda(map[string]string{name: ""}), awsconfig.Request()); err == nil {
			t.Errorf("without %s there is no error", name)
		}
	}
}

// One address for all services, or one for a service, as the SDK documents its
// variables. A call goes there, and is tried as often as the limits say.
func TestEndpointsAndTriesAreTheEnvironments(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 16)
	serve := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls <- name
			w.WriteHeader(http.StatusInternalServerError)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	cfg, err := awsconfig.Load(lambda(map[string]string{
		"AWS_ENDPOINT_URL": serve("all"), "AWS_ENDPOINT_URL_SECRETS_MANAGER": serve("secrets"),
	}), awsconfig.Request())
	if err != nil {
		t.Fatal(err)
	}
	// The SDK looks at the process's own variables before it asks a source, and
	// there are none here; a service's own endpoint then wins over the common one.
	_, _ = dynamodb.NewFromConfig(cfg).ListTables(context.Background(), &dynamodb.ListTablesInput{})
	_, _ = secretsmanager.NewFromConfig(cfg).ListSecrets(context.Background(), &secretsmanager.ListSecretsInput{})
	close(calls)
	seen := map[string]int{}
	for name := range calls {
		seen[name]++
	}
	if seen["all"] != 2 || seen["secrets"] != 2 {
		t.Errorf("calls %v, want two tries at each address", seen)
	}
}

// Lambda tells loops by a header of the SDK's. What wakes its own function by design
// leaves it out, and nobody else.
func TestCallsOutOfLineSayNothingOfTheirInvocation(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "DispatcherFunction")
	t.Setenv("_X_AMZN_TRACE_ID", "Root=1-a;Lineage=1:b:2")
	var told []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = append(told, r.Header.Get("X-Amzn-Trace-Id"))
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(server.Close)
	cfg, err := awsconfig.Load(lambda(map[string]string{"AWS_ENDPOINT_URL": server.URL}), awsconfig.Request())
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range [][]func(*sqs.Options){nil, {sqs.WithAPIOptions(awsconfig.OutOfLine)}} {
		_, err := sqs.NewFromConfig(cfg, options...).SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
			QueueUrl: aws.String(server.URL + "/q"), Entries: []types.SendMessageBatchRequestEntry{{Id: aws.String("0"), MessageBody: aws.String("{}")}},
		})
		if err == nil {
			t.Error("a refusal is no error")
		}
	}
	if diff := cmp.Diff([]string{"Root=1-a;Lineage=1:b:2", ""}, told); diff != "" {
		t.Errorf("what the service is told (-want +got):\n%s", diff)
	}
}
