package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Registry keeps endpoints and the record of acts. The changes commit together
// with their record; false means that the row was taken, or has moved on since
// it was read, and nothing was written.
type Registry interface {
	Endpoint(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error)
	EndpointIDs(ctx context.Context) ([]webhook.EndpointID, error)
	CreateEndpointBy(ctx context.Context, e webhook.Endpoint, a webhook.Act) (bool, error)
	UpdateEndpointBy(ctx context.Context, e webhook.Endpoint, a webhook.Act) (bool, error)
	RecordAct(ctx context.Context, a webhook.Act) error
	// Acts yields all acts between two times, newest first; ActsOn those on one
	// subject.
	Acts(ctx context.Context, since, until time.Time) iter.Seq2[webhook.Act, error]
	ActsOn(ctx context.Context, subject string) ([]webhook.Act, error)
}

// Jobs keeps the jobs. The changes are under the revision that was read; false
// means that the job has moved on since, and nothing was written.
type Jobs interface {
	CreateJobBy(ctx context.Context, j webhook.Job, a webhook.Act) (bool, error)
	UpdateJob(ctx context.Context, j webhook.Job) (bool, error)
	UpdateJobBy(ctx context.Context, j webhook.Job, a webhook.Act) (bool, error)
	Job(ctx context.Context, id string) (webhook.Job, bool, error)
	Jobs(ctx context.Context) iter.Seq2[webhook.Job, error]
	// JobDid reports whether a job has acted on a subject.
	JobDid(ctx context.Context, job, subject string) (bool, error)
}

// Secrets writes and reads the versions of endpoints' secrets. A token becomes
// the version's id; a repeated call with the same token and value changes nothing.
type Secrets interface {
	// Create makes the endpoint's secret with its first version. [ErrOtherSecret]
	// means that the name is taken by other versions or another value.
	Create(ctx context.Context, e webhook.Endpoint, value Secret, token string) (webhook.KeyVersion, error)
	// Put adds a version. [ErrNoVersion] means that there is no such secret.
	Put(ctx context.Context, e webhook.Endpoint, value Secret, token string) (webhook.KeyVersion, error)
	// Retire lets the store forget a version.
	Retire(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) error
	// Value reads a version, or is [ErrNoVersion].
	Value(ctx context.Context, e webhook.Endpoint, v webhook.KeyVersion) (Secret, error)
	// Current reads the version that the store calls current, or is [ErrNoVersion].
	Current(ctx context.Context, e webhook.Endpoint) (webhook.KeyVersion, Secret, error)
}

// Inbox reads accepted events, with what stands beside them, and changes them.
type Inbox interface {
	Inbox(ctx context.Context, id webhook.InboxID) (webhook.Inbox, bool, error)
	// Inboxes reads at most 100 rows by id, in their order; one that is gone is left out.
	Inboxes(ctx context.Context, ids []webhook.InboxID) ([]webhook.Inbox, error)
	// RecentInbox yields by the time of receipt and FailedInbox by that of failing,
	// both newest first, with both bounds included.
	RecentInbox(ctx context.Context, e webhook.EndpointID, since, until time.Time) iter.Seq2[webhook.Inbox, error]
	FailedInbox(ctx context.Context, since, until time.Time) iter.Seq2[webhook.Inbox, error]
	Outbox(ctx context.Context, id webhook.OutboxID) (webhook.Outbox, bool, error)
	Mark(ctx context.Context, id webhook.InboxID, run int) (webhook.Mark, bool, error)
	// OpenPromises returns a page of all outbox rows.
	OpenPromises(ctx context.Context, from string, limit int) (webhook.OutboxPage, error)
	// BringNear writes a promise's times anew, and unpublished. False means that it
	// is gone, or another one by now.
	BringNear(ctx context.Context, o webhook.Outbox) (bool, error)
	// Reopen opens a failed, held or processed row again, unless the run was applied.
	Reopen(ctx context.Context, c webhook.Change, run int, promise webhook.Outbox, a webhook.Act) (webhook.Verdict, error)
	// Hold takes a row out of the work, and FailBy ends it. False means that it has
	// moved on.
	Hold(ctx context.Context, c webhook.Change, promise webhook.Outbox, a webhook.Act) (bool, error)
	FailBy(ctx context.Context, c webhook.Change, promise webhook.OutboxID, a webhook.Act) (bool, error)
	// EraseBy notes on an ended row that it is erased, and lists it; HoldByLawBy and
	// LetGoBy begin and end a legal hold. False means that the row has moved on.
	EraseBy(ctx context.Context, c webhook.Change, e webhook.Erased, a webhook.Act) (bool, error)
	HoldByLawBy(ctx context.Context, c webhook.Change, h webhook.HeldByLaw, a webhook.Act) (bool, error)
	LetGoBy(ctx context.Context, c webhook.Change, a webhook.Act) (bool, error)
	// ErasedEvents and LegalHolds yield the two lists.
	ErasedEvents(ctx context.Context, since, until time.Time) iter.Seq2[webhook.Erased, error]
	LegalHolds(ctx context.Context) iter.Seq2[webhook.HeldByLaw, error]
}

// Bodies opens and deletes raw bodies. A body that is gone is [ErrNoBody].
type Bodies interface {
	Open(ctx context.Context, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error)
	// Look says who stored a body; false means that it is not there.
	Look(ctx context.Context, id webhook.BodyID) (webhook.Kept, bool, error)
	// Erase deletes a body, if putID stored or renewed it last; false means that
	// another did since, and nothing was deleted.
	Erase(ctx context.Context, id webhook.BodyID, putID string) (bool, error)
	// HoldCopy makes an event's own copy of a body, which does not expire, if there is
	// none; OpenHeld opens it, and DropCopy deletes it.
	HoldCopy(ctx context.Context, event webhook.InboxID, id webhook.BodyID) error
	OpenHeld(ctx context.Context, event webhook.InboxID, id webhook.BodyID, tenant webhook.Tenant, digest webhook.Digest) ([]byte, error)
	DropCopy(ctx context.Context, event webhook.InboxID) error
}

// Business reads the business rows.
type Business interface {
	Get(ctx context.Context, k webhook.Key) (webhook.Item, bool, error)
	// Rows yields a partition's rows with their keys, whose sort key has a prefix.
	Rows(ctx context.Context, partition, prefix string) iter.Seq2[webhook.Item, error]
}

// Sender posts a request to the front door, as a provider would.
type Sender interface {
	// Post returns the status and the first bytes of the answer. An error means
	// that there was none.
	Post(ctx context.Context, url string, header map[string]string, body []byte) (status int, answer []byte, err error)
}

// Operator does what one person asks of one stack. All fields are required.
type Operator struct {
	Registry  Registry
	Jobs      Jobs
	Secrets   Secrets
	Inbox     Inbox
	Bodies    Bodies
	Business  Business
	Sequences Sequences
	Sender    Sender
	// Deliveries, Keeper and Wakes are the outbound half.
	Deliveries Deliveries
	Keeper     Keeper
	Wakes      Wakes
	// EventDeadLetters has the wake-ups that the processor could not take,
	// DeliveryDeadLetters those that the dispatcher could not take, and RelayFailures
	// what the stream's trigger reports as given up.
	EventDeadLetters, DeliveryDeadLetters, RelayFailures DeadLetters

	Providers *provider.Registry
	// Router is the processor's: it knows which handler may be run again.
	Router *business.Router

	// SecretPrefix and an endpoint's id name its secret.
	SecretPrefix string
	// SubscriptionPrefix and a subscription's id name the secret of its signing keys.
	SubscriptionPrefix string
	// OwnQueues are the URLs of the stack's queues, to which nothing is delivered.
	OwnQueues []string
	// Loopback lets subscriptions lead to this machine: for the local stack alone.
	Loopback bool
	// Random fills bytes for a signing key.
	Random func(b []byte)
	// FrontDoor is the address before /in/{provider}/{endpoint_id}.
	FrontDoor string
	// Who names the person for the record. It is asked only when an act needs it.
	Who   func(ctx context.Context) (string, error)
	Now   func() time.Time
	NewID func() string
	// Workers bounds the events of a job that are in hand at once.
	Workers int
	// KeepInbox is how long a row is kept that an operator fails, and KeepBody how
	// long a body is kept from its receipt.
	KeepInbox, KeepBody time.Duration
	Wait                func(ctx context.Context, d time.Duration) error
	// Mixed returns 0 to n-1 in an order that the seed alone decides.
	Mixed func(seed uint64, n int) []int
}

// URL returns the address to give to the provider.
func (o *Operator) URL(p webhook.Provider, e webhook.EndpointID) string {
	return o.FrontDoor + "/in/" + string(p) + "/" + string(e)
}

// act begins the record of an act.
func (o *Operator) act(ctx context.Context, name, subject, why string) (webhook.Act, error) {
	who, err := o.Who(ctx)
	if err != nil {
		return webhook.Act{}, &Refusal{
			Code: "caller_unknown", Problem: "it cannot be told who you are, and every act is recorded", Err: err,
			Next: []Step{say("check your AWS credentials, for example with: aws sts get-caller-identity")},
		}
	}
	return webhook.Act{ID: o.NewID(), At: o.Now(), Name: name, Subject: subject, Who: who, Why: why}, nil
}

// endpoint reads an endpoint that must be there.
func (o *Operator) endpoint(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, error) {
	if !webhook.ValidEndpointID(string(id)) {
		return webhook.Endpoint{}, misuse("an endpoint id is 1 to 40 lower-case letters, digits and inner hyphens",
			run("list the endpoints:", "endpoint", "list"))
	}
	e, ok, err := o.Registry.Endpoint(ctx, id)
	switch {
	case err != nil:
		return e, unreachable("the registry", err)
	case !ok:
		return e, refuse("endpoint_unknown", "there is no endpoint "+string(id),
			run("list the endpoints:", "endpoint", "list"),
			run("or create it:", "endpoint", "create", "--provider", "PROVIDER", "--id", string(id), "--secret-file", "FILE"))
	}
	return e, nil
}

// Bounds on a change that meets rivals: the front door notes first matches on
// the same row.
const (
	changeTries = 6
	changePause = 50 * time.Millisecond
)

// change decides on the endpoint as it stands and writes the decision under its
// revision, again if somebody was faster. Deciding nothing (done) writes nothing.
func (o *Operator) change(ctx context.Context, id webhook.EndpointID, act webhook.Act, decide func(webhook.Endpoint) (to webhook.Endpoint, done bool, err error)) (webhook.Endpoint, error) {
	return changed(ctx, o, "the endpoint's row", decide,
		func() (webhook.Endpoint, error) { return o.endpoint(ctx, id) },
		func(to *webhook.Endpoint) (bool, error) {
			written, err := o.Registry.UpdateEndpointBy(ctx, *to, act)
			to.Revision++
			return written, err
		})
}

// changed is the change of a row. What was written is the row as it stands then.
func changed[R any](
	ctx context.Context, o *Operator, what string, decide func(R) (to R, done bool, err error), read func() (R, error), write func(to *R) (bool, error),
) (R, error) {
	var none R
	var last error
	for try := range changeTries {
		if try > 0 {
			if err := o.Wait(ctx, changePause<<try); err != nil {
				return none, err
			}
		}
		row, err := read()
		if err != nil {
			return row, err
		}
		to, done, err := decide(row)
		if err != nil || done {
			return to, err
		}
		written, err := write(&to)
		switch {
		case err == nil && written:
			return to, nil
		case err != nil && fault.KindOf(err) != fault.Ours:
			return row, err
		}
		// Not written, or no answer: what stands there now decides what is left to do.
		last = err
	}
	return none, unreachable("the registry", errors.Join(fmt.Errorf("%s changed on every try", what), last))
}

// unreachable is a store that gave no usable answer.
func unreachable(what string, err error) *Refusal {
	return &Refusal{
		Code: codeUnavailable, Problem: what + " gave no usable answer", Err: err,
		Next: []Step{say("nothing is half done that the same command, run again, does not finish")},
	}
}
