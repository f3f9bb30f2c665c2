package delivery

import (
	"slices"
	"time"

	"dakghar/internal/backoff"
)

// Profile is a named way to try again. Its numbers are an adopter's choice.
type Profile struct {
	backoff.Profile
	// Deadline is how long after it was made a delivery may still be attempted.
	Deadline time.Duration
	// Skew is how far the partner's clock may be from ours: a timestamp further
	// away is to be refused.
	Skew time.Duration
}

// Standard is the profile where none is chosen.
const Standard = backoff.Standard

// Profiles returns the named profiles, the default first.
func Profiles() []Profile {
	of := func(name, whom string, attempts int, s backoff.Schedule, deadline time.Duration) Profile {
		return Profile{backoff.Profile{Name: name, For: whom, Attempts: attempts, Schedule: s}, deadline, 5 * time.Minute}
	}
	return []Profile{
		of(Standard, "a partner that is back within a day", 16, backoff.Schedule{First: 5 * time.Second, Max: 8 * time.Hour}, 48*time.Hour),
		of("patient", "a partner that may be away for days", 24, backoff.Schedule{First: 30 * time.Second, Max: 12 * time.Hour}, 7*24*time.Hour),
		of("brisk", "news that are worth nothing tomorrow", 6, backoff.Schedule{First: time.Second, Max: time.Minute, Jitter: backoff.Full}, 15*time.Minute),
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
