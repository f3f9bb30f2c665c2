package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"dakghar/internal/delivery"
	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// job is one delivery with what its attempt needs.
type job struct {
	delivery     delivery.Delivery
	subscription delivery.Subscription
	body         []byte
	keys         []delivery.SigningKey
	credential   string
	sender       Sender
}

// deliver makes one attempt, if it is time for one.
func (d *Dispatcher) deliver(ctx context.Context, id delivery.ID) Result {
	result := Result{Topic: webhook.TopicDeliver, Delivery: id}
	dl, found, err := d.Store.Delivery(ctx, id)
	switch {
	case err != nil:
		return result.end("unavailable", err)
	case !found:
		return result.end("missing", nil)
	}
	now := d.Now()
	result.Effect, result.Subscription, result.Tenant = dl.Effect.ID, dl.Subscription, dl.Tenant
	result.Type, result.Attempt, result.Age = dl.Effect.Type, dl.AttemptCount, now.Sub(dl.CreatedAt)
	switch {
	case dl.Status.Terminal():
		return result.end("ended", nil)
	case !now.Before(dl.Deadline) && (dl.Status != delivery.Sending || dl.LeaseOver(now)):
		return d.change(ctx, dl.Expire(now), "expired", result)
	case dl.Status == delivery.Faulted:
		return result.end("faulted", nil)
	case !dl.Due(now):
		return result.end("not_due", nil)
	}
	j := &job{delivery: dl}
	if early, ok := d.prepare(ctx, j, now, result); !ok {
		return early
	}
	leave, until := d.Partners.Enter(ctx, j.subscription, now)
	if leave == nil {
		return d.postpone(ctx, dl, queued(dl, now, until), result, nil)
	}
	defer leave()
	return d.attempt(ctx, j, result)
}

// prepare gathers what an attempt needs, before it is counted. False means that
// there is none now, and the result says why.
func (d *Dispatcher) prepare(ctx context.Context, j *job, now time.Time, result Result) (Result, bool) {
	dl := j.delivery
	s, found, err := d.subscription(ctx, dl, now)
	switch {
	case err != nil:
		return d.ours(ctx, dl, result, err), false
	case !found || s.State == delivery.Stopped:
		return d.change(ctx, dl.Cancel(now, "subscription_stopped"), "cancelled", result), false
	case s.Holds(dl):
		return result.end("paused", nil), false
	case dl.Effect.Hop() > webhook.HopsMax:
		return d.change(ctx, dl.Kill(now, 0, "hops_exceeded"), "dead", result), false
	case dl.AttemptCount >= s.Profile().Attempts:
		// The worker of the last attempt died before it could say so.
		return d.change(ctx, dl.Kill(now, 0, "attempts_spent"), "dead", result), false
	}
	j.subscription = s
	if j.sender = d.Senders[s.Target.Kind]; j.sender == nil {
		return d.fault(ctx, dl, now, fault.New(fault.Permanent, "target_unknown", nil), result), false
	}
	j.keys, err = d.signing(ctx, s, now)
	if err == nil && s.CredentialHeader != "" {
		j.credential, err = d.Keys.Credential(ctx, s)
	}
	if err == nil {
		j.body, err = d.Bodies.Open(ctx, dl.Effect.BodyID, dl.Tenant, dl.Effect.Digest)
	}
	switch {
	case errors.Is(err, delivery.ErrKeyMissing), err != nil && fault.KindOf(err) == fault.Permanent:
		return d.fault(ctx, dl, now, err, result), false
	case err != nil:
		return d.ours(ctx, dl, result, err), false
	}
	return result, true
}

// subscription finds a delivery's subscription as it is remembered. Where that would
// end the delivery, the row itself is asked: another process may have made this
// delivery for a subscription that was created, or taken up again, since.
func (d *Dispatcher) subscription(ctx context.Context, dl delivery.Delivery, now time.Time) (delivery.Subscription, bool, error) {
	all, err := d.Subscriptions.Of(ctx, dl.Tenant, now)
	if err != nil {
		return delivery.Subscription{}, false, err
	}
	i := slices.IndexFunc(all, func(s delivery.Subscription) bool { return s.ID == dl.Subscription })
	if i < 0 || all[i].State == delivery.Stopped {
		return d.Store.Subscription(ctx, dl.Subscription)
	}
	return all[i], true, nil
}

// signing reads the keys that sign. A key that is missing may have been replaced
// since the subscription was read: the row is asked before a delivery is set aside.
func (d *Dispatcher) signing(ctx context.Context, s delivery.Subscription, now time.Time) ([]delivery.SigningKey, error) {
	keys, err := d.signingKeys(ctx, s, now)
	if !errors.Is(err, delivery.ErrKeyMissing) {
		return keys, err
	}
	fresh, found, readErr := d.Store.Subscription(ctx, s.ID)
	switch {
	case readErr != nil:
		return nil, readErr
	case !found || fresh.Revision == s.Revision:
		return nil, err
	}
	return d.signingKeys(ctx, fresh, now)
}

func (d *Dispatcher) signingKeys(ctx context.Context, s delivery.Subscription, now time.Time) ([]delivery.SigningKey, error) {
	keys, err := d.Keys.Signing(ctx, s, s.Signing(now))
	if err == nil && len(keys) == 0 {
		err = delivery.ErrKeyMissing
	}
	return keys, err
}

// attempt records, sends, and records again.
func (d *Dispatcher) attempt(ctx context.Context, j *job, result Result) Result {
	now := d.Now()
	claim := j.delivery.Claim(delivery.ClaimID(d.NewID()), now, d.Policy.Lease)
	a := delivery.Attempt{Delivery: j.delivery.ID, N: j.delivery.AttemptCount + 1, At: now, KeyID: j.keys[0].ID}
	begun, err := d.Store.BeginAttempt(ctx, claim, a)
	switch {
	case err != nil:
		return d.ours(ctx, j.delivery, result, err)
	case !begun:
		return result.end("claim_lost", nil)
	}
	j.delivery, result.Attempt = claim.Apply(j.delivery), a.N
	answer, err := d.send(ctx, j, a)
	end := d.Now()
	a.Took, result.Took = end.Sub(now), end.Sub(now)
	verdict := d.heard(ctx, j, answer, judge(answer, err))
	a.Result, a.Status, a.Code, a.Redirects = verdict.result, answer.Status, verdict.code, answer.Redirects
	a.Answer = delivery.Printable(answer.Body)
	result.Status, result.Code = answer.Status, verdict.code
	d.Partners.Note(j.subscription, verdict.troubled(), a.Took, end, d.Chance())
	result.AutoPaused = d.remember(ctx, j.subscription, verdict, end)
	return d.record(ctx, j, a, verdict, answer, end, result)
}

// send signs and sends. The signature is made at the moment of each request.
func (d *Dispatcher) send(ctx context.Context, j *job, a delivery.Attempt) (delivery.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Policy.Attempt)
	defer cancel()
	message := delivery.Message{Delivery: a.Delivery, EventID: j.delivery.Effect.ID, Attempt: a.N, Body: j.body}
	return j.sender.Send(ctx, j.subscription, j.body, func() (map[string]string, error) {
		header, err := delivery.Sign(message, j.keys, d.Now())
		if err != nil {
			return nil, err
		}
		for name, value := range j.subscription.Header {
			header[name] = value
		}
		if j.credential != "" {
			header[j.subscription.CredentialHeader] = j.credential
		}
		header[delivery.HeaderHops] = strconv.Itoa(j.delivery.Effect.Hop())
		if j.delivery.Effect.Call != "" {
			header["idempotency-key"] = j.delivery.Effect.IdempotencyKey()
		}
		return header, nil
	})
}

// record writes what the attempt has come to.
func (d *Dispatcher) record(ctx context.Context, j *job, a delivery.Attempt, v verdict, answer delivery.Answer, now time.Time, result Result) Result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	dl := j.delivery
	var change delivery.Change
	decision := "dead"
	switch {
	case v.result == delivery.Accepted:
		change, decision = dl.Deliver(now, answer.Status), "delivered"
	case v.final() || a.N >= j.subscription.Profile().Attempts:
		change = dl.Kill(now, answer.Status, v.code)
	default:
		next := d.next(j, a, answer, now)
		if next.After(dl.Deadline) {
			change, decision = dl.Expire(now), "expired"
			change.LastStatus = answer.Status
			break
		}
		change, decision = dl.Again(next, answer.Status, v.code), "retry"
	}
	written, err := d.persist(ctx, func() (bool, error) { return d.Store.EndAttempt(ctx, change, a) })
	switch {
	case err != nil:
		return result.end("unavailable", err)
	case !written:
		return result.end("claim_lost", nil)
	}
	if decision == "retry" {
		d.wakeAt(ctx, change.Apply(dl), now)
	}
	return result.end(decision, nil)
}

const (
	// recordTime bounds the recording of an attempt, tries included.
	recordTime  = 10 * time.Second
	recordPause = 50 * time.Millisecond
	recordTries = 6
)

// persist repeats a write that the store turned away: what a partner has said
// must not be lost for a moment's throttle.
func (d *Dispatcher) persist(ctx context.Context, write func() (bool, error)) (bool, error) {
	pause := recordPause
	for try := 1; ; try++ {
		written, err := write()
		if err == nil || fault.KindOf(err) == fault.Permanent || try == recordTries {
			return written, err
		}
		if waitErr := d.Wait(ctx, pause/2+time.Duration(d.Chance()*float64(pause/2))); waitErr != nil {
			return false, errors.Join(err, waitErr)
		}
		pause *= 2
	}
}

// next is when the next attempt is due: by the profile, or later where the
// partner asks for it.
func (d *Dispatcher) next(j *job, a delivery.Attempt, answer delivery.Answer, now time.Time) time.Time {
	next := now.Add(j.subscription.Profile().Schedule.Delay(a.N, d.Chance()))
	if asked, ok := delivery.RetryAfter(answer.RetryAfter, now); ok {
		if latest := j.delivery.Deadline; asked.After(latest) {
			asked = latest
		}
		if asked.After(next) {
			return asked
		}
	}
	return next
}

// wakeAt has a worker woken when a delivery is due, if the queue can carry that
// far. The delivery's own wake time makes up for all else.
func (d *Dispatcher) wakeAt(ctx context.Context, dl delivery.Delivery, now time.Time) {
	if delay := dl.NextAttemptAt.Sub(now); delay <= webhook.PublishAhead {
		d.Queue.Send(ctx, []webhook.Wake{dl.Wake()}, []time.Duration{max(delay, 0)})
	}
}

// queuedMax is as long as a delivery waits for its turn at a partner, where neither
// the partner's limit nor its breaker asks for more.
const queuedMax = time.Minute

// queued lengthens a wait with each time that a delivery was turned away: of many
// that wait for one slow partner each would ask every second, and keep all workers
// from the other partners. A wait stays a small part of what was waited before. The
// fence is raised once by a turning away, twice by an attempt. No wait that is
// lengthened here ends behind the deadline.
func queued(dl delivery.Delivery, now, until time.Time) time.Time {
	wait, turned := until.Sub(now), int(dl.Fence)-2*dl.AttemptCount
	longer := min(wait*time.Duration(max(turned/2, 1)), queuedMax)
	if longer <= wait || !now.Add(longer).Before(dl.Deadline) {
		return until
	}
	return now.Add(longer)
}

// ours waits for our own stores without spending an attempt.
func (d *Dispatcher) ours(ctx context.Context, dl delivery.Delivery, result Result, cause error) Result {
	until := d.Now().Add(d.Policy.Ours.Delay(1+int(dl.Fence)/2, d.Chance()))
	return d.postpone(ctx, dl, until, result, cause)
}

// postpone moves a waiting delivery without an attempt. One whose worker has died
// is left to its wake time.
func (d *Dispatcher) postpone(ctx context.Context, dl delivery.Delivery, until time.Time, result Result, cause error) Result {
	decision := "waits"
	if cause != nil {
		decision = "unavailable"
	}
	if !dl.Status.Waiting() {
		return result.end(decision, cause)
	}
	change := dl.Postpone(until)
	written, err := d.Store.ChangeDelivery(ctx, change)
	switch {
	case err != nil:
		return result.end("unavailable", errors.Join(cause, err))
	case !written:
		return result.end("claim_lost", cause)
	}
	d.wakeAt(ctx, change.Apply(dl), d.Now())
	return result.end(decision, cause)
}

// fault sets a delivery aside for an operator.
func (d *Dispatcher) fault(ctx context.Context, dl delivery.Delivery, now time.Time, cause error, result Result) Result {
	r := d.change(ctx, dl.Fault(now, fault.CodeOf(cause)), "faulted", result)
	if r.Err == nil {
		r.Err, r.Code = cause, fault.CodeOf(cause)
	}
	return r
}

func (d *Dispatcher) change(ctx context.Context, c delivery.Change, decision string, result Result) Result {
	written, err := d.Store.ChangeDelivery(ctx, c)
	switch {
	case err != nil:
		return result.end("unavailable", err)
	case !written:
		return result.end("claim_lost", nil)
	}
	result.Code = c.LastError
	return result.end(decision, nil)
}

// verdict is what an answer means.
type verdict struct {
	result delivery.Result
	code   string
}

func (v verdict) final() bool {
	return v.result == delivery.Refused || v.result == delivery.Discontinued
}

// troubled reports whether the partner could not take it, as opposed to did not want it.
func (v verdict) troubled() bool { return v.result == delivery.Troubled }

// heard takes a final answer for a passing one where what it answers to is not how
// things stand any more: the address was left since the subscription was read, a
// redirect is on its list by now, or the credential was turned over.
func (d *Dispatcher) heard(ctx context.Context, j *job, answer delivery.Answer, v verdict) verdict {
	switch {
	case !v.final():
	case d.moved(ctx, j.subscription):
		return verdict{delivery.Troubled, "target_moved"}
	case (answer.Status == 401 || answer.Status == 403) && d.turned(ctx, j):
		return verdict{delivery.Troubled, "credential_moved"}
	}
	return v
}

// moved reports whether a subscription's target is another one by now.
func (d *Dispatcher) moved(ctx context.Context, s delivery.Subscription) bool {
	fresh, found, err := d.Store.Subscription(ctx, s.ID)
	return err == nil && found && !fresh.Target.Is(s.Target)
}

// turned reports whether the credential that was sent is another one by now.
func (d *Dispatcher) turned(ctx context.Context, j *job) bool {
	if j.credential == "" {
		return false
	}
	newest, err := d.Keys.NewestCredential(ctx, j.subscription)
	return err == nil && newest != j.credential
}

// judge is the one place where this stage classifies. A transport that failed
// may have delivered: it is tried again under the same identity. A status that
// arrived counts, whatever became of the body behind it.
func judge(answer delivery.Answer, err error) verdict {
	switch {
	case err != nil && fault.KindOf(err) == fault.Permanent:
		return verdict{delivery.Refused, fault.CodeOf(err)}
	case err != nil && answer.Status == 0:
		return verdict{delivery.Troubled, fault.CodeOf(err)}
	}
	code := fmt.Sprintf("status_%d", answer.Status)
	switch s := answer.Status; {
	case s >= 200 && s < 300:
		return verdict{delivery.Accepted, ""}
	case s == 410:
		return verdict{delivery.Discontinued, code}
	case s == 408 || s == 425 || s == 429 || s >= 500:
		return verdict{delivery.Troubled, code}
	}
	return verdict{delivery.Refused, code}
}
