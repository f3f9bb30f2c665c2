// Package lambdaedge translates Lambda's event shapes into the stages' own
// words and back: HTTP API payload 2.0, DynamoDB stream batches, SQS batches
// and schedules. It decides nothing; it also writes the one log line per record,
// because only an edge logs.
package lambdaedge

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"dakghar/internal/fault"
	"dakghar/internal/ingress"
	"dakghar/internal/signature"
	"dakghar/internal/telemetry"
	"dakghar/internal/webhook"
)

// HTTP serves HTTP API events (payload format 2.0) with a receiver. It decodes
// the event itself, in one pass, and so implements lambda.Handler.
type HTTP struct {
	Receiver *ingress.Receiver
	Log      *telemetry.Log
	Now      func() time.Time
	// KeyAge reports the age of the oldest cached secret.
	KeyAge func() time.Duration
}

// httpEvent is the part of the event that is used.
type httpEvent struct {
	RouteKey        string            `json:"routeKey"`
	RawPath         string            `json:"rawPath"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
	RequestContext  struct {
		RequestID string `json:"requestId"`
		HTTP      struct {
			Method   string `json:"method"`
			Path     string `json:"path"`
			SourceIP string `json:"sourceIp"`
		} `json:"http"`
	} `json:"requestContext"`
}

type httpAnswer struct {
	StatusCode int               `json:"statusCode"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
}

// Invoke answers one request. A panic is answered 503: the provider comes again.
func (h *HTTP) Invoke(ctx context.Context, payload []byte) (answer []byte, err error) {
	began := h.Now()
	line := &telemetry.Line{}
	defer func() {
		if v := recover(); v != nil {
			h.Log.Write(line.Str("decision", "panic").Err(fmt.Errorf("a %T", v)).Count("panic", 1))
			answer, err = encodeAnswer(ingress.Answer{Status: http.StatusServiceUnavailable})
		}
	}()
	var event httpEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		h.Log.Write(line.Str("decision", "refused_event").Count("refused_event", 1))
		return encodeAnswer(ingress.Answer{Status: http.StatusBadRequest})
	}
	report := h.Receiver.Receive(ctx, requestOf(&event))
	h.write(line, event.RequestContext.RequestID, report, h.Now().Sub(began))
	return encodeAnswer(report.Answer)
}

func (h *HTTP) write(line *telemetry.Line, requestID string, r ingress.Report, took time.Duration) {
	line.Provider = string(r.Provider)
	line.Str("request_id", requestID).Str("decision", string(r.Decision)).Str("cause", r.Cause).
		Str("endpoint_id", string(r.Endpoint)).Str("inbox_id", string(r.InboxID)).Str("event_type", string(r.Type)).
		Str("matched_secret_version", string(r.Matched)).Str("source", r.Source).Err(r.Err).
		Count(counted(r), 1)
	if r.LimiterErr != nil {
		line.Str("limiter_error", fault.CodeOf(r.LimiterErr)).Count("limiter_degraded", 1)
	}
	sealed(line, r.Cause)
	if acknowledges(r.Answer.Status) {
		line.Millis("ack_ms", took)
	}
	if r.Commit > 0 {
		line.Millis("commit_ms", r.Commit)
	}
	if age := h.KeyAge(); age > 0 {
		line.Seconds("secret_cache_age_s", age.Seconds())
	}
	h.Log.Write(line)
}

// acknowledges tells an answer that a provider waits for from a refusal, whose
// quickness would make slow acknowledgements look better.
func acknowledges(status int) bool { return status < 400 || status == http.StatusServiceUnavailable }

// counted names the metric of a request. Refused signatures are answered alike
// and counted apart: a wrong key, a stale time and a retired key ask for
// different things of an operator, and so does an address that is not on the
// endpoint's list. So do the two limits.
func counted(r ingress.Report) string {
	if r.Answer.Status == http.StatusTooManyRequests {
		return r.Cause
	}
	if strings.HasPrefix(r.Cause, "signature_") || strings.HasPrefix(r.Cause, "source_") {
		return "refused_" + r.Cause
	}
	return string(r.Decision)
}

func requestOf(e *httpEvent) ingress.Request {
	req := ingress.Request{Method: e.RequestContext.HTTP.Method, Source: e.RequestContext.HTTP.SourceIP}
	req.Provider, req.Endpoint = addressOf(e)
	req.Header, req.Ambiguous = canonical(e.Headers)
	req.Body = []byte(e.Body)
	if e.IsBase64Encoded {
		// The flag decides, never the content type. Strict: no line breaks, no
		// loose bits, so these are the bytes that were sent, or none.
		req.Body, req.BodyError = base64.StdEncoding.Strict().DecodeString(e.Body)
		if strings.ContainsAny(e.Body, "\r\n") { // which the decoder would pass over
			req.BodyError = base64.CorruptInputError(0)
		}
	}
	return req
}

// addressOf reads /in/{provider}/{endpoint_id} from the end of the path, which
// may begin with a stage or a custom domain's mapping. The gateway decodes
// escapes in a path, so a slash may have come as one: the provider must be that
// of the route, whose throttle the request passed.
func addressOf(e *httpEvent) (webhook.Provider, string) {
	path := e.RawPath
	if path == "" {
		path = e.RequestContext.HTTP.Path
	}
	parts := strings.Split(path, "/")
	n := len(parts)
	if n < 3 || parts[n-3] != "in" {
		return "", ""
	}
	if _, route, ok := strings.Cut(e.RouteKey, "/in/"); ok && !strings.HasPrefix(route, parts[n-2]+"/") {
		return "", ""
	}
	return webhook.Provider(parts[n-2]), parts[n-1]
}

// canonical lower-cases header names. API Gateway does so already; `sam local`
// does not. Two spellings of one name are ambiguous and are listed.
func canonical(headers map[string]string) (signature.Header, []string) {
	h := make(signature.Header, len(headers))
	var ambiguous []string
	for name, value := range headers {
		lower := strings.ToLower(name)
		if _, twice := h[lower]; twice {
			ambiguous = append(ambiguous, lower)
		}
		h[lower] = value
	}
	return h, ambiguous
}

func encodeAnswer(a ingress.Answer) ([]byte, error) {
	headers := map[string]string{"cache-control": "no-store"}
	for name, value := range a.Header {
		headers[name] = value
	}
	if a.ContentType != "" {
		headers["content-type"] = a.ContentType
	}
	return json.Marshal(httpAnswer{StatusCode: a.Status, Headers: headers, Body: string(a.Body)})
}
