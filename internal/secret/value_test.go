package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/webhook"
)

const canary = "whsec_c2VjcmV0LWNhbmFyeQ"

// Proves S3, M4: nothing that holds a secret prints it.
func TestEverythingPrintsRedacted(t *testing.T) {
	v := NewValue([]byte(canary))
	c := New(Config{Now: time.Now, Client: answers(canary)})
	if _, err := c.Secret(context.Background(), webhook.Endpoint{Secret: "s"}, "v1"); err != nil {
		t.Fatal(err)
	}
	type holder struct {
		Shown  Value
		hidden Value
	}
	things := map[string]any{
		"value": v, "pointer": &v, "holder": holder{v, v}, "map": map[string]Value{"k": v},
		"cache": c, "cache value": []any{c}, "entries": c.entries, "store": NewStore(nil, ""),
		"finding": c.look(key{"s", "v1"}),
	}
	for what, thing := range things {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			printed := fmt.Sprintf(verb, thing)
			for _, shape := range []string{canary, fmt.Sprint([]byte(canary)), fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary)} {
				if strings.Contains(printed, strings.Trim(shape, "[]")) {
					t.Errorf("%s with %s shows the secret", what, verb)
				}
			}
		}
	}
	if got := fmt.Sprintf("%v %+v %#v %s %x", v, v, v, v, v); got != strings.TrimSpace(strings.Repeat("[redacted] ", 5)) {
		t.Errorf("a value prints %q", got)
	}
	encoded, err := json.Marshal(holder{v, v})
	if got := string(encoded); err != nil || got != `{"Shown":"[redacted]"}` {
		t.Errorf("as JSON: %s, %v", got, err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", v, "holder", holder{v, v})
	if strings.Contains(log.String(), canary) {
		t.Error("a log line shows the secret")
	}
}

// Proves S5: what rests in the cache is sealed, and bound to its place.
func TestValuesRestSealed(t *testing.T) {
	c := New(Config{Now: time.Now, Client: answers(canary)})
	k := key{secret: "s", version: "v1"}
	if _, err := c.Secret(context.Background(), webhook.Endpoint{Secret: "s"}, "v1"); err != nil {
		t.Fatal(err)
	}
	sealed := c.entries[k].sealed
	if len(sealed) != len(canary)+28 || bytes.Contains(sealed, []byte(canary[:6])) {
		t.Errorf("an entry of %d bytes is not a nonce, the sealed value and a tag", len(sealed))
	}
	if got := string(c.vault.open(k, sealed)); got != canary {
		t.Error("a sealed value does not open")
	}
	defer func() {
		if recover() == nil {
			t.Error("a sealed value opened in another place")
		}
	}()
	c.vault.open(key{secret: "s", version: "v2"}, sealed)
}

// Who looked before a call ended, and joins after it, needs no call of his own.
func TestALateJoinerMakesNoCall(t *testing.T) {
	calls := 0
	c := New(Config{Now: time.Now, Client: counting{answers(canary), &calls}})
	k := key{secret: "s", version: "v1"}
	for range 2 {
		if v, err := c.fetch(context.Background(), k); err != nil || string(v.Bytes()) != canary {
			t.Fatalf("fetch: %v, %v", v, err)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

type counting struct {
	Getter
	calls *int
}

func (c counting) GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput, opts ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	*c.calls++
	return c.Getter.GetSecretValue(ctx, in, opts...)
}

func TestAValueIsACopy(t *testing.T) {
	b := []byte("key")
	v := NewValue(b)
	b[0] = 'X'
	clear(v.Bytes())
	if got := string(v.Bytes()); got != "key" {
		t.Errorf("the value became %q", got)
	}
}

type answers string

func (a answers) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	return &secretsmanager.GetSecretValueOutput{VersionId: in.VersionId, SecretString: aws.String(string(a))}, nil
}
