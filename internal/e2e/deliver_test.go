package e2e_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dakghar/internal/crashtest"
	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// partner is a server of somebody else's that takes what it is told.
type partner struct {
	*httptest.Server

	mu  sync.Mutex
	got []arrival
}

// arrival is one request as the wire carried it.
type arrival struct {
	header http.Header
	body   []byte
	at     time.Time
}

func newPartner(t *testing.T) *partner {
	t.Helper()
	p := &partner{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		p.got = append(p.got, arrival{r.Header.Clone(), body, time.Now()})
		p.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *partner) arrivals() []arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// signingText is the key of the one subscription, k1.
const signingText = "whsec_b3V0Ym91bmQgc2VjcmV0IG9mIHRoaXJ0eS10d28h"

// subscribe has a partner told of everything that becomes of acme's payments.
func (s *system) subscribe(id delivery.SubscriptionID, url string) {
	s.t.Helper()
	name := "dakghar-local/subscription/" + string(id)
	made, err := secretsmanager.NewFromConfig(s.stack.Config()).CreateSecret(s.t.Context(), &secretsmanager.CreateSecretInput{Name: &name, SecretString: aws.String(signingText)})
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	ok, err := s.store.CreateSubscriptionBy(s.t.Context(), delivery.Subscription{
		ID: id, Tenant: "acme", Target: delivery.Target{Kind: delivery.HTTP, URL: url}, Types: []string{"payment.*"}, ProfileName: delivery.Standard,
		Secret: name, State: delivery.Active, CreatedAt: now, Keys: []delivery.Key{{ID: "k1", Version: webhook.KeyVersion(aws.ToString(made.VersionId)), AddedAt: now}},
	}, webhook.Act{ID: rand.Text(), At: now, Name: "subscription create", Subject: "subscription " + string(id), Who: "the test"})
	if err != nil || !ok {
		s.t.Fatalf("subscription: %v, %v", ok, err)
	}
}

// deliveryOf is the one delivery to a subscription of what became of an event.
func deliveryOf(event string, id delivery.SubscriptionID) delivery.ID {
	return delivery.DeriveID("acme", webhook.DeriveEffectID(inboxID(event), 0, 0), id, 0)
}

// wantDelivered waits for the end of a delivery and compares its attempts.
func (s *system) wantDelivered(id delivery.ID, within time.Duration, want []delivery.Result) {
	s.t.Helper()
	var d delivery.Delivery
	s.await(string(id)+" ends", within, func() bool {
		var err error
		if d, _, err = s.store.Delivery(s.t.Context(), id); err != nil {
			s.t.Fatal(err)
		}
		return d.Status.Terminal()
	})
	attempts, err := s.store.Attempts(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	var got []delivery.Result
	for _, a := range attempts {
		got = append(got, a.Result)
	}
	if diff := cmp.Diff(want, got); diff != "" || d.Status != delivery.Delivered || d.AttemptCount != len(want) {
		s.t.Errorf("%s ended %s (%s) after %d attempts (-want +got):\n%s", id, d.Status, d.LastError, d.AttemptCount, diff)
	}
}

// wantVerified checks one request as a partner does: with our own check, and with
// the library of Standard Webhooks. It returns the attempt that was signed.
func wantVerified(t *testing.T, a arrival, id delivery.ID) int {
	t.Helper()
	header := map[string]string{}
	for name, values := range a.header {
		header[strings.ToLower(name)] = strings.Join(values, ",")
	}
	key, err := delivery.ParseVerifyingKey("k1", signingText)
	if err != nil {
		t.Fatal(err)
	}
	got, err := delivery.Verify(header, a.body, []delivery.VerifyingKey{key}, a.at, time.Minute)
	if err != nil || got.KeyID != "k1" || got.Delivery != id {
		t.Errorf("what arrived verifies as %+v, %v; want %s by k1", got, err, id)
	}
	library, err := standard.NewWebhook(signingText)
	if err != nil {
		t.Fatal(err)
	}
	if err := library.Verify(a.body, a.header); err != nil {
		t.Errorf("the library of Standard Webhooks refuses what arrived: %v", err)
	}
	if !strings.HasPrefix(string(a.body), `{"type":"payment.succeeded",`) {
		t.Errorf("partners were told %s", a.body)
	}
	return got.Attempt
}

// What became of a payment is told once, signed, by the real programs. A partner
// that is told nothing of others' events hears nothing.
//
// Proves X1, X2, X3.
func TestAPaymentIsToldToAPartnerOnceAndSigned(t *testing.T) {
	t.Parallel()
	s, p := start(t, nil), newPartner(t)
	s.subscribe("sub_1", p.URL+"/hooks")
	s.postUntilAcknowledged(payment("evt_1"))
	s.postUntilAcknowledged(payment("evt_1"))
	id := deliveryOf("evt_1", "sub_1")
	s.wantDelivered(id, 30*time.Second, []delivery.Result{delivery.Accepted})
	s.wantAppliedOnce("evt_1", 10*time.Second)
	got := p.arrivals()
	if len(got) != 1 {
		t.Fatalf("the partner was told %d times", len(got))
	}
	if n := wantVerified(t, got[0], id); n != 1 {
		t.Errorf("attempt %d was signed", n)
	}
	s.await("no promise is left", 10*time.Second, func() bool { return s.promises() == 0 })
}

// TestKillTheDispatcher ends the real program with SIGKILL where a partner could
// be told too little or under two names. Proves X2, X8, X12, T4.
func TestKillTheDispatcher(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, point string
		results     []delivery.Result
		wire        []int // the attempts that the partner saw
	}{
		{
			"after the attempt was recorded, before it was sent", "after:DynamoDB.TransactWriteItems",
			[]delivery.Result{delivery.Abandoned, delivery.Accepted}, []int{2},
		},
		{
			"after it was sent, before its answer was recorded", "before:DynamoDB.TransactWriteItems#2",
			[]delivery.Result{delivery.Abandoned, delivery.Accepted}, []int{1, 2},
		},
		{
			"after its answer was recorded", "after:DynamoDB.TransactWriteItems#2",
			[]delivery.Result{delivery.Accepted}, []int{1},
		},
		{
			"after the delivery was made, before anybody was woken", "before:SQS.SendMessageBatch",
			[]delivery.Result{delivery.Accepted}, []int{1},
		},
		{
			"before the fan-out is noted as done", "before:DynamoDB.DeleteItem",
			[]delivery.Result{delivery.Accepted}, []int{1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mark := filepath.Join(t.TempDir(), "died")
			s, p := start(t, map[string]map[string]string{"DispatcherFunction": {
				"DELIVERY_ATTEMPT_SECONDS": attemptSeconds, "DELIVERY_LEASE_SECONDS": shortestDeliveryLease,
				crashtest.PointVariable: tt.point, crashtest.MarkVariable: mark,
			}}), newPartner(t)
			s.subscribe("sub_1", p.URL+"/hooks")
			s.postUntilAcknowledged(payment("evt_1"))
			id := deliveryOf("evt_1", "sub_1")
			s.wantDelivered(id, 2*time.Minute, tt.results)
			s.await("it dies at "+tt.point, 10*time.Second, func() bool {
				_, err := os.Stat(mark)
				return err == nil
			})
			// And the next delivery goes through a program that has started again.
			s.postUntilAcknowledged(payment("evt_2"))
			s.wantDelivered(deliveryOf("evt_2", "sub_1"), 2*time.Minute, []delivery.Result{delivery.Accepted})
			var wire []int
			bodies := map[string]int{}
			for _, a := range p.arrivals() {
				if a.header.Get("Webhook-Id") != string(id) {
					continue // the next one's
				}
				wire = append(wire, wantVerified(t, a, id))
				bodies[fmt.Sprint(a.header.Get("Webhook-Id"), string(a.body))]++
			}
			if diff := cmp.Diff(tt.wire, wire); diff != "" || len(bodies) != 1 {
				t.Errorf("the wire saw %d different bodies or ids; attempts (-want +got):\n%s", len(bodies), diff)
			}
		})
	}
}
