package dispatcher

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dakghar/internal/delivery"
	"dakghar/internal/fault"
)

// Request is one HTTP request to a partner.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// Response is what came back, at most as much as the client takes.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Client makes requests to addresses that somebody else chose. It follows no
// redirect, and refuses addresses that lead inward.
type Client interface {
	Do(ctx context.Context, r Request) (Response, error)
}

// HTTP delivers by POST.
type HTTP struct {
	Client Client
	// Agent is told to partners.
	Agent string
}

// redirectsMax bounds the redirects that one attempt follows.
const redirectsMax = 3

// Send implements [Sender]. Only 307 and 308, which keep method and body, to the
// subscription's own host or one on its list are followed, each signed anew;
// every other redirect is an answer that ends the delivery.
func (h *HTTP) Send(ctx context.Context, s delivery.Subscription, body []byte, sign func() (map[string]string, error)) (delivery.Answer, error) {
	target := s.Target.URL
	for redirects := 0; ; redirects++ {
		header, err := h.header(sign)
		if err != nil {
			return delivery.Answer{Redirects: redirects}, err
		}
		response, err := h.Client.Do(ctx, Request{Method: http.MethodPost, URL: target, Header: header, Body: body})
		answer := delivery.Answer{Status: response.Status, RetryAfter: response.Header.Get("Retry-After"), Body: response.Body, Redirects: redirects}
		if err != nil || response.Status != http.StatusTemporaryRedirect && response.Status != http.StatusPermanentRedirect {
			return answer, err
		}
		next, err := follow(target, response.Header.Get("Location"), s.Target)
		if err != nil {
			return answer, err
		}
		if redirects == redirectsMax {
			return answer, fault.New(fault.Permanent, "redirects_too_many", nil)
		}
		target = next
	}
}

func (h *HTTP) header(sign func() (map[string]string, error)) (http.Header, error) {
	signed, err := sign()
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {h.Agent}}
	for name, value := range signed {
		header.Set(name, value)
	}
	return header, nil
}

// follow returns where a redirect leads, if it may be followed: https stays
// https, the host is the subscription's or on its list, and nothing secret
// travels in the address.
func follow(from, location string, t delivery.Target) (string, error) {
	refused := fault.New(fault.Permanent, "redirect_refused", nil)
	base, err := url.Parse(from)
	if err != nil {
		return "", refused
	}
	next, err := base.Parse(location)
	if err != nil || location == "" || next.Scheme != base.Scheme || next.User != nil {
		return "", refused
	}
	own, err := url.Parse(t.URL)
	if err != nil {
		return "", refused
	}
	allowed := slices.ContainsFunc(append([]string{own.Host}, t.RedirectHosts...), func(host string) bool {
		return strings.EqualFold(host, next.Host)
	})
	if !allowed || delivery.CheckURL(next.String(), next.Scheme == "http") != nil {
		return "", refused
	}
	next.Fragment = ""
	return next.String(), nil
}
