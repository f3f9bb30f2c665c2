// Package awsfault says what an SDK error is, in few words that may be logged:
// the operation, the service's code, the kind of trouble. It keeps nothing of the
// service's own message, which may repeat what it was sent, nor of the error
// itself. Whose fault it is, and what follows, is the adapters' to say.
package awsfault

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The causes.
const (
	Timeout     = "timeout"
	Throttled   = "throttled"
	Denied      = "denied"
	Conflict    = "conflict"
	Unavailable = "unavailable" // the service said so
	Refused     = "refused"     // the service did not take the call
	Unreachable = "unreachable" // there was no answer
)

// Cause returns the kind of trouble.
func Cause(err error) string {
	status, code := status(err), Code(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Timeout
	case throttled(err), status == http.StatusTooManyRequests, code == "SlowDown":
		return Throttled
	case status == http.StatusForbidden, code == "AccessDeniedException", code == "AccessDenied":
		return Denied
	case status == http.StatusConflict, code == "TransactionConflictException", code == "ConditionalRequestConflict":
		return Conflict
	case status >= http.StatusInternalServerError, code == "InternalServerError", code == "InternalServiceError", code == "KMSInternalException":
		return Unavailable
	case code != "":
		return Refused
	}
	return Unreachable
}

func throttled(err error) bool {
	return retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err) == aws.TrueTernary
}

func status(err error) int {
	if resp, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return resp.HTTPStatusCode()
	}
	return 0
}

// Code returns the service's own code, empty where it gave none.
func Code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// Summary returns an error of the operation and the code alone. It wraps the
// context's end where that was the reason, and nothing else.
func Summary(operation string, err error) error {
	for _, known := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return fmt.Errorf("%s: %w", operation, known)
		}
	}
	if code := Code(err); code != "" {
		return fmt.Errorf("%s: %s", operation, code)
	}
	return fmt.Errorf("%s: no answer", operation)
}
