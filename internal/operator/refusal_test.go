package operator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
)

// A length of time is written without the zeros that nobody says.
func TestASpanIsWrittenAsAPersonSaysIt(t *testing.T) {
	t.Parallel()
	got := map[time.Duration]string{}
	want := map[time.Duration]string{
		0: "0s", 20 * time.Second: "20s", time.Minute: "1m", 10*time.Minute + 30*time.Second: "10m30s", 90 * time.Minute: "1h30m",
		24 * time.Hour: "24h", 20 * time.Hour: "20h", time.Hour + time.Second: "1h0m1s", 1500 * time.Millisecond: "1.5s",
	}
	for d := range want {
		got[d] = operator.Span(d)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}
