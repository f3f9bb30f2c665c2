// Package operatortest is a small world in memory for tests of the operator's
// acts and of the command: a registry, a secret store, an inbox, and a front door
// that checks signatures. It keeps the contracts that the operator's interfaces
// state, and nothing more; it is for tests only.
package operatortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	standard "dakghar/internal/business"
	"dakghar/internal/delivery"
	"dakghar/internal/operator"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// World is what there is. Its fields may be set and read between calls.
type World struct {
	mu        sync.Mutex
	Clock     time.Time
	Endpoints map[webhook.EndpointID]webhook.Endpoint
	Acts      []webhook.Act
	Jobs      map[string]webhook.Job
	// Secrets are values by secret name and version.
	Secrets map[string]map[webhook.KeyVersion]string
	Rows    map[webhook.InboxID]webhook.Inbox
	// Applied are the events that have their mark; Promises the outbox rows.
	Applied  map[webhook.InboxID]bool
	Promises map[webhook.OutboxID]webhook.Outbox
	Bodies   map[webhook.BodyID][]byte
	// Kept is who stored a body, where it is not the one event that has it. Copies are
	// those of events under legal hold, by event; Erased and LegalHolds are the lists.
	Kept       map[webhook.BodyID]webhook.Kept
	Copies     map[webhook.InboxID][]byte
	Erased     []webhook.Erased
	LegalHolds map[webhook.InboxID]webhook.HeldByLaw
	Items      map[webhook.Key]webhook.Item
	// Subscriptions, Deliveries and Attempts are the outbound half; Woken is what the
	// dispatcher was told, and OnWake, when set, is the dispatcher.
	Subscriptions map[delivery.SubscriptionID]delivery.Subscription
	Deliveries    map[delivery.ID]delivery.Delivery
	Attempts      map[delivery.ID][]delivery.Attempt
	Woken         []webhook.Wake
	OnWake        func(webhook.Wake)
	// Sequences are objects' sequences.
	Sequences map[webhook.SequenceID]webhook.Sequence
	// EventLetters, DeliveryLetters and RelayLetters are the dead-letter queues.
	EventLetters, DeliveryLetters, RelayLetters LetterQueue
	// Fail, when set, may end a call before it does anything, by its name; Lose may
	// take its answer away after it has done everything.
	Fail, Lose func(call string) error
	// Rival, when set, runs once before an endpoint or a subscription is updated or a
	// sequence is skipped.
	Rival func(w *World)
	// Answer, when set, answers in place of the front door.
	Answer func(url string, header map[string]string, body []byte) (int, []byte, error)

	Providers *provider.Registry
	Router    *standard.Router
	ids       int
	drawn     byte
	// current is the newest version by secret name.
	current map[string]webhook.KeyVersion
}

// ErrDown is a store that does not answer.
var ErrDown = errors.New("the store is down")

// Down is a [World.Fail] or [World.Lose] of one call, by its name.
func Down(call string) func(string) error {
	return func(c string) error {
		if c == call {
			return ErrDown
		}
		return nil
	}
}

// New returns an empty world at a fixed time.
func New() *World {
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		panic("operatortest: " + err.Error())
	}
	return &World{
		Clock:     time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC),
		Endpoints: map[webhook.EndpointID]webhook.Endpoint{},
		Jobs:      map[string]webhook.Job{},
		Secrets:   map[string]map[webhook.KeyVersion]string{},
		Rows:      map[webhook.InboxID]webhook.Inbox{},
		Applied:   map[webhook.InboxID]bool{},
		Promises:  map[webhook.OutboxID]webhook.Outbox{},
		Bodies:    map[webhook.BodyID][]byte{},
		Kept:      map[webhook.BodyID]webhook.Kept{},
		Copies:    map[webhook.InboxID][]byte{},
		Items:     map[webhook.Key]webhook.Item{},
		Sequences: map[webhook.SequenceID]webhook.Sequence{},
		current:   map[string]webhook.KeyVersion{},

		LegalHolds: map[webhook.InboxID]webhook.HeldByLaw{},

		Subscriptions: map[delivery.SubscriptionID]delivery.Subscription{},
		Deliveries:    map[delivery.ID]delivery.Delivery{},
		Attempts:      map[delivery.ID][]delivery.Attempt{},

		Fail:      func(string) error { return nil },
		Lose:      func(string) error { return nil },
		Providers: providers,
		Router:    standard.Standard(),
	}
}

// Operator returns an operator of this world, called ada.
func (w *World) Operator() *operator.Operator {
	return &operator.Operator{
		Registry: registry{w}, Jobs: jobs{w}, Secrets: secrets{w}, Inbox: inbox{w}, Bodies: bodies{w}, Business: business{w}, Sequences: sequences{w}, Sender: door{w},
		Deliveries: deliveries{w}, Keeper: bodies{w}, Wakes: wakes{w}, SubscriptionPrefix: "test/subscription/", Random: w.random,
		OwnQueues:        []string{"https://sqs.eu-west-1.amazonaws.com/123456789012/own-deliveries"},
		EventDeadLetters: letters{w, &w.EventLetters}, DeliveryDeadLetters: letters{w, &w.DeliveryLetters}, RelayFailures: letters{w, &w.RelayLetters},
		Providers: w.Providers, Router: w.Router, SecretPrefix: "test/endpoint/", FrontDoor: "https://door.test",
		Who: func(context.Context) (string, error) { return "ada", w.Fail("Who") },
		Now: w.now, Workers: 1, KeepInbox: 400 * 24 * time.Hour, KeepBody: 30 * 24 * time.Hour,
		NewID: func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ids++
			return fmt.Sprintf("act-%d", w.ids)
		},
		Wait: func(ctx context.Context, d time.Duration) error {
			w.Advance(d)
			return ctx.Err()
		},
		Mixed: func(seed uint64, n int) []int { return rand.New(rand.NewPCG(seed, 0)).Perm(n) }, //nolint:gosec // an order, not a secret
	}
}

func (w *World) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Clock
}

// Advance moves the clock.
func (w *World) Advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Clock = w.Clock.Add(d)
}

type registry struct{ w *World }

func (r registry) Endpoint(_ context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error) {
	if err := r.w.Fail("Endpoint"); err != nil {
		return webhook.Endpoint{}, false, err
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	e, ok := r.w.Endpoints[id]
	return e, ok, nil
}

func (r registry) EndpointIDs(context.Context) ([]webhook.EndpointID, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	ids := make([]webhook.EndpointID, 0, len(r.w.Endpoints))
	for id := range r.w.Endpoints {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

func (r registry) CreateEndpointBy(_ context.Context, e webhook.Endpoint, a webhook.Act) (bool, error) {
	if err := r.w.Fail("CreateEndpointBy"); err != nil {
		return false, err
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if _, taken := r.w.Endpoints[e.ID]; taken {
		return false, nil
	}
	e.Revision = 1
	r.w.Endpoints[e.ID] = e
	r.w.Acts = append(r.w.Acts, a)
	return true, nil
}

func (r registry) UpdateEndpointBy(_ context.Context, e webhook.Endpoint, a webhook.Act) (bool, error) {
	if rival := r.w.Rival; rival != nil {
		r.w.Rival = nil
		rival(r.w)
	}
	if err := r.w.Fail("UpdateEndpointBy"); err != nil {
		return false, err
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.Endpoints[e.ID].Revision != e.Revision {
		return false, nil
	}
	e.Revision++
	r.w.Endpoints[e.ID] = e
	r.w.Acts = append(r.w.Acts, a)
	return true, r.w.Lose("UpdateEndpointBy")
}

func (r registry) RecordAct(_ context.Context, a webhook.Act) error {
	if err := r.w.Fail("RecordAct"); err != nil {
		return err
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.Acts = append(r.w.Acts, a)
	return nil
}

func (r registry) Acts(_ context.Context, since, until time.Time) iter.Seq2[webhook.Act, error] {
	return func(yield func(webhook.Act, error) bool) {
		if err := r.w.Fail("Acts"); err != nil {
			yield(webhook.Act{}, err)
			return
		}
		for _, a := range slices.Backward(r.w.Acts) {
			if !a.At.Before(since) && !a.At.After(until) && !yield(a, nil) {
				return
			}
		}
	}
}

func (r registry) ActsOn(_ context.Context, subject string) ([]webhook.Act, error) {
	if err := r.w.Fail("ActsOn"); err != nil {
		return nil, err
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	var acts []webhook.Act
	for _, a := range slices.Backward(r.w.Acts) {
		if a.Subject == subject || strings.HasPrefix(a.Subject, subject+" ") {
			acts = append(acts, a)
		}
	}
	return acts, nil
}

type jobs struct{ w *World }

func (j jobs) CreateJobBy(_ context.Context, job webhook.Job, a webhook.Act) (bool, error) {
	return j.write("CreateJobBy", job, &a)
}

func (j jobs) UpdateJob(_ context.Context, job webhook.Job) (bool, error) {
	return j.write("UpdateJob", job, nil)
}

func (j jobs) UpdateJobBy(_ context.Context, job webhook.Job, a webhook.Act) (bool, error) {
	return j.write("UpdateJobBy", job, &a)
}

// write writes over the revision that was seen; a job that is not there has none.
func (j jobs) write(call string, job webhook.Job, a *webhook.Act) (bool, error) {
	if err := j.w.Fail(call); err != nil {
		return false, err
	}
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	if j.w.Jobs[job.ID].Revision != job.Revision {
		return false, nil
	}
	job.Revision++
	j.w.Jobs[job.ID] = job
	if a != nil {
		j.w.Acts = append(j.w.Acts, *a)
	}
	return true, j.w.Lose(call)
}

func (j jobs) Job(_ context.Context, id string) (webhook.Job, bool, error) {
	if err := j.w.Fail("Job"); err != nil {
		return webhook.Job{}, false, err
	}
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	job, ok := j.w.Jobs[id]
	return job, ok, nil
}

func (j jobs) Jobs(context.Context) iter.Seq2[webhook.Job, error] {
	return func(yield func(webhook.Job, error) bool) {
		for _, id := range slices.Backward(slices.Sorted(maps.Keys(j.w.Jobs))) {
			if !yield(j.w.Jobs[id], nil) {
				return
			}
		}
	}
}

func (j jobs) JobDid(_ context.Context, job, subject string) (bool, error) {
	if err := j.w.Fail("JobDid"); err != nil {
		return false, err
	}
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	return slices.ContainsFunc(j.w.Acts, func(a webhook.Act) bool { return a.Job == job && a.Subject == subject }), nil
}

type secrets struct{ w *World }

func (s secrets) Create(_ context.Context, e webhook.Endpoint, v operator.Secret, token string) (webhook.KeyVersion, error) {
	return s.write("Create", e, v, token, func(exists bool, held string, has bool) error {
		if exists && (!has || held != v.Reveal()) {
			return operator.ErrOtherSecret
		}
		return nil
	})
}

func (s secrets) Put(_ context.Context, e webhook.Endpoint, v operator.Secret, token string) (webhook.KeyVersion, error) {
	return s.write("Put", e, v, token, func(exists bool, held string, has bool) error {
		switch {
		case !exists:
			return operator.ErrNoVersion
		case has && held != v.Reveal():
			return operator.ErrOtherSecret
		}
		return nil
	})
}

func (s secrets) write(call string, e webhook.Endpoint, v operator.Secret, token string, check func(exists bool, held string, has bool) error) (webhook.KeyVersion, error) {
	if err := s.w.Fail(call); err != nil {
		return "", err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	versions, exists := s.w.Secrets[e.Secret]
	held, has := versions[webhook.KeyVersion(token)]
	if err := check(exists, held, has); err != nil {
		return "", err
	}
	if !exists {
		s.w.Secrets[e.Secret] = map[webhook.KeyVersion]string{}
	}
	s.w.Secrets[e.Secret][webhook.KeyVersion(token)] = v.Reveal()
	if !has {
		s.w.current[e.Secret] = webhook.KeyVersion(token)
	}
	return webhook.KeyVersion(token), nil
}

func (s secrets) Retire(context.Context, webhook.Endpoint, webhook.KeyVersion) error {
	return s.w.Fail("Retire")
}

func (s secrets) Value(_ context.Context, e webhook.Endpoint, v webhook.KeyVersion) (operator.Secret, error) {
	if err := s.w.Fail("Value"); err != nil {
		return operator.Secret{}, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	text, ok := s.w.Secrets[e.Secret][v]
	if !ok {
		return operator.Secret{}, operator.ErrNoVersion
	}
	return operator.NewSecret(text), nil
}

func (s secrets) Current(ctx context.Context, e webhook.Endpoint) (webhook.KeyVersion, operator.Secret, error) {
	s.w.mu.Lock()
	version, ok := s.w.current[e.Secret]
	s.w.mu.Unlock()
	if !ok {
		return "", operator.Secret{}, operator.ErrNoVersion
	}
	value, err := s.Value(ctx, e, version)
	return version, value, err
}

type inbox struct{ w *World }

func (i inbox) Inbox(_ context.Context, id webhook.InboxID) (webhook.Inbox, bool, error) {
	if err := i.w.Fail("Inbox"); err != nil {
		return webhook.Inbox{}, false, err
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	row, ok := i.w.Rows[id]
	return row, ok, nil
}

func (i inbox) Inboxes(_ context.Context, ids []webhook.InboxID) ([]webhook.Inbox, error) {
	if err := i.w.Fail("Inboxes"); err != nil {
		return nil, err
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	var rows []webhook.Inbox
	for _, id := range ids {
		if row, ok := i.w.Rows[id]; ok {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (i inbox) RecentInbox(_ context.Context, e webhook.EndpointID, since, until time.Time) iter.Seq2[webhook.Inbox, error] {
	return i.list("RecentInbox", since, until, func(r webhook.Inbox) (time.Time, bool) { return r.ReceivedAt, r.Endpoint == e })
}

func (i inbox) FailedInbox(_ context.Context, since, until time.Time) iter.Seq2[webhook.Inbox, error] {
	return i.list("FailedInbox", since, until, func(r webhook.Inbox) (time.Time, bool) { return r.ProcessedAt, r.Status == webhook.Failed })
}

func (i inbox) Outbox(_ context.Context, id webhook.OutboxID) (webhook.Outbox, bool, error) {
	if err := i.w.Fail("Outbox"); err != nil {
		return webhook.Outbox{}, false, err
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	o, ok := i.w.Promises[id]
	return o, ok, nil
}

func (i inbox) Mark(_ context.Context, id webhook.InboxID, run int) (webhook.Mark, bool, error) {
	if err := i.w.Fail("Mark"); err != nil {
		return webhook.Mark{}, false, err
	}
	row := i.w.Rows[id]
	if !i.w.Applied[id] || row.Run != run {
		return webhook.Mark{}, false, nil
	}
	return webhook.Mark{InboxID: id, Run: run, At: row.ProcessedAt}, true, nil
}

// OpenPromises has pages of three, so that a test meets more than one.
func (i inbox) OpenPromises(_ context.Context, from string, _ int) (webhook.OutboxPage, error) {
	if err := i.w.Fail("OpenPromises"); err != nil {
		return webhook.OutboxPage{}, err
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	var page webhook.OutboxPage
	for _, id := range slices.Sorted(maps.Keys(i.w.Promises)) {
		if string(id) <= from {
			continue
		}
		if len(page.Rows) == 3 {
			page.Next = string(page.Rows[2].ID)
			break
		}
		page.Rows = append(page.Rows, i.w.Promises[id])
	}
	return page, nil
}

func (i inbox) BringNear(_ context.Context, o webhook.Outbox) (bool, error) {
	if err := i.w.Fail("BringNear"); err != nil {
		return false, err
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	if there, ok := i.w.Promises[o.ID]; !ok || there.Gen != o.Gen {
		return false, nil
	}
	i.w.Promises[o.ID] = o
	return true, i.w.Lose("BringNear")
}

func (i inbox) Reopen(_ context.Context, c webhook.Change, _ int, promise webhook.Outbox, a webhook.Act) (webhook.Verdict, error) {
	if err := i.w.Fail("Reopen"); err != nil {
		return 0, err
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	row := i.w.Rows[c.ID]
	switch {
	case !c.Guard.Allows(row):
		return webhook.ClaimLost, nil
	case i.w.Applied[c.ID] && !c.NextRun:
		return webhook.MarkExists, nil
	}
	i.w.Rows[c.ID], i.w.Promises[promise.ID], i.w.Acts = c.Apply(row), promise, append(i.w.Acts, a)
	return webhook.Committed, i.w.Lose("Reopen")
}

func (i inbox) Hold(_ context.Context, c webhook.Change, promise webhook.Outbox, a webhook.Act) (bool, error) {
	return i.change("Hold", c, a, func() { i.w.Promises[promise.ID] = promise })
}

func (i inbox) FailBy(_ context.Context, c webhook.Change, promise webhook.OutboxID, a webhook.Act) (bool, error) {
	return i.change("FailBy", c, a, func() { delete(i.w.Promises, promise) })
}

func (i inbox) change(call string, c webhook.Change, a webhook.Act, with func()) (bool, error) {
	if err := i.w.Fail(call); err != nil {
		return false, err
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	row := i.w.Rows[c.ID]
	if !c.Guard.Allows(row) {
		return false, nil
	}
	i.w.Rows[c.ID], i.w.Acts = c.Apply(row), append(i.w.Acts, a)
	with()
	return true, i.w.Lose(call)
}

func (i inbox) list(call string, since, until time.Time, pick func(webhook.Inbox) (time.Time, bool)) iter.Seq2[webhook.Inbox, error] {
	return func(yield func(webhook.Inbox, error) bool) {
		if err := i.w.Fail(call); err != nil {
			yield(webhook.Inbox{}, err)
			return
		}
		for _, r := range i.picked(since, until, pick) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (i inbox) picked(since, until time.Time, pick func(webhook.Inbox) (time.Time, bool)) []webhook.Inbox {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	var rows []webhook.Inbox
	for _, r := range i.w.Rows {
		if at, ok := pick(r); ok && !at.Before(since) && !at.After(until) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b webhook.Inbox) int {
		atA, _ := pick(a)
		atB, _ := pick(b)
		return 2*atB.Compare(atA) + strings.Compare(string(a.ID), string(b.ID))
	})
	return rows
}

type bodies struct{ w *World }

func (b bodies) Open(_ context.Context, id webhook.BodyID, _ webhook.Tenant, _ webhook.Digest) ([]byte, error) {
	if err := b.w.Fail("Open"); err != nil {
		return nil, err
	}
	raw, ok := b.w.Bodies[id]
	if !ok {
		return nil, operator.ErrNoBody
	}
	return raw, nil
}

type business struct{ w *World }

func (b business) Get(_ context.Context, k webhook.Key) (webhook.Item, bool, error) {
	item, ok := b.w.Items[k]
	return item, ok, b.w.Fail("Get")
}

func (b business) Rows(_ context.Context, partition, prefix string) iter.Seq2[webhook.Item, error] {
	return func(yield func(webhook.Item, error) bool) {
		var keys []webhook.Key
		for k := range b.w.Items {
			if k.PK == partition && strings.HasPrefix(k.SK, prefix) {
				keys = append(keys, k)
			}
		}
		slices.SortFunc(keys, func(a, b webhook.Key) int { return strings.Compare(a.SK, b.SK) })
		for _, k := range keys {
			row := maps.Clone(b.w.Items[k])
			row["pk"], row["sk"] = k.PK, k.SK
			if !yield(row, nil) {
				return
			}
		}
	}
}

// door is a front door: it verifies as ours does, remembers what it accepted as
// rows in the inbox, and answers in the same words.
type door struct{ w *World }

func (d door) Post(_ context.Context, url string, header map[string]string, body []byte) (int, []byte, error) {
	if d.w.Answer != nil {
		return d.w.Answer(url, header, body)
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	path := strings.Split(strings.TrimPrefix(url, "https://door.test/in/"), "/")
	e, ok := d.w.Endpoints[webhook.EndpointID(path[len(path)-1])]
	a, known := d.w.Providers.Lookup(webhook.Provider(path[0]))
	if len(path) != 2 || !ok || !known {
		return refused(http.StatusNotFound, "not_found")
	}
	version, err := d.verify(a, e, header, body)
	if err != nil {
		return refused(http.StatusUnauthorized, "unauthorized")
	}
	envelope, err := a.Envelope(header, body)
	if err != nil {
		return refused(http.StatusBadRequest, "body_malformed")
	}
	id := webhook.DeriveInboxID(e.Scope, a.Name, envelope.EventID)
	if _, there := d.w.Rows[id]; there {
		return answer(http.StatusOK, map[string]string{"result": "duplicate", "inbox_id": string(id)})
	}
	digest := webhook.DigestOf(body)
	row := webhook.Inbox{
		ID: id, Provider: a.Name, Endpoint: e.ID, Tenant: e.Tenant, EventID: envelope.EventID, EventType: envelope.Type,
		ObjectID: envelope.ObjectID, ObjectVersion: envelope.ObjectVersion, ProviderCreatedAt: envelope.CreatedAt,
		ReceivedAt: d.w.Clock, BodyID: webhook.DeriveBodyID(e.ID, digest), Digest: digest, MatchedVersion: version,
		BodyExpiresAt: d.w.Clock.Add(30 * 24 * time.Hour), Status: webhook.Received, NextAttemptAt: d.w.Clock,
	}
	d.w.Rows[id], d.w.Bodies[row.BodyID] = row, body
	return answer(http.StatusOK, map[string]string{"result": "accepted", "inbox_id": string(id)})
}

func (d door) verify(a *provider.Adapter, e webhook.Endpoint, header map[string]string, body []byte) (webhook.KeyVersion, error) {
	meta, err := a.Scheme.Metadata(header)
	if err != nil {
		return "", err
	}
	var keys []signature.Key
	for _, v := range e.Trusted(d.w.Clock) {
		secret, err := a.Scheme.DecodeKey(d.w.Secrets[e.Secret][v])
		if err != nil {
			return "", err
		}
		keys = append(keys, signature.Key{Version: string(v), Secret: secret})
	}
	match, err := a.Scheme.Verify(signature.Request{Method: http.MethodPost, Header: header, Body: body}, meta, keys)
	if err != nil {
		return "", err
	}
	return webhook.KeyVersion(match.Version), a.Scheme.Fresh(meta, d.w.Clock)
}

func refused(status int, code string) (int, []byte, error) {
	return answer(status, map[string]string{"error": code})
}

func answer(status int, v map[string]string) (int, []byte, error) {
	b, err := json.Marshal(v)
	return status, b, err
}
