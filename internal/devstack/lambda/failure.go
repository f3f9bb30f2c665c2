package lambda

import (
	"encoding/json"
	"fmt"
	"time"
)

// failure is the document Lambda answers with when a function failed. The types
// are those of the managed service: Runtime.ExitError, Sandbox.Timedout,
// Function.ResponseSizeTooLarge, and the function's own.
type failure struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

func (f failure) result() result {
	doc, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("lambda: encoding two strings: %v", err))
	}
	return result{response: doc, functionError: Unhandled}
}

func exited(requestID, how string) failure {
	return failure{Type: "Runtime.ExitError", Message: fmt.Sprintf("RequestId: %s Error: Runtime exited with error: %s", requestID, how)}
}

func timedOut(requestID string, after time.Duration) failure {
	return failure{Type: "Sandbox.Timedout", Message: fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", requestID, after.Seconds())}
}

func responseTooLarge() failure {
	return failure{Type: "Function.ResponseSizeTooLarge", Message: fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", PayloadBytesMax)}
}

// result is what an invocation comes to.
type result struct {
	response      []byte
	functionError string
	err           error
}
