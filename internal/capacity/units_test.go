package capacity_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"errors"

	"dakghar/internal/business"
	"dakghar/internal/delivery"
"dakghar/internal/crashtest"
	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

func dump(t *testing.T, w *sim.World, what string) {
	for table, u := range w.DynamoDB.Usage() {
		t.Logf("%s: %s write %.2f index %.2f read %.2f", what, table, u.Write/50, u.IndexWrite/50, u.Read/50)
	}
	w.DynamoDB.ResetUsage()
}

type failing struct{ n map[webhook.InboxID]int }

func (f failing) Plan(_ context.Context, ev webhook.Event, _ business.Reader) (webhook.Plan, error) {
	f.n[ev.InboxID]++
	if f.n[ev.InboxID] == 1 {
		return webhook.Plan{}, fault.New(fault.Theirs, "partner_503", errors.New("x"))
	}
	row := webhook.Item{"amount": ev.Facts.Amount, "currency": ev.Facts.Currency, "inbox_id": string(ev.InboxID)}
	return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{webhook.PutItem(business.Key(ev, "paid"), row)}}, nil
}

func TestY(t *testing.T) {
	body, err := os.ReadFile("../bench/testdata/payment_intent.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, subs := range []int{0, 1} {
		var log bytes.Buffer
		h := business.Standard()
		if subs == 0 { h = h.With(webhook.Payment, failing{map[webhook.InboxID]int{}}) }
		w := sim.New(t, sim.Options{Handlers: h, Log: &log})
		e := w.AddEndpoint("stripe", "demo", "whsec_secret_of_the_benchmark")
		for n := range subs {
			w.Subscribe(delivery.SubscriptionID(fmt.Sprintf("sub_%02d", n)), nil)
		}
		send := func(n int) {
			b := bytes.ReplaceAll(body, []byte("000000000000"), fmt.Appendf(nil, "%012d", n))
			if status := w.Send(&sim.Delivery{Endpoint: e, Sample: provider.Sample{Body: b}}); status != 200 {
				t.Fatal(status)
			}
		}
		send(0)
		w.Settle()
		w.Rest()
		w.DynamoDB.ResetUsage()
		logs := func(what string) { t.Log(what, "log bytes/event", log.Len()/50, strings.SplitN(log.String(),"\n",2)[0]); log.Reset() }
		log.Reset()
		t.Log("subs", subs)
		if subs == 1 { for range 50 { w.Partner.Answer(sim.PartnerAnswer{Status: 503}) } }
		for n := range 50 {
			send(n + 1)
		}
		dump(t, w, "accept")
		logs("accept")
		for w.PumpStream() {
		}
		dump(t, w, "relay"); logs("relay")
		for w.PumpQueue() {
		}
		dump(t, w, "process 1"); logs("process 1")
		for w.PumpStream() {
		}
		dump(t, w, "relay 2"); logs("relay 2")
		for w.PumpDeliveries() {
		}
		dump(t, w, "dispatch 1"); logs("dispatch")
		w.Settle()
		dump(t, w, "settle"); logs("settle")
		w.Rest()
		dump(t, w, "rest"); logs("rest")
		w.Ingress.Switch.KillAt(1, crashtest.Before)
		b := bytes.ReplaceAll(body, []byte("000000000000"), fmt.Appendf(nil, "%012d", 77))
		w.Post(&sim.Delivery{Endpoint: e, Sample: provider.Sample{Body: b}})
		t.Log("deaths", w.Ingress.Switch.Deaths())
		dump(t, w, "killed")
		for n := range 50 {
			send(n + 1)
			if n == 0 { dump(t, w, "first copy killed") }
		}
		dump(t, w, "copies")
	}
}
