package sim

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/canary"
	"dakghar/internal/secret"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// doorURL is where canaries of a world go in.
const doorURL = "https://door.test"

// Canaries makes one pass of canaries, one endpoint after the other, and lets the
// world settle wherever the pass waits.
func (w *World) Canaries() []canary.Report {
	w.T.Helper()
	cfg := w.configOf("canary")
	store := w.store(cfg)
	pass := &canary.Canary{
		Providers: w.Providers, Endpoints: store, Inbox: store, HTTP: door{w}, URL: doorURL, Budget: time.Minute, AtOnce: 1, Now: w.Now, NewID: w.NewID,
		Keys: secret.Texts{Cache: secret.New(secret.Config{Client: secretsmanager.NewFromConfig(cfg), Now: w.Now, CallTimeout: patience})},
		Wait: func(context.Context, time.Duration) error { w.Settle(); return nil },
	}
	reports, err := pass.Run(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	return reports
}

// door hands requests to the ingress.
type door struct{ w *World }

func (d door) Do(_ context.Context, r canary.Request) (canary.Response, error) {
	at, err := url.Parse(r.URL)
	if err != nil {
		return canary.Response{}, err
	}
	name, id, ok := strings.Cut(strings.TrimPrefix(at.Path, "/in/"), "/")
	if !ok {
		return canary.Response{}, errors.New("there is no such address")
	}
	headers := signature.Header{}
	for name := range r.Header {
		headers[strings.ToLower(name)] = r.Header.Get(name)
	}
	e := &Endpoint{Endpoint: webhook.Endpoint{ID: webhook.EndpointID(id), Provider: webhook.Provider(name)}}
	status, body := d.w.PostRaw(e, headers, r.Body)
	return canary.Response{Status: status, Header: http.Header{}, Body: body}, nil
}
