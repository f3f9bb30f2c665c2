package dynamodb

import "fmt"

// apiError is an error answer: what the service would say, by its own name.
type apiError struct {
	status  int
	kind    string // the shape's name, e.g. ValidationException
	message string
	item    item     // ALL_OLD of a failed condition
	reasons []reason // of a cancelled transaction
}

// reason is one entry of a cancelled transaction, in the order of its actions.
type reason struct {
	code    string
	message string
	item    item
}

func (e *apiError) Error() string { return e.kind + ": " + e.message }

const (
	kindValidation     = "ValidationException"
	kindSerialization  = "SerializationException"
	kindNotFound       = "ResourceNotFoundException"
	kindInUse          = "ResourceInUseException"
	kindCondition      = "ConditionalCheckFailedException"
	kindCancelled      = "TransactionCanceledException"
	kindMismatch       = "IdempotentParameterMismatchException"
	kindUnknown        = "UnknownOperationException"
	kindTrimmed        = "TrimmedDataAccessException"
	kindExpired        = "ExpiredIteratorException"
	reasonNone         = "None"
	reasonCondition    = "ConditionalCheckFailed"
	reasonValidation   = "ValidationError"
	messageCondition   = "The conditional request failed"
	messageNoTable     = "Requested resource not found"
	messageItemSize    = "Item size has exceeded the maximum allowed size"
	messageUpdateSize  = "Item size to update has exceeded the maximum allowed size"
	messageInvalid     = "One or more parameter values were invalid: "
	messageNotValid    = "One or more parameter values are not valid. "
	messageKeySchema   = "The provided key element does not match the schema"
	messageDuplicates  = "Provided list of item keys contains duplicates"
	messageStartingKey = "The provided starting key is invalid"
)

func failure(kind, format string, args ...any) *apiError {
	return &apiError{status: 400, kind: kind, message: fmt.Sprintf(format, args...)}
}

// invalid is a ValidationException, by far the most common refusal.
func invalid(format string, args ...any) *apiError {
	return failure(kindValidation, format, args...)
}

// unsupported refuses what the service has and this package does not.
func unsupported(what string) *apiError {
	return invalid("%s is not implemented by the local DynamoDB", what)
}
