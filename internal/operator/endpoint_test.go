package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

// Secrets of these tests: made up, of the right form for Stripe.
const (
	first  = "whsec_9sK2vTq7Lr4Xw8Bn3Zd6Hy1Jc5Mf0PgA"
	second = "whsec_4bN7mQe2Ws9Rt6Yu3Io1Pa8Sd5Fg0HjK"
	third  = "whsec_0zX3cV6bN9mA2sD5fG8hJ1kL4qW7eR1t"
)

func demo() operator.NewEndpoint {
	return operator.NewEndpoint{Provider: "stripe", ID: "demo", Secret: operator.NewSecret(first), Why: "a trial"}
}

// create makes the demo endpoint in a new world.
func create(t *testing.T) (*operatortest.World, *operator.Operator) {
	t.Helper()
	w := operatortest.New()
	o := w.Operator()
	if _, err := o.Create(t.Context(), demo()); err != nil {
		t.Fatal(err)
	}
	return w, o
}

// wantRefusal fails unless err is a refusal with this code, and returns it.
func wantRefusal(t *testing.T, err error, code string) *operator.Refusal {
	t.Helper()
	r, ok := errors.AsType[*operator.Refusal](err)
	if !ok || r.Code != code {
		t.Fatalf("got error %v, want a refusal %q", err, code)
	}
	for _, secret := range []string{first, second, third} {
		if strings.Contains(fmt.Sprintf("%+v", r), secret) {
			t.Errorf("the refusal shows a secret: %+v", r)
		}
	}
	return r
}

// Proves R3 (recorded), S1.
func TestCreateStoresTheSecretAndTheRowAndRecordsIt(t *testing.T) {
	t.Parallel()
	w, _ := create(t)

	got := w.Endpoints["demo"]
	if len(got.Keys) != 1 {
		t.Fatalf("%d keys, want 1", len(got.Keys))
	}
	version := got.Keys[0].Version
	want := webhook.Endpoint{
		ID: "demo", Provider: "stripe", Tenant: "default", Scope: "demo", Secret: "test/endpoint/demo",
		Overlap: overlapOf(t, w, "stripe"), CreatedAt: w.Clock, Revision: 1,
		Keys: []webhook.TrustedKey{{Version: version, AddedAt: w.Clock}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoint (-want +got):\n%s", diff)
	}
	wantSecrets := map[string]map[webhook.KeyVersion]string{"test/endpoint/demo": {version: first}}
	if diff := cmp.Diff(wantSecrets, w.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	wantActs := []webhook.Act{{ID: "act-1", At: w.Clock, Name: "endpoint create", Subject: "endpoint demo", Who: "ada", Why: "a trial"}}
	if diff := cmp.Diff(wantActs, w.Acts); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
}

func overlapOf(t *testing.T, w *operatortest.World, name webhook.Provider) time.Duration {
	t.Helper()
	a, ok := w.Providers.Lookup(name)
	if !ok {
		t.Fatalf("no adapter %s", name)
	}
	return a.Overlap
}

func TestCreateSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	got, err := w.Operator().Create(t.Context(), demo())
	if err != nil {
		t.Fatal(err)
	}
	want := []operator.Step{
		{Text: "give https://door.test/in/stripe/demo to Stripe as the address of the webhook, with the secret that you gave here"},
		{Text: "or send a sample event to it:", Command: []string{"send", "--provider", "stripe", "--endpoint", "demo", "--type", "payment_intent.succeeded"}},
	}
	if diff := cmp.Diff(want, got.Next); diff != "" {
		t.Errorf("next steps (-want +got):\n%s", diff)
	}
	if got.URL != "https://door.test/in/stripe/demo" {
		t.Errorf("URL %s", got.URL)
	}
}

func TestTheSuggestedSampleCanBeSentToEveryProvider(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	o := w.Operator()
	for _, a := range w.Providers.All() {
		created, err := o.Create(t.Context(), operator.NewEndpoint{
			Provider: a.Name, ID: webhook.EndpointID(a.Name), Secret: operator.NewSecret(secrets()[a.Name]),
		})
		if err != nil {
			t.Fatal(err)
		}
		command := created.Next[1].Command
		sent, _ := send(t, o, operator.Traffic{
			Endpoint: webhook.EndpointID(a.Name), Type: webhook.EventType(command[len(command)-1]), Concurrency: 1,
		})
		if sent[0].Result != "accepted" {
			t.Errorf("%s: dakghar %s: %s", a.Name, strings.Join(command, " "), sent[0].Result)
		}
	}
}

func TestCreateAgainChangesNothing(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	before := w.Endpoints["demo"]
	w.Advance(time.Hour)

	again, err := o.Create(t.Context(), demo())
	if err != nil || !again.Existed {
		t.Fatalf("existed %v, error %v", again.Existed, err)
	}
	if diff := cmp.Diff(before, w.Endpoints["demo"]); diff != "" {
		t.Errorf("endpoint (-before +after):\n%s", diff)
	}
	if len(w.Acts) != 1 || len(w.Secrets["test/endpoint/demo"]) != 1 {
		t.Errorf("%d acts and %d versions, want 1 and 1", len(w.Acts), len(w.Secrets["test/endpoint/demo"]))
	}
}

// A crash between the two writes: the secret is there, the row is not.
func createHalf(t *testing.T) (*operatortest.World, *operator.Operator) {
	t.Helper()
	w := operatortest.New()
	w.Fail = operatortest.Down("CreateEndpointBy")
	o := w.Operator()
	_, err := o.Create(t.Context(), demo())
	wantRefusal(t, err, "unavailable")
	if len(w.Secrets) != 1 || len(w.Endpoints) != 0 {
		t.Fatalf("%d secrets and %d endpoints, want 1 and 0", len(w.Secrets), len(w.Endpoints))
	}
	w.Fail = func(string) error { return nil }
	return w, o
}

func TestCreateFinishesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	w, o := createHalf(t)
	created, err := o.Create(t.Context(), demo())
	if err != nil || created.Existed {
		t.Fatalf("existed %v, error %v", created.Existed, err)
	}
	if len(w.Secrets["test/endpoint/demo"]) != 1 || len(w.Endpoints) != 1 {
		t.Errorf("%d versions and %d endpoints, want 1 and 1", len(w.Secrets["test/endpoint/demo"]), len(w.Endpoints))
	}
}

func TestCreateRefusesAnotherSecretAfterACrash(t *testing.T) {
	t.Parallel()
	w, o := createHalf(t)
	n := demo()
	n.Secret = operator.NewSecret(second)
	_, err := o.Create(t.Context(), n)
	wantRefusal(t, err, "secret_exists")
	if len(w.Endpoints) != 0 {
		t.Error("an endpoint was made without its secret")
	}
}

func TestCreateRefusesATakenID(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*operator.NewEndpoint)
		want   string
	}{
		{"by another secret", func(n *operator.NewEndpoint) { n.Secret = operator.NewSecret(second) }, "endpoint demo exists with another secret"},
		{"by another tenant", func(n *operator.NewEndpoint) { n.Tenant = "acme" }, "endpoint demo exists with another tenant; ids are never used again"},
		{"by another scope", func(n *operator.NewEndpoint) { n.Scope = "both" }, "endpoint demo exists with another scope; ids are never used again"},
		{"by another provider", func(n *operator.NewEndpoint) {
			n.Provider, n.Secret = "github", operator.NewSecret(strings.TrimPrefix(second, "whsec_"))
		}, "endpoint demo exists with another provider; ids are never used again"},
		{"by other types", func(n *operator.NewEndpoint) { n.Types = []webhook.EventType{"payment_intent.succeeded"} }, "endpoint demo exists with another list of types; ids are never used again"},
		{"by another overlap", func(n *operator.NewEndpoint) { n.Overlap = time.Hour }, "endpoint demo exists with another overlap; ids are never used again"},
		{"by asking for canaries", func(n *operator.NewEndpoint) { n.Canary = true }, "endpoint demo exists with another choice of --canary; ids are never used again"},
		{"by another choice of unknown types", func(n *operator.NewEndpoint) { n.KeepUnknown = true }, "endpoint demo exists with another choice of --keep-unknown; ids are never used again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, o := create(t)
			n := demo()
			tt.change(&n)
			_, err := o.Create(t.Context(), n)
			if got := wantRefusal(t, err, "endpoint_exists").Problem; got != tt.want {
				t.Errorf("problem %q, want %q", got, tt.want)
			}
			if w.Endpoints["demo"].Revision != 1 || len(w.Secrets) != 1 {
				t.Error("something was changed")
			}
		})
	}
}

func TestCreateRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*operator.NewEndpoint)
		want   string // in the problem
	}{
		{"a provider that nobody knows", func(n *operator.NewEndpoint) { n.Provider = "strip" }, `--provider "strip" is none of github, paddle, razorpay, shopify, slack, standard-webhooks, stripe, svix`},
		{"an id with capitals", func(n *operator.NewEndpoint) { n.ID = "Demo" }, "--id is 1 to 40 lower-case letters"},
		{"no id", func(n *operator.NewEndpoint) { n.ID = "" }, "--id is 1 to 40"},
		{"a tenant that is too long", func(n *operator.NewEndpoint) { n.Tenant = webhook.Tenant(strings.Repeat("a", 33)) }, "--tenant is 1 to 32"},
		{"a scope with a separator", func(n *operator.NewEndpoint) { n.Scope = "a#b" }, "--scope is 1 to 40"},
		{"an overlap without end", func(n *operator.NewEndpoint) { n.Overlap = webhook.OverlapMax + 1 }, "--overlap is more than 0 and at most 2160h"},
		{"a negative overlap", func(n *operator.NewEndpoint) { n.Overlap = -time.Hour }, "--overlap is more than 0"},
		{"a type of another provider", func(n *operator.NewEndpoint) { n.Types = []webhook.EventType{"orders/create"} }, `--type "orders/create" is no event type that the stripe adapter knows`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := operatortest.New()
			n := demo()
			tt.change(&n)
			_, err := w.Operator().Create(t.Context(), n)
			r := wantRefusal(t, err, "usage")
			if !r.Usage || !strings.Contains(r.Problem, tt.want) {
				t.Errorf("problem %q, want it to say %q", r.Problem, tt.want)
			}
			if len(w.Secrets)+len(w.Endpoints)+len(w.Acts) != 0 {
				t.Error("something was stored")
			}
		})
	}
}

func TestCreateNamesAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	n := demo()
	n.ID, n.Scope, n.Tenant = "UP", "UP", "UP"
	_, err := operatortest.New().Operator().Create(t.Context(), n)
	got := strings.Count(wantRefusal(t, err, "usage").Problem, "--")
	if got != 3 {
		t.Errorf("%d problems named, want 3", got)
	}
}

// A missing, empty or undecodable secret is refused when the endpoint is created.
func TestCreateRefusesWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, provider, title, secret string
		why                           error
	}{
		{"an empty one", "stripe", "Stripe", "", signature.ErrSecretEmpty},
		{"one with a line end inside", "stripe", "Stripe", first + "\n" + first, signature.ErrSecretSpaced},
		{"an API key", "stripe", "Stripe", "sk_test_4eC39HqLyjWDarjtT1zdp7dc", signature.ErrSecretForeign},
		{"one from the documentation", "stripe", "Stripe", "whsec_test_secret", signature.ErrSecretPublished},
		{"one that does not decode", "standard-webhooks", "Standard Webhooks", "whsec_!!!", signature.ErrSecretUndecodable},
		{"one that is too short", "github", "GitHub", "hi", signature.ErrSecretTooShort},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := operatortest.New()
			n := demo()
			n.Provider, n.Secret = webhook.Provider(tt.provider), operator.NewSecret(tt.secret)
			_, err := w.Operator().Create(t.Context(), n)
			want := "this cannot be a signing secret of " + tt.title + ": " + strings.TrimPrefix(tt.why.Error(), "signature: ")
			if got := wantRefusal(t, err, "secret_refused").Problem; got != want {
				t.Errorf("problem %q, want %q", got, want)
			}
			if len(w.Secrets)+len(w.Endpoints)+len(w.Acts) != 0 {
				t.Error("something was stored")
			}
		})
	}
}

func TestNothingIsDoneForAnUnknownCaller(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	w.Fail = operatortest.Down("Who")
	_, err := w.Operator().Create(t.Context(), demo())
	wantRefusal(t, err, "caller_unknown")
	if len(w.Secrets)+len(w.Endpoints) != 0 {
		t.Error("something was stored")
	}
}

func TestASecretPrintsAsRedacted(t *testing.T) {
	t.Parallel()
	type holder struct {
		Shown  operator.Secret
		hidden operator.Secret
	}
	s := operator.NewSecret(first)
	for _, v := range []any{s, &s, holder{s, s}, &holder{s, s}, demo(), operator.Traffic{Secret: s}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, first) || strings.Contains(text, fmt.Sprintf("%x", first)) {
				t.Errorf("%s of %T shows the secret: %s", verb, v, text)
			}
		}
	}
}
