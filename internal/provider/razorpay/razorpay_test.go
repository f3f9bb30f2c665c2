package razorpay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/provider/providertest"
	"dakghar/internal/provider/razorpay"
	"dakghar/internal/signature"
	"dakghar/internal/webhook"
)

func suite() providertest.Suite {
	return providertest.Suite{
		Current: "current secret of the suite", Previous: "previous secret of the suite", Other: "other secret of the suite",
		Type: "payment.captured",
		NotSecrets: map[string]error{
			"short": signature.ErrSecretTooShort, "key_secret": signature.ErrSecretPublished, "rzp_live_0123456789": signature.ErrSecretForeign,
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, razorpay.Adapter(), suite())
}

// Proves T1: the body that Razorpay's own library tests with is read whole.
func TestThePublishedBodyIsRead(t *testing.T) {
	t.Parallel()
	a := razorpay.Adapter()
	for _, v := range providertest.Vectors(t) {
		if v.Name != "sdk-payment-authorized" {
			continue
		}
		body := []byte(v.BodyUTF8)
		e, err := a.Envelope(signature.Header{"x-razorpay-event-id": "evt_1"}, body)
		wantEnvelope := provider.Envelope{
			EventID: "evt_1", Type: "payment.authorized", ObjectID: "pay_6koWN7bvxujzxM", CreatedAt: time.Unix(1400826760, 0).UTC(),
		}
		if diff := cmp.Diff(wantEnvelope, e); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		k, _ := a.Kind(e.Type)
		f, err := a.Facts(k, e.Type, body)
		want := webhook.Facts{
			ObjectType: webhook.Payment, ObjectID: "pay_6koWN7bvxujzxM", State: "authorised",
			Amount: 1000000, Currency: "INR", ParentID: "order_100000000order", CreatedAt: time.Unix(1400826760, 0).UTC(),
		}
		if diff := cmp.Diff(want, f); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		return
	}
	t.Fatal("the vector is gone")
}

func TestEveryStatusHasAState(t *testing.T) {
	t.Parallel()
	a := razorpay.Adapter()
	for eventType, statuses := range map[webhook.EventType]map[string]string{
		"refund.created": {"pending": "pending", "processed": "succeeded -1", "failed": "failed"},
		"subscription.updated": {
			"created": "incomplete", "authenticated": "incomplete", "active": "active", "pending": "past_due", "halted": "unpaid",
			"paused": "paused", "cancelled": "cancelled", "completed": "cancelled", "expired": "cancelled",
		},
	} {
		k, _ := a.Kind(eventType)
		for status, want := range statuses {
			entity := fmt.Sprintf(`{"entity":{"id":"x_1","amount":1,"currency":"INR","status":%q}}`, status)
			f, err := a.Facts(k, eventType, []byte(`{"payload":{"refund":`+entity+`,"subscription":`+entity+`}}`))
			got := f.State
			if f.Credit != 0 {
				got = fmt.Sprintf("%s %+d", f.State, f.Credit)
			}
			if err != nil || got != want {
				t.Errorf("%s with status %s: %q, %v; want %q", eventType, status, got, err, want)
			}
		}
	}
}

// A capture without its amount must not be applied as a capture of nothing.
func TestACaptureWithoutAnAmountFails(t *testing.T) {
	t.Parallel()
	a := razorpay.Adapter()
	k, _ := a.Kind("payment.captured")
	_, err := a.Facts(k, "payment.captured", []byte(`{"payload":{"payment":{"entity":{"id":"pay_1","status":"captured"}}}}`))
	if fault.CodeOf(err) != "amount_missing" || fault.KindOf(err) != fault.Permanent {
		t.Errorf("got %v", err)
	}
}

// What is lost is what was taken, not what was disputed.
func TestALostDisputeTakesWhatWasDeducted(t *testing.T) {
	t.Parallel()
	a := razorpay.Adapter()
	k, _ := a.Kind("payment.dispute.lost")
	got, err := a.Facts(k, "payment.dispute.lost", []byte(
		`{"payload":{"dispute":{"entity":{"id":"disp_1","payment_id":"pay_1","amount":10000,"amount_deducted":9000,"currency":"INR","status":"lost"}}}}`))
	want := webhook.Facts{ObjectType: webhook.Dispute, ObjectID: "disp_1", State: "lost", Amount: 9000, Currency: "INR", Credit: -1, ParentID: "pay_1"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
