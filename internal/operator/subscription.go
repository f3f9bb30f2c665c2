package operator

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// Deliveries keeps subscriptions and what is delivered to them. The changes that
// take an act commit together with it; false means that the row was taken, or has
// moved on since it was read, and nothing was written.
type Deliveries interface {
	Subscription(ctx context.Context, id delivery.SubscriptionID) (delivery.Subscription, bool, error)
	// Subscriptions returns a tenant's, or everybody's for an empty one.
	Subscriptions(ctx context.Context, t webhook.Tenant) ([]delivery.Subscription, error)
	CreateSubscriptionBy(ctx context.Context, s delivery.Subscription, a webhook.Act) (bool, error)
	UpdateSubscriptionBy(ctx context.Context, s delivery.Subscription, a webhook.Act) (bool, error)

	Delivery(ctx context.Context, id delivery.ID) (delivery.Delivery, bool, error)
	Attempts(ctx context.Context, id delivery.ID) ([]delivery.Attempt, error)
	// DeliveriesOf yields a subscription's by the time they were made, and
	// DeadDeliveries those that ended DEAD by the time of that, both newest first, with
	// both bounds included.
	DeliveriesOf(ctx context.Context, id delivery.SubscriptionID, since, until time.Time) iter.Seq2[delivery.Delivery, error]
	DeadDeliveries(ctx context.Context, since, until time.Time) iter.Seq2[delivery.Delivery, error]
	ChangeDelivery(ctx context.Context, c delivery.Change) (bool, error)
	ChangeDeliveryBy(ctx context.Context, c delivery.Change, a webhook.Act) (bool, error)
	// ReplayDelivery inserts the next delivery and links the old one to it.
	ReplayDelivery(ctx context.Context, next delivery.Delivery, c delivery.Change, a webhook.Act) (bool, error)
	// AnnounceBy inserts the promise that a partner is told something.
	AnnounceBy(ctx context.Context, o webhook.Outbox, a webhook.Act) (bool, error)
}

// Keeper stores the bytes of a test event.
type Keeper interface {
	Put(ctx context.Context, b webhook.Body) (webhook.Placed, error)
}

// Wakes tells the dispatcher that there is something to look at. It is never the
// record: a wake-up that is lost is made up for by the row's own time.
type Wakes interface {
	Send(ctx context.Context, wakes []webhook.Wake, delays []time.Duration) []error
}

// NewSubscription is the wish for a subscription.
type NewSubscription struct {
	ID     delivery.SubscriptionID // drawn at random if empty
	Tenant webhook.Tenant          // "default"
	// Ed25519 makes it sign with a private key, in place of a shared secret.
	Ed25519 bool
	Set     SubscriptionSettings
	Why     string
}

// Issued is a subscription with the key that was made for it. It is the one time
// that the key's secret is shown.
type Issued struct {
	Subscription delivery.Subscription
	KeyID        string
	// Secret is what the partner verifies with, or empty for a key pair, of which
	// Public is the half that anybody may have.
	Secret Secret
	Public string
	Next   []Step
}

// Subscribe makes a subscription: first its signing key and its credential, then
// its row. Repeated with the same id after a crash between them, it goes on.
func (o *Operator) Subscribe(ctx context.Context, n NewSubscription) (Issued, error) {
	s, err := o.planSubscription(n)
	if err != nil {
		return Issued{}, err
	}
	if err := o.notSubscribed(ctx, s.ID); err != nil {
		return Issued{}, err
	}
	act, err := o.act(ctx, "subscription create", subjectOfSubscription(s.ID), n.Why)
	if err != nil {
		return Issued{}, err
	}
	key, secret, err := o.newKey(ctx, s, n.Ed25519, act)
	if err != nil {
		return Issued{}, err
	}
	if err := o.putPartnerCredential(ctx, s, n.Set.Credential, n.Why); err != nil {
		return Issued{}, err
	}
	s.Keys = []delivery.Key{key}
	written, err := o.Deliveries.CreateSubscriptionBy(ctx, s, act)
	if err != nil {
		return Issued{}, &Refusal{
			Code: codeUnavailable, Problem: "the registry gave no usable answer", Err: err,
			Next: []Step{
				say("if nobody was faster, the same command goes on, with --id " + string(s.ID)),
				run("see whether it is there:", "subscription", "show", string(s.ID)),
			},
		}
	}
	if !written {
		return Issued{}, o.notSubscribed(ctx, s.ID)
	}
	s.Revision = 1
	issued, err := o.issued(s, key, secret)
	if s.Target.Kind != delivery.HTTP {
		issued.Next = append(issued.Next, say("the stack sends only to queues and buses that its parameters SinkQueueArns and SinkBusArns name: see that this one is among them"))
	}
	issued.Next = append(issued.Next, o.sameTarget(ctx, s)...)
	issued.Next = append(issued.Next,
		say(fmt.Sprintf("every process knows the subscription within %.0f s", PauseWithin.Seconds())),
		run("then see that a test arrives:", "subscription", "test", string(s.ID)))
	return issued, err
}

// sameTarget says which other subscriptions of the tenant tell the same partner. That
// may be meant: one for each type, or the old one's successor. It is only advice, and
// missing where the others cannot be read.
func (o *Operator) sameTarget(ctx context.Context, s delivery.Subscription) []Step {
	all, err := o.Deliveries.Subscriptions(ctx, s.Tenant)
	if err != nil {
		return nil
	}
	var steps []Step
	for _, other := range all {
		if other.ID != s.ID && other.State != delivery.Stopped && other.Target.Kind == s.Target.Kind && other.Target.URL == s.Target.URL && other.Target.Bus == s.Target.Bus {
			steps = append(steps, say(fmt.Sprintf("subscription %s tells the same target: what both want arrives there twice, under two ids", other.ID)))
		}
	}
	return steps
}

// issued shows a key that was made just now.
func (o *Operator) issued(s delivery.Subscription, key delivery.Key, secret Secret) (Issued, error) {
	i := Issued{Subscription: s, KeyID: key.ID, Secret: secret}
	public, err := publicHalf(key.ID, secret)
	if err != nil {
		return i, err
	}
	if public != "" {
		i.Public, i.Secret = public, Secret{}
		i.Next = []Step{say("give the public key and its id to the partner, as verify-our-webhooks tells; nobody else ever needs the private one")}
		return i, nil
	}
	i.Next = []Step{say("give the secret and its id to the partner, by a way that only the partner reads: it is not shown again")}
	return i, nil
}

// notSubscribed refuses an id that is taken.
func (o *Operator) notSubscribed(ctx context.Context, id delivery.SubscriptionID) error {
	_, found, err := o.Deliveries.Subscription(ctx, id)
	switch {
	case err != nil:
		return unreachable("the registry", err)
	case !found:
		return nil
	}
	return refuse("subscription_exists", fmt.Sprintf("there is a subscription %s already; ids are never used again", id),
		run("see what it is:", "subscription", "show", string(id)),
		run("see what can be changed about it:", "subscription", "update", "--help"),
		run("if its secret was never given to anybody, make another:", "subscription", "rotate", string(id), "--now"),
		say("or choose another --id"))
}

// planSubscription turns a wish into a row, or says everything that is wrong with it.
func (o *Operator) planSubscription(n NewSubscription) (delivery.Subscription, error) {
	if n.ID == "" {
		id := strings.ToLower(o.NewID())
		n.ID = delivery.SubscriptionID("sub-" + id[:min(len(id), 10)])
	}
	now := o.Now()
	s := n.Set.over(delivery.Subscription{
		ID: n.ID, Tenant: or(n.Tenant, DefaultTenant), ProfileName: delivery.Standard,
		Secret: o.SubscriptionPrefix + string(n.ID), State: delivery.Active, StateAt: now, CreatedAt: now,
	}, o.SubscriptionPrefix)
	if len(s.Types) == 0 && !s.Calls {
		s.Types = []string{"*"}
	}
	var problems []string
	const word = "lower-case letters, digits and inner hyphens"
	if !webhook.ValidEndpointID(string(s.ID)) {
		problems = append(problems, fmt.Sprintf("--id is 1 to %d %s", webhook.EndpointIDBytesMax, word))
	}
	if !webhook.ValidEndpointID(string(s.Tenant)) || len(s.Tenant) > webhook.TenantBytesMax {
		problems = append(problems, fmt.Sprintf("--tenant is 1 to %d %s", webhook.TenantBytesMax, word))
	}
	problems = append(problems, o.subscriptionProblems(s, n.Set.Credential)...)
	if len(problems) > 0 {
		return s, misuse(strings.Join(problems, "; "), run("see what the flags mean:", "subscription", "create", "--help"))
	}
	return s, nil
}

func subjectOfSubscription(id delivery.SubscriptionID) string { return "subscription " + string(id) }

// subscription reads a subscription that must be there.
func (o *Operator) subscription(ctx context.Context, id delivery.SubscriptionID) (delivery.Subscription, error) {
	if !webhook.ValidEndpointID(string(id)) {
		return delivery.Subscription{}, misuse("a subscription's id is 1 to 40 lower-case letters, digits and inner hyphens",
			run("list the subscriptions:", "subscription", "list"))
	}
	s, found, err := o.Deliveries.Subscription(ctx, id)
	switch {
	case err != nil:
		return s, unreachable("the registry", err)
	case !found:
		return s, refuse("subscription_unknown", "there is no subscription "+string(id),
			run("list the subscriptions:", "subscription", "list"),
			run("or create it:", "subscription", "create", "--id", string(id), "--url", "URL"))
	}
	return s, nil
}

// changeSubscription is [Operator.change] for a subscription.
func (o *Operator) changeSubscription(
	ctx context.Context, id delivery.SubscriptionID, act webhook.Act, decide func(delivery.Subscription) (to delivery.Subscription, done bool, err error),
) (delivery.Subscription, error) {
	return changed(ctx, o, "the subscription's row", decide,
		func() (delivery.Subscription, error) { return o.subscription(ctx, id) },
		func(to *delivery.Subscription) (bool, error) {
			written, err := o.Deliveries.UpdateSubscriptionBy(ctx, *to, act)
			to.Revision++
			return written, err
		})
}

// Subscriptions returns a tenant's subscriptions, or everybody's for an empty one,
// in the order of their ids.
func (o *Operator) Subscriptions(ctx context.Context, t webhook.Tenant) ([]delivery.Subscription, error) {
	all, err := o.Deliveries.Subscriptions(ctx, t)
	if err != nil {
		return nil, unreachable("the registry", err)
	}
	return all, nil
}

// SubscriptionShown is a subscription with what is going on.
type SubscriptionShown struct {
	Subscription delivery.Subscription
	// Last are its newest deliveries, newest first.
	Last []delivery.Delivery
}

// lastShown is how many deliveries are shown with a subscription, and lastSince
// how far back they are looked for.
const (
	lastShown = 5
	lastSince = 7 * 24 * time.Hour
)

// ShowSubscription returns one subscription with its newest deliveries.
func (o *Operator) ShowSubscription(ctx context.Context, id delivery.SubscriptionID) (SubscriptionShown, error) {
	s, err := o.subscription(ctx, id)
	if err != nil {
		return SubscriptionShown{}, err
	}
	shown := SubscriptionShown{Subscription: s}
	now := o.Now()
	for d, err := range first(o.Deliveries.DeliveriesOf(ctx, id, now.Add(-lastSince), now.Add(clockAhead)), lastShown) {
		if err != nil {
			return shown, unreachable("the deliveries", err)
		}
		shown.Last = append(shown.Last, d)
	}
	return shown, nil
}

// SubscriptionChanged is a subscription after an act.
type SubscriptionChanged struct {
	Subscription delivery.Subscription
	// Existed is set when it was like this before.
	Existed bool
	Next    []Step
}

// UpdateSubscription changes the settings of a subscription. The partner's
// credential goes to the secret store first, then the row changes; repeated after
// a crash between the two it goes on, repeated after success it changes nothing.
func (o *Operator) UpdateSubscription(ctx context.Context, id delivery.SubscriptionID, set SubscriptionSettings, why string) (SubscriptionChanged, error) {
	s, err := o.subscription(ctx, id)
	if err != nil {
		return SubscriptionChanged{}, err
	}
	check := func(to delivery.Subscription) error {
		if problems := o.subscriptionProblems(to, set.Credential); len(problems) > 0 {
			return misuse(strings.Join(problems, "; "), run("see what the flags mean:", "subscription", "update", "--help"))
		}
		return nil
	}
	if err := check(set.over(s, o.SubscriptionPrefix)); err != nil {
		return SubscriptionChanged{}, err
	}
	act, err := o.act(ctx, "subscription update", subjectOfSubscription(id), why)
	if err != nil {
		return SubscriptionChanged{}, err
	}
	if err := o.putPartnerCredential(ctx, s, set.Credential, why); err != nil {
		return SubscriptionChanged{}, err
	}
	var c SubscriptionChanged
	c.Subscription, err = o.changeSubscription(ctx, id, act, func(now delivery.Subscription) (delivery.Subscription, bool, error) {
		if now.State == delivery.Stopped && now.StateWhy == deletedWhy {
			return now, false, deleted(id)
		}
		to := set.over(now, o.SubscriptionPrefix)
		c.Existed = sameSettings(now, to) && set.Credential.Empty()
		return to, sameSettings(now, to), check(to)
	})
	c.Next = []Step{
		say("every process knows the new settings within 30 s; deliveries that are under way keep their identity and their deadline"),
		run("see them:", "subscription", "show", string(id)),
	}
	return c, err
}

// deletedWhy is why a subscription is stopped that an operator has deleted.
const deletedWhy = "deleted"

func deleted(id delivery.SubscriptionID) error {
	return refuse("subscription_deleted", fmt.Sprintf("subscription %s was deleted, and ids are never used again", id),
		run("make another:", "subscription", "create", "--url", "URL"))
}

// DeleteSubscription stops a subscription for good: nothing more is made for it,
// and the dispatcher cancels what waits. Its row and its deliveries stay to be
// looked at. Repeated, it changes nothing.
func (o *Operator) DeleteSubscription(ctx context.Context, id delivery.SubscriptionID, why string) (SubscriptionChanged, error) {
	c, err := o.setState(ctx, id, "subscription delete", why, func(s delivery.Subscription, at time.Time) (delivery.Subscription, bool, error) {
		if s.State == delivery.Stopped && s.StateWhy == deletedWhy {
			return s, true, nil
		}
		return s.Stop(deletedWhy, at), false, nil
	})
	c.Next = []Step{
		say("every process knows within 30 s; a delivery that waits ends CANCELLED when its turn comes"),
		run("see them end:", "delivery", "list", "--subscription", string(id)),
	}
	return c, err
}

// PauseSubscription lets deliveries be made and wait. Drain, in its place, lets
// those go out that were made before. Repeated, neither changes anything.
func (o *Operator) PauseSubscription(ctx context.Context, id delivery.SubscriptionID, drain bool, why string) (SubscriptionChanged, error) {
	name, to := "subscription pause", delivery.Paused
	if drain {
		name, to = "subscription drain", delivery.Draining
	}
	c, err := o.setState(ctx, id, name, why, func(s delivery.Subscription, at time.Time) (delivery.Subscription, bool, error) {
		switch {
		case s.State == delivery.Stopped && s.StateWhy == deletedWhy:
			return s, false, deleted(id)
		case s.State == delivery.Stopped:
			return s, false, refuse("subscription_stopped", fmt.Sprintf("subscription %s is stopped (%s): nothing is delivered to it as it is", id, s.StateWhy),
				run("see it:", "subscription", "show", string(id)))
		case s.State == to:
			return s, true, nil
		case s.State == delivery.Paused:
			return s, false, refuse("subscription_paused", fmt.Sprintf("subscription %s is paused; what waits goes out once it is resumed", id),
				run("resume it first:", "subscription", "resume", string(id)))
		}
		s.State, s.StateWhy, s.StateAt = to, "operator", at
		return s, false, nil
	})
	c.Next = []Step{
		run("see what waits:", "delivery", "list", "--subscription", string(id), "--status", "PENDING,RETRY"),
		run("go on:", "subscription", "resume", string(id)),
	}
	return c, err
}

func (o *Operator) setState(
	ctx context.Context, id delivery.SubscriptionID, name, why string, decide func(delivery.Subscription, time.Time) (delivery.Subscription, bool, error),
) (SubscriptionChanged, error) {
	act, err := o.act(ctx, name, subjectOfSubscription(id), why)
	if err != nil {
		return SubscriptionChanged{}, err
	}
	var c SubscriptionChanged
	written := false
	c.Subscription, err = o.changeSubscription(ctx, id, act, func(s delivery.Subscription) (delivery.Subscription, bool, error) {
		to, done, err := decide(s, act.At)
		c.Existed = done && !written // else it is our own write, whose answer was lost
		written = written || !done
		return to, done, err
	})
	return c, err
}

// PlanSubscriptionResume counts the deliveries of a subscription that wait. It
// writes nothing.
func (o *Operator) PlanSubscriptionResume(ctx context.Context, id delivery.SubscriptionID, rate int, why string) (Plan, error) {
	if err := checkRate(rate, "deliveries"); err != nil {
		return Plan{}, err
	}
	s, err := o.subscription(ctx, id)
	switch {
	case err != nil:
		return Plan{}, err
	case s.State == delivery.Stopped && s.StateWhy == deletedWhy:
		return Plan{}, deleted(id)
	}
	now := o.Now()
	// No delivery waits longer than its deadline, whatever its profile was.
	f := webhook.Filter{Subscription: string(id), Statuses: statusWords(waitingDeliveries()), Since: now.Add(-deadlineMax()), Until: now.Add(clockAhead)}
	return o.countDeliveries(ctx, o.jobOf(Bulk{Act: actSubscriptionResume, Filter: f, Why: why, Rate: rate}), nearDeliveryUnits)
}

func waitingDeliveries() []delivery.Status {
	return slices.DeleteFunc(delivery.Statuses(), func(s delivery.Status) bool { return !s.Waiting() })
}

// deadlineMax is the longest deadline of any profile.
func deadlineMax() time.Duration {
	longest := time.Duration(0)
	for _, p := range delivery.Profiles() {
		longest = max(longest, p.Deadline)
	}
	return longest
}

// ResumeSubscription makes a subscription active again, forgets that its partner
// was failing, and then, as a job, brings every waiting delivery near. The job
// begins when every process knows. Repeated, also after a crash anywhere, it does
// the rest.
func (o *Operator) ResumeSubscription(ctx context.Context, p Plan, tell func(webhook.Job)) (webhook.Job, error) {
	id := delivery.SubscriptionID(p.Job.Filter.Subscription)
	_, err := o.setState(ctx, id, actSubscriptionResume, p.Job.Why, func(s delivery.Subscription, at time.Time) (delivery.Subscription, bool, error) {
		switch {
		case s.State == delivery.Stopped && s.StateWhy == deletedWhy:
			return s, false, deleted(id)
		case s.State == delivery.Active:
			return s, true, nil
		}
		s.State, s.StateWhy, s.StateAt, s.FailingSince = delivery.Active, "", at, time.Time{}
		return s, false, nil
	})
	if err != nil || p.Matched == 0 {
		return p.Job, err
	}
	p.Job.NotBefore = o.Now().Add(PauseWithin + resumeMargin)
	return o.Start(ctx, p, tell)
}
