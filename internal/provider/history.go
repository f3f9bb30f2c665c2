package provider

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"dakghar/internal/fault"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// History is one list of a sender's, from which events that never came can be
// told. An item is the event itself; or a delivery without its content, where
// Listed is set; or an object, where Made says which event to make of it.
type History struct {
	Path string
	// Query is sent with every call but those for which [Cursor.Alone] stands in.
	Query []Pair
	// Since is the parameter from which time on to list; empty where there is none.
	Since     string
	SinceUnix bool // it is unix seconds, not RFC 3339
	// NewestFirst says that the first item before the asked time ends the list.
	NewestFirst bool
	Cursor      Cursor
	// Items is the member of the answer that is the array; empty where the answer
	// is it.
	Items string
	// At are paths of an item's time.
	At     []string
	Listed *Listed
	Made   *Made
}

// Cursor says how the next page is asked for.
type Cursor struct {
	Style CursorStyle
	// Param is the parameter that takes it.
	Param string
	// Size is how many items a full page has.
	Size int
	// More is the member that says, for [CursorLast], whether there are more.
	More string
	// ID is the path of an item's id, for [CursorLast]; empty for "id".
	ID string
	// Alone, if set, replaces every other parameter once there is a cursor.
	Alone []Pair
}

// CursorStyle is a way to ask for the next page.
type CursorStyle int

// The styles.
const (
	CursorLast   CursorStyle = iota + 1 // the id of the last item
	CursorLink                          // a parameter of the Link header's next address
	CursorOffset                        // a count of items
)

// Listed says where a listed delivery's parts stand.
type Listed struct {
	ID       string // the event's id
	Type     []string
	Join     string // between the parts of the type
	Delivery string // the id of the delivery, by which it is sent again
	Status   string // the status that it was answered with
}

// Made says which event an object is made into. It has an id of its own, which
// follows from the object alone: made twice it is the same event, and beside the
// one that did come it is another, which changes nothing, since it says what the
// object has become and not by how much it changed.
type Made struct {
	// At is where an event's body has the object; empty where the body is it.
	At string
	// Types are tried in order; an object that none of them fits tells of no event.
	Types []TypeRule
	// TypeAt and CreatedAt are members of the body for the type and the time.
	TypeAt, CreatedAt string
	// TypeHeader and IDHeader are the headers that an event has them in; empty
	// where it does not.
	TypeHeader, IDHeader string
	// Header are other headers that belong to the event's identity; their texts may
	// have placeholders of the account.
	Header []Pair
	// Key are paths of what tells one state of the object from another.
	Key []string
}

// TypeRule gives the event type of an object.
type TypeRule struct {
	When []Check
	Type webhook.EventType
}

// Past is an event that the sender says it had.
type Past struct {
	EventID webhook.EventID
	Type    webhook.EventType
	// At is the event's, the delivery's or the object's time by the sender's clock.
	At time.Time
	// Header and Body are what [Adapter.Envelope] reads the event from. Body is
	// nil where the sender lists deliveries without their content.
	Header signature.Header
	Body   []byte
	// Delivery is the id by which the sender sends the event again; empty where it does not.
	Delivery string
	// Delivered says that the sender had a success for an answer.
	Delivered bool
	// Made says that the event was made from an object: EventID is ours.
	Made bool
}

// Page is a part of a sender's lists.
type Page struct {
	Items []Past
	// Next is the cursor of the following page, empty at the end.
	Next string
	// Unreadable counts the items that could not be read.
	Unreadable int
}

// Reply is what a sender's API answered with.
type Reply struct {
	Header http.Header
	Body   []byte
}

// Bounds of a page.
const (
	cursorBytesMax = 1024
	pageItemsMax   = 1000
	// madePrefix begins the ids of events that were made from objects.
	madePrefix = "backfill-"
)

// HistoryCall returns the call that lists what happened since a time. cursor is
// empty, or the [Page.Next] of a call with the same endpoint and time. Errors are
// [*fault.Error]s.
func (a *Adapter) HistoryCall(e webhook.Endpoint, since time.Time, cursor string) (Call, error) {
	h, _, inner, err := a.history(cursor)
	if err != nil {
		return Call{}, err
	}
	c, err := a.call(e, http.MethodGet, h.Path, nil)
	if err != nil {
		return Call{}, err
	}
	c.Query = h.query(since, inner).Encode()
	return c, nil
}

// history finds the list that a cursor is of, and the place in it.
func (a *Adapter) history(cursor string) (h *History, list int, inner string, err error) {
	if a.API == nil || len(a.API.Histories) == 0 {
		return nil, 0, "", fault.New(fault.Permanent, "history_unsupported", nil)
	}
	if cursor != "" {
		number, rest, ok := strings.Cut(cursor, ".")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 0 || n >= len(a.API.Histories) || !plainCursor(rest) {
			return nil, 0, "", fault.New(fault.Permanent, "cursor_invalid", nil)
		}
		list, inner = n, rest
	}
	return &a.API.Histories[list], list, inner, nil
}

func plainCursor(text string) bool {
	return len(text) <= cursorBytesMax && !slices.ContainsFunc([]byte(text), func(c byte) bool { return !visible(c) })
}

func (h *History) query(since time.Time, inner string) url.Values {
	q := url.Values{}
	pairs := h.Query
	if inner != "" && h.Cursor.Alone != nil {
		pairs = h.Cursor.Alone
	} else if h.Since != "" && !since.IsZero() {
		text := since.UTC().Format(time.RFC3339)
		if h.SinceUnix {
			text = strconv.FormatInt(since.Unix(), 10)
		}
		q.Set(h.Since, text)
	}
	for _, p := range pairs {
		q.Add(p.Name, p.Text)
	}
	if inner != "" {
		q.Set(h.Cursor.Param, inner)
	}
	return q
}

// ReadHistory reads the answer to [Adapter.HistoryCall], which had the same
// arguments. An item that cannot be read is counted and left out. The error is a
// [*fault.Error] of kind theirs where the answer as a whole cannot.
func (a *Adapter) ReadHistory(e webhook.Endpoint, since time.Time, cursor string, reply Reply) (Page, error) {
	h, list, inner, err := a.history(cursor)
	if err != nil {
		return Page{}, err
	}
	items, more, err := h.items(reply.Body)
	if err != nil {
		return Page{}, badAnswer(permanent(err))
	}
	since = since.Truncate(time.Second) // some senders know no less
	var page Page
	var ended bool
	reader := historyReader{adapter: a, history: h, endpoint: e, tree: h.paths()}
	for _, item := range items {
		past, there, err := reader.read(item)
		switch {
		case err != nil:
			page.Unreadable++
		case past.At.Before(since):
			ended = ended || h.NewestFirst
		case there:
			page.Items = append(page.Items, past)
		}
	}
	next, err := h.next(inner, items, more, reply.Header)
	switch {
	case err != nil:
		return Page{}, err
	case next != "" && !ended:
		page.Next = strconv.Itoa(list) + "." + next
	case list+1 < len(a.API.Histories):
		page.Next = strconv.Itoa(list+1) + "."
	}
	return page, nil
}

// items splits an answer into its items, and returns whether it says that there are more.
func (h *History) items(answer []byte) (items []jsontext.Value, more bool, err error) {
	const root = "items"
	at := h.Items
	if at == "" {
		whole, err := unwrap(answer, "")
		if err != nil {
			return nil, false, err
		}
		answer, at = wrap(root, whole), root
	}
	t := newTree()
	t.addRaw(at)
	t.add(h.Cursor.More)
	v, err := scan(answer, t)
	if err != nil {
		return nil, false, err
	}
	array := v.at(at)
	if array.kind != '[' {
		return nil, false, bad(CodeUnexpected)
	}
	if h.Cursor.More != "" {
		more = v.at(h.Cursor.More).kind == 't'
	}
	items, err = elements(array.raw)
	return items, more, err
}

// elements splits an array that was scanned before.
func elements(array jsontext.Value) ([]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(array))
	if _, err := dec.ReadToken(); err != nil {
		return nil, bad(CodeMalformed)
	}
	var items []jsontext.Value
	for dec.PeekKind() != ']' {
		item, err := dec.ReadValue()
		if err != nil || len(items) == pageItemsMax {
			return nil, bad(CodeUnexpected)
		}
		items = append(items, item.Clone())
	}
	return items, nil
}

// next returns the place of the following page in this list, empty at its end. A
// cursor that does not move would be followed for ever, so it is an error.
func (h *History) next(inner string, items []jsontext.Value, more bool, header http.Header) (string, error) {
	next := ""
	switch h.Cursor.Style {
	case CursorLast:
		if more && len(items) > 0 {
			next = textAt(items[len(items)-1], cmp.Or(h.Cursor.ID, "id"))
		}
		if more && next == "" {
			return "", fault.New(fault.Theirs, "answer_cursor_missing", nil)
		}
	case CursorLink:
		next = linkParam(header, h.Cursor.Param)
	case CursorOffset:
		if len(items) >= h.Cursor.Size {
			before, _ := strconv.Atoi(inner) // empty, or a number of our own
			next = strconv.Itoa(before + len(items))
		}
	}
	if next != "" && next == inner || !plainCursor(next) {
		return "", fault.New(fault.Theirs, "answer_cursor_stuck", nil)
	}
	return next, nil
}

// textAt returns the scalar at a path of a value, or nothing.
func textAt(doc []byte, path string) string {
	t := newTree()
	t.add(path)
	v, err := scan(doc, t)
	if err != nil {
		return ""
	}
	text, _ := v.at(path).scalar()
	return text
}

// linkNext is one entry of a Link header (RFC 8288) as far as senders write it.
var linkNext = regexp.MustCompile(`<([^<>]*)>\s*;\s*rel="?next"?\s*(?:,|;|$)`)

// linkParam returns a parameter of the next page's address. The address itself is
// never followed: an answer does not choose where a credential goes.
func linkParam(h http.Header, name string) string {
	for _, line := range h.Values("Link") {
		found := linkNext.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		if address, err := url.Parse(found[1]); err == nil {
			return address.Query().Get(name)
		}
	}
	return ""
}

// deliveryID is what an id of a delivery looks like before it enters an address.
var deliveryID = regexp.MustCompile(`^[0-9]{1,20}$`)

// RedeliverCall returns the call that has the sender send a listed event again.
// The error is permanent where the sender has no such call, or the item no such id.
func (a *Adapter) RedeliverCall(e webhook.Endpoint, p Past) (Call, error) {
	if a.API == nil || a.API.Redeliver == "" || !deliveryID.MatchString(p.Delivery) {
		return Call{}, fault.New(fault.Permanent, "redelivery_unsupported", nil)
	}
	return a.call(e, http.MethodPost, a.API.Redeliver, map[string]string{"delivery": p.Delivery})
}
