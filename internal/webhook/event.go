package webhook

import "time"

// ObjectType is the canonical type of the thing an event is about.
type ObjectType string

// The object types of the main uses.
const (
	Payment      ObjectType = "payment"
	Order        ObjectType = "order"
	Subscription ObjectType = "subscription"
	Refund       ObjectType = "refund"
	Dispute      ObjectType = "dispute"
	Account      ObjectType = "account"
	Object       ObjectType = "object" // a generic, versioned object
)

// Policy says what decides whether an event is newer than what is stored.
// Arrival, receipt and a bare provider timestamp never do.
type Policy string

// The policies.
const (
	// ByVersion writes only if the incoming version is greater than the stored one.
	ByVersion Policy = "version"
	// Monotonic follows a declared state graph; a step backwards or a repeated
	// step is stale.
	Monotonic Policy = "monotonic"
	// ByFetch takes the event as a hint only: the object's current state is read at
	// the provider, under a ticket that orders concurrent reads.
	ByFetch Policy = "fetch"
	// BySequence applies events in the order of their numbers, one by one, and parks
	// those that came before their turn.
	BySequence Policy = "sequence"
)

// Event is one logical event as a handler sees it: verified, durable, claimed,
// and read into canonical words by the provider's adapter.
type Event struct {
	InboxID  InboxID
	Run      int
	Tenant   Tenant
	Provider Provider
	Endpoint EndpointID
	EventID  EventID
	Type     EventType
	Kind     Kind
	Policy   Policy
	Facts    Facts
	// Body is the raw body, exactly as it was signed.
	Body []byte
	// Current is the object as its provider had it when it was read under Ticket;
	// nil but under [ByFetch]. Facts are then its facts and not the body's.
	Current []byte
	// Ticket orders the reads of one object: a higher one began later. 0 but under [ByFetch].
	Ticket int64
	// Gone is set when the provider no longer has the object.
	Gone bool
	// DomainRefused is set when the handler's previous plan was refused by one of
	// its own domain conditions, so that it can decide what that means.
	DomainRefused bool
}

// Facts are what an adapter reads from a verified body, in canonical words.
type Facts struct {
	ObjectType ObjectType
	ObjectID   string
	// Version is the provider's authoritative version of the object, 0 or more;
	// HasVersion is false where the provider gives none.
	Version    int64
	HasVersion bool
	// State is what the event says the object has become, in the words of the
	// object type's state graph. Empty where the kind sets no state.
	State string
	// Amount is in the currency's minor unit; Currency is the ISO 4217 code in
	// capitals. Both are zero where no money is concerned.
	Amount   int64
	Currency string
	// Credit is the event's effect on the object's ledger balance: +1 adds the
	// amount, -1 takes it, 0 leaves the balance alone.
	Credit int
	// ParentID is the object this one belongs to: a refund's payment.
	ParentID string
	// UpdatedAt is the provider's own time of the object's last change, where a
	// read of the object showed one: evidence against an older read, and only that.
	UpdatedAt time.Time
	// CreatedAt is the provider's clock. It is shown to people and never decides order.
	CreatedAt time.Time
}
