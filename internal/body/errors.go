package body

import (
	"errors"

	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"

	"dakghar/internal/awsfault"
	"dakghar/internal/fault"
)

// Permanent faults: trying again will not help. Compare with errors.Is.
var (
	// ErrMissing is a body that is not there: swept, erased or never stored.
	ErrMissing error = fault.New(fault.Permanent, "body_missing", nil)
	// ErrCorrupt is a body that is not what was stored: a row or object that was
	// changed or swapped, another tenant's key, other bytes than the digest names.
	ErrCorrupt error = fault.New(fault.Permanent, "body_corrupt", nil)
	// ErrKeyMissing is a body whose data key has no row any more.
	ErrKeyMissing error = fault.New(fault.Permanent, "body_key_missing", nil)
	// ErrInvalid is a Put that lacks an id or whose body is above [RawBytesMax].
	ErrInvalid error = fault.New(fault.Permanent, "body_put_invalid", nil)
)

// ours turns an SDK error of one of our stores ("table", "bucket", "kms") into
// a fault with the code body_<store>_<cause>. Only the operation, the service's
// code and the status are kept: the service's own words may repeat what it was sent.
func ours(store, op string, err error) error {
	return fault.NewOutage("body_"+store+"_"+awsfault.Cause(err), awsfault.Summary(op, err))
}

// notOurCiphertext reports that KMS read the wrapped key and it does not open
// under this context: it was changed, swapped, or is another tenant's. A key of
// another KMS key is not among these: that is a configuration to be put right.
func notOurCiphertext(err error) bool {
	_, invalid := errors.AsType[*kmstypes.InvalidCiphertextException](err)
	return invalid
}
