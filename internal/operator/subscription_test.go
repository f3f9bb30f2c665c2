package operator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	"dakghar/internal/fault"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// toPartner is a wish for the partner's subscription.
func toPartner() operator.NewSubscription {
	return operator.NewSubscription{
		ID: "partner", Why: "a new partner",
		Set: operator.SubscriptionSettings{
			Target: &delivery.Target{Kind: delivery.HTTP, URL: "https://hooks.partner.com/dakghar"}, Types: []string{"payment.*"},
		},
	}
}

// subscribed makes it.
func subscribed(t *testing.T) (*operatortest.World, *operator.Operator, operator.Issued) {
	t.Helper()
	w := operatortest.New()
	o := w.Operator()
	issued, err := o.Subscribe(t.Context(), toPartner())
	if err != nil {
		t.Fatal(err)
	}
	return w, o, issued
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	r, ok := errors.AsType[*operator.Refusal](err)
	if !ok || r.Code != code {
		t.Errorf("%s: %v, want a refusal of code %s", what, err, code)
	}
}

// failing lets the n-th call of a name fail before it does anything.
func failing(w *operatortest.World, call string, nth int) {
	w.Fail = func(c string) error {
		if c == call {
			if nth--; nth == 0 {
				return operatortest.ErrDown
			}
		}
		return nil
	}
}

// Proves X4, X10: a subscription has its key before it has its row, the secret is
// returned once, and it is in no row and no record.
func TestASubscriptionIsMadeWithItsKey(t *testing.T) {
	t.Parallel()
	w, o, issued := subscribed(t)
	s := w.Subscriptions["partner"]
	secret := w.Secrets["test/subscription/partner"][s.Keys[0].Version]
	want := delivery.Subscription{
		ID: "partner", Tenant: "default", Target: delivery.Target{Kind: delivery.HTTP, URL: "https://hooks.partner.com/dakghar"}, Types: []string{"payment.*"},
		ProfileName: "standard", Secret: "test/subscription/partner", Keys: []delivery.Key{{ID: "k1", Version: s.Keys[0].Version, AddedAt: w.Clock}},
		State: delivery.Active, StateAt: w.Clock, CreatedAt: w.Clock, Revision: 1,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]webhook.Act{{ID: "act-1", At: w.Clock, Name: "subscription create", Subject: "subscription partner", Who: "ada", Why: "a new partner"}}, w.Acts); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
	if issued.Secret.Reveal() != secret || !strings.HasPrefix(secret, "whsec_") || issued.KeyID != "k1" || issued.Public != "" {
		t.Errorf("issued %v, key %s, public %q", issued.Secret, issued.KeyID, issued.Public)
	}
	if _, err := delivery.ParseSigningKey("k1", secret); err != nil {
		t.Error(err)
	}
	for what, v := range map[string]any{"row": s, "acts": w.Acts, "result": issued} {
		doc, err := json.Marshal(v)
		if err != nil || strings.Contains(string(doc)+fmt.Sprintf("%+v", v), secret) {
			t.Errorf("the %s holds the secret (%v)", what, err)
		}
	}
	_, err := o.Subscribe(t.Context(), toPartner())
	wantCode(t, "again", err, "subscription_exists")
}

// Two subscriptions may tell one address; whoever makes the second hears of the first.
func TestASecondSubscriptionOfOneAddressIsNoticed(t *testing.T) {
	w, o, _ := subscribed(t)
	told := func(change func(*operator.NewSubscription)) bool {
		n := toPartner()
		n.ID = delivery.SubscriptionID(fmt.Sprint("other-", len(w.Subscriptions)))
		change(&n)
		issued, err := o.Subscribe(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(issued.Next, func(s operator.Step) bool { return strings.Contains(s.Text, "tells the same target") })
	}
	for what, tt := range map[string]struct {
		change func(*operator.NewSubscription)
		want   bool
	}{
		"another tenant's": {func(n *operator.NewSubscription) { n.Tenant = "other" }, false},
		"the same address": {func(*operator.NewSubscription) {}, true},
		"another address":  {func(n *operator.NewSubscription) { n.Set.Target.URL += "/2" }, false},
	} {
		if got := told(tt.change); got != tt.want {
			t.Errorf("%s: told %v, want %v", what, got, tt.want)
		}
	}
}

// Proves X4: a partner's credential is in the secret store, and nowhere else.
func TestAPartnersCredentialIsInTheSecretStore(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	n := toPartner()
	n.Set.CredentialHeader, n.Set.Credential = ptr("Authorization"), operator.NewSecret("Bearer "+apiFirst)
	if _, err := w.Operator().Subscribe(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	s := w.Subscriptions["partner"]
	if s.CredentialHeader != "Authorization" || s.Credential != "test/subscription/partner/credential" {
		t.Errorf("header %q, secret %q", s.CredentialHeader, s.Credential)
	}
	versions := w.Secrets[s.Credential]
	if len(versions) != 1 {
		t.Errorf("%d versions of the credential", len(versions))
	}
	if doc, err := json.Marshal([]any{s, w.Acts}); err != nil || strings.Contains(string(doc), apiFirst) {
		t.Errorf("the row or the record holds the credential (%v)", err)
	}
}

// Proves X10: wherever create dies, running it again goes on with the same key,
// and never leaves a subscription without one.
func TestACreateThatDiedIsFinishedByRunningItAgain(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Put", "Create", "CreateSubscriptionBy"} {
		w := operatortest.New()
		failing(w, call, 1)
		if _, err := w.Operator().Subscribe(t.Context(), toPartner()); err == nil {
			t.Fatalf("a death at %s went unnoticed", call)
		}
		if len(w.Subscriptions) != 0 {
			t.Errorf("a death at %s left a row", call)
		}
		issued, err := w.Operator().Subscribe(t.Context(), toPartner())
		if err != nil {
			t.Fatalf("after a death at %s: %v", call, err)
		}
		versions := w.Secrets["test/subscription/partner"]
		if got := versions[w.Subscriptions["partner"].Keys[0].Version]; len(versions) != 1 || got != issued.Secret.Reveal() {
			t.Errorf("after a death at %s: %d versions, and the one in use is not the one that was shown", call, len(versions))
		}
	}
	w := operatortest.New()
	w.Lose = operatortest.Down("CreateSubscriptionBy")
	_, err := w.Operator().Subscribe(t.Context(), toPartner())
	wantCode(t, "an answer that was lost", err, "unavailable")
	if len(w.Subscriptions) != 1 {
		t.Error("no row")
	}
}

// Proves X4, X9: whatever cannot be a subscription is refused before anything is written.
func TestASubscriptionThatMakesNoSense(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*operator.NewSubscription){
		"--id is 1 to":         func(n *operator.NewSubscription) { n.ID = "Partner" },
		"--tenant is 1 to":     func(n *operator.NewSubscription) { n.Tenant = "a b" },
		"say where it goes":    func(n *operator.NewSubscription) { n.Set.Target = nil },
		"--url: want https":    func(n *operator.NewSubscription) { n.Set.Target.URL = "http://hooks.partner.com/" },
		"--url: the parameter": func(n *operator.NewSubscription) { n.Set.Target.URL += "?token=x" },
		"public internet":      func(n *operator.NewSubscription) { n.Set.Target.URL = "https://localhost/" },
		"would come back":      func(n *operator.NewSubscription) { n.Set.Target.URL = "https://DOOR.test.com:8443/in/stripe/demo" },
		"a queue of the stack's own": func(n *operator.NewSubscription) {
			n.Set.Target = queueAt("https://sqs.eu-west-1.amazonaws.com/123456789012/own-deliveries")
		},
		"own, and what is delivered": func(n *operator.NewSubscription) {
			n.Set.Target.URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/own-deliveries"
		},
		"is the URL of an SQS queue": func(n *operator.NewSubscription) { n.Set.Target = queueAt("https://evil.com/123456789012/q") },
		"is the ARN of an Event":     func(n *operator.NewSubscription) { n.Set.Target = &delivery.Target{Kind: delivery.Bus, Bus: "partner"} },
		"--redirect-host":            func(n *operator.NewSubscription) { n.Set.RedirectHosts = []string{"127.0.0.1"} },
		"go with --url": func(n *operator.NewSubscription) {
			n.Set.Target, n.Set.Header = queueAt("https://sqs.eu-west-1.amazonaws.com/123456789012/partner"), map[string]string{"X-A": "b"}
		},
		`--type "payment["`:             func(n *operator.NewSubscription) { n.Set.Types = []string{"payment["} },
		"--calls goes without --type":   func(n *operator.NewSubscription) { n.Set.Calls = ptr(true) },
		`--filter "a..b"`:               func(n *operator.NewSubscription) { n.Set.Filter = map[string]string{"a..b": "c"} },
		`--profile "hasty"`:             func(n *operator.NewSubscription) { n.Set.Profile = ptr("hasty") },
		"--rate is 0":                   func(n *operator.NewSubscription) { n.Set.Rate = ptr(-1) },
		"--burst goes with":             func(n *operator.NewSubscription) { n.Set.Burst = ptr(1) },
		"--concurrency is":              func(n *operator.NewSubscription) { n.Set.Concurrency = ptr(5000) },
		"the sender itself":             func(n *operator.NewSubscription) { n.Set.Header = map[string]string{"Webhook-Id": "x"} },
		"without a line end":            func(n *operator.NewSubscription) { n.Set.Header = map[string]string{"X-A": "b\r\nHost: c"} },
		"it looks like a secret":        func(n *operator.NewSubscription) { n.Set.Header = map[string]string{"X-Api-Key": "b"} },
		"two of this name":              func(n *operator.NewSubscription) { n.Set.Header = map[string]string{"X-A": "b", "x-a": "c"} },
		"goes with --credential-file":   func(n *operator.NewSubscription) { n.Set.CredentialHeader = ptr("X-Api-Key") },
		"goes with --credential-header": func(n *operator.NewSubscription) { n.Set.Credential = operator.NewSecret("x") },
		"--credential-header dakghar-x: the sender": func(n *operator.NewSubscription) {
			n.Set.CredentialHeader, n.Set.Credential = ptr("dakghar-x"), operator.NewSecret("x")
		},
		"--credential-header X-Key: a header's value": func(n *operator.NewSubscription) {
			n.Set.CredentialHeader, n.Set.Credential = ptr("X-Key"), operator.NewSecret("planted\r\nHost: c")
		},
	} {
		w := operatortest.New()
		o := w.Operator()
		o.FrontDoor = "https://door.test.com"
		n := toPartner()
		target := *n.Set.Target
		n.Set.Target = &target
		change(&n)
		_, err := o.Subscribe(t.Context(), n)
		wantCode(t, want, err, "usage")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%v, want %q", err, want)
		}
		if len(w.Subscriptions)+len(w.Acts)+len(w.Secrets) != 0 {
			t.Errorf("%s: something was written", want)
		}
	}
}

func queueAt(url string) *delivery.Target { return &delivery.Target{Kind: delivery.Queue, URL: url} }

// Proves X4: loopback is for the local stack, where the port tells our own front
// door from a partner.
func TestTheLocalStackTakesAPartnerOnThisMachine(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	o := w.Operator()
	o.Loopback, o.FrontDoor = true, "http://127.0.0.1:8080"
	n := toPartner()
	n.Set.Target = &delivery.Target{Kind: delivery.HTTP, URL: "http://localhost:8080/in/stripe/demo"}
	_, err := o.Subscribe(t.Context(), n)
	wantCode(t, "our own front door", err, "usage")
	n.Set.Target = &delivery.Target{Kind: delivery.HTTP, URL: "http://127.0.0.1:9000/hooks"}
	if _, err := o.Subscribe(t.Context(), n); err != nil {
		t.Error(err)
	}
}

// Proves X4 (recorded): an update changes what it names and nothing else, once,
// also beside a rival.
func TestASubscriptionsUpdateChangesWhatItNames(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	w.Rival = func(w *operatortest.World) {
		s := w.Subscriptions["partner"]
		s.Revision, s.FailingSince = s.Revision+1, w.Clock
		w.Subscriptions["partner"] = s
	}
	want := w.Subscriptions["partner"]
	set := operator.SubscriptionSettings{
		Types: []string{}, Rate: ptr(20), Burst: ptr(40), Concurrency: ptr(4), Profile: ptr("patient"), Filter: map[string]string{"object.currency": "EUR"},
		Header: map[string]string{"X-Team": "payments"}, RedirectHosts: []string{"eu.partner.com"},
	}
	c, err := o.UpdateSubscription(t.Context(), "partner", set, "more of them")
	if err != nil || c.Existed {
		t.Fatalf("existed %t, error %v", c.Existed, err)
	}
	want.Types, want.Rate, want.Burst, want.Concurrency, want.ProfileName = []string{"*"}, 20, 40, 4, "patient"
	want.Filter, want.Header, want.Target.RedirectHosts = set.Filter, set.Header, set.RedirectHosts
	want.FailingSince, want.Revision = want.CreatedAt, 3
	if diff := cmp.Diff(want, w.Subscriptions["partner"]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	again, err := o.UpdateSubscription(t.Context(), "partner", set, "")
	if err != nil || !again.Existed || len(w.Acts) != 2 {
		t.Errorf("again: existed %t, error %v, %d acts", again.Existed, err, len(w.Acts))
	}
	_, err = o.UpdateSubscription(t.Context(), "partner", operator.SubscriptionSettings{Target: &delivery.Target{Kind: delivery.HTTP, URL: "https://10.0.0.1/"}}, "")
	wantCode(t, "an address inside", err, "usage")
	_, err = o.UpdateSubscription(t.Context(), "nobody", operator.SubscriptionSettings{}, "")
	wantCode(t, "nobody", err, "subscription_unknown")
}

// Proves X11: a rotation tells the new key's id, and the previous key signs beside
// it until no retry can be under way any more.
func TestARotationKeepsThePreviousKeySigning(t *testing.T) {
	t.Parallel()
	w, o, first := subscribed(t)
	w.Advance(time.Hour)
	at := w.Clock
	second, err := o.RotateSigning(t.Context(), "partner", operator.Turn{Why: "yearly"})
	if err != nil {
		t.Fatal(err)
	}
	s := w.Subscriptions["partner"]
	end := at.Add(48 * time.Hour)
	want := []delivery.Key{
		{ID: "k2", Version: s.Keys[0].Version, AddedAt: at},
		{ID: "k1", Version: s.Keys[1].Version, AddedAt: at.Add(-time.Hour), NotAfter: end},
	}
	if diff := cmp.Diff(want, s.Keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	versions := w.Secrets["test/subscription/partner"]
	if versions[s.Keys[0].Version] != second.Secret.Reveal() || versions[s.Keys[1].Version] != first.Secret.Reveal() || second.KeyID != "k2" || first.Secret.Reveal() == second.Secret.Reveal() {
		t.Errorf("the keys are not those that were shown; the new one is %s", second.KeyID)
	}
	_, err = o.RotateSigning(t.Context(), "partner", operator.Turn{})
	wantCode(t, "while both sign", err, "rotation_open")
	w.Clock = end
	third, err := o.RotateSigning(t.Context(), "partner", operator.Turn{})
	if got := w.Subscriptions["partner"].Keys; err != nil || third.KeyID != "k3" || len(got) != 2 || got[1].ID != "k2" {
		t.Errorf("after its end: %v, keys %v", err, got)
	}
	fourth, err := o.RotateSigning(t.Context(), "partner", operator.Turn{Now: true, Why: "leaked"})
	if got := w.Subscriptions["partner"].Keys; err != nil || fourth.KeyID != "k4" || len(got) != 1 || got[0].ID != "k4" {
		t.Errorf("a leak: %v, keys %v", err, got)
	}
}

// Proves X10, X11: wherever a rotation dies, what signs is what was shown, and
// running it again never gives a secret away twice.
func TestARotationThatDied(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Put", "UpdateSubscriptionBy"} {
		w, o, _ := subscribed(t)
		failing(w, call, 1)
		if _, err := o.RotateSigning(t.Context(), "partner", operator.Turn{}); err == nil {
			t.Fatalf("a death at %s went unnoticed", call)
		}
		if keys := w.Subscriptions["partner"].Keys; len(keys) != 1 {
			t.Errorf("a death at %s left the keys %v", call, keys)
		}
		again, err := o.RotateSigning(t.Context(), "partner", operator.Turn{})
		s := w.Subscriptions["partner"]
		if err != nil || len(w.Secrets[s.Secret]) != 2 || w.Secrets[s.Secret][s.Keys[0].Version] != again.Secret.Reveal() {
			t.Errorf("after a death at %s: %v, keys %v, %d versions", call, err, s.Keys, len(w.Secrets[s.Secret]))
		}
	}
	// An answer that was lost is our own; a rival's is not.
	w, o, _ := subscribed(t)
	lost := false
	w.Lose = func(call string) error {
		if call == "UpdateSubscriptionBy" && !lost {
			lost = true
			return fault.New(fault.Ours, "unavailable", operatortest.ErrDown)
		}
		return nil
	}
	if i, err := o.RotateSigning(t.Context(), "partner", operator.Turn{}); err != nil || i.KeyID != "k2" {
		t.Errorf("a lost answer: %v, key %s", err, i.KeyID)
	}
	w, o, _ = subscribed(t)
	w.Rival = func(w *operatortest.World) {
		w.Advance(time.Second)
		if _, err := w.Operator().RotateSigning(t.Context(), "partner", operator.Turn{}); err != nil {
			t.Error(err)
		}
	}
	_, err := o.RotateSigning(t.Context(), "partner", operator.Turn{})
	wantCode(t, "beside a rival", err, "rotated_meanwhile")
}

// Proves X10: a key that the secret store has lost keeps everything from being
// signed, until a rotation takes it off the list.
func TestARotationTakesALostKeyOffTheList(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	if _, err := o.RotateSigning(t.Context(), "partner", operator.Turn{}); err != nil {
		t.Fatal(err)
	}
	s := w.Subscriptions["partner"]
	delete(w.Secrets[s.Secret], s.Keys[0].Version)
	i, err := o.RotateSigning(t.Context(), "partner", operator.Turn{})
	got := w.Subscriptions["partner"].Keys
	if err != nil || i.KeyID != "k3" || len(got) != 2 || got[0].ID != "k3" || got[1].ID != "k1" {
		t.Errorf("%v, keys %v", err, got)
	}
	w.Fail = operatortest.Down("Value")
	_, err = o.RotateSigning(t.Context(), "partner", operator.Turn{Now: true})
	wantCode(t, "while the store is down", err, "unavailable")
}

// Proves X11: the public halves of key pairs are told to partners, the private
// ones to nobody.
func TestKeyPairsArePublished(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	o := w.Operator()
	n := toPartner()
	n.Ed25519 = true
	issued, err := o.Subscribe(t.Context(), n)
	if err != nil || !issued.Secret.Empty() || !strings.HasPrefix(issued.Public, "whpk_") {
		t.Fatalf("%v; secret %t, public %q", err, !issued.Secret.Empty(), issued.Public)
	}
	turned, err := o.RotateSigning(t.Context(), "partner", operator.Turn{})
	if err != nil || !strings.HasPrefix(turned.Public, "whpk_") || turned.Public == issued.Public {
		t.Fatalf("%v; public %q", err, turned.Public)
	}
	doc, err := o.PublishedKeys(t.Context(), "partner")
	want := fmt.Sprintf(`{"keys":[{"kid":"k2","alg":"ed25519","public_key":%q,"not_after":null},{"kid":"k1","alg":"ed25519","public_key":%q,"not_after":"2026-03-03T12:00:00Z"}]}`, turned.Public, issued.Public)
	if diff := cmp.Diff(want, string(doc)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, o, _ = subscribed(t)
	_, err = o.PublishedKeys(t.Context(), "partner")
	wantCode(t, "a shared secret", err, "no_public_key")
}

// deliveryAt adds a delivery of the partner's subscription.
func deliveryAt(w *operatortest.World, id delivery.ID, status delivery.Status, change func(*delivery.Delivery)) {
	d := delivery.Delivery{
		ID: id, Tenant: "default", Subscription: "partner", Status: status, Fence: 2, AttemptCount: 1, CreatedAt: w.Clock.Add(-time.Hour), NextAttemptAt: w.Clock.Add(time.Hour),
		Deadline: w.Clock.Add(47 * time.Hour), LastError: "status_503", LastStatus: 503, WakeAt: w.Clock.Add(time.Hour + time.Minute),
		Effect: webhook.Effect{ID: webhook.EffectID("ev_" + string(id)), InboxID: "in_1", Tenant: "default", Type: "payment.succeeded", BodyExpiresAt: w.Clock.Add(29 * 24 * time.Hour)},
	}
	if status.Terminal() {
		d.EndedAt, d.WakeAt = w.Clock.Add(-time.Minute), time.Time{}
	}
	if change != nil {
		change(&d)
	}
	w.Deliveries[id] = d
}

// Proves X6's neighbour: what waits through a pause goes out when it ends, and a
// partner's failing is forgotten.
func TestAResumeBringsWhatWaitsNear(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	if c, err := o.PauseSubscription(t.Context(), "partner", false, "maintenance"); err != nil || c.Existed || c.Subscription.State != delivery.Paused {
		t.Fatalf("pause: %v, %+v", err, c)
	}
	if c, err := o.PauseSubscription(t.Context(), "partner", false, ""); err != nil || !c.Existed {
		t.Fatalf("pause again: %v, %+v", err, c)
	}
	for i := range 120 {
		deliveryAt(w, delivery.ID(fmt.Sprintf("dl_%03d", i)), delivery.Pending, func(d *delivery.Delivery) { d.CreatedAt = w.Clock.Add(-time.Duration(i) * time.Second) })
	}
	deliveryAt(w, "dl_late", delivery.Retry, func(d *delivery.Delivery) { d.Deadline = w.Clock.Add(-time.Second) })
	deliveryAt(w, "dl_done", delivery.Delivered, nil)
	deliveryAt(w, "dl_other", delivery.Pending, func(d *delivery.Delivery) { d.Subscription = "other" })
	untouched := []delivery.Delivery{w.Deliveries["dl_late"], w.Deliveries["dl_done"], w.Deliveries["dl_other"]}
	p, err := o.PlanSubscriptionResume(t.Context(), "partner", 100, "over")
	if err != nil || p.Matched != 121 || p.Refused["deadline_passed"] != 1 || p.ByKind["payment.succeeded"] != 121 || len(p.Deliveries) != 5 {
		t.Fatalf("plan: %v, %+v", err, p)
	}
	j, err := o.ResumeSubscription(t.Context(), p, quiet)
	if err != nil || j.State != webhook.JobDone || j.Done != 120 || j.Left["deadline_passed"] != 1 {
		t.Fatalf("resume: %v, %+v", err, j)
	}
	if s := w.Subscriptions["partner"]; s.State != delivery.Active || s.StateWhy != "" || !s.FailingSince.IsZero() {
		t.Errorf("subscription %+v", s)
	}
	for i := range 120 {
		d := w.Deliveries[delivery.ID(fmt.Sprintf("dl_%03d", i))]
		if d.NextAttemptAt.Before(p.Job.CreatedAt.Add(operator.PauseWithin)) || d.NextAttemptAt.After(w.Clock) || d.Fence != 3 || d.Status != delivery.Pending {
			t.Errorf("%s: due %s, fence %d", d.ID, d.NextAttemptAt, d.Fence)
		}
	}
	if diff := cmp.Diff(untouched, []delivery.Delivery{w.Deliveries["dl_late"], w.Deliveries["dl_done"], w.Deliveries["dl_other"]}); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
	if len(w.Woken) != 120 {
		t.Errorf("%d wake-ups, want 120", len(w.Woken))
	}
}

// A pause in the middle of a resume stops its job.
func TestAPauseDuringAResume(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	if _, err := o.PauseSubscription(t.Context(), "partner", false, ""); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		deliveryAt(w, delivery.ID(fmt.Sprintf("dl_%03d", i)), delivery.Pending, func(d *delivery.Delivery) { d.CreatedAt = w.Clock.Add(-time.Duration(i) * time.Second) })
	}
	p, err := o.PlanSubscriptionResume(t.Context(), "partner", 100, "over")
	if err != nil {
		t.Fatal(err)
	}
	j, err := o.ResumeSubscription(t.Context(), p, func(webhook.Job) {
		if _, err := o.PauseSubscription(t.Context(), "partner", false, "again"); err != nil {
			t.Error(err)
		}
	})
	wantCode(t, "the job", err, "job_stopped")
	if j.State != webhook.JobStopped || j.Done != 50 {
		t.Errorf("%+v", j)
	}
}

// Proves X6's neighbour, drain: it is a state of its own, and only an active
// subscription has something to drain.
func TestStatesOfASubscription(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	c, err := o.PauseSubscription(t.Context(), "partner", true, "they move")
	if err != nil || c.Subscription.State != delivery.Draining || !c.Subscription.StateAt.Equal(w.Clock) {
		t.Fatalf("drain: %v, %+v", err, c.Subscription)
	}
	if c, err = o.PauseSubscription(t.Context(), "partner", false, ""); err != nil || c.Subscription.State != delivery.Paused {
		t.Fatalf("pause: %v, %+v", err, c.Subscription)
	}
	_, err = o.PauseSubscription(t.Context(), "partner", true, "")
	wantCode(t, "drain of what is paused", err, "subscription_paused")
	_, err = o.Try(t.Context(), "partner", time.Second, "")
	wantCode(t, "test of what is paused", err, "subscription_paused")
	if d, err := o.DeleteSubscription(t.Context(), "partner", "over"); err != nil || d.Existed || d.Subscription.State != delivery.Stopped || d.Subscription.StateWhy != "deleted" {
		t.Fatalf("delete: %v, %+v", err, d)
	}
	w.Advance(time.Second)
	if d, err := o.DeleteSubscription(t.Context(), "partner", ""); err != nil || !d.Existed {
		t.Fatalf("delete again: %v, %+v", err, d)
	}
	_, err = o.PauseSubscription(t.Context(), "partner", false, "")
	wantCode(t, "pause of what is deleted", err, "subscription_deleted")
	_, err = o.PlanSubscriptionResume(t.Context(), "partner", 1, "")
	wantCode(t, "resume of what is deleted", err, "subscription_deleted")
	_, err = o.RotateSigning(t.Context(), "partner", operator.Turn{})
	wantCode(t, "rotation of what is deleted", err, "subscription_deleted")
	_, err = o.UpdateSubscription(t.Context(), "partner", operator.SubscriptionSettings{Rate: ptr(1)}, "")
	wantCode(t, "update of what is deleted", err, "subscription_deleted")
	_, err = o.Subscribe(t.Context(), toPartner())
	wantCode(t, "its id again", err, "subscription_exists")
	// A partner's 410 can be taken back.
	s := w.Subscriptions["partner"]
	s.StateWhy = "gone"
	w.Subscriptions["partner"] = s
	p, err := o.PlanSubscriptionResume(t.Context(), "partner", 1, "they are back")
	if err == nil {
		_, err = o.ResumeSubscription(t.Context(), p, quiet)
	}
	if err != nil || w.Subscriptions["partner"].State != delivery.Active {
		t.Errorf("resume after 410: %v, %+v", err, w.Subscriptions["partner"])
	}
	var names []string
	for _, a := range w.Acts {
		names = append(names, a.Name)
	}
	want := []string{"subscription create", "subscription drain", "subscription pause", "subscription delete", "subscription resume"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
}

// Proves X1: a test goes the way of every event, to the one subscription, and its
// attempt is waited for.
func TestATestGoesTheWayOfEveryEvent(t *testing.T) {
	t.Parallel()
	w, o, _ := subscribed(t)
	w.OnWake = func(wake webhook.Wake) { // a worker that then knows the subscription
		promise := w.Promises[wake.OutboxID]
		d := delivery.New(*promise.Effect, w.Subscriptions["partner"], w.Clock)
		d = d.Claim("c", w.Clock, time.Minute).Apply(d)
		w.Deliveries[d.ID] = d.Deliver(w.Clock, 204).Apply(d)
		w.Attempts[d.ID] = []delivery.Attempt{{Delivery: d.ID, N: 1, At: w.Clock, KeyID: "k1", Result: delivery.Accepted, Status: 204, Took: time.Second}}
	}
	story, err := o.Try(t.Context(), "partner", time.Minute, "is it there?")
	if err != nil || story.Row.Status != delivery.Delivered || len(story.Attempts) != 1 || story.Attempts[0].Status != 204 {
		t.Fatalf("%v, %+v", err, story)
	}
	e := story.Row.Effect
	if e.Type != "dakghar.test" || e.Call != "partner" || e.Tenant != "default" {
		t.Errorf("effect %+v", e)
	}
	want := `{"type":"dakghar.test","timestamp":"2026-03-01T12:00:00Z","data":{"subscription":"partner","test":"act-2"}}`
	if diff := cmp.Diff(want, string(w.Bodies[e.BodyID])); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
	if webhook.DigestOf(w.Bodies[e.BodyID]) != e.Digest || !w.Subscriptions["partner"].Wants(e, nil) {
		t.Error("the digest is another, or the subscription does not want it")
	}
	w.OnWake = func(wake webhook.Wake) { // a worker that has the partner wait
		d := delivery.New(*w.Promises[wake.OutboxID].Effect, w.Subscriptions["partner"], w.Clock)
		w.Deliveries[d.ID] = d.Postpone(time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)).Apply(d)
	}
	for why, worker := range map[string]func(webhook.Wake){
		"it waits until 2026-03-01T13:00:00Z for the partner's rate, its places or its breaker, and spends no attempt meanwhile": w.OnWake,
		"a process that does not know the subscription yet learns of it within 30 s":                                             nil,
	} {
		w.OnWake = worker
		_, err = o.Try(t.Context(), "partner", time.Minute, "")
		wantCode(t, "without an attempt", err, "test_waits")
		if r, ok := errors.AsType[*operator.Refusal](err); !ok || r.Next[len(r.Next)-1].Text != why {
			t.Errorf("%v, %+v; want it to say %q", err, r, why)
		}
	}
	for _, call := range []string{"Put body", "AnnounceBy"} {
		w, o, _ := subscribed(t)
		failing(w, call, 1)
		_, err = o.Try(t.Context(), "partner", time.Minute, "")
		wantCode(t, "a death at "+call, err, "unavailable")
		if len(w.Promises) != 0 {
			t.Errorf("a death at %s left a promise", call)
		}
	}
}
