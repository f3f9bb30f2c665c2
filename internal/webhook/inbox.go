package webhook

import "time"

// Status is the state of an inbox row.
type Status string

// The states. RECEIVED and RETRY wait for a worker; PROCESSING is claimed;
// PARKED waits for the events before it in its object's sequence; PROCESSED and
// FAILED are terminal; HELD waits for an operator.
const (
	Received   Status = "RECEIVED"
	Processing Status = "PROCESSING"
	Processed  Status = "PROCESSED"
	Retry      Status = "RETRY"
	Failed     Status = "FAILED"
	Held       Status = "HELD"
	Parked     Status = "PARKED"
)

// Statuses lists every state.
func Statuses() []Status {
	return []Status{Received, Processing, Processed, Retry, Parked, Failed, Held}
}

// Terminal reports whether nothing but an operator takes a row out of s.
func (s Status) Terminal() bool { return s == Processed || s == Failed }

// Waiting reports whether s waits for a worker.
func (s Status) Waiting() bool { return s == Received || s == Retry }

// Outcome says how a PROCESSED row ended.
type Outcome string

// The outcomes.
const (
	Applied        Outcome = "applied"         // the business state changed
	Stale          Outcome = "stale"           // older than what is stored: a no-op
	Ignored        Outcome = "ignored"         // a type that the endpoint keeps and does not act on
	AlreadyApplied Outcome = "already_applied" // the processed mark was there before
)

// Fence numbers the changes of a row. It is raised by one on every change by
// anyone and never reset, so a late writer's guard cannot be true again.
type Fence int64

// LastErrorBytesMax bounds the redacted diagnostic kept on a row.
const LastErrorBytesMax = 120

// Inbox is an accepted event's state row. It never holds the body, and stays
// under 1,024 bytes in storage, one write unit.
type Inbox struct {
	ID        InboxID
	Provider  Provider
	Endpoint  EndpointID
	Tenant    Tenant
	EventID   EventID
	EventType EventType
	ObjectID  string
	// ObjectVersion is the authoritative version that the provider gives the
	// object; empty where it gives none.
	ObjectVersion string
	// ProviderCreatedAt is the provider's own clock; it never decides order.
	ProviderCreatedAt time.Time
	ReceivedAt        time.Time
	BodyID            BodyID // raw_payload_ref
	BodyExpiresAt     time.Time
	Digest            Digest // payload_hash
	MatchedVersion    KeyVersion
	// SameBodyAs names the first row that came with these very bytes, where the
	// provider does not sign its event id.
	SameBodyAs InboxID
	// ConflictWith names the row whose event id this one repeats with another body.
	ConflictWith InboxID
	// Uncovered marks an event whose signature does not cover the body.
	Uncovered bool
	// Unwanted marks an event of a type that the endpoint keeps and does not act on.
	Unwanted bool
	// Hops is how many deliveries led to the event, as its request said.
	Hops int

	Status        Status
	Outcome       Outcome
	Fence         Fence
	AttemptCount  int // the budget spent; a refund or a replay lowers it
	Run           int // raised by a reprocess; the processed mark is per run
	NextAttemptAt time.Time
	LeaseUntil    time.Time
	ClaimID       ClaimID
	LastError     string
	Slot          Slot // where a PARKED row waits; none in every other state
	ProcessedAt   time.Time
	ExpiresAt     time.Time // set only at a terminal state
	// ErasedAt is when an operator erased what was sent; LegalHold keeps it from that.
	ErasedAt  time.Time
	LegalHold bool
}

// Outbox is a promise that somebody will be told about a subject. It exists
// only while the work is in flight.
type Outbox struct {
	ID          OutboxID
	InboxID     InboxID
	Endpoint    EndpointID // the subject's; empty in rows of before it was kept here
	Topic       Topic
	CreatedAt   time.Time
	PublishedAt time.Time
	Gen         Fence     // the subject's fence when the row was inserted
	DueAt       time.Time // when the work becomes due
	WakeAt      time.Time // when the reconciler looks again; never decides what is done
	Wakes       int
	// InDueIndex is set when the row was inserted too early for the queue to
	// carry it: the due index then brings it at its time.
	InDueIndex bool
	// Effect is what a promise of [TopicEffect] is about; nil for every other one.
	Effect *Effect
	// Cursor is how far its fan-out has come: the last subscription that was served.
	Cursor string
}

// PublishAhead is how far ahead of its due time an outbox row is handed to the
// queue: the longest delay a queue message can carry. Rows due later wait in
// the due index.
const PublishAhead = 15 * time.Minute

// firstWake is how long the reconciler gives the relay before it looks itself.
const firstWake = 60 * time.Second

// NewOutbox returns the promise to process a row from due on. The generation is
// the row's fence after the change that this promise is committed with.
func NewOutbox(row Inbox, due, now time.Time) Outbox {
	o := Outbox{
		ID:        NewOutboxID(row.ID, TopicProcess, 0),
		InboxID:   row.ID,
		Endpoint:  row.Endpoint,
		Topic:     TopicProcess,
		CreatedAt: row.ReceivedAt,
		Gen:       row.Fence,
	}
	return o.Postponed(due, now)
}

// Postponed returns the promise with another due time, to be published anew.
func (o Outbox) Postponed(due, now time.Time) Outbox {
	o.PublishedAt = time.Time{}
	o.DueAt, o.WakeAt = due, later(due, now).Add(firstWake)
	o.InDueIndex = due.After(now.Add(PublishAhead))
	return o
}

// HeldWarning is how long before its body expires a held row is looked at again.
const HeldWarning = 5 * 24 * time.Hour

// NewHeldOutbox returns the promise of a held row: nobody is to work on it, and
// somebody must come before its body is gone.
func NewHeldOutbox(row Inbox, now time.Time) Outbox {
	return NewOutbox(row, row.BodyExpiresAt.Add(-HeldWarning), now)
}

// Far reports whether the row is due too late for the queue, as seen at now.
func (o Outbox) Far(now time.Time) bool { return o.DueAt.After(now.Add(PublishAhead)) }

// Delay returns the queue delay that brings the row at its due time, 0 to [PublishAhead].
func (o Outbox) Delay(now time.Time) time.Duration {
	return min(max(o.DueAt.Sub(now), 0), PublishAhead)
}

// Published is the mark of one publication, guarded by the generation that was
// published: a row inserted anew in the meantime is another promise.
type Published struct {
	ID     OutboxID
	Gen    Fence
	At     time.Time
	WakeAt time.Time
	// SeenWakeAt guards a repeated wake by the reconciler: it is the wake time
	// that was read. Zero for the relay, which marks only unpublished rows.
	SeenWakeAt time.Time
}

// Wake bounds: the reconciler looks again after 5 minutes, doubling to 6 hours.
const (
	wakeFirst = 5 * time.Minute
	wakeMax   = 6 * time.Hour
)

// Publish returns the mark for a publication at now.
func (o Outbox) Publish(now time.Time) Published {
	wait := wakeMax
	if o.Wakes < 7 { // 5 min · 2^7 is already beyond 6 h
		wait = min(wakeFirst<<o.Wakes, wakeMax)
	}
	return Published{ID: o.ID, Gen: o.Gen, At: now, WakeAt: later(o.DueAt, now).Add(wait)}
}

// Rewake returns the mark for a repeated publication by the reconciler, valid
// only if nobody has moved the wake time since the row was read.
func (o Outbox) Rewake(now time.Time) Published {
	p := o.Publish(now)
	p.SeenWakeAt = o.WakeAt
	return p
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
