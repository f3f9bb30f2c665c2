package body

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"dakghar/internal/fault"
)

func status(code int, err error) error {
	return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: code}}, Err: err}
}

func api(code string) error { return &smithy.GenericAPIError{Code: code, Message: "echo of canary"} }

// Every SDK error is ours, with a stable code and none of the service's words.
func TestSDKErrorsBecomeOurs(t *testing.T) {
	for _, tt := range []struct {
		err        error
		code, text string
	}{
		{context.DeadlineExceeded, "timeout", "context deadline exceeded"},
		{fmt.Errorf("operation canary: %w", context.Canceled), "timeout", "context canceled"},
		{api("ThrottlingException"), "throttled", "ThrottlingException"},
		{api("ProvisionedThroughputExceededException"), "throttled", "ProvisionedThroughputExceededException"},
		{api("RequestLimitExceeded"), "throttled", "RequestLimitExceeded"},
		{api("SlowDown"), "throttled", "SlowDown"},
		{status(429, errors.New("canary")), "throttled", "no answer"},
		{api("AccessDeniedException"), "denied", "AccessDeniedException"},
		{status(403, api("AccessDenied")), "denied", "AccessDenied"},
		{status(409, api("ConditionalRequestConflict")), "conflict", "ConditionalRequestConflict"},
		{&dynamodbtypes.TransactionConflictException{}, "conflict", "TransactionConflictException"},
		{&dynamodbtypes.InternalServerError{}, "unavailable", "InternalServerError"},
		{status(503, errors.New("canary")), "unavailable", "no answer"},
		{api("ValidationException"), "refused", "ValidationException"},
		{errors.New("dial tcp: canary"), "unreachable", "no answer"},
	} {
		err := ours("table", "PutItem", tt.err)
		got := [4]string{string(fault.KindOf(err)), fault.CodeOf(err), err.Error()}
		want := [4]string{"ours", "body_table_" + tt.code, "body_table_" + tt.code + ": PutItem: " + tt.text}
		if got != want {
			t.Errorf("%v becomes %q, want %q", tt.err, got, want)
		}
		if len(fault.CodeOf(err)) > 40 {
			t.Errorf("the code %s has more than 40 bytes", fault.CodeOf(err))
		}
	}
}
