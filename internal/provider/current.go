package provider

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Current says how an object's present state is read from its sender, so that an
// event of its kind need only be a hint.
type Current struct {
	// Path is where the object is, with {id}.
	Path string
	// ID matches the whole id before it enters an address, without
	// [Reading.IDPrefix].
	ID *regexp.Regexp
	// Unwrap is the member of the answer that is the object; empty where the
	// answer is it.
	Unwrap string
	// At is the path under which an event's body has the object, so that the same
	// paths find the same facts; empty where the body is the object.
	At string
	// Read says where the facts stand, by the paths of an event's body; nil where
	// the kind's own reading does. A fetched object must say by itself what it has
	// become, so it needs [Reading.States] where an event's type would tell.
	Read *Reading
	// Updated are paths of the time of the object's last change, by which an older
	// answer is told from a newer one; none where the sender gives no such time.
	Updated []string
	// Gone is the state of an object that the sender no longer has; empty where
	// objects do not vanish, so that not to find one is a mistake and not a state.
	Gone string
	// Deletes marks a kind whose event says that the object is gone: not to find it
	// is then the answer at once.
	Deletes bool
}

// reading returns where the facts of a fetched object stand.
func (c *Current) reading(k Kind) *Reading {
	if c.Read != nil {
		return c.Read
	}
	return k.Read
}

// CurrentCall returns the call that reads an object. id is the object's id as
// [webhook.Facts] has it. Errors are [*fault.Error]: permanent where the kind
// cannot be fetched (kind_not_fetchable) or the id is not one of the sender's
// (object_id_unfetchable), of kind ours where the endpoint's account is
// incomplete.
func (a *Adapter) CurrentCall(e webhook.Endpoint, k Kind, id string) (Call, error) {
	if k.Current == nil {
		return Call{}, fault.New(fault.Permanent, "kind_not_fetchable", nil)
	}
	bare, prefixed := strings.CutPrefix(id, k.Read.IDPrefix)
	if !prefixed || len(id) > webhook.ObjectIDBytesMax || !k.Current.ID.MatchString(bare) {
		return Call{}, fault.New(fault.Permanent, "object_id_unfetchable", nil)
	}
	return a.call(e, http.MethodGet, k.Current.Path, map[string]string{"id": bare})
}

// CurrentFacts reads an answer to [Adapter.CurrentCall] into canonical words, as
// [Adapter.Facts] reads a body. CreatedAt stays zero: that is the event's.
//
// The error is a [*fault.Error] of kind theirs, with the code of the body's fault
// after "answer_": another answer may be better.
func (a *Adapter) CurrentFacts(k Kind, t webhook.EventType, answer []byte) (webhook.Facts, error) {
	if known, ok := a.Kind(t); !ok || known.Name != k.Name {
		return webhook.Facts{}, schema("kind_unknown")
	}
	return a.current(k, answer)
}

// CurrentObject returns the id of the object that an answer has, as
// [webhook.Facts] would. The error is that of [Adapter.CurrentFacts].
func (a *Adapter) CurrentObject(k Kind, answer []byte) (string, error) {
	f, err := a.current(k, answer)
	return f.ObjectID, err
}

func (a *Adapter) current(k Kind, answer []byte) (webhook.Facts, error) {
	if k.Current == nil {
		return webhook.Facts{}, schema("kind_not_fetchable")
	}
	doc, err := k.Current.document(answer)
	if err != nil {
		return webhook.Facts{}, badAnswer(permanent(err))
	}
	v, err := scan(doc, a.currentPaths())
	if err != nil {
		return webhook.Facts{}, badAnswer(permanent(err))
	}
	updated := k.Current.Updated
	k.Read = k.Current.reading(k)
	if len(k.Read.States) > 0 {
		k.State, k.Credit = "", 0 // the event's type may be older than the object
	}
	f := webhook.Facts{ObjectType: k.Object, State: k.State, Credit: k.Credit, UpdatedAt: timeOf(v.first(updated))}
	for _, read := range []func(*webhook.Facts, Kind, values) error{readObject, readVersion, readState, readMoney} {
		if err := read(&f, k, v); err != nil {
			return webhook.Facts{}, badAnswer(err)
		}
	}
	return f, nil
}

// badAnswer is a fault of a body, found in an answer.
func badAnswer(err error) error { return fault.New(fault.Theirs, "answer_"+fault.CodeOf(err), nil) }

// document puts the object of an answer where an event's body has it.
func (c *Current) document(answer []byte) ([]byte, error) {
	object, err := unwrap(answer, c.Unwrap)
	if err != nil {
		return nil, err
	}
	return wrap(c.At, object), nil
}

// unwrap returns a member of an answer, or the whole answer. It is one JSON value.
func unwrap(answer []byte, member string) ([]byte, error) {
	if member == "" {
		// Alone it must be whole: inside something else, what is left open here could
		// be closed there.
		if tooDeep(answer) {
			return nil, bad(CodeTooDeep)
		}
		if !jsontext.Value(answer).IsValid() {
			return nil, bad(CodeMalformed)
		}
		return answer, nil
	}
	t := newTree()
	t.addRaw(member)
	v, err := scan(answer, t)
	if err != nil {
		return nil, err
	}
	if !v.at(member).there() {
		return nil, bad(CodeUnexpected)
	}
	return v.at(member).raw, nil
}

// wrap puts a JSON value at a path of members.
func wrap(path string, value []byte) []byte {
	if path == "" {
		return value
	}
	names := strings.Split(path, ".")
	var b []byte
	for _, name := range names {
		b = append(b, `{"`+name+`":`...)
	}
	b = append(b, value...)
	return append(b, strings.Repeat("}", len(names))...)
}

// currentPaths returns the tree of every path that is read from a fetched
// object. It is not the one for bodies: what only answers have must not make
// bodies be read more closely.
func (a *Adapter) currentPaths() *tree {
	a.currentOnce.Do(func() {
		t := newTree()
		for _, k := range a.kinds() {
			if k.Current != nil {
				t.addKind(Kind{Read: k.Current.reading(k)})
				t.add(k.Current.Updated...)
			}
		}
		a.currentPlan = t
	})
	return a.currentPlan
}

// Missing reports whether an answer to [Adapter.CurrentCall] says that there is
// no such object.
func (a *Adapter) Missing(status int, answer []byte) bool {
	if status == http.StatusNotFound || status == http.StatusGone {
		return true
	}
	for _, m := range a.API.Missing {
		if m.Status != status {
			continue
		}
		t := newTree()
		t.addChecks(m.When)
		if v, err := scan(answer, t); err == nil && v.all(m.When) {
			return true
		}
	}
	return false
}
