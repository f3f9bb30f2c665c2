package canary_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"dakghar/internal/canary"
	"dakghar/internal/provider"
	"dakghar/internal/provider/all"
	"dakghar/internal/webhook"
)

const (
	budget       = 30 * time.Second
	stripeSecret = "whsec_test_secret_for_canaries"
)

var errDown = errors.New("down")

// site is everything that a canary meets. What a test does not bend works: the
// door accepts, and a row is processed 300 ms after that.
type site struct {
	mu        sync.Mutex
	endpoints []webhook.Endpoint
	secrets   map[webhook.KeyVersion]string
	// list and endpoint, where set, are what the registry answers with instead.
	list     error
	endpoint func(id webhook.EndpointID, e webhook.Endpoint) (webhook.Endpoint, bool, error)
	// door answers the n-th request, from 1.
	door func(ctx context.Context, n int) (canary.Response, error)
	// row bends what the inbox has, at the n-th look.
	row func(n int, row webhook.Inbox, found bool) (webhook.Inbox, bool, error)

	requests     []canary.Request
	acceptedAt   time.Time
	looks        int
	inFlight     int
	inFlightMost int
}

func newSite() *site {
	return &site{
		endpoints: []webhook.Endpoint{{
			ID: "demo", Provider: "stripe", Scope: "demo", Tenant: "acme", Secret: "test/endpoint/demo", Canary: true,
			Keys: []webhook.TrustedKey{{Version: "v1"}},
		}},
		secrets: map[webhook.KeyVersion]string{"v1": stripeSecret},
	}
}

func (s *site) canary(t *testing.T) *canary.Canary {
	t.Helper()
	providers, err := provider.NewRegistry(all.Adapters()...)
	if err != nil {
		t.Fatal(err)
	}
	ids := 0
	var mu sync.Mutex
	return &canary.Canary{
		Providers: providers, Endpoints: s, Keys: s, HTTP: s, Inbox: s, URL: "https://door.test/", Budget: budget, AtOnce: 4, Now: time.Now,
		NewID: func() string { mu.Lock(); defer mu.Unlock(); ids++; return fmt.Sprint("ID", ids) },
		Wait: func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
}

func (s *site) EndpointIDs(context.Context) ([]webhook.EndpointID, error) {
	var ids []webhook.EndpointID
	for _, e := range s.endpoints {
		ids = append(ids, e.ID)
	}
	return ids, s.list
}

func (s *site) Endpoint(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error) {
	if ctx.Err() != nil {
		return webhook.Endpoint{}, false, ctx.Err()
	}
	for _, e := range s.endpoints {
		if e.ID == id {
			if s.endpoint != nil {
				return s.endpoint(id, e)
			}
			return e, true, nil
		}
	}
	return webhook.Endpoint{}, false, nil
}

func (s *site) Secret(_ context.Context, _ webhook.Endpoint, v webhook.KeyVersion) (string, error) {
	if secret, ok := s.secrets[v]; ok {
		return secret, nil
	}
	return "", errDown
}

func (s *site) Do(ctx context.Context, r canary.Request) (canary.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	n := len(s.requests)
	s.inFlight++
	s.inFlightMost = max(s.inFlightMost, s.inFlight)
	s.mu.Unlock()
	answer, err := canary.Response{Status: http.StatusOK, Body: []byte(`{"result":"accepted"}`)}, error(nil)
	if s.door != nil {
		answer, err = s.door(ctx, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if err == nil && answer.Status < 300 {
		s.acceptedAt = time.Now()
	}
	return answer, err
}

// Inbox knows every row once a request was accepted.
func (s *site) Inbox(_ context.Context, id webhook.InboxID) (webhook.Inbox, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	row := webhook.Inbox{ID: id, Status: webhook.Received}
	if done := s.acceptedAt.Add(300 * time.Millisecond); !time.Now().Before(done) {
		row.Status, row.Outcome, row.ProcessedAt = webhook.Processed, webhook.Ignored, done
	}
	found := !s.acceptedAt.IsZero()
	if s.row != nil {
		return s.row(s.looks, row, found)
	}
	return row, found, nil
}

// never keeps every row in a state.
func never(status webhook.Status, last string) func(int, webhook.Inbox, bool) (webhook.Inbox, bool, error) {
	return func(_ int, row webhook.Inbox, found bool) (webhook.Inbox, bool, error) {
		row.Status, row.LastError, row.ProcessedAt = status, last, time.Time{}
		return row, found, nil
	}
}

func answers(status int, body string) func(context.Context, int) (canary.Response, error) {
	return func(context.Context, int) (canary.Response, error) {
		return canary.Response{Status: status, Body: []byte(body)}, nil
	}
}

// publicKey is a secret of Standard Webhooks with which one verifies only.
func publicKey() string {
	public := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	return "whpk_" + base64.StdEncoding.EncodeToString(public)
}
