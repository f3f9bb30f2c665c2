package webhook

import "time"

// Mark is the processed record of one run of an event, committed with its
// business writes: the proof that it was applied, which a second worker meets.
type Mark struct {
	InboxID InboxID
	Run     int
	At      time.Time
	// ExpiresAt is at least [MarkOutlives] after the inbox row's; zero keeps the
	// mark for ever, for providers that sign no time: there a captured request
	// never becomes too old to be sent again.
	ExpiresAt time.Time
}

// MarkOutlives is how much longer than its inbox row a mark lives.
const MarkOutlives = 30 * 24 * time.Hour

// Verdict says how the store answered a completing transaction.
type Verdict int

// The verdicts, in the order in which the store's reasons are read.
const (
	// Committed: everything was written, now or by an earlier call of ours whose reply was lost.
	Committed Verdict = iota + 1
	// ClaimLost: the row is no longer ours; nothing was written and nothing is left to do.
	ClaimLost
	// MarkExists: this run was applied before.
	MarkExists
	// TurnMoved: the sequence is not as it was read; read it and decide again.
	TurnMoved
	// NotNewer: a condition tagged Newer did not hold; the event is stale.
	NotNewer
	// RivalWrote: a condition tagged Unchanged did not hold; decide again.
	RivalWrote
	// RuleRefused: a condition tagged Domain did not hold; the handler decides.
	RuleRefused
)

func (v Verdict) String() string {
	names := [...]string{"", "committed", "claim_lost", "mark_exists", "turn_moved", "not_newer", "rival_wrote", "rule_refused"}
	return names[v]
}

// Completion is everything that a completing transaction writes.
type Completion struct {
	Change Change
	Claim  ClaimID
	// Mark is the processed mark; nil where it was found to be there.
	Mark    *Mark
	Actions []Action
	// Turn is the step of the object's sequence that goes with it; nil without one.
	Turn *Turn
	// Promises are those of the event's effects.
	Promises []Outbox
}

// Body is a raw body to be stored.
type Body struct {
	ID      BodyID
	Tenant  Tenant
	Raw     []byte
	InboxID InboxID // the event it came with
	PutID   string  // names this very put, drawn at random
	At      time.Time
	// Lasting asks for a whole life from At, but for a day: bytes that are there and
	// end sooner are put anew. It is for those whose row nobody renews.
	Lasting bool
}

// Placed says where a body stands after a put or a renewal.
type Placed struct {
	ExpiresAt time.Time
	// Existed is set when these bytes were there before; FirstInbox is the event
	// they first came with.
	Existed    bool
	FirstInbox InboxID
}

// OutboxPage is one page of a scan of the outbox.
type OutboxPage struct {
	Rows []Outbox
	// Unreadable counts rows that are no outbox rows.
	Unreadable int
	// Next continues the scan; empty at the end.
	Next string
}
