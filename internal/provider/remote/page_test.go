package remote_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dakghar/internal/fault"
	"dakghar/internal/provider"
	"dakghar/internal/provider/remote"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/webhook"
)

// walk reads all pages since a time and returns what is listed, as the ids of the
// events, and the number of pages. between runs after each page.
func (w *world) walk(t *testing.T, p webhook.Provider, since time.Time, between func(page int)) (ids []string, pages int) {
	t.Helper()
	a, cursor := adapter(t, p), ""
	for {
		page, err := w.client.Page(t.Context(), endpoint(p), a, since, cursor)
		if err != nil || page.Unreadable != 0 {
			t.Fatalf("page %d: %d unreadable, %v", pages+1, page.Unreadable, err)
		}
		pages++
		for _, past := range page.Items {
			ids = append(ids, string(past.EventID))
			w.readable(t, a, past)
		}
		if between != nil {
			between(pages)
		}
		if cursor = page.Next; cursor == "" {
			return ids, pages
		}
	}
}

// readable holds what was listed to what the front door would read.
func (w *world) readable(t *testing.T, a *provider.Adapter, past provider.Past) {
	t.Helper()
	if past.Body == nil {
		return
	}
	e, err := a.Envelope(past.Header, past.Body)
	if err != nil || e.EventID != past.EventID || e.Type != past.Type {
		t.Errorf("the front door reads %+v, %v; the list said %s %s", e, err, past.EventID, past.Type)
	}
	k, ok := a.Kind(past.Type)
	if !ok {
		t.Errorf("%s is not in the catalogue", past.Type)
	}
	if _, err := a.Facts(k, past.Type, past.Body); err != nil {
		t.Errorf("%s: %v", past.EventID, err)
	}
}

// Proves A3 and the listing half of a back-fill: Stripe's events come page by
// page, from a time on, each under the id that it was sent with, whatever is added
// meanwhile.
func TestEventsOfStripe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.PageMax(2)
	event := func(n int, at time.Time) {
		w.Event(fmt.Appendf(nil, `{"id":"evt_%d","object":"event","type":"payment_intent.succeeded","created":%d,"data":{"object":{"id":"pi_%d","amount":1,"currency":"usd","status":"succeeded"}}}`, n, at.Unix(), n))
	}
	for n := range 6 {
		event(n, now().Add(time.Duration(n)*time.Minute))
	}
	ids, pages := w.walk(t, "stripe", now().Add(time.Minute), func(page int) {
		if page == 1 {
			event(9, now().Add(time.Hour)) // newer than where the walk began: the next one finds it
		}
	})
	same(t, "ids", []string{"evt_5", "evt_4", "evt_3", "evt_2", "evt_1"}, ids)
	same(t, "pages", 3, pages)
	ids, _ = w.walk(t, "stripe", now().Add(30*time.Minute), nil)
	same(t, "the next walk", []string{"evt_9"}, ids)
}

// Paddle's list knows no time to begin at: it is walked from the newest event down
// to the asked time, and what is added meanwhile is the next walk's. Proves A3.
func TestEventsOfPaddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.PageMax(2)
	event := func(n int, at time.Time) {
		w.PaddleEvent(fmt.Appendf(nil, `{"event_id":"evt_0%d","event_type":"transaction.completed","occurred_at":%q,"data":{"id":"txn_%d","status":"completed",
			"details":{"totals":{"grand_total":"100","currency_code":"USD"}}}}`, n, at.Format("2006-01-02T15:04:05.000000Z"), n))
	}
	for n := range 6 {
		event(n, now().Add(time.Duration(n)*time.Minute))
	}
	ids, pages := w.walk(t, "paddle", now().Add(time.Minute), func(page int) {
		if page == 1 {
			event(9, now().Add(time.Hour))
		}
	})
	same(t, "ids", []string{"evt_05", "evt_04", "evt_03", "evt_02", "evt_01"}, ids)
	same(t, "pages", 3, pages)
	ids, _ = w.walk(t, "paddle", now().Add(30*time.Minute), nil)
	same(t, "the next walk", []string{"evt_09"}, ids)
	ids, pages = w.walk(t, "paddle", now().Add(-time.Hour), nil)
	same(t, "from before the first one", []string{"evt_09", "evt_05", "evt_04", "evt_03", "evt_02", "evt_01", "evt_00"}, ids)
	same(t, "its pages", 4, pages)
}

// An adjustment's type is told by its action, in a list as in a delivery.
func TestAdjustmentsOfPaddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, action := range []string{"refund", "chargeback"} {
		w.PaddleEvent(fmt.Appendf(nil, `{"event_id":"evt_%d","event_type":"adjustment.created","occurred_at":"2026-03-01T12:00:00Z","data":{"id":"adj_%d","action":%q,
			"status":"approved","transaction_id":"txn_1","totals":{"total":"100","currency_code":"USD"}}}`, i, i, action))
	}
	page, err := w.client.Page(t.Context(), endpoint("paddle"), adapter(t, "paddle"), now(), "")
	same(t, "error", "", verdict(t, err))
	var types []webhook.EventType
	for _, past := range page.Items {
		types = append(types, past.Type)
		w.readable(t, adapter(t, "paddle"), past)
	}
	same(t, "types", []webhook.EventType{"adjustment.created/chargeback", "adjustment.created/refund"}, types)
}

// GitHub's deliveries have no content; one of them is sent again by GitHub itself.
func TestDeliveriesOfGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var again []int64
	w.Redelivered = func(d fakeprovider.Delivery) { again = append(again, d.ID) }
	w.PageMax(2)
	for n := range int64(5) {
		w.Deliver(fakeprovider.Delivery{
			Repo: "acme/shop", Hook: "7", ID: 9007199254740990 + n, GUID: fmt.Sprintf("guid-%d", n), Event: "repository", Action: "edited",
			Status: map[bool]int{true: 200, false: 502}[n%2 == 0], At: now().Add(time.Duration(n) * time.Minute),
		})
	}
	a, e, since := adapter(t, "github"), endpoint("github"), now().Add(time.Minute)
	page, err := w.client.Page(t.Context(), e, a, since, "")
	same(t, "error", "", verdict(t, err))
	same(t, "first page", provider.Page{
		Items: []provider.Past{
			{EventID: "guid-4", Type: "repository.edited", At: now().Add(4 * time.Minute), Delivery: "9007199254740994", Delivered: true},
			{EventID: "guid-3", Type: "repository.edited", At: now().Add(3 * time.Minute), Delivery: "9007199254740993"},
		},
		Next: "0.v1_9007199254740992",
	}, page)
	ids, pages := w.walk(t, "github", since, nil)
	same(t, "ids: what came before the asked time ends the walk", []string{"guid-4", "guid-3", "guid-2", "guid-1"}, ids)
	same(t, "pages", 3, pages)

	same(t, "sent again", "", verdict(t, w.client.Redeliver(t.Context(), e, a, page.Items[1])))
	same(t, "sent again, a second time", "", verdict(t, w.client.Redeliver(t.Context(), e, a, page.Items[1])))
	same(t, "what GitHub was asked to send", []int64{9007199254740993, 9007199254740993}, again)
	same(t, "a delivery that GitHub has forgotten", "theirs api_refused", verdict(t, w.client.Redeliver(t.Context(), e, a, provider.Past{Delivery: "1"})))
	same(t, "a delivery without an id", "permanent redelivery_unsupported", verdict(t, w.client.Redeliver(t.Context(), e, a, provider.Past{})))
	same(t, "a sender that sends nothing again", "permanent redelivery_unsupported",
		verdict(t, w.client.Redeliver(t.Context(), endpoint("stripe"), adapter(t, "stripe"), provider.Past{Delivery: "1"})))
}

// An organisation's hook is listed and asked at another address; a repository's
// hook of the same number is another hook.
func TestDeliveriesOfAnOrganisation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var again []string
	w.Redelivered = func(d fakeprovider.Delivery) { again = append(again, d.GUID) }
	for i, owner := range []string{"acme", "acme/shop"} {
		w.Deliver(fakeprovider.Delivery{Repo: owner, Hook: "7", ID: int64(i + 1), GUID: "of-" + owner, Event: "ping", Status: 502, At: now()})
	}
	a, e := adapter(t, "github"), endpoint("github")
	e.API.Account = map[string]string{"org": "acme", "hook": "7"}
	page, err := w.client.Page(t.Context(), e, a, now(), "")
	same(t, "error", "", verdict(t, err))
	same(t, "page", provider.Page{Items: []provider.Past{{EventID: "of-acme", Type: "ping", At: now(), Delivery: "1"}}}, page)
	same(t, "sent again", "", verdict(t, w.client.Redeliver(t.Context(), e, a, provider.Past{Delivery: "1"})))
	same(t, "what GitHub was asked to send", []string{"of-acme"}, again)
}

// Shopify's orders are made into events of their own, the same each time.
func TestOrdersOfShopify(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.PageMax(2)
	order := func(n int, at time.Time) {
		w.Put("shopify", "orders", fmt.Appendf(nil,
			`{"id":%d,"order_number":%d,"line_items":[],"financial_status":"paid","total_price":"1.00","currency":"USD","updated_at":%q}`, n, n, at.Format(time.RFC3339)))
	}
	for n := range 5 {
		order(n+1, now().Add(time.Duration(n)*time.Minute))
	}
	want := []string{
		"orders/updated|corner.myshopify.com|backfill-5-1772366640", "orders/updated|corner.myshopify.com|backfill-4-1772366580",
		"orders/updated|corner.myshopify.com|backfill-3-1772366520", "orders/updated|corner.myshopify.com|backfill-2-1772366460",
	}
	for range 2 {
		ids, pages := w.walk(t, "shopify", now().Add(time.Minute), nil)
		same(t, "ids", want, ids)
		same(t, "pages", 2, pages)
	}
	order(5, now().Add(10*time.Minute))
	ids, _ := w.walk(t, "shopify", now().Add(5*time.Minute), nil)
	same(t, "after a change", []string{"orders/updated|corner.myshopify.com|backfill-5-1772367000"}, ids)
}

// Razorpay's lists follow one another; objects that are made meanwhile move the
// others on, and none of those is missed.
func TestObjectsOfRazorpay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := func(collection, id, status string, n int) {
		w.Put("razorpay", collection, fmt.Appendf(nil,
			`{"id":%q,"status":%q,"amount":100,"currency":"INR","payment_id":"pay_1","paid_count":3,"created_at":%d}`, id, status, now().Unix()+int64(n)))
	}
	var want []string
	for n := range 230 {
		put("payments", fmt.Sprintf("pay_%d", n), "captured", n)
		want = append(want, fmt.Sprintf("backfill-pay_%d-captured", n))
	}
	put("payments", "pay_old", "captured", -1)
	put("payments", "pay_open", "created", 300) // says nothing that an event would have said
	put("refunds", "rfnd_1", "processed", 0)
	put("orders", "order_1", "paid", 0)
	put("orders", "order_2", "attempted", 0)
	put("subscriptions", "sub_1", "active", 0)
	put("subscriptions", "sub_2", "expired", 0)
	want = append(want, "backfill-rfnd_1-processed", "backfill-order_1-paid", "backfill-sub_1-active-3")

	ids, pages := w.walk(t, "razorpay", now(), func(page int) {
		if page == 1 {
			put("payments", "pay_late", "captured", 400)
		}
	})
	slices.Sort(ids)
	slices.Sort(want)
	same(t, "ids", want, slices.Compact(ids))
	same(t, "pages", 6, pages)
}

// A page that fails is asked for again from where the walk was.
func TestAWalkGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.PageMax(1)
	for n := range 3 {
		w.Event(fmt.Appendf(nil, `{"id":"evt_%d","type":"account.updated","created":%d,"data":{"object":{"id":"acct_1"}}}`, n, now().Unix()+int64(n)))
	}
	a, e := adapter(t, "stripe"), endpoint("stripe")
	first, err := w.client.Page(t.Context(), e, a, now(), "")
	same(t, "first", "", verdict(t, err))
	w.Next("stripe", fakeprovider.Fault{Status: 429, Header: map[string][]string{"retry-after": {"3"}}}, fakeprovider.Fault{Status: 200, Body: `{"data":`})
	for _, want := range []string{"theirs api_throttled", "theirs answer_body_malformed"} {
		page, err := w.client.Page(t.Context(), e, a, now(), first.Next)
		same(t, "failing", want, verdict(t, err))
		same(t, "what it brought", provider.Page{}, page)
		if fault.CodeOf(err) == "api_throttled" {
			same(t, "to be left alone for", 3*time.Second, remote.After(err))
		}
	}
	second, err := w.client.Page(t.Context(), e, a, now(), first.Next)
	same(t, "second", "", verdict(t, err))
	if len(second.Items) != 1 || second.Items[0].EventID != "evt_1" {
		t.Errorf("it went on at %+v", second.Items)
	}
	_, err = w.client.Page(t.Context(), e, a, now(), "7.nowhere")
	same(t, "a cursor that is none", "permanent cursor_invalid", verdict(t, err))
	_, err = w.client.Page(t.Context(), endpoint("slack"), adapter(t, "slack"), now(), "")
	same(t, "a sender that lists nothing", "permanent history_unsupported", verdict(t, err))
}
