package provider

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// canaryMember is where a canary's body says its id, so that the signature covers
// it where the sender's own place for it is an unsigned header.
const canaryMember = "dakghar_canary"

// Canary makes the canary of an id, in this sender's form: the event id that the
// front door will read, the headers beside the signature, and the body. The same
// id makes the same bytes. The id is [webhook.CanaryPrefix] and letters, digits
// and hyphens.
func (a *Adapter) Canary(id string) (webhook.EventID, Sample, error) {
	doc, h := &document{kind: '{'}, signature.Header{"content-type": a.ContentTypes[0]}
	doc.set(canaryMember, id)
	doc.show(a.Shape, time.Time{})
	a.identify(doc, h, SampleOptions{Type: webhook.CanaryType, EventID: id})
	s := Sample{Header: h, Body: doc.bytes()}
	e, err := a.Envelope(h, s.Body)
	if err != nil {
		return "", Sample{}, fmt.Errorf("provider %s: a canary: %w", a.Name, err)
	}
	if e.Type != webhook.CanaryType || e.Handshake != nil {
		return "", Sample{}, fmt.Errorf("provider %s: a canary came out as an event of type %q", a.Name, e.Type)
	}
	return e.EventID, s, nil
}

// IsCanary reports whether a verified request is a canary: all of its body, to the
// byte, and its id. So a sender's event can never be taken for one, though its
// type and its id stand in headers that nobody signed.
func (a *Adapter) IsCanary(e Envelope, body []byte) bool {
	if e.Type != webhook.CanaryType {
		return false
	}
	_, rest, ok := strings.Cut(string(e.EventID), webhook.CanaryPrefix)
	if !ok {
		return false
	}
	id, want, err := a.Canary(webhook.CanaryPrefix + rest)
	return err == nil && id == e.EventID && bytes.Equal(body, want.Body)
}
