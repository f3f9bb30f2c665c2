package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Envelope is what the pipeline needs to know of an event before it is stored.
type Envelope struct {
	EventID webhook.EventID
	Type    webhook.EventType
	// ObjectID and ObjectVersion are empty where the event has none that could
	// be kept. Whether that is a fault is decided when the event is processed.
	ObjectID, ObjectVersion string
	CreatedAt               time.Time // zero where the event has none
	// Handshake is set where the body is not an event but the sender's question
	// whether the address is ours. Answer it and store nothing.
	Handshake *Answer
}

// challengeBytesMax bounds what a handshake may have us repeat.
const challengeBytesMax = 256

// Envelope reads a verified body, and the unsigned headers beside it. The error
// is a [*BadBody].
func (a *Adapter) Envelope(h signature.Header, body []byte) (Envelope, error) {
	doc, form, err := a.document(body)
	if err != nil {
		return Envelope{}, err
	}
	if !agrees(h["content-type"], form) {
		return Envelope{}, bad(CodeMalformed)
	}
	v, err := scan(doc, a.paths())
	if err != nil {
		return Envelope{}, err
	}
	if a.Handshake != nil && v.holds(a.Handshake.When) {
		answer, err := a.Handshake.answer(v, doc)
		return Envelope{Handshake: answer}, err
	}
	if !v.all(a.Shape) {
		return Envelope{}, bad(CodeUnexpected)
	}
	return a.event(h, v)
}

func (a *Adapter) event(h signature.Header, v values) (Envelope, error) {
	id, err := a.eventID(h, v)
	if err != nil {
		return Envelope{}, err
	}
	eventType, err := a.eventType(h, v)
	if err != nil {
		return Envelope{}, err
	}
	e := Envelope{EventID: id, Type: eventType, CreatedAt: a.created(v)}
	k, ok := a.Kind(eventType)
	if !ok {
		e.ObjectID = keptID(v, a.ObjectID, "")
		return e, nil
	}
	if !v.all(k.Shape) {
		return Envelope{}, bad(CodeTypeMismatch)
	}
	e.ObjectID = keptID(v, k.Read.ID, k.Read.IDPrefix)
	if n, ok := v.first(k.Read.Version).integer(); ok && n >= 0 {
		e.ObjectVersion = strconv.FormatInt(n, 10)
	}
	return e, nil
}

func (a *Adapter) eventID(h signature.Header, v values) (webhook.EventID, error) {
	for _, s := range a.ID {
		text, ok, valid := s.read(h, v, visible)
		switch {
		case !ok:
			continue
		case !valid:
			return "", bad(CodeBadID)
		case len(s.Parts) > 1:
			text = fit(text)
		}
		if len(text) > webhook.EventIDBytesMax {
			return "", bad(CodeBadID)
		}
		return webhook.EventID(text), nil
	}
	return "", bad(CodeNoID)
}

// fit keeps a joined id under the bound. Its parts are the sender's and may be
// long together; refusing the event for that would lose it.
func fit(id string) string {
	if len(id) <= webhook.EventIDBytesMax {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (a *Adapter) eventType(h signature.Header, v values) (webhook.EventType, error) {
	text, ok, valid := a.Type.read(h, v, typeByte)
	switch {
	case !ok:
		return "", bad(CodeNoType)
	case !valid || len(text) > webhook.EventTypeBytesMax:
		return "", bad(CodeBadType)
	}
	return webhook.EventType(text), nil
}

func (a *Adapter) created(v values) time.Time {
	return timeOf(v.first(a.Created))
}

// read joins the parts of a source. ok is false if one is not there; valid is
// false if one has a byte that is not allowed, or a header's part the text that
// stands between parts.
func (s Source) read(h signature.Header, v values, allowed func(byte) bool) (text string, ok, valid bool) {
	valid = true
	var parts []string
	for _, p := range s.Parts {
		part, there, scalar := p.read(h, v)
		if !there {
			if p.Optional {
				continue
			}
			return "", false, true
		}
		foreign := slices.ContainsFunc([]byte(part), func(c byte) bool { return !allowed(c) })
		if !scalar || foreign || s.splits(p, part) {
			valid = false
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, s.Join), len(parts) > 0, valid
}

// splits reports whether a header's part could be read as two. A comma there is
// how a transport joins two headers.
func (s Source) splits(p Place, part string) bool {
	if p.Header == "" {
		return false
	}
	return strings.Contains(part, ",") || len(s.Parts) > 1 && strings.Contains(part, s.Join)
}

func (p Place) read(h signature.Header, v values) (text string, there, scalar bool) {
	if p.Header != "" {
		text = h[p.Header]
		return text, text != "", true
	}
	l := v.at(p.Path)
	if l.kind == '"' && l.text == "" {
		return "", false, true
	}
	return l.text, l.there(), l.kind == '"'
}

func visible(c byte) bool { return c > ' ' && c < 0x7f }

func typeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_.-/:", c) >= 0
}

// keptID returns an object's id, or nothing if it cannot be kept and shown.
func keptID(v values, paths []string, prefix string) string {
	if id, ok := objectID(v, paths, prefix); ok {
		return id
	}
	return ""
}

// objectID returns an object's id, and whether it can be kept and shown.
func objectID(v values, paths []string, prefix string) (string, bool) {
	id, ok := v.first(paths).scalar()
	if !ok || id == "" {
		return "", false
	}
	id = prefix + id
	foreign := slices.ContainsFunc([]byte(id), func(c byte) bool { return !visible(c) })
	return id, !foreign && len(id) <= webhook.ObjectIDBytesMax
}

// answer repeats the challenge if the body is the handshake and nothing more:
// the address must not become a mirror for whatever somebody has signed.
func (hs *Handshake) answer(v values, doc []byte) (*Answer, error) {
	l := v.at(hs.Echo)
	if l.kind != '"' || l.text == "" || len(l.text) > challengeBytesMax || !slices.Equal(members(doc), sorted(hs.Members)) {
		return nil, bad(CodeHandshake)
	}
	for i := range len(l.text) {
		if c := l.text[i]; !typeByte(c) || strings.IndexByte("./:", c) >= 0 {
			return nil, bad(CodeHandshake)
		}
	}
	return &Answer{Status: http.StatusOK, ContentType: "text/plain; charset=utf-8", Body: []byte(l.text)}, nil
}

// members returns the sorted names of a body that was scanned before.
func members(doc []byte) []string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	var names []string
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		names = append(names, name.String())
		if err := dec.SkipValue(); err != nil {
			return nil
		}
	}
	return sorted(names)
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
