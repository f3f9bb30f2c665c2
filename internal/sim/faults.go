package sim

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// Faults turns a program's calls away, in ways that the embedded services and
// DynamoDB Local never do by themselves: conflicts, throttles, lost answers,
// batches that are taken in part.
type Faults struct {
	mu    sync.Mutex
	rules []*Fault
}

// Fault troubles the next calls of an operation.
type Fault struct {
	Operation string // "TransactWriteItems"; every operation when empty
	// Table is the logical id of a table that the call must touch, "BusinessTable";
	// empty asks for none.
	Table string
	Times int // how many calls; without end when negative
	Skip  int // how many calls pass first
	// Late lets the service do the work, and loses the answer.
	Late bool
	// Err is what the program gets; nil lets the call through.
	Err error
	// Part keeps every second entry of a SendMessageBatch back, and says so.
	Part bool
	// Meanwhile is what others do at this moment: before the call, with Late after
	// it. Programs make some calls at once, so it must be safe for that.
	Meanwhile func()
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

func (f *Faults) next(operation string, params any) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.Operation != "" && r.Operation != operation || r.Times == 0 || !touches(params, r.Table) {
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
		fault, ok := f.next(awsmiddleware.GetOperationName(ctx), in.Parameters)
		if !ok {
			return next.HandleInitialize(ctx, in)
		}
		return fault.trouble(ctx, in, next)
	}), middleware.After)
}

func (f Fault) trouble(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
	batch, isBatch := in.Parameters.(*sqs.SendMessageBatchInput)
	switch {
	case f.Part && isBatch:
		f.meanwhile()
		return inPart(ctx, batch, next)
	case f.Late || f.Err == nil:
		if !f.Late {
			f.meanwhile()
		}
		if out, meta, err = next.HandleInitialize(ctx, in); err != nil {
			return out, meta, err
		}
		if f.Late {
			f.meanwhile()
		}
		if f.Err == nil {
			return out, meta, nil
		}
	default:
		f.meanwhile()
	}
	return middleware.InitializeOutput{}, middleware.Metadata{}, contended(f.Err, in.Parameters)
}

func (f Fault) meanwhile() {
	if f.Meanwhile != nil {
		f.Meanwhile()
	}
}

// inPart sends the first, third, … entry of a batch, and says of the others that
// the service failed.
func inPart(ctx context.Context, batch *sqs.SendMessageBatchInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	taken := *batch
	taken.Entries = nil
	var failed []sqstypes.BatchResultErrorEntry
	for i, e := range batch.Entries {
		if i%2 == 0 {
			taken.Entries = append(taken.Entries, e)
			continue
		}
		failed = append(failed, sqstypes.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InternalError"), SenderFault: false})
	}
	out, meta, err := next.HandleInitialize(ctx, middleware.InitializeInput{Parameters: &taken})
	if sent, ok := out.Result.(*sqs.SendMessageBatchOutput); ok {
		sent.Failed = append(sent.Failed, failed...)
	}
	return out, meta, err
}

// contended gives a cancelled transaction one reason a write, of which the first
// is the conflict.
func contended(err error, params any) error {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	in, isTransaction := params.(*dynamodb.TransactWriteItemsInput)
	if !ok || !isTransaction || cancelled.CancellationReasons != nil {
		return err
	}
	reasons := make([]types.CancellationReason, len(in.TransactItems))
	for i := range reasons {
		reasons[i].Code = aws.String("None")
	}
	reasons[0].Code = aws.String("TransactionConflict")
	return &types.TransactionCanceledException{CancellationReasons: reasons}
}

// touches reports whether a call reads or writes a table, named by the end of its
// name. It knows the calls that the programs make on single tables.
func touches(params any, table string) bool {
	if table == "" {
		return true
	}
	for _, name := range tablesOf(params) {
		if strings.HasSuffix(aws.ToString(name), "-"+table) {
			return true
		}
	}
	return false
}

func tablesOf(params any) (names []*string) {
	switch in := params.(type) {
	case *dynamodb.GetItemInput:
		return []*string{in.TableName}
	case *dynamodb.PutItemInput:
		return []*string{in.TableName}
	case *dynamodb.UpdateItemInput:
		return []*string{in.TableName}
	case *dynamodb.DeleteItemInput:
		return []*string{in.TableName}
	case *dynamodb.QueryInput:
		return []*string{in.TableName}
	case *dynamodb.ScanInput:
		return []*string{in.TableName}
	case *dynamodb.TransactWriteItemsInput:
		for _, w := range in.TransactItems {
			switch {
			case w.Put != nil:
				names = append(names, w.Put.TableName)
			case w.Update != nil:
				names = append(names, w.Update.TableName)
			case w.Delete != nil:
				names = append(names, w.Delete.TableName)
			case w.ConditionCheck != nil:
				names = append(names, w.ConditionCheck.TableName)
			}
		}
	}
	return names
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
	// ErrContended is what a transaction of any size gets whose first item a rival writes.
	ErrContended = &types.TransactionCanceledException{}
	// ErrThrottle is a throttled call.
	ErrThrottle = &types.ProvisionedThroughputExceededException{}
	// ErrRate is a call beyond the account's rate.
	ErrRate = &types.RequestLimitExceeded{}
	// ErrInProgress is a transaction whose earlier try has not ended.
	ErrInProgress = &types.TransactionInProgressException{}
	// ErrLost is an answer that never came.
	ErrLost = errors.New("sim: connection reset")
	// ErrDenied is a call without permission.
	ErrDenied = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "denied"}
)
