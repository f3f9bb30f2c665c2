package webhook

import "time"

// Letter is a message in a dead-letter queue, as one reading found it.
type Letter struct {
	ID string // the queue's own
	// Handle lets this reading give the letter back or remove it; a later reading
	// makes it void.
	Handle string
	Body   string
	// SentAt is when the message was first sent, by the queue's clock.
	SentAt time.Time
	// Receives is how often it was handed out so far, this reading included.
	Receives int
}

// Depth is about how many letters a queue holds.
type Depth struct {
	Waiting int // can be received
	Hidden  int // received by somebody, and not given back or removed yet
}

// Move is a move of a dead-letter queue's messages back to where they came from.
// The queue's own service does it, whether or not anybody looks on.
type Move struct {
	StartedAt time.Time
	Running   bool
	Moved     int // about
	ToMove    int // about, when it began
	// Failure is the service's reason, empty unless it failed.
	Failure string
}
