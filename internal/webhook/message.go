package webhook

// WakeVersion is the version of the queue message. A reader refuses newer ones
// by leaving them in the queue for a newer reader.
const WakeVersion = 1

// Wake is the queue message: somebody should look at this row. It is never the
// record; what is done is always read from the row itself.
type Wake struct {
	Version  int      `json:"v"`
	OutboxID OutboxID `json:"outbox_id"`
	InboxID  InboxID  `json:"inbox_id"`
	// Endpoint is the subject's; empty in a message of before it was told.
	Endpoint EndpointID `json:"endpoint_id,omitempty"`
	// Delivery is what a message of [TopicDeliver] is about; such a message has no
	// outbox row.
	Delivery string `json:"delivery_id,omitempty"`
	Topic    Topic  `json:"topic"`
	Gen      Fence  `json:"gen"`
}

// NewWake returns the message for an outbox row.
func NewWake(o Outbox) Wake {
	return Wake{Version: WakeVersion, OutboxID: o.ID, InboxID: o.InboxID, Endpoint: o.Endpoint, Topic: o.Topic, Gen: o.Gen}
}
