package secret

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"dakghar/internal/awsfault"
	"dakghar/internal/fault"
)

// What the store can say besides failing. All are of kind ours, since a
// provider must get a retryable answer: we could not check its signature.
var (
	// ErrNoVersion is a definite no: the store does not have the version, or is
	// about to delete the secret.
	ErrNoVersion error = fault.New(fault.Ours, "secret_no_version", nil)
	// ErrEmpty is a version whose value is empty: nothing can be verified with it.
	ErrEmpty error = fault.New(fault.Ours, "secret_empty", nil)
	// ErrThrottled is a look-up that our own bounds did not let through.
	ErrThrottled error = fault.New(fault.Ours, "secret_lookup_throttled", nil)
	// ErrNothingNew is a look-up that found a version which the endpoint already
	// lists as trusted or as retired.
	ErrNothingNew error = fault.New(fault.Ours, "secret_nothing_new", nil)
	// ErrOtherSecret is a write whose name or token is taken by another value.
	ErrOtherSecret error = fault.New(fault.Permanent, "secret_token_or_name_taken", nil)
)

// storeFault turns an SDK error into ours. Only the operation, the code and the
// status are kept: the store's own words are not ours to vouch for.
func storeFault(op string, err error) error {
	return fault.NewOutage("secret_"+awsfault.Cause(err), awsfault.Summary(op, err))
}

// definite reports an answer of the store, as opposed to its silence.
func definite(err error) bool {
	return errors.Is(err, ErrNoVersion) || errors.Is(err, ErrEmpty) || errors.Is(err, ErrNothingNew)
}

// gone reports a definite no. GetSecretValue answers InvalidRequestException
// for a secret that is marked for deletion.
func gone(err error) bool {
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	_, deleting := errors.AsType[*types.InvalidRequestException](err)
	return missing || deleting
}
