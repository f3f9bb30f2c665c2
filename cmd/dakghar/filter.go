package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/operator"
	"dakghar/internal/webhook"
)

// filterFlags pick events, for a list and for many at once.
type filterFlags struct {
	endpoint, kind, cause, version, since, until string
	statuses                                     []string
}

// add gives a command the flags; since is the default.
func (f *filterFlags) add(c *cobra.Command, since string) {
	set := c.Flags()
	set.StringVar(&f.endpoint, "endpoint", "", "whose events (default: all endpoints')")
	set.StringSliceVar(&f.statuses, "status", nil, "only events in this state: RECEIVED, PROCESSING, PROCESSED, RETRY, PARKED, FAILED, HELD; repeat it for several")
	set.StringVar(&f.kind, "kind", "", "only this kind: ours (payment.succeeded) or the provider's type (payment_intent.succeeded)")
	set.StringVar(&f.cause, "cause", "", "only events whose last error begins with this code")
	set.StringVar(&f.version, "matched-secret-version", "", "only what this key of --endpoint let in: its version, or the beginning of it")
	set.StringVar(&f.since, "since", since, "received since: how long ago (1h), a day (2026-03-01) or a time; with --status FAILED alone, failed since")
	set.StringVar(&f.until, "until", "", "and until (default: now)")
}

// filterNames are the names of the flags.
func filterNames() []string {
	return []string{"endpoint", "status", "kind", "cause", "matched-secret-version", "since", "until"}
}

func (f *filterFlags) filter(now time.Time) (webhook.Filter, error) {
	w := webhook.Filter{
		Endpoint: webhook.EndpointID(f.endpoint), Statuses: states(f.statuses), Kind: f.kind, Cause: f.cause, MatchedVersion: webhook.KeyVersion(f.version),
	}
	var err error
	w.Since, w.Until, err = span(f.since, f.until, now)
	return w, err
}

// states takes states in any case.
func states(words []string) []webhook.Status {
	var all []webhook.Status
	for _, w := range words {
		all = append(all, webhook.Status(strings.ToUpper(w)))
	}
	return all
}

// span reads --since and --until.
func span(since, until string, now time.Time) (from, to time.Time, err error) {
	if from, err = moment("since", since, now); err != nil {
		return from, to, err
	}
	to, err = moment("until", until, now)
	return from, to, err
}

// moment reads a time in the past: how long ago, also in days, a day in UTC, or RFC 3339.
// Nothing is the zero time.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if n, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseUint(n, 10, 12); err == nil {
			return now.Add(-time.Duration(days) * 24 * time.Hour), nil
		}
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, &operator.Refusal{
		Code: "usage", Usage: true,
		Problem: fmt.Sprintf("--%s %q is no time: say how long ago (1h, 7d), a day (2026-03-01), or a time (2026-03-01T12:00:00Z)", flag, text),
	}
}
