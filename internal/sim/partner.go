package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/backoff"
	"dakghar/internal/delivery"
	"dakghar/internal/directory"
	"dakghar/internal/dispatcher"
	"dakghar/internal/dynamo"
	"dakghar/internal/fault"
	"dakghar/internal/lambdaedge"
	"dakghar/internal/limit"
	"dakghar/internal/secret"
	"dakghar/internal/telemetry"
	"dakghar/internal/webhook"
)

// Partner is everybody who is told anything: it keeps all that reached it, and
// answers as it was told to. It is safe for concurrent use.
type Partner struct {
	world *World

	mu      sync.Mutex
	got     []Arrival
	answers []PartnerAnswer
	always  PartnerAnswer
}

// Arrival is one request as the wire carried it.
type Arrival struct {
	URL    string
	Header http.Header
	Body   []byte
	At     time.Time
}

// PartnerAnswer is what the partner says to one request.
type PartnerAnswer struct {
	Status int // 204 when zero
	Header http.Header
	Body   []byte
	Err    error // after the status, or in place of one: the request arrived all the same
	// Before runs when the request is sent, before it arrives; Lost keeps it from arriving.
	Before func()
	Lost   bool
}

// Answer decides about the next requests, in turn.
func (p *Partner) Answer(answers ...PartnerAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = append(p.answers, answers...)
}

// Always decides about all requests that no answer is left for.
func (p *Partner) Always(a PartnerAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.always = a
}

// Got returns what arrived, in order.
func (p *Partner) Got() []Arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// Do implements [dispatcher.Client].
func (p *Partner) Do(_ context.Context, r dispatcher.Request) (dispatcher.Response, error) {
	answer := p.next()
	if answer.Before != nil {
		answer.Before()
	}
	if p.world.Dispatcher.Switch.Dead() || answer.Lost {
		return dispatcher.Response{}, fault.New(fault.Theirs, "egress_reset", errors.New("nothing arrived"))
	}
	p.mu.Lock()
	p.got = append(p.got, Arrival{r.URL, r.Header.Clone(), slices.Clone(r.Body), p.world.Now()})
	p.mu.Unlock()
	if answer.Err != nil {
		return dispatcher.Response{Status: answer.Status}, answer.Err
	}
	if answer.Status == 0 {
		answer.Status = http.StatusNoContent
	}
	return dispatcher.Response{Status: answer.Status, Header: answer.Header, Body: answer.Body}, nil
}

func (p *Partner) next() PartnerAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.answers) == 0 {
		return p.always
	}
	a := p.answers[0]
	p.answers = p.answers[1:]
	return a
}

func (w *World) newDispatcher(cfg aws.Config, o Options) *lambdaedge.Dispatch {
	store, now := w.store(cfg), w.clockOf("dispatcher", o)
	client := secretsmanager.NewFromConfig(cfg)
	return &lambdaedge.Dispatch{
		Dispatcher: &dispatcher.Dispatcher{
			Store: store, Subscriptions: directory.NewSubscriptions(store), Bodies: w.bodies(cfg, o, now),
			Keys: secret.Signing{
				Keys:  secret.New(secret.Config{Client: client, Now: now, CallTimeout: patience}),
				Named: secret.NewNamed(secret.Config{Client: client, Now: now, CallTimeout: patience}),
			},
			Senders: map[delivery.TargetKind]dispatcher.Sender{delivery.HTTP: &dispatcher.HTTP{Client: w.Partner, Agent: "Dakghar"}},
			Queue:   w.wakes(cfg),
			Partners: &dispatcher.Partners{
				Rates: limit.NewLimiter(store, patience), Trip: 5, Open: backoff.Schedule{First: 10 * time.Second, Max: 5 * time.Minute}, Chance: w.chance,
			},
			Policy: dispatcher.Policy{Attempt: patience, Lease: 2 * time.Minute, Ours: backoff.Schedule{First: 2 * time.Second, Max: 5 * time.Minute}},
			Now:    now, NewID: w.NewID, Chance: w.chance, Wait: w.wait,
		},
		Log: telemetry.New(w.Log, "dispatcher", now),
	}
}

// SigningText is the secret of every subscription's first key.
const SigningText = "whsec_b3V0Ym91bmQgc2VjcmV0IG9mIHRoaXJ0eS10d28h"

// Subscribe makes a subscription with one key, to be told of everything unless
// change says otherwise.
func (w *World) Subscribe(id delivery.SubscriptionID, change func(*delivery.Subscription)) delivery.Subscription {
	w.T.Helper()
	ctx := w.T.Context()
	name := w.stackName() + "/subscription/" + string(id)
	w.spy.plant(SigningText)
	version := w.putSecret(name, SigningText)
	s := delivery.Subscription{
		ID: id, Tenant: "acme", Target: delivery.Target{Kind: delivery.HTTP, URL: "https://partner.example.com/hooks/" + string(id)},
		Types: []string{"*"}, ProfileName: delivery.Standard, Secret: name, State: delivery.Active, CreatedAt: w.Now(),
		Keys: []delivery.Key{{ID: "k1", Version: version, AddedAt: w.Now()}},
	}
	if change != nil {
		change(&s)
	}
	act := webhook.Act{ID: w.NewID(), At: w.Now(), Name: "subscription create", Subject: "subscription " + string(id), Who: "sim"}
	if ok, err := w.Outside.CreateSubscriptionBy(ctx, s, act); err != nil || !ok {
		w.T.Fatalf("create subscription: %v, %v", ok, err)
	}
	w.Advance(directory.Age)
	return s
}

// putSecret stores a text as a new version of a secret.
func (w *World) putSecret(name, text string) webhook.KeyVersion {
	w.T.Helper()
	ctx := w.T.Context()
	token := "00000000-0000-4000-8000-" + leftPad(len(text)+w.secretsMade)
	w.secretsMade++
	made, err := w.secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretString: &text, ClientRequestToken: &token})
	if err == nil {
		return webhook.KeyVersion(aws.ToString(made.VersionId))
	}
	put, err := w.secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: &name, SecretString: &text, ClientRequestToken: &token, VersionStages: []string{"k" + token},
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return webhook.KeyVersion(aws.ToString(put.VersionId))
}

func leftPad(n int) string {
	text := strconv.Itoa(n)
	return "000000000000"[:12-len(text)] + text
}

// ChangeSubscription changes a subscription's row, as an operator does, and lets
// the time pass in which processes remember it.
func (w *World) ChangeSubscription(id delivery.SubscriptionID, change func(*delivery.Subscription)) {
	w.T.Helper()
	s, found, err := w.Outside.Subscription(w.T.Context(), id)
	if err != nil || !found {
		w.T.Fatalf("subscription %s: %v, %v", id, found, err)
	}
	change(&s)
	if ok, err := w.Outside.UpdateSubscription(w.T.Context(), s); err != nil || !ok {
		w.T.Fatalf("change subscription: %v, %v", ok, err)
	}
	w.Advance(directory.Age)
}

// TurnCredential gives the partner of a subscription another credential, in the
// header that the subscription names.
func (w *World) TurnCredential(id delivery.SubscriptionID, text string) (name string) {
	w.T.Helper()
	w.spy.plant(text)
	name = w.stackName() + "/subscription/" + string(id) + "/credential"
	_, err := w.secrets.CreateSecret(w.T.Context(), &secretsmanager.CreateSecretInput{Name: &name, SecretString: &text, ClientRequestToken: aws.String(w.NewID() + "-credential-of-a-partner-first")})
	if err != nil {
		_, err = w.secrets.PutSecretValue(w.T.Context(), &secretsmanager.PutSecretValueInput{SecretId: &name, SecretString: &text, ClientRequestToken: aws.String(w.NewID() + "-credential-of-a-partner-next")})
	}
	if err != nil {
		w.T.Fatal(err)
	}
	return name
}

// RotateSigning gives a subscription a second key; both sign.
func (w *World) RotateSigning(id delivery.SubscriptionID, keyID, text string) {
	w.T.Helper()
	w.spy.plant(text)
	version := w.putSecret(w.stackName()+"/subscription/"+string(id), text)
	w.ChangeSubscription(id, func(s *delivery.Subscription) {
		*s = s.Rotate(delivery.Key{ID: keyID, Version: version, AddedAt: w.Now()}, w.Now())
	})
}

// Deliveries returns every delivery.
func (w *World) Deliveries() []delivery.Delivery {
	w.T.Helper()
	var all []delivery.Delivery
	for _, item := range w.rows(w.tables.Delivery) {
		if text(item, "sk") != "delivery" {
			continue
		}
		d, found, err := w.Outside.Delivery(w.T.Context(), delivery.ID(text(item, "id")))
		if err != nil || !found {
			w.T.Fatalf("delivery: %v, %v", found, err)
		}
		all = append(all, d)
	}
	return all
}

// Attempts returns a delivery's attempts.
func (w *World) Attempts(id delivery.ID) []delivery.Attempt {
	w.T.Helper()
	all, err := w.Outside.Attempts(w.T.Context(), id)
	if err != nil {
		w.T.Fatal(err)
	}
	return all
}

// checkDeliveries returns what is wrong with what partners were told: one family
// of attempts for each event and subscription, no attempt unrecorded, the same
// bytes and identity in every attempt, and every signature valid.
func (w *World) checkDeliveries() []string {
	w.T.Helper()
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	recorded := map[string]bool{} // delivery and attempt
	families := map[string]int{}
	digests := map[string]webhook.Digest{}
	for _, d := range w.Deliveries() {
		if !d.Status.Terminal() && d.Status != delivery.Faulted {
			complain("delivery %s is %s, and nobody comes for it", d.ID, d.Status)
		}
		families[fmt.Sprint(d.Effect.ID, d.Subscription, d.Generation)]++
		digests[string(d.ID)] = d.Effect.Digest
		attempts := w.Attempts(d.ID)
		if len(attempts) != d.AttemptCount {
			complain("delivery %s counts %d attempts and has %d", d.ID, d.AttemptCount, len(attempts))
		}
		for _, a := range attempts {
			recorded[fmt.Sprint(d.ID, "/", a.N)] = true
		}
	}
	for family, n := range families {
		if n != 1 {
			complain("%d deliveries of %s", n, family)
		}
	}
	for _, a := range w.Partner.Got() {
		id, n := a.Header.Get("Webhook-Id"), a.Header.Get("Dakghar-Attempt")
		if !recorded[id+"/"+n] {
			complain("attempt %s of %s arrived and is not recorded", n, id)
		}
		if digests[id] != webhook.DigestOf(a.Body) {
			complain("attempt %s of %s carried other bytes than are stored", n, id)
		}
	}
	return wrong
}

// ReplayDelivery lets an operator have a delivery made again, under a new
// identity. A person whose command dies runs it again, and reads anew.
func (w *World) ReplayDelivery(id delivery.ID) {
	w.T.Helper()
	for range operateMax {
		done, err := w.replayDelivery(id)
		switch {
		case w.Operator.Switch.Dead():
			w.Operator.restart()
		case err != nil:
			w.T.Fatal(err)
		case done:
			return
		}
	}
	w.T.Fatalf("the replay of %s does not end", id)
}

func (w *World) replayDelivery(id delivery.ID) (bool, error) {
	ctx, store := w.T.Context(), running[*dynamo.Store](w.Operator)
	d, found, err := store.Delivery(ctx, id)
	if err != nil || !found || !d.Status.Terminal() || d.ReplayedAs != "" {
		return err == nil, err
	}
	s, _, err := store.Subscription(ctx, d.Subscription)
	if err != nil {
		return false, err
	}
	next, change := d.Replay(s, w.Now())
	return store.ReplayDelivery(ctx, next, change, webhook.Act{
		ID: w.NewID(), At: w.Now(), Name: "delivery replay", Subject: "delivery " + string(id), Who: "sim",
	})
}

// Flat returns a request's headers by their lower-case names.
func Flat(h http.Header) map[string]string {
	flat := make(map[string]string, len(h))
	for name := range h {
		flat[strings.ToLower(name)] = h.Get(name)
	}
	return flat
}
