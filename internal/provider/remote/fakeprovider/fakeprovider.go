// Package fakeprovider is a stand-in for the APIs of Stripe, GitHub, Shopify,
// Razorpay and Paddle, as far as Dakghar asks them: objects by their ids, lists page by page
// in each one's own way, GitHub's redelivery, and how each refuses. It is written
// from their documentation and not from the adapters, so that the two can be held
// against each other.
//
// A test, the simulated world or the local stack sets what it has, and what goes
// wrong: old reads, refusals, waits, silence, broken connections.
//
// Invariants: nothing is drawn at random and no clock is read, so the same
// requests get the same answers; what is set is copied.
//
// It refuses to know Dakghar's own words, to send webhooks by itself, and to be
// linked into a function.
package fakeprovider

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"dakghar/internal/webhook"
)

// Server is the stand-in: each API answers below its provider's name. It is safe
// for concurrent use.
type Server struct {
	// Redelivered, if set, is told of every delivery that somebody has sent again.
	// It is called without any lock. Set it before the first request.
	Redelivered func(Delivery)

	mux *http.ServeMux

	mu          sync.Mutex
	credentials map[webhook.Provider]string
	objects     map[place][]*object
	events      []event
	paddle      paddle
	deliveries  map[string][]Delivery // by repository or organisation, and hook
	faults      map[webhook.Provider][]Fault
	stale       map[webhook.Provider]int
	pageMax     int
	asked       []Asked
}

// place is a collection of a provider's: "payments".
type place struct {
	provider   webhook.Provider
	collection string
}

// object is one thing, with every state that it was in.
type object struct {
	id        string
	revisions []json.RawMessage
}

// event is one of Stripe's or of Paddle's.
type event struct {
	id      string
	created int64 // Stripe's
	body    json.RawMessage
}

// Delivery is one of GitHub's tries to send an event.
type Delivery struct {
	Repo, Hook    string // "owner/name", or "owner" for an organisation's hook; "1"
	ID            int64
	GUID          string
	Event, Action string
	Status        int
	At            time.Time
}

// Fault is what one request meets in place of an answer.
type Fault struct {
	// Status is answered with; 0 goes on to the real answer.
	Status int
	Header http.Header
	Body   string
	// Hold keeps the answer back until it is closed, or the caller has gone.
	Hold <-chan struct{}
	// Drop closes the connection without an answer.
	Drop bool
}

// Asked is a request that was made. Credential says whether it had the right one.
type Asked struct {
	Provider            webhook.Provider
	Method, Path, Query string
	Credential          bool
}

// New returns a stand-in that has nothing and takes any credential.
func New() *Server {
	s := &Server{
		credentials: map[webhook.Provider]string{}, objects: map[place][]*object{}, deliveries: map[string][]Delivery{},
		faults: map[webhook.Provider][]Fault{}, stale: map[webhook.Provider]int{},
	}
	s.mux = s.routes()
	return s
}

// Base returns what stands in for each API's https and host, for a stand-in that
// is served at an address.
func Base(address string) func(webhook.Provider) string {
	return func(p webhook.Provider) string { return strings.TrimSuffix(address, "/") + "/" + string(p) }
}

// Credential sets the only credential that a provider takes, as it would be
// stored: for Razorpay "user:password".
func (s *Server) Credential(p webhook.Provider, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credentials[p] = text
}

// Put gives an object of a collection a new state: a JSON object with the member
// id. The collections are those of the APIs: Stripe payment_intents, refunds,
// disputes, subscriptions, accounts; Razorpay payments, orders, refunds,
// subscriptions, disputes; Shopify orders; GitHub repositories; Paddle
// transactions, subscriptions.
func (s *Server) Put(p webhook.Provider, collection string, state []byte) {
	id := scalar(state, "id")
	if id == "" {
		panic("fakeprovider: an object needs an id")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{p, collection}
	o := find(s.objects[at], id)
	if o == nil {
		o = &object{id: id}
		s.objects[at] = append(s.objects[at], o)
	}
	o.revisions = append(o.revisions, bytes.Clone(state))
}

// Delete takes an object away.
func (s *Server) Delete(p webhook.Provider, collection, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{p, collection}
	s.objects[at] = slices.DeleteFunc(s.objects[at], func(o *object) bool { return o.id == id })
}

// Event adds an event to Stripe's list: a whole event, with id and created.
func (s *Server) Event(body []byte) {
	var e struct {
		ID      string
		Created int64
	}
	if err := json.Unmarshal(body, &e); err != nil || e.ID == "" {
		panic("fakeprovider: an event needs an id")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event{id: e.ID, created: e.Created, body: bytes.Clone(body)})
	slices.SortStableFunc(s.events, func(a, b event) int { return cmp.Compare(b.created, a.created) }) // newest first
}

// Deliver adds a delivery to the list of a hook of GitHub's.
func (s *Server) Deliver(d Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := d.Repo + "/" + d.Hook
	s.deliveries[at] = append(s.deliveries[at], d)
	slices.SortStableFunc(s.deliveries[at], func(a, b Delivery) int { return b.At.Compare(a.At) })
}

// Stale has the next n reads of a provider's objects answer with the state before
// the last one.
func (s *Server) Stale(p webhook.Provider, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale[p] = n
}

// Next has the next requests to a provider meet these faults, one each.
func (s *Server) Next(p webhook.Provider, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[p] = append(s.faults[p], faults...)
}

// PageMax bounds the pages of every list but Razorpay's, whose callers count on
// full ones; 0 leaves what is asked for.
func (s *Server) PageMax(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pageMax = n
}

// Asked returns the requests so far.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// ServeHTTP answers as the API would whose provider the path begins with.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	p := webhook.Provider(name)
	f, known := s.admit(p, r, "/"+path)
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler) // the server closes the connection
	case f.Status != 0:
		for name, texts := range f.Header {
			w.Header()[http.CanonicalHeaderKey(name)] = texts
		}
		w.WriteHeader(f.Status)
		fmt.Fprint(w, f.Body)
	case !known:
		refuse(w, p, http.StatusUnauthorized, "The credential is not one of ours")
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// admit notes a request, takes the fault that it meets, and reports whether its
// credential is right.
func (s *Server) admit(p webhook.Provider, r *http.Request, path string) (Fault, bool) {
	shown := credential(p, r.Header)
	s.mu.Lock()
	defer s.mu.Unlock()
	want, set := s.credentials[p]
	known := shown != "" && (!set || shown == want)
	s.asked = append(s.asked, Asked{Provider: p, Method: r.Method, Path: path, Query: r.URL.RawQuery, Credential: known})
	if len(s.faults[p]) == 0 {
		return Fault{}, known
	}
	f := s.faults[p][0]
	s.faults[p] = s.faults[p][1:]
	return f, known
}

// credential returns the credential that a request shows in its provider's way.
func credential(p webhook.Provider, h http.Header) string {
	const bearer, basic = "Bearer ", "Basic "
	shown := h.Get("Authorization")
	switch p {
	case "shopify":
		return h.Get("X-Shopify-Access-Token")
	case "razorpay":
		pair, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(shown, basic))
		if err != nil || !strings.HasPrefix(shown, basic) {
			return ""
		}
		return string(pair)
	}
	text, ok := strings.CutPrefix(shown, bearer)
	if !ok {
		return ""
	}
	return text
}

// read returns the state of an object as a request sees it.
func (s *Server) read(p webhook.Provider, collection, id string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := find(s.objects[place{p, collection}], id)
	if o == nil {
		return nil, false
	}
	last := len(o.revisions) - 1
	if s.stale[p] > 0 {
		s.stale[p]--
		last = max(last-1, 0)
	}
	return o.revisions[last], true
}

// all returns the present states of a collection, the newest object first.
func (s *Server) all(p webhook.Provider, collection string) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var states []json.RawMessage
	for _, o := range slices.Backward(s.objects[place{p, collection}]) {
		states = append(states, o.revisions[len(o.revisions)-1])
	}
	return states
}

func (s *Server) pageSize(asked, most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked < 1 || asked > most {
		asked = most
	}
	if s.pageMax > 0 {
		return min(asked, s.pageMax)
	}
	return asked
}

func find(objects []*object, id string) *object {
	for _, o := range objects {
		if o.id == id {
			return o
		}
	}
	return nil
}

// scalar returns a member's text, or its number as text.
func scalar(doc []byte, name string) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return ""
	}
	return strings.Trim(string(members[name]), `"`)
}
