package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/crashtest"
)

// Proves T4: a program dies at every chosen call, before or after the service has
// seen it; what it tries while it is dead reaches nobody and is not counted, and
// the count goes on when it lives again.
func TestAProgramDiesAtTheChosenCalls(t *testing.T) {
	t.Parallel()
	served := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served++
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(service.Close)
	program := &crashtest.Switch{}
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &service.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{},
		APIOptions: []func(*middleware.Stack) error{program.Middleware},
	})
	program.KillAt(2, crashtest.Before)
	program.KillAt(4, crashtest.After)
	var seen []string
	for range 7 {
		_, err := client.ListQueues(context.WithoutCancel(t.Context()), &sqs.ListQueuesInput{})
		seen = append(seen, fmt.Sprintf("dead %v, served %d", errors.Is(err, crashtest.ErrDead), served))
		if len(seen) == 3 || len(seen) == 6 {
			program.Revive()
		}
	}
	want := []string{
		"dead false, served 1", // call 1
		"dead true, served 1",  // call 2, before
		"dead true, served 1",  // not counted
		"dead false, served 2", // call 3
		"dead true, served 3",  // call 4, after
		"dead true, served 3",  // not counted
		"dead false, served 4", // call 5
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("seven calls (-want +got):\n%s", diff)
	}
	if program.Deaths() != 2 || len(program.Calls()) != 5 || program.Calls()[4] != (crashtest.Call{N: 5, Operation: "SQS.ListQueues"}) {
		t.Errorf("%d deaths, calls %v", program.Deaths(), program.Calls())
	}
}
