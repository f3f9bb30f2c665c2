package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/backoff"
	"dakghar/internal/operator"
)

func (a *app) profileCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "profile",
		Short: "See the retry schedules in wall time",
		Long: `A retry profile says how often, and after how long, an event is tried again while its
provider or its handler fails. A stack has one (the template's RetryProfile). What is our
own fault is tried without a bound, and spends no attempt.`,
		Example: `  dakghar profile show standard`,
	}, a.profileList(), a.profileShow())
}

func (a *app) profileList() *cobra.Command {
	return a.command(&cobra.Command{
		Use:     "list",
		Short:   "List the profiles",
		Example: `  dakghar profile list --json`,
	}, func(context.Context, []string) error {
		var rows [][]string
		for _, p := range backoff.Profiles() {
			if a.json {
				if err := a.printJSON(profileJSON(p)); err != nil {
					return err
				}
				continue
			}
			shortest, longest := p.Span()
			rows = append(rows, []string{p.Name, number(p.Attempts), round(shortest) + " to " + round(longest), p.For})
		}
		if a.json {
			return nil
		}
		return a.table("PROFILE ATTEMPTS LASTS FOR", rows)
	})
}

func (a *app) profileShow() *cobra.Command {
	return a.command(&cobra.Command{
		Use:     "show NAME",
		Short:   "Show when each attempt comes",
		Example: `  dakghar profile show patient`,
	}, func(_ context.Context, args []string) error {
		p, ok := backoff.ProfileNamed(args[0])
		if !ok {
			return &operator.Refusal{
				Code: "profile_unknown", Usage: true, Problem: "there is no profile " + args[0] + "; there are " + strings.Join(backoff.ProfileNames(), ", "),
			}
		}
		if a.json {
			return a.printJSON(profileJSON(p))
		}
		var rows [][]string
		for _, at := range attemptsOf(p) {
			rows = append(rows, []string{number(at.Attempt), round(at.earliest), round(at.latest)})
		}
		return a.table("ATTEMPT EARLIEST LATEST", rows)
	})
}

// attemptView is when an attempt comes, counted from the first one.
type attemptView struct {
	Attempt          int     `json:"attempt"`
	EarliestSeconds  float64 `json:"earliest_s"`
	LatestSeconds    float64 `json:"latest_s"`
	earliest, latest time.Duration
}

type profileView struct {
	Name     string        `json:"name"`
	For      string        `json:"for"`
	Jitter   string        `json:"jitter"`
	Attempts []attemptView `json:"attempts"`
}

func profileJSON(p backoff.Profile) profileView {
	jitter := p.Schedule.Jitter
	if jitter == "" {
		jitter = backoff.Equal
	}
	return profileView{p.Name, p.For, string(jitter), attemptsOf(p)}
}

func attemptsOf(p backoff.Profile) []attemptView {
	views := []attemptView{{Attempt: 1}}
	for attempt := 2; attempt <= p.Attempts; attempt++ {
		until := p
		until.Attempts = attempt
		earliest, latest := until.Span()
		views = append(views, attemptView{attempt, earliest.Seconds(), latest.Seconds(), earliest, latest})
	}
	return views
}

// round prints a duration for people, in one unit.
func round(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.1f min", d.Minutes())
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
