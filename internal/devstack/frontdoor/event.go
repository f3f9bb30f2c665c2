package frontdoor

import (
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// The identity that events carry; the real one has the account's.
const (
	accountID    = "000000000000"
	apiID        = "local"
	defaultStage = "$default"
)

// event makes the payload of format 2.0 of a request.
func (s *Server) event(r *http.Request, matched *route, params map[string]string, body []byte, requestID string, at time.Time) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version:               "2.0",
		RouteKey:              matched.Key,
		RawPath:               r.URL.Path,
		RawQueryString:        r.URL.RawQuery,
		Cookies:               cookies(r.Header),
		Headers:               s.headers(r, requestID, at),
		QueryStringParameters: joinedQuery(r),
		PathParameters:        params,
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: matched.Key, AccountID: accountID, Stage: defaultStage, RequestID: requestID, APIID: apiID,
			DomainName: r.Host, DomainPrefix: strings.Split(r.Host, ".")[0],
			Time: at.UTC().Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: at.UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: sourceIP(r), UserAgent: r.UserAgent(),
			},
		},
	}
	if len(body) > 0 {
		e.Body, e.IsBase64Encoded = encodeBody(body, r.Header.Values("Content-Type"))
	}
	return e
}

// headers lower-cases names and joins what is repeated with a comma, without a
// space; cookies have their own place.
func (s *Server) headers(r *http.Request, requestID string, at time.Time) map[string]string {
	out := map[string]string{"host": r.Host}
	for name, values := range r.Header {
		if name != "Cookie" {
			out[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	forwarded := sourceIP(r)
	if before := out["x-forwarded-for"]; before != "" {
		forwarded = before + ", " + forwarded
	}
	out["x-forwarded-for"] = forwarded
	out["x-forwarded-proto"] = "https"
	out["x-forwarded-port"] = "443"
	if out["x-amzn-trace-id"] == "" {
		hex := (strings.ReplaceAll(requestID, "-", "") + strings.Repeat("0", 24))[:24]
		out["x-amzn-trace-id"] = fmt.Sprintf("Root=1-%08x-%s", at.Unix(), hex)
	}
	return out
}

func cookies(h http.Header) []string {
	var list []string
	for _, line := range h.Values("Cookie") {
		for part := range strings.SplitSeq(line, ";") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

func joinedQuery(r *http.Request) map[string]string {
	query := r.URL.Query()
	if len(query) == 0 {
		return nil
	}
	out := make(map[string]string, len(query))
	for name, values := range query {
		out[name] = strings.Join(values, ",")
	}
	return out
}

func sourceIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// encodeBody gives text content types as text and all others as base64. Bytes
// that are not UTF-8 in a text become U+FFFD, one each.
func encodeBody(body []byte, contentTypes []string) (text string, isBase64 bool) {
	if !isText(contentTypes) {
		return base64.StdEncoding.EncodeToString(body), true
	}
	if utf8.Valid(body) {
		return string(body), false
	}
	return string([]rune(string(body))), false
}

// isText reports whether the gateway passes the body as text. A missing content
// type, two of them, forms, and types such as application/problem+json do not.
func isText(contentTypes []string) bool {
	if len(contentTypes) != 1 {
		return false
	}
	mediaType, _, err := mime.ParseMediaType(contentTypes[0])
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return false
	}
	return strings.HasPrefix(mediaType, "text/") ||
		slices.Contains([]string{"application/json", "application/xml", "application/javascript"}, mediaType)
}
