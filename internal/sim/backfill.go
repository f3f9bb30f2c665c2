package sim

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/crashtest"
	"dakghar/internal/fault"
	"dakghar/internal/ingress"
	"dakghar/internal/limit"
	"dakghar/internal/processor"
	"dakghar/internal/provider/remote"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/secret"
	"dakghar/internal/webhook"
)

// apiWire carries requests to the stand-in of the providers' APIs, in place of the
// network. A program that is dead asks nobody.
type apiWire struct {
	server http.Handler
	dead   func() bool
}

// Do implements [remote.HTTP].
func (a apiWire) Do(ctx context.Context, r remote.Request) (remote.Response, error) {
	if a.dead() {
		return remote.Response{}, fault.New(fault.Ours, "egress_stopped", crashtest.ErrDead)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return remote.Response{}, fault.New(fault.Permanent, "egress_url_refused", nil)
	}
	req.Header = r.Header
	recorder := &recorder{header: http.Header{}, status: http.StatusOK}
	a.server.ServeHTTP(recorder, req)
	return remote.Response{Status: recorder.status, Header: recorder.header, Body: recorder.body.Bytes()}, nil
}

// backfill is what the reconciler compares providers' lists with; nil where the
// world has no stand-in for their APIs.
func (w *World) backfill(cfg aws.Config, o Options, now func() time.Time, dead func() bool) *ingress.Backfill {
	if o.API == nil {
		return nil
	}
	store := w.store(cfg)
	return &ingress.Backfill{
		Receiver: &ingress.Receiver{
			Providers: w.Providers, Bodies: w.bodies(cfg, o, now), Inbox: store, Recent: ingress.NewRecent(64),
			Limits: limit.NewLimiter(store, patience), Budget: patience, Now: now, NewID: w.NewID,
		},
		Listing: apiClient(cfg, o, now, dead),
		Rows:    store, Lease: 90 * time.Second, Slack: 5 * time.Second, RedeliverMax: 3, Wait: w.wait,
	}
}

func apiClient(cfg aws.Config, o Options, now func() time.Time, dead func() bool) *remote.Client {
	return &remote.Client{
		Secrets: secret.NewNamed(secret.Config{Client: secretsmanager.NewFromConfig(cfg), Now: now, CallTimeout: patience}),
		HTTP:    apiWire{o.API, dead}, Now: now, Base: fakeprovider.Base("http://127.0.0.1"),
		PageTimeout: patience, ObjectTimeout: patience,
	}
}

// objects is whom the processor asks about an object.
func (w *World) objects(cfg aws.Config, o Options, now func() time.Time) processor.Objects {
	if !o.AskAPI {
		return &w.Objects
	}
	return apiClient(cfg, o, now, func() bool { return w.Processor.Switch.Dead() })
}

// RivalBackfill is a second program that works on back-fills, which nothing ends.
func (w *World) RivalBackfill() *ingress.Backfill {
	return w.backfill(w.configOf("reconciler"), w.options, w.Now, func() bool { return false })
}

// Provide gives an endpoint access to its provider's API, and a back-fill now and then.
func (w *World) Provide(e *Endpoint, credential string, account map[string]string, every time.Duration) {
	w.T.Helper()
	w.spy.plant(credential)
	name := w.stackName() + "/api/" + string(e.ID)
	_, err := w.secrets.CreateSecret(w.T.Context(), &secretsmanager.CreateSecretInput{
		Name: &name, SecretString: &credential, ClientRequestToken: aws.String("00000000-0000-4000-8000-000000000002"),
	})
	if err != nil {
		w.T.Fatal(err)
	}
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.API, e.BackfillEvery = &webhook.API{Secret: name, Account: account}, every
		return e
	})
}

// Owe leaves a delivery to be sent later, until it is acknowledged.
func (w *World) Owe(d *Delivery) { w.pending = append(w.pending, d) }

// Backfilled returns how far an endpoint's back-fill has come.
func (w *World) Backfilled(id webhook.EndpointID) webhook.Backfill {
	w.T.Helper()
	b, err := w.Outside.Backfill(w.T.Context(), id)
	if err != nil {
		w.T.Fatal(err)
	}
	return b
}

// Registered returns an endpoint as its row has it now.
func (w *World) Registered(id webhook.EndpointID) webhook.Endpoint {
	w.T.Helper()
	e, found, err := w.Outside.Endpoint(w.T.Context(), id)
	if err != nil || !found {
		w.T.Fatalf("endpoint %s: %v, %v", id, found, err)
	}
	return e
}
