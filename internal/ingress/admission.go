package ingress

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Bounds of a request's headers, checked before anything of it is used. API
// Gateway itself refuses more than 10,240 bytes.
const (
	headersMax     = 100
	headerBytesMax = 16 << 10
)

// admit checks what can be known without the body's content or a key.
func (r *Receiver) admit(req Request) (*provider.Adapter, *refusal) {
	adapter, ok := r.Providers.Lookup(req.Provider)
	if !ok || !webhook.ValidEndpointID(req.Endpoint) {
		return nil, &refusal404
	}
	if req.Method != http.MethodPost {
		return nil, &refusal{http.StatusMethodNotAllowed, "method_not_allowed", "method_not_allowed", nil}
	}
	if why := checkHeaders(req); why != nil {
		return nil, why
	}
	if !adapter.AllowsContentType(req.Header["content-type"]) {
		return nil, &refusal{http.StatusUnsupportedMediaType, "unsupported_media_type", "content_type_not_allowed", nil}
	}
	if enc := req.Header["content-encoding"]; enc != "" && enc != "identity" {
		return nil, &refusal{http.StatusUnsupportedMediaType, "unsupported_media_type", "content_encoding_not_allowed", nil}
	}
	return adapter, checkSize(req, adapter.BodyBytesMax)
}

func checkHeaders(req Request) *refusal {
	bad := func(cause string) *refusal {
		return &refusal{http.StatusBadRequest, "headers_invalid", cause, nil}
	}
	if len(req.Header) > headersMax {
		return bad("headers_too_many")
	}
	total := 0
	for name, value := range req.Header {
		if total += len(name) + len(value); total > headerBytesMax {
			return bad("headers_too_large")
		}
		if !utf8.ValidString(value) || slices.ContainsFunc([]byte(value), control) {
			return bad("header_bytes_not_allowed")
		}
	}
	if len(req.Ambiguous) > 0 {
		return bad("header_repeated")
	}
	return nil
}

func control(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }

// checkSize bounds the body, and refuses one whose declared length is not its
// own: then these are not the bytes that were sent.
func checkSize(req Request, bytesMax int) *refusal {
	tooLarge := &refusal{http.StatusRequestEntityTooLarge, "body_too_large", "body_too_large", nil}
	if len(req.Body) > bytesMax {
		return tooLarge
	}
	if req.BodyError != nil {
		return &refusal{http.StatusBadRequest, "body_malformed", "body_encoding", nil}
	}
	declared, ok := req.Header["content-length"]
	if !ok {
		return nil
	}
	n, err := strconv.ParseUint(declared, 10, 63)
	switch {
	case err != nil || len(declared) > 19:
		return &refusal{http.StatusBadRequest, "headers_invalid", "content_length_malformed", nil}
	case n > uint64(bytesMax): //nolint:gosec // an adapter's maximum is positive
		return tooLarge
	case n != uint64(len(req.Body)):
		return &refusal{http.StatusBadRequest, "headers_invalid", "content_length_mismatch", nil}
	}
	return nil
}

// endpoint finds the configured address. A registry that cannot be read is
// never taken for an unknown endpoint.
func (r *Receiver) endpoint(ctx context.Context, a *provider.Adapter, req Request, now time.Time) (webhook.Endpoint, *refusal) {
	e, ok, err := r.Endpoints.Find(ctx, webhook.EndpointID(req.Endpoint), now)
	switch {
	case err != nil:
		return e, unavailable("registry_unavailable", err)
	case !ok || e.Provider != a.Name:
		return e, &refusal404
	}
	return e, nil
}

// verify checks the MAC against the trusted versions, then the freshness.
func (r *Receiver) verify(ctx context.Context, a *provider.Adapter, e webhook.Endpoint, req Request, meta signature.Metadata, now time.Time) (webhook.KeyVersion, *refusal) {
	signed := signature.Request{Method: req.Method, Header: req.Header, Body: req.Body}
	keys, missing := r.trustedKeys(ctx, a, e, now)
	version, err := matchKeys(a, signed, meta, keys)
	if err != nil && mismatched(err) {
		version, err = r.matchOthers(ctx, a, e, signed, meta, missing, err)
	}
	if err != nil {
		if why, ok := err.(*refusal); ok { //nolint:errorlint // a refusal is never wrapped
			return "", why
		}
		return "", refuseSignature(err)
	}
	if err := a.Scheme.Fresh(meta, now); err != nil {
		return "", refuseSignature(err)
	}
	return version, nil
}
