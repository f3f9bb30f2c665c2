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

// Endpoint is what a showing's events are sent to. Its secret protects nothing.
const Endpoint webhook.EndpointID = "fault-demo"

const (
	tenant      webhook.Tenant = "default"
	signingText                = "whsec_secret_of_a_showing_on_one_machine"
)

// event is one of a showing's events.
type event struct {
	id      webhook.EventID
	sample  provider.Sample
	object  string
	answers []int
}

func (e *event) inboxID() webhook.InboxID {
	return webhook.DeriveInboxID(webhook.Scope(Endpoint), "stripe", e.id)
}

// register makes the endpoint as an operator's command does.
func (s *Site) register(ctx context.Context, prefix string) error {
	registry, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		return err
	}
	s.adapter, _ = registry.Lookup("stripe")
	name := prefix + string(Endpoint)
	made, err := secretsmanager.NewFromConfig(s.Stack.Config()).CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretString: aws.String(signingText)})
	if err != nil {
		return fmt.Errorf("the showing's secret: %w", err)
	}
	decoded, err := s.adapter.Scheme.DecodeKey(signingText)
	if err != nil {
		return err
	}
	s.key = signature.Key{Version: aws.ToString(made.VersionId), Secret: decoded}
	now := s.Now()
	created, err := s.store.CreateEndpoint(ctx, webhook.Endpoint{
		ID: Endpoint, Provider: "stripe", Tenant: tenant, Scope: webhook.Scope(Endpoint), Secret: name, Overlap: time.Hour, CreatedAt: now,
		Keys: []webhook.TrustedKey{{Version: webhook.KeyVersion(s.key.Version), AddedAt: now, FirstMatch: now}},
	})
	if err == nil && !created {
		err = fmt.Errorf("endpoint %s is there already", Endpoint)
	}
	return err
}

// send lets the provider send n new events, one after the other, each until it
// sees a 2xx.
func (s *Site) send(ctx context.Context, n int) error {
	for range n {
		id := fmt.Sprintf("evt_%d_%d", s.shown, len(s.sent)+1)
		e := &event{id: webhook.EventID(id), object: "pi_" + id}
		var err error
		e.sample, err = s.adapter.Sample(provider.SampleOptions{Type: "payment_intent.succeeded", EventID: id, ObjectID: e.object, Amount: 1250, Currency: "EUR"})
		if err != nil {
			return err
		}
		s.sent = append(s.sent, e)
		if err := s.post(ctx, e); err != nil {
			return err
		}
	}
	s.step("%d events are acknowledged", n)
	return nil
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
	headers := signature.Header{"content-type": "application/json"}
	maps.Copy(headers, e.sample.Header)
	signed, err := s.adapter.Scheme.Sign(signature.Request{Method: http.MethodPost, Header: headers, Body: e.sample.Body}, s.key, s.Now())
	if err != nil {
		return 0, err
	}
	maps.Copy(headers, signed)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Stack.FrontDoorURL()+"/in/stripe/"+string(Endpoint), bytes.NewReader(e.sample.Body))
	if err != nil {
		return 0, err
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil //nolint:nilerr // a provider that gets no answer comes again
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
	}
	s.step("the reconciler's next look, minutes ahead, is brought forward")
	return nil
}

// rows reads what became of every event.
func (s *Site) rows(ctx context.Context) ([]Row, error) {
	var rows []Row
	for _, e := range s.sent {
		r, err := s.row(ctx, e)
		if err != nil {
			return nil, err
		}
		balance, _, err := s.store.Get(ctx, business.LedgerBalanceKey(webhook.Event{
			Tenant: tenant, Provider: "stripe", Endpoint: Endpoint, InboxID: e.inboxID(),
			Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: e.object},
		}))
		if err != nil {
			return nil, err
		}
		credits, _ := balance[business.AttrEntries].(int64)
		rows = append(rows, Row{e.id, e.answers, r.Status, r.Outcome, r.AttemptCount, r.LastError, credits, r.ID})
	}
	return rows, nil
}

func (s *Site) print(rows []Row) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "EVENT\tANSWERS\tSTATUS\tOUTCOME\tATTEMPTS\tLAST_ERROR\tCREDITS\tINBOX_ID")
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%v\t%s\t%s\t%d\t%s\t%d\t%s\n", r.Event, r.Answers, r.Status, r.Outcome, r.Attempts, r.LastError, r.Credits, r.InboxID)
	}
	_ = w.Flush() // into memory
	_, _ = io.WriteString(s.Out, b.String())
}
