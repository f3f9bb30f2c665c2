package reconciler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/provider"
	"dakghar/internal/reconciler"
	"dakghar/internal/sim"
	"dakghar/internal/webhook"
)

// quiet is a world whose endpoints expect something.
type quiet struct {
	*sim.World
	t      *testing.T
	log    bytes.Buffer
	faults sim.Faults
	n      int
	looks  []string // "endpoint from back to", as they are asked of the store
}

func newQuiet(t *testing.T) *quiet {
	t.Helper()
	q := &quiet{t: t}
	q.World = sim.New(t, sim.Options{Log: &q.log, Middleware: map[string]func(*middleware.Stack) error{"reconciler": q.faults.Middleware}})
	q.anew()
	return q
}

// anew has another process take over, which remembers nothing.
func (q *quiet) anew() {
	is := q.Schedule().Reconciler
	store := is.Store
	if counted, ok := store.(countedStore); ok {
		store = counted.Store
	}
	q.Schedule().Reconciler = &reconciler.Reconciler{
		Store: countedStore{store, q}, Queue: is.Queue, Policy: is.Policy, Now: is.Now, NewID: is.NewID, Chance: is.Chance,
	}
}

// countedStore notes what is looked for.
type countedStore struct {
	reconciler.Store
	q *quiet
}

func (c countedStore) Arrivals(ctx context.Context, e webhook.EndpointID, since, until time.Time) iter.Seq2[webhook.Inbox, error] {
	c.q.looks = append(c.q.looks, fmt.Sprint(e, " ", until.Sub(since)))
	return c.Store.Arrivals(ctx, e, since, until)
}

func (q *quiet) expecting(id webhook.EndpointID, every time.Duration) *sim.Endpoint {
	q.t.Helper()
	e := q.AddEndpoint("stripe", id, "whsec_test_secret_of_the_endpoint_"+string(id))
	q.Configure(e, func(e webhook.Endpoint) webhook.Endpoint { e.ExpectEvery = every; return e })
	return e
}

// send has the provider send an event, which is worked on.
func (q *quiet) send(e *sim.Endpoint) {
	q.t.Helper()
	q.n++
	d := q.Event(e, provider.SampleOptions{Type: "payment_intent.succeeded", EventID: fmt.Sprint("evt_", q.n), Amount: 5, Currency: "EUR"})
	if status := q.Send(d); status != 200 {
		q.t.Fatalf("status %d", status)
	}
	q.Settle()
}

// put stores an ended event that no provider sent.
func (q *quiet) put(id webhook.EndpointID, change func(*webhook.Inbox)) {
	q.t.Helper()
	q.n++
	row := webhook.Inbox{
		ID: webhook.InboxID(fmt.Sprint("in_put_", q.n)), Provider: "stripe", Endpoint: id, EventID: webhook.EventID(fmt.Sprint("put_", q.n)),
		ReceivedAt: q.Now(), Digest: webhook.DigestOf([]byte("x")), Status: webhook.Processed, Outcome: webhook.Ignored,
	}
	change(&row)
	if existing, err := q.Outside.Accept(q.t.Context(), row, nil); err != nil || existing != nil {
		q.t.Fatalf("accept: %v, %v", existing, err)
	}
}

func canary(row *webhook.Inbox)     { row.EventType, row.Unwanted = webhook.CanaryType, true }
func backfilled(row *webhook.Inbox) { row.MatchedVersion = webhook.Backfilled }

// told is what the lines of a run say of endpoints.
type told struct{ Decision, Provider, Endpoint, LastEventAt, ExpectEvery string }

// run makes a pass and returns its two figures and what it told.
func (q *quiet) run() (map[string]float64, []told) {
	q.t.Helper()
	q.log.Reset()
	q.looks = nil
	q.Reconcile()
	var said []told
	for text := range bytes.Lines(q.log.Bytes()) {
		line := map[string]any{}
		if err := json.Unmarshal(text, &line); err != nil {
			q.t.Fatal(err)
		}
		get := func(name string) string { v, _ := line[name].(string); return v }
		if get("endpoint_id") != "" && strings.HasPrefix(get("decision"), "silen") {
			said = append(said, told{get("decision"), get("provider"), get("endpoint_id"), get("last_event_at"), get("expect_every")})
		}
	}
	return figures(q.t, &q.log, "silent_endpoints", "silent_age_s"), said
}

// want makes a pass and compares all that it says and asks.
func (q *quiet) want(what string, figures map[string]float64, lines []told, looks []string) {
	q.t.Helper()
	got, said := q.run()
	if diff := cmp.Diff(figures, got); diff != "" {
		q.t.Errorf("%s: figures (-want +got):\n%s", what, diff)
	}
	if diff := cmp.Diff(lines, said); diff != "" {
		q.t.Errorf("%s: lines (-want +got):\n%s", what, diff)
	}
	if diff := cmp.Diff(looks, q.looks); diff != "" {
		q.t.Errorf("%s: looks (-want +got):\n%s", what, diff)
	}
}

func silent(n int, age time.Duration) map[string]float64 {
	return map[string]float64{"silent_endpoints": float64(n), "silent_age_s": age.Seconds()}
}

// Proves M1, M2, M3: an endpoint that heard nothing for longer than it expects is
// counted and named, from the rows that were accepted, until it hears something.
func TestASilentProviderIsSeen(t *testing.T) {
	t.Parallel()
	q := newQuiet(t)
	e := q.expecting("demo", time.Hour)
	q.AddEndpoint("stripe", "unasked", "whsec_test_secret_of_who_expects_nothing")
	at := func() string { return q.Now().UTC().Format(time.RFC3339) }

	q.Advance(time.Hour)
	q.want("a new endpoint has as long as any other", silent(0, 0), nil, nil)

	q.send(e)
	last := at()
	q.Advance(time.Hour)
	q.want("one that was heard an hour ago", silent(0, 0), nil, []string{"demo 1h2m0s"})
	q.want("and is remembered", silent(0, 0), nil, nil)

	q.Advance(time.Minute)
	line := told{"silent", "stripe", "demo", last, "1h0m0s"}
	q.want("a minute more", silent(1, 61*time.Minute), []told{line}, []string{"demo 4m0s"})
	q.Advance(time.Minute)
	q.want("it is told once", silent(1, 62*time.Minute), nil, []string{"demo 4m0s"})
	q.Advance(time.Hour)
	q.want("and again an hour later", silent(1, 122*time.Minute), []told{line}, []string{"demo 1h3m0s"})

	q.send(e)
	heard := at()
	q.Advance(time.Minute)
	q.want("it was heard", silent(0, 0), []told{{"silence_over", "stripe", "demo", heard, "1h0m0s"}}, []string{"demo 4m0s"})
	q.want("and that is told once", silent(0, 0), nil, nil)
}

// Proves M2: canaries and what a back-fill brought are no sign that the provider
// calls; whatever it sent itself is, whether anybody works on it or not.
func TestWhatCountsAsHeard(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		put    func(*webhook.Inbox)
		silent int
	}{
		{"a canary", canary, 1},
		{"an event that a back-fill brought", backfilled, 1},
		{"an event that nobody acts on", func(row *webhook.Inbox) { row.Unwanted = true }, 0},
		{"an event that is held", func(row *webhook.Inbox) { row.Status = webhook.Held }, 0},
		{"an event that was erased", func(row *webhook.Inbox) { row.ErasedAt = row.ReceivedAt }, 0},
		{"an event of another endpoint", func(row *webhook.Inbox) { row.Endpoint = "other" }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := newQuiet(t)
			q.expecting("demo", time.Hour)
			q.Advance(2 * time.Hour)
			for range 12 { // more than are read at first
				q.put("demo", tt.put)
			}
			if got, _ := q.run(); got["silent_endpoints"] != float64(tt.silent) {
				t.Errorf("%v endpoints are silent, want %d", got["silent_endpoints"], tt.silent)
			}
		})
	}
}

// A pause stops the work, and not the provider. Proves M2.
func TestAPausedEndpointHears(t *testing.T) {
	t.Parallel()
	q := newQuiet(t)
	e := q.expecting("demo", time.Hour)
	q.Configure(e, func(e webhook.Endpoint) webhook.Endpoint { e.PausedAt = q.Now(); return e })
	q.Advance(2 * time.Hour)
	q.send(e)
	if got, _ := q.run(); !cmp.Equal(got, silent(0, 0)) {
		t.Errorf("paused, and heard: %v", got)
	}
	q.Advance(2 * time.Hour)
	if got, _ := q.run(); !cmp.Equal(got, silent(1, 2*time.Hour)) {
		t.Errorf("paused, and silent: %v", got)
	}
}

// Proves M2, M3: what one process knows, the next one finds again, behind days of
// canaries; an event that the index shows late is seen.
func TestANewProcessHearsAnew(t *testing.T) {
	t.Parallel()
	q := newQuiet(t)
	e := q.expecting("demo", 5*24*time.Hour)
	q.Advance(24 * time.Hour)
	q.send(e)
	last := q.Now()
	for range 4 * 24 {
		q.Advance(time.Hour)
		q.put("demo", canary)
	}
	if got, _ := q.run(); !cmp.Equal(got, silent(0, 0)) || q.looks != nil {
		t.Errorf("younger than what it expects: %v, %q", got, q.looks)
	}
	q.Advance(23 * time.Hour)
	if got, _ := q.run(); !cmp.Equal(got, silent(0, 0)) || len(q.looks) != 6 {
		t.Errorf("an hour too early: %v, %q", got, q.looks)
	}
	q.Advance(time.Hour + time.Minute)
	lines := []told{{"silent", "stripe", "demo", last.UTC().Format(time.RFC3339), "120h0m0s"}}
	q.want("silent", silent(1, 5*24*time.Hour+time.Minute), lines, []string{"demo 1h4m0s"})
	q.anew()
	if got, said := q.run(); !cmp.Equal(got, silent(1, 5*24*time.Hour+time.Minute)) || !cmp.Equal(said, lines) || len(q.looks) != 6 {
		t.Errorf("another process: %v, %v, %q", got, said, q.looks)
	}

	q.put("demo", func(row *webhook.Inbox) { row.ReceivedAt = q.Now().Add(-90 * time.Second) })
	if got, _ := q.run(); !cmp.Equal(got, silent(0, 0)) {
		t.Errorf("an event that was not in the index yet: %v", got)
	}
}

// Nothing was ever heard: it is silent for as long as was looked back, or since it
// was made. Proves M2.
func TestAnEndpointThatWasNeverCalled(t *testing.T) {
	t.Parallel()
	q := newQuiet(t)
	e := q.expecting("demo", 48*time.Hour)
	q.Advance(48*time.Hour + time.Minute)
	q.want("made two days ago", silent(1, 48*time.Hour+time.Minute), []told{{"silent", "stripe", "demo", "", "48h0m0s"}}, []string{"demo 12h2m0s", "demo 23h59m59.999s", "demo 11h59m59.999s"})
	q.Advance(time.Hour)
	if got, _ := q.run(); !cmp.Equal(got, silent(1, 49*time.Hour+time.Minute)) {
		t.Errorf("an hour later: %v", got)
	}

	q.Configure(e, func(e webhook.Endpoint) webhook.Endpoint { e.ExpectEvery = 0; return e })
	q.want("nothing is expected any more", silent(0, 0), nil, nil)
	q.Advance(50 * 24 * time.Hour)
	q.Configure(e, func(e webhook.Endpoint) webhook.Endpoint { e.ExpectEvery = time.Hour; return e })
	if got, _ := q.run(); !cmp.Equal(got, silent(1, time.Hour+time.Minute)) {
		t.Errorf("as far back as was looked: %v", got)
	}
	q.put("demo", func(row *webhook.Inbox) { row.ReceivedAt = q.Now().Add(-10 * time.Hour) })
	q.Configure(e, func(e webhook.Endpoint) webhook.Endpoint { e.ExpectEvery = 12 * time.Hour; return e })
	got, said := q.run()
	if !cmp.Equal(got, silent(0, 0)) || len(said) != 1 || said[0].Decision != "silence_over" {
		t.Errorf("it expects less, and there was one before: %v, %v", got, said)
	}
}

// bounded has a run do only so much.
func (q *quiet) bounded(b reconciler.SilenceBounds) {
	b.Time = q.Schedule().Reconciler.Policy.Silence.Time
	q.Schedule().Reconciler.Policy.Silence = b
}

// Proves M2: what cannot be read, or not in one run, is no figure and not a good one.
func TestNoFigureWhereNotAllIsKnown(t *testing.T) {
	t.Parallel()
	q := newQuiet(t)
	const days = 3 * 24 * time.Hour // from noon to noon: on four of them is to be looked
	for i := range 4 {
		q.expecting(webhook.EndpointID(fmt.Sprint("demo-", i)), days)
	}
	q.bounded(reconciler.SilenceBounds{Days: 13, Rows: 100, Lines: 10})
	q.Advance(days + 24*time.Hour)
	if got, said := q.run(); len(got) != 0 || len(said) != 3 || len(q.looks) != 13 {
		t.Errorf("first run: %v, %d lines, %q", got, len(said), q.looks)
	}
	q.Advance(time.Minute)
	if got, said := q.run(); !cmp.Equal(got, silent(4, days+2*time.Minute)) || len(said) != 1 || len(q.looks) != 6 {
		t.Errorf("second run: %v, %d lines, %q", got, len(said), q.looks)
	}
	q.Advance(time.Minute)
	if got, said := q.run(); !cmp.Equal(got, silent(4, days+3*time.Minute)) || len(said) != 0 || len(q.looks) != 4 {
		t.Errorf("third run: %v, %d lines, %q", got, len(said), q.looks)
	}

	q.faults.Add(sim.Fault{Operation: "Query", Table: "InboxTable", Times: 1, Err: sim.ErrDenied})
	if got, _ := q.run(); len(got) != 0 || q.ReconcileErr == nil || !strings.Contains(q.ReconcileErr.Error(), "endpoint demo-") {
		t.Errorf("one cannot be read: %v, %v", got, q.ReconcileErr)
	}
	if got, _ := q.run(); !cmp.Equal(got, silent(4, days+3*time.Minute)) {
		t.Errorf("and the next time it can: %v", got)
	}
}

// What a back-fill brought, in numbers that one run does not read, hides nothing: the
// look goes on where it stopped. Proves M2.
func TestALongLookGoesOn(t *testing.T) {
	t.Parallel()
	q := newQuiet(t)
	e := q.expecting("demo", 20*time.Hour)
	q.Advance(24 * time.Hour)
	q.send(e)
	q.Advance(19 * time.Hour)
	for range 35 {
		q.put("demo", backfilled)
		q.Advance(time.Minute)
	}
	q.Advance(24 * time.Minute)
	q.bounded(reconciler.SilenceBounds{Days: 10, Rows: 30, Lines: 10})
	if got, _ := q.run(); len(got) != 0 {
		t.Errorf("first run: %v", got)
	}
	if got, _ := q.run(); !cmp.Equal(got, silent(0, 0)) {
		t.Errorf("second run: %v", got)
	}
	q.Advance(2 * time.Minute)
	if got, _ := q.run(); !cmp.Equal(got, silent(1, 20*time.Hour+time.Minute)) {
		t.Errorf("when its time is over: %v", got)
	}
}

// When many fall silent at once, a run writes so many lines, and the next one the rest. Proves M1.
func TestWhatOneRunDoesNotTellTheNextDoes(t *testing.T) {
	t.Parallel()
	q := newQuiet(t)
	for i := range 5 {
		q.expecting(webhook.EndpointID(fmt.Sprint("demo-", i)), time.Hour)
	}
	q.bounded(reconciler.SilenceBounds{Days: 10, Rows: 10, Lines: 3})
	q.Advance(61 * time.Minute)
	for run, lines := range []int{3, 2, 0} {
		if got, said := q.run(); !cmp.Equal(got, silent(5, 61*time.Minute)) || len(said) != lines {
			t.Errorf("run %d: %v, %d lines, want %d", run, got, len(said), lines)
		}
	}
}
