package canary

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Pauses between two tries of a request, and between two looks at a row: the
// shortest, doubled each time up to the longest.
const (
	sendPause, sendPauseMax = time.Second, 8 * time.Second
	lookPause, lookPauseMax = 250 * time.Millisecond, 2 * time.Second
)

// lastLookTime bounds the question, after a run's time is over, whether the work
// on an endpoint was paused meanwhile.
const lastLookTime = 2 * time.Second

// flight is one canary under way.
type flight struct {
	*run
	endpoint webhook.Endpoint
	adapter  *provider.Adapter
	sample   provider.Sample
	began    time.Time // of the first request
	report   Report
}

// send posts the canary until it is acknowledged. False ends its flight: the time
// is over, or it cannot be signed.
func (f *flight) send(ctx context.Context) bool {
	for pause := sendPause; ; pause = min(2*pause, sendPauseMax) {
		err := f.call(ctx, func() error { return f.post(ctx) })
		switch {
		case errors.Is(err, signature.ErrNoKey):
			f.report.Decision, f.report.Code, f.report.Err = Unsignable, "key_public", nil
			return false
		case err == nil && f.report.HTTP >= 200 && f.report.HTTP <= 299:
			f.report.Code, f.report.Err = "", nil
			return true
		case err != nil && ctx.Err() == nil:
			f.report.Code, f.report.Err = codeOf(err), err
		case err != nil && f.report.Code == "":
			// The time was over before there was another reason.
			if f.report.Code = "no_answer"; f.report.Sent == 0 {
				f.report.Code = "not_sent"
			}
		}
		if f.Wait(ctx, pause) != nil {
			return false
		}
	}
}

// post signs the canary as of now and makes one request. The error says why there
// is no answer.
func (f *flight) post(ctx context.Context) error {
	key, err := f.key(ctx)
	if err != nil {
		return err
	}
	url := strings.TrimRight(f.URL, "/") + "/in/" + string(f.endpoint.Provider) + "/" + string(f.endpoint.ID)
	now := f.Now()
	signed, err := f.adapter.Scheme.Sign(signature.Request{Method: http.MethodPost, URL: url, Header: f.sample.Header, Body: f.sample.Body}, key, now)
	if err != nil {
		return err
	}
	header := http.Header{"User-Agent": {"dakghar-canary"}}
	for _, part := range []signature.Header{f.sample.Header, signed} {
		for name, value := range part {
			header.Set(name, value)
		}
	}
	if f.report.Sent++; f.report.Sent == 1 {
		f.began = now
	}
	answer, err := f.HTTP.Do(ctx, Request{Method: http.MethodPost, URL: url, Header: header, Body: f.sample.Body})
	if err != nil {
		f.report.HTTP = 0
		return err
	}
	f.report.HTTP, f.report.Code, f.report.Err = answer.Status, refusalOf(answer.Body), nil
	return nil
}

// key returns the newest key that the endpoint trusts.
func (f *flight) key(ctx context.Context) (signature.Key, error) {
	trusted := f.endpoint.Trusted(f.Now())
	if len(trusted) == 0 {
		return signature.Key{}, fault.New(fault.Permanent, "no_key_trusted", nil)
	}
	secret, err := f.Keys.Secret(ctx, f.endpoint, trusted[0])
	if err != nil {
		return signature.Key{}, err
	}
	decoded, err := f.adapter.Scheme.DecodeKey(secret)
	if err != nil {
		return signature.Key{}, fault.New(fault.Permanent, "secret_refused", err)
	}
	return signature.Key{Version: string(trusted[0]), Secret: decoded}, nil
}

// refusalOf reads the front door's code, for an answer that is no success.
func refusalOf(body []byte) string {
	var a struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &a) != nil || a.Error == "" {
		return "refused"
	}
	return a.Error
}

// look reads the row until the work on it has ended, or has been stopped.
func (f *flight) look(ctx context.Context) {
	f.report.Code = "not_processed"
	for pause := lookPause; f.Wait(ctx, pause) == nil; pause = min(2*pause, lookPauseMax) {
		err := f.call(ctx, func() error { return f.read(ctx) })
		switch {
		case f.report.Decision != Missing || f.report.Row.Terminal():
			return
		case err != nil && ctx.Err() == nil:
			f.report.Code, f.report.Err = codeOf(err), err
		}
	}
	// The processors learn of a pause within half a minute, and so it may have
	// begun since the endpoint was read.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLookTime)
	defer cancel()
	if e, _, err := f.Endpoints.Endpoint(ctx, f.endpoint.ID); err == nil && f.report.Row != "" && !e.PausedAt.IsZero() {
		f.end(Accepted)
	}
}

// read looks at the row once.
func (f *flight) read(ctx context.Context) error {
	row, found, err := f.Inbox.Inbox(ctx, f.report.InboxID)
	if err != nil {
		return err
	}
	f.report.Code, f.report.Err, f.report.Row = "not_processed", nil, row.Status
	switch {
	case !found:
		f.report.Code = "row_missing"
	case row.Status == webhook.Processed:
		f.end(Arrived)
		f.report.Took = max(0, min(row.ProcessedAt.Sub(f.began), f.Now().Sub(f.began)))
	case row.Status == webhook.Failed:
		f.report.Code = row.LastError
	case row.Status == webhook.Held, !f.endpoint.PausedAt.IsZero():
		f.end(Accepted)
	}
	return nil
}

func (f *flight) end(d Decision) { f.report.Decision, f.report.Code, f.report.Err = d, "", nil }

// codeOf names an error; one without a code is what stood in the way of an answer.
func codeOf(err error) string {
	if code := fault.CodeOf(err); code != "unknown" {
		return code
	}
	return "no_answer"
}
