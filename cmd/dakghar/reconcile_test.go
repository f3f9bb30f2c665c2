package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"dakghar/internal/operator/operatortest"
	"dakghar/internal/reconciler"
	"dakghar/internal/webhook"
)

// evidences are a world's rows, as a comparison reads them, a page each.
type evidences struct {
	reconciler.Evidences
	world  *operatortest.World
	leases map[string]string
	taken  bool
	// page, when set, is called before a page of the inbox is read.
	page func() error
}

func (e *evidences) Inbox(_ context.Context, id webhook.InboxID) (webhook.Inbox, bool, error) {
	row, ok := e.world.Rows[id]
	return row, ok, nil
}

func (e *evidences) Outbox(_ context.Context, id webhook.OutboxID) (webhook.Outbox, bool, error) {
	o, ok := e.world.Promises[id]
	return o, ok, nil
}

func (e *evidences) Marked(_ context.Context, id webhook.InboxID, _ int) (bool, error) {
	return e.world.Applied[id], nil
}

func (e *evidences) BodyKept(context.Context, webhook.BodyID, time.Time) (bool, error) {
	return true, nil
}

func (e *evidences) InboxPage(_ context.Context, segment, segments int, _ string, _ int) ([]webhook.Inbox, []webhook.InboxID, string, error) {
	if e.page != nil {
		if err := e.page(); err != nil {
			return nil, nil, "", err
		}
	}
	var rows []webhook.Inbox
	for i, id := range slices.Sorted(maps.Keys(e.world.Rows)) {
		if i%segments == segment {
			rows = append(rows, e.world.Rows[id])
		}
	}
	return rows, nil, "", nil
}

func (e *evidences) RecentPage(_ context.Context, of webhook.EndpointID, shard int, from, to time.Time, _ string, _ int) ([]webhook.InboxID, string, error) {
	var ids []webhook.InboxID
	for id, row := range e.world.Rows {
		if row.Endpoint == of && webhook.ShardOf(string(id)) == shard && !row.ReceivedAt.Before(from) && row.ReceivedAt.Before(to) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, "", nil
}

func (e *evidences) InboxRows(context.Context, []webhook.InboxID) (map[webhook.InboxID]webhook.Inbox, []webhook.InboxID, error) {
	return e.world.Rows, nil, nil
}

func (e *evidences) Promises(context.Context, []webhook.OutboxID) (map[webhook.OutboxID]webhook.Outbox, error) {
	return e.world.Promises, nil
}

func (e *evidences) MarksOf(context.Context, []webhook.Inbox) (map[webhook.InboxID]bool, error) {
	return e.world.Applied, nil
}

func (e *evidences) Retry(_ context.Context, c webhook.Change, o webhook.Outbox) (bool, error) {
	e.world.Rows[c.ID], e.world.Promises[o.ID] = c.Apply(e.world.Rows[c.ID]), o
	return true, nil
}

func (e *evidences) DeleteOutbox(_ context.Context, id webhook.OutboxID, _ webhook.Fence) (bool, error) {
	delete(e.world.Promises, id)
	return true, nil
}

func (e *evidences) Lease(_ context.Context, name, _ string, _, _ time.Time) (string, bool, error) {
	return e.leases[name], !e.taken, nil
}

func (e *evidences) Release(_ context.Context, name, _, state string) error {
	e.leases[name] = state
	return nil
}

// comparing gives a shell a world in which events differ, and what it compares with.
func comparing(t *testing.T) (*shell, *evidences) {
	t.Helper()
	s := created(t)
	e := &evidences{world: s.world, leases: map[string]string{}}
	s.compare = func(context.Context, target, func(string) string) (*comparison, error) {
		return &comparison{
			Comparer: &reconciler.Comparer{Store: e, Now: s.world.Operator().Now, NewID: func() string { return "one" }, AtOnce: 1, Slack: time.Minute},
			size:     func(context.Context) (int64, int64, error) { return int64(len(s.world.Rows)), 8192, nil },
		}, nil
	}
	put := func(id webhook.InboxID, ago time.Duration, status webhook.Status) webhook.Inbox {
		row := webhook.Inbox{ID: id, Endpoint: "demo", Status: status, ReceivedAt: s.world.Clock.Add(-ago), Fence: 2}
		s.world.Rows[id] = row
		return row
	}
	put("in_lost", time.Hour, webhook.Received)
	put("in_lost_too", 50*time.Hour, webhook.Retry)
	put("in_unmarked", time.Hour, webhook.Processed)
	put("in_fine", time.Hour, webhook.Failed)
	left := webhook.NewOutbox(put("in_left", time.Hour, webhook.Failed), s.world.Clock, s.world.Clock)
	s.world.Promises[left.ID] = left
	return s, e
}

// Proves R1, M2: an operator's comparison shows its plan, is recorded, and says
// what it found and did.
func TestReconcileCommand(t *testing.T) {
	s, e := comparing(t)
	on := func(words ...string) []string { return append([]string{"reconcile", "--local"}, words...) }
	s.run("", on("--full", "--plan")...)
	s.run("", on("--full", "--plan", "--json")...)
	s.run("", on("--full", "--report-only")...)
	s.run("", on("--endpoint", "demo", "--since", "2h", "--report-only", "--json")...)
	s.run("no\n", on("--full", "--reason", "restored")...)
	s.run("yes\n", on("--full", "--reason", "restored")...)
	s.run("", on("--full", "--yes", "--reason", "again", "--json")...)
	s.run("", on("--endpoint", "demo", "--since", "2h", "--yes", "--reason", "again")...)
	s.run("", on("--endpoint", "nobody", "--since", "2h", "--yes", "--reason", "again")...)
	e.taken = true
	s.run("", on("--full", "--yes", "--reason", "again")...)
	s.run("", "audit", "list", "--local")
	s.wantGolden("reconcile")
}

// Proves R1: what was interrupted goes on, and says so.
func TestAnInterruptedReconcileGoesOn(t *testing.T) {
	s, e := comparing(t)
	pages := 0
	e.page = func() error {
		if pages++; pages == 3 {
			return errors.New("the store is down")
		}
		return nil
	}
	s.run("", "reconcile", "--local", "--full", "--yes", "--reason", "restored")
	s.run("", "reconcile", "--local", "--full", "--yes", "--reason", "restored", "--json")
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	e.page = func() error { cancel(); return ctx.Err() }
	s.run("", "reconcile", "--local", "--full", "--yes", "--reason", "restored")
	s.wantGolden("reconcile_interrupted")
}

// Nothing is done on a command line that makes no sense.
func TestAReconcileThatMakesNoSenseIsRefused(t *testing.T) {
	s, _ := comparing(t)
	before := fmt.Sprint(s.world.Acts, s.world.Rows, s.world.Promises)
	for _, line := range []string{
		"--reason x", "--full --endpoint demo --since 1h --reason x", "--endpoint demo --reason x", "--full --since 1h --reason x",
		"--full", "--full --yes", "--endpoint demo --since never --reason x",
	} {
		r := s.quietly("yes\n", append([]string{"reconcile", "--local"}, strings.Fields(line)...)...)
		if r.code != exitUsage || r.out != "" || r.err == "" {
			t.Errorf("%s: exit %d, output %q, error %q; want 2, nothing and a reason", line, r.code, r.out, r.err)
		}
	}
	if after := fmt.Sprint(s.world.Acts, s.world.Rows, s.world.Promises); after != before {
		t.Error("something was done")
	}
}

// Proves R1 on the real adapters: the template's tables, over the network.
func TestReconcileWorksOnARunningStack(t *testing.T) {
	s := startStack(t)
	onStack(t, s, exitDone, first, "endpoint create --local --provider stripe --id demo --secret-file -")
	store(t, s, []byte(`{"a":1}`)) // held, and nobody promised to come
	full := "reconcile --local --full --yes --json --reason drill"
	found := onStack(t, s, exitDone, "", full)
	if got := column(t, found, "record"); got != "plan difference compared" {
		t.Errorf("records %q in\n%s", got, found)
	}
	if o := objects(t, found); len(o) == 3 && (o[0]["events"] != 1.0 || o[1]["kind"] != "open_without_promise" || o[1]["done"] != "requeued" || o[2]["compared"] != 1.0) {
		t.Errorf("it says\n%s", found)
	}
	if got := column(t, onStack(t, s, exitDone, "", full), "record"); got != "plan compared" {
		t.Errorf("again: records %q", got)
	}
	recent := onStack(t, s, exitDone, "", "reconcile --local --endpoint demo --since 1h --report-only --json")
	if o := objects(t, recent); len(o) != 2 || o[0]["events"] != 1.0 || o[1]["compared"] != 1.0 || o[1]["differences"] != 0.0 {
		t.Errorf("by endpoint it says\n%s", recent)
	}
}
