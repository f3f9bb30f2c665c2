package awsfault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"dakghar/internal/awsfault"
)

func answered(status int, code string) error {
	response := &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: "a message that repeats the payload"},
	}
	return &smithy.OperationError{ServiceID: "S", OperationName: "Op", Err: response}
}

// Proves M4: an error says what happened and repeats nothing.
func TestAnErrorIsSaidInFewWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, cause, summary string
		err                  error
	}{
		{"the deadline", awsfault.Timeout, "Op: context deadline exceeded", fmt.Errorf("deep: %w", context.DeadlineExceeded)},
		{"a cancelled context", awsfault.Timeout, "Op: context canceled", context.Canceled},
		{"a throttle by code", awsfault.Throttled, "Op: ThrottlingException", answered(400, "ThrottlingException")},
		{"a throttle by status", awsfault.Throttled, "Op: Odd", answered(429, "Odd")},
		{"no permission", awsfault.Denied, "Op: AccessDeniedException", answered(400, "AccessDeniedException")},
		{"a conflict", awsfault.Conflict, "Op: TransactionConflictException", &types.TransactionConflictException{}},
		{"a broken service", awsfault.Unavailable, "Op: InternalServerError", answered(500, "InternalServerError")},
		{"a refused call", awsfault.Refused, "Op: ValidationException", answered(400, "ValidationException")},
		{"no answer", awsfault.Unreachable, "Op: no answer", errors.New("dial tcp: a host that nobody should see")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := awsfault.Cause(tt.err); got != tt.cause {
				t.Errorf("cause %s, want %s", got, tt.cause)
			}
			if got := awsfault.Summary("Op", tt.err).Error(); got != tt.summary {
				t.Errorf("summary %q, want %q", got, tt.summary)
			}
		})
	}
}
