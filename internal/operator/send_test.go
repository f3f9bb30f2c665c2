package operator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

func payment() operator.Traffic {
	return operator.Traffic{Endpoint: "demo", Type: "payment_intent.succeeded", Concurrency: 1, Seed: 1}
}

// send runs a traffic and returns what became of each request.
func send(t *testing.T, o *operator.Operator, traffic operator.Traffic) ([]operator.Sent, operator.Summary) {
	t.Helper()
	sending, err := o.Prepare(t.Context(), traffic)
	if err != nil {
		t.Fatal(err)
	}
	var all []operator.Sent
	summary, err := sending.Run(t.Context(), func(s operator.Sent) { all = append(all, s) })
	if err != nil {
		t.Fatal(err)
	}
	return all, summary
}

func results(sent []operator.Sent) []string {
	var r []string
	for _, s := range sent {
		r = append(r, s.Result)
	}
	return r
}

// One secret of a valid form for each provider.
func secrets() map[webhook.Provider]string {
	return map[webhook.Provider]string{
		"stripe": first, "github": "a-long-enough-secret-of-ours", "shopify": "a-long-enough-secret-of-ours",
		"slack": "0123456789abcdef0123456789abcdef", "razorpay": "a-long-enough-secret-of-ours", "paddle": "pdl_ntfset_a-long-enough-secret-of-ours",
		"standard-webhooks": "whsec_" + "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "svix": "whsec_" + "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
	}
}

// A sample event of any adapter can be signed: each is verified by
// an independent reading of the adapter's own scheme, and is another event.
func TestSamplesOfEveryTypeOfEveryProviderAreAccepted(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	o := w.Operator()
	for _, a := range w.Providers.All() {
		id := webhook.EndpointID(a.Name)
		_, err := o.Create(t.Context(), operator.NewEndpoint{Provider: a.Name, ID: id, Secret: operator.NewSecret(secrets()[a.Name])})
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		for _, ty := range a.Types() {
			before := len(w.Rows)
			sent, _ := send(t, o, operator.Traffic{Provider: a.Name, Endpoint: id, Type: ty, Concurrency: 1, Count: 2})
			if want := []string{"accepted", "accepted"}; !slices.Equal(results(sent), want) || len(w.Rows) != before+2 {
				t.Errorf("%s %s: %v and %d more rows, want %v and 2", a.Name, ty, results(sent), len(w.Rows)-before, want)
				continue
			}
			if x, y := w.Rows[sent[0].InboxID], w.Rows[sent[1].InboxID]; x.ObjectID == y.ObjectID && x.ObjectID != "" {
				t.Errorf("%s %s: both events are about %s", a.Name, ty, x.ObjectID)
			}
		}
	}
}

func TestSendingAgainSendsDuplicates(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	once, _ := send(t, o, payment())
	w.Advance(time.Hour) // the signature's time moves, the event does not
	again, summary := send(t, o, payment())
	want := []operator.Sent{{EventID: once[0].EventID, InboxID: once[0].InboxID, Result: "duplicate", Status: 200}}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("sent again (-want +got):\n%s", diff)
	}
	if summary.Accepted != 0 || summary.Duplicates != 1 {
		t.Errorf("summary %+v", summary)
	}
	other := payment()
	other.Seed = 2
	if sent, _ := send(t, o, other); sent[0].Result != "accepted" {
		t.Errorf("another seed: %s, want accepted", sent[0].Result)
	}
}

// An id must never come again with another body: that is a conflict.
func TestEventsThatDifferInAnythingDifferInTheirIDs(t *testing.T) {
	t.Parallel()
	_, o := create(t)
	seen := map[webhook.EventID]string{}
	for name, change := range map[string]func(*operator.Traffic){
		"plain":     func(*operator.Traffic) {},
		"type":      func(tr *operator.Traffic) { tr.Type = "payment_intent.processing" },
		"seed":      func(tr *operator.Traffic) { tr.Seed = 9 },
		"amount":    func(tr *operator.Traffic) { tr.Amount = 7 },
		"currency":  func(tr *operator.Traffic) { tr.Currency = "USD" },
		"object":    func(tr *operator.Traffic) { tr.ObjectID = "pi_other" },
		"time":      func(tr *operator.Traffic) { tr.At = time.Unix(1772366400, 0) },
		"body size": func(tr *operator.Traffic) { tr.BodyBytes = 5000 },
	} {
		traffic := payment()
		change(&traffic)
		sent, _ := send(t, o, traffic)
		if other, taken := seen[sent[0].EventID]; taken {
			t.Errorf("%s and %s have one id", name, other)
		}
		seen[sent[0].EventID] = name
	}
}

func TestTypesWithOneSeedAreAboutOneObject(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	succeeded, _ := send(t, o, payment())
	processing := payment()
	processing.Type = "payment_intent.processing"
	before, _ := send(t, o, processing)
	if x, y := w.Rows[succeeded[0].InboxID].ObjectID, w.Rows[before[0].InboxID].ObjectID; x != y || !strings.HasPrefix(x, "pi_") {
		t.Errorf("objects %s and %s, want one payment", x, y)
	}
}

// Proves T3's shape: hundreds of copies of one event.
func TestCountIsAllRequestsAndDuplicatesAreAmongThem(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                       string
		count, duplicates          int
		sent, accepted, duplicated int
	}{
		{"one event by default", 0, 0, 1, 1, 0},
		{"one event and its copies", 0, 3, 4, 1, 3},
		{"distinct events", 5, 0, 5, 5, 0},
		{"500 copies of one event", 500, 500, 500, 1, 499},
		{"two copies of each", 10, 1, 10, 5, 5},
		{"the last event cut short", 7, 2, 7, 3, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, o := create(t)
			traffic := payment()
			traffic.Count, traffic.Duplicates, traffic.Concurrency, traffic.Shuffle = tt.count, tt.duplicates, 64, true
			_, got := send(t, o, traffic)
			want := operator.Summary{Sent: tt.sent, Accepted: tt.accepted, Duplicates: tt.duplicated, Refused: map[string]int{}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			if len(w.Rows) != tt.accepted {
				t.Errorf("%d rows, want %d", len(w.Rows), tt.accepted)
			}
		})
	}
}

// Proves O2's input.
func TestVersionsAreSentInTheirOrderAboutOneObject(t *testing.T) {
	t.Parallel()
	w := operatortest.New()
	o := w.Operator()
	if _, err := o.Create(t.Context(), operator.NewEndpoint{Provider: "standard-webhooks", ID: "objects", Secret: operator.NewSecret(secrets()["svix"])}); err != nil {
		t.Fatal(err)
	}
	a, _ := w.Providers.Lookup("standard-webhooks")
	sent, _ := send(t, o, operator.Traffic{Endpoint: "objects", Type: sampleType(t, a.Types()), Concurrency: 1, Versions: []int64{3, 1, 2}})
	type pair struct{ Object, Version string }
	var got []pair
	for _, s := range sent {
		got = append(got, pair{w.Rows[s.InboxID].ObjectID, w.Rows[s.InboxID].ObjectVersion})
	}
	object := got[0].Object
	if diff := cmp.Diff([]pair{{object, "3"}, {object, "1"}, {object, "2"}}, got); diff != "" || object == "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func sampleType(t *testing.T, types []webhook.EventType) webhook.EventType {
	t.Helper()
	if len(types) == 0 {
		return "object.updated" // allowed by a pattern
	}
	return types[0]
}

func TestShuffleMixesTheOrderTheSameWayAgain(t *testing.T) {
	t.Parallel()
	order := func(shuffle bool) []webhook.EventID {
		_, o := create(t)
		traffic := payment()
		traffic.Count, traffic.Shuffle = 20, shuffle
		sent, _ := send(t, o, traffic)
		var ids []webhook.EventID
		for _, s := range sent {
			ids = append(ids, s.EventID)
		}
		return ids
	}
	straight, mixed, again := order(false), order(true), order(true)
	if slices.Equal(straight, mixed) || !slices.Equal(mixed, again) {
		t.Error("want another order, and the same one again")
	}
	slices.Sort(straight)
	slices.Sort(mixed)
	if !slices.Equal(straight, mixed) {
		t.Error("shuffling changed which events are sent")
	}
}

func TestRefusalsAreResultsAndCounted(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	n := 0
	w.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		n++
		switch n {
		case 1:
			return 503, []byte(`{"error":"unavailable"}`), nil
		case 2:
			return 0, nil, operatortest.ErrDown
		case 3:
			return 502, []byte(`<html>`), nil
		case 4:
			return 204, nil, nil
		}
		return 503, []byte(`{"error":"unavailable"}`), nil
	}
	traffic := payment()
	traffic.Count = 5
	sent, summary := send(t, o, traffic)
	if want := []string{"unavailable", "no_answer", "unread_answer", "accepted", "unavailable"}; !slices.Equal(results(sent), want) {
		t.Errorf("results %v, want %v", results(sent), want)
	}
	want := operator.Summary{Sent: 5, Accepted: 1, Refused: map[string]int{"503": 2, "502": 1, "no answer": 1}}
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

// What is answered with a 5xx or not at all is sent again, signed anew and with the
// same bytes, as a provider does; a refusal is final.
func TestWhatMayNotBeStoredIsSentAgain(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	answers := []int{503, 0, 200, 401, 502, 502, 502}
	var bodies []string
	signatures := map[string]bool{}
	w.Answer = func(_ string, header map[string]string, body []byte) (int, []byte, error) {
		bodies = append(bodies, string(body))
		signatures[header["stripe-signature"]] = true
		status := answers[len(bodies)-1]
		if status == 0 {
			return 0, nil, operatortest.ErrDown
		}
		return status, nil, nil
	}
	traffic := payment()
	traffic.Count, traffic.Retries = 3, 2
	sent, summary := send(t, o, traffic)
	type end struct {
		Status, Again int
		Latency       time.Duration
	}
	var got []end
	for _, s := range sent {
		got = append(got, end{s.Status, s.Again, s.Latency})
	}
	const waits = 750 * time.Millisecond // 250, then 500
	if diff := cmp.Diff([]end{{200, 2, waits}, {401, 0, 0}, {502, 2, waits}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := operator.Summary{
		Sent: 3, Accepted: 1, Again: 4, Refused: map[string]int{"401": 1, "502": 1}, P50: waits, P95: waits, P99: waits, Max: waits, Elapsed: 2 * waits,
	}
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	for i, event := range []int{0, 0, 0, 3, 4, 4, 4} {
		if bodies[i] != bodies[event] {
			t.Errorf("request %d has other bytes than the one that it repeats", i)
		}
	}
	if len(signatures) != 4 { // one an event, and one more: the clock's second ended during the third's
		t.Errorf("%d signatures, want 4", len(signatures))
	}
}

// A request that waits for a slow one before it has waited: an average over
// those that were sent would hide it.
func TestLatencyCountsFromTheTimeARequestWasDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, o := create(t)
		o.Now = time.Now
		o.Wait = func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return nil
			}
		}
		w.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
			<-time.After(250 * time.Millisecond)
			return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil
		}
		traffic := payment()
		traffic.Count, traffic.Rate = 4, 10
		sent, summary := send(t, o, traffic)
		var got []time.Duration
		for _, s := range sent {
			got = append(got, s.Latency)
		}
		// Due at 0, 100, 200 and 300 ms, answered at 250, 500, 750 and 1000 ms.
		want := []time.Duration{250 * time.Millisecond, 400 * time.Millisecond, 550 * time.Millisecond, 700 * time.Millisecond}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("latencies (-want +got):\n%s", diff)
		}
		wantSummary := operator.Summary{
			Sent: 4, Accepted: 4, Refused: map[string]int{}, P50: want[1], P95: want[3], P99: want[3], Max: want[3], Elapsed: time.Second,
		}
		if diff := cmp.Diff(wantSummary, summary); diff != "" {
			t.Errorf("summary (-want +got):\n%s", diff)
		}
	})
}

func TestConcurrencyIsReachedAndNeverExceeded(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	var (
		mu        sync.Mutex
		now, most int
		full      sync.Once
		all       = make(chan struct{})
	)
	w.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		mu.Lock()
		if now++; now > most {
			most = now
		}
		if now == 8 {
			full.Do(func() { close(all) })
		}
		mu.Unlock()
		<-all // the first ones are held until eight are there
		mu.Lock()
		now--
		mu.Unlock()
		return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil
	}
	traffic := payment()
	traffic.Count, traffic.Concurrency = 32, 8
	if _, summary := send(t, o, traffic); summary.Sent != 32 || most != 8 {
		t.Errorf("%d sent, %d at once, want 32 and 8", summary.Sent, most)
	}
}

func TestAnInterruptedTrafficSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	_, o := create(t)
	traffic := payment()
	traffic.Count = 1000
	sending, err := o.Prepare(t.Context(), traffic)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	summary, err := sending.Run(ctx, func(operator.Sent) { cancel() })
	if !errors.Is(err, context.Canceled) || summary.Sent == 0 || summary.Sent > 10 {
		t.Errorf("error %v after %d, want cancelled soon after the first", err, summary.Sent)
	}
}

// Proves S2 from the sender's side: the older key signs until it is retired.
func TestAChosenKeySigns(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	old := w.Endpoints["demo"].Keys[0].Version
	added := rotate(t, o, second).Version
	sign := func(seed uint64, version string, secret string) (string, webhook.KeyVersion) {
		traffic := payment()
		traffic.Seed, traffic.KeyVersion, traffic.Secret = seed, version, operator.NewSecret(secret)
		sent, _ := send(t, o, traffic)
		return sent[0].Result, w.Rows[sent[0].InboxID].MatchedVersion
	}
	type outcome struct {
		Result  string
		Matched webhook.KeyVersion
	}
	for i, tt := range []struct {
		name, version, secret string
		want                  outcome
	}{
		{"the newest by default", "", "", outcome{"accepted", added}},
		{"an older one by its beginning", "k1-", "", outcome{"accepted", old}},
		{"a secret of one's own", "", first, outcome{"accepted", old}},
		{"a secret that nobody trusts", "", third, outcome{"unauthorized", ""}},
	} {
		result, matched := sign(uint64(i), tt.version, tt.secret)
		if got := (outcome{result, matched}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if _, err := o.Retire(t.Context(), "demo", old, ""); err != nil {
		t.Fatal(err)
	}
	if result, _ := sign(99, "k1-", ""); result != "unauthorized" {
		t.Errorf("a retired key: %s, want unauthorized", result)
	}
}

func TestAStaleTimeIsSigned(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	traffic := payment()
	traffic.At = w.Clock.Add(-time.Hour)
	if sent, _ := send(t, o, traffic); sent[0].Status != 401 {
		t.Errorf("status %d, want 401", sent[0].Status)
	}
}

func TestAnUnknownEndpointCanBeSentToWithASecret(t *testing.T) {
	t.Parallel()
	o := operatortest.New().Operator()
	traffic := payment()
	traffic.Provider, traffic.Secret = "stripe", operator.NewSecret(first)
	if sent, _ := send(t, o, traffic); sent[0].Status != 404 || sent[0].Result != "not_found" {
		t.Errorf("%d %s, want 404 not_found", sent[0].Status, sent[0].Result)
	}
}

func TestWhatCannotBeSentIsRefusedBeforehand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, code string
		change     func(*operator.Traffic)
	}{
		{"an unknown endpoint", "endpoint_unknown", func(tr *operator.Traffic) { tr.Endpoint = "nobody" }},
		{"another provider", "usage", func(tr *operator.Traffic) { tr.Provider = "github" }},
		{"no type", "usage", func(tr *operator.Traffic) { tr.Type = "" }},
		{"an unknown type", "usage", func(tr *operator.Traffic) { tr.Type = "orders/create" }},
		{"a state that the type cannot show", "usage", func(tr *operator.Traffic) { tr.State = "refunded" }},
		{"a negative count", "usage", func(tr *operator.Traffic) { tr.Count = -1 }},
		{"copies without room", "usage", func(tr *operator.Traffic) { tr.Count, tr.Duplicates = 1, 5 }},
		{"nobody to send", "usage", func(tr *operator.Traffic) { tr.Concurrency = 0 }},
		{"a negative rate", "usage", func(tr *operator.Traffic) { tr.Rate = -1 }},
		{"versions and a count", "usage", func(tr *operator.Traffic) { tr.Versions, tr.Count = []int64{1}, 2 }},
		{"version zero", "usage", func(tr *operator.Traffic) { tr.Versions = []int64{0} }},
		{"one id for many events", "usage", func(tr *operator.Traffic) { tr.EventID, tr.Count = "evt_1", 2 }},
		{"a body that is too large", "usage", func(tr *operator.Traffic) { tr.BodyBytes = 2 << 20 }},
		{"an unknown key", "version_unknown", func(tr *operator.Traffic) { tr.KeyVersion = "k7" }},
		{"what is no secret", "secret_refused", func(tr *operator.Traffic) { tr.Secret = operator.NewSecret("sk_live_x") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, o := create(t)
			traffic := payment()
			tt.change(&traffic)
			_, err := o.Prepare(t.Context(), traffic)
			wantRefusal(t, err, tt.code)
		})
	}
}

func TestAKeyThatIsGoneCannotSign(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	clear(w.Secrets)
	_, err := o.Prepare(t.Context(), payment())
	wantRefusal(t, err, "key_missing")
	retireAll(t, w, o)
	_, err = o.Prepare(t.Context(), payment())
	wantRefusal(t, err, "no_key_trusted")
}
