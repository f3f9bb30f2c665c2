package sim

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"dakghar/internal/devstack/guard"
)

// wire carries requests to the embedded services inside one process: no socket,
// no goroutine, no wait. It routes as the local stack's one address does.
type wire struct {
	targets map[string]http.Handler // by the prefix of X-Amz-Target
	other   http.Handler            // S3
	guard   *guard.Guard            // holds programs to their roles; nil while there is none
}

// Do implements the SDK's HTTP client.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	req.RequestURI = req.URL.RequestURI()
	if req.ContentLength > 0 { // what a connection would have written
		req.Header.Set("Content-Length", strconv.FormatInt(req.ContentLength, 10))
	}
	recorder := &recorder{header: http.Header{}, status: http.StatusOK}
	handler := w.handler(req)
	if w.guard != nil {
		handler = w.guard.Before(handler)
	}
	handler.ServeHTTP(recorder, req)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: recorder.status, Status: http.StatusText(recorder.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: recorder.header, Body: io.NopCloser(&recorder.body), ContentLength: int64(recorder.body.Len()), Request: req,
	}, nil
}

func (w *wire) handler(req *http.Request) http.Handler {
	target, _, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	if h, ok := w.targets[target]; ok {
		return h
	}
	return w.other
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
