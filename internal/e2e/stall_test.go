package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dakghar/internal/devstack/fault"
)

// TestStalledStores holds every call of one service, as an outage does: each
// request is answered all the same, and nothing false is acknowledged. How soon
// is measured by the benchmark. Proves L2, A2, V11, T5.
func TestStalledStores(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"dynamodb", "kms", "s3", "secretsmanager"} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			s := start(t, map[string]map[string]string{"IngressFunction": {"BODY_INLINE_BYTES": "1024"}})
			if err := s.stack.Faults().Add(fault.Fault{Service: service, Mode: fault.Stall}); err != nil {
				t.Fatal(err)
			}
			large := payment("evt_1")
			large.BodyBytes = 200 << 10 // large enough for the bucket
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for i := range 3 {
				if status, result := s.post(ctx, large); status != 503 {
					t.Errorf("request %d: status %d %s, want 503", i, status, result)
				}
			}
			s.stack.Faults().Clear("")
			s.postUntilAcknowledged(large)
			s.wantAppliedOnce("evt_1", 60*time.Second)
		})
	}
}

// TestDroppedConnections loses answers after the work was done, for every
// service in turn: the provider's retry meets what was committed. Proves A2, T4.
func TestDroppedConnections(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i, f := range []fault.Fault{
		{Service: "dynamodb", Operation: "TransactWriteItems", Mode: fault.DropAfter, Count: 1},
		{Service: "dynamodb", Operation: "TransactWriteItems", Mode: fault.DropAfter, Count: 2},
		{Service: "dynamodb", Operation: "UpdateItem", Mode: fault.DropAfter, Count: 1},
		{Service: "sqs", Operation: "SendMessageBatch", Mode: fault.DropAfter, Count: 1},
	} {
		if err := s.stack.Faults().Add(f); err != nil {
			t.Fatal(err)
		}
		event := fmt.Sprintf("evt_drop_%d", i)
		s.postUntilAcknowledged(payment(event))
		s.wantAppliedOnce(event, 60*time.Second)
		s.stack.Faults().Clear("")
	}
}
