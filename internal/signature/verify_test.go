package signature_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/signature"
)

// The key pair that Svix prints in its own tests.
const (
	testPrivate = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	testPublic  = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
)

var errMismatch = refusal(signature.Mismatch, "no trusted key made a signature over these bytes")

func key(t *testing.T, s *signature.Scheme, version, secret string) signature.Key {
	t.Helper()
	decoded, err := s.DecodeTestKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return signature.Key{Version: version, Secret: decoded}
}

func signed(t *testing.T, s *signature.Scheme, k signature.Key, at time.Time) signature.Request {
	t.Helper()
	req := signature.Request{Header: signature.Header{"webhook-id": "msg_1"}, Body: []byte(`{"test": 2432232314}`)}
	var err error
	if req.Header, err = s.Sign(req, k, at); err != nil {
		t.Fatal(err)
	}
	return req
}

// Proves T2, S2: current and previous keys verify, a retired one does not, and
// the match says which it was.
func TestEveryTrustedKeyVerifies(t *testing.T) {
	t.Parallel()
	s, at := standard(), time.Unix(1750000000, 0).UTC()
	current := key(t, s, "current", "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=")
	previous := key(t, s, "previous", "whsec_cHJldmlvdXMgcHJldmlvdXMgcHJldmk=")
	both := []signature.Key{current, previous}
	tests := []struct {
		name   string
		signer signature.Key
		keys   []signature.Key
		want   signature.Match
		err    error
	}{
		{"the current key", current, both, signature.Match{Version: "current", At: at}, nil},
		{"the previous key", previous, both, signature.Match{Version: "previous", At: at}, nil},
		{"a key that is no longer trusted", previous, []signature.Key{current}, signature.Match{}, errMismatch},
		{"no keys", current, nil, signature.Match{}, signature.ErrNoKey},
		{"a key without bytes", current, []signature.Key{{Version: "empty"}}, signature.Match{}, signature.ErrNoKey},
		{"a secret that was never decoded", current, []signature.Key{{Version: "raw", Secret: []byte("whsec_Y3VycmVudA==")}}, signature.Match{}, signature.ErrNoKey},
		{"a key of another scheme beside a good one", current, []signature.Key{current, {Version: "x", Secret: []byte{7, 1, 2, 3}}}, signature.Match{}, signature.ErrNoKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := check(s, signed(t, s, tt.signer, at), tt.keys, at)
			if !errors.Is(err, tt.err) && !cmp.Equal(err, tt.err) || !cmp.Equal(got, tt.want) {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// During a rotation the sender signs with both keys; the newest of ours that
// made any of the signatures is the match.
func TestTheNewestMatchingKeyIsNamed(t *testing.T) {
	t.Parallel()
	s, at := standard(), time.Unix(1750000000, 0).UTC()
	newer, older := key(t, s, "newer", "whsec_bmV3ZXIgbmV3ZXIgbmV3ZXIgbmV3ZXI="), key(t, s, "older", "whsec_b2xkZXIgb2xkZXIgb2xkZXIgb2xkZXI=")
	req := signed(t, s, older, at)
	req.Header["webhook-signature"] += " " + signed(t, s, newer, at).Header["webhook-signature"]
	got, err := check(s, req, []signature.Key{newer, older}, at)
	if diff := cmp.Diff(signature.Match{Version: "newer", At: at}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Which of several signatures is the right one makes no difference.
func TestEveryOfferedSignatureIsTried(t *testing.T) {
	t.Parallel()
	s, at := standard(), time.Unix(1750000000, 0).UTC()
	k := key(t, s, "k1", "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=")
	good := signed(t, s, k, at)
	for _, list := range []string{"G", "G B", "B G", "B G B", "G G", "B B B B B B B B B G"} {
		req := good
		header := strings.NewReplacer("B", "v1,"+b64Sig, "G", good.Header["webhook-signature"]).Replace(list)
		req.Header = signature.Header{"webhook-id": "msg_1", "webhook-timestamp": "1750000000", "webhook-signature": header}
		got, err := check(s, req, []signature.Key{k}, at)
		if diff := cmp.Diff(signature.Match{Version: "k1", At: at}, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", list, err, diff)
		}
	}
}

// Proves T1: whatever is signed and changed, breaks the signature.
func TestAnyChangeIsAMismatch(t *testing.T) {
	t.Parallel()
	s, at := standard(), time.Unix(1750000000, 0)
	k := key(t, s, "k1", "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=")
	good := signed(t, s, k, at)
	for i := range good.Body {
		changed := good
		changed.Body = append([]byte(nil), good.Body...)
		changed.Body[i] ^= 1
		if _, err := check(s, changed, []signature.Key{k}, at); !cmp.Equal(err, error(errMismatch)) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	for name, change := range map[string]func(*signature.Request){
		"white space added":     func(r *signature.Request) { r.Body = []byte(string(r.Body) + " ") },
		"white space removed":   func(r *signature.Request) { r.Body = []byte(strings.ReplaceAll(string(r.Body), " ", "")) },
		"body removed":          func(r *signature.Request) { r.Body = nil },
		"id changed":            func(r *signature.Request) { r.Header["webhook-id"] = "msg_2" },
		"time changed":          func(r *signature.Request) { r.Header["webhook-timestamp"] = "1750000001" },
		"time with a zero more": func(r *signature.Request) { r.Header["webhook-timestamp"] = "01750000000" },
		"signature of another":  func(r *signature.Request) { r.Header["webhook-signature"] = "v1," + b64Sig },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := signed(t, s, k, at)
			change(&changed)
			if _, err := check(s, changed, []signature.Key{k}, at); !cmp.Equal(err, error(errMismatch)) {
				t.Errorf("got %v, want %v", err, errMismatch)
			}
		})
	}
}

// Proves V6: both directions, to the second.
func TestFreshness(t *testing.T) {
	t.Parallel()
	s, at := standard(), time.Unix(1750000000, 0).UTC()
	s.Timestamp.Future = time.Minute
	k := key(t, s, "k1", "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=")
	req := signed(t, s, k, at)
	stale := refusal(signature.Stale, "signed more than 5m0s ago")
	future := refusal(signature.Future, "signed more than 1m0s ahead")
	for _, tt := range []struct {
		name string
		now  time.Time
		want *signature.Refusal
	}{
		{"at once", at, nil},
		{"as late as is tolerated", at.Add(5 * time.Minute), nil},
		{"a moment later", at.Add(5*time.Minute + time.Nanosecond), stale},
		{"days later", at.Add(72 * time.Hour), stale},
		{"as far ahead as is tolerated", at.Add(-time.Minute), nil},
		{"a moment further ahead", at.Add(-time.Minute - time.Nanosecond), future},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			meta, err := s.Metadata(req.Header)
			if err != nil || !meta.At().Equal(at) {
				t.Fatalf("read %s, %v", meta.At(), err)
			}
			var want error
			if tt.want != nil {
				want = tt.want
			}
			if diff := cmp.Diff(want, s.Fresh(meta, tt.now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A time without a stated tolerance is read and not judged.
func TestATimeWithoutToleranceIsNotJudged(t *testing.T) {
	t.Parallel()
	s := timed("x-signature", "x-time", signature.Seconds, signature.Hex, signature.HMACSHA256, signature.Text)
	at := time.Unix(1750000000, 0)
	k := key(t, s, "k1", "a secret of this test")
	req := signed(t, s, k, at)
	got, err := check(s, req, []signature.Key{k}, at.AddDate(10, 0, 0))
	if diff := cmp.Diff(signature.Match{Version: "k1", At: at.UTC()}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Proves V5: the key decides the method. A public key that everybody knows must
// never do as a shared one, though both have 32 bytes.
func TestEd25519(t *testing.T) {
	t.Parallel()
	s, at := standard(), time.Unix(1614265330, 0).UTC()
	public := key(t, s, "public", testPublic)
	decoded, err := s.DecodeSigningKey(testPrivate)
	if err != nil {
		t.Fatal(err)
	}
	private := signature.Key{Version: "private", Secret: decoded}
	req := signature.Request{Header: signature.Header{"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek"}, Body: []byte(`{"test": 2432232314}`)}
	h, err := s.Sign(req, private, at)
	// The signature that Svix prints for this message.
	want := signature.Header{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
		"webhook-signature": "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
	}
	if diff := cmp.Diff(want, h); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	req.Header = h

	got, err := check(s, req, []signature.Key{public}, at)
	if diff := cmp.Diff(signature.Match{Version: "public", At: at}, got); err != nil || diff != "" {
		t.Errorf("the public key does not verify: %v\n%s", err, diff)
	}
	shared := key(t, s, "shared", "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=")
	if _, err := check(s, req, []signature.Key{shared}, at); !cmp.Equal(err, error(errMismatch)) {
		t.Errorf("a shared key verified an Ed25519 signature: %v", err)
	}
	if _, err := check(s, req, []signature.Key{private}, at); !errors.Is(err, signature.ErrNoKey) {
		t.Errorf("a private key verified: %v", err)
	}
	if _, err := s.Sign(req, public, at); !errors.Is(err, signature.ErrNoKey) {
		t.Errorf("a public key signed: %v", err)
	}

	forger := key(t, s, "forger", strings.Replace(testPublic, "whpk_", "whsec_", 1))
	forged := signed(t, s, forger, at)
	if _, err := check(s, forged, []signature.Key{public}, at); !cmp.Equal(err, error(errMismatch)) {
		t.Errorf("an HMAC under the public key verified: %v", err)
	}
	forged.Header["webhook-signature"] = strings.Replace(forged.Header["webhook-signature"], "v1,", "v1a,", 1)
	if _, err := check(s, forged, []signature.Key{public}, at); causeOf(t, err) != "malformed" {
		t.Errorf("an HMAC under the tag of Ed25519: %v", err)
	}

	req.Body = []byte(`{"test": 2432232315}`)
	if _, err := check(s, req, []signature.Key{public}, at); !cmp.Equal(err, error(errMismatch)) {
		t.Errorf("another body verified: %v", err)
	}
}

// A signature counts only under the tag of its key's own method, even where
// another method has the same algorithm: a tag may stand for another meaning.
func TestASignatureUnderAnotherTagIsAMismatch(t *testing.T) {
	t.Parallel()
	at := time.Unix(1750000000, 0)
	for name, algorithm := range map[string]signature.Algorithm{"HMAC": signature.HMACSHA256, "Ed25519": signature.Ed25519} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := standard()
			s.Methods[1] = s.Methods[0]
			if algorithm == signature.Ed25519 {
				s.Methods[0] = standard().Methods[1]
				s.Methods[1] = s.Methods[0]
			}
			s.Methods[0].Tag, s.Methods[1].Tag = "a", "b"
			signing, verifying := "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=", "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ="
			if algorithm == signature.Ed25519 {
				signing, verifying = testPrivate, testPublic
			}
			decoded, err := s.DecodeSigningKey(signing)
			if err != nil {
				t.Fatal(err)
			}
			req := signed(t, s, signature.Key{Version: "k1", Secret: decoded}, at)
			keys := []signature.Key{key(t, s, "k1", verifying)}
			if _, err := check(s, req, keys, at); err != nil {
				t.Fatal(err)
			}
			req.Header["webhook-signature"] = strings.Replace(req.Header["webhook-signature"], "a,", "b,", 1)
			if _, err := check(s, req, keys, at); !cmp.Equal(err, error(errMismatch)) {
				t.Errorf("got %v, want %v", err, errMismatch)
			}
		})
	}
}

// The signed text of two different requests is never the same: an id cannot
// take over the time's place.
func TestSignRefusesAnAmbiguousID(t *testing.T) {
	t.Parallel()
	s := standard()
	k := key(t, s, "k1", "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=")
	for _, id := range []string{"", "msg.1", "msg 1", "msg,1"} {
		req := signature.Request{Header: signature.Header{"webhook-id": id}, Body: []byte("{}")}
		if h, err := s.Sign(req, k, time.Unix(1, 0)); err == nil {
			t.Errorf("id %q was signed: %v", id, h)
		}
	}
}
