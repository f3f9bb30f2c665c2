package provider

import (
	"mime"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// BodyBytesMax is the most that any adapter may accept.
const BodyBytesMax = 1 << 20

// Adapter is one sender of webhooks. It is immutable once used, and safe for
// concurrent use; do not copy it.
type Adapter struct {
	Name  webhook.Provider
	Title string // for people
	// Scheme is how the sender signs.
	Scheme *signature.Scheme
	// BodyBytesMax bounds the raw body, at most [BodyBytesMax].
	BodyBytesMax int
	// ContentTypes are the allowed media types, lower-case, without parameters.
	ContentTypes []string
	// FormField names the one field that holds the JSON where the sender may
	// send a form; empty where it never does.
	FormField string
	// SuccessCode is the status that the sender takes for an acknowledgement.
	SuccessCode int

	// ID lists where the event id may stand; the first one that is there counts.
	ID []Source
	// Type is where the event type stands.
	Type Source
	// Created lists paths of the event's time by the sender's clock.
	Created []string
	// ObjectID lists paths of the object's id for types outside the catalogue.
	ObjectID []string
	// Shape is what every event's body looks like, whatever its type.
	Shape []Check
	// Covers says what the signature covers.
	Covers Covers
	// BodyVaries says whether two requests of one event may differ in their bytes.
	BodyVaries Variation

	// Catalogue maps the allowed event types to what they mean.
	Catalogue map[webhook.EventType]Kind
	// Pattern, if set, also allows every type that it matches, with PatternKind.
	Pattern     *regexp.Regexp
	PatternKind Kind

	// Handshake is how the sender proves an address, nil if it does not.
	Handshake *Handshake
	// Redelivery is what is known about repeated requests.
	Redelivery Redelivery
	// API is the sender's own programming interface, nil where it is not used.
	API *API
	// Addresses are those that the sender says it sends from, nil where it says nothing.
	Addresses *Addresses
	// Ordering says in one sentence what evidence of order an event carries.
	Ordering string
	// Overlap is how long a previous key stays trusted after the newer one first
	// matched, unless the endpoint says otherwise.
	Overlap time.Duration

	once sync.Once
	plan *tree
	// The same for fetched objects.
	currentOnce sync.Once
	currentPlan *tree
}

// Covers says which parts of an event the signature covers. What it does not
// cover, whoever captured one request may choose freely.
type Covers struct{ ID, Type, Time bool }

// Variation says whether the raw body may differ between two requests of one event.
type Variation int

// The variations. Where nothing is stated, it is Unknown.
const (
	Never Variation = iota + 1
	PerAttempt
	Unknown
)

// Source is where a text stands in a request: in one place, or joined from several.
type Source struct {
	Parts []Place
	// Join stands between the parts. A header's part may not contain it.
	Join string
	// Signed says that changing it breaks the signature.
	Signed bool
}

// Place is a header, lower-case name, or a path in the body: member names
// joined by dots, with a number for an array's element.
type Place struct {
	Header, Path string
	// Optional parts may be absent; the others make the whole source absent.
	Optional bool
	// Example is what a sample has in this header, where its options do not say.
	Example string
}

// Handshake is a request with which a sender asks whether an address is ours.
// It is answered only after its signature was checked, only in exactly this
// shape, and it stores nothing.
type Handshake struct {
	// When tells the handshake from an event.
	When Check
	// Members are all the members that the body has.
	Members []string
	// Echo is the path of the text that the answer repeats: letters, digits,
	// hyphens and underscores.
	Echo string
}

// Answer is what a handshake is answered with.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte
}

// Evidence says how well a fact about a sender is known.
type Evidence int

// The grades of evidence.
const (
	Stated  Evidence = iota + 1 // the sender says so
	Assumed                     // it follows from what the sender says, or is common knowledge
	None                        // there is no such thing at this sender
)

// Redelivery is what is known about repeated requests of one event.
type Redelivery struct {
	// Automatic is the retry schedule in words; AutomaticFor is how long it lasts.
	Automatic    string
	AutomaticFor time.Duration
	// Manual is how a person has an event sent again; ManualFor is how long
	// after the event that is possible.
	Manual    string
	ManualFor time.Duration
	// SameIDOnRetry and SameIDOnManual say how we know that the id stays.
	SameIDOnRetry, SameIDOnManual Evidence
	// Sources are where this was read.
	Sources []string
}

// Window is the longest time after which an event may come again. Identities
// must be remembered for longer.
func (r Redelivery) Window() time.Duration { return max(r.AutomaticFor, r.ManualFor) }

// AllowsContentType reports whether a Content-Type header is one that the
// sender sends. None, two joined into one, and text that is not UTF-8 are not.
func (a *Adapter) AllowsContentType(ct string) bool {
	media, params, err := mime.ParseMediaType(ct)
	if err != nil || !slices.Contains(a.ContentTypes, media) {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

// Kind returns what an event type means here, and false for a type that is not
// allowed.
func (a *Adapter) Kind(t webhook.EventType) (Kind, bool) {
	if k, ok := a.Catalogue[t]; ok {
		return k, true
	}
	if a.Pattern != nil && a.Pattern.MatchString(string(t)) {
		return a.PatternKind, true
	}
	return Kind{}, false
}

// Types returns the types of the catalogue in order.
func (a *Adapter) Types() []webhook.EventType {
	types := make([]webhook.EventType, 0, len(a.Catalogue))
	for t := range a.Catalogue {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

// paths returns the tree of every path that is read from a body, so that one
// pass finds them all.
func (a *Adapter) paths() *tree {
	a.once.Do(func() { a.plan = a.collect() })
	return a.plan
}

func (a *Adapter) collect() *tree {
	t := newTree()
	for _, s := range append([]Source{a.Type}, a.ID...) {
		for _, p := range s.Parts {
			t.add(p.Path)
		}
	}
	t.add(a.Created...)
	t.add(a.ObjectID...)
	t.addChecks(a.Shape)
	if a.Handshake != nil {
		t.addChecks([]Check{a.Handshake.When})
		t.add(a.Handshake.Echo)
	}
	for _, k := range a.kinds() {
		t.addKind(k)
	}
	return t
}

// kinds returns every kind of the adapter, in the order of their types.
func (a *Adapter) kinds() []Kind {
	var kinds []Kind
	for _, t := range a.Types() {
		kinds = append(kinds, a.Catalogue[t])
	}
	if a.Pattern != nil {
		kinds = append(kinds, a.PatternKind)
	}
	return kinds
}
