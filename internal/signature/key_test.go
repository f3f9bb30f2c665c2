package signature_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"dakghar/internal/signature"
)

// Proves T2: a secret with which others could sign is refused, in words that
// do not repeat it.
func TestSecretsThatAreRefused(t *testing.T) {
	t.Parallel()
	text := bodyOnly("x-signature", "", signature.HMACSHA256, signature.Hex)
	text.Methods[0].Key.Foreign = []string{"sk_"}
	hexKey := bodyOnly("x-signature", "", signature.HMACSHA256, signature.Hex)
	hexKey.Methods[0].Key.Encoding = signature.Hex
	for _, tt := range []struct {
		name   string
		scheme *signature.Scheme
		secret string
		want   error
	}{
		{"empty text", text, "", signature.ErrSecretEmpty},
		{"short text", text, "seven77", signature.ErrSecretTooShort},
		{"a line end that an editor left", text, "a good secret\n", signature.ErrSecretSpaced},
		{"a space before", text, " a good secret", signature.ErrSecretSpaced},
		{"white space only", text, "            ", signature.ErrSecretSpaced},
		{"a control character inside", text, "a good\x00secret", signature.ErrSecretSpaced},
		{"bytes that are not UTF-8", text, "a good secret\xff", signature.ErrSecretSpaced},
		{"an API key of the same sender", text, "sk_live_4eC39HqLyjWDarjtT1zdp7dc", signature.ErrSecretForeign},
		{"longer than any", text, strings.Repeat("s", 1025), signature.ErrSecretTooLong},
		{"printed by Zendesk", text, "dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==", signature.ErrSecretPublished},
		{"printed by GitHub", text, "It's a Secret to Everybody", signature.ErrSecretPublished},
		{"hexadecimal that is none", hexKey, "not hexadecimal at all", signature.ErrSecretUndecodable},
		{"hexadecimal of odd length", hexKey, "0123456789abcdef0", signature.ErrSecretUndecodable},
		{"hexadecimal that is short", hexKey, "0123456789", signature.ErrSecretTooShort},
		{"the prefix alone, which is an empty key", standard(), "whsec_", signature.ErrSecretEmpty},
		{"base64 that is none", standard(), "whsec_not base64 at all", signature.ErrSecretUndecodable},
		{"base64 with loose bits", standard(), "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnR=", signature.ErrSecretUndecodable},
		{"base64 that is short", standard(), "whsec_dG9vIHNob3J0", signature.ErrSecretTooShort},
		{"printed by Standard Webhooks", standard(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", signature.ErrSecretPublished},
		{"printed, without its prefix", standard(), "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", signature.ErrSecretPublished},
		{"a private key", standard(), testPrivate, signature.ErrSecretPrivate},
		{"a public key of the wrong length", standard(), "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbO", signature.ErrSecretUndecodable},
		{"an empty public key", standard(), "whpk_", signature.ErrSecretEmpty},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.scheme.DecodeKey(tt.secret)
			if !errors.Is(err, tt.want) || got != nil {
				t.Fatalf("got %d bytes, %v; want %v", len(got), err, tt.want)
			}
			if len(tt.secret) > 6 && strings.Contains(err.Error(), strings.TrimSpace(tt.secret)) && strings.TrimSpace(tt.secret) != "" {
				t.Errorf("the error repeats the secret: %v", err)
			}
		})
	}
}

// The floor and the list are for deployed endpoints; vectors need neither.
func TestTestKeysMayBePrintedAndShort(t *testing.T) {
	t.Parallel()
	s := bodyOnly("x-signature", "", signature.HMACSHA256, signature.Hex)
	for _, secret := range []string{"Convoy", "mysecret"} {
		if _, err := s.DecodeKey(secret); err == nil {
			t.Errorf("%q was accepted", secret)
		}
		if _, err := s.DecodeTestKey(secret); err != nil {
			t.Errorf("%q: %v", secret, err)
		}
	}
	if _, err := s.DecodeTestKey(""); !errors.Is(err, signature.ErrSecretEmpty) {
		t.Errorf("an empty key, with which anybody can sign: %v", err)
	}
}

func TestASecretIsDecodedWithAndWithoutItsPrefix(t *testing.T) {
	t.Parallel()
	with, err := standard().DecodeKey("whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=")
	if err != nil {
		t.Fatal(err)
	}
	without, err := standard().DecodeKey("Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=")
	if err != nil || !bytes.Equal(with, without) {
		t.Errorf("two keys: %v", err)
	}
}

// Proves S3: a key prints as nothing, however it is printed.
func TestAKeyDoesNotPrint(t *testing.T) {
	t.Parallel()
	k := signature.Key{Version: "v", Secret: []byte("SECRET")}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k, "keys", []signature.Key{k}, "pointer", &k)
	encoded, err := json.Marshal(map[string]any{"key": k, "pointer": &k})
	if err != nil {
		t.Fatal(err)
	}
	type holder struct {
		Key  signature.Key
		Keys []signature.Key
	}
	printed := log.String() + string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%c", "%U"} {
		printed += fmt.Sprintf(verb, k) + fmt.Sprintf(verb, &k) + fmt.Sprintf(verb, holder{k, []signature.Key{k}})
	}
	for _, leak := range []string{"SECRET", "U0VDUkVU", "534543524554", "83 69 67", "123 105", "S E C", "0x53"} {
		if strings.Contains(strings.ToUpper(printed), strings.ToUpper(leak)) {
			t.Errorf("%q leaked: %s", leak, printed)
		}
	}
	if got := k.String() + k.GoString() + k.LogValue().String(); got != "[redacted][redacted][redacted]" {
		t.Errorf("got %s", got)
	}
}
