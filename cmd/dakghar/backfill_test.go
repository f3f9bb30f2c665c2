package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dakghar/internal/devstack"
	"dakghar/internal/egress"
	"dakghar/internal/ingress"
	"dakghar/internal/limit"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/provider/remote"
	"dakghar/internal/provider/remote/fakeprovider"
	"dakghar/internal/webhook"
)

// A credential of these tests: made up, of the right form for Stripe.
const apiKey = "rk_test_7Hq2Zx9Lw4Vb1Nc8Mk5Jd3Gf6"

// acceptances keeps what a back-fill accepts in a world's rows.
type acceptances struct{ world *operatortest.World }

func (a acceptances) Inbox(_ context.Context, id webhook.InboxID) (webhook.Inbox, bool, error) {
	row, ok := a.world.Rows[id]
	return row, ok, nil
}

func (a acceptances) Accept(_ context.Context, row webhook.Inbox, promise *webhook.Outbox) (*webhook.Inbox, error) {
	if there, ok := a.world.Rows[row.ID]; ok {
		return &there, nil
	}
	a.world.Rows[row.ID], a.world.Promises[promise.ID] = row, *promise
	return nil, nil
}

func (a acceptances) Put(_ context.Context, b webhook.Body) (webhook.Placed, error) {
	_, there := a.world.Bodies[b.ID]
	a.world.Bodies[b.ID] = b.Raw
	return webhook.Placed{ExpiresAt: b.At.Add(720 * time.Hour), Existed: there, FirstInbox: b.InboxID}, nil
}

func (a acceptances) Renew(_ context.Context, b webhook.Body) (webhook.Placed, bool, error) {
	return webhook.Placed{ExpiresAt: b.At.Add(720 * time.Hour)}, true, nil
}

func (a acceptances) Remove(context.Context, webhook.BodyID, string) error { return nil }

// marches keeps how far back-fills have come, beside a world's endpoints.
type marches struct {
	world *operatortest.World
	rows  map[webhook.EndpointID]webhook.Backfill
	taken bool
	// written, when set, is called after a row was written.
	written func()
}

func (m *marches) EndpointIDs(context.Context) ([]webhook.EndpointID, error) { return nil, nil }

func (m *marches) Endpoint(_ context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error) {
	e, ok := m.world.Endpoints[id]
	return e, ok, nil
}

func (m *marches) Backfill(_ context.Context, id webhook.EndpointID) (webhook.Backfill, error) {
	row := m.rows[id]
	row.Endpoint = id
	return row, nil
}

func (m *marches) UpdateBackfill(_ context.Context, b webhook.Backfill) (bool, error) {
	if m.rows[b.Endpoint].Revision != b.Revision {
		return false, nil
	}
	b.Revision++
	m.rows[b.Endpoint] = b
	if m.written != nil {
		m.written()
	}
	return true, nil
}

func (m *marches) Lease(context.Context, string, string, time.Time, time.Time) (string, bool, error) {
	return "", !m.taken, nil
}

func (m *marches) Release(context.Context, string, string, string) error { return nil }

type oneCredential struct{ text string }

func (c *oneCredential) Text(context.Context, string) (string, error) { return c.text, nil }

// fetching gives a shell a world whose provider can be asked, with the endpoint demo.
func fetching(t *testing.T) (*shell, *fakeprovider.Server, *marches, *oneCredential) {
	t.Helper()
	s := created(t)
	if r := s.quietly(apiKey, "endpoint", "update", "demo", "--local", "--api-secret-file", "-"); r.code != exitDone {
		t.Fatalf("update: %+v", r)
	}
	api, secrets, rows := fakeprovider.New(), &oneCredential{apiKey}, &marches{world: s.world, rows: map[webhook.EndpointID]webhook.Backfill{}}
	api.Credential("stripe", apiKey)
	served := httptest.NewServer(api)
	t.Cleanup(served.Close)
	now := s.world.Operator().Now
	s.backfill = func(context.Context, target, func(string) string) (*ingress.Backfill, error) {
		return &ingress.Backfill{
			Receiver: &ingress.Receiver{
				Providers: s.world.Providers, Bodies: acceptances{s.world}, Inbox: acceptances{s.world}, Recent: ingress.NewRecent(1),
				Limits: limit.NewLimiter(nil, time.Second), Budget: time.Minute, Now: now, NewID: func() string { return "one" },
			},
			Listing: &remote.Client{
				Secrets: secrets, Now: now, Base: fakeprovider.Base(served.URL),
				HTTP: egress.Doer[remote.Request, remote.Response]{Client: egress.New(egress.Config{AllowLoopback: true})},
			},
			Rows: rows, Lease: time.Minute, RedeliverMax: 60,
			Wait: func(ctx context.Context, d time.Duration) error {
				s.world.Advance(d)
				return ctx.Err()
			},
		}, nil
	}
	return s, api, rows, secrets
}

// listed makes the provider have events of the last hours, one an hour.
func listed(api *fakeprovider.Server, now time.Time, from, n int) {
	for i := from; i < from+n; i++ {
		api.Event(fmt.Appendf(nil, `{"id":"evt_%d","type":"payment_intent.succeeded","created":%d,"data":{"object":{"id":"pi_%d","amount":100,"amount_received":100,"currency":"eur","status":"succeeded"}}}`,
			i, now.Add(-time.Duration(i)*time.Hour).Unix(), i))
	}
}

// Proves A6, M2: an operator has what is missing fetched, sees the plan first, and
// is recorded; what is there already is a duplicate.
func TestBackfillCommand(t *testing.T) {
	s, api, rows, secrets := fetching(t)
	listed(api, s.world.Clock, 1, 5)
	api.Event(fmt.Appendf(nil, `{"id":"evt_other","type":"topup.created","created":%d,"data":{"object":{"id":"tu_1"}}}`, s.world.Clock.Unix()))
	api.PageMax(4)
	on := func(words ...string) []string {
		return append([]string{"backfill", "--local", "--endpoint", "demo"}, words...)
	}
	s.run("", on("--since", "24h", "--plan")...)
	s.run("", on("--since", "24h", "--plan", "--json")...)
	s.run("no\n", on("--since", "24h", "--reason", "the front door was down")...)
	s.run("yes\n", on("--since", "24h", "--reason", "the front door was down")...)
	s.run("", on("--since", "2026-03-01T09:30:00Z", "--yes", "--reason", "again", "--json")...)
	s.run("", on("--resume", "--yes", "--reason", "again")...)
	rows.taken = true
	s.run("", on("--since", "1h", "--yes", "--reason", "again")...)
	rows.taken = false
	secrets.text = "rk_test_another"
	s.run("", on("--since", "1h", "--plan")...)
	s.run("", on("--since", "1h", "--plan", "--json")...)
	e := s.world.Endpoints["demo"]
	e.API = nil
	s.world.Endpoints["demo"] = e
	s.run("", on("--since", "1h", "--plan")...)
	s.run("", "backfill", "--local", "--endpoint", "nobody", "--since", "1h", "--plan")
	s.run("", "audit", "list", "--local")
	s.wantGolden("backfill")
}

// Proves A6: a run waits where its provider asks for it, tells so, and goes on from
// its place after an interruption.
func TestABackfillWaitsAndGoesOn(t *testing.T) {
	s, api, rows, _ := fetching(t)
	api.PageMax(1)
	listed(api, s.world.Clock, 1, 4)
	on := func(words ...string) []string {
		return append([]string{"backfill", "--local", "--endpoint", "demo", "--yes", "--reason", "drill"}, words...)
	}
	throttled := func(after string) fakeprovider.Fault {
		return fakeprovider.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {after}}}
	}
	api.Next("stripe", fakeprovider.Fault{}, fakeprovider.Fault{}, throttled("90"), fakeprovider.Fault{}, throttled("1800"))
	s.run("", on("--since", "24h")...) // waits once, and has no patience for half an hour
	ctx, cancel := context.WithCancel(t.Context())
	whole := s.ctx
	s.ctx = ctx
	rows.written = cancel
	s.run("", on("--resume")...)
	s.ctx, rows.written = whole, nil
	s.run("", on("--resume", "--json")...)
	s.wantGolden("backfill_interrupted")
}

// Nothing is done, and nobody asked, on a command line that makes no sense.
func TestABackfillThatMakesNoSenseIsRefused(t *testing.T) {
	s, api, _, _ := fetching(t)
	for _, line := range []string{
		"--since 1h --reason x", "--endpoint demo --reason x", "--endpoint demo --since 1h --resume --reason x", "--endpoint demo --since 1h",
		"--endpoint demo --resume", "--endpoint demo --since never --reason x",
	} {
		r := s.quietly("yes\n", append([]string{"backfill", "--local"}, strings.Fields(line)...)...)
		if r.code != exitUsage || r.out != "" || r.err == "" {
			t.Errorf("%s: exit %d, output %q, error %q; want 2, nothing and a reason", line, r.code, r.out, r.err)
		}
	}
	if asked := api.Asked(); len(asked) != 0 || len(s.world.Rows) != 0 {
		t.Errorf("something was done: %v, %d rows", asked, len(s.world.Rows))
	}
}

// Proves A6 on the real adapters: the template's tables and secrets, over the
// network, with a stand-in for the provider that the stack names.
func TestBackfillWorksOnARunningStack(t *testing.T) {
	api := fakeprovider.New()
	api.Credential("stripe", apiKey)
	served := httptest.NewServer(api)
	t.Cleanup(served.Close)
	s := startStackWith(t, func(o *devstack.Options) { o.ProviderAPI = served.URL })
	onStack(t, s, exitDone, first, "endpoint create --local --provider stripe --id demo --secret-file -")
	onStack(t, s, exitFailed, "", "backfill --local --endpoint demo --since 48h --plan")
	onStack(t, s, exitDone, apiKey, "endpoint update demo --local --api-secret-file -")
	listed(api, time.Now(), 1, 3)
	line := "backfill --local --endpoint demo --since 48h --yes --json --reason drill"
	for _, want := range []struct{ accepted, duplicate float64 }{{3, 0}, {0, 3}} {
		said := objects(t, onStack(t, s, exitDone, "", line))
		if len(said) != 2 || said[1]["done"] != true || said[1]["accepted"] != want.accepted || said[1]["duplicate"] != want.duplicate {
			t.Errorf("it says %v, want %v", said, want)
		}
	}
	if got := column(t, onStack(t, s, exitDone, "", "inbox list --local --endpoint demo --json"), "status"); got != "RECEIVED RECEIVED RECEIVED" {
		t.Errorf("events %q", got)
	}
}
