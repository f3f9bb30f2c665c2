package business_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/provider"
	"dakghar/internal/provider/paddle"
	"dakghar/internal/webhook"
)

// shown is an event of Paddle's with a status that its sample does not show by
// itself.
func shown(t *testing.T, of webhook.EventType, id, object, status string, amount int) webhook.Event {
	t.Helper()
	a := paddle.Adapter()
	k, _ := a.Kind(of)
	ev := sampled(t, a, provider.SampleOptions{Type: of, EventID: id, ObjectID: object, ParentID: "txn_1", Amount: int64(amount)})
	f, err := a.Facts(k, of, fmt.Appendf(nil, `{"data":{"id":%q,"transaction_id":"txn_1","status":%q,"totals":{"total":"%d","currency_code":"USD"},
		"details":{"totals":{"grand_total":"%d","currency_code":"USD"}}}}`, object, status, amount, amount))
	if err != nil {
		t.Fatal(err)
	}
	ev.Facts = f
	return ev
}

// Proves O5, T3: what a chargeback took comes back with the adjustment that
// reverses it, once, whether or not the chargeback itself is told again, in every
// order of arrival. A warning before it moves nothing.
func TestAReversedChargebackGivesBackWhatItTook(t *testing.T) {
	t.Parallel()
	life := []webhook.Event{
		shown(t, "transaction.completed", "evt_1", "txn_1", "completed", 4200),
		shown(t, "adjustment.created/chargeback_warning", "evt_2", "adj_0", "approved", 4200),
		shown(t, "adjustment.created/chargeback", "evt_3", "adj_1", "approved", 4200),
		shown(t, "adjustment.created/chargeback_reverse", "evt_4", "adj_2", "approved", 4200),
		shown(t, "adjustment.updated/chargeback", "evt_5", "adj_1", "reversed", 4200),
	}
	orders := 0
	permute(life, func(order []webhook.Event) {
		orders++
		m := newMemory()
		m.processAll(t, business.Standard(), order...)
		m.processAll(t, business.Standard(), order...)
		got := map[string]any{}
		for key, row := range m.rows {
			switch key.SK {
			case "balance":
				got[key.PK+" balance"] = row[business.BalanceAttribute("USD")]
			case "projection":
				got[key.PK] = row[business.AttrState]
			}
		}
		want := map[string]any{
			"shop#paddle#payment#txn_1": "succeeded", "shop#paddle#payment#txn_1 balance": int64(4200),
			"shop#paddle#dispute#adj_0": "needs_response", "shop#paddle#dispute#adj_0 balance": nil,
			"shop#paddle#dispute#adj_1": "lost", "shop#paddle#dispute#adj_1 balance": int64(-4200),
			"shop#paddle#dispute#adj_2": "won", "shop#paddle#dispute#adj_2 balance": int64(4200),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("order %d (-want +got):\n%s", orders, diff)
		}
	})
	if orders != 120 {
		t.Errorf("%d orders of five events", orders)
	}
}
