package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A time in the past can be said in each of the ways that its refusal names.
func TestAMomentIsReadHoweverItIsSaid(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	got := map[string]string{}
	for _, text := range []string{"", "90m", "0d", "7d", "400d", "2026-02-03", "2026-02-03T04:05:06+01:00", "-1h", "-1d", "1.5d", "d", "99999d", "yesterday"} {
		at, err := moment("since", text, now)
		if got[text] = when(at); err != nil {
			got[text] = "refused"
		}
	}
	want := map[string]string{
		"": "", "90m": "2026-03-01T10:30:00.000Z", "0d": "2026-03-01T12:00:00.000Z", "7d": "2026-02-22T12:00:00.000Z", "400d": "2025-01-25T12:00:00.000Z",
		"2026-02-03": "2026-02-03T00:00:00.000Z", "2026-02-03T04:05:06+01:00": "2026-02-03T03:05:06.000Z",
		"-1h": "refused", "-1d": "refused", "1.5d": "refused", "d": "refused", "99999d": "refused", "yesterday": "refused",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("moments (-want +got):\n%s", diff)
	}
}
