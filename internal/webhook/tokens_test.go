package webhook_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/webhook"
)

// Proves V1: a row fills with its own time and never above what it may hold,
// and no clock moves it back.
func TestARowOfTokensFillsWithItsTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	row := func(level int64, after time.Duration) webhook.Tokens {
		return webhook.Tokens{Level: level, At: at.Add(after), Seen: 7}
	}
	for _, tt := range []struct {
		name string
		row  webhook.Tokens
		now  time.Time
		want webhook.Tokens
	}{
		{"one that never was is full", webhook.Tokens{Seen: 7}, at, row(30_000, 0)},
		{"a rate is thousandths a millisecond", row(5_000, 0), at.Add(250 * time.Millisecond), row(7_500, 250*time.Millisecond)},
		{"less than a millisecond waits for the next time", row(5_000, 0), at.Add(999 * time.Microsecond), row(5_000, 0)},
		{"a debt is paid first", row(-20_000, 0), at.Add(time.Second), row(-10_000, time.Second)},
		{"just full", row(20_000, 0), at.Add(time.Second), row(30_000, time.Second)},
		{"no more than full", row(20_000, 0), at.Add(time.Second + time.Millisecond), row(30_000, time.Second+time.Millisecond)},
		{"after a century", row(-20_000, 0), at.AddDate(100, 0, 0), webhook.Tokens{Level: 30_000, At: at.AddDate(100, 0, 0), Seen: 7}},
		{"one that held more than it may by now", row(90_000, 0), at.Add(time.Second), row(30_000, time.Second)},
		{"a clock that is behind changes nothing", row(5_000, 0), at.Add(-30 * time.Second), row(5_000, 0)},
	} {
		if diff := cmp.Diff(tt.want, tt.row.Refilled(10, 30, tt.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
