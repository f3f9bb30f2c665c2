package business_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/webhook"
)

// want is the state that a life must end in.
func (l life) want() map[webhook.Key]webhook.Item {
	ev := l.events[0]
	balance := webhook.Item{}
	for _, e := range l.events {
		if e.Facts.Credit != 0 && l.balance != 0 {
			balance[business.BalanceAttribute("INR")] = l.balance
		}
	}
	want := map[webhook.Key]webhook.Item{}
	for _, e := range l.events {
		want[business.LedgerBalanceKey(e)] = balance
	}
	if l.state == "" {
		return want
	}
	projection := webhook.Item{business.AttrState: l.state, business.AttrProvider: string(ev.Provider)}
	if l.version != nil {
		projection[business.AttrVersion] = l.version
	}
	want[business.ProjectionKey(ev)] = projection
	return want
}

// got reads the same from the table. The working attributes that count money
// must agree between orders as well, so they are compared with the in-order run.
func (l life) got(m *memory) map[webhook.Key]webhook.Item {
	state := m.state()
	if row := state[business.ProjectionKey(l.events[0])]; row != nil {
		for name := range row {
			if len(name) > 8 && name[:8] == "counted_" || name == business.AttrCredited || name == business.AttrCreditedIn {
				delete(row, name)
			}
		}
	}
	return state
}

// Proves O1, O2, O5, T3: every order in which the events of a life can arrive
// ends in the same state, with the money counted once.
func TestEveryOrderOfArrivalEndsAlike(t *testing.T) {
	t.Parallel()
	for _, l := range lives() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			router := business.Standard()
			inOrder := newMemory()
			inOrder.processAll(t, router, l.events...)
			if diff := cmp.Diff(l.want(), l.got(inOrder)); diff != "" {
				t.Fatalf("in order (-want +got):\n%s", diff)
			}
			orders := 0
			permute(l.events, func(events []webhook.Event) {
				orders++
				m := newMemory()
				m.processAll(t, router, events...)
				if diff := cmp.Diff(inOrder.state(), m.state()); diff != "" && !t.Failed() {
					t.Errorf("order %v (-in order +got):\n%s", ids(events), diff)
				}
			})
			if want := factorial(len(l.events)); orders != want {
				t.Errorf("%d orders were tried, want %d", orders, want)
			}
		})
	}
}

// Proves O1, O5, T3, W2: the same with every event delivered several times, also
// under fresh ids, and with workers that read, decide and commit interleaved.
func TestEveryInterleavingOfWorkersEndsAlike(t *testing.T) {
	t.Parallel()
	const runs, seed = 150, 20261130
	for i, l := range lives() {
		if l.events[0].Facts.ObjectType == webhook.Account {
			continue // a notice under a fresh id is another notice
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			router := business.Standard()
			inOrder := newMemory()
			inOrder.processAll(t, router, l.events...)
			for run := range runs {
				rnd := rand.New(rand.NewPCG(seed, uint64(i*runs+run)))
				m := newMemory()
				interleave(t, m, router, crowd(l.events, rnd), rnd)
				if diff := cmp.Diff(inOrder.state(), m.state()); diff != "" {
					t.Fatalf("seed %d, run %d (-in order +got):\n%s", seed, run, diff)
				}
			}
		})
	}
}

// crowd returns every event two to four times: as itself, or as the same fact
// under a fresh id.
func crowd(events []webhook.Event, rnd *rand.Rand) []webhook.Event {
	var all []webhook.Event
	for _, ev := range events {
		all = append(all, ev)
		for copies := range 1 + rnd.IntN(3) {
			again := ev
			if rnd.IntN(2) == 0 {
				again.InboxID += webhook.InboxID(fmt.Sprintf("_again_%d", copies))
			}
			all = append(all, again)
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// interleave gives every event to a worker of its own and lets chance say which
// one takes its next step: reading and deciding, or committing.
func interleave(t *testing.T, m *memory, r *business.Router, events []webhook.Event, rnd *rand.Rand) {
	t.Helper()
	type worker struct {
		ev   webhook.Event
		plan *webhook.Plan
	}
	var open []*worker
	for _, ev := range events {
		open = append(open, &worker{ev: ev})
	}
	for len(open) > 0 {
		i := rnd.IntN(len(open))
		w := open[i]
		if w.plan == nil {
			h, _ := r.Handler(w.ev)
			p, err := h.Plan(context.Background(), w.ev, m)
			if err != nil {
				t.Fatal(err)
			}
			w.plan = &p
			continue
		}
		verdict := m.commit(w.ev, *w.plan)
		w.plan = nil
		if verdict != webhook.RivalWrote {
			open = append(open[:i], open[i+1:]...)
		}
	}
}

// Proves T3, W2: hundreds of concurrent copies of one event are one mutation,
// shown by the additive ledger.
func TestHundredsOfCopiesCreditOnce(t *testing.T) {
	t.Parallel()
	for _, l := range []life{paymentThatFailsFirst(), orderPaidOnDelivery(), subscriptionWithRounds(), refund()} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			m, router := newMemory(), business.Standard()
			paid := moneyEvent(l)
			var group sync.WaitGroup
			for range 500 {
				group.Go(func() {
					if _, err := m.process(router, paid); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			want := webhook.Item{
				business.AttrEntries:             int64(1),
				business.BalanceAttribute("INR"): int64(paid.Facts.Credit) * paid.Facts.Amount,
			}
			if diff := cmp.Diff(want, m.rows[business.LedgerBalanceKey(paid)]); diff != "" {
				t.Errorf("balance (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves P4: notices in any order and on any shard leave their entries and their count.
func TestEveryNoticeIsAnEntryAndOneMoreOnTheCount(t *testing.T) {
	t.Parallel()
	a := &happening{object: webhook.Account, provider: "github", policy: webhook.Monotonic}
	m := newMemory()
	var last webhook.Event
	for range 100 {
		last = a.says("renamed")
		m.processAll(t, business.Standard(), last, last)
	}
	var count int64
	shards := 0
	for _, k := range business.LedgerBalanceKeys(last) {
		if row := m.rows[k]; row != nil {
			shards++
			count += row[business.AttrEntries].(int64)
		}
	}
	if entries := len(m.rows) - shards; entries != 100 || count != 100 || shards < webhook.Shards/2 {
		t.Errorf("%d entries and a count of %d on %d rows, want 100 and 100 on most of %d", entries, count, shards, webhook.Shards)
	}
}

func moneyEvent(l life) webhook.Event {
	for _, ev := range l.events {
		if ev.Facts.Credit != 0 {
			return ev
		}
	}
	panic(l.name + " moves no money")
}

// Proves T3: the ledger would show an application that the mark did not stop,
// while the projection looks right.
func TestTheLedgerShowsADoubleApplication(t *testing.T) {
	t.Parallel()
	m, router := newMemory(), business.Standard()
	ev := (&happening{object: webhook.Account, provider: "github"}).says("suspended")
	for range 2 {
		m.processAll(t, router, ev)
		clear(m.marks) // what must never happen
	}
	entries := 0
	for k := range m.rows {
		if k == business.LedgerEntryKey(ev) {
			entries++
		}
	}
	got := m.rows[business.LedgerBalanceKey(ev)][business.AttrEntries]
	if entries != 1 || got != int64(2) {
		t.Errorf("%d entry rows and a count of %v, want 1 and 2", entries, got)
	}
}

// Proves T5, O2: versions 3, 1, 2 end at 3, and the older ones are stale.
func TestVersionsThreeOneTwoEndAtThree(t *testing.T) {
	t.Parallel()
	o := &happening{object: webhook.Object, provider: "standard-webhooks", policy: webhook.ByVersion}
	m := newMemory()
	three := o.says("ready", at(3), moves(+1, 50))
	got := m.processAll(t, business.Standard(), three, o.says("new", at(1), moves(+1, 10)), o.says("old", at(2), moves(+1, 20)), three)

	want := []webhook.Outcome{webhook.Applied, webhook.Stale, webhook.Stale, webhook.AlreadyApplied}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	rows := map[webhook.Key]webhook.Item{
		business.ProjectionKey(three): {
			"state": "ready", "version": int64(3), "amount": int64(50), "currency": "INR", "provider": "standard-webhooks",
			"kind": "object.ready", "inbox": "in_object_1", "events": int64(1),
		},
		business.LedgerEntryKey(three): {
			"amount": int64(50), "currency": "INR", "state": "ready", "provider": "standard-webhooks",
			"kind": "object.ready", "type": "t.ready", "inbox": "in_object_1", "run": int64(0),
		},
		business.LedgerBalanceKey(three): {"entries": int64(1), "balance_INR": int64(50)},
	}
	if diff := cmp.Diff(rows, m.rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// Proves O5: a payment's success that arrives before its processing stands.
func TestAPaymentThatSucceededStaysSucceeded(t *testing.T) {
	t.Parallel()
	p := follows(webhook.Payment)
	events := []webhook.Event{
		p.says("succeeded", moves(+1, 500)), p.says("processing"), p.says("succeeded", moves(+1, 500)), p.says("cancelled"),
	}
	got := newMemory().processAll(t, business.Standard(), events...)
	want := []webhook.Outcome{webhook.Applied, webhook.Stale, webhook.Stale, webhook.Stale}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func permute(events []webhook.Event, visit func([]webhook.Event)) {
	var from func(int)
	order := append([]webhook.Event(nil), events...)
	from = func(i int) {
		if i == len(order) {
			visit(order)
			return
		}
		for j := i; j < len(order); j++ {
			order[i], order[j] = order[j], order[i]
			from(i + 1)
			order[i], order[j] = order[j], order[i]
		}
	}
	from(0)
}

func factorial(n int) int {
	if n == 0 {
		return 1
	}
	return n * factorial(n-1)
}

func ids(events []webhook.Event) []webhook.InboxID {
	var all []webhook.InboxID
	for _, ev := range events {
		all = append(all, ev.InboxID)
	}
	return all
}
