package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/dynamo"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// The endpoint that every figure uses, and the size of its events.
const (
	endpoint   webhook.EndpointID = "demo"
	tenant     webhook.Tenant     = "acme"
	secretText                    = "whsec_secret_of_the_benchmark"
	bodyBytes                     = 10 << 10
	amount                        = 1250
	currency                      = "EUR"
)

// number is event 0's, in the ids of the event and of its payment.
const number = "000000000000"

// paymentBody returns the body of event 0: a payment that was declined once and
// then succeeded, in the words and the layout in which Stripe sends one to an
// account on API version 2022-08-01, whose events still carry the charges.
// provider.SampleOptions.BodyBytes would fill a body with digests instead, which
// compress to half; write_units_per_event_digest_filled says what that costs.
func paymentBody(t *testing.T) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/payment_intent.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(body) != bodyBytes || !bytes.Contains(body, []byte(`"evt_`+number+`"`)) || !bytes.Contains(body, []byte(`"pi_`+number+`"`)) {
		t.Fatalf("the payment has %d bytes, or not the ids that are replaced", len(body))
	}
	return body
}

// numbered returns the n-th event's body.
func numbered(body []byte, n int) []byte {
	return bytes.ReplaceAll(body, []byte(number), fmt.Appendf(nil, "%012d", n))
}

// sender makes signed Stripe events of 10 KiB. Making one costs a replacement
// and a MAC, so that a sender takes little from what it measures.
type sender struct {
	adapter *provider.Adapter
	key     signature.Key
	body    []byte // of event 0
	frame   map[string]any
}

func newSender(t *testing.T, version webhook.KeyVersion) *sender {
	t.Helper()
	s := &sender{adapter: stripe(t), body: paymentBody(t)}
	secret, err := s.adapter.Scheme.DecodeKey(secretText)
	if err != nil {
		t.Fatal(err)
	}
	s.key = signature.Key{Version: string(version), Secret: secret}
	frame, err := os.ReadFile("../../events/http-post-json.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(frame, &s.frame); err != nil {
		t.Fatal(err)
	}
	return s
}

func stripe(t *testing.T) *provider.Adapter {
	t.Helper()
	adapter, ok := providers(t).Lookup("stripe")
	if !ok {
		t.Fatal("there is no adapter for Stripe")
	}
	return adapter
}

func providers(t *testing.T) *provider.Registry {
	t.Helper()
	registry, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// event returns the body and the headers of the n-th event, signed now.
func (s *sender) event(n int) ([]byte, signature.Header) {
	body := numbered(s.body, n)
	headers := signature.Header{"content-type": "application/json"}
	signed, err := s.adapter.Scheme.Sign(signature.Request{Method: http.MethodPost, Header: headers, Body: body}, s.key, time.Now())
	if err != nil {
		panic(fmt.Sprintf("bench: signing: %v", err)) // a fixed scheme and key
	}
	maps.Copy(headers, signed)
	return body, headers
}

// payload returns the event that API Gateway makes of the n-th request.
func (s *sender) payload(n int) []byte {
	body, signed := s.event(n)
	headers := map[string]any{}
	maps.Copy(headers, s.frame["headers"].(map[string]any))
	headers["content-length"] = fmt.Sprint(len(body))
	for name, value := range signed {
		headers[name] = value
	}
	frame := maps.Clone(s.frame)
	frame["headers"], frame["body"] = headers, string(body)
	payload, err := json.Marshal(frame)
	if err != nil {
		panic(fmt.Sprintf("bench: encoding an event: %v", err))
	}
	return payload
}

// register makes the endpoint as an operator's command does, and returns a sender
// that signs for it. The key's first match is known, as in all but an endpoint's
// first minute.
func register(t *testing.T, secrets *secretsmanager.Client, store *dynamo.Store) *sender {
	t.Helper()
	name, now := "bench/endpoint/"+string(endpoint), time.Now()
	made, err := secrets.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: &name, SecretString: aws.String(secretText)})
	if err != nil {
		t.Fatal(err)
	}
	version := webhook.KeyVersion(aws.ToString(made.VersionId))
	ok, err := store.CreateEndpoint(t.Context(), webhook.Endpoint{
		ID: endpoint, Provider: "stripe", Tenant: tenant, Scope: webhook.Scope(endpoint), Secret: name, Overlap: time.Hour, CreatedAt: now,
		Keys: []webhook.TrustedKey{{Version: version, AddedAt: now, FirstMatch: now}},
	})
	if err != nil || !ok {
		t.Fatalf("endpoint: %v, %v", ok, err)
	}
	return newSender(t, version)
}
