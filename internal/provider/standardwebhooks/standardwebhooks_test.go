package standardwebhooks_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	reference "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dakghar/internal/provider"
	"dakghar/internal/provider/providertest"
	"dakghar/internal/provider/standardwebhooks"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

func suite() providertest.Suite {
	return providertest.Suite{
		Current: "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=", Previous: "whsec_cHJldmlvdXMgcHJldmlvdXMgcHJldmk=", Other: "whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXI=",
		Type: "object.updated",
		NotSecrets: map[string]error{
			"whsec_": signature.ErrSecretEmpty, "whpk_": signature.ErrSecretEmpty, "whsec_!!!!": signature.ErrSecretUndecodable,
			"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": signature.ErrSecretPublished, "whsec_dG9vIHNob3J0": signature.ErrSecretTooShort,
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, standardwebhooks.Adapter(), suite())
}

// Proves T1 with an independent oracle: what the reference library signs, we
// accept, and what we sign, it accepts.
func TestTheReferenceLibraryAgrees(t *testing.T) {
	t.Parallel()
	a := standardwebhooks.Adapter()
	at := time.Now().Truncate(time.Second) // the library reads the clock itself
	secret := suite().Current
	library, err := reference.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	key := providertest.Key(t, a, "current", secret)
	for _, body := range []string{`{}`, `{"test": 2432232314}`, "{\"snow\":\"☃\"}\r\n", strings.Repeat("x", 10<<10), ""} {
		theirs, err := library.Sign("msg_1", at, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		req := signature.Request{Body: []byte(body), Header: signature.Header{
			"webhook-id": "msg_1", "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": theirs,
		}}
		got, err := providertest.Check(a, req, []signature.Key{key}, at)
		if diff := cmp.Diff(signature.Match{Version: "current", At: at.UTC()}, got); err != nil || diff != "" {
			t.Errorf("signed by the library and refused: %v\n%s", err, diff)
		}
		ours, err := a.Scheme.Sign(signature.Request{Body: []byte(body), Header: signature.Header{"webhook-id": "msg_1"}}, key, at)
		if diff := cmp.Diff(req.Header, ours); err != nil || diff != "" {
			t.Errorf("we sign otherwise: %v\n%s", err, diff)
		}
		h := http.Header{}
		for name, value := range ours {
			h.Set(name, value)
		}
		if err := library.Verify([]byte(body), h); err != nil {
			t.Errorf("signed by us and refused: %v", err)
		}
	}
}

// Proves P2 and O2's ground: the version is read as a number, and only as one.
func TestVersionsAreRead(t *testing.T) {
	t.Parallel()
	a := standardwebhooks.Adapter()
	for version, want := range map[int64]webhook.Facts{
		1: {ObjectType: webhook.Object, ObjectID: "obj_1", Version: 1, HasVersion: true, CreatedAt: providertest.At()},
		3: {ObjectType: webhook.Object, ObjectID: "obj_1", Version: 3, HasVersion: true, CreatedAt: providertest.At()},
	} {
		sample, err := a.Sample(provider.SampleOptions{Type: "invoice.line_item.updated", EventID: "msg_1", ObjectID: "obj_1", Version: version, At: providertest.At()})
		if err != nil {
			t.Fatal(err)
		}
		k, _ := a.Kind("invoice.line_item.updated")
		got, err := a.Facts(k, "invoice.line_item.updated", sample.Body)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

// Types are words joined by dots: everything else is unheard of.
func TestTypesThatAreAllowed(t *testing.T) {
	t.Parallel()
	a := standardwebhooks.Adapter()
	for eventType, want := range map[webhook.EventType]bool{
		"user.created": true, "invoice.line_item.updated": true, "v2.user_1.x": true,
		"user": false, "User.created": false, "user.": false, ".created": false, "user..created": false, "user created": false,
		"user.created\n": false, "user-x.created": false, "": false,
	} {
		k, got := a.Kind(eventType)
		if got != want || got && k.Name != "object.changed" {
			t.Errorf("%q is allowed: %t, want %t", eventType, got, want)
		}
	}
}

// A captured message cannot be read as another one: were the id allowed a dot,
// the id "a.1" at time 2 would be signed like the id "a" at time 1 with "2." at
// the head of the body.
func TestASignedTextIsReadInOneWay(t *testing.T) {
	t.Parallel()
	a := standardwebhooks.Adapter()
	req := signature.Request{Header: signature.Header{"webhook-id": "a"}, Body: []byte("1772366400.{}")}
	providertest.Sign(t, a, suite().Current, &req)
	keys := []signature.Key{providertest.Key(t, a, "current", suite().Current)}
	if _, err := providertest.Check(a, req, keys, providertest.At()); err != nil {
		t.Fatal(err)
	}
	req.Header["webhook-id"] = "a." + req.Header["webhook-timestamp"]
	req.Header["webhook-timestamp"], req.Body = "1772366400", []byte("{}")
	_, err := providertest.Check(a, req, keys, providertest.At())
	if got := providertest.Cause(t, err); got != signature.Malformed {
		t.Errorf("the same signed text in another reading: %s", got)
	}
}
