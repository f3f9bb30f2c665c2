package sqs

import (
	"errors"
	"fmt"

	"dakghar/internal/devstack/awsjson"
)

// The service speaks two names for most errors: the shape of the JSON protocol,
// and the code of the older query protocol, which SDKs show to their callers.
// Both are those of the API model.
const (
	namespace   = "com.amazonaws.sqs#"
	queryPrefix = "AWS.SimpleQueueService."
)

func refuse(shape, query, format string, args ...any) error {
	return &awsjson.Error{Code: namespace + shape, QueryCode: query, Message: fmt.Sprintf(format, args...)}
}

func missingParameter(name string) error {
	return refuse("MissingRequiredParameterException", "MissingParameter", "The request must contain the parameter %s.", name)
}

func invalidParameter(format string, args ...any) error {
	return refuse("InvalidParameterValueException", "InvalidParameterValue", format, args...)
}

// outOfRange names a whole number's limits.
func outOfRange(name string, from, to int) error {
	return invalidParameter("The value for parameter %s is invalid. Reason: Must be >= %d and <= %d, if provided.", name, from, to)
}

func unsupported(format string, args ...any) error {
	return refuse("UnsupportedOperation", queryPrefix+"UnsupportedOperation", format, args...)
}

func queueDoesNotExist() error {
	return refuse("QueueDoesNotExist", queryPrefix+"NonExistentQueue", "The specified queue does not exist.")
}

func receiptHandleIsInvalid() error {
	return refuse("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", "The receipt handle is not one that this queue gave out.")
}

func invalidContents(format string, args ...any) error {
	return refuse("InvalidMessageContents", "InvalidMessageContents", format, args...)
}

func resourceNotFound(format string, args ...any) error {
	return refuse("ResourceNotFoundException", "ResourceNotFoundException", format, args...)
}

// failedEntry is how one entry of a batch fails while its neighbours succeed.
type failedEntry struct {
	ID          string `json:"Id"`
	SenderFault bool   `json:"SenderFault"`
	Code        string `json:"Code"`
	Message     string `json:"Message,omitempty"`
}

func failure(id string, err error) failedEntry {
	var known *awsjson.Error
	if !errors.As(err, &known) {
		return failedEntry{ID: id, Code: "InternalError", Message: err.Error()}
	}
	return failedEntry{ID: id, SenderFault: true, Code: known.QueryCode, Message: known.Message}
}
