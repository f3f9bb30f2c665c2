package dynamo_test

import (
	"testing"

	"dakghar/internal/dynamo"
	"dakghar/internal/storetest"
)

// Proves D3, D4, D5, W2, W4 on every place that keeps the rows.
func TestTheSuiteHoldsWhereverTheRowsAreKept(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) { storetest.Run(t, s) })
}
