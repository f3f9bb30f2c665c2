package frontdoor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/frontdoor"
	"dakghar/internal/devstack/lambda"
)

// stage is a front door on a real listener, with a function that keeps what it got.
type stage struct {
	url   string
	addr  string
	got   events.APIGatewayV2HTTPRequest
	calls int

	response, functionError string
	err                     error
	now                     time.Time
}

func newStage(t *testing.T, change func(*frontdoor.Config)) *stage {
	t.Helper()
	s := &stage{response: `{"statusCode":200}`, now: time.Date(2026, 11, 30, 12, 0, 0, 123e6, time.UTC)}
	invoke := func(_ context.Context, payload []byte) ([]byte, string, error) {
		s.calls++
		s.got = events.APIGatewayV2HTTPRequest{}
		strict := json.NewDecoder(bytes.NewReader(payload))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&s.got); err != nil {
			t.Errorf("not the library's event: %v", err)
		}
		return []byte(s.response), s.functionError, s.err
	}
	cfg := frontdoor.Config{
		Routes: []frontdoor.Route{
			{Key: "POST /in/stripe/{endpoint_id}", Invoke: invoke},
			{Key: "ANY /in/stripe/static", Invoke: invoke},
			{Key: "GET /files/{path+}", Invoke: invoke},
		},
		Now:   func() time.Time { return s.now },
		NewID: func() string { return "00000000-0000-4000-8000-000000000001" },
	}
	if change != nil {
		change(&cfg)
	}
	door, err := frontdoor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(door)
	t.Cleanup(server.Close)
	s.url, s.addr = server.URL, server.Listener.Addr().String()
	return s
}

// raw sends a request byte for byte.
func (s *stage) raw(t *testing.T, request string) (status int, header http.Header, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(read)
}

func (s *stage) post(t *testing.T, contentType, body string) (status int, answer string) {
	t.Helper()
	head := fmt.Sprintf("POST /in/stripe/ep_1 HTTP/1.1\r\nHost: local\r\nContent-Length: %d\r\n", len(body))
	if contentType != "" {
		head += "Content-Type: " + contentType + "\r\n"
	}
	status, _, answer = s.raw(t, head+"\r\n"+body)
	return status, answer
}

func TestARequestBecomesAnEventOfFormatTwo(t *testing.T) {
	s := newStage(t, nil)
	status, header, _ := s.raw(t, "POST /in/stripe/ep%5F1?a=1&b=2&a=3 HTTP/1.1\r\n"+
		"Host: hooks.example.com:8080\r\nUser-Agent: Stripe/1.0\r\nSTRIPE-signature: t=1,v1=aa\r\nStripe-Signature: t=2,v1=bb\r\n"+
		"Cookie: one=1; two=2\r\nCookie: three=3\r\nX-Forwarded-For: 203.0.113.7\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 8\r\n\r\n{\"a\": 1}")
	want := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /in/stripe/{endpoint_id}", RawPath: "/in/stripe/ep_1", RawQueryString: "a=1&b=2&a=3",
		Cookies: []string{"one=1", "two=2", "three=3"},
		Headers: map[string]string{
			"host": "hooks.example.com:8080", "user-agent": "Stripe/1.0", "stripe-signature": "t=1,v1=aa,t=2,v1=bb",
			"content-type": "application/json; charset=utf-8", "content-length": "8",
			"x-forwarded-for": "203.0.113.7, 127.0.0.1", "x-forwarded-proto": "https", "x-forwarded-port": "443",
			"x-amzn-trace-id": "Root=1-6b0d6540-000000000000400080000000",
		},
		QueryStringParameters: map[string]string{"a": "1,3", "b": "2"},
		PathParameters:        map[string]string{"endpoint_id": "ep_1"},
		Body:                  `{"a": 1}`,
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: "POST /in/stripe/{endpoint_id}", AccountID: "000000000000", Stage: "$default", RequestID: "00000000-0000-4000-8000-000000000001",
			APIID: "local", DomainName: "hooks.example.com:8080", DomainPrefix: "hooks", Time: "30/Nov/2026:12:00:00 +0000", TimeEpoch: 1796040000123,
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: "POST", Path: "/in/stripe/ep_1", Protocol: "HTTP/1.1", SourceIP: "127.0.0.1", UserAgent: "Stripe/1.0"},
		},
	}
	if diff := cmp.Diff(want, s.got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if status != 200 || header.Get("Apigw-Requestid") != "00000000-0000-4000-8000-000000000001" {
		t.Errorf("status %d, headers %v", status, header)
	}
}

// Proves the ground V5 stands on: what stays text, what becomes base64, and what
// is no longer the sender's bytes.
func TestABodyIsTextOnlyForTheGatewaysTextTypes(t *testing.T) {
	const body = "{\"name\": \"डाकघर\", \"x\": \"<&>\\u0000\"}\r\n"
	text := func(s string) events.APIGatewayV2HTTPRequest { return events.APIGatewayV2HTTPRequest{Body: s} }
	encoded := func(s string) events.APIGatewayV2HTTPRequest {
		return events.APIGatewayV2HTTPRequest{Body: base64.StdEncoding.EncodeToString([]byte(s)), IsBase64Encoded: true}
	}
	for _, test := range []struct {
		contentType, body string
		want              events.APIGatewayV2HTTPRequest
	}{
		{"application/json", body, text(body)},
		{"Application/JSON; charset=utf-8", body, text(body)},
		{"application/json; broken", body, text(body)},
		{"application/xml", body, text(body)},
		{"application/javascript", body, text(body)},
		{"text/plain", body, text(body)},
		{"text/anything", body, text(body)},
		{"", body, encoded(body)},
		{"application/x-www-form-urlencoded", "a=1&b=2", encoded("a=1&b=2")},
		{"application/problem+json", body, encoded(body)},
		{"application/cloudevents+json", body, encoded(body)},
		{"application/octet-stream", "\x00\xff", encoded("\x00\xff")},
		{"not a type at all", body, encoded(body)},
		{"application/json\r\nContent-Type: text/plain", body, encoded(body)},
		{"application/json", "a\xffb\xc3\x28", text("a\uFFFDb\uFFFD(")},
		{"application/json", "", text("")},
	} {
		s := newStage(t, nil)
		if status, _ := s.post(t, test.contentType, test.body); status != 200 {
			t.Errorf("%q: status %d", test.contentType, status)
		}
		got := events.APIGatewayV2HTTPRequest{Body: s.got.Body, IsBase64Encoded: s.got.IsBase64Encoded}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q %q (-want +got):\n%s", test.contentType, test.body, diff)
		}
	}
}

func TestRoutesAreChosenAsByTheGateway(t *testing.T) {
	s := newStage(t, nil)
	for request, want := range map[string]string{
		"POST /in/stripe/ep_1":        "POST /in/stripe/{endpoint_id}",
		"POST /in/stripe/static":      "ANY /in/stripe/static",
		"GET /in/stripe/static":       "ANY /in/stripe/static",
		"GET /files/a/b%2Fc":          "GET /files/{path+}",
		"POST /in/stripe/a%2Fb":       "POST /in/stripe/{endpoint_id}",
		"GET /in/stripe/ep_1":         "",
		"POST /in/stripe/":            "",
		"POST /in/stripe":             "",
		"POST /in/stripe/ep_1/more":   "",
		"POST /in/stripe/ep_1/":       "",
		"POST /IN/stripe/ep_1":        "",
		"POST /in//stripe/ep_1":       "",
		"POST /in/stripe/../github/x": "",
		"POST /":                      "",
		"GET /files/":                 "",
	} {
		s.got.RouteKey = ""
		status, _, body := s.raw(t, request+" HTTP/1.1\r\nHost: local\r\nContent-Length: 0\r\n\r\n")
		if s.got.RouteKey != want {
			t.Errorf("%s: route %q, want %q", request, s.got.RouteKey, want)
		}
		if want == "" && (status != 404 || body != `{"message":"Not Found"}`) {
			t.Errorf("%s: %d %s", request, status, body)
		}
	}
	if _, err := frontdoor.New(frontdoor.Config{Routes: []frontdoor.Route{{Key: "/in"}}, Now: time.Now, NewID: func() string { return "" }}); err == nil {
		t.Error("no error for a route key without a method")
	}
}

func TestADefaultRouteTakesWhatNoOtherDoes(t *testing.T) {
	s := newStage(t, func(c *frontdoor.Config) {
		c.Routes = append([]frontdoor.Route{{Key: "$default", Invoke: c.Routes[0].Invoke}}, c.Routes...)
	})
	for request, want := range map[string]string{"POST /in/stripe/ep_1": "POST /in/stripe/{endpoint_id}", "PUT /x/y": "$default"} {
		s.raw(t, request+" HTTP/1.1\r\nHost: local\r\nContent-Length: 0\r\n\r\n")
		if s.got.RouteKey != want {
			t.Errorf("%s: route %q, want %q", request, s.got.RouteKey, want)
		}
	}
}

func TestTheGatewaysLimitsAreAnsweredByTheGateway(t *testing.T) {
	s := newStage(t, nil)
	const line = "POST /in/stripe/ep_1 HTTP/1.1"
	fill := func(n int) string { // a request whose line and values have n bytes
		return line + "\r\nHost: local\r\nContent-Length: 0\r\nX-Fill: " + strings.Repeat("x", n-len(line)-len("local")-len("0")) + "\r\n\r\n"
	}
	if status, _, _ := s.raw(t, fill(frontdoor.HeaderBytesMax)); status != 200 {
		t.Errorf("headers at the limit: %d", status)
	}
	if status, _, _ := s.raw(t, fill(frontdoor.HeaderBytesMax+1)); status != 431 || s.calls != 1 {
		t.Errorf("headers over the limit: %d after %d calls", status, s.calls)
	}
	big := strings.Repeat("x", frontdoor.BodyBytesMax+1)
	for name, body := range map[string]io.Reader{
		"10 MB and a byte":            strings.NewReader(big),
		"10 MB and a byte, chunked":   struct{ io.Reader }{strings.NewReader(big)},
		"over Lambda's 6 MB as event": strings.NewReader(big[:lambda.PayloadBytesMax]),
		"4.8 MB, over 6 MB as base64": strings.NewReader(big[:lambda.PayloadBytesMax/4*3]),
	} {
		res, err := http.Post(s.url+"/in/stripe/ep_1", "application/octet-stream", body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		res.Body.Close()
		if res.StatusCode != 413 || s.calls != 1 {
			t.Errorf("%s: %d after %d calls", name, res.StatusCode, s.calls)
		}
	}
	res, err := http.Post(s.url+"/in/stripe/ep_1", "application/json", strings.NewReader(big[:1<<20]))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 || len(s.got.Body) != 1<<20 {
		t.Errorf("1 MiB: %d, %d bytes", res.StatusCode, len(s.got.Body))
	}
}

func TestABodyShorterThanItsLengthIsRefused(t *testing.T) {
	s := newStage(t, nil)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /in/stripe/ep_1 HTTP/1.1\r\nHost: local\r\nContent-Length: 10\r\n\r\nshort"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 400 || s.calls != 0 {
		t.Errorf("status %d after %d calls", res.StatusCode, s.calls)
	}
}

func TestAThrottleIsATokenBucketOfItsRoute(t *testing.T) {
	s := newStage(t, func(c *frontdoor.Config) { c.Routes[0].RatePerSecond, c.Routes[0].Burst = 2, 3 })
	statuses := func(n int) (list []int) {
		for range n {
			status, _ := s.post(t, "application/json", "{}")
			list = append(list, status)
		}
		return list
	}
	if diff := cmp.Diff([]int{200, 200, 200, 429}, statuses(4)); diff != "" {
		t.Errorf("burst (-want +got):\n%s", diff)
	}
	if status, _, _ := s.raw(t, "GET /in/stripe/static HTTP/1.1\r\nHost: local\r\n\r\n"); status != 200 {
		t.Errorf("another route: %d", status)
	}
	s.now = s.now.Add(time.Second)
	if diff := cmp.Diff([]int{200, 200, 429}, statuses(3)); diff != "" {
		t.Errorf("after a second (-want +got):\n%s", diff)
	}
	if _, body := s.post(t, "application/json", "{}"); body != `{"message":"Too Many Requests"}` {
		t.Errorf("body %s", body)
	}
}

type reply struct {
	Status int
	Header http.Header
	Body   string
}

func TestAnswersOfTheFunctionAndOfTheGateway(t *testing.T) {
	internal := reply{500, http.Header{"Content-Type": {"application/json"}}, `{"message":"Internal Server Error"}`}
	unavailable := reply{503, http.Header{"Content-Type": {"application/json"}}, `{"message":"Service Unavailable"}`}
	for name, test := range map[string]struct {
		response, functionError string
		err                     error
		want                    reply
	}{
		"status, headers, cookies": {
			response: `{"statusCode":202,"headers":{"content-type":"application/json","retry-after":5,"x-new":true},"multiValueHeaders":{"x-ignored":["1"]},"cookies":["a=1","b=2"],"body":"{\"ok\":true}"}`,
			want:     reply{202, http.Header{"Content-Type": {"application/json"}, "Retry-After": {"5"}, "X-New": {"true"}, "Set-Cookie": {"a=1", "b=2"}}, `{"ok":true}`},
		},
		"base64 body":             {response: `{"statusCode":200,"isBase64Encoded":true,"body":"AP8=","headers":{"Content-Type":"image/png"}}`, want: reply{200, http.Header{"Content-Type": {"image/png"}}, "\x00\xff"}},
		"body without a type":     {response: `{"statusCode":200,"body":"hi"}`, want: reply{200, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, "hi"}},
		"no body":                 {response: `{"statusCode":204}`, want: reply{204, http.Header{}, ""}},
		"object without a status": {response: `{"ok":true}`, want: reply{200, http.Header{"Content-Type": {"application/json"}}, `{"ok":true}`}},
		"a text":                  {response: `"hello"`, want: reply{200, http.Header{"Content-Type": {"application/json"}}, "hello"}},
		"not JSON":                {response: `hello`, want: internal},
		"impossible status":       {response: `{"statusCode":99}`, want: internal},
		"status of another type":  {response: `{"statusCode":"200"}`, want: internal},
		"header of another type":  {response: `{"statusCode":200,"headers":{"a":{}}}`, want: internal},
		"broken base64":           {response: `{"statusCode":200,"isBase64Encoded":true,"body":"!"}`, want: internal},
		"function error":          {response: `{"errorMessage":"secret"}`, functionError: "Unhandled", want: internal},
		"throttled":               {err: &lambda.ThrottledError{Function: "Ingress", Reserved: 1}, want: unavailable},
		"cannot be called":        {err: errors.New("down"), want: unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			s.response, s.functionError, s.err = test.response, test.functionError, test.err
			status, header, body := s.raw(t, "POST /in/stripe/ep_1 HTTP/1.1\r\nHost: local\r\nContent-Length: 0\r\n\r\n")
			for _, own := range []string{"Date", "Content-Length", "Apigw-Requestid"} {
				header.Del(own)
			}
			if diff := cmp.Diff(test.want, reply{status, header, body}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheGatewayGivesUpAtItsTimeout(t *testing.T) {
	s := newStage(t, func(c *frontdoor.Config) {
		c.Routes[0].Timeout = time.Millisecond
		c.Routes[0].Invoke = func(ctx context.Context, _ []byte) ([]byte, string, error) {
			<-ctx.Done()
			return nil, "", ctx.Err()
		}
	})
	if status, body := s.post(t, "application/json", "{}"); status != 503 || body != `{"message":"Service Unavailable"}` {
		t.Errorf("%d %s", status, body)
	}
}
