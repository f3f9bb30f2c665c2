package frontdoor

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Route sends requests of one route key to one function.
type Route struct {
	Key    string // "POST /in/stripe/{endpoint_id}", "ANY /x", "GET /y/{proxy+}" or "$default"
	Invoke Invoke

	// Timeout of the integration; zero means IntegrationTimeout, and none is longer.
	Timeout time.Duration

	// Throttle of this route; zero rate means none.
	RatePerSecond float64
	Burst         int
}

// route is a Route made ready to match.
type route struct {
	Route
	method   string // "" any
	segments []string
	bucket   *bucket
}

// weight orders routes as the gateway does: a full match before a greedy one,
// static segments before variables, a method before ANY, $default last.
func (r *route) weight() int {
	w := 0
	for _, s := range r.segments {
		switch {
		case isGreedy(s):
			w += 1
		case isVariable(s):
			w += 4
		default:
			w += 8
		}
	}
	if r.method != "" {
		w++
	}
	return w
}

func isVariable(s string) bool { return strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") }
func isGreedy(s string) bool   { return strings.HasPrefix(s, "{") && strings.HasSuffix(s, "+}") }

func compileRoutes(routes []Route, now func() time.Time) ([]*route, error) {
	var list []*route
	for _, r := range routes {
		c := &route{Route: r}
		if r.Timeout <= 0 || r.Timeout > IntegrationTimeout {
			c.Timeout = IntegrationTimeout
		}
		if r.Key != "$default" {
			method, path, ok := strings.Cut(r.Key, " ")
			if !ok || !strings.HasPrefix(path, "/") {
				return nil, fmt.Errorf("front door: route key %q is not METHOD /path or $default", r.Key)
			}
			if method != "ANY" {
				c.method = method
			}
			c.segments = strings.Split(path[1:], "/")
		}
		if r.RatePerSecond > 0 {
			c.bucket = newBucket(r.RatePerSecond, r.Burst, now)
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b *route) int { return cmp.Compare(b.weight(), a.weight()) })
	return list, nil
}

// match finds the route of a request and the values of its path variables.
func match(routes []*route, method, escapedPath string) (*route, map[string]string) {
	for _, r := range routes {
		if r.method != "" && r.method != method {
			continue
		}
		if params, ok := r.matchPath(escapedPath); ok {
			return r, params
		}
	}
	return nil, nil
}

func (r *route) matchPath(escapedPath string) (map[string]string, bool) {
	if r.segments == nil {
		return nil, true
	}
	parts := strings.Split(strings.TrimPrefix(escapedPath, "/"), "/")
	params := map[string]string{}
	for i, want := range r.segments {
		if i >= len(parts) || parts[i] == "" && want != "" {
			return nil, false
		}
		value := parts[i]
		if isGreedy(want) {
			value = strings.Join(parts[i:], "/")
		}
		decoded, err := url.PathUnescape(value)
		if err != nil {
			return nil, false
		}
		switch {
		case isGreedy(want):
			params[want[1:len(want)-2]] = decoded
			return params, true
		case isVariable(want):
			params[want[1:len(want)-1]] = decoded
		case want != decoded:
			return nil, false
		}
	}
	return params, len(parts) == len(r.segments)
}
