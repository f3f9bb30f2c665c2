package remote

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
)

// judge returns what an answer's status means, nil for a success.
func (c *Client) judge(a *provider.Adapter, r Response) error {
	switch {
	case r.Status >= 200 && r.Status <= 299:
		return nil
	case r.Status == http.StatusTooManyRequests, c.exhausted(a.API.Quota, r):
		return &Wait{After: c.wait(a.API.Quota, r.Header), err: fault.New(fault.Theirs, "api_throttled", nil)}
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		return fault.New(fault.Ours, "api_credential_refused", nil)
	case r.Status >= 500:
		return &Wait{After: c.wait(provider.Quota{}, r.Header), err: fault.New(fault.Theirs, "api_unavailable", nil)}
	case r.Status >= 300 && r.Status <= 399:
		return fault.New(fault.Theirs, "api_redirected", nil)
	}
	return fault.New(fault.Theirs, "api_refused", nil)
}

// exhausted reports whether a refusal is about the caller's allowance and not
// about who it is: GitHub says 403 for both.
func (c *Client) exhausted(q provider.Quota, r Response) bool {
	if q.Left == "" || r.Status != http.StatusForbidden {
		return false
	}
	return r.Header.Get(q.Left) == "0" || r.Header.Get("Retry-After") != ""
}

// wait reads how long the sender wants to be left alone.
func (c *Client) wait(q provider.Quota, h http.Header) time.Duration {
	now := c.Now()
	after := h.Get("Retry-After")
	whole, _, _ := strings.Cut(after, ".") // Shopify writes "2.0"
	if seconds, err := strconv.ParseInt(whole, 10, 32); err == nil {
		return clamp(time.Duration(seconds) * time.Second)
	}
	if at, err := http.ParseTime(after); err == nil {
		return clamp(at.Sub(now))
	}
	if seconds, err := strconv.ParseInt(h.Get(q.Reset), 10, 64); err == nil && q.Reset != "" {
		return clamp(time.Unix(seconds, 0).Sub(now))
	}
	return 0
}

func clamp(d time.Duration) time.Duration { return min(max(d, 0), WaitMax) }
