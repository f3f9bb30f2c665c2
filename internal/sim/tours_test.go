package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/canary"
	"dakghar/internal/delivery"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// tours are the ways that no scenario goes: limits, large and missing bodies,
// erasures, the daily comparison, partners who fail for days.
func tours() map[string]func(*testing.T, *sim.Use) {
	return map[string]func(*testing.T, *sim.Use){
		"an acceptance fails behind its body": tourOfARenewedBody,
		"an endpoint with a limit":            tourOfAnEndpointsLimit,
		"an erased event comes again":         tourOfAnErasedEvent,
		"a back-fill of large bodies":         tourOfALargeBackfill,
		"a back-fill beside an erasure":       tourOfALateErasure,
		"a day passes":                        tourOfADay,
		"a plan of all kinds of writes":       tourOfAPlan,
		"a gap asks for a back-fill":          tourOfAGap,
		"an object is fetched":                tourOfAFetch,
		"effects are large":                   tourOfLargeEffects,
		"many partners":                       tourOfManyPartners,
		"a partner with a limit":              tourOfAPartnersLimit,
		"a partner fails for days":            tourOfAPausedPartner,
		"bodies are missing":                  tourOfMissingBodies,
		"our key does not answer":             tourOfAnOutage,
		"canaries go in":                      tourOfCanaries,
	}
}

// withFaults are the options of a world in which one program's calls go wrong.
func withFaults(use *sim.Use, program string, o sim.Options) (sim.Options, *sim.Faults) {
	faults := &sim.Faults{}
	o.Use, o.Middleware = use, map[string]func(*middleware.Stack) error{program: faults.Middleware}
	return o, faults
}

func tourOfARenewedBody(t *testing.T, use *sim.Use) {
	o, faults := withFaults(use, "ingress", sim.Options{})
	w := sim.New(t, o)
	faults.Add(sim.Fault{Operation: "TransactWriteItems", Times: 10, Err: sim.ErrThrottle})
	send(w, stripe(w), "evt_1")
	faults.Clear()
	wantEnd(t, w, map[string]int{"PROCESSED applied": 1})
}

func tourOfAnEndpointsLimit(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	e := stripe(w)
	limited(w, e)
	w.Advance(time.Minute)
	send(w, e, "evt_1", "evt_2", "evt_3")
	wantEnd(t, w, map[string]int{"PROCESSED applied": 3})
}

func tourOfCanaries(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use, Parameters: map[string]string{"Canary": "true"}})
	w.Configure(stripe(w), func(e webhook.Endpoint) webhook.Endpoint {
		e.Canary = true
		return e
	})
	reports := w.Canaries()
	if len(reports) != 1 || reports[0].Decision != canary.Arrived {
		t.Errorf("canaries: %+v", reports)
	}
	wantEnd(t, w, map[string]int{"PROCESSED ignored": 1})
}

func limited(w *sim.World, e *sim.Endpoint) {
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.Rate, e.Burst = 1, 1
		return e
	})
}

func erase(t *testing.T, w *sim.World, event webhook.EventID) {
	t.Helper()
	if _, err := w.Command(business.Standard()).Erase(t.Context(), inbox(event), "request 77"); err != nil {
		t.Fatal(err)
	}
}

func tourOfAnErasedEvent(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use, InlineBytes: 1})
	d := w.Event(stripe(w), payment("evt_1"))
	w.Send(d)
	w.Settle()
	erase(t, w, "evt_1")
	w.RestartIngress()
	if status := w.Post(d); status != 200 {
		t.Errorf("a repeat is answered %d", status)
	}
}

func tourOfALargeBackfill(t *testing.T, use *sim.Use) {
	api := fakeprovider.New()
	o, faults := withFaults(use, "reconciler", sim.Options{API: api, InlineBytes: 1})
	w := sim.New(t, o)
	e := asking(w, api)
	limited(w, e)
	w.Advance(time.Minute)
	w.Send(had(w, api, e, "evt_1"))
	w.Settle()
	erase(t, w, "evt_1")
	had(w, api, e, "evt_2")
	faults.Add(sim.Fault{Operation: "TransactWriteItems", Table: "InboxTable", Times: 10, Err: sim.ErrThrottle})
	w.Reconcile()
	faults.Clear()
	passes(w, e.ID)
	w.Rest()
	if n := len(w.Inbox()); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// tourOfALateErasure is an event that comes, is done and erased between looking
// for it and accepting it from the list.
func tourOfALateErasure(t *testing.T, use *sim.Use) {
	api := fakeprovider.New()
	o, faults := withFaults(use, "reconciler", sim.Options{API: api, InlineBytes: 1})
	w := sim.New(t, o)
	e := asking(w, api)
	w.Advance(time.Minute)
	sample := payment("evt_1")
	sample.At = w.Now()
	d := w.Event(e, sample)
	api.Event(d.Sample.Body)
	faults.Add(sim.Fault{Operation: "PutObject", Times: 1, Meanwhile: func() {
		w.Send(d)
		w.Settle()
		erase(t, w, "evt_1")
	}})
	passes(w, e.ID)
	if row := w.Row(inbox("evt_1")); row.ErasedAt.IsZero() || w.BodyKept(row.Digest, e.ID) {
		t.Errorf("the bytes are there again: %+v", row)
	}
}

// tourOfADay compares the events of a day with their promises, marks and bodies.
// One has a promise of another life, one has none.
func tourOfADay(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	e := stripe(w)
	w.Reconcile() // the comparison begins here
	send(w, e, "evt_1", "evt_2")
	w.PumpStream()
	w.Settle()
	w.Hold(inbox("evt_2"))
	send(w, e, "evt_3")
	w.ForgetPromise(inbox("evt_3"))
	w.DropStream()
	w.PutPromise(webhook.Outbox{ID: webhook.NewOutboxID(inbox("evt_1"), webhook.TopicProcess, 0), InboxID: inbox("evt_1"), Endpoint: e.ID, Topic: webhook.TopicProcess, Gen: 99, CreatedAt: w.Now(), DueAt: w.Now(), WakeAt: w.Now()})
	for range 3 {
		w.Advance(24 * time.Hour)
		w.Reconcile()
	}
}

func tourOfAPlan(t *testing.T, use *sim.Use) {
	key := func(sort string) webhook.Key { return webhook.Key{PK: "tour", SK: sort} }
	w := sim.New(t, sim.Options{Use: use, Handlers: handling(func(context.Context, webhook.Event, business.Reader) (webhook.Plan, error) {
		return webhook.Plan{Outcome: webhook.Applied, Actions: []webhook.Action{
			webhook.DeleteItem(key("old")), webhook.CheckItem(key("other")).If(webhook.Unchanged, webhook.IfAbsent()),
		}}, nil
	})})
	send(w, stripe(w), "evt_1")
	w.Rest()
	if diff := cmp.Diff(map[string]int{"PROCESSED applied": 1}, outcomes(w)); diff != "" {
		t.Errorf("rows ended (-want +got):\n%s", diff)
	}
}

func tourOfAGap(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use, API: fakeprovider.New()})
	e := sequenced(w)
	w.Provide(e, "made up, and never shown: this sender has no API", nil, 24*time.Hour)
	w.Advance(time.Minute)
	w.Send(w.Event(e, step(2)))
	w.Settle()
	if w.Backfilled(e.ID).WantedAt.IsZero() {
		t.Error("nobody asked for a back-fill")
	}
}

func tourOfAFetch(t *testing.T, use *sim.Use) {
	api := fakeprovider.New()
	w := sim.New(t, sim.Options{Use: use, API: api, AskAPI: true})
	e := asking(w, api)
	w.Configure(e, policies("refund.updated")(webhook.ByFetch))
	api.Put("stripe", "refunds", refundNow("succeeded"))
	w.Send(w.Event(e, refund("evt_1")))
	w.Rest()
	for _, wrong := range wantRefund(w) {
		t.Error(wrong)
	}
}

func tourOfLargeEffects(t *testing.T, use *sim.Use) {
	o, faults := withFaults(use, "processor", sim.Options{InlineBytes: 1})
	w := sim.New(t, o)
	var e *sim.Endpoint
	told(&e, 1, nil)(w)
	faults.Add(sim.Fault{Operation: "TransactWriteItems", Table: "BusinessTable", Times: 10, Err: sim.ErrThrottle})
	send(w, e, "evt_1")
	w.Settle()
	faults.Clear()
	w.Rest()
	for _, wrong := range wantDeliveries(map[delivery.Status]int{delivery.Delivered: 1})(w) {
		t.Error(wrong)
	}
}

func tourOfManyPartners(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	var e *sim.Endpoint
	told(&e, 60, nil)(w)
	send(w, e, "evt_1")
	w.Rest()
	for _, wrong := range wantDeliveries(map[delivery.Status]int{delivery.Delivered: 60})(w) {
		t.Error(wrong)
	}
}

func tourOfAPartnersLimit(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	var e *sim.Endpoint
	told(&e, 1, func(s *delivery.Subscription) { s.Rate, s.Burst = 1, 1 })(w)
	send(w, e, "evt_1", "evt_2")
	w.Rest()
	for _, wrong := range wantDeliveries(map[delivery.Status]int{delivery.Delivered: 2})(w) {
		t.Error(wrong)
	}
}

// tourOfAPausedPartner is one attempt too much: the others are told of the pause.
func tourOfAPausedPartner(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use})
	var e *sim.Endpoint
	told(&e, 1, func(s *delivery.Subscription) { s.FailingSince = w.Now().Add(-delivery.FailingMax) })(w)
	w.Partner.Always(sim.PartnerAnswer{Status: 500})
	send(w, e, "evt_1")
	w.Settle()
	s, _, err := w.Outside.Subscription(t.Context(), "sub_00")
	if err != nil || s.State != delivery.Paused {
		t.Errorf("the subscription is %s (%v), want paused", s.State, err)
	}
}

// tourOfMissingBodies asks S3 for objects that are not there.
func tourOfMissingBodies(t *testing.T, use *sim.Use) {
	w := sim.New(t, sim.Options{Use: use, InlineBytes: 1})
	var e *sim.Endpoint
	told(&e, 1, nil)(w)
	send(w, e, "evt_1")
	w.DropObjects()
	w.Settle()
	send(w, e, "evt_2")
	for w.PumpStream() {
	}
	w.PumpQueue()
	w.DropObjects()
	w.Settle()
}

func tourOfAnOutage(t *testing.T, use *sim.Use) {
	o, faults := withFaults(use, "processor", sim.Options{})
	w := sim.New(t, o)
	faults.Add(sim.Fault{Operation: "Decrypt", Times: -1, Err: sim.ErrLost})
	e := stripe(w)
	for _, event := range []string{"evt_1", "evt_2", "evt_3", "evt_4", "evt_5", "evt_6"} {
		send(w, e, event)
		w.Minute()
	}
	faults.Clear()
	wantEnd(t, w, map[string]int{"PROCESSED applied": 6})
}
