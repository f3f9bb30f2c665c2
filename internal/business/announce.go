package business

import (
	"encoding/json"

	"dakghar/internal/webhook"
)

// announced is what partners are told about an object. Its encoding is part of
// what we promise them: members are added, never changed or taken away.
type announced struct {
	Event  announcedEvent  `json:"event"`
	Object announcedObject `json:"object"`
}

type announcedEvent struct {
	ID       string `json:"id"` // the inbox id
	Provider string `json:"provider"`
	Type     string `json:"type"` // the provider's name
}

type announcedObject struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	ParentID string `json:"parent_id,omitempty"`
	State    string `json:"state,omitempty"`
	Version  *int64 `json:"version,omitempty"`
	Amount   *int64 `json:"amount,omitempty"` // minor units
	Currency string `json:"currency,omitempty"`
}

// Announce returns what partners are told about an event: its kind as the type,
// and the object as the event's facts say it is. The built-in handlers announce
// every event that they apply; a handler of yours adds it to its plan's effects
// where partners are to know.
func Announce(ev webhook.Event) webhook.Announcement {
	f := ev.Facts
	a := announced{
		Event:  announcedEvent{ID: string(ev.InboxID), Provider: string(ev.Provider), Type: string(ev.Type)},
		Object: announcedObject{Type: string(f.ObjectType), ID: f.ObjectID, ParentID: f.ParentID, State: f.State},
	}
	if f.HasVersion {
		a.Object.Version = &f.Version
	}
	if f.Currency != "" {
		a.Object.Amount, a.Object.Currency = &f.Amount, f.Currency
	}
	data, err := json.Marshal(a)
	if err != nil {
		panic("business: an announcement does not encode: " + err.Error())
	}
	return webhook.Announcement{Type: string(ev.Kind), Data: data}
}
