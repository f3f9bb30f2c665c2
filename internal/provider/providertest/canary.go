package providertest

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// testCanary holds an adapter to carrying canaries: in its own form, verified as
// any event is, known by all of their bytes and by nothing less.
//
// Proves M3 in part: the whole path can be tried at every provider.
func testCanary(t *testing.T, a *provider.Adapter, s Suite) {
	const name = webhook.CanaryPrefix + "0a1b2c"
	id, sample, err := a.Canary(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(id), name) {
		t.Errorf("event id %q, want one that ends in %q", id, name)
	}
	if _, again, err := a.Canary(name); err != nil || !bytes.Equal(again.Body, sample.Body) || !maps.Equal(again.Header, sample.Header) {
		t.Errorf("made twice it differs, or %v", err)
	}
	if !a.AllowsContentType(sample.Header["content-type"]) {
		t.Errorf("its content type %q is not allowed", sample.Header["content-type"])
	}
	req := signature.Request{Method: "POST", Header: sample.Header, Body: sample.Body}
	Sign(t, a, s.Current, &req)
	if _, err := Check(a, req, []signature.Key{Key(t, a, "current", s.Current)}, At()); err != nil {
		t.Errorf("not verified: %v", err)
	}
	e, err := a.Envelope(req.Header, req.Body)
	if err != nil {
		t.Fatal(err)
	}
	if e.EventID != id || e.Type != webhook.CanaryType || !a.IsCanary(e, req.Body) {
		t.Errorf("read as event %q of type %q, a canary: %t", e.EventID, e.Type, a.IsCanary(e, req.Body))
	}
	testImpostors(t, a, s, req)
}

// testImpostors tries what somebody could make of a captured request where the id
// and the type are not signed: none of it is a canary.
func testImpostors(t *testing.T, a *provider.Adapter, s Suite, canary signature.Request) {
	captured := Request(t, a, s.Current, provider.SampleOptions{Type: s.Type})
	renamed := maps.Clone(canary.Header)
	for name, value := range renamed {
		renamed[name] = strings.ReplaceAll(value, webhook.CanaryPrefix+"0a1b2c", webhook.CanaryPrefix+"another")
	}
	impostors := map[string]signature.Request{
		"an event's body under a canary's headers": {Header: canary.Header, Body: captured.Body},
		"a longer body": {Header: canary.Header, Body: append(bytes.Clone(canary.Body), '\n')},
	}
	if !maps.Equal(renamed, canary.Header) { // elsewhere the headers say nothing about the event
		impostors["a canary's body under another canary's headers"] = signature.Request{Header: renamed, Body: canary.Body}
		impostors["a canary's body under an event's headers"] = signature.Request{Header: captured.Header, Body: canary.Body}
	}
	for what, req := range impostors {
		if e, err := a.Envelope(req.Header, req.Body); err == nil && a.IsCanary(e, req.Body) {
			t.Errorf("%s is taken for a canary", what)
		}
	}
}
