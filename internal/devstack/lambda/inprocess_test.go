package lambda_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/lambda"
)

func newInProcess(t *testing.T, h lambda.Handler, change func(*lambda.InProcessConfig)) *lambda.InProcess {
	t.Helper()
	cfg := lambda.InProcessConfig{Name: "Under", ARN: "arn:under", Timeout: 3 * time.Second, Handler: h, NewID: counter()}
	if change != nil {
		change(&cfg)
	}
	f, err := lambda.NewInProcess(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

type refusal struct{}

func (*refusal) Error() string { return "refused" }

func TestInProcessAnswersLikeAPool(t *testing.T) {
	f := newInProcess(t, func(ctx context.Context, payload []byte) ([]byte, error) {
		switch string(payload) {
		case `"error"`:
			return nil, &refusal{}
		case `"panic"`:
			panic("on order")
		case `"big"`:
			return make([]byte, lambda.PayloadBytesMax+1), nil
		}
		lc, _ := lambdacontext.FromContext(ctx)
		return []byte(lc.AwsRequestID + " " + lc.InvokedFunctionArn + " " + string(payload)), nil
	}, nil)
	for payload, want := range map[string]answer{
		`"error"`: {Response: `{"errorMessage":"refused","errorType":"refusal"}`, FunctionError: "Unhandled"},
		`"panic"`: {Response: `{"errorMessage":"on order","errorType":"string"}`, FunctionError: "Unhandled"},
		`"big"`:   {Response: `{"errorMessage":"Response payload size exceeded maximum allowed payload size (6291556 bytes).","errorType":"Function.ResponseSizeTooLarge"}`, FunctionError: "Unhandled"},
	} {
		if diff := cmp.Diff(want, invoke(t, f, payload)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", payload, diff)
		}
	}
	if got := invoke(t, f, `1`); got != (answer{Response: "00000000-0000-4000-8000-000000000004 arn:under 1"}) {
		t.Errorf("%+v", got)
	}
	if err := invoke(t, f, strings.Repeat(" ", lambda.PayloadBytesMax+1)).Err; !errors.Is(err, lambda.ErrPayloadTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestInProcessAnswersAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInProcess(t, func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			time.Sleep(time.Hour) // virtual: a handler that does not listen
			return nil, nil
		}, nil)
		start := time.Now()
		want := answer{Response: `{"errorMessage":"RequestId: 00000000-0000-4000-8000-000000000001 Error: Task timed out after 3.00 seconds","errorType":"Sandbox.Timedout"}`, FunctionError: "Unhandled"}
		if diff := cmp.Diff(want, invoke(t, f, `{}`)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("answered after %v", took)
		}
	})
}

func TestInProcessHonoursReservedConcurrencyAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := 1
		f := newInProcess(t, func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, func(c *lambda.InProcessConfig) { c.Reserved = &one })
		first := later(t, f, `{}`)
		synctest.Wait()
		var throttled *lambda.ThrottledError
		if err := invoke(t, f, `{}`).Err; !errors.As(err, &throttled) {
			t.Errorf("error %v, want ThrottledError", err)
		}
		f.Close()
		if got := <-first; got.Err == nil && got.FunctionError == "" {
			t.Errorf("the invocation that Close cancelled succeeded: %+v", got)
		}
		if err := invoke(t, f, `{}`).Err; !errors.Is(err, lambda.ErrClosed) {
			t.Errorf("error after Close: %v", err)
		}
	})
}
