package lambda_test

import (
	"fmt"
	"testing"

	"dakghar/internal/devstack/lambda"
)

// BenchmarkInvoke is what the imitation of Lambda itself costs an invocation.
func BenchmarkInvoke(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			pool := benchPool(b)
			b.SetParallelism(callers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, functionError, err := pool.Invoke(b.Context(), []byte(`{}`)); err != nil || functionError != "" {
						b.Errorf("%s %v", functionError, err)
						return
					}
				}
			})
			b.ReportMetric(float64(len(pool.Processes())), "processes")
		})
	}
}

func benchPool(b *testing.B) *lambda.Pool {
	b.Helper()
	cfg := config()
	cfg.SandboxesMax = 32
	pool, err := lambda.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return pool
}
