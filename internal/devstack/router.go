package devstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"

	"dakghar/internal/devstack/fault"
	"dakghar/internal/devstack/lambda"
)

// router is what listens at AWSAddr: our own control calls, Lambda's Invoke, and
// the services, told apart as the SDK tells them: by X-Amz-Target, and S3 by its
// having none.
func (s *Stack) router() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_dakghar/stack", s.whenLive(s.describeStack))
	mux.HandleFunc("GET /_dakghar/functions", s.whenLive(s.listFunctions))
	mux.HandleFunc("POST /_dakghar/kill", s.whenLive(s.killSandboxes))
	mux.HandleFunc("GET /_dakghar/usage", s.usage)
	mux.HandleFunc("DELETE /_dakghar/usage", s.resetUsage)
	mux.Handle(fault.Path, s.services.Control())
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", s.whenLive(s.invoke))
	aws := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The mux cleans paths and redirects, which an object key of S3 must not meet.
		if strings.HasPrefix(r.URL.Path, "/2015-03-31/") {
			mux.ServeHTTP(w, r)
			return
		}
		s.services.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := s.guard.Load()
		switch {
		case strings.HasPrefix(r.URL.Path, "/_dakghar/"):
			mux.ServeHTTP(w, r)
		case g == nil: // there is no function yet
			aws.ServeHTTP(w, r)
		default:
			g.Before(aws).ServeHTTP(w, r)
		}
	})
}

// invoke is Lambda's Invoke, so that `aws lambda invoke` works on the local stack.
func (s *Stack) invoke(l *live, w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	f, ok := l.functions[name[strings.LastIndexByte(name, ':')+1:]]
	if !ok {
		lambdaError(w, http.StatusNotFound, "ResourceNotFoundException", "no such function")
		return
	}
	payload, err := io.ReadAll(io.LimitReader(r.Body, lambda.PayloadBytesMax+1))
	if err != nil {
		lambdaError(w, http.StatusBadRequest, "InvalidRequestContentException", "the payload was cut off")
		return
	}
	w.Header().Set("X-Amz-Executed-Version", "$LATEST")
	switch r.Header.Get("X-Amz-Invocation-Type") {
	case "Event":
		s.running.Go(func() { _, _, _ = f.Invoke(context.WithoutCancel(r.Context()), payload) }) // its log is the answer
		w.WriteHeader(http.StatusAccepted)
	case "DryRun":
		w.WriteHeader(http.StatusNoContent)
	default:
		s.invokeAndWait(w, r, f, payload)
	}
}

func (s *Stack) invokeAndWait(w http.ResponseWriter, r *http.Request, f lambda.Function, payload []byte) {
	response, functionError, err := f.Invoke(r.Context(), payload)
	var throttled *lambda.ThrottledError
	switch {
	case errors.As(err, &throttled):
		lambdaError(w, http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")
		return
	case errors.Is(err, lambda.ErrPayloadTooLarge):
		lambdaError(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", err.Error())
		return
	case err != nil:
		lambdaError(w, http.StatusInternalServerError, "ServiceException", err.Error())
		return
	}
	if functionError != "" {
		w.Header().Set("X-Amz-Function-Error", functionError)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(response) // the client may be gone
}

func lambdaError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("X-Amzn-ErrorType", kind)
	writeJSON(w, status, map[string]string{"Type": "User", "message": message})
}

// writeJSON answers with the checksum that DynamoDB's clients look for, as they
// may be the ones to get our answer.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("devstack: encoding an answer: %v", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amz-Crc32", checksum(body))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

func checksum(body []byte) string { return strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10) }
