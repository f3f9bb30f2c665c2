// Package awsjson answers the AWS JSON 1.0 and 1.1 protocols for the embedded
// services: it reads the operation from X-Amz-Target, decodes the body, and
// writes the answer or the error in the form the SDKs read.
//
// Two rules hold for every service behind it. What is not implemented is refused
// by name: an unknown operation and an unknown request member are both errors,
// so that nothing is accepted and then ignored. And an error never repeats a
// value from the request, only names and limits, because requests carry secrets.
//
// It checks no signature and no credentials: it is for one machine.
package awsjson

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RequestBytesMax bounds one request body. An SQS batch of 1 MiB can grow six
// times when every character is escaped.
const RequestBytesMax = 8 << 20

// Operation answers one call. The body is the whole request body; the result is
// marshalled as the answer, nil meaning an empty answer.
type Operation func(r *http.Request, body []byte) (any, error)

// Service is one AWS service: an [http.Handler] that dispatches by operation.
type Service struct {
	// Target is what stands before the dot in X-Amz-Target.
	Target string
	// Version is "1.0" or "1.1".
	Version string
	// MessageKey is the member of an error that holds its text, "message" if empty.
	MessageKey string
	// NewID makes the request ids of answers.
	NewID func() string
	// Operations holds every call that is implemented.
	Operations map[string]Operation
}

// ServeHTTP answers one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amzn-RequestId", s.NewID())
	out, err := s.call(w, r)
	if err != nil {
		s.writeError(w, err)
		return
	}
	body, err := encode(out)
	if err != nil {
		s.writeError(w, fmt.Errorf("encode the answer: %w", err))
		return
	}
	s.write(w, http.StatusOK, body)
}

func (s *Service) call(w http.ResponseWriter, r *http.Request) (any, error) {
	if r.Method != http.MethodPost {
		return nil, &Error{Status: http.StatusMethodNotAllowed, Code: "UnknownOperationException", Message: s.Target + " takes POST only"}
	}
	name, operation, err := s.find(r.Header.Get("X-Amz-Target"))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, RequestBytesMax))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &Error{Status: http.StatusRequestEntityTooLarge, Code: "RequestEntityTooLarge", Message: fmt.Sprintf("%s: the body is longer than %d bytes", name, RequestBytesMax)}
	}
	if err != nil {
		return nil, &Error{Code: "SerializationException", Message: name + ": the body could not be read"}
	}
	return operation(r, body)
}

func (s *Service) find(target string) (string, Operation, error) {
	prefix, name, _ := strings.Cut(target, ".")
	if operation, ok := s.Operations[name]; ok && prefix == s.Target {
		return name, operation, nil
	}
	known := strings.Join(slices.Sorted(maps.Keys(s.Operations)), ", ")
	return "", nil, &Error{
		Code:    "UnknownOperationException",
		Message: fmt.Sprintf("the local stack does not implement %q; %s has %s", target, s.Target, known),
	}
}

func (s *Service) writeError(w http.ResponseWriter, err error) {
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{Status: http.StatusInternalServerError, Code: "InternalFailure", Message: err.Error()}
	}
	if known.QueryCode != "" {
		w.Header().Set("X-Amzn-Query-Error", known.QueryCode+";Sender")
	}
	key := s.MessageKey
	if key == "" {
		key = "message"
	}
	// Marshalling two strings cannot fail.
	body, _ := encode(map[string]string{"__type": known.Code, key: known.Message})
	s.write(w, known.status(), body)
}

func (s *Service) write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/x-amz-json-"+s.Version)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// A write fails only when the client has gone: there is nobody to tell.
	_, _ = w.Write(body)
}

// encode writes a value without the trailing newline and without escaping HTML,
// as the services do.
func encode(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Error is a refusal in the service's own words.
type Error struct {
	// Status is the HTTP status, 400 if zero.
	Status int
	// Code names the error, as in the service's model.
	Code string
	// QueryCode is the older name that SQS sends beside Code, if any.
	QueryCode string
	// Message explains the refusal and holds no value from the request.
	Message string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func (e *Error) status() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

// Handle makes an [Operation] from a typed function. The request must have no
// member that In has not.
func Handle[In, Out any](f func(*http.Request, In) (Out, error)) Operation {
	return func(r *http.Request, body []byte) (any, error) {
		var in In
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		out, err := f(r, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// HandleEmpty makes an [Operation] whose answer has no body.
func HandleEmpty[In any](f func(*http.Request, In) error) Operation {
	return func(r *http.Request, body []byte) (any, error) {
		var in In
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		return nil, f(r, in)
	}
}

func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		return &Error{Code: "SerializationException", Message: "there is more than one JSON value in the body"}
	}
	return refusal(err)
}

// refusal turns a decoder's error into one that names the member and never its value.
func refusal(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return &Error{Code: "SerializationException", Message: fmt.Sprintf("member %s must be %s", wrong.Field, wrong.Type)}
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		member := strings.TrimPrefix(err.Error(), "json: unknown field ")
		return &Error{Code: "UnsupportedParameter", QueryCode: "UnsupportedParameter", Message: "the local stack does not implement the parameter " + member}
	default:
		return &Error{Code: "SerializationException", Message: "the body is not a JSON object"}
	}
}

// Time is a timestamp as the JSON protocols write it: seconds since 1970 with
// three decimals.
type Time time.Time

// MarshalJSON writes the seconds.
func (t Time) MarshalJSON() ([]byte, error) {
	ms := time.Time(t).UnixMilli()
	return strconv.AppendFloat(nil, float64(ms)/1000, 'f', 3, 64), nil
}

// RandomUUID makes a random UUID, the default for ids of every kind.
func RandomUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, see its documentation
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
