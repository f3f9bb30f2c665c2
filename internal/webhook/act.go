package webhook

import "time"

// Act is the record of what an operator did. An act that changes a row commits
// together with its record.
type Act struct {
	ID      string // drawn at random
	At      time.Time
	Name    string // "secret rotate"
	Subject string // what it was done to: "endpoint demo", "event in_…"
	Who     string
	Why     string // the operator's own words, may be empty
	// Job names the job that the act was part of; empty for an act by itself. A job
	// does at most one act to a subject.
	Job string
}
