package guard_test

import (
	"net/http"
	"strings"
	"testing"

	"dakghar/internal/devstack/guard"
	"dakghar/internal/devstack/iam"
)

// BenchmarkLargeItem is what judging adds to a put of a body's row: the local
// stack's part in the figures of the bench.
func BenchmarkLargeItem(b *testing.B) {
	p, err := iam.Parse([]byte(policy))
	if err != nil {
		b.Fatal(err)
	}
	w := &world{}
	w.guard = guard.New(guard.Config{
		Account: "000000000000", Region: "us-east-1", Roles: map[string]iam.Role{"WorkerFunction": {Name: "WorkerRole", Policy: p}},
		PartitionKeys: map[string]string{"T": "pk"},
	})
	w.handler = w.guard.Before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.reached++ }))
	body := `{"TableName":"T","Item":{"pk":{"S":"endpoint#a"},"z":{"B":"` + strings.Repeat("QUJD", 11<<10) + `"}}}`
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		w.call("WorkerFunction", "DynamoDB_20120810.PutItem", body)
	}
	if w.reached == 0 {
		b.Error("nothing was let through")
	}
}
