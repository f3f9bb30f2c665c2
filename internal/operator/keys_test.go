package operator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

func rotate(t *testing.T, o *operator.Operator, secret string) operator.Added {
	t.Helper()
	added, err := o.Rotate(t.Context(), "demo", operator.NewSecret(secret), "")
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// matched notes that a key was seen in use, as the front door does.
func matched(t *testing.T, w *operatortest.World, v webhook.KeyVersion) {
	t.Helper()
	e, ok := w.Endpoints["demo"].WithFirstMatch(v, w.Clock)
	if !ok {
		t.Fatalf("nothing to note about %s", v)
	}
	e.Revision++
	w.Endpoints["demo"] = e
}

// Proves S2, S4: both are trusted, the previous one until the overlap after the
// first match of the new one, or the hard limit before that.
func TestRotateKeepsThePreviousKeyUntilTheOverlapIsOver(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	began := w.Clock
	old := w.Endpoints["demo"].Keys[0].Version
	w.Advance(time.Hour)
	rotated := w.Clock
	added := rotate(t, o, second)
	overlap := w.Endpoints["demo"].Overlap

	want := []operator.Key{
		{Version: added.Version, Trust: operator.Trusted, Newest: true, AddedAt: rotated},
		{Version: old, Trust: operator.Trusted, AddedAt: began, TrustedUntil: rotated.Add(webhook.OverlapMax)},
	}
	wantKeys(t, o, want)

	w.Advance(time.Hour)
	matched(t, w, added.Version)
	want[0].FirstMatch = w.Clock
	want[1].TrustedUntil = w.Clock.Add(overlap)
	wantKeys(t, o, want)

	w.Advance(overlap)
	want[1].Trust = operator.Ended
	wantKeys(t, o, want)
}

func wantKeys(t *testing.T, o *operator.Operator, want []operator.Key) {
	t.Helper()
	got, err := o.Keys(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestAnExplicitEndOfTrustIsShown(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	e := w.Endpoints["demo"]
	e.Keys[0].NotAfter = w.Clock.Add(time.Minute)
	w.Endpoints["demo"] = e
	wantKeys(t, o, []operator.Key{{
		Version: e.Keys[0].Version, Trust: operator.Trusted, Newest: true, AddedAt: w.Clock, TrustedUntil: w.Clock.Add(time.Minute),
	}})
}

func TestRotateAgainChangesNothing(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	added := rotate(t, o, second)
	before := w.Endpoints["demo"]
	again := rotate(t, o, second)
	if !again.Existed || again.Version != added.Version {
		t.Errorf("existed %v as %s, want %s", again.Existed, again.Version, added.Version)
	}
	if diff := cmp.Diff(before, w.Endpoints["demo"]); diff != "" {
		t.Errorf("endpoint (-before +after):\n%s", diff)
	}
	if len(w.Acts) != 2 || len(w.Secrets["test/endpoint/demo"]) != 2 {
		t.Errorf("%d acts and %d versions, want 2 and 2", len(w.Acts), len(w.Secrets["test/endpoint/demo"]))
	}
}

// A crash between storing the value and listing it.
func TestRotateFinishesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	w.Fail = operatortest.Down("UpdateEndpointBy")
	if _, err := o.Rotate(t.Context(), "demo", operator.NewSecret(second), ""); err == nil {
		t.Fatal("the registry was down and rotate succeeded")
	}
	w.Fail = func(string) error { return nil }
	if rotate(t, o, second); len(w.Secrets["test/endpoint/demo"]) != 2 || len(w.Endpoints["demo"].Keys) != 2 {
		t.Errorf("%d versions and %d keys, want 2 and 2", len(w.Secrets["test/endpoint/demo"]), len(w.Endpoints["demo"].Keys))
	}
}

// The operator gave up on that one, and has another secret now.
func TestRotateStepsOverAnAbandonedOne(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	w.Fail = operatortest.Down("UpdateEndpointBy")
	if _, err := o.Rotate(t.Context(), "demo", operator.NewSecret(second), ""); err == nil {
		t.Fatal("the registry was down and rotate succeeded")
	}
	w.Fail = func(string) error { return nil }
	added := rotate(t, o, third)
	if got := w.Secrets["test/endpoint/demo"][added.Version]; got != third {
		t.Error("the listed version has not the given secret")
	}
	if len(w.Secrets["test/endpoint/demo"]) != 3 || len(w.Endpoints["demo"].Keys) != 2 {
		t.Errorf("%d versions and %d keys, want 3 and 2", len(w.Secrets["test/endpoint/demo"]), len(w.Endpoints["demo"].Keys))
	}
}

// The front door notes a first match between reading and writing.
func TestRotateDecidesAgainWhenTheRowMoved(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	old := w.Endpoints["demo"].Keys[0].Version
	w.Rival = func(w *operatortest.World) { matched(t, w, old) }
	added := rotate(t, o, second)
	got := w.Endpoints["demo"]
	if len(got.Keys) != 2 || got.Keys[0].Version != added.Version || got.Keys[1].FirstMatch.IsZero() {
		t.Errorf("keys %+v: both changes must be there", got.Keys)
	}
	if len(w.Acts) != 2 {
		t.Errorf("%d acts, want 2: a lost race records nothing", len(w.Acts))
	}
}

func TestAddingAKeyIsRefused(t *testing.T) {
	t.Parallel()
	put := (*operator.Operator).PutFirst
	rotate := (*operator.Operator).Rotate
	tests := []struct {
		name   string
		before func(t *testing.T, w *operatortest.World, o *operator.Operator)
		add    func(*operator.Operator, *testing.T, string) error
		secret string
		code   string
	}{
		{"put, where a key is trusted", nil, call(put), second, "key_trusted"},
		{"rotate, where no key is trusted", retireAll, call(rotate), second, "no_key_trusted"},
		{"rotate back to an older key", func(t *testing.T, _ *operatortest.World, o *operator.Operator) {
			rotateTo(t, o, second)
		}, call(rotate), first, "secret_listed"},
		{"a secret that was retired", retireAll, call(put), first, "secret_retired"},
		{"what is no secret", nil, call(rotate), "sk_live_x", "secret_refused"},
		{"a fifth key", func(t *testing.T, _ *operatortest.World, o *operator.Operator) {
			for i := range webhook.KeysMax - 1 {
				rotateTo(t, o, second+strings.Repeat("x", i+1))
			}
		}, call(rotate), third, "keys_full"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, o := create(t)
			if tt.before != nil {
				tt.before(t, w, o)
			}
			before, acts := w.Endpoints["demo"], len(w.Acts)
			wantRefusal(t, tt.add(o, t, tt.secret), tt.code)
			if diff := cmp.Diff(before, w.Endpoints["demo"]); diff != "" || len(w.Acts) != acts {
				t.Errorf("%d acts more; endpoint (-before +after):\n%s", len(w.Acts)-acts, diff)
			}
		})
	}
}

func rotateTo(t *testing.T, o *operator.Operator, secret string) {
	t.Helper()
	rotate(t, o, secret)
}

func call(add func(*operator.Operator, ctx, webhook.EndpointID, operator.Secret, string) (operator.Added, error)) func(*operator.Operator, *testing.T, string) error {
	return func(o *operator.Operator, t *testing.T, secret string) error {
		_, err := add(o, t.Context(), "demo", operator.NewSecret(secret), "")
		return err
	}
}

func retireAll(t *testing.T, w *operatortest.World, o *operator.Operator) {
	t.Helper()
	for _, k := range w.Endpoints["demo"].Keys {
		if _, err := o.Retire(t.Context(), "demo", k.Version, ""); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPutGivesAKeyToAnEndpointWithoutOne(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	old := w.Endpoints["demo"].Keys[0].Version
	retireAll(t, w, o)
	added, err := o.PutFirst(t.Context(), "demo", operator.NewSecret(second), "")
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, o, []operator.Key{
		{Version: added.Version, Trust: operator.Trusted, Newest: true, AddedAt: w.Clock},
		{Version: old, Trust: operator.Retired},
	})
}

func TestPutMakesTheSecretAnewWhereItWasDeleted(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	retireAll(t, w, o)
	clear(w.Secrets)
	added, err := o.PutFirst(t.Context(), "demo", operator.NewSecret(second), "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[webhook.KeyVersion]string{"test/endpoint/demo": {added.Version: second}}
	if diff := cmp.Diff(want, w.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// Version ids stand in rows and logs: they must not help to guess a weak secret,
// and Secrets Manager takes 32 to 64 bytes.
func TestVersionIDsSayNothingAboutTheSecret(t *testing.T) {
	t.Parallel()
	_, a := create(t)
	b := operatortest.New()
	n := demo()
	n.Secret = operator.NewSecret(second)
	other, err := b.Operator().Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := a.Endpoint(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := other.Endpoint.Keys[0].Version, e.Keys[0].Version; got != want {
		t.Errorf("the id depends on the secret: %s and %s", got, want)
	}
	rotated := rotate(t, a, second).Version
	for _, v := range []webhook.KeyVersion{e.Keys[0].Version, rotated} {
		if len(v) < 32 || len(v) > 64 {
			t.Errorf("version %s has %d bytes, want 32 to 64", v, len(v))
		}
	}
	if !strings.HasPrefix(string(rotated), "k2-") {
		t.Errorf("the second key is %s, want it to begin with k2-", rotated)
	}
}
