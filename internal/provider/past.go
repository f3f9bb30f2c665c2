package provider

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// historyReader reads the items of one list.
type historyReader struct {
	adapter  *Adapter
	history  *History
	endpoint webhook.Endpoint
	tree     *tree // of what is read from an item
}

// read returns an item as an event; there is false where it tells of none.
func (r historyReader) read(item jsontext.Value) (p Past, there bool, err error) {
	v, err := scan(item, r.tree)
	if err != nil {
		return Past{}, false, err
	}
	p.At = timeOf(v.first(r.history.At))
	switch {
	case p.At.IsZero():
		return Past{}, false, bad(CodeUnexpected) // it could not be told from those before the asked time
	case r.history.Listed != nil:
		return r.listed(p, v)
	case r.history.Made != nil:
		return r.made(p, v, item)
	}
	p.Body = item
	return r.identified(p)
}

// paths returns the tree of what is read from an item.
func (h *History) paths() *tree {
	t := newTree()
	t.add(h.At...)
	if l := h.Listed; l != nil {
		t.add(l.ID, l.Delivery, l.Status)
		t.add(l.Type...)
	}
	if m := h.Made; m != nil {
		t.add(m.Key...)
		for _, rule := range m.Types {
			t.addChecks(rule.When)
		}
	}
	return t
}

// identified reads the event's identity with the same eyes as the front door.
func (r historyReader) identified(p Past) (Past, bool, error) {
	if len(p.Body) > r.adapter.BodyBytesMax {
		return Past{}, false, bad(CodeUnexpected)
	}
	e, err := r.adapter.Envelope(p.Header, p.Body)
	if err != nil {
		return Past{}, false, err
	}
	if e.Handshake != nil {
		return Past{}, false, nil
	}
	p.EventID, p.Type = e.EventID, e.Type
	return p, true, nil
}

func (r historyReader) listed(p Past, v values) (Past, bool, error) {
	l := r.history.Listed
	id, ok := keyText(v.at(l.ID))
	if !ok || len(id) > webhook.EventIDBytesMax {
		return Past{}, false, bad(CodeNoID)
	}
	var parts []string
	for _, path := range l.Type {
		if text, ok := v.at(path).scalar(); ok && text != "" {
			parts = append(parts, text)
		}
	}
	t := strings.Join(parts, l.Join)
	if t == "" || len(t) > webhook.EventTypeBytesMax || slices.ContainsFunc([]byte(t), func(c byte) bool { return !typeByte(c) }) {
		return Past{}, false, bad(CodeBadType)
	}
	p.EventID, p.Type = webhook.EventID(id), webhook.EventType(t)
	p.Delivery, _ = v.at(l.Delivery).scalar()
	status, _ := v.at(l.Status).integer()
	p.Delivered = status >= 200 && status <= 299
	return p, true, nil
}

// made makes an event of an object.
func (r historyReader) made(p Past, v values, item jsontext.Value) (Past, bool, error) {
	m := r.history.Made
	i := slices.IndexFunc(m.Types, func(rule TypeRule) bool { return v.all(rule.When) })
	if i < 0 {
		return Past{}, false, nil
	}
	eventType := m.Types[i].Type
	id := strings.TrimSuffix(madePrefix, "-")
	for _, path := range m.Key {
		text, ok := keyText(v.at(path))
		if !ok {
			return Past{}, false, bad(CodeNoID)
		}
		id += "-" + text
	}
	h, err := r.headers(id, eventType)
	if err != nil {
		return Past{}, false, err
	}
	p.Header, p.Body, p.Made = h, m.body(eventType, p.At, item), true
	return r.identified(p)
}

// keyText returns what may be a part of an id. A time is written as unix seconds,
// since its text may change with the sender's time zone.
func keyText(l leaf) (string, bool) {
	text, ok := l.scalar()
	if l.kind == '"' {
		if at := timeOf(l); !at.IsZero() {
			text = strconv.FormatInt(at.Unix(), 10)
		}
	}
	foreign := slices.ContainsFunc([]byte(text), func(c byte) bool { return !visible(c) || c == ',' || c == '|' })
	return text, ok && text != "" && !foreign
}

func (r historyReader) headers(id string, t webhook.EventType) (signature.Header, error) {
	m, h := r.history.Made, signature.Header{}
	account := func(name string) (string, error) { return r.adapter.API.account(r.endpoint.API.Account, name) }
	for _, pair := range m.Header {
		text, err := expand(pair.Text, account)
		if err != nil {
			return nil, err
		}
		h[pair.Name] = text
	}
	if m.TypeHeader != "" {
		h[m.TypeHeader] = string(t)
	}
	if m.IDHeader != "" {
		h[m.IDHeader] = id
	}
	return h, nil
}

// body puts an object where an event's body has it, beside type and time.
func (m *Made) body(t webhook.EventType, at time.Time, object jsontext.Value) []byte {
	if m.TypeAt == "" {
		return object
	}
	b := []byte(`{"` + m.TypeAt + `":"` + string(t) + `",`)
	if m.CreatedAt != "" && !at.IsZero() {
		b = append(b, `"`+m.CreatedAt+`":`+strconv.FormatInt(at.Unix(), 10)+`,`...)
	}
	return append(b, wrap(m.At, object)[1:]...) // the members of the wrapping beside ours
}
