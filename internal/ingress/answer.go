package ingress

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/signature"
)

// refusal is an answer that accepts nothing. Its code is public and stable; its
// cause is for operators.
type refusal struct {
	status int
	code   string
	cause  string
	err    error
}

var (
	refusal422 = refusal{http.StatusUnprocessableEntity, "event_type_not_allowed", "event_type_not_allowed", nil}
	refusal404 = refusal{http.StatusNotFound, "not_found", "endpoint_unknown", nil}
	// refusalSource is told as a signature that does not verify: whoever has a
	// secret does not learn from it whether the secret is right.
	refusalSource = refusal{http.StatusUnauthorized, CodeUnauthorized, CauseSource, nil}
)

// The codes of refusals for which an edge counts the cause instead.
const (
	CodeUnauthorized = "unauthorized"
	CodeRateLimited  = "rate_limited"
)

// CauseSource is the cause of [CodeUnauthorized] where the endpoint takes no requests
// from the address.
const CauseSource = "source_not_allowed"

// RefusalCodes lists the public codes of refused requests.
func RefusalCodes() []string {
	return append(provider.BodyCodes(),
		"method_not_allowed", "headers_invalid", "unsupported_media_type", "body_too_large", "not_found", "event_type_not_allowed",
		CodeUnauthorized, CodeRateLimited, "unavailable")
}

// LimitCauses lists the causes of [CodeRateLimited].
func LimitCauses() []string { return []string{"source_limited", "endpoint_limited"} }

// retryAfter is what a provider that reads Retry-After is asked to wait after a fault of ours.
const retryAfter = 5 * time.Second

// unavailable is anything that is our fault: a retryable answer.
func unavailable(cause string, err error) *refusal {
	return &refusal{http.StatusServiceUnavailable, "unavailable", cause, err}
}

func refuseSignature(err error) *refusal {
	if r, ok := errors.AsType[*signature.Refusal](err); ok {
		// The same for every failure of a signature: a stranger learns nothing.
		return &refusal{http.StatusUnauthorized, CodeUnauthorized, "signature_" + string(r.Cause), nil}
	}
	// Not the sender's fault: a key of ours cannot be used.
	return unavailable("keys_unusable", err)
}

func refuseBody(err error) *refusal {
	if b, ok := errors.AsType[*provider.BadBody](err); ok {
		return &refusal{http.StatusBadRequest, b.Code, b.Code, nil}
	}
	return &refusal{http.StatusBadRequest, "body_malformed", "body_malformed", err}
}

func (r Report) refuse(why *refusal) Report {
	r.Decision, r.Cause, r.Err = Decision("refused_"+why.code), why.cause, why.err
	r.Answer = Answer{Status: why.status, ContentType: jsonType, Body: encode(map[string]string{"error": why.code})}
	switch why.status {
	case http.StatusServiceUnavailable:
		r.Answer.Header = map[string]string{"retry-after": seconds(retryAfter)}
	case http.StatusMethodNotAllowed:
		r.Answer.Header = map[string]string{"allow": http.MethodPost}
	}
	return r
}

// limit refuses one request too many: sent again after the wait, it is taken.
func (r Report) limit(cause string, wait time.Duration) Report {
	r = r.refuse(&refusal{http.StatusTooManyRequests, CodeRateLimited, cause, nil})
	r.Wait = max(wait, time.Second)
	r.Answer.Header = map[string]string{"retry-after": seconds(r.Wait)}
	return r
}

// seconds writes a time in whole seconds, no shorter than it is.
func seconds(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }

func (r Report) shake(h *provider.Answer) Report {
	r.Decision = Handshake
	r.Answer = Answer{Status: h.Status, ContentType: h.ContentType, Body: h.Body}
	return r
}

func (r Report) succeed(status int, d Decision) Report {
	r.Decision = d
	result := "accepted"
	if d == Duplicate || d == DuplicateVaried {
		result = "duplicate"
	}
	r.Answer = Answer{Status: status, ContentType: jsonType}
	if status != http.StatusNoContent {
		r.Answer.Body = encode(map[string]string{"result": result, "inbox_id": string(r.InboxID)})
	}
	return r
}

func (r Report) fail(err error) Report {
	return r.refuse(unavailable(fault.CodeOf(err), err))
}

const jsonType = "application/json"

func encode(v map[string]string) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("ingress: a map of strings does not encode: " + err.Error())
	}
	return b
}
