package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/business"
	"dakghar/internal/dynamo"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// The endpoints that a showing's events are sent to: ordered has those of objects
// that are applied in sequence, fetched those of objects whose state is read at
// the provider. Their secrets protect nothing.
const (
	plain   webhook.EndpointID = "fault-demo"
	ordered webhook.EndpointID = "fault-demo-ordered"
	fetched webhook.EndpointID = "fault-demo-fetched"
	tenant  webhook.Tenant     = "default"
)

// source is one endpoint's provider.
type source struct {
	endpoint webhook.EndpointID
	provider webhook.Provider
	object   webhook.ObjectType
	policies map[webhook.Kind]webhook.Policy
	api      *webhook.API
	adapter  *provider.Adapter
	key      signature.Key
}

// event is one of a showing's events.
type event struct {
	from    *source
	id      webhook.EventID
	sample  provider.Sample
	object  string
	answers []int
}

func (e *event) inboxID() webhook.InboxID {
	return webhook.DeriveInboxID(webhook.Scope(e.from.endpoint), e.from.provider, e.id)
}

// facts are what the business rows of an event are named after.
func (e *event) facts() webhook.Event {
	return webhook.Event{
		Tenant: tenant, Provider: e.from.provider, Endpoint: e.from.endpoint, InboxID: e.inboxID(),
		Facts: webhook.Facts{ObjectType: e.from.object, ObjectID: e.object},
	}
}

// register makes an endpoint as an operator's command does.
func (s *Site) register(ctx context.Context, from source, signing string) (*source, error) {
	registry, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		return nil, err
	}
	from.adapter, _ = registry.Lookup(from.provider)
	name := s.Stack.Declared().Outputs["SecretPrefix"] + string(from.endpoint)
	version, err := s.keep(ctx, name, signing)
	if err != nil {
		return nil, err
	}
	decoded, err := from.adapter.Scheme.DecodeKey(signing)
	if err != nil {
		return nil, err
	}
	from.key = signature.Key{Version: version, Secret: decoded}
	now := s.Now()
	created, err := s.store.CreateEndpoint(ctx, webhook.Endpoint{
		ID: from.endpoint, Provider: from.provider, Tenant: tenant, Scope: webhook.Scope(from.endpoint), Secret: name, Overlap: time.Hour, CreatedAt: now,
		Keys: []webhook.TrustedKey{{Version: webhook.KeyVersion(from.key.Version), AddedAt: now, FirstMatch: now}}, Policies: from.policies, API: from.api,
	})
	if err == nil && !created {
		err = fmt.Errorf("endpoint %s is there already", from.endpoint)
	}
	return &from, err
}

// keep puts a secret into the stack's Secrets Manager and returns its version.
func (s *Site) keep(ctx context.Context, name, text string) (string, error) {
	made, err := secretsmanager.NewFromConfig(s.Stack.Config()).CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretString: &text})
	if err != nil {
		return "", fmt.Errorf("the secret %s: %w", name, err)
	}
	return aws.ToString(made.VersionId), nil
}

// open registers the endpoints.
func (s *Site) open(ctx context.Context) (err error) {
	s.payments, err = s.register(ctx, source{endpoint: plain, provider: "stripe", object: webhook.Payment}, "whsec_key_of_a_showing_on_one_machine")
	if err != nil {
		return err
	}
	s.objects, err = s.register(ctx, source{
		endpoint: ordered, provider: "standard-webhooks", object: webhook.Object, policies: map[webhook.Kind]webhook.Policy{"object.changed": webhook.BySequence},
	}, "whsec_a2V5IG9mIGEgc2hvd2luZyBvbiBvbmUgbWFjaGluZSE=")
	if err != nil {
		return err
	}
	credential := strings.TrimSuffix(s.Stack.Declared().Outputs["SecretPrefix"], "endpoint/") + "api/" + string(fetched)
	if _, err := s.keep(ctx, credential, "credential-of-a-showing-on-one-machine"); err != nil {
		return err
	}
	s.orders, err = s.register(ctx, source{
		endpoint: fetched, provider: shop, object: webhook.Order, policies: map[webhook.Kind]webhook.Policy{"order.updated": webhook.ByFetch},
		api: &webhook.API{Secret: credential, Account: map[string]string{"shop": "demo.myshopify.com"}},
	}, "key of a showing on one machine")
	return err
}

// send lets the provider send n new payments, one after the other, each until it
// sees a 2xx.
func (s *Site) send(ctx context.Context, n int) error {
	for range n {
		id := fmt.Sprintf("evt_%d_%d", s.shown, len(s.sent)+1)
		err := s.sendOne(ctx, s.payments, provider.SampleOptions{
			Type: "payment_intent.succeeded", EventID: id, ObjectID: "pi_" + id, Amount: 1250, Currency: "EUR",
		})
		if err != nil {
			return err
		}
	}
	s.step("%d events are acknowledged", n)
	return nil
}

// sendStep sends the event with a number in the showing's one sequence.
func (s *Site) sendStep(ctx context.Context, number int64) error {
	err := s.sendOne(ctx, s.objects, provider.SampleOptions{
		Type: "object.updated", EventID: fmt.Sprintf("msg_%d_%d", s.shown, number), ObjectID: fmt.Sprint("obj_", s.shown), Version: number,
	})
	s.step("number %d is acknowledged", number)
	return err
}

func (s *Site) sendOne(ctx context.Context, from *source, o provider.SampleOptions) error {
	sample, err := from.adapter.Sample(o)
	if err != nil {
		return err
	}
	// A provider may name an event by more than its own id.
	envelope, err := from.adapter.Envelope(sample.Header, sample.Body)
	if err != nil {
		return err
	}
	e := &event{from: from, id: envelope.EventID, sample: sample, object: o.ObjectID}
	s.sent = append(s.sent, e)
	return s.post(ctx, e)
}

// retryPause is a provider's, in a hurry.
const retryPause = 100 * time.Millisecond

func (s *Site) post(ctx context.Context, e *event) error {
	for {
		status, err := s.postOnce(ctx, e)
		if err != nil {
			return err
		}
		e.answers = append(e.answers, status)
		if status >= 200 && status < 300 {
			return nil
		}
		if err := dynamo.Sleep(ctx, retryPause); err != nil {
			return fmt.Errorf("%s was answered %v: %w", e.id, e.answers, err)
		}
	}
}

func (s *Site) postOnce(ctx context.Context, e *event) (int, error) {
	headers := maps.Clone(e.sample.Header)
	signed, err := e.from.adapter.Scheme.Sign(signature.Request{Method: http.MethodPost, Header: headers, Body: e.sample.Body}, e.from.key, s.Now())
	if err != nil {
		return 0, err
	}
	maps.Copy(headers, signed)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Stack.FrontDoorURL()+"/in/"+string(e.from.provider)+"/"+string(e.from.endpoint), bytes.NewReader(e.sample.Body))
	if err != nil {
		return 0, err
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, nil
}

// row reads where an event stands.
func (s *Site) row(ctx context.Context, e *event) (webhook.Inbox, error) {
	row, found, err := s.store.Inbox(ctx, e.inboxID())
	if err == nil && !found {
		err = fmt.Errorf("%s was acknowledged and has no row", e.id)
	}
	return row, err
}

// stands waits until an event is in a state.
func (s *Site) stands(ctx context.Context, e *event, status webhook.Status) error {
	return s.await(ctx, fmt.Sprintf("%s is %s", e.id, status), func() (bool, error) {
		row, err := s.row(ctx, e)
		return row.Status == status, err
	})
}

// rest waits until every event has ended or is held, and no promise is open.
func (s *Site) rest(ctx context.Context) error {
	for _, e := range s.sent {
		err := s.await(ctx, fmt.Sprintf("%s rests", e.id), func() (bool, error) {
			row, err := s.row(ctx, e)
			if err != nil || row.Status == webhook.Held {
				return row.Status == webhook.Held, err
			}
			_, open, err := s.store.Outbox(ctx, promiseOf(e))
			return row.Status.Terminal() && !open, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func promiseOf(e *event) webhook.OutboxID {
	return webhook.NewOutboxID(e.inboxID(), webhook.TopicProcess, 0)
}

// hurry brings the reconciler's next look at every open promise forward.
func (s *Site) hurry(ctx context.Context) error {
	for _, e := range s.sent {
		if err := s.hurryOne(ctx, e); err != nil {
			return err
		}
	}
	s.step("the reconciler's next look, minutes ahead, is brought forward")
	return nil
}

func (s *Site) hurryOne(ctx context.Context, e *event) error {
	promise, open, err := s.store.Outbox(ctx, promiseOf(e))
	if err != nil {
		return err
	}
	if !open {
		return fmt.Errorf("%s has no promise any more", e.id)
	}
	if moved, err := s.store.PushWake(ctx, promise, s.Now()); err != nil || !moved {
		return errors.Join(err, fmt.Errorf("the promise of %s was moved by others", e.id))
	}
	return nil
}

// rows reads what became of every event. A credit is an entry of the ledger; an
// object that counts other than its entries was credited twice or by halves.
func (s *Site) rows(ctx context.Context) ([]Row, error) {
	var rows []Row
	counted, entered := map[string]int64{}, map[string]int64{}
	for _, e := range s.sent {
		r, err := s.row(ctx, e)
		if err != nil {
			return nil, err
		}
		_, credited, err := s.store.Get(ctx, business.LedgerEntryKey(e.facts()))
		if err != nil {
			return nil, err
		}
		balance, _, err := s.store.Get(ctx, business.LedgerBalanceKey(e.facts()))
		if err != nil {
			return nil, err
		}
		counted[e.object], _ = balance[business.AttrEntries].(int64)
		if credited {
			entered[e.object]++
		}
		rows = append(rows, Row{e.from.endpoint, e.id, e.answers, r.Status, r.Outcome, r.AttemptCount, r.LastError, credited, r.ID})
	}
	for object, n := range counted {
		if n != entered[object] {
			return rows, fmt.Errorf("%s counts %d credits, and has %d", object, n, entered[object])
		}
	}
	return rows, nil
}

func (s *Site) print(rows []Row) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "EVENT\tANSWERS\tSTATUS\tOUTCOME\tATTEMPTS\tLAST_ERROR\tCREDITED\tINBOX_ID")
	for _, r := range rows {
		answers := strings.Trim(fmt.Sprint(r.Answers), "[]")
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%v\t%s\n", r.Event, answers, r.Status, r.Outcome, r.Attempts, r.LastError, r.Credited, r.InboxID)
	}
	_ = w.Flush() // into memory
	_, _ = io.WriteString(s.Out, b.String())
}
