package delivery_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	reference "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dakghar/internal/delivery"
	"dakghar/internal/provider/standardwebhooks"
	"dakghar/internal/signature"
)

// Secrets of these tests, made up.
const (
	secretOld = "whsec_cHJldmlvdXMgcHJldmlvdXMgcHJldmlvdXM="
	secretNew = "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQgY3VycmVudA=="
	skew      = 5 * time.Minute
)

func private() string { return delivery.NewPrivateKey([]byte("a private seed of this test only")) }

func at() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

func message() delivery.Message {
	return delivery.Message{Delivery: "dl_1", EventID: "ev_1", Attempt: 1, Body: []byte(`{"type":"payment.succeeded"}`)}
}

func signing(t testing.TB, id, text string) delivery.SigningKey {
	t.Helper()
	k, err := delivery.ParseSigningKey(id, text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func verifying(keys ...delivery.SigningKey) (v []delivery.VerifyingKey) {
	for _, k := range keys {
		v = append(v, k.Verifying())
	}
	return v
}

func sign(t testing.TB, m delivery.Message, at time.Time, keys ...delivery.SigningKey) map[string]string {
	t.Helper()
	h, err := delivery.Sign(m, keys, at)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Proves X10's ground: without a key there is nothing to send.
func TestNothingIsSignedWithoutAKey(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]delivery.SigningKey{
		"no key": nil, "a key without material": {{ID: "k1"}}, "one of two without": {signing(t, "k2", secretNew), {ID: "k1"}},
	} {
		if h, err := delivery.Sign(message(), keys, at()); !errors.Is(err, delivery.ErrNoKey) || h != nil {
			t.Errorf("%s: %d headers, %v", name, len(h), err)
		}
	}
}

func TestWhatCannotBeSignedIsRefused(t *testing.T) {
	t.Parallel()
	k1, k2, k3 := signing(t, "k1", secretOld), signing(t, "k2", secretNew), signing(t, "k3", private())
	for name, tt := range map[string]struct {
		change func(*delivery.Message)
		keys   []delivery.SigningKey
		at     time.Time
		want   error
	}{
		"more keys than sign at once": {keys: []delivery.SigningKey{k1, k2, k3}, want: delivery.ErrKeys},
		"one id twice":                {keys: []delivery.SigningKey{k1, signing(t, "k1", secretNew)}, want: delivery.ErrKeys},
		"no delivery":                 {change: func(m *delivery.Message) { m.Delivery = "" }, want: delivery.ErrMessage},
		"a line end in an id":         {change: func(m *delivery.Message) { m.Delivery = "dl_1\r\nx-evil: 1" }, want: delivery.ErrMessage},
		"a comma in an id":            {change: func(m *delivery.Message) { m.Delivery = "dl_1,dl_2" }, want: delivery.ErrMessage},
		"a dot in an id":              {change: func(m *delivery.Message) { m.Delivery = "dl.1" }, want: delivery.ErrMessage},
		"a long id":                   {change: func(m *delivery.Message) { m.Delivery = delivery.ID(strings.Repeat("d", 81)) }, want: delivery.ErrMessage},
		"no event":                    {change: func(m *delivery.Message) { m.EventID = "" }, want: delivery.ErrMessage},
		"a line end in an event":      {change: func(m *delivery.Message) { m.EventID = "ev\n" }, want: delivery.ErrMessage},
		"attempt 0":                   {change: func(m *delivery.Message) { m.Attempt = 0 }, want: delivery.ErrMessage},
		"too many attempts":           {change: func(m *delivery.Message) { m.Attempt = 1e9 }, want: delivery.ErrMessage},
		"before 1970":                 {at: time.Unix(-1, 0), want: delivery.ErrMessage},
		"no time":                     {at: time.Unix(0, 0), want: delivery.ErrMessage},
	} {
		m, when, keys := message(), at(), tt.keys
		if tt.change != nil {
			tt.change(&m)
		}
		if !tt.at.IsZero() {
			when = tt.at
		}
		if keys == nil {
			keys = []delivery.SigningKey{k1}
		}
		if h, err := delivery.Sign(m, keys, when); !errors.Is(err, tt.want) || h != nil {
			t.Errorf("%s: %d headers, %v; want %v", name, len(h), err, tt.want)
		}
	}
}

// Proves X11 and T6: through a rotation, whoever has either key can verify.
func TestARotationVerifiesThroughout(t *testing.T) {
	t.Parallel()
	k1, k2, e1 := signing(t, "k1", secretOld), signing(t, "k2", secretNew), signing(t, "e1", private())
	for name, tt := range map[string]struct {
		signs, trusts []delivery.SigningKey
		kid           string
		cause         string
	}{
		"before":                               {[]delivery.SigningKey{k1}, []delivery.SigningKey{k1}, "k1", "valid"},
		"during, not followed":                 {[]delivery.SigningKey{k2, k1}, []delivery.SigningKey{k1}, "k1", "valid"},
		"during, followed":                     {[]delivery.SigningKey{k2, k1}, []delivery.SigningKey{k2}, "k2", "valid"},
		"during, both":                         {[]delivery.SigningKey{k2, k1}, []delivery.SigningKey{k2, k1}, "k2", "valid"},
		"after, followed":                      {[]delivery.SigningKey{k2}, []delivery.SigningKey{k2, k1}, "k2", "valid"},
		"after, not followed":                  {[]delivery.SigningKey{k2}, []delivery.SigningKey{k1}, "", "unknown_key"},
		"to another algorithm, followed":       {[]delivery.SigningKey{e1, k1}, []delivery.SigningKey{e1}, "e1", "valid"},
		"to another algorithm, not followed":   {[]delivery.SigningKey{e1, k1}, []delivery.SigningKey{k1}, "k1", "valid"},
		"the new id with the secret of an old": {[]delivery.SigningKey{k2}, []delivery.SigningKey{signing(t, "k2", secretOld)}, "", "mismatch"},
	} {
		h := sign(t, message(), at(), tt.signs...)
		got, err := delivery.Verify(h, message().Body, verifying(tt.trusts...), at(), skew)
		if verdict(err) != tt.cause || got.KeyID != tt.kid {
			t.Errorf("%s: %s by %q, want %s by %q", name, verdict(err), got.KeyID, tt.cause, tt.kid)
		}
	}
}

// A partner that has only a secret, and no id to it, verifies nonetheless.
func TestAKeyWithoutAnIDIsTriedForAll(t *testing.T) {
	t.Parallel()
	k1, k2 := signing(t, "k1", secretOld), signing(t, "k2", secretNew)
	bare, err := delivery.ParseVerifyingKey("", secretOld)
	if err != nil {
		t.Fatal(err)
	}
	h := sign(t, message(), at(), k2, k1)
	got, err := delivery.Verify(h, message().Body, []delivery.VerifyingKey{bare}, at(), skew)
	want := delivery.Verified{KeyID: "k1", Delivery: "dl_1", Event: "ev_1", Attempt: 1, At: at()}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	h[delivery.HeaderSignature] = strings.Replace(h[delivery.HeaderSignature], "kid=k1", "kid=k3", 1)
	if _, err := delivery.Verify(h, message().Body, []delivery.VerifyingKey{bare}, at(), skew); verdict(err) != "mismatch" {
		t.Errorf("the id of the key is bound: %s", verdict(err))
	}
}

func TestVerifyingWithoutAKeyIsTheReceiversFault(t *testing.T) {
	t.Parallel()
	h := sign(t, message(), at(), signing(t, "k1", secretOld))
	for name, keys := range map[string][]delivery.VerifyingKey{"none": nil, "one without material": {{ID: "k1"}}, "one of no signing key": {delivery.SigningKey{ID: "k1"}.Verifying()}} {
		_, ours := delivery.Verify(h, message().Body, keys, at(), skew)
		_, standard := delivery.VerifyStandard(h, message().Body, keys, at(), skew)
		if !errors.Is(ours, delivery.ErrNoVerifyingKey) || !errors.Is(standard, delivery.ErrNoVerifyingKey) {
			t.Errorf("%s: %v, %v", name, ours, standard)
		}
	}
}

// Proves X2: the signature is bound to each of its parts. Every single change of
// every one of them, in every byte, breaks it.
func TestNoPartCanBeChanged(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]delivery.SigningKey{"HMAC": signing(t, "k1", secretOld), "Ed25519": signing(t, "k1", private())} {
		h, body, keys := sign(t, message(), at(), key), message().Body, verifying(key)
		for i := range body {
			changed := slices.Clone(body)
			changed[i] ^= 1
			if _, err := delivery.Verify(h, changed, keys, at(), skew); verdict(err) != "mismatch" {
				t.Fatalf("%s: byte %d of the body: %s", name, i, verdict(err))
			}
		}
		for _, part := range []string{
			delivery.HeaderID, delivery.HeaderTimestamp, delivery.HeaderAttempt, delivery.HeaderKeyID, delivery.HeaderSignature,
		} {
			for i := range len(h[part]) {
				for _, c := range []byte("0129azAZ-_,= ") {
					changed := maps.Clone(h)
					changed[part] = h[part][:i] + string(c) + h[part][i+1:]
					if changed[part] == h[part] {
						continue
					}
					if _, err := delivery.Verify(changed, body, keys, at(), 1<<62); err == nil {
						t.Fatalf("%s: %s as %q is accepted", name, part, changed[part])
					}
				}
			}
		}
	}
}

// Two messages never have the same signed bytes: the lengths say where each part ends.
func TestPartsCannotBeMovedIntoEachOther(t *testing.T) {
	t.Parallel()
	key := signing(t, "k1", secretOld)
	a := sign(t, delivery.Message{Delivery: "dl_1", EventID: "ev", Attempt: 21, Body: []byte("x")}, at(), key)
	b := sign(t, delivery.Message{Delivery: "dl_12", EventID: "ev", Attempt: 1, Body: []byte("x")}, at(), key)
	c := sign(t, delivery.Message{Delivery: "dl_1", EventID: "ev", Attempt: 2, Body: []byte("1x")}, at(), key)
	if a[delivery.HeaderSignature] == b[delivery.HeaderSignature] || a[delivery.HeaderSignature] == c[delivery.HeaderSignature] {
		t.Error("one signature for two messages")
	}
}

// Proves X2: every attempt has the same delivery id, a number and a time of its
// own, and the same bytes.
func TestAttemptsAreOneDelivery(t *testing.T) {
	t.Parallel()
	key := signing(t, "k1", secretOld)
	m := message()
	first := sign(t, m, at(), key)
	m.Attempt = 2
	second := sign(t, m, at().Add(7*time.Second), key)
	differ := map[string]bool{}
	for name := range first {
		if first[name] != second[name] {
			differ[name] = true
		}
	}
	want := map[string]bool{
		delivery.HeaderTimestamp: true, delivery.HeaderStandard: true, delivery.HeaderAttempt: true, delivery.HeaderSignature: true,
	}
	if diff := cmp.Diff(want, differ); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Proves T6 with an independent oracle: the Standard Webhooks library accepts
// what we send, with one key and with two, and for each of the two alone.
func TestTheReferenceLibraryAccepts(t *testing.T) {
	t.Parallel()
	now := time.Now() // the library reads the clock itself
	k1, k2 := signing(t, "k1", secretOld), signing(t, "k2", secretNew)
	for name, tt := range map[string]struct {
		keys    []delivery.SigningKey
		secrets []string
	}{
		"one key": {[]delivery.SigningKey{k1}, []string{secretOld}}, "two keys": {[]delivery.SigningKey{k2, k1}, []string{secretOld, secretNew}},
		"an Ed25519 key beside": {[]delivery.SigningKey{signing(t, "e1", private()), k1}, []string{secretOld}},
	} {
		for _, body := range []string{`{}`, "", "{\"snow\":\"☃\"}\r\n", strings.Repeat("x", 10<<10)} {
			m := message()
			m.Body = []byte(body)
			h := http.Header{}
			for name, value := range sign(t, m, now, tt.keys...) {
				h.Set(name, value)
			}
			for _, secret := range tt.secrets {
				library, err := reference.NewWebhook(secret)
				if err != nil {
					t.Fatal(err)
				}
				if err := library.Verify([]byte(body), h); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				h.Set("Webhook-Id", "dl_2")
				if err := library.Verify([]byte(body), h); err == nil {
					t.Errorf("%s: the library verifies nothing", name)
				}
				h.Set("Webhook-Id", "dl_1")
			}
		}
	}
}

// Our own receiver accepts what our sender sends: the shared secret, and the
// public key; within the tolerated skew and not beyond it.
func TestOurReceiverAccepts(t *testing.T) {
	t.Parallel()
	scheme := standardwebhooks.Adapter().Scheme
	k1, k2, e1 := signing(t, "k1", secretOld), signing(t, "k2", secretNew), signing(t, "e1", private())
	var published struct {
		Keys []struct {
			PublicKey string `json:"public_key"`
		}
	}
	if err := json.Unmarshal(delivery.PublicKeys([]delivery.SigningKey{e1}), &published); err != nil || len(published.Keys) != 1 {
		t.Fatal(err, published)
	}
	for name, tt := range map[string]struct {
		keys   []delivery.SigningKey
		trusts string
	}{
		"HMAC": {[]delivery.SigningKey{k1}, secretOld}, "two": {[]delivery.SigningKey{k2, k1}, secretOld}, "Ed25519": {[]delivery.SigningKey{e1, k1}, published.Keys[0].PublicKey},
	} {
		decoded, err := scheme.DecodeKey(tt.trusts)
		if err != nil {
			t.Fatal(err)
		}
		h := sign(t, message(), at(), tt.keys...)
		for _, late := range []time.Duration{0, skew, -skew, skew + time.Second, -skew - time.Second} {
			meta, err := scheme.Metadata(h)
			if err != nil {
				t.Fatal(err)
			}
			_, err = scheme.Verify(signature.Request{Header: h, Body: message().Body}, meta, []signature.Key{{Version: "v", Secret: decoded}})
			if err == nil {
				err = scheme.Fresh(meta, at().Add(late))
			}
			want := map[bool]string{true: "valid", false: map[bool]string{true: "stale", false: "future"}[late > 0]}[late.Abs() <= skew]
			if verdict(err) != want {
				t.Errorf("%s, %s late: %s, want %s", name, late, verdict(err), want)
			}
		}
	}
}

func TestTheStandardSchemeIsSound(t *testing.T) {
	t.Parallel()
	if err := delivery.StandardScheme().Validate(); err != nil {
		t.Error(err)
	}
}

// Proves X10's ground: a key that others could sign with, or that cannot sign, is no key.
func TestKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	whole := private()
	halves := delivery.NewPrivateKey([]byte("another seed of this test alone!"))[:len("whsk_")+43] + whole[len("whsk_")+43:]
	for name, tt := range map[string]struct {
		id, text string
		want     error
	}{
		"no id":                        {"", secretOld, delivery.ErrKeyID},
		"a long id":                    {strings.Repeat("k", 41), secretOld, delivery.ErrKeyID},
		"an id with a comma":           {"k1,v1", secretOld, delivery.ErrKeyID},
		"an id with a space":           {"k 1", secretOld, delivery.ErrKeyID},
		"an id with a letter of ours":  {"clé", secretOld, delivery.ErrKeyID},
		"id and secret swapped":        {"whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1", "k1", delivery.ErrKeyID},
		"no prefix":                    {"k1", strings.TrimPrefix(secretOld, "whsec_"), delivery.ErrKeyText},
		"a public key":                 {"k1", "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", delivery.ErrKeyText},
		"nothing":                      {"k1", "", delivery.ErrKeyText},
		"an empty secret":              {"k1", "whsec_", signature.ErrSecretEmpty},
		"a short secret":               {"k1", "whsec_dG9vIHNob3J0IHRvbyBzaG9ydA==", signature.ErrSecretTooShort},
		"a long secret":                {"k1", "whsec_" + strings.Repeat("QUFB", 22), delivery.ErrKeyLong},
		"a line end":                   {"k1", secretOld + "\n", signature.ErrSecretSpaced},
		"no base64":                    {"k1", "whsec_!!!!", signature.ErrSecretUndecodable},
		"printed by Standard Webhooks": {"k1", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", signature.ErrSecretPublished},
		"half a private key":           {"k1", "whsk_" + strings.Repeat("QUFB", 9), signature.ErrSecretUndecodable},
		"halves of two":                {"k1", halves, delivery.ErrKeyHalf},
	} {
		k, err := delivery.ParseSigningKey(tt.id, tt.text)
		if !errors.Is(err, tt.want) || k.ID != "" {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
			continue
		}
		for _, part := range []string{tt.id, tt.text} {
			if len(part) > 5 && strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error repeats it: %v", name, err)
			}
		}
	}
	for name, tt := range map[string]struct {
		id, text string
		want     error
	}{
		"a private key":     {"k1", whole, delivery.ErrOpenText},
		"an id of a secret": {"whsk_x", secretOld, delivery.ErrKeyID},
		"no prefix":         {"k1", "c2VjcmV0", delivery.ErrOpenText},
		"a short public":    {"k1", "whpk_QUFB", signature.ErrSecretUndecodable},
	} {
		if _, err := delivery.ParseVerifyingKey(tt.id, tt.text); !errors.Is(err, tt.want) {
			t.Errorf("to verify with: %s: %v, want %v", name, err, tt.want)
		}
	}
}

func TestMadeSecretsAreKeys(t *testing.T) {
	t.Parallel()
	random := []byte("32 bytes of chance in this test!")
	if got := delivery.NewSecret(random); got != "whsec_MzIgYnl0ZXMgb2YgY2hhbmNlIGluIHRoaXMgdGVzdCE=" {
		t.Error(got)
	}
	for _, text := range []string{delivery.NewSecret(random), delivery.NewPrivateKey(random)} {
		k := signing(t, "k1", text)
		if _, err := delivery.Verify(sign(t, message(), at(), k), message().Body, verifying(k), at(), skew); err != nil {
			t.Error(err)
		}
	}
	// A seed alone is the same key.
	long, short := signing(t, "k1", private()), signing(t, "k1", "whsk_YSBwcml2YXRlIHNlZWQgb2YgdGhpcyB0ZXN0IG9ubHk=")
	if diff := cmp.Diff(sign(t, message(), at(), long), sign(t, message(), at(), short)); diff != "" {
		t.Error(diff)
	}
	for name, attempt := range map[string]func(){
		"a short secret": func() { delivery.NewSecret(random[:23]) }, "a long one": func() { delivery.NewSecret(bytes.Repeat(random, 3)) },
		"a short seed": func() { delivery.NewPrivateKey(random[:31]) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was made", name)
				}
			}()
			attempt()
		}()
	}
}

func TestThePublishedListHoldsPublicKeysAlone(t *testing.T) {
	t.Parallel()
	e1, e2 := signing(t, "e1", private()), signing(t, "e2", delivery.NewPrivateKey([]byte("another seed of this test alone!")))
	e1.NotAfter = at().In(time.FixedZone("", 3600))
	got := string(delivery.PublicKeys([]delivery.SigningKey{e2, signing(t, "k1", secretOld), {ID: "none"}, e1}))
	want := `{"keys":[` +
		`{"kid":"e2","alg":"ed25519","public_key":"whpk_Td7T8cUg75CLESyK4i8DRAcb8RrKOkgplwSLpMKSTv0=","not_after":null},` +
		`{"kid":"e1","alg":"ed25519","public_key":"whpk_9oOybm9jRAzn9wATuGMeEZH7Zfck/MBzceNbSCqXUK0=","not_after":"2026-03-01T12:00:00Z"}]}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := string(delivery.PublicKeys(nil)); got != `{"keys":[]}` {
		t.Error(got)
	}
}

// Proves M4 and X10: a key prints as nothing, however it is printed, and is in no header.
func TestAKeyDoesNotPrint(t *testing.T) {
	t.Parallel()
	hmacKey, edKey := signing(t, "k1", "whsec_U0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVU"), signing(t, "e1", delivery.NewPrivateKey([]byte("SECRETSECRETSECRETSECRETSECRET!!")))
	type holder struct {
		Key    any
		hidden any
	}
	var printed strings.Builder
	for _, k := range []any{hmacKey, edKey, hmacKey.Verifying(), &hmacKey, []delivery.SigningKey{edKey}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%c", "%U"} {
			fmt.Fprintf(&printed, verb+verb, k, holder{k, k})
		}
		slog.New(slog.NewJSONHandler(&printed, nil)).Info("x", "key", k)
		if err := json.NewEncoder(&printed).Encode(map[string]any{"key": k}); err != nil {
			t.Fatal(err)
		}
	}
	for _, value := range sign(t, message(), at(), edKey, hmacKey) {
		printed.WriteString(value)
	}
	for _, leak := range []string{"SECRET", "U0VDUkVU", "534543524554", "83 69 67", "123 105", "S E C", "0x53"} {
		if strings.Contains(strings.ToUpper(printed.String()), strings.ToUpper(leak)) {
			t.Errorf("%q leaked", leak)
		}
	}
	if got := hmacKey.String() + edKey.LogValue().String() + edKey.Verifying().String() + hmacKey.Verifying().LogValue().String(); got != strings.Repeat("[redacted]", 4) {
		t.Error(got)
	}
}

// FuzzVerify holds that whatever a stranger sends is refused with a cause, and
// that what it accepts is what was signed.
func FuzzVerify(f *testing.F) {
	key := signing(f, "k1", secretOld)
	good := sign(f, message(), at(), key)
	body := message().Body
	for _, v := range readVectors(f).Vectors {
		h := v.Headers
		f.Add(h["webhook-id"], h["webhook-timestamp"], h["webhook-signature"], h["dakghar-key-id"], h["dakghar-attempt"], h["dakghar-signature"], []byte(v.Body))
	}
	f.Add(good["webhook-id"], good["webhook-timestamp"], good["webhook-signature"], "k1", "1", good["dakghar-signature"], body)
	f.Fuzz(func(t *testing.T, id, timestamp, standard, kid, attempt, sig string, body []byte) {
		h := map[string]string{
			"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": standard,
			"dakghar-key-id": kid, "dakghar-attempt": attempt, "dakghar-event-id": "ev_1", "dakghar-signature": sig,
		}
		got, err := delivery.Verify(h, body, verifying(key), at(), skew)
		if err == nil {
			again := sign(t, delivery.Message{Delivery: got.Delivery, EventID: got.Event, Attempt: got.Attempt, Body: body}, got.At, key)
			if again["webhook-id"] != id || again["webhook-timestamp"] != timestamp || again["dakghar-attempt"] != attempt || !strings.Contains(sig, again["dakghar-signature"]) {
				t.Errorf("accepted, and signed otherwise: %q", h)
			}
		} else if _, ok := errors.AsType[*signature.Refusal](err); !ok {
			t.Errorf("no cause: %v", err)
		}
		if _, err := delivery.VerifyStandard(h, body, verifying(key), at(), skew); err != nil {
			if _, ok := errors.AsType[*signature.Refusal](err); !ok {
				t.Errorf("no cause: %v", err)
			}
		}
	})
}

func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	key := signing(t, "k1", secretOld)
	for name, change := range map[string]func(map[string]string){
		"a long list": func(h map[string]string) {
			h[delivery.HeaderSignature] += strings.Repeat(" kid=x,v9=", 300)
		},
		"many signatures": func(h map[string]string) {
			for i := range signature.CandidatesMax {
				h[delivery.HeaderSignature] += " kid=x" + strconv.Itoa(i) + ",v9=a"
			}
		},
		"a line end in a signature": func(h map[string]string) {
			h[delivery.HeaderSignature] = strings.Replace(h[delivery.HeaderSignature], "v1=", "v1=\n", 1)
		},
		"a long id":       func(h map[string]string) { h[delivery.HeaderID] = strings.Repeat("d", 81) },
		"a long event id": func(h map[string]string) { h[delivery.HeaderEventID] = strings.Repeat("d", 3000) },
		"a long attempt":  func(h map[string]string) { h[delivery.HeaderAttempt] = strings.Repeat("1", 10) },
		"a long time":     func(h map[string]string) { h[delivery.HeaderTimestamp] = strings.Repeat("1", 13) },
	} {
		h := sign(t, message(), at(), key)
		change(h)
		if _, err := delivery.Verify(h, message().Body, verifying(key), at(), skew); verdict(err) != "malformed" {
			t.Errorf("%s: %s", name, verdict(err))
		}
	}
}

// FuzzKeys holds that a key's text is either refused, in words that do not repeat
// it, or makes signatures that verify.
func FuzzKeys(f *testing.F) {
	for _, k := range readVectors(f).Keys {
		f.Add(k.KID, k.Signs)
		f.Add("", k.Verifies)
	}
	f.Add("k1", secretOld)
	f.Add("k1", "whsec_")
	f.Add("k1", "whsk_"+strings.Repeat("A", 88))
	f.Fuzz(func(t *testing.T, id, text string) {
		_, verifyErr := delivery.ParseVerifyingKey(id, text)
		k, err := delivery.ParseSigningKey(id, text)
		for _, e := range []error{err, verifyErr} {
			if e != nil && len(text) > 20 && strings.Contains(e.Error(), text) {
				t.Errorf("the error repeats the secret: %v", e)
			}
		}
		if err != nil {
			return
		}
		got, err := delivery.Verify(sign(t, message(), at(), k), message().Body, verifying(k), at(), skew)
		if err != nil || got.KeyID != id {
			t.Errorf("%v by %q", err, got.KeyID)
		}
	})
}
