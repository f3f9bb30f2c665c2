package ordering

import "dakghar/internal/webhook"

// Place says where an event's number stands in its object's sequence.
type Place int

// The places.
const (
	// Next: it is this event's turn.
	Next Place = iota + 1
	// Passed: this number was applied, or was skipped by an operator.
	Passed
	// Early: events before it are missing, and there is room to wait.
	Early
	// Crowded: events before it are missing, and its place is another event's, or
	// no place is left.
	Crowded
)

func (p Place) String() string { return [...]string{"", "next", "passed", "early", "crowded"}[p] }

// PlaceOf returns where number n of event id stands. An event that is parked in
// the place already is early, not crowded: a lost reply is found that way.
func PlaceOf(s webhook.Sequence, n int64, id webhook.InboxID) Place {
	holder, taken := s.Parked[n]
	switch {
	case n <= s.Last:
		return Passed
	case n == s.Last+1:
		return Next
	case taken && holder == id:
		return Early
	case taken || len(s.Parked) >= webhook.ParkedMax:
		return Crowded
	}
	return Early
}
