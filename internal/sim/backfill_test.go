package sim_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/fault"
	"dakghar/internal/ingress"
	"dakghar/internal/provider"
	"dakghar/internal/provider/remote"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// Credentials of the simulation's APIs, made up.
const (
	stripeKey   = "rk_test_made_up_for_the_simulation"
	githubToken = "github_pat_made_up_for_the_simulation"
	razorpayKey = "rzp_test_made_up:for_the_simulation"
)

// listing is a world whose providers can be asked.
func listing(t *testing.T) (*sim.World, *fakeprovider.Server) {
	t.Helper()
	api := fakeprovider.New()
	return sim.New(t, sim.Options{API: api}), api
}

// asking is Stripe's endpoint, with access to its API and a back-fill every hour.
func asking(w *sim.World, api *fakeprovider.Server) *sim.Endpoint {
	e := stripe(w)
	api.Credential("stripe", stripeKey)
	w.Provide(e, stripeKey, nil, time.Hour)
	return e
}

// had makes Stripe have an event, whether or not it is sent. Its list writes it in
// other bytes than the delivery.
func had(w *sim.World, api *fakeprovider.Server, e *sim.Endpoint, id string) *sim.Delivery {
	o := payment(id)
	o.At = w.Now()
	d := w.Event(e, o)
	api.Event(listed(d.Sample.Body))
	return d
}

func listed(body []byte) []byte {
	return []byte(strings.Replace(string(body), "{", "{\n  ", 1))
}

// backfillScenarios are outages of the front door that a back-fill makes good.
func backfillScenarios() []sim.Scenario {
	return []sim.Scenario{backfillLists(), backfillRedelivers()}
}

// passes lets the schedule pass until a back-fill has come to its end.
func passes(w *sim.World, id webhook.EndpointID) {
	for range 20 {
		w.Reconcile()
		if !w.Backfilled(id).CompletedAt.IsZero() {
			return
		}
		w.Settle()
		w.Advance(time.Minute)
	}
}

func backfillLists() sim.Scenario {
	api := fakeprovider.New()
	api.PageMax(2)
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "back-fill", Options: sim.Options{API: api}, // whole events, two pages of them; one came, one comes late
		Arrange: func(w *sim.World) {
			e = asking(w, api)
			w.Advance(time.Minute)
		},
		Act: func(w *sim.World) {
			w.Send(had(w, api, e, "evt_1"))
			had(w, api, e, "evt_2")
			late := had(w, api, e, "evt_3")
			w.Advance(time.Minute)
			passes(w, e.ID)
			w.Send(late)
		},
		Want: applied(3),
	}
}

func backfillRedelivers() sim.Scenario {
	api := fakeprovider.New()
	var e *sim.Endpoint
	return sim.Scenario{
		Name: "back-fill by redelivery", Options: sim.Options{API: api}, // GitHub never sends again by itself
		Arrange: func(w *sim.World) {
			e = hooked(w, api)
			w.Advance(time.Minute)
		},
		Act: func(w *sim.World) {
			sent := map[string]*sim.Delivery{}
			for n := range 2 {
				d, guid := delivered(w, api, e, n, http.StatusBadGateway)
				sent[guid] = d
			}
			api.Redelivered = func(d fakeprovider.Delivery) { w.Owe(sent[d.GUID]) }
			passes(w, e.ID)
		},
		Want: applied(2),
	}
}

// hooked is GitHub's endpoint, with access to the list of its hook's deliveries.
func hooked(w *sim.World, api *fakeprovider.Server) *sim.Endpoint {
	e := w.AddEndpoint("github", "repo", "a text only the test knows")
	api.Credential("github", githubToken)
	w.Provide(e, githubToken, map[string]string{"repo": "acme/shop", "hook": "7"}, time.Hour)
	return e
}

// delivered makes GitHub have tried to deliver an event.
func delivered(w *sim.World, api *fakeprovider.Server, e *sim.Endpoint, n, status int) (d *sim.Delivery, guid string) {
	guid = fmt.Sprintf("72d3162e-cc78-11e3-81ab-4c9367dc09%02d", n)
	d = w.Event(e, provider.SampleOptions{Type: "repository.edited", EventID: guid, ObjectID: fmt.Sprint(1296269 + n), At: w.Now()})
	api.Deliver(fakeprovider.Delivery{
		Repo: "acme/shop", Hook: "7", ID: int64(1000 + n), GUID: guid, Event: "repository", Action: "edited", Status: status, At: w.Now(),
	})
	return d, guid
}

// wantRun compares a run's own counts and how it ended.
func wantRun(t *testing.T, what string, r ingress.BackfillReport, done bool, counts webhook.BackfillCounts, code string) {
	t.Helper()
	got := ""
	if r.Err != nil {
		got = fault.CodeOf(r.Err)
	}
	if r.Done != done || got != code {
		t.Errorf("%s: done %v, code %q (%v); want %v, %q", what, r.Done, got, r.Err, done, code)
	}
	if diff := cmp.Diff(counts, r.Counts); diff != "" {
		t.Errorf("%s: counts (-want +got):\n%s", what, diff)
	}
}

func wantNothingWrong(t *testing.T, w *sim.World) {
	t.Helper()
	w.Rest()
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
}

// Proves A1, A6, R1: an outage of the front door is made good by the schedule. Each
// event is there once and credited once, whether it was delivered before, while or
// after its provider was asked.
func TestAnOutageIsMadeGood(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	api.PageMax(2)
	e := asking(w, api)
	w.Advance(time.Minute)
	before := had(w, api, e, "evt_before")
	w.Send(before)
	had(w, api, e, "evt_lost_1")
	during := had(w, api, e, "evt_during")
	after := had(w, api, e, "evt_after")
	had(w, api, e, "evt_lost_2")
	api.Event(fmt.Appendf(nil, `{"id":"evt_unwanted","type":"topup.created","created":%d,"data":{"object":{"id":"tu_1"}}}`, w.Now().Unix()))
	api.Event(fmt.Appendf(nil, `{"id":"evt_unreadable","created":%d}`, w.Now().Unix()))
	w.Advance(time.Hour)
	w.Send(during) // the sender's own retry, as the list is read
	w.Reconcile()
	w.Send(after)

	row := w.Backfilled(e.ID)
	want := webhook.Backfill{
		Endpoint: "demo", Covered: w.Now(), CompletedAt: w.Now(), UpdatedAt: w.Now(), Revision: row.Revision,
		Counts: webhook.BackfillCounts{Pages: 4, Accepted: 3, Duplicate: 2, Unwanted: 1, Unreadable: 1},
	}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Errorf("the run (-want +got):\n%s", diff)
	}
	wantNothingWrong(t, w)
	if diff := cmp.Diff(map[string]int{"PROCESSED applied": 5}, outcomes(w)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if _, balances := w.Ledger(); sumOf(balances, business.BalanceAttribute("EUR")) != 5*1250 {
		t.Errorf("balances %v, want 6250 in all", balances)
	}
	matched := map[webhook.EventID]bool{}
	for _, r := range w.Inbox() {
		matched[r.EventID] = r.MatchedVersion == webhook.Backfilled
	}
	if diff := cmp.Diff(map[webhook.EventID]bool{
		"evt_before": false, "evt_during": false, "evt_lost_1": true, "evt_lost_2": true, "evt_after": true,
	}, matched); diff != "" {
		t.Errorf("which rows were back-filled (-want +got):\n%s", diff)
	}
}

// Proves A3: between a listed event and its delivery other bytes are no conflict,
// also where the provider's bodies never vary, whichever of them is first.
func TestOtherBytesThanListedAreADuplicate(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	e := w.AddEndpoint("razorpay", "demo", "a text only the test knows")
	api.Credential("razorpay", razorpayKey)
	w.Provide(e, razorpayKey, nil, time.Hour)
	w.Advance(time.Minute)
	api.Put("razorpay", "payments", fmt.Appendf(nil, `{"id":"pay_1","status":"captured","amount":100,"currency":"INR","created_at":%d}`, w.Now().Unix()))
	w.Reconcile()
	body := fmt.Appendf(nil, `{"event":"payment.captured","created_at":%d,"payload":{"payment":{"entity":{"id":"pay_1","status":"captured","amount":100,"currency":"INR"}}}}`, w.Now().Unix())
	d := &sim.Delivery{Endpoint: e, Sample: provider.Sample{Header: map[string]string{"x-razorpay-event-id": "backfill-pay_1-captured"}, Body: body}}
	if status := w.Send(d); status != http.StatusOK {
		t.Errorf("a delivery onto a back-filled row: status %d, want 200", status)
	}
	wantNothingWrong(t, w)
	if diff := cmp.Diff(map[string]int{"PROCESSED applied": 1}, outcomes(w)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// Proves A3: the same where the delivery comes between looking for its row and
// accepting what was listed.
func TestADeliveryBetweenLookingAndAcceptingIsTheSameEvent(t *testing.T) {
	t.Parallel()
	api := fakeprovider.New()
	var w *sim.World
	var between func()
	hook := func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("between", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			if _, accepts := in.Parameters.(*dynamodb.TransactWriteItemsInput); accepts && between != nil {
				between()
				between = nil
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	}
	w = sim.New(t, sim.Options{API: api, Middleware: map[string]func(*middleware.Stack) error{"reconciler": hook}})
	e := w.AddEndpoint("razorpay", "demo", "a text only the test knows")
	w.Provide(e, razorpayKey, nil, time.Hour)
	w.Advance(time.Minute)
	api.Put("razorpay", "payments", fmt.Appendf(nil, `{"id":"pay_1","status":"captured","amount":100,"currency":"INR","created_at":%d}`, w.Now().Unix()))
	came := false
	between = func() {
		d := w.Event(e, provider.SampleOptions{Type: "payment.captured", EventID: "backfill-pay_1-captured", ObjectID: "pay_1", Amount: 100, Currency: "INR"})
		came = w.Send(d) == http.StatusOK
	}
	w.Reconcile()
	if got, want := w.Backfilled(e.ID).Counts, (webhook.BackfillCounts{Pages: 4, Duplicate: 1}); got != want || !came {
		t.Errorf("delivered %v; counts %+v, want %+v", came, got, want)
	}
	wantNothingWrong(t, w)
	if diff := cmp.Diff(map[string]int{"PROCESSED applied": 1}, outcomes(w)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// Proves O3, A6: what a provider lists only as an object is an event of its own,
// which converges with the one that came: the ledger is credited once, and a run
// that sees the object again makes nothing of it.
func TestAMadeEventConverges(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"delivery", "list"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			w, api := listing(t)
			e := w.AddEndpoint("razorpay", "demo", "a text only the test knows")
			api.Credential("razorpay", razorpayKey)
			w.Provide(e, razorpayKey, nil, time.Hour)
			w.Advance(time.Minute)
			state := fmt.Appendf(nil, `{"id":"pay_1","status":"captured","amount":100,"currency":"INR","order_id":null,"created_at":%d}`, w.Now().Unix())
			api.Put("razorpay", "payments", state)
			d := w.Event(e, provider.SampleOptions{Type: "payment.captured", EventID: "evt_1", ObjectID: "pay_1", Amount: 100, Currency: "INR", At: w.Now()})
			if first == "delivery" {
				w.Send(d)
				w.Settle()
			}
			w.Reconcile()
			w.Settle()
			if first == "list" {
				w.Send(d)
			}
			w.Settle()
			api.Put("razorpay", "payments", fmt.Appendf(nil, `{"id":"pay_1","status":"captured","amount":100,"currency":"INR","notes":{"a":"b"},"created_at":%d}`, w.Now().Unix()))
			w.Advance(time.Hour)
			w.Reconcile()
			if got, want := w.Backfilled(e.ID).Counts, (webhook.BackfillCounts{Pages: 4, Duplicate: 1}); got != want {
				t.Errorf("the second run: %+v, want %+v", got, want)
			}
			wantNothingWrong(t, w)
			if diff := cmp.Diff(map[string]int{"PROCESSED applied": 1, "PROCESSED stale": 1}, outcomes(w)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if _, balances := w.Ledger(); sumOf(balances, business.BalanceAttribute("INR")) != 100 {
				t.Errorf("balances %v, want 100 in all", balances)
			}
		})
	}
}

// Proves A6: GitHub sends what is missing again, each delivery once in a run, so
// many at a time; what it does not send again holds nothing up.
func TestDeliveriesAreAskedForOnceInARun(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	e := hooked(w, api)
	w.Advance(time.Minute)
	var again []string
	api.Redelivered = func(d fakeprovider.Delivery) { again = append(again, d.GUID) }
	var all []*sim.Delivery
	for n := range 5 { // newest first in the list
		d, _ := delivered(w, api, e, n, http.StatusBadGateway)
		all = append(all, d)
		w.Advance(time.Second)
	}
	w.Send(all[1]) // another way: by hand
	run := func() ingress.BackfillReport {
		return w.RivalBackfill().Run(t.Context(), w.Registered(e.ID), ingress.BackfillAsk{})
	}

	wantRun(t, "the first part", run(), false, webhook.BackfillCounts{Pages: 1, Duplicate: 1, Redelivered: 3}, "")
	if got, want := w.Backfilled(e.ID).NotBefore, w.Now().Add(ingress.RedeliverRest); !got.Equal(want) {
		t.Errorf("it goes on at %s, want %s", got, want)
	}
	w.Send(all[4])
	w.Advance(time.Minute)
	wantRun(t, "the second part", run(), true, webhook.BackfillCounts{Pages: 1, Duplicate: 2, Awaited: 2, Redelivered: 1}, "")
	if want := []string{"04", "03", "02", "00"}; !slices.EqualFunc(again, want, strings.HasSuffix) {
		t.Errorf("asked for %q, want those that end in %q", again, want)
	}
	again = nil
	w.Advance(time.Hour)
	api.Next("github", fakeprovider.Fault{}, fakeprovider.Fault{Status: http.StatusNotFound, Body: `{}`}) // the page; the first it is asked for
	wantRun(t, "the next run", run(), true, webhook.BackfillCounts{Pages: 1, Duplicate: 2, Redelivered: 2, Refused: 1}, "")
	if want := []string{"02", "00"}; !slices.EqualFunc(again, want, strings.HasSuffix) {
		t.Errorf("asked for %q, want those that end in %q", again, want)
	}
}

// Proves A6: what the front door never takes is asked for three days long and not
// for ever, although each try makes one more item of the list.
func TestADeliveryIsNotAskedForWithoutEnd(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	e := hooked(w, api)
	w.Advance(time.Minute)
	_, guid := delivered(w, api, e, 1, http.StatusRequestEntityTooLarge)
	var again []time.Duration
	began := w.Now()
	api.Redelivered = func(d fakeprovider.Delivery) {
		again = append(again, w.Now().Sub(began).Round(time.Hour))
		d.ID, d.At = d.ID+1, w.Now()
		api.Deliver(d)
	}
	for range 100 {
		w.Reconcile()
		w.Advance(time.Hour)
	}
	if n := len(again); n != 73 || again[n-1] != 72*time.Hour {
		t.Errorf("asked for %d times, the last time after %v; want 73 times in 72h", n, again[n-1])
	}
	if row := w.Backfilled(e.ID); len(row.Asked) != 0 {
		t.Errorf("%s is remembered still: %+v", guid, row.Asked)
	}
}

// Proves A6, R1: what is in the way of a run ends it in order, and it goes on from
// its place when the provider wants to hear from us again, by another program.
func TestARunGoesOnFromItsPlace(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	api.PageMax(1)
	e := asking(w, api)
	w.Advance(time.Minute)
	for n := range 3 {
		had(w, api, e, fmt.Sprintf("evt_%d", n))
		w.Advance(time.Second)
	}
	run := func() ingress.BackfillReport {
		return w.RivalBackfill().Run(t.Context(), w.Registered(e.ID), ingress.BackfillAsk{})
	}
	began := w.Now()
	throttled := fakeprovider.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"300"}}}
	api.Next("stripe", fakeprovider.Fault{}, throttled)
	r := run()
	wantRun(t, "throttled in the middle", r, false, webhook.BackfillCounts{Pages: 1, Accepted: 1}, "api_throttled")
	if remote.After(r.Err) != 5*time.Minute {
		t.Errorf("to be left alone for %s, want 5m", remote.After(r.Err))
	}
	had(w, api, e, "evt_newer") // changes the pages; the next run finds it

	w.Advance(4 * time.Minute)
	asked := len(api.Asked())
	w.Reconcile()
	if n := len(api.Asked()) - asked; n != 0 {
		t.Errorf("the provider was asked %d times before it wanted to be", n)
	}
	w.Advance(time.Minute)
	w.Reconcile()
	row := w.Backfilled(e.ID)
	want := webhook.Backfill{
		Endpoint: e.ID, Covered: began, CompletedAt: w.Now(), UpdatedAt: w.Now(), Revision: row.Revision,
		Counts: webhook.BackfillCounts{Pages: 3, Accepted: 3},
	}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Errorf("the run (-want +got):\n%s", diff)
	}
	w.Advance(time.Hour)
	wantRun(t, "the next run", run(), true, webhook.BackfillCounts{Pages: 4, Accepted: 1, Duplicate: 3}, "")
	wantNothingWrong(t, w)
}

// A provider forgets the places in its lists: then the list is walked from its
// start again.
func TestAPlaceThatIsForgottenBeginsTheListAgain(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	api.PageMax(1)
	e := asking(w, api)
	w.Advance(time.Minute)
	had(w, api, e, "evt_1")
	had(w, api, e, "evt_2")
	run := func() ingress.BackfillReport {
		return w.RivalBackfill().Run(t.Context(), w.Registered(e.ID), ingress.BackfillAsk{})
	}
	api.Next("stripe", fakeprovider.Fault{}, fakeprovider.Fault{Status: http.StatusBadRequest, Body: `{}`})
	wantRun(t, "the place is gone", run(), false, webhook.BackfillCounts{Pages: 1, Accepted: 1}, "api_refused")
	if row := w.Backfilled(e.ID); !row.Open() || row.Cursor != "" || row.LastError != "api_refused" {
		t.Errorf("the run is left as %+v, want open at its start", row)
	}
	w.Advance(time.Minute)
	wantRun(t, "from the start", run(), true, webhook.BackfillCounts{Pages: 2, Accepted: 1, Duplicate: 1}, "")
}

// Proves P5, V9: what stands in for a signature is the provider's own host and our
// credential. Without an answer to that credential nothing is stored.
func TestAWrongCredentialStoresNothing(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	e := asking(w, api)
	api.Credential("stripe", "rk_test_another_one_than_is_stored")
	w.Advance(time.Minute)
	had(w, api, e, "evt_1")
	for _, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		w.Reconcile()
		if w.ReconcileErr != nil {
			t.Errorf("a refused credential is no fault of the pass: %v", w.ReconcileErr)
		}
		row := w.Backfilled(e.ID)
		if row.LastError != "api_credential_refused" || !row.NotBefore.Equal(w.Now().Add(pause)) {
			t.Errorf("left as %q until %s, want api_credential_refused until %s", row.LastError, row.NotBefore, w.Now().Add(pause))
		}
		w.Advance(pause)
	}
	if n := w.Stored(); n != 0 {
		t.Errorf("%d rows are stored, want none", n)
	}
	for _, asked := range api.Asked() {
		if asked.Credential {
			t.Errorf("%+v was let in", asked)
		}
	}
}

// Proves A6: of two programs one works; should both, each event is there once.
func TestTwoProgramsOnOneBackfill(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	api.PageMax(1)
	e := asking(w, api)
	w.Advance(time.Minute)
	had(w, api, e, "evt_1")
	had(w, api, e, "evt_2")
	one, two := w.RivalBackfill(), w.RivalBackfill()
	pages := 0
	r := one.Run(t.Context(), w.Registered(e.ID), ingress.BackfillAsk{Tell: func(webhook.Backfill) {
		if pages++; pages == 2 { // after its first page
			wantRun(t, "beside the lease", two.Run(t.Context(), w.Registered(e.ID), ingress.BackfillAsk{}), false, webhook.BackfillCounts{}, "backfill_taken")
			w.Advance(2 * time.Minute) // the first one was too slow, and does not know it
			wantRun(t, "after the lease", two.Run(t.Context(), w.Registered(e.ID), ingress.BackfillAsk{}), true, webhook.BackfillCounts{Pages: 1, Accepted: 1}, "")
			w.Advance(-2 * time.Minute)
		}
	}})
	wantRun(t, "the one that was overtaken", r, false, webhook.BackfillCounts{Pages: 1 + 1, Accepted: 1, Duplicate: 1}, "backfill_taken")
	wantNothingWrong(t, w)
	if diff := cmp.Diff(map[string]int{"PROCESSED applied": 2}, outcomes(w)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// Proves O4: an event that is parked behind a gap asks for a back-fill, once a
// minute at most, and a gap that never closes asks in vain now and then only.
func TestAGapAsksForABackfill(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	e := sequenced(w)
	w.Provide(e, "made up, and never shown: this sender has no API", nil, 0)
	w.Send(w.Event(e, step(2)))
	w.Settle()
	if got := w.Backfilled(e.ID); !got.WantedAt.IsZero() {
		t.Errorf("wanted at %s, although the endpoint asks for no back-fills", got.WantedAt)
	}
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.BackfillEvery = 24 * time.Hour
		return e
	})
	w.Advance(time.Minute)
	first := w.Now()
	w.Send(w.Event(e, step(4)))
	w.Settle()
	w.Advance(30 * time.Second)
	w.Send(w.Event(e, step(5)))
	w.Settle()
	if got := w.Backfilled(e.ID); !got.WantedAt.Equal(first) {
		t.Errorf("wanted at %s, want %s: once a minute", got.WantedAt, first)
	}
	w.Advance(30 * time.Second)
	w.Send(w.Event(e, step(6)))
	w.Settle()
	if got := w.Backfilled(e.ID); !got.WantedAt.Equal(first.Add(time.Minute)) {
		t.Errorf("wanted at %s, want a minute after %s", got.WantedAt, first)
	}
	if len(api.Asked()) != 0 {
		t.Errorf("somebody was asked: %+v", api.Asked())
	}
}

// Proves R1: a run that was asked for comes before the schedule's own time, though
// not more often than it would help.
func TestAWantedRunComesEarly(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	e := asking(w, api)
	w.Reconcile()
	began := w.Now()
	w.Advance(time.Minute)
	had(w, api, e, "evt_1")
	if err := w.Outside.WantBackfill(context.Background(), e.ID, w.Now()); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		w.Reconcile()
		if got := w.Backfilled(e.ID).Covered; !got.Equal(began) {
			t.Fatalf("a run began at %s already", got)
		}
		w.Advance(time.Minute)
	}
	w.Reconcile()
	row := w.Backfilled(e.ID)
	if want := (webhook.BackfillCounts{Pages: 1, Accepted: 1}); row.Counts != want || !row.Covered.Equal(w.Now()) {
		t.Errorf("the wanted run: %+v, covered %s; want %+v at %s", row.Counts, row.Covered, want, w.Now())
	}
}

// An endpoint's own limit holds for what is fetched as well: the run waits.
func TestABackfillKeepsTheEndpointsLimit(t *testing.T) {
	t.Parallel()
	w, api := listing(t)
	e := asking(w, api)
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.Rate, e.Burst = 1, 1
		return e
	})
	w.Advance(time.Minute)
	for n := range 5 {
		had(w, api, e, fmt.Sprintf("evt_%d", n))
	}
	began := w.Now()
	wantRun(t, "limited", w.RivalBackfill().Run(t.Context(), w.Registered(e.ID), ingress.BackfillAsk{}), true, webhook.BackfillCounts{Pages: 1, Accepted: 5}, "")
	if took := w.Now().Sub(began); took < 4*time.Second {
		t.Errorf("five events took %s at one a second", took)
	}
}
