package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// sender posts requests as a provider does: it follows no redirect and keeps its
// connections.
type sender struct{ client *http.Client }

// Limits of one request, above what the front door ever takes.
const (
	sendTimeout    = 15 * time.Second
	answerBytesMax = 64 << 10
	connectionsMax = 4096
)

func newSender() sender {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: connectionsMax, MaxIdleConnsPerHost: connectionsMax,
		IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
	return sender{&http.Client{
		Transport: transport, Timeout: sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Post implements operator.Sender.
func (s sender) Post(ctx context.Context, to string, header map[string]string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, nil, plain(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "dakghar-send")
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, nil, plain(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer: %w", plain(err))
	}
	return resp.StatusCode, answer, nil
}

// plain leaves the address out of an error: it is shown beside it anyway.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
