package operator

import (
	"context"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// The names of the deeds that are done to deliveries, which are those of the commands.
const (
	actDeliveryReplay     = "delivery replay"
	actDeliveryCancel     = "delivery cancel"
	actDeliveryResume     = "delivery resume"
	actSubscriptionResume = "subscription resume"
)

// ofDeliveries reports whether a job's act is done to deliveries.
func ofDeliveries(act string) bool {
	switch act {
	case actDeliveryReplay, actDeliveryCancel, actDeliveryResume, actSubscriptionResume:
		return true
	}
	return false
}

// deliveryDeed is one thing that an operator does to a delivery, by itself or in a
// job.
type deliveryDeed struct {
	name string
	// from are the states in which it may be done, usual those that many at once are
	// picked from where nobody says which.
	from, usual []delivery.Status
	// units is what it costs in write units, see [Plan].
	units int
	do    func(o *Operator, ctx context.Context, d delivery.Delivery, act webhook.Act) (delivery.Delivery, error)
}

// nearDeliveryUnits are the write units of one delivery that is brought near.
const nearDeliveryUnits = 3

// deliveryDeeds lists what can be done to a delivery. A test in package dynamo
// counts the units.
func deliveryDeeds() []deliveryDeed {
	return []deliveryDeed{
		{
			actDeliveryReplay, []delivery.Status{delivery.Delivered, delivery.Dead, delivery.Expired, delivery.Cancelled},
			[]delivery.Status{delivery.Dead, delivery.Expired, delivery.Cancelled}, 10, (*Operator).replayDelivery,
		},
		{actDeliveryCancel, openDeliveries(), openDeliveries(), 7, (*Operator).cancelDelivery},
		{actDeliveryResume, []delivery.Status{delivery.Faulted}, []delivery.Status{delivery.Faulted}, 8, (*Operator).resumeDelivery},
	}
}

func openDeliveries() []delivery.Status {
	return slices.DeleteFunc(delivery.Statuses(), delivery.Status.Terminal)
}

func deliveryDeedOf(name string) (deliveryDeed, bool) {
	all := deliveryDeeds()
	i := slices.IndexFunc(all, func(d deliveryDeed) bool { return d.name == name })
	if i < 0 {
		return deliveryDeed{}, false
	}
	return all[i], true
}

// ReplayDelivery makes a delivery that has ended once more, under a new id that
// is linked to the old one, with all its attempts and the subscription as it is
// today. It returns the new one.
func (o *Operator) ReplayDelivery(ctx context.Context, id delivery.ID, why string) (delivery.Delivery, error) {
	return o.oneDelivery(ctx, id, actDeliveryReplay, why)
}

// CancelDelivery ends a delivery that has not ended. An attempt that is under way
// may still arrive.
func (o *Operator) CancelDelivery(ctx context.Context, id delivery.ID, why string) (delivery.Delivery, error) {
	return o.oneDelivery(ctx, id, actDeliveryCancel, why)
}

// ResumeDelivery lets a FAULTED delivery be worked on, once what was missing is
// there.
func (o *Operator) ResumeDelivery(ctx context.Context, id delivery.ID, why string) (delivery.Delivery, error) {
	return o.oneDelivery(ctx, id, actDeliveryResume, why)
}

func subjectOfDelivery(id delivery.ID) string { return "delivery " + string(id) }

func (o *Operator) oneDelivery(ctx context.Context, id delivery.ID, name, why string) (delivery.Delivery, error) {
	d, err := o.delivery(ctx, id)
	if err != nil {
		return d, err
	}
	act, err := o.act(ctx, name, subjectOfDelivery(id), why)
	if err != nil {
		return d, err
	}
	return o.performDelivery(ctx, d, act)
}

// delivery reads a delivery that must be there.
func (o *Operator) delivery(ctx context.Context, id delivery.ID) (delivery.Delivery, error) {
	d, found, err := o.Deliveries.Delivery(ctx, id)
	switch {
	case err != nil:
		return d, unreachable("the deliveries", err)
	case !found:
		if strings.HasPrefix(string(id), "in_") {
			return d, refuse("delivery_unknown", fmt.Sprintf("there is no delivery %q: that is the id of an event", id),
				run("see the event:", "inbox", "show", string(id)))
		}
		return d, refuse("delivery_unknown", fmt.Sprintf("there is no delivery %q", id),
			say("a delivery's id begins with dl_ and is the webhook-id that the partner sees; a delivery's row is kept for 90 days after it ended"),
			run("list a subscription's newest deliveries:", "delivery", "list", "--subscription", "SUBSCRIPTION"))
	}
	return d, nil
}

// performDelivery does the deed that an act names to a delivery as it was read.
func (o *Operator) performDelivery(ctx context.Context, d delivery.Delivery, act webhook.Act) (delivery.Delivery, error) {
	deed, ok := deliveryDeedOf(act.Name)
	switch {
	case !ok:
		return d, misuse(fmt.Sprintf("nothing called %q is done to a delivery", act.Name))
	case !slices.Contains(deed.from, d.Status):
		return d, refuse("wrong_state", fmt.Sprintf("%s is %s; %s is for deliveries that are %s", d.ID, d.Status, deed.name, oneOf(deed.from)), showDelivery(d.ID))
	}
	return deed.do(o, ctx, d, act)
}

func showDelivery(id delivery.ID) Step {
	return run("see where it stands:", "delivery", "show", string(id))
}

func (o *Operator) replayDelivery(ctx context.Context, d delivery.Delivery, act webhook.Act) (delivery.Delivery, error) {
	if err := replayable(d, act.At); err != nil {
		return d, err
	}
	switch row, found, err := o.Inbox.Inbox(ctx, d.Effect.InboxID); {
	case err != nil:
		return d, unreachable("the inbox", err)
	case found && !row.ErasedAt.IsZero():
		return d, refuse("body_gone", fmt.Sprintf("%s, which %s tells of, was erased", row.ID, d.ID), o.show(row.ID))
	}
	s, err := o.subscription(ctx, d.Subscription)
	switch {
	case err != nil:
		return d, err
	case s.State == delivery.Stopped:
		return d, refuse("subscription_stopped", fmt.Sprintf("subscription %s is stopped (%s): nothing is delivered to it any more", s.ID, s.StateWhy),
			run("see it:", "subscription", "show", string(s.ID)))
	}
	next, change := d.Replay(s, act.At)
	written, err := o.Deliveries.ReplayDelivery(ctx, next, change, act)
	switch {
	case err != nil:
		return d, unreachable("the deliveries", err)
	case !written:
		return d, movedDelivery(d.ID)
	}
	o.wake(ctx, next)
	return next, nil
}

// replayable refuses a delivery whose repetition is there already, or could not
// be made.
func replayable(d delivery.Delivery, now time.Time) error {
	switch {
	case d.ReplayedAs != "":
		return refuse("replayed_before", fmt.Sprintf("%s was replayed as %s; that one can be replayed when it has ended", d.ID, d.ReplayedAs), showDelivery(d.ReplayedAs))
	case !d.Effect.BodyExpiresAt.After(now.Add(bodyLeft)):
		return refuse("body_gone", fmt.Sprintf("the bytes of %s are kept until %s, which does not leave a day", d.ID, d.Effect.BodyExpiresAt.UTC().Format(time.DateTime)),
			say("bodies are kept for a bounded time (the template's BodyDays); the event itself tells what happened"),
			run("see it:", "inbox", "show", string(d.Effect.InboxID)))
	}
	return nil
}

// bodyLeft is how long the bytes must still be kept for a replay.
const bodyLeft = 24 * time.Hour

func movedDelivery(id delivery.ID) error {
	return refuse("moved_on", fmt.Sprintf("%s has moved on since it was read; nothing was written", id), showDelivery(id))
}

func (o *Operator) cancelDelivery(ctx context.Context, d delivery.Delivery, act webhook.Act) (delivery.Delivery, error) {
	return o.changeDelivery(ctx, d, d.Cancel(act.At, "cancelled_by_operator"), act)
}

func (o *Operator) resumeDelivery(ctx context.Context, d delivery.Delivery, act webhook.Act) (delivery.Delivery, error) {
	if !act.At.Before(d.Deadline) {
		return d, refuse("deadline_passed", fmt.Sprintf("the deadline of %s was %s: it ends EXPIRED when it is looked at", d.ID, d.Deadline.UTC().Format(time.DateTime)),
			run("when it has ended, make it once more:", "delivery", "replay", string(d.ID)))
	}
	d, err := o.changeDelivery(ctx, d, d.Resume(act.At), act)
	if err == nil {
		o.wake(ctx, d)
	}
	return d, err
}

func (o *Operator) changeDelivery(ctx context.Context, d delivery.Delivery, c delivery.Change, act webhook.Act) (delivery.Delivery, error) {
	written, err := o.Deliveries.ChangeDeliveryBy(ctx, c, act)
	switch {
	case err != nil:
		return d, unreachable("the deliveries", err)
	case !written:
		return d, movedDelivery(d.ID)
	}
	return c.Apply(d), nil
}

// wake has a worker look at a delivery. Where it is not told, the delivery's own
// wake time brings one within two minutes.
func (o *Operator) wake(ctx context.Context, d delivery.Delivery) {
	o.Wakes.Send(ctx, []webhook.Wake{d.Wake()}, []time.Duration{0})
}

// DeliveryStory is everything that is kept about one delivery, but its payload.
type DeliveryStory struct {
	Row delivery.Delivery
	// Subscription is what it goes to; found is false where its row is not there.
	Subscription delivery.Subscription
	Attempts     []delivery.Attempt // in order
	Acts         []webhook.Act      // newest first
}

// Delivery reads a delivery with all that stands beside it.
func (o *Operator) Delivery(ctx context.Context, id delivery.ID) (DeliveryStory, error) {
	d, err := o.delivery(ctx, id)
	if err != nil {
		return DeliveryStory{}, err
	}
	s := DeliveryStory{Row: d}
	if s.Subscription, _, err = o.Deliveries.Subscription(ctx, d.Subscription); err != nil {
		return s, unreachable("the registry", err)
	}
	if s.Attempts, err = o.Deliveries.Attempts(ctx, id); err != nil {
		return s, unreachable("the deliveries", err)
	}
	if s.Acts, err = o.Registry.ActsOn(ctx, subjectOfDelivery(id)); err != nil {
		return s, unreachable("the registry", err)
	}
	return s, nil
}

// DeliveryQuery asks for deliveries, newest first.
type DeliveryQuery struct {
	webhook.Filter

	Limit int // at least 1
}

// DeliveryList yields deliveries: a subscription's by the time they were made, or,
// without one, all dead letters by the time of their end. The lists are eventually
// consistent, the rows are not.
func (o *Operator) DeliveryList(ctx context.Context, q DeliveryQuery) (iter.Seq2[delivery.Delivery, error], error) {
	f, err := o.settleDeliveries(ctx, q.Filter)
	switch {
	case err != nil:
		return nil, err
	case q.Limit < 1:
		return nil, misuse("--limit is at least 1")
	}
	return first(o.listDeliveries(ctx, f), q.Limit), nil
}

// DeliverySinceMax bounds how far back a list of deliveries reaches: rows go when
// they have ended and that time is over.
const DeliverySinceMax = delivery.Keep + 7*24*time.Hour

// settleDeliveries completes a filter of deliveries, and refuses what makes no sense.
func (o *Operator) settleDeliveries(ctx context.Context, f webhook.Filter) (webhook.Filter, error) {
	now := o.Now()
	if f.Until.IsZero() {
		f.Until = now.Add(clockAhead)
	}
	known := statusWords(delivery.Statuses())
	for _, s := range f.Statuses {
		if !slices.Contains(known, s) {
			return f, noStatus(s, known)
		}
	}
	if _, err := path.Match(f.Kind, ""); err != nil {
		return f, misuse(fmt.Sprintf("--type %q is no pattern of a type: payment.succeeded, payment.* or *", f.Kind))
	}
	switch {
	case !f.Since.Before(f.Until):
		return f, misuse("--since is before now, and before --until")
	case f.Since.Before(now.Add(-DeliverySinceMax)):
		return f, misuse(fmt.Sprintf("--since reaches back %.0fh at most", DeliverySinceMax.Hours()))
	case f.Subscription == "" && !byDeath(f):
		return f, misuse("--subscription says whose deliveries; only dead ones are listed over all subscriptions",
			run("list the subscriptions:", "subscription", "list"), run("list all dead letters:", "delivery", "dead"))
	case f.Subscription == "":
		return f, nil
	}
	_, err := o.subscription(ctx, delivery.SubscriptionID(f.Subscription))
	return f, err
}

// statusWords are the states of deliveries as a filter has them.
func statusWords(statuses []delivery.Status) []webhook.Status {
	all := make([]webhook.Status, len(statuses))
	for i, s := range statuses {
		all[i] = webhook.Status(s)
	}
	return all
}

// byDeath reports whether a filter's list is that of dead letters, whose times are
// those of their end.
func byDeath(f webhook.Filter) bool {
	return f.Subscription == "" && slices.Equal(f.Statuses, []webhook.Status{webhook.Status(delivery.Dead)})
}

func (o *Operator) listDeliveries(ctx context.Context, f webhook.Filter) iter.Seq2[delivery.Delivery, error] {
	rows := o.Deliveries.DeliveriesOf(ctx, delivery.SubscriptionID(f.Subscription), f.Since, f.Until)
	if byDeath(f) {
		rows = o.Deliveries.DeadDeliveries(ctx, f.Since, f.Until)
	}
	return listed("the deliveries", rows, func(d delivery.Delivery) bool { return matchesDelivery(f, d) })
}

// matchesDelivery reports whether a delivery passes a filter's words. The bounds
// in time are the list's.
func matchesDelivery(f webhook.Filter, d delivery.Delivery) bool {
	switch {
	case f.Subscription != "" && string(d.Subscription) != f.Subscription, !f.HasStatus(webhook.Status(d.Status)),
		f.Cause != "" && !causeIs(d.LastError, f.Cause):
		return false
	}
	if f.Kind == "" {
		return true
	}
	ok, err := path.Match(f.Kind, d.Effect.Type)
	return ok && err == nil
}

// atOfDelivery returns a delivery's time in the list of a filter.
func atOfDelivery(f webhook.Filter, d delivery.Delivery) time.Time {
	if byDeath(f) {
		return d.EndedAt
	}
	return d.CreatedAt
}
