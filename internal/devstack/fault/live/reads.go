package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"dakghar/internal/provider"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/webhook"
)

// shop is the provider whose objects are read: one that tells when an object last
// changed, so that an older state can be told from a newer one.
const shop webhook.Provider = "shopify"

// Provider stands in for a provider's API.
type Provider struct {
	*fakeprovider.Server
	served *http.Server
	url    string
}

// ServeProvider starts a stand-in on a free port of this machine. Stop ends it.
func ServeProvider() (*Provider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the stand-in for a provider: %w", err)
	}
	api := fakeprovider.New()
	p := &Provider{Server: api, url: "http://" + listener.Addr().String(), served: &http.Server{Handler: api, ReadHeaderTimeout: time.Minute}}
	go func() { _ = p.served.Serve(listener) }() // it ends when it is closed
	return p, nil
}

// URL is where the APIs are, each below its provider's name.
func (p *Provider) URL() string { return p.url }

// Stop ends the stand-in.
func (p *Provider) Stop() { _ = p.served.Close() }

// reads are the faults of what a provider's API shows.
func reads() []Fault {
	return []Fault{{
		Name: "fetch-older", Shows: "O1, O3", want: applied(2),
		Says: "The provider's API shows an older state than one that is applied already: nothing is written, and the object is read again.",
		show: fetchOlder,
	}}
}

func fetchOlder(ctx context.Context, s *Site) error {
	order := fmt.Sprint(1000 + s.shown)
	for i, state := range []string{"pending", "paid"} {
		s.Provider.Put(shop, "orders", fmt.Appendf(nil,
			`{"id":%s,"order_number":1,"line_items":[],"total_price":"12.50","currency":"EUR","financial_status":%q,"updated_at":"2026-03-01T12:00:0%dZ"}`, order, state, i))
	}
	if err := s.sendChange(ctx, order); err != nil {
		return err
	}
	if err := s.stands(ctx, s.sent[0], webhook.Processed); err != nil {
		return err
	}
	s.step("the order is read at the provider: it is paid, and that is applied")
	s.Provider.Stale(shop, 1)
	if err := s.sendChange(ctx, order); err != nil {
		return err
	}
	if err := s.stands(ctx, s.sent[1], webhook.Retry); err != nil {
		return err
	}
	row, err := s.row(ctx, s.sent[1])
	if err == nil && row.LastError != "fetched_older" {
		err = fmt.Errorf("it is tried again because of %q", row.LastError)
	}
	s.step("the API shows the order as it was before, pending: nothing is written, and it is read again in a while")
	return errors.Join(err, s.stands(ctx, s.sent[1], webhook.Processed))
}

// sendChange sends an event that says that an order has changed.
func (s *Site) sendChange(ctx context.Context, order string) error {
	return s.sendOne(ctx, s.orders, provider.SampleOptions{
		Type: "orders/updated", EventID: fmt.Sprintf("%d-%d", s.shown, len(s.sent)+1), ObjectID: order, Amount: 1250, Currency: "EUR",
	})
}
