package sim

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Endpoint is one registered address, with the key that its provider signs with.
type Endpoint struct {
	webhook.Endpoint
	Adapter *provider.Adapter
	Key     signature.Key
}

// AddEndpoint registers an endpoint with one trusted key.
func (w *World) AddEndpoint(p webhook.Provider, id webhook.EndpointID, secretText string) *Endpoint {
	w.T.Helper()
	ctx := w.T.Context()
	adapter, ok := w.Providers.Lookup(p)
	if !ok {
		w.T.Fatalf("no adapter named %s", p)
	}
	w.spy.plant(secretText)
	name := w.stackName() + "/endpoint/" + string(id)
	made, err := w.secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: &name, SecretString: &secretText, ClientRequestToken: aws.String("00000000-0000-4000-8000-000000000001"),
	})
	if err != nil {
		w.T.Fatal(err)
	}
	version := webhook.KeyVersion(aws.ToString(made.VersionId))
	e := webhook.Endpoint{
		ID: id, Provider: p, Tenant: "acme", Scope: webhook.Scope(id), Secret: name, Overlap: 72 * time.Hour,
		Keys: []webhook.TrustedKey{{Version: version, AddedAt: w.Now(), FirstMatch: w.Now()}}, CreatedAt: w.Now(),
	}
	if ok, err := w.Outside.CreateEndpoint(ctx, e); err != nil || !ok {
		w.T.Fatalf("create endpoint: %v, %v", ok, err)
	}
	decoded, err := adapter.Scheme.DecodeKey(secretText)
	if err != nil {
		w.T.Fatal(err)
	}
	endpoint := &Endpoint{Endpoint: e, Adapter: adapter, Key: signature.Key{Version: string(version), Secret: decoded}}
	w.endpoints[id] = endpoint
	return endpoint
}

// Delivery is one event on its way from a provider, which sends it until it
// sees a 2xx, with a new signature each time.
type Delivery struct {
	Endpoint *Endpoint
	Sample   provider.Sample
	Answers  []int // what the provider saw; 0 where no answer came
}

// Acknowledged reports whether the provider saw a 2xx.
func (d *Delivery) Acknowledged() bool {
	for _, status := range d.Answers {
		if status >= 200 && status < 300 {
			return true
		}
	}
	return false
}

// Event makes a delivery of a sample event, not sent yet.
func (w *World) Event(e *Endpoint, o provider.SampleOptions) *Delivery {
	w.T.Helper()
	sample, err := e.Adapter.Sample(o)
	if err != nil {
		w.T.Fatal(err)
	}
	return &Delivery{Endpoint: e, Sample: sample}
}

// Post lets the provider send a delivery once, and returns the status it saw: 0
// where the receiver died. It stays pending until it is acknowledged.
func (w *World) Post(d *Delivery) int {
	w.T.Helper()
	status, answer := w.PostRaw(d.Endpoint, w.Signed(d), d.Sample.Body)
	d.Answers = append(d.Answers, status)
	if status >= 200 && status < 300 {
		var said struct {
			InboxID webhook.InboxID `json:"inbox_id"`
		}
		if err := json.Unmarshal(answer, &said); err == nil && said.InboxID != "" {
			w.accepted[said.InboxID] = true
		}
	}
	return status
}

// Send posts a delivery, and keeps it for later where it was not acknowledged.
func (w *World) Send(d *Delivery) int {
	w.T.Helper()
	status := w.Post(d)
	if !d.Acknowledged() {
		w.pending = append(w.pending, d)
	}
	return status
}

// Signed returns the headers that the provider sends with a delivery now.
func (w *World) Signed(d *Delivery) signature.Header {
	w.T.Helper()
	headers := signature.Header{"content-type": "application/json"}
	for name, value := range d.Sample.Header {
		headers[name] = value
	}
	signing, err := d.Endpoint.Adapter.Scheme.Sign(signature.Request{Method: http.MethodPost, Header: headers, Body: d.Sample.Body}, d.Endpoint.Key, w.Now())
	if err != nil {
		w.T.Fatal(err)
	}
	for name, value := range signing {
		headers[name] = value
	}
	w.spy.plant(headers[d.Endpoint.Adapter.Scheme.Signature.Header])
	w.spy.plant(string(d.Sample.Body))
	return headers
}

// PostRaw posts signed or unsigned bytes to an endpoint.
func (w *World) PostRaw(e *Endpoint, headers signature.Header, body []byte) (int, []byte) {
	w.T.Helper()
	return w.Invoke(Event(e, headers, body))
}

// Event returns the event that API Gateway makes of a request. Tests bend it.
func Event(e *Endpoint, headers signature.Header, body []byte) map[string]any {
	path := "/in/" + string(e.Provider) + "/" + string(e.ID)
	return map[string]any{
		"version": "2.0", "rawPath": path, "headers": headers,
		"body": base64.StdEncoding.EncodeToString(body), "isBase64Encoded": true,
		"requestContext": map[string]any{"requestId": "r", "http": map[string]any{"method": http.MethodPost, "path": path}},
	}
}

// Invoke hands an event to the ingress, and returns the status and body of its
// answer; status 0 means that it died before it answered.
func (w *World) Invoke(event any) (int, []byte) {
	w.T.Helper()
	out, err := w.HTTP().Invoke(context.WithoutCancel(w.T.Context()), mustJSON(w.T, event))
	if w.Ingress.Switch.Dead() {
		w.Ingress.restart()
		return 0, nil
	}
	if err != nil {
		w.T.Fatal(err)
	}
	var answer struct {
		StatusCode int    `json:"statusCode"`
		Body       string `json:"body"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		w.T.Fatal(err)
	}
	return answer.StatusCode, []byte(answer.Body)
}
