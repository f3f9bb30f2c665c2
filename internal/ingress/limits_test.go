package ingress_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// said is an answer with what tells the sender when to come again.
type said struct {
	Status     int
	Code       string
	RetryAfter string
}

func accepted() said { return said{Status: 200} }

func tooMany(seconds string) said { return said{429, "rate_limited", seconds} }

// ask posts an event and reads the whole answer.
func ask(t *testing.T, w *sim.World, event map[string]any) said {
	t.Helper()
	payload, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.HTTP().Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		StatusCode int
		Headers    map[string]string
		Body       string
	}
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatal(err)
	}
	var body struct{ Error string }
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		t.Fatalf("the answer is no JSON object: %v", err)
	}
	return said{a.StatusCode, body.Error, a.Headers["retry-after"]}
}

// numbered is the n-th payment of an endpoint, as its provider sends it now.
func numbered(w *sim.World, e *sim.Endpoint, n int) map[string]any {
	d := w.Event(e, payment(fmt.Sprintf("evt_%s_%d", e.ID, n)))
	return sim.Event(e, w.Signed(d), d.Sample.Body)
}

func limited(rate, burst int) func(webhook.Endpoint) webhook.Endpoint {
	return func(e webhook.Endpoint) webhook.Endpoint {
		e.Rate, e.Burst = rate, burst
		return e
	}
}

// Proves V1: beyond its burst an endpoint answers 429 and says when to come
// again; its neighbours do not notice; what was refused is accepted when it is
// sent again; copies that memory answers spend nothing.
func TestAnEndpointBeyondItsLimitAsksToComeAgain(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := sim.New(t, sim.Options{Log: &log})
	e, neighbour := w.AddEndpoint("stripe", "demo", stripeSecret), w.AddEndpoint("stripe", "other", "whsec_of_the_neighbour_next_door")
	w.Configure(e, limited(2, 30))
	expect := func(what string, event map[string]any, want said) {
		t.Helper()
		if diff := cmp.Diff(want, ask(t, w, event)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for n := range 30 {
		expect(fmt.Sprintf("event %d of the burst", n), numbered(w, e, n), accepted())
	}
	expect("a copy of an event, with the burst spent", numbered(w, e, 7), accepted())
	late := numbered(w, e, 30)
	expect("the event after the burst", late, tooMany("1"))
	expect("the neighbour", numbered(w, neighbour, 0), accepted())
	w.Advance(500 * time.Millisecond)
	expect("the same event, sent again", late, accepted())
	expect("and the one after it", numbered(w, e, 31), tooMany("1"))
	w.Advance(time.Hour)
	for n := range 30 {
		expect(fmt.Sprintf("event %d after a pause", n), numbered(w, e, 100+n), accepted())
	}
	expect("the one after them", numbered(w, e, 130), tooMany("1"))
	if n := strings.Count(log.String(), `"endpoint_limited":1`); n != 3 || strings.Contains(log.String(), "limiter_degraded") {
		t.Errorf("%d requests are counted as over the limit, want 3, and none as undecided:\n%s", n, log.String())
	}
	w.Rest()
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
}

// Proves V1: what is not verified is not counted, so that a stranger cannot spend
// an endpoint's limit; a handshake is not either.
func TestOnlyVerifiedEventsAreCounted(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("slack", "team", "0123456789abcdef0123456789abcdef")
	w.Configure(e, limited(1, 1))
	body := []byte(`{"token":"t","challenge":"abc","type":"url_verification"}`)
	headers := w.Signed(&sim.Delivery{Endpoint: e, Sample: provider.Sample{Body: body}})
	for range 5 {
		if status, _ := w.PostRaw(e, headers, body); status != 200 {
			t.Fatalf("a handshake is answered %d", status)
		}
		if status, _ := w.PostRaw(e, headers, []byte(`{"forged":true}`)); status != 401 {
			t.Fatalf("a forgery is answered %d", status)
		}
	}
	sample, err := e.Adapter.Sample(provider.SampleOptions{Type: "app_mention", EventID: "Ev1"})
	if err != nil {
		t.Fatal(err)
	}
	if status := w.Post(&sim.Delivery{Endpoint: e, Sample: sample}); status != 200 {
		t.Errorf("the first event is answered %d", status)
	}
}

// Proves V1, A2: a limit whose row cannot be written refuses nobody that the
// process itself would not refuse, and is counted.
func TestALimitWithoutItsStoreRefusesNobody(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sim.Fault{
		"down":                  {Operation: "UpdateItem", Times: -1, Err: sim.ErrThrottle},
		"not allowed":           {Operation: "UpdateItem", Times: -1, Err: sim.ErrDenied},
		"answers that are lost": {Operation: "UpdateItem", Times: -1, Late: true, Err: sim.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			faults := &sim.Faults{}
			w := sim.New(t, sim.Options{Log: &log, Middleware: map[string]func(*middleware.Stack) error{"ingress": faults.Middleware}})
			e := w.AddEndpoint("stripe", "demo", stripeSecret)
			w.Configure(e, limited(20, 40))
			send := func(from, to int) {
				t.Helper()
				for n := from; n < to; n++ {
					if got := ask(t, w, numbered(w, e, n)); got != accepted() {
						t.Fatalf("event %d: %+v", n, got)
					}
					w.Advance(250 * time.Millisecond)
				}
			}
			faults.Add(fault)
			send(0, 100) // it was never reached: a share of the rate
			faults.Clear()
			send(100, 200)
			for range 2 { // it was: what this process had before
				faults.Add(fault)
				for n := range 40 {
					if got := ask(t, w, numbered(w, e, 1000+n)); got != accepted() {
						t.Fatalf("event %d of a burst: %+v", n, got)
					}
				}
				w.Advance(time.Minute)
				faults.Clear()
				send(200, 220)
				w.Advance(time.Minute)
			}
			if !strings.Contains(log.String(), `"limiter_degraded":1`) || strings.Contains(log.String(), "endpoint_limited") {
				t.Errorf("the log:\n%s", log.String())
			}
		})
	}
}

// Proves V1: a source's flood is refused before anything of it is looked at; an
// IPv6 customer is one source, and others go on.
func TestAFloodFromOneSourceIsRefusedUnread(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := sim.New(t, sim.Options{Log: &log, SourceRate: 3})
	e := w.AddEndpoint("stripe", "demo", stripeSecret)
	n := 0
	from := func(source string) said {
		n++
		event := numbered(w, e, n)
		event["requestContext"].(map[string]any)["http"].(map[string]any)["sourceIp"] = source
		return ask(t, w, event)
	}
	for _, sources := range [][]string{
		{"192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"},
		{"2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::", "2001:db8::1"},
	} {
		for i, source := range sources {
			want := accepted()
			if i == 3 {
				want = tooMany("1")
			}
			if diff := cmp.Diff(want, from(source)); diff != "" {
				t.Errorf("request %d, from %s (-want +got):\n%s", i, source, diff)
			}
		}
	}
	for _, other := range []string{"192.0.2.2", "2001:db8:0:1::1", "", "", "", "", "no address"} {
		if diff := cmp.Diff(accepted(), from(other)); diff != "" {
			t.Errorf("from %q (-want +got):\n%s", other, diff)
		}
	}
	if n := strings.Count(log.String(), `"source_limited":1`); n != 2 {
		t.Errorf("%d requests are counted as over a source's limit, want 2", n)
	}
}
