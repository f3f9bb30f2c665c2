package bench

import (
	"context"
	"testing"

	"dakghar/internal/business"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// measureUnits counts the write units from a request to its row's PROCESSED, by
// the embedded store's size formula. The data key's row, one an hour and
// process, is not counted.
func measureUnits(t *testing.T, f *figures) {
	payment := paymentBody(t)
	oneRow := business.Standard().With(webhook.Payment, oneRow{})
	f.set(t, "write_units_per_event", writeUnits(t, oneRow, payment))
	f.set(t, "write_units_per_event_builtin_payment", writeUnits(t, business.Standard(), payment))
	f.set(t, "write_units_per_event_digest_filled", writeUnits(t, oneRow, filledBody(t)))
}

// filledBody is a small payment that is filled up to 10 KiB with digests: what a
// body costs of which half is entropy.
func filledBody(t *testing.T) []byte {
	t.Helper()
	sample, err := stripe(t).Sample(provider.SampleOptions{
		Type: "payment_intent.succeeded", EventID: "evt_" + number, ObjectID: "pi_" + number, Amount: amount, Currency: currency, BodyBytes: bodyBytes,
	})
	if err != nil {
		t.Fatal(err)
	}
	return sample.Body
}

// oneRow is the handler of the bound: it writes one small row.
type oneRow struct{}

func (oneRow) Plan(_ context.Context, ev webhook.Event, _ business.Reader) (webhook.Plan, error) {
	row := webhook.Item{"amount": ev.Facts.Amount, "currency": ev.Facts.Currency, "inbox_id": string(ev.InboxID)}
	return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{webhook.PutItem(business.Key(ev, "paid"), row)}}, nil
}

func writeUnits(t *testing.T, handlers *business.Router, body []byte) float64 {
	t.Helper()
	const events = 50
	w := sim.New(t, sim.Options{Handlers: handlers})
	e := w.AddEndpoint("stripe", endpoint, secretText)
	send := func(n int) {
		sample := provider.Sample{Body: numbered(body, n)}
		if status := w.Send(&sim.Delivery{Endpoint: e, Sample: sample}); status != 200 {
			t.Fatalf("event %d: status %d", n, status)
		}
		w.Settle()
	}
	send(0) // the first brings the data key
	w.DynamoDB.ResetUsage()
	for n := range events {
		send(n + 1)
	}
	for _, row := range w.Inbox() {
		if row.Status != webhook.Processed || row.Outcome != webhook.Applied {
			t.Fatalf("%s ended %s %s", row.EventID, row.Status, row.Outcome)
		}
	}
	total := 0.0
	for table, units := range w.DynamoDB.Usage() {
		t.Logf("%s: %.2f write units an event, %.2f of them in indexes; %.2f read units", table, units.Write/events, units.IndexWrite/events, units.Read/events)
		total += units.Write
	}
	return total / events
}
