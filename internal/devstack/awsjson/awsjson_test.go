package awsjson_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/awsjson"
)

type request struct {
	Name string `json:"Name"`
	Size int    `json:"Size"`
}

type answer struct {
	Text string       `json:"Text"`
	At   awsjson.Time `json:"At"`
}

func service() *awsjson.Service {
	return &awsjson.Service{
		Target:     "Toy",
		Version:    "1.1",
		MessageKey: "Message",
		NewID:      func() string { return "request-1" },
		Operations: map[string]awsjson.Operation{
			"Echo": awsjson.Handle(func(_ *http.Request, in request) (answer, error) {
				return answer{Text: "<" + in.Name + ">", At: awsjson.Time(time.UnixMilli(1_700_000_000_250))}, nil
			}),
			"Forget": awsjson.HandleEmpty(func(*http.Request, request) error { return nil }),
			"Refuse": awsjson.HandleEmpty(func(*http.Request, request) error {
				return &awsjson.Error{Code: "Nope", QueryCode: "Old.Nope", Message: "not today"}
			}),
			"Break": awsjson.HandleEmpty(func(*http.Request, request) error { return errors.New("a wheel came off") }),
		},
	}
}

type wire struct {
	Status     int
	Type       string
	RequestID  string
	QueryError string
	Body       string
}

func call(t *testing.T, method, target, body string) wire {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", target)
	w := httptest.NewRecorder()
	service().ServeHTTP(w, r)
	if got, want := w.Header().Get("Content-Length"), strconv.Itoa(w.Body.Len()); got != want {
		t.Errorf("Content-Length is %q, the body has %s bytes", got, want)
	}
	return wire{
		Status:     w.Code,
		Type:       w.Header().Get("Content-Type"),
		RequestID:  w.Header().Get("X-Amzn-RequestId"),
		QueryError: w.Header().Get("X-Amzn-Query-Error"),
		Body:       w.Body.String(),
	}
}

func TestServiceAnswers(t *testing.T) {
	const json11 = "application/x-amz-json-1.1"
	tests := []struct {
		name                 string
		method, target, body string
		want                 wire
	}{
		{
			name:   "a call is answered without a newline and without HTML escapes",
			method: http.MethodPost, target: "Toy.Echo", body: `{"Name":"a&b","Size":3}`,
			want: wire{200, json11, "request-1", "", `{"Text":"<a&b>","At":1700000000.250}`},
		},
		{
			name:   "an empty answer has length zero",
			method: http.MethodPost, target: "Toy.Forget", body: `{}`,
			want: wire{200, json11, "request-1", "", ""},
		},
		{
			name:   "a refusal carries its type, its text and its older name",
			method: http.MethodPost, target: "Toy.Refuse", body: `{}`,
			want: wire{400, json11, "request-1", "Old.Nope;Sender", `{"Message":"not today","__type":"Nope"}`},
		},
		{
			name:   "an unexpected error is a server fault",
			method: http.MethodPost, target: "Toy.Break", body: `{}`,
			want: wire{500, json11, "request-1", "", `{"Message":"a wheel came off","__type":"InternalFailure"}`},
		},
		{
			name:   "an unknown operation is refused with the list of known ones",
			method: http.MethodPost, target: "Toy.Fly", body: `{}`,
			want: wire{400, json11, "request-1", "", `{"Message":"the local stack does not implement \"Toy.Fly\"; Toy has Break, Echo, Forget, Refuse","__type":"UnknownOperationException"}`},
		},
		{
			name:   "another service's operation is refused",
			method: http.MethodPost, target: "Tool.Echo", body: `{}`,
			want: wire{400, json11, "request-1", "", `{"Message":"the local stack does not implement \"Tool.Echo\"; Toy has Break, Echo, Forget, Refuse","__type":"UnknownOperationException"}`},
		},
		{
			name:   "a member that is not implemented is refused by name",
			method: http.MethodPost, target: "Toy.Echo", body: `{"Wings":2}`,
			want: wire{400, json11, "request-1", "UnsupportedParameter;Sender", `{"Message":"the local stack does not implement the parameter \"Wings\"","__type":"UnsupportedParameter"}`},
		},
		{
			name:   "a member of the wrong type is named without its value",
			method: http.MethodPost, target: "Toy.Echo", body: `{"Size":"hush"}`,
			want: wire{400, json11, "request-1", "", `{"Message":"member Size must be int","__type":"SerializationException"}`},
		},
		{
			name:   "what is not JSON is refused",
			method: http.MethodPost, target: "Toy.Echo", body: `hush`,
			want: wire{400, json11, "request-1", "", `{"Message":"the body is not a JSON object","__type":"SerializationException"}`},
		},
		{
			name:   "two values are refused",
			method: http.MethodPost, target: "Toy.Echo", body: `{} {}`,
			want: wire{400, json11, "request-1", "", `{"Message":"there is more than one JSON value in the body","__type":"SerializationException"}`},
		},
		{
			name:   "only POST is taken",
			method: http.MethodGet, target: "Toy.Echo",
			want: wire{405, json11, "request-1", "", `{"Message":"Toy takes POST only","__type":"UnknownOperationException"}`},
		},
		{
			name:   "a body over the limit is refused",
			method: http.MethodPost, target: "Toy.Echo", body: `{"Name":"` + strings.Repeat("x", awsjson.RequestBytesMax) + `"}`,
			want: wire{413, json11, "request-1", "", `{"Message":"Echo: the body is longer than 8388608 bytes","__type":"RequestEntityTooLarge"}`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := call(t, tt.method, tt.target, tt.body)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}
