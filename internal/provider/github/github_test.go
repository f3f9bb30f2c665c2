package github_test

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/provider/github"
	"dakghar/internal/provider/providertest"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

func suite() providertest.Suite {
	return providertest.Suite{
		Current: "current secret of the suite", Previous: "previous secret of the suite", Other: "other secret of the suite",
		Type: "repository.created",
		NotSecrets: map[string]error{
			"short": signature.ErrSecretTooShort, "It's a Secret to Everybody": signature.ErrSecretPublished, "ghp_0123456789abcdef": signature.ErrSecretForeign,
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, github.Adapter(), suite())
}

func form(t *testing.T, body []byte) (signature.Header, []byte) {
	t.Helper()
	return signature.Header{"content-type": "application/x-www-form-urlencoded"}, []byte("payload=" + url.QueryEscape(string(body)))
}

// A form says the same as the JSON in it, at the door and to the handler; the
// signature is over the form's text.
func TestAFormIsReadLikeItsJSON(t *testing.T) {
	t.Parallel()
	a := github.Adapter()
	for _, eventType := range a.Types() {
		sample, err := a.Sample(provider.SampleOptions{Type: eventType, EventID: "evt_1"})
		if err != nil {
			t.Fatal(err)
		}
		want, err := a.Envelope(sample.Header, sample.Body)
		if err != nil {
			t.Fatal(err)
		}
		req := signature.Request{}
		req.Header, req.Body = form(t, sample.Body)
		for _, name := range []string{"x-github-delivery", "x-github-event"} {
			req.Header[name] = sample.Header[name]
		}
		providertest.Sign(t, a, suite().Current, &req)
		if _, err := providertest.Check(a, req, []signature.Key{providertest.Key(t, a, "current", suite().Current)}, providertest.At()); err != nil {
			t.Errorf("%s: %v", eventType, err)
		}
		got, err := a.Envelope(req.Header, req.Body)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", eventType, err, diff)
		}
		k, _ := a.Kind(eventType)
		wantFacts, err := a.Facts(k, eventType, sample.Body)
		if err != nil {
			t.Fatal(err)
		}
		gotFacts, err := a.Facts(k, eventType, req.Body)
		if diff := cmp.Diff(wantFacts, gotFacts); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", eventType, err, diff)
		}
	}
}

// The unsigned Content-Type cannot change what a signed body is.
func TestContentTypeAndBodyMustAgree(t *testing.T) {
	t.Parallel()
	a := github.Adapter()
	sample, err := a.Sample(provider.SampleOptions{Type: "repository.created", EventID: "evt_1"})
	if err != nil {
		t.Fatal(err)
	}
	_, formBody := form(t, sample.Body)
	for _, tt := range []struct {
		name, contentType string
		body              []byte
		want              string
	}{
		{"JSON as JSON", "application/json", sample.Body, ""},
		{"a form as a form", "application/x-www-form-urlencoded", formBody, ""},
		{"JSON as a form", "application/x-www-form-urlencoded", sample.Body, provider.CodeMalformed},
		{"a form as JSON", "application/json", formBody, provider.CodeMalformed},
		{"a form with a second payload", "application/x-www-form-urlencoded", append(formBody, "&payload=%7B%7D"...), provider.CodeMalformed},
		{"a form with another field", "application/x-www-form-urlencoded", append(formBody, "&x=1"...), provider.CodeMalformed},
		{"a form whose payload is no JSON", "application/x-www-form-urlencoded", []byte("payload=hello"), provider.CodeMalformed},
		{"a form without the field", "application/x-www-form-urlencoded", []byte("x=1"), provider.CodeMalformed},
	} {
		h := signature.Header{"x-github-delivery": "d1", "x-github-event": "repository", "content-type": tt.contentType}
		if _, err := a.Envelope(h, tt.body); providertest.Code(t, err) != tt.want {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Proves PROTOCOL's rule for types that the signature does not cover: a captured
// body of another event does not pass under a type of the catalogue.
func TestABodyOfAnotherEventDoesNotPass(t *testing.T) {
	t.Parallel()
	a := github.Adapter()
	const repository = `"repository":{"id":1,"full_name":"o/r"}`
	const app = `"installation":{"id":2,"app_id":3,"account":{"login":"o"}}`
	for _, tt := range []struct{ name, event, body, want string }{
		{"a repository", "repository", `{"action":"deleted",` + repository + `}`, ""},
		{"a repository, told to an app", "repository", `{"action":"deleted",` + repository + `,"installation":{"id":2}}`, ""},
		{"an issue", "repository", `{"action":"deleted",` + repository + `,"issue":{"id":1}}`, provider.CodeTypeMismatch},
		{"a comment", "repository", `{"action":"deleted",` + repository + `,"comment":{"id":1}}`, provider.CodeTypeMismatch},
		{"a label", "repository", `{"action":"created",` + repository + `,"label":{"id":1}}`, provider.CodeTypeMismatch},
		{"a release", "repository", `{"action":"edited",` + repository + `,"release":{"id":1}}`, provider.CodeTypeMismatch},
		{"a star", "repository", `{"action":"deleted",` + repository + `,"starred_at":"2026-03-01T12:00:00Z"}`, provider.CodeTypeMismatch},
		{"a hook's ping", "repository", `{"zen":"x","hook_id":1,"hook":{},` + repository + `}`, ""}, // its type is then plain repository
		{"an organisation", "repository", `{"action":"deleted","organization":{"id":1}}`, provider.CodeTypeMismatch},
		{"an installation", "installation", `{"action":"deleted",` + app + `}`, ""},
		{"an event told to an installation", "installation", `{"action":"deleted",` + repository + `,"installation":{"id":2}}`, provider.CodeTypeMismatch},
		{"an installation's repositories", "installation", `{"action":"added",` + app + `,"repositories_added":[]}`, ""}, // no such type
		{"a suspension under another name", "installation_repositories", `{"action":"removed",` + app + `}`, provider.CodeTypeMismatch},
		{"a repository as a ping", "ping", `{` + repository + `}`, provider.CodeTypeMismatch},
		{"an action that is no text", "repository", `{"action":1,` + repository + `}`, provider.CodeBadType},
		{"a header that names the action too", "repository.deleted", `{` + repository + `}`, provider.CodeBadType},
	} {
		_, err := a.Envelope(signature.Header{"x-github-delivery": "d1", "x-github-event": tt.event}, []byte(tt.body))
		if got := providertest.Code(t, err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	for _, eventType := range []webhook.EventType{"repository", "installation.added", "push", "issues.opened"} {
		if _, ok := a.Kind(eventType); ok {
			t.Errorf("%s is allowed", eventType)
		}
	}
}
