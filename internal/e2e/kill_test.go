package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"dakghar/internal/crashtest"
)

// TestKill ends real processes with SIGKILL at the points where a crash could
// lose or double something. Proves A2, A6, D5, W2, T4.
func TestKill(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, function, point string
	}{
		{"before the inbox commit", "IngressFunction", "before:DynamoDB.TransactWriteItems"},
		{"after the inbox commit, before the answer", "IngressFunction", "after:DynamoDB.TransactWriteItems"},
		{"after the body, before the commit", "IngressFunction", "after:DynamoDB.PutItem#2"},
		{"before publishing", "RelayFunction", "before:SQS.SendMessageBatch"},
		{"after publishing, before marking", "RelayFunction", "after:SQS.SendMessageBatch"},
		{"after marking", "RelayFunction", "after:DynamoDB.UpdateItem"},
		{"after the claim", "ProcessorFunction", "after:DynamoDB.UpdateItem"},
		{"before the business commit", "ProcessorFunction", "before:DynamoDB.TransactWriteItems"},
		{"after the business commit, before the queue's acknowledgement", "ProcessorFunction", "after:DynamoDB.TransactWriteItems"},
		{"before the promise is removed", "ProcessorFunction", "before:DynamoDB.DeleteItem"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mark := filepath.Join(t.TempDir(), "died")
			env := map[string]map[string]string{
				"ProcessorFunction": {"LEASE_SECONDS": shortestLease},
			}
			if env[tt.function] == nil {
				env[tt.function] = map[string]string{}
			}
			env[tt.function][crashtest.PointVariable], env[tt.function][crashtest.MarkVariable] = tt.point, mark
			s := start(t, env)
			answers := s.postUntilAcknowledged(payment("evt_1"))
			s.wantAppliedOnce("evt_1", 90*time.Second)
			// The row may show the commit before the worker has heard of it and died.
			s.await("the end at "+tt.point, time.Minute, func() bool {
				_, err := os.Stat(mark)
				return err == nil
			})
			// And the next event goes through a system that has recovered.
			s.postUntilAcknowledged(payment("evt_2"))
			s.wantAppliedOnce("evt_2", 90*time.Second)
			t.Logf("answers %v", answers)
		})
	}
}
