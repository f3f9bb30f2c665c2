// Package remote asks a sender's own API what [provider.API] declares: an
// object's present state, the events that the sender lists, and to send one of
// them again.
//
// Invariants:
//
//   - The credential is read for each call by the name that the endpoint's row
//     gives, goes into one header and nowhere else: not into an address, not into
//     an error.
//   - Where a call goes follows from the adapter's declaration, the account
//     values of the endpoint and an id, each checked by the adapter. [Client.Base]
//     replaces the host for a stand-in; it comes from the wiring, never from a row.
//   - A call has one deadline. It is made once: whoever asked decides when it is
//     made again, and [Wait] says how long the sender wants to be left alone.
//   - An answer is taken for the object only if it is readable and has the id that
//     was asked for.
//
// Whose fault it is: a refused credential and an incomplete account are ours, for
// an operator to repair; a sender that is slow, full or out of order is theirs.
//
// It refuses to follow a redirect, to repeat a call by itself, to keep answers,
// and to read the clock by itself.
package remote

import (
	"context"
	"errors"
	"net/http"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/webhook"
)

// Secrets reads named secrets.
type Secrets interface {
	// Text returns the present value of the secret of a name.
	Text(ctx context.Context, name string) (string, error)
}

// HTTP makes one request. Its errors are [*fault.Error]s, and so is their absence
// for any answer at all, a redirect included.
type HTTP interface {
	Do(ctx context.Context, r Request) (Response, error)
}

// Request is what is sent. Body is nil for none.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// Response is what came back, whole.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Client asks the APIs of all senders. It is safe for concurrent use. Zero
// durations take the defaults named beside them.
type Client struct {
	Secrets Secrets
	HTTP    HTTP
	// Now is the clock by which a sender's times are turned into waits.
	Now func() time.Time
	// Base, if set, returns what stands in for https and the host of a sender's
	// API; empty for the real one.
	Base func(webhook.Provider) string
	// ObjectTimeout bounds a call for one object, and one for a redelivery: 5 s.
	ObjectTimeout time.Duration
	// PageTimeout bounds a call for a page of a list: 20 s.
	PageTimeout time.Duration
}

// Wait is an error of a sender that wants to be left alone. It wraps a
// [*fault.Error] of kind theirs.
type Wait struct {
	// After is how long, 0 to [WaitMax]; 0 where the sender did not say.
	After time.Duration
	err   error
}

// WaitMax bounds what a sender may ask for.
const WaitMax = time.Hour

func (w *Wait) Error() string { return w.err.Error() }

func (w *Wait) Unwrap() error { return w.err }

// After returns how long a sender wants to be left alone, 0 if it did not say.
func After(err error) time.Duration {
	if w, ok := errors.AsType[*Wait](err); ok {
		return w.After
	}
	return 0
}

// Current reads the present state of an object. doc is what
// [provider.Adapter.CurrentFacts] reads; found is false where the sender says that
// there is no such object. id is the object's id as [webhook.Facts] has it.
func (c *Client) Current(ctx context.Context, e webhook.Endpoint, a *provider.Adapter, k provider.Kind, id string) (doc []byte, found bool, err error) {
	call, err := a.CurrentCall(e, k, id)
	if err != nil {
		return nil, false, err
	}
	answer, err := c.ask(ctx, e, a, call, or(c.ObjectTimeout, 5*time.Second))
	switch {
	case err != nil:
		return nil, false, err
	case a.Missing(answer.Status, answer.Body):
		return nil, false, nil
	}
	if err := c.judge(a, answer); err != nil {
		return nil, false, err
	}
	got, err := a.CurrentObject(k, answer.Body)
	switch {
	case err != nil:
		return nil, false, err
	case got != id:
		return nil, false, fault.New(fault.Theirs, "answer_other_object", nil)
	}
	return answer.Body, true, nil
}

// Page reads a part of what the sender lists since a time. cursor is empty for
// the first part, then the [provider.Page.Next] of the one before.
func (c *Client) Page(ctx context.Context, e webhook.Endpoint, a *provider.Adapter, since time.Time, cursor string) (provider.Page, error) {
	call, err := a.HistoryCall(e, since, cursor)
	if err != nil {
		return provider.Page{}, err
	}
	answer, err := c.ask(ctx, e, a, call, or(c.PageTimeout, 20*time.Second))
	if err != nil {
		return provider.Page{}, err
	}
	if err := c.judge(a, answer); err != nil {
		return provider.Page{}, err
	}
	return a.ReadHistory(e, since, cursor, provider.Reply{Header: answer.Header, Body: answer.Body})
}

// Redeliver has the sender send a listed event again, by the way on which it
// sends all of them. Done twice, it is sent twice under one id.
func (c *Client) Redeliver(ctx context.Context, e webhook.Endpoint, a *provider.Adapter, p provider.Past) error {
	call, err := a.RedeliverCall(e, p)
	if err != nil {
		return err
	}
	answer, err := c.ask(ctx, e, a, call, or(c.ObjectTimeout, 5*time.Second))
	if err != nil {
		return err
	}
	return c.judge(a, answer)
}

// ask makes a call with the endpoint's credential, within a time of its own.
func (c *Client) ask(ctx context.Context, e webhook.Endpoint, a *provider.Adapter, call provider.Call, timeout time.Duration) (Response, error) {
	if e.API.Secret == "" {
		return Response{}, fault.New(fault.Ours, "api_unset", nil)
	}
	credential, err := c.Secrets.Text(ctx, e.API.Secret)
	if err != nil {
		return Response{}, err
	}
	call.Header.Set("User-Agent", "dakghar")
	if err := a.API.Authorise(call.Header, credential); err != nil {
		return Response{}, err
	}
	base := ""
	if c.Base != nil {
		base = c.Base(a.Name)
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := c.HTTP.Do(bounded, Request{Method: call.Method, URL: call.URL(base), Header: call.Header})
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return Response{}, fault.New(fault.Theirs, "api_timeout", nil) // our patience ended, not our caller's
	}
	return answer, err
}

func or(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}
