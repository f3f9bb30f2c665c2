package frontdoor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"dakghar/internal/devstack/lambda"
)

// The gateway's limits. Source: HTTP API quotas; none of them can be raised.
const (
	HeaderBytesMax     = 10_240     // request line and header values together
	BodyBytesMax       = 10_485_760 // 10 MB
	IntegrationTimeout = 30 * time.Second
)

// Invoke calls a function, as lambda.Function's method does.
type Invoke func(ctx context.Context, payload []byte) (response []byte, functionError string, err error)

// Config describes the front door.
type Config struct {
	Routes []Route
	Now    func() time.Time // for throttles and request times
	NewID  func() string    // request ids
	Logf   func(format string, args ...any)
}

// Server is the front door.
type Server struct {
	cfg    Config
	routes []*route
}

var _ http.Handler = (*Server)(nil)

// New makes a front door.
func New(cfg Config) (*Server, error) {
	if cfg.Now == nil || cfg.NewID == nil {
		return nil, errors.New("front door: Now and NewID must be set")
	}
	if cfg.Logf == nil {
		cfg.Logf = func(string, ...any) {}
	}
	routes, err := compileRoutes(cfg.Routes, cfg.Now)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, routes: routes}, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID, at := s.cfg.NewID(), s.cfg.Now()
	w.Header().Set("Apigw-Requestid", requestID)
	matched, params := match(s.routes, r.Method, r.URL.EscapedPath())
	switch {
	case headerBytes(r) > HeaderBytesMax:
		say(w, http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large")
		return
	case matched == nil:
		say(w, http.StatusNotFound, "Not Found")
		return
	case !matched.bucket.take():
		say(w, http.StatusTooManyRequests, "Too Many Requests")
		return
	}
	body, over, err := readBody(r, BodyBytesMax)
	switch {
	case over:
		say(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	case err != nil:
		say(w, http.StatusBadRequest, "Bad Request")
	default:
		s.integrate(w, r, matched, s.event(r, matched, params, body, requestID, at))
	}
}

// headerBytes counts what the quota counts: the request line and header values.
func headerBytes(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Proto) + len("  ") + len(r.Host)
	for _, values := range r.Header {
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// integrate calls the function and answers. A failed function is 500, one that
// could not be called or that the gateway gave up on is 503, as for HTTP APIs (a
// REST API would say 502 and 504).
func (s *Server) integrate(w http.ResponseWriter, r *http.Request, matched *route, event any) {
	payload, err := json.Marshal(event)
	if err != nil {
		panic(fmt.Sprintf("frontdoor: encoding an event: %v", err))
	}
	if len(payload) > lambda.PayloadBytesMax {
		say(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), matched.Timeout)
	defer cancel()
	response, functionError, err := matched.Invoke(ctx, payload)
	if err != nil {
		if r.Context().Err() == nil {
			s.cfg.Logf("front door: %s: %v", matched.Key, err)
		}
		say(w, http.StatusServiceUnavailable, "Service Unavailable")
		return
	}
	if functionError != "" {
		say(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	status, header, body, err := readAnswer(response)
	if err != nil {
		s.cfg.Logf("front door: %s: %v", matched.Key, err)
		say(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	write(w, status, header, body)
}
