package webhook

import (
	"slices"
	"time"
)

// Filter picks accepted events, or deliveries; a zero field picks all.
type Filter struct {
	Endpoint EndpointID `json:",omitempty"`
	// Subscription picks deliveries in place of accepted events; Statuses are theirs
	// then, and Kind is a pattern of their types.
	Subscription string   `json:",omitempty"`
	Statuses     []Status `json:",omitempty"`
	// Kind is our name of a kind, or the provider's name of a type.
	Kind string `json:",omitempty"`
	// Object is the provider's id of the object that an event is about.
	Object string `json:",omitempty"`
	// Cause is the code that a row's last error begins with.
	Cause          string     `json:",omitempty"`
	MatchedVersion KeyVersion `json:",omitempty"`
	// Since and Until bound when an event was received, both included; of a list of
	// failed events, when it failed.
	Since, Until time.Time
}

// JobState is the state of a job.
type JobState string

// The states. A job whose command was killed is still RUNNING: when its row was
// last written tells.
const (
	JobRunning   JobState = "RUNNING"
	JobStopped   JobState = "STOPPED" // interrupted, can go on
	JobDone      JobState = "DONE"
	JobCancelled JobState = "CANCELLED"
)

// Over reports whether nothing more comes of a job.
func (s JobState) Over() bool { return s == JobDone || s == JobCancelled }

// Job is a bulk act of an operator: what is done to which events, and how far it
// has come. What it did to each event is told by the event's own row and act,
// which commit together; the counts here are written now and then, and after a
// crash they may be behind.
type Job struct {
	ID  string // sorts by the time of its making
	Act string // "inbox replay"
	// Filter picks the events; its bounds in time do not move while the job runs.
	Filter Filter
	// Handler is the name that a handler must bear for its events to be run again.
	Handler string `json:",omitempty"`
	Who     string // of the last run
	Why     string
	// Rate bounds the events a second.
	Rate int
	// NotBefore is when the first event may be touched; zero for at once.
	NotBefore            time.Time `json:",omitzero"`
	CreatedAt, UpdatedAt time.Time
	State                JobState
	Matched              int // when it was planned
	Done                 int
	// Left counts the events that were not changed, by the code of the refusal.
	Left map[string]int `json:",omitempty"`
	// Cursor says up to where the events were handled; its form is the list's own.
	Cursor string `json:",omitempty"`
	// Revision is raised by every change of the row; a change is guarded by the one it read.
	Revision int64 `json:"-"`
}

// Handled returns how many events the job has come by.
func (j Job) Handled() int {
	n := j.Done
	for _, left := range j.Left {
		n += left
	}
	return n
}

// HasStatus reports whether a filter lets a status pass.
func (f Filter) HasStatus(s Status) bool {
	return len(f.Statuses) == 0 || slices.Contains(f.Statuses, s)
}
