package ingress_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/signature"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

const (
	stripeSecret = "whsec_test_secret_for_the_receiver"
	githubSecret = "a text that only the test knows"
)

func payment(id string) provider.SampleOptions {
	return provider.SampleOptions{Type: "payment_intent.succeeded", EventID: id, ObjectID: "pi_" + id, Amount: 1250, Currency: "EUR"}
}

// answer is what a caller sees.
type answer struct {
	Status int
	Body   map[string]string
}

func post(t *testing.T, w *sim.World, event any) answer {
	t.Helper()
	status, body := w.Invoke(event)
	a := answer{Status: status}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &a.Body); err != nil {
			t.Fatalf("the answer is no JSON object: %v", err)
		}
	}
	return a
}

func refused(status int, code string) answer {
	return answer{status, map[string]string{"error": code}}
}

// request is a good request that a test bends.
type request struct {
	w       *sim.World
	e       *sim.Endpoint
	headers signature.Header
	body    []byte
	event   func(map[string]any)
}

// resign signs the bytes as they are now.
func (r *request) resign(t *testing.T) {
	t.Helper()
	d := &sim.Delivery{Endpoint: r.e, Sample: provider.Sample{Body: r.body}}
	maps.Copy(r.headers, r.w.Signed(d))
}

// set replaces a member's value in the body and signs again.
func (r *request) set(t *testing.T, old, replacement string) {
	t.Helper()
	if !bytes.Contains(r.body, []byte(old)) {
		t.Fatalf("the sample has no %s", old)
	}
	r.body = bytes.Replace(r.body, []byte(old), []byte(replacement), 1)
	r.resign(t)
}

func nothingStored(t *testing.T, w *sim.World) {
	t.Helper()
	if n := w.Stored(); n != 0 {
		t.Errorf("%d rows and objects are stored, want none", n)
	}
}

// Every refusal has its own stable answer, stores nothing, and says nothing of
// the body in a log. Proves V1–V9, D3, M4, T2.
func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		bend func(t *testing.T, r *request)
		want answer
	}{
		{"another method", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) {
				e["requestContext"].(map[string]any)["http"].(map[string]any)["method"] = "GET"
			}
		}, refused(405, "method_not_allowed")},
		{"an unknown provider", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) { e["rawPath"] = "/in/nobody/demo" }
		}, refused(404, "not_found")},
		{"an unknown endpoint", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) { e["rawPath"] = "/in/stripe/elsewhere" }
		}, refused(404, "not_found")},
		{"another provider's endpoint", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) { e["rawPath"] = "/in/github/demo" }
			r.headers["x-hub-signature-256"] = "sha256=" + strings.Repeat("0", 64)
		}, refused(404, "not_found")},
		{"an endpoint id that cannot be one", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) { e["rawPath"] = "/in/stripe/DEMO" }
		}, refused(404, "not_found")},
		{"a slash that came as an escape, into another provider's route", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) {
				e["routeKey"], e["rawPath"] = "POST /in/github/{endpoint_id}", "/in/github/x/in/stripe/demo"
			}
		}, refused(404, "not_found")},
		{"line breaks in base64", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) { e["body"] = e["body"].(string)[:8] + "\r\n" + e["body"].(string)[8:] }
		}, refused(400, "body_malformed")},
		{"no path at all", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) { e["rawPath"] = "/" }
		}, refused(404, "not_found")},
		{"no content type", func(_ *testing.T, r *request) { delete(r.headers, "content-type") }, refused(415, "unsupported_media_type")},
		{"a content type that the provider never sends", func(_ *testing.T, r *request) { r.headers["content-type"] = "text/plain" }, refused(415, "unsupported_media_type")},
		{"two content types joined", func(_ *testing.T, r *request) { r.headers["content-type"] = "application/json,application/json" }, refused(415, "unsupported_media_type")},
		{"a compressed body", func(_ *testing.T, r *request) { r.headers["content-encoding"] = "gzip" }, refused(415, "unsupported_media_type")},
		{"too many headers", func(_ *testing.T, r *request) {
			for i := range 101 {
				r.headers[fmt.Sprintf("x-%d", i)] = "1"
			}
		}, refused(400, "headers_invalid")},
		{"headers that are too large", func(_ *testing.T, r *request) { r.headers["x-large"] = strings.Repeat("x", 16<<10) }, refused(400, "headers_invalid")},
		{"control bytes in a header", func(_ *testing.T, r *request) { r.headers["x-odd"] = "a\x00b" }, refused(400, "headers_invalid")},
		{"a line break in a header", func(_ *testing.T, r *request) { r.headers["x-odd"] = "a\r\nb: c" }, refused(400, "headers_invalid")},
		{"one header in two spellings", func(_ *testing.T, r *request) { r.headers["Stripe-Signature"] = "t=1,v1=00" }, refused(400, "headers_invalid")},
		{"a content length that lies low", func(_ *testing.T, r *request) { r.headers["content-length"] = "10" }, refused(400, "headers_invalid")},
		{"a content length that lies high", func(_ *testing.T, r *request) { r.headers["content-length"] = fmt.Sprint(len(r.body) + 1) }, refused(400, "headers_invalid")},
		{"a content length that is no number", func(_ *testing.T, r *request) { r.headers["content-length"] = "-1" }, refused(400, "headers_invalid")},
		{"a content length beyond the limit", func(_ *testing.T, r *request) { r.headers["content-length"] = "1048577" }, refused(413, "body_too_large")},
		{"a body beyond the limit", func(_ *testing.T, r *request) { r.body = make([]byte, 1<<20+1) }, refused(413, "body_too_large")},
		{"a body whose encoding is broken", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) { e["body"] = e["body"].(string) + "!" }
		}, refused(400, "body_malformed")},
		{"no signature", func(_ *testing.T, r *request) { delete(r.headers, "stripe-signature") }, refused(401, "unauthorized")},
		{"a malformed signature", func(_ *testing.T, r *request) { r.headers["stripe-signature"] = "t=now,v1=zz" }, refused(401, "unauthorized")},
		{"one byte of the body changed", func(_ *testing.T, r *request) { r.body = bytes.Replace(r.body, []byte("1250"), []byte("1251"), 1) }, refused(401, "unauthorized")},
		{"white space added to the body", func(_ *testing.T, r *request) { r.body = append(r.body, ' ') }, refused(401, "unauthorized")},
		{"another key", func(t *testing.T, r *request) {
			e := *r.e
			decoded, err := e.Adapter.Scheme.DecodeKey("whsec_another_secret_altogether")
			if err != nil {
				t.Fatal(err)
			}
			e.Key.Secret = decoded
			r.e = &e
			r.resign(t)
		}, refused(401, "unauthorized")},
		{"signed too long ago", func(_ *testing.T, r *request) { r.w.Advance(5*time.Minute + time.Second) }, refused(401, "unauthorized")},
		{"signed too far ahead", func(_ *testing.T, r *request) { r.w.Advance(-5*time.Minute - time.Second) }, refused(401, "unauthorized")},
		{"a signed body that is no JSON", func(t *testing.T, r *request) { r.body = []byte("{"); r.resign(t) }, refused(400, "body_malformed")},
		{"a signed array", func(t *testing.T, r *request) { r.body = []byte("[]"); r.resign(t) }, refused(400, "body_malformed")},
		{"an empty body", func(t *testing.T, r *request) { r.body = nil; r.resign(t) }, refused(400, "body_malformed")},
		{"data behind the object", func(t *testing.T, r *request) { r.body = append(r.body, "{}"...); r.resign(t) }, refused(400, "body_malformed")},
		{"a member twice", func(t *testing.T, r *request) { r.set(t, `"id"`, `"id":"evt_other","id"`) }, refused(400, "body_ambiguous")},
		{"a member that another shadows where case is ignored", func(t *testing.T, r *request) { r.set(t, `"id"`, `"ID":"evt_other","id"`) }, refused(400, "body_ambiguous")},
		{"deep nesting", func(t *testing.T, r *request) {
			r.set(t, `"id"`, `"deep":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`,"id"`)
		}, refused(400, "body_too_deep")},
		{"no event id", func(t *testing.T, r *request) { r.set(t, `"id"`, `"no_id"`) }, refused(400, "id_missing")},
		{"an empty event id", func(t *testing.T, r *request) { r.set(t, `"evt_1"`, `""`) }, refused(400, "id_missing")},
		{"an event id that is no text", func(t *testing.T, r *request) { r.set(t, `"evt_1"`, `{}`) }, refused(400, "id_invalid")},
		{"an event id that is too long", func(t *testing.T, r *request) { r.set(t, `"evt_1"`, `"`+strings.Repeat("e", 200)+`"`) }, refused(400, "id_invalid")},
		{"no event type", func(t *testing.T, r *request) { r.set(t, `"payment_intent.succeeded"`, `null`) }, refused(400, "type_missing")},
		{"an event type that is not allowed", func(t *testing.T, r *request) { r.set(t, `"payment_intent.succeeded"`, `"made.up"`) }, refused(422, "event_type_not_allowed")},
		{"an event that is no API Gateway event", func(_ *testing.T, r *request) {
			r.event = func(e map[string]any) { e["headers"] = "x" }
		}, answer{Status: 400}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			w := sim.New(t, sim.Options{Log: &log})
			r := &request{w: w, e: w.AddEndpoint("stripe", "demo", stripeSecret)}
			d := w.Event(r.e, payment("evt_1"))
			r.headers, r.body = w.Signed(d), bytes.Clone(d.Sample.Body)
			tt.bend(t, r)
			event := sim.Event(r.e, r.headers, r.body)
			if r.event != nil {
				r.event(event)
			}
			if diff := cmp.Diff(tt.want, post(t, w, event)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			nothingStored(t, w)
			for _, secret := range []string{"1250", "pi_evt_1", stripeSecret, r.headers["stripe-signature"]} {
				if secret != "" && strings.Contains(log.String(), secret) {
					t.Errorf("the log holds %q:\n%s", secret, log.String())
				}
			}
			if !strings.Contains(log.String(), `"decision":"refused_`) {
				t.Errorf("the refusal is not logged: %s", log.String())
			}
		})
	}
}

// The same bytes are accepted as text and as base64, in any case of header
// names, whatever the content type said about the encoding. Proves V5, V8, A1.
func TestTheSameEventInEveryShapeOfTheGateway(t *testing.T) {
	t.Parallel()
	for name, bend := range map[string]func(event map[string]any, body []byte){
		"base64": func(map[string]any, []byte) {},
		"text": func(event map[string]any, body []byte) {
			event["body"], event["isBase64Encoded"] = string(body), false
		},
		"capital header names": func(event map[string]any, _ []byte) {
			h := signature.Header{}
			for name, value := range event["headers"].(signature.Header) {
				h[strings.ToUpper(name)] = value
			}
			event["headers"] = h
		},
		"behind a stage": func(event map[string]any, _ []byte) { event["rawPath"] = "/prod" + event["rawPath"].(string) },
		"a length that is right": func(event map[string]any, body []byte) {
			event["headers"].(signature.Header)["content-length"] = fmt.Sprint(len(body))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sim.New(t, sim.Options{})
			e := w.AddEndpoint("stripe", "demo", stripeSecret)
			d := w.Event(e, payment("evt_1"))
			event := sim.Event(e, w.Signed(d), d.Sample.Body)
			bend(event, d.Sample.Body)
			id := string(webhook.DeriveInboxID("demo", "stripe", "evt_1"))
			want := answer{200, map[string]string{"result": "accepted", "inbox_id": id}}
			if diff := cmp.Diff(want, post(t, w, event)); diff != "" {
				t.Fatalf("first answer (-want +got):\n%s", diff)
			}
			want.Body["result"] = "duplicate"
			if diff := cmp.Diff(want, post(t, w, event)); diff != "" {
				t.Errorf("second answer (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves D1, S3, V10: the whole row that an event leaves.
func TestAnAcceptedEventsRow(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("stripe", "demo", stripeSecret)
	o := payment("evt_1")
	o.At = sim.Start.Add(-time.Hour)
	d := w.Event(e, o)
	if status := w.Send(d); status != 200 {
		t.Fatalf("status %d", status)
	}
	digest := webhook.DigestOf(d.Sample.Body)
	want := webhook.Inbox{
		ID: webhook.DeriveInboxID("demo", "stripe", "evt_1"), Provider: "stripe", Endpoint: "demo", Tenant: "acme",
		EventID: "evt_1", EventType: "payment_intent.succeeded", ObjectID: "pi_evt_1",
		ProviderCreatedAt: sim.Start.Add(-time.Hour), ReceivedAt: sim.Start,
		BodyID: webhook.DeriveBodyID("demo", digest), BodyExpiresAt: sim.Start.Add(30 * 24 * time.Hour), Digest: digest,
		MatchedVersion: webhook.KeyVersion(e.Key.Version), Status: webhook.Received, NextAttemptAt: sim.Start,
	}
	if diff := cmp.Diff([]webhook.Inbox{want}, w.Inbox()); diff != "" {
		t.Errorf("inbox (-want +got):\n%s", diff)
	}
	promise := webhook.NewOutbox(want, sim.Start, sim.Start)
	if diff := cmp.Diff([]webhook.Outbox{promise}, w.Outbox()); diff != "" {
		t.Errorf("outbox (-want +got):\n%s", diff)
	}
}

// Proves A2, T4: whatever is unknown is answered 503, and the provider's retry
// meets the row that was committed after all.
func TestAnUnknownCommitIsNotAcknowledgedAndConverges(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sim.Fault{
		"the commit's answer is lost":       {Operation: "TransactWriteItems", Times: 1, Late: true, Err: sim.ErrLost},
		"the commit never arrives":          {Operation: "TransactWriteItems", Times: 1, Err: sim.ErrLost},
		"the commit is throttled":           {Operation: "TransactWriteItems", Times: 1, Err: sim.ErrThrottle},
		"an earlier try is still under way": {Operation: "TransactWriteItems", Times: 1, Err: sim.ErrInProgress},
		"conflicts without an end":          {Operation: "TransactWriteItems", Times: 3, Err: sim.ErrConflict(2)},
		"the body's answer is lost":         {Operation: "PutItem", Skip: 1, Times: 1, Late: true, Err: sim.ErrLost},
		"the body cannot be written":        {Operation: "PutItem", Skip: 1, Times: 1, Err: sim.ErrThrottle},
		"the data key cannot be had":        {Operation: "GenerateDataKey", Times: 1, Err: sim.ErrDenied},
		"the secret cannot be had":          {Operation: "GetSecretValue", Times: 1, Err: sim.ErrLost},
		"the registry cannot be read":       {Operation: "GetItem", Times: 1, Err: sim.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults := &sim.Faults{}
			w := sim.New(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"ingress": faults.Middleware}})
			e := w.AddEndpoint("stripe", "demo", stripeSecret)
			d := w.Event(e, payment("evt_1"))
			faults.Add(fault)
			if status := w.Send(d); status != 503 {
				t.Fatalf("status %d, want 503", status)
			}
			w.Rest()
			for _, wrong := range w.Check() {
				t.Error(wrong)
			}
			if !d.Acknowledged() || len(w.Inbox()) != 1 {
				t.Errorf("answers %v, rows %d; want one row, acknowledged in the end", d.Answers, len(w.Inbox()))
			}
		})
	}
}

// Proves A3: one conflict is not the end: the loser of a race finds the row.
func TestAConflictIsTriedAgain(t *testing.T) {
	t.Parallel()
	faults := &sim.Faults{}
	w := sim.New(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"ingress": faults.Middleware}})
	e := w.AddEndpoint("stripe", "demo", stripeSecret)
	faults.Add(sim.Fault{Operation: "TransactWriteItems", Times: 2, Err: sim.ErrConflict(2)})
	if status := w.Send(w.Event(e, payment("evt_1"))); status != 200 {
		t.Errorf("status %d after two conflicts, want 200", status)
	}
}

// Proves D3, T3, A3: hundreds of copies at once are one row and one credit.
func TestConcurrentCopiesAreOneEvent(t *testing.T) {
	t.Parallel()
	const copies = 300
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("stripe", "demo", stripeSecret)
	d := w.Event(e, payment("evt_1"))
	headers := w.Signed(d)
	var wg sync.WaitGroup
	var mu sync.Mutex
	results := map[string]int{}
	for range copies {
		wg.Go(func() {
			status, body := w.PostRaw(e, headers, d.Sample.Body)
			var said map[string]string
			_ = json.Unmarshal(body, &said)
			mu.Lock()
			defer mu.Unlock()
			results[fmt.Sprint(status, " ", said["result"])]++
		})
	}
	wg.Wait()
	if want := map[string]int{"200 accepted": 1, "200 duplicate": copies - 1}; !cmp.Equal(want, results) {
		t.Errorf("answers %v, want %v", results, want)
	}
	w.Rest()
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
	_, balances := w.Ledger()
	if len(balances) != 1 {
		t.Fatalf("%d objects have a balance, want 1", len(balances))
	}
	for _, sums := range balances {
		if want := map[string]int64{"balance_EUR": 1250, "entries": 1}; !cmp.Equal(want, sums) {
			t.Errorf("balance %v, want %v", sums, want)
		}
	}
}

// Proves A3 across everything that can have become of the first event.
func TestADuplicateIsAcknowledgedWhateverTheStateOfTheFirst(t *testing.T) {
	t.Parallel()
	for _, status := range webhook.Statuses() {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := sim.New(t, sim.Options{})
			e := w.AddEndpoint("stripe", "demo", stripeSecret)
			d := w.Event(e, payment("evt_1"))
			row := webhook.Inbox{
				ID: webhook.DeriveInboxID("demo", "stripe", "evt_1"), Provider: "stripe", Endpoint: "demo", Tenant: "acme", EventID: "evt_1",
				ReceivedAt: w.Now().Add(-90 * 24 * time.Hour), BodyExpiresAt: w.Now().Add(-60 * 24 * time.Hour),
				Digest: webhook.DigestOf(d.Sample.Body), Status: status, ClaimID: "c", LeaseUntil: w.Now(), NextAttemptAt: w.Now(),
			}
			if _, err := w.Outside.Accept(t.Context(), row, nil); err != nil {
				t.Fatal(err)
			}
			got := post(t, w, sim.Event(e, w.Signed(d), d.Sample.Body))
			want := answer{200, map[string]string{"result": "duplicate", "inbox_id": string(row.ID)}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if rows := w.Inbox(); len(rows) != 1 || rows[0].Status != status {
				t.Errorf("the row changed: %+v", rows)
			}
			// The body of an event that is over is not kept again; one that is
			// still open may need it.
			if kept := w.BodyKept(row.Digest, "demo"); kept == status.Terminal() {
				t.Errorf("body kept: %v, terminal: %v", kept, status.Terminal())
			}
		})
	}
}

// Proves S1–S3, S5, V11: rotation, retirement, adoption, outage.
func TestKeysThroughTheirLife(t *testing.T) {
	t.Parallel()
	faults := &sim.Faults{}
	w := sim.New(t, sim.Options{Middleware: map[string]func(*middleware.Stack) error{"ingress": faults.Middleware}})
	e := w.AddEndpoint("stripe", "demo", stripeSecret)
	n := 0
	send := func(key signature.Key) int {
		n++
		signing := *e
		signing.Key = key
		return w.Post(w.Event(&signing, payment(fmt.Sprintf("evt_%d", n))))
	}
	want := func(step string, got, status int) {
		t.Helper()
		if got != status {
			t.Fatalf("%s: status %d, want %d", step, got, status)
		}
	}
	old := e.Key
	want("the first key", send(old), 200)

	added := w.AddKey(e, "whsec_the_second_secret")
	w.Advance(31 * time.Second)
	want("the old key while both are trusted", send(old), 200)
	want("the new key", send(added), 200)
	if row := w.Row(webhook.DeriveInboxID("demo", "stripe", "evt_3")); row.MatchedVersion != webhook.KeyVersion(added.Version) {
		t.Errorf("matched version %s, want the new one", row.MatchedVersion)
	}

	// The store goes down; what is trusted is decided by the list alone.
	faults.Add(sim.Fault{Operation: "GetSecretValue", Times: -1, Err: sim.ErrLost})
	w.RetireKey(e, webhook.KeyVersion(old.Version))
	w.Advance(30 * time.Second)
	want("a retired key, with the secret store down", send(old), 401)
	want("the trusted key, with the secret store down", send(added), 200)
	w.Advance(61 * time.Minute)
	want("the trusted key, after its hard age", send(added), 503)
	faults.Clear()
	w.Advance(2 * time.Minute)
	want("the trusted key, with the store back", send(added), 200)
	want("a retired key stays retired", send(old), 401)

	foreign := w.PutKeyByOtherMeans(e, "whsec_the_third_secret")
	w.Advance(2 * time.Minute)
	want("a key put there by other means", send(foreign), 200)
	w.Advance(31 * time.Second)
	faults.Add(sim.Fault{Operation: "GetSecretValue", Times: -1, Err: sim.ErrLost})
	want("it was adopted: no look-up is needed", send(foreign), 200)
}

// Proves P5 for Slack: a handshake is verified first, answered in its strict
// shape only, and stores nothing.
func TestSlackHandshake(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("slack", "team", "0123456789abcdef0123456789abcdef")
	body := []byte(`{"token":"t","challenge":"abc-DEF_123","type":"url_verification"}`)
	d := &sim.Delivery{Endpoint: e, Sample: provider.Sample{Body: body}}
	headers := w.Signed(d)
	status, answered := w.PostRaw(e, headers, body)
	if status != 200 || string(answered) != "abc-DEF_123" {
		t.Errorf("answer %d %q", status, answered)
	}
	if status, _ := w.PostRaw(e, headers, bytes.Replace(body, []byte("abc"), []byte("xyz"), 1)); status != 401 {
		t.Errorf("an unsigned challenge is answered %d", status)
	}
	nothingStored(t, w)
}

// Proves V9, D6: a stored body is not readable without its key, and an
// unverified one is nowhere.
func TestBodiesAreSealedAndOpenedByteForByte(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("stripe", "demo", stripeSecret)
	large := payment("evt_1")
	large.BodyBytes = 1 << 20
	d := w.Event(e, large)
	if len(d.Sample.Body) != 1<<20 {
		t.Fatalf("the sample has %d bytes", len(d.Sample.Body))
	}
	if status := w.Send(d); status != 200 {
		t.Fatalf("status %d", status)
	}
	row := w.Row(webhook.DeriveInboxID("demo", "stripe", "evt_1"))
	opened := w.OpenBody(row)
	if !bytes.Equal(opened, d.Sample.Body) {
		t.Errorf("opened %d bytes, other than those that were sent", len(opened))
	}
}

// Proves V7: an endpoint that keeps types it did not ask for stores them, and
// nothing is done about them, whether the adapter knows the type or not.
func TestKeptTypesAreStoredAndIgnored(t *testing.T) {
	t.Parallel()
	w := sim.New(t, sim.Options{})
	e := w.AddEndpoint("stripe", "demo", stripeSecret)
	w.Configure(e, func(e webhook.Endpoint) webhook.Endpoint {
		e.Types, e.KeepUnknown = []webhook.EventType{"refund.created"}, true
		return e
	})
	w.Send(w.Event(e, payment("evt_1")))
	unknown := w.Event(e, payment("evt_2"))
	unknown.Sample.Body = bytes.Replace(unknown.Sample.Body, []byte(`"payment_intent.succeeded"`), []byte(`"made.up"`), 1)
	w.Send(unknown)
	w.Rest()
	for _, row := range w.Inbox() {
		if row.Status != webhook.Processed || row.Outcome != webhook.Ignored || !row.Unwanted {
			t.Errorf("%s of type %s ended %s %s", row.EventID, row.EventType, row.Status, row.Outcome)
		}
	}
	if n := len(w.Inbox()); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	for _, wrong := range w.Check() {
		t.Error(wrong)
	}
}
