package sim

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// AddKey rotates: the endpoint trusts a further key, its newest.
func (w *World) AddKey(e *Endpoint, secretText string) signature.Key {
	w.T.Helper()
	key := w.PutKeyByOtherMeans(e, secretText)
	w.changeEndpoint(e, func(current webhook.Endpoint) (webhook.Endpoint, bool) {
		return current.Add(webhook.TrustedKey{Version: webhook.KeyVersion(key.Version), AddedAt: w.Now()})
	})
	return key
}

// PutKeyByOtherMeans makes a key the secret store's current one and tells the
// endpoint nothing.
func (w *World) PutKeyByOtherMeans(e *Endpoint, secretText string) signature.Key {
	w.T.Helper()
	w.spy.plant(secretText)
	w.ids++
	put, err := w.secrets.PutSecretValue(w.T.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: &e.Secret, SecretString: &secretText,
		ClientRequestToken: aws.String(fmt.Sprintf("00000000-0000-4000-8001-%012d", w.ids)),
	})
	if err != nil {
		w.T.Fatal(err)
	}
	decoded, err := e.Adapter.Scheme.DecodeKey(secretText)
	if err != nil {
		w.T.Fatal(err)
	}
	return signature.Key{Version: aws.ToString(put.VersionId), Secret: decoded}
}

// RetireKey ends the trust in a version.
func (w *World) RetireKey(e *Endpoint, v webhook.KeyVersion) {
	w.T.Helper()
	w.changeEndpoint(e, func(current webhook.Endpoint) (webhook.Endpoint, bool) { return current.Retire(v, w.Now()) })
}

func (w *World) changeEndpoint(e *Endpoint, change func(webhook.Endpoint) (webhook.Endpoint, bool)) {
	w.T.Helper()
	current, found, err := w.Outside.Endpoint(w.T.Context(), e.ID)
	if err != nil || !found {
		w.T.Fatalf("endpoint %s: %v, %v", e.ID, found, err)
	}
	changed, ok := change(current)
	if !ok {
		w.T.Fatalf("endpoint %s cannot be changed so", e.ID)
	}
	if written, err := w.Outside.UpdateEndpoint(w.T.Context(), changed); err != nil || !written {
		w.T.Fatalf("endpoint %s: written %v, %v", e.ID, written, err)
	}
}

// Configure changes an endpoint's settings.
func (w *World) Configure(e *Endpoint, change func(webhook.Endpoint) webhook.Endpoint) {
	w.T.Helper()
	w.changeEndpoint(e, func(current webhook.Endpoint) (webhook.Endpoint, bool) { return change(current), true })
}
