package delivery_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// vectors is testdata/vectors.json. It was made once by a program that shares
// nothing with this package, not even the language.
type vectors struct {
	Skew    int `json:"skew_seconds"`
	Keys    []vectorKey
	Vectors []vector
}

type vectorKey struct {
	KID, Alg, Signs, Verifies string
}

// vector is a request, with what a partner must say to it: "valid" or a cause.
type vector struct {
	Name     string
	Made     bool // the headers are exactly what is sent
	Signers  []string
	Attempt  int
	Trusts   []string
	Now      int64
	Headers  map[string]string
	Body     string
	Expect   string // of dakghar-signature
	Standard string // of webhook-signature
	KeyID    string `json:"key_id"`
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v vectors) key(t testing.TB, kid string) vectorKey {
	t.Helper()
	i := slices.IndexFunc(v.Keys, func(k vectorKey) bool { return k.KID == kid })
	if i < 0 {
		t.Fatalf("the vectors have no key %s", kid)
	}
	return v.Keys[i]
}

func (v vectors) trusted(t testing.TB, kids []string) (keys []delivery.VerifyingKey) {
	t.Helper()
	for _, kid := range kids {
		k, err := delivery.ParseVerifyingKey(kid, v.key(t, kid).Verifies)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	return keys
}

func (v vectors) signing(t testing.TB, kids []string) (keys []delivery.SigningKey) {
	t.Helper()
	for _, kid := range kids {
		k, err := delivery.ParsePrintedKey(kid, v.key(t, kid).Signs)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	return keys
}

func verdict(err error) string {
	if err == nil {
		return "valid"
	}
	if r, ok := errors.AsType[*signature.Refusal](err); ok {
		return string(r.Cause)
	}
	return err.Error()
}

// Proves X2, X11 and T6's vectors: what a partner must say to each request.
func TestVectorsAreJudged(t *testing.T) {
	t.Parallel()
	all := readVectors(t)
	skew := time.Duration(all.Skew) * time.Second
	for _, v := range all.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			now, keys := time.Unix(v.Now, 0), all.trusted(t, v.Trusts)
			got, err := delivery.Verify(v.Headers, []byte(v.Body), keys, now, skew)
			if verdict(err) != v.Expect {
				t.Errorf("dakghar-signature: %s (%v), want %s", verdict(err), err, v.Expect)
			}
			var want delivery.Verified
			if v.Expect == "valid" {
				want = delivery.Verified{
					KeyID: v.KeyID, Delivery: delivery.ID(v.Headers["webhook-id"]), Event: webhook.EffectID(v.Headers["dakghar-event-id"]),
					At: time.Unix(seconds(t, v.Headers["webhook-timestamp"]), 0).UTC(), Attempt: int(seconds(t, v.Headers["dakghar-attempt"])),
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			at, err := delivery.VerifyStandard(v.Headers, []byte(v.Body), keys, now, skew)
			if verdict(err) != v.Standard || err == nil && at.Unix() != seconds(t, v.Headers["webhook-timestamp"]) {
				t.Errorf("webhook-signature: %s at %s, want %s", verdict(err), at, v.Standard)
			}
		})
	}
}

func seconds(t testing.TB, text string) int64 {
	t.Helper()
	var n int64
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Proves X2: what is sent is what was published.
func TestVectorsAreWhatIsSent(t *testing.T) {
	t.Parallel()
	all, made := readVectors(t), 0
	for _, v := range all.Vectors {
		if !v.Made {
			continue
		}
		made++
		m := delivery.Message{
			Delivery: delivery.ID(v.Headers["webhook-id"]), EventID: webhook.EffectID(v.Headers["dakghar-event-id"]), Attempt: v.Attempt, Body: []byte(v.Body),
		}
		got, err := delivery.Sign(m, all.signing(t, v.Signers), time.Unix(seconds(t, v.Headers["webhook-timestamp"]), 0))
		if diff := cmp.Diff(v.Headers, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", v.Name, err, diff)
		}
	}
	if made < 8 {
		t.Errorf("%d vectors are what is sent", made)
	}
}

// Proves X2 with an oracle: the published signatures, computed from the words of
// the page for partners, with nothing of this package.
func TestVectorsByHand(t *testing.T) {
	t.Parallel()
	all := readVectors(t)
	for _, v := range all.Vectors {
		if !v.Made {
			continue
		}
		h := v.Headers
		var ours, theirs []string
		for _, kid := range v.Signers {
			k := all.key(t, kid)
			var msg []byte
			for _, part := range []string{"dakghar-signature-v1", kid, h["webhook-id"], h["dakghar-attempt"], h["webhook-timestamp"], v.Body} {
				n := len(part)
				msg = append(msg, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
				msg = append(msg, part...)
			}
			version, own := byHand(t, k, msg)
			_, standard := byHand(t, k, []byte(h["webhook-id"]+"."+h["webhook-timestamp"]+"."+v.Body))
			ours = append(ours, "kid="+kid+","+version+"="+own)
			theirs = append(theirs, version+","+standard)
		}
		want := []string{strings.Join(ours, " "), strings.Join(theirs, " "), v.Signers[0]}
		got := []string{h["dakghar-signature"], h["webhook-signature"], h["dakghar-key-id"]}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.Name, diff)
		}
	}
}

func byHand(t *testing.T, k vectorKey, msg []byte) (version, sig string) {
	t.Helper()
	_, encoded, _ := strings.Cut(k.Signs, "_")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if k.Alg == "ed25519" {
		return "v1a", base64.StdEncoding.EncodeToString(ed25519.Sign(ed25519.PrivateKey(raw), msg))
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write(msg)
	return "v1", base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// A key of the vectors is known to everybody: nobody signs with it, and no
// endpoint of ours trusts it.
func TestTheVectorsKeysSignNothingElse(t *testing.T) {
	t.Parallel()
	for _, k := range readVectors(t).Keys {
		if _, err := delivery.ParseSigningKey(k.KID, k.Signs); !errors.Is(err, signature.ErrSecretPublished) {
			t.Errorf("%s: %v", k.KID, err)
		}
	}
}
