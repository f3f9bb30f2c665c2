package fault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"dakghar/internal/fault"
)

// Proves W4: every error has exactly one kind and a stable code, and an unknown
// one may be tried again within the budget.
func TestEveryErrorIsClassified(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	tests := []struct {
		name string
		err  error
		kind fault.Kind
		code string
	}{
		{"a fault", fault.New(fault.Permanent, "schema", cause), fault.Permanent, "schema"},
		{"a wrapped fault", fmt.Errorf("read: %w", fault.New(fault.Ours, "store", nil)), fault.Ours, "store"},
		{"a joined fault", errors.Join(fault.New(fault.Ours, "store", nil), context.Canceled), fault.Ours, "store"},
		{"an ended context is ours", context.DeadlineExceeded, fault.Ours, "deadline"},
		{"anything else is theirs", cause, fault.Theirs, "unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if kind, code := fault.KindOf(tt.err), fault.CodeOf(tt.err); kind != tt.kind || code != tt.code {
				t.Errorf("kind, code = %s, %s; want %s, %s", kind, code, tt.kind, tt.code)
			}
		})
	}
	if err := fault.New(fault.Ours, "store", cause); !errors.Is(err, cause) || err.Error() != "store: cause" {
		t.Errorf("error %q does not carry its cause", err)
	}
}
