package backoff_test

import (
	"testing"
	"time"

	"dakghar/internal/backoff"
)

// Proves W4: delays double to a maximum, and jitter takes the upper half.
func TestDelayDoublesToItsMaximumWithinTheUpperHalf(t *testing.T) {
	t.Parallel()
	s := backoff.Schedule{First: 10 * time.Second, Max: time.Minute}
	tests := []struct {
		name    string
		attempt int
		jitter  float64
		want    time.Duration
	}{
		{"the first attempt waits at least half the first delay", 1, 0, 5 * time.Second},
		{"jitter moves it towards the whole", 1, 0.5, 7500 * time.Millisecond},
		{"the second doubles", 2, 0, 10 * time.Second},
		{"the third doubles again", 3, 0.5, 30 * time.Second},
		{"the fourth is at the maximum", 4, 0, 30 * time.Second},
		{"a late one stays there", 1000, 0.5, 45 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := s.Delay(tt.attempt, tt.jitter); got != tt.want {
				t.Errorf("delay = %s, want %s", got, tt.want)
			}
		})
	}
}
