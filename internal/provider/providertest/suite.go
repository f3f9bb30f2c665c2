package providertest

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Suite is what the declaration of an adapter cannot say.
type Suite struct {
	// Current, Previous and Other are three secrets that the adapter accepts.
	Current, Previous, Other string
	// Type is the event type of the samples that are changed.
	Type webhook.EventType
	// NotSecrets are secrets that must be refused, with their errors.
	NotSecrets map[string]error
}

// At is when the suite's requests are signed.
func At() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// eventID is the id of the suite's events at their sender.
const eventID = "evt_0001"

// Run runs the whole suite. It reads testdata/vectors.json, and testdata/golden
// for one sample of every event type.
func Run(t *testing.T, a *provider.Adapter, s Suite) {
	t.Helper()
	t.Run("declaration", func(t *testing.T) {
		t.Parallel()
		if err := a.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("vectors", func(t *testing.T) { t.Parallel(); testVectors(t, a) })
	t.Run("mutations", func(t *testing.T) { t.Parallel(); testMutations(t, a, s) })
	t.Run("keys", func(t *testing.T) { t.Parallel(); testKeys(t, a, s) })
	t.Run("secrets", func(t *testing.T) { t.Parallel(); testSecrets(t, a, s) })
	t.Run("freshness", func(t *testing.T) { t.Parallel(); testFreshness(t, a, s) })
	t.Run("content types", func(t *testing.T) { t.Parallel(); testContentTypes(t, a) })
	t.Run("identity", func(t *testing.T) { t.Parallel(); testIdentity(t, a, s) })
	t.Run("bodies", func(t *testing.T) { t.Parallel(); testBodies(t, a, s) })
	t.Run("samples", func(t *testing.T) { t.Parallel(); testSamples(t, a) })
	t.Run("canary", func(t *testing.T) { t.Parallel(); testCanary(t, a, s) })
}

// Request returns a signed sample.
func Request(t *testing.T, a *provider.Adapter, secret string, o provider.SampleOptions) signature.Request {
	t.Helper()
	if o.EventID == "" {
		o.EventID = eventID
	}
	if o.At.IsZero() {
		o.At = At()
	}
	sample, err := a.Sample(o)
	if err != nil {
		t.Fatal(err)
	}
	req := signature.Request{Method: "POST", Header: sample.Header, Body: sample.Body}
	Sign(t, a, secret, &req)
	return req
}

// Sign signs a request, as its sender would at [At].
func Sign(t *testing.T, a *provider.Adapter, secret string, req *signature.Request) {
	t.Helper()
	signed, err := a.Scheme.Sign(*req, Key(t, a, "signer", secret), At())
	if err != nil {
		t.Fatal(err)
	}
	req.Header = maps.Clone(req.Header)
	maps.Copy(req.Header, signed)
}

// Key decodes a secret the way that an endpoint does.
func Key(t *testing.T, a *provider.Adapter, version, secret string) signature.Key {
	t.Helper()
	decoded, err := a.Scheme.DecodeKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return signature.Key{Version: version, Secret: decoded}
}

// Check runs the steps of verification in their order.
func Check(a *provider.Adapter, req signature.Request, keys []signature.Key, now time.Time) (signature.Match, error) {
	meta, err := a.Scheme.Metadata(req.Header)
	if err != nil {
		return signature.Match{}, err
	}
	match, err := a.Scheme.Verify(req, meta, keys)
	if err != nil {
		return signature.Match{}, err
	}
	return match, a.Scheme.Fresh(meta, now)
}

// Cause returns "valid", or why a request was refused.
func Cause(t *testing.T, err error) signature.Cause {
	t.Helper()
	if err == nil {
		return "valid"
	}
	r, ok := errors.AsType[*signature.Refusal](err)
	if !ok {
		t.Fatalf("not a refusal: %v", err)
	}
	return r.Cause
}

// Code returns the code of a refused body, or "" for none.
func Code(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	b, ok := errors.AsType[*provider.BadBody](err)
	if !ok {
		t.Fatalf("not a bad body: %v", err)
	}
	return b.Code
}

// Proves T2, S2: current and previous keys, and none that is not trusted.
func testKeys(t *testing.T, a *provider.Adapter, s Suite) {
	current, previous, other := Key(t, a, "current", s.Current), Key(t, a, "previous", s.Previous), Key(t, a, "other", s.Other)
	trusted := []signature.Key{current, previous}
	var at time.Time
	if a.Covers.Time {
		at = At()
	}
	for _, tt := range []struct {
		name, secret string
		keys         []signature.Key
		want         signature.Match
		cause        signature.Cause
	}{
		{"signed with the current key", s.Current, trusted, signature.Match{Version: "current", At: at}, "valid"},
		{"signed with the previous key", s.Previous, trusted, signature.Match{Version: "previous", At: at}, "valid"},
		{"signed with the previous key after it was retired", s.Previous, trusted[:1], signature.Match{}, signature.Mismatch},
		{"signed with a key that was never trusted", s.Other, trusted, signature.Match{}, signature.Mismatch},
		{"signed with one of many", s.Other, append(trusted[:2:2], other), signature.Match{Version: "other", At: at}, "valid"},
	} {
		got, err := Check(a, Request(t, a, tt.secret, provider.SampleOptions{Type: s.Type}), tt.keys, At())
		if cause := Cause(t, err); cause != tt.cause || !cmp.Equal(tt.want, got) {
			t.Errorf("%s: got %+v, %s; want %+v, %s", tt.name, got, cause, tt.want, tt.cause)
		}
	}
	req := Request(t, a, s.Current, provider.SampleOptions{Type: s.Type})
	if _, err := Check(a, req, nil, At()); !errors.Is(err, signature.ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
}

// Proves T2: secrets with which others could sign.
func testSecrets(t *testing.T, a *provider.Adapter, s Suite) {
	refused := map[string]error{
		"": signature.ErrSecretEmpty, "  ": signature.ErrSecretSpaced, s.Current + "\n": signature.ErrSecretSpaced,
		"dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==": signature.ErrSecretPublished,
	}
	maps.Copy(refused, s.NotSecrets)
	for secret, want := range refused {
		if got, err := a.Scheme.DecodeKey(secret); !errors.Is(err, want) || got != nil {
			t.Errorf("secret %q: %v, want %v", secret, err, want)
		}
	}
}

// Proves V6, V10, T2: skew in both directions, or, where no time is signed, none.
func testFreshness(t *testing.T, a *provider.Adapter, s Suite) {
	req := Request(t, a, s.Current, provider.SampleOptions{Type: s.Type})
	keys := []signature.Key{Key(t, a, "current", s.Current)}
	window := a.Scheme.Timestamp
	tests := map[time.Duration]signature.Cause{
		0: "valid", window.Past: "valid", window.Past + time.Second: signature.Stale, 72 * time.Hour: signature.Stale,
		-window.Future: "valid", -window.Future - time.Second: signature.Future,
	}
	if !a.Covers.Time {
		tests = map[time.Duration]signature.Cause{0: "valid", 72 * time.Hour: "valid", -72 * time.Hour: "valid"}
	}
	for off, want := range tests {
		_, err := Check(a, req, keys, At().Add(off))
		if got := Cause(t, err); got != want {
			t.Errorf("received %s after it was signed: %s, want %s", off, got, want)
		}
	}
}

// Proves V2.
func testContentTypes(t *testing.T, a *provider.Adapter) {
	for _, ct := range a.ContentTypes {
		for value, want := range map[string]bool{
			ct: true, ct + "; charset=utf-8": true, ct + ";charset=UTF-8": true,
			ct + "; charset=utf-16": false, ct + "," + ct: false, ct + ", " + ct: false, ct + "x": false, "x" + ct: false,
			ct + "; charset=utf-8; charset=utf-16": false, ct + ";": true,
		} {
			if got := a.AllowsContentType(value); got != want {
				t.Errorf("content type %q: %t, want %t", value, got, want)
			}
		}
	}
	for _, value := range []string{"", " ", "text/plain", "application", "application/xml", "multipart/form-data; boundary=x", "\xff"} {
		if a.AllowsContentType(value) {
			t.Errorf("content type %q is allowed", value)
		}
	}
}
