// Package backoff turns an attempt number and a given chance into a delay. It
// draws no randomness itself, so a schedule can be printed and tested exactly.
//
// It decides nothing about what is tried again, and never waits.
package backoff

import (
	"slices"
	"time"
)

// Jitter names how chance shortens a delay.
type Jitter string

// The kinds of jitter. The zero value is [Equal].
const (
	// Equal takes a point in the upper half of the span, never sooner than half of
	// it, so that rows that failed together do not come back together.
	Equal Jitter = "equal"
	// Full takes any point of the span.
	Full Jitter = "full"
	// None takes the whole span.
	None Jitter = "none"
)

// Schedule grows a delay from First, doubling, up to Max.
type Schedule struct {
	First, Max time.Duration
	Jitter     Jitter
}

// Delay returns the wait after the given attempt, counted from 1, for a chance
// in [0,1).
func (s Schedule) Delay(attempt int, chance float64) time.Duration {
	span := s.span(attempt)
	switch s.Jitter {
	case None:
		return span
	case Full:
		return time.Duration(chance * float64(span))
	case Equal:
	}
	return span/2 + time.Duration(chance*float64(span/2))
}

func (s Schedule) span(attempt int) time.Duration {
	span := s.First
	for range attempt - 1 {
		if span >= s.Max/2 {
			return s.Max
		}
		span *= 2
	}
	return span
}

// Profile is a named schedule with its bound.
type Profile struct {
	Name     string
	For      string // whom it suits, in a few words
	Attempts int    // in all, the first one included
	Schedule Schedule
}

// Span returns the time from the first attempt to the last, the shortest and the
// longest that chance allows, not counting the attempts themselves.
func (p Profile) Span() (shortest, longest time.Duration) {
	for attempt := 1; attempt < p.Attempts; attempt++ {
		shortest += p.Schedule.Delay(attempt, 0)
		longest += p.Schedule.span(attempt)
	}
	return shortest, longest
}

// Standard is the profile where none is chosen.
const Standard = "standard"

// Profiles returns the named profiles, the default first.
func Profiles() []Profile {
	return []Profile{
		{Standard, "a dependency that is back within the hour", 8, Schedule{First: 15 * time.Second, Max: time.Hour}},
		{"patient", "a dependency that may be away for days", 20, Schedule{First: time.Minute, Max: 6 * time.Hour}},
		{"brisk", "somebody who would rather look at a failure soon", 6, Schedule{First: 2 * time.Second, Max: time.Minute}},
	}
}

// ProfileNamed returns a profile by its name.
func ProfileNamed(name string) (Profile, bool) {
	all := Profiles()
	i := slices.IndexFunc(all, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return all[i], true
}

// ProfileNames lists the profiles' names.
func ProfileNames() []string {
	var names []string
	for _, p := range Profiles() {
		names = append(names, p.Name)
	}
	return names
}
