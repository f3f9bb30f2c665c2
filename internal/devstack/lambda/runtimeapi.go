package lambda

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// runtimeAPI is the Runtime API of one sandbox, and of the Extensions API the two
// calls that aws-lambda-go makes for a SIGTERM hook.
func (s *sandbox) runtimeAPI() http.Handler {
	const runtime = "/2018-06-01/runtime"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+runtime+"/invocation/next", s.next)
	mux.HandleFunc("POST "+runtime+"/invocation/{id}/response", s.response)
	mux.HandleFunc("POST "+runtime+"/invocation/{id}/error", s.invocationError)
	mux.HandleFunc("POST "+runtime+"/init/error", s.reportInitError)
	mux.HandleFunc("POST /2020-01-01/extension/register", s.registerExtension)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", s.extensionNext)
	return mux
}

func (s *sandbox) next(w http.ResponseWriter, r *http.Request) {
	work, ok := s.pool.ready(s)
	if !ok {
		runtimeError(w, http.StatusForbidden, "InvalidStateTransition", "this sandbox may not ask for work now")
		return
	}
	select {
	case inv := <-work:
		if r.Context().Err() != nil {
			s.pool.hungUp(s)
		} else if s.pool.take(s) {
			s.send(w, inv)
		}
	case <-s.done:
	case <-r.Context().Done():
		s.pool.hungUp(s)
	}
}

func (s *sandbox) send(w http.ResponseWriter, inv *invocation) {
	cfg := s.pool.cfg
	now := cfg.Now()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(inv.payload)))
	h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(now.Add(cfg.Timeout).UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", cfg.ARN)
	h.Set("Lambda-Runtime-Trace-Id", traceID(now.Unix(), inv.id))
	_, _ = w.Write(inv.payload) // a runtime that hung up is about to exit, and reap answers
}

// traceID has the form of an X-Ray header: 8 hexadecimal digits of time, 24 of
// identity; not sampled, as nobody collects.
func traceID(seconds int64, requestID string) string {
	hex := (strings.ReplaceAll(requestID, "-", "") + strings.Repeat("0", 24))[:24]
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", seconds, hex, hex[:16])
}

func (s *sandbox) response(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, PayloadBytesMax+1))
	if err != nil {
		runtimeError(w, http.StatusBadRequest, "InvalidRequest", "the response was cut off")
		return
	}
	res := result{response: body}
	tooLarge := len(body) > PayloadBytesMax
	if tooLarge {
		res = responseTooLarge().result()
	} else if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		res = failure{Type: kind, Message: "the function failed while it wrote its response"}.result()
	}
	switch {
	case !s.pool.finish(s, r.PathValue("id"), res):
		runtimeError(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
	case tooLarge:
		runtimeError(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Exceeded maximum allowed payload size (6291556 bytes).")
	default:
		accepted(w)
	}
}

func (s *sandbox) invocationError(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, PayloadBytesMax))
	if err != nil {
		runtimeError(w, http.StatusBadRequest, "InvalidRequest", "the error was cut off")
		return
	}
	if !s.pool.finish(s, r.PathValue("id"), result{response: body, functionError: Unhandled}) {
		runtimeError(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
		return
	}
	accepted(w)
}

func (s *sandbox) reportInitError(w http.ResponseWriter, r *http.Request) {
	f := failure{Type: r.Header.Get("Lambda-Runtime-Function-Error-Type"), Message: "init failed"}
	if err := json.NewDecoder(io.LimitReader(r.Body, PayloadBytesMax)).Decode(&f); err != nil {
		f.Message = "init failed with an error document that is not JSON"
	}
	s.pool.mu.Lock()
	starting := s.state == stateStarting
	if starting {
		s.initError = &f
	}
	s.pool.mu.Unlock()
	if !starting {
		runtimeError(w, http.StatusForbidden, "InvalidStateTransition", "this sandbox is initialised")
		return
	}
	accepted(w)
	_ = http.NewResponseController(w).Flush() // the runtime may read its answer before it dies
	s.pool.mu.Lock()
	s.signalKill()
	s.pool.mu.Unlock()
}

func (s *sandbox) registerExtension(w http.ResponseWriter, _ *http.Request) {
	s.pool.mu.Lock()
	s.extension = true
	s.pool.mu.Unlock()
	w.Header().Set("Lambda-Extension-Identifier", s.pool.cfg.NewID())
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"functionName":%q,"functionVersion":"$LATEST","handler":%q}`, s.pool.cfg.Name, s.pool.cfg.Handler)
}

// extensionNext never answers: we send no extension events, and an extension that
// registered for none only says with this call that it is ready.
func (s *sandbox) extensionNext(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-s.done:
	case <-r.Context().Done():
	}
}

func accepted(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

func runtimeError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errorMessage":%q,"errorType":%q}`, message, kind)
}
