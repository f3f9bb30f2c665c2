package sim

import (
	"context"
	"errors"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// Faults turns a program's calls away, in ways that the embedded services and
// DynamoDB Local never do by themselves: conflicts, throttles, lost answers.
type Faults struct {
	mu    sync.Mutex
	rules []*Fault
}

// Fault turns away the next calls of an operation.
type Fault struct {
	Operation string // "TransactWriteItems"; every operation when empty
	Times     int    // how many calls; without end when negative
	Skip      int    // how many calls pass first
	// Late lets the service do the work, and loses the answer.
	Late bool
	Err  error
}

// Add adds a fault.
func (f *Faults) Add(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &fault)
}

// Clear ends all faults.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

func (f *Faults) next(operation string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.Operation != "" && r.Operation != operation || r.Times == 0 {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		r.Times--
		return *r, true
	}
	return Fault{}, false
}

// Middleware installs the faults into a client's configuration.
func (f *Faults) Middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("faults", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		fault, ok := f.next(awsmiddleware.GetOperationName(ctx))
		if !ok {
			return next.HandleInitialize(ctx, in)
		}
		if fault.Late {
			if _, _, err := next.HandleInitialize(ctx, in); err != nil {
				return middleware.InitializeOutput{}, middleware.Metadata{}, err
			}
		}
		return middleware.InitializeOutput{}, middleware.Metadata{}, fault.Err
	}), middleware.After)
}

// The errors of a bad day.
var (
	// ErrConflict is what a transaction of n writes gets when a rival writes the same items.
	ErrConflict = func(n int) error {
		reasons := make([]types.CancellationReason, n)
		code := "TransactionConflict"
		for i := range reasons {
			reasons[i].Code = &code
		}
		return &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	// ErrThrottle is a throttled call.
	ErrThrottle = &types.ProvisionedThroughputExceededException{}
	// ErrInProgress is a transaction whose earlier try has not ended.
	ErrInProgress = &types.TransactionInProgressException{}
	// ErrLost is an answer that never came.
	ErrLost = errors.New("sim: connection reset")
	// ErrDenied is a call without permission.
	ErrDenied = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "denied"}
)
