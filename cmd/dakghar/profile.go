package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dakghar/internal/backoff"
	"dakghar/internal/delivery"
	"dakghar/internal/operator"
)

func (a *app) profileCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "profile",
		Short: "See the retry schedules in wall time",
		Long: `A retry profile says how often, and after how long, something is tried again. Inbound,
an event is, while its provider or its handler fails; a stack has one profile (the
template's RetryProfile). Outbound, a delivery is, while its partner fails; each
subscription has one (subscription create --profile), and it also says when a delivery
expires. What is our own fault is tried again without spending an attempt.`,
		Example: `  dakghar profile show standard
  dakghar profile show patient --outbound`,
	}, a.profileList(), a.profileShow())
}

// profile is a schedule of either side.
type profile struct {
	backoff.Profile

	side string
	// deadline and skew are an outbound one's; zero inbound.
	deadline, skew time.Duration
}

const (
	inbound  = "inbound"
	outbound = "outbound"
)

// profiles are the inbound ones and the outbound ones, or the latter alone.
func profiles(outboundAlone bool) []profile {
	var all []profile
	if !outboundAlone {
		for _, p := range backoff.Profiles() {
			all = append(all, profile{Profile: p, side: inbound})
		}
	}
	for _, p := range delivery.Profiles() {
		all = append(all, profile{p.Profile, outbound, p.Deadline, p.Skew})
	}
	return all
}

func (a *app) profileList() *cobra.Command {
	var out bool
	c := a.command(&cobra.Command{
		Use:     "list",
		Short:   "List the profiles",
		Example: `  dakghar profile list --json`,
	}, func(context.Context, []string) error {
		return list[profile]{
			header: "SIDE PROFILE ATTEMPTS LASTS EXPIRES FOR",
			row: func(p profile) []string {
				shortest, longest := p.Span()
				expires := ""
				if p.deadline > 0 {
					longest, expires = min(longest, p.deadline), round(p.deadline)
				}
				return []string{p.side, p.Name, number(p.Attempts), round(shortest) + " to " + round(longest), expires, p.For}
			},
			view: func(p profile) any { return profileJSON(p) },
		}.print(a, whole(profiles(out)), false)
	})
	c.Flags().BoolVar(&out, "outbound", false, "only those of deliveries to partners")
	return c
}

func (a *app) profileShow() *cobra.Command {
	var out bool
	c := a.command(&cobra.Command{
		Use:   "show NAME",
		Short: "Show when each attempt comes",
		Example: `  dakghar profile show patient
  dakghar profile show brisk --outbound`,
	}, func(_ context.Context, args []string) error {
		p, err := findProfile(args[0], out)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(profileJSON(p))
		}
		var rows [][]string
		for _, at := range attemptsOf(p) {
			rows = append(rows, []string{number(at.Attempt), round(at.earliest), round(at.latest)})
		}
		if err := a.table("ATTEMPT EARLIEST LATEST", rows); err != nil || p.deadline == 0 {
			return err
		}
		a.printf("No attempt begins later than %s after the delivery was made; it is EXPIRED then.\n"+
			"A partner refuses a timestamp that is more than %s from its own clock.\n", round(p.deadline), round(p.skew))
		return nil
	})
	c.Flags().BoolVar(&out, "outbound", false, "the one of deliveries to partners, in place of events")
	return c
}

func findProfile(name string, out bool) (profile, error) {
	var names []string
	side := inbound
	if out {
		side = outbound
	}
	for _, p := range profiles(out) {
		if p.side != side {
			continue
		}
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return profile{}, &operator.Refusal{
		Code: "profile_unknown", Usage: true, Problem: "there is no profile " + name + "; there are " + strings.Join(names, ", "),
	}
}

// attemptView is when an attempt comes, counted from the first one.
type attemptView struct {
	Attempt          int     `json:"attempt"`
	EarliestSeconds  float64 `json:"earliest_s"`
	LatestSeconds    float64 `json:"latest_s"`
	earliest, latest time.Duration
}

type profileView struct {
	Side      string        `json:"side"`
	Name      string        `json:"name"`
	For       string        `json:"for"`
	Jitter    string        `json:"jitter"`
	DeadlineS *float64      `json:"deadline_s"` // null inbound, where there is none
	SkewS     *float64      `json:"skew_s"`
	Attempts  []attemptView `json:"attempts"`
}

func profileJSON(p profile) profileView {
	jitter := p.Schedule.Jitter
	if jitter == "" {
		jitter = backoff.Equal
	}
	v := profileView{Side: p.side, Name: p.Name, For: p.For, Jitter: string(jitter), Attempts: attemptsOf(p)}
	if p.deadline > 0 {
		deadline, skew := p.deadline.Seconds(), p.skew.Seconds()
		v.DeadlineS, v.SkewS = &deadline, &skew
	}
	return v
}

// attemptsOf are the attempts that chance lets come before the deadline.
func attemptsOf(p profile) []attemptView {
	views := []attemptView{{Attempt: 1}}
	for attempt := 2; attempt <= p.Attempts; attempt++ {
		until := p.Profile
		until.Attempts = attempt
		earliest, latest := until.Span()
		if p.deadline > 0 {
			if earliest > p.deadline {
				break
			}
			latest = min(latest, p.deadline)
		}
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
