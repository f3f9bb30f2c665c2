package webhook

// A canary is an event that we send ourselves, through the front door and signed
// with the endpoint's own key, to see that events arrive. It is kept as one that
// the endpoint does not act on: whatever its body says, no handler ever sees it.
const (
	// CanaryType is its type, which no provider sends.
	CanaryType EventType = "dakghar.canary"
	// CanaryPrefix is what its id begins with.
	CanaryPrefix = "dakghar-canary-"
)

// Canary reports whether the row is a canary's, and so says nothing of what its
// provider does.
func (row Inbox) Canary() bool { return row.Unwanted && row.EventType == CanaryType }
