package webhook_test

import (
	"testing"

	"dakghar/internal/webhook"
)

// What cannot be read ends the chain, and nothing is more than a whole one.
func TestHopsAreReadUpToAWholeChain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "0": 0, "1": 1, "4": 4, "5": 4, "255": 4, "256": 4, "99999999999999999999": 4, "-1": 4, "+1": 4, " 1": 4, "1, 2": 4, "one": 4, "0x1": 4,
	} {
		if got := webhook.ParseHops(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
