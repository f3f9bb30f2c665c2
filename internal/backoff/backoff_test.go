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

// Proves W4: jitter has a name, and each kind its own span.
func TestJitterIsWhatItsNameSays(t *testing.T) {
	t.Parallel()
	for jitter, want := range map[backoff.Jitter][2]time.Duration{
		"":            {5 * time.Second, 7500 * time.Millisecond},
		backoff.Equal: {5 * time.Second, 7500 * time.Millisecond},
		backoff.Full:  {0, 5 * time.Second},
		backoff.None:  {10 * time.Second, 10 * time.Second},
	} {
		s := backoff.Schedule{First: 10 * time.Second, Max: time.Minute, Jitter: jitter}
		if got := [2]time.Duration{s.Delay(1, 0), s.Delay(1, 0.5)}; got != want {
			t.Errorf("%q: %v, want %v", jitter, got, want)
		}
	}
}

// Proves W4: the named profiles last as long as their description says.
func TestTheProfilesLastAsLongAsTheySay(t *testing.T) {
	t.Parallel()
	want := map[string][2]time.Duration{
		"standard": {15 * time.Second * 127 / 2, 15 * time.Second * 127},
		"brisk":    {31 * time.Second, 62 * time.Second},
	}
	for _, p := range backoff.Profiles() {
		shortest, longest := p.Span()
		if w, exact := want[p.Name]; exact && (shortest != w[0] || longest != w[1]) {
			t.Errorf("%s lasts from %s to %s, want %s to %s", p.Name, shortest, longest, w[0], w[1])
		}
		if p.Name == "patient" && (shortest < 24*time.Hour || longest > 4*24*time.Hour) {
			t.Errorf("patient lasts from %s to %s, want one to four days", shortest, longest)
		}
		if got, ok := backoff.ProfileNamed(p.Name); !ok || got != p {
			t.Errorf("%s is found as %v", p.Name, got)
		}
	}
	if _, ok := backoff.ProfileNamed("eager"); ok {
		t.Error("an unknown profile is found")
	}
}
