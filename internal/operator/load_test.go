package operator_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/business"
	"dakghar/internal/operator"
	"dakghar/internal/operator/operatortest"
	"dakghar/internal/webhook"
)

// steady is a load of a request at once, so that the clock in memory goes on by the
// waits of the sender alone.
func steady() operator.Load {
	l := operator.Load{Traffic: payment(), Duration: 2 * time.Second, InFlight: 1}
	l.Rate, l.Seed = 10, 7
	return l
}

func prepared(t *testing.T, o *operator.Operator, l operator.Load) *operator.Loading {
	t.Helper()
	p, err := o.PrepareLoad(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// loaded sends a load.
func loaded(t *testing.T, p *operator.Loading) (operator.Loaded, error) {
	t.Helper()
	return p.Run(t.Context(), func(int) {})
}

// worked ends every row as the processor does, with its ledger.
func worked(w *operatortest.World) {
	for id, row := range w.Rows {
		row.Status, row.Outcome = webhook.Processed, webhook.Applied
		row.ProcessedAt = row.ReceivedAt.Add(80 * time.Millisecond)
		w.Rows[id] = row
		enter(w, row, 1)
	}
}

// enter puts an event's ledger, added so many times.
func enter(w *operatortest.World, row webhook.Inbox, times int64) {
	ev := webhook.Event{
		Tenant: row.Tenant, Provider: row.Provider, Endpoint: row.Endpoint, InboxID: row.ID, Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: row.ObjectID},
	}
	w.Items[business.LedgerBalanceKey(ev)] = webhook.Item{business.AttrEntries: times}
	w.Items[business.LedgerEntryKey(ev)] = webhook.Item{business.AttrInbox: string(row.ID), business.AttrRun: int64(0)}
}

// Proves L4: requests are due at the rate, and an answer that takes long does not
// move those behind it; their latency counts from when they were due.
func TestALoadsLatenciesCountFromTheDueTime(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	began, at, n := w.Clock, []time.Duration(nil), 0
	w.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		at = append(at, w.Clock.Sub(began))
		if n++; n == 3 {
			w.Advance(350 * time.Millisecond)
		}
		return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil
	}
	l := steady()
	l.Duration = time.Second
	sent, err := loaded(t, prepared(t, o, l))
	if err != nil {
		t.Fatal(err)
	}
	ms := func(all ...int) (out []time.Duration) {
		for _, v := range all {
			out = append(out, time.Duration(v)*time.Millisecond)
		}
		return out
	}
	if diff := cmp.Diff(ms(0, 100, 200, 550, 550, 550, 600, 700, 800, 900), at); diff != "" {
		t.Errorf("requests went at (-want +got):\n%s", diff)
	}
	want := operator.Summary{
		Sent: 10, Accepted: 10, Refused: map[string]int{}, P95: 350 * time.Millisecond, P99: 350 * time.Millisecond, Max: 350 * time.Millisecond, Elapsed: 900 * time.Millisecond,
	}
	if diff := cmp.Diff(want, sent.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if sent.Late != 3 || sent.LateMost != 250*time.Millisecond || sent.P999 != 350*time.Millisecond {
		t.Errorf("%d late, by %s at most; p99.9 %s; want 3, 250ms and 350ms", sent.Late, sent.LateMost, sent.P999)
	}
}

func TestALoadMixesSizesAndCopiesEvenly(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	l := steady()
	l.Duration, l.CopyRatio = 40*time.Second, 0.25
	l.Mix = []operator.BodyShare{{Bytes: 1500, Weight: 3}, {Bytes: 4000, Weight: 1}}
	p := prepared(t, o, l)
	sizes := map[int]int{}
	sent, err := loaded(t, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range w.Bodies {
		sizes[len(raw)]++
	}
	if diff := cmp.Diff(map[int]int{1500: 225, 4000: 75}, sizes); diff != "" {
		t.Errorf("bodies by size (-want +got):\n%s", diff)
	}
	if p.Requests != 400 || p.Events != 300 || sent.Accepted != 300 || sent.Duplicates != 100 || sent.Acknowledged() != 300 {
		t.Errorf("%d requests of %d events: %d accepted, %d duplicates, %d acknowledged; want 400 of 300: 300, 100, 300",
			p.Requests, p.Events, sent.Accepted, sent.Duplicates, sent.Acknowledged())
	}
	bytes, copies := int64(0), 0
	for _, s := range p.Sizes {
		bytes, copies = bytes+int64(s.Bytes*(s.Events+s.Copies)), copies+s.Copies
	}
	if p.Bytes() != bytes || copies != 100 || p.Sizes[0].Events != 225 {
		t.Errorf("planned %+v with %d bytes", p.Sizes, p.Bytes())
	}
}

// The order of the same load is another, and the events are the same.
func TestALoadCanBeShuffled(t *testing.T) {
	t.Parallel()
	ids := func(shuffle bool) []webhook.EventID {
		w, o := create(t)
		var order []webhook.EventID
		w.Answer = func(_ string, header map[string]string, body []byte) (int, []byte, error) {
			a, _ := w.Providers.Lookup("stripe")
			envelope, err := a.Envelope(header, body)
			order = append(order, envelope.EventID)
			return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), err
		}
		l := steady()
		l.CopyRatio, l.Shuffle = 0.2, shuffle
		if _, err := loaded(t, prepared(t, o, l)); err != nil {
			t.Fatal(err)
		}
		return order
	}
	plain, mixed := ids(false), ids(true)
	if slices.Equal(plain, mixed) {
		t.Error("the order is the same")
	}
	slices.Sort(plain)
	slices.Sort(mixed)
	if diff := cmp.Diff(plain, mixed); diff != "" {
		t.Errorf("other events (-plain +shuffled):\n%s", diff)
	}
}

// Proves R3: what is interrupted begins nothing more and counts what was under way.
func TestAnInterruptedLoadWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	w.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		if n++; n == 5 {
			cancel()
		}
		return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil
	}
	sent, err := prepared(t, o, steady()).Run(ctx, func(int) {})
	if !errors.Is(err, context.Canceled) || sent.Sent != 5 || sent.Accepted != 5 {
		t.Errorf("%v after %+v, want a cancelled context after 5 answers", err, sent.Summary)
	}
}

func TestALoadCountsAnswersByStatus(t *testing.T) {
	t.Parallel()
	w, o := create(t)
	answers := []func() (int, []byte, error){
		func() (int, []byte, error) { return 200, []byte(`{"result":"accepted","inbox_id":"in_1"}`), nil },
		func() (int, []byte, error) { return 200, nil, nil },
		func() (int, []byte, error) { return 503, []byte(`{"error":"unavailable"}`), nil },
		func() (int, []byte, error) { return 0, nil, operatortest.ErrDown },
	}
	n := 0
	w.Answer = func(string, map[string]string, []byte) (int, []byte, error) {
		n++
		return answers[n%len(answers)]()
	}
	sent, err := loaded(t, prepared(t, o, steady()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"200": 10, "503": 5, "no answer": 5}, sent.Statuses); diff != "" || sent.Unnamed != 5 || sent.Acknowledged() != 1 {
		t.Errorf("%d unnamed, %d acknowledged, want 5 and 1; by status (-want +got):\n%s", sent.Unnamed, sent.Acknowledged(), diff)
	}
}

// Proves A1, W1: an acknowledged event without a row is a loss, one that is added
// twice is a double, and one that is PROCESSED without an entry is neither hidden.
func TestALoadFindsLossesAndDoubles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		damage  func(w *operatortest.World, ids []webhook.InboxID)
		want    operator.Settled
		settled bool
	}{
		{
			"all is well", func(*operatortest.World, []webhook.InboxID) {},
			operator.Settled{Acknowledged: 20, ByStatus: map[webhook.Status]int{webhook.Processed: 20}, Accounts: 20}, true,
		},
		{
			"a row is gone", func(w *operatortest.World, ids []webhook.InboxID) { delete(w.Rows, ids[3]) },
			operator.Settled{Acknowledged: 20, ByStatus: map[webhook.Status]int{webhook.Processed: 19}, Accounts: 19, Lost: []webhook.InboxID{"3"}, Waited: 5 * time.Second}, false,
		},
		{
			"one was added twice", func(w *operatortest.World, ids []webhook.InboxID) { enter(w, w.Rows[ids[4]], 2) },
			operator.Settled{Acknowledged: 20, ByStatus: map[webhook.Status]int{webhook.Processed: 20}, Accounts: 20, Doubled: []webhook.InboxID{"4"}}, false,
		},
		{
			"one is in no ledger", func(w *operatortest.World, ids []webhook.InboxID) {
				row := w.Rows[ids[5]]
				for k := range w.Items {
					if k.PK == business.LedgerBalanceKey(webhook.Event{Tenant: row.Tenant, Provider: row.Provider, Endpoint: row.Endpoint, Facts: webhook.Facts{ObjectType: webhook.Payment, ObjectID: row.ObjectID}}).PK {
						delete(w.Items, k)
					}
				}
			},
			operator.Settled{Acknowledged: 20, ByStatus: map[webhook.Status]int{webhook.Processed: 20}, Accounts: 20, Unapplied: []webhook.InboxID{"5"}}, false,
		},
		{
			"handlers that keep no ledger", func(w *operatortest.World, _ []webhook.InboxID) { clear(w.Items) },
			operator.Settled{Acknowledged: 20, ByStatus: map[webhook.Status]int{webhook.Processed: 20}}, true,
		},
		{
			"one is still open", func(w *operatortest.World, ids []webhook.InboxID) {
				row := w.Rows[ids[6]]
				row.Status, row.Outcome = webhook.Retry, ""
				w.Rows[ids[6]] = row
			},
			operator.Settled{Acknowledged: 20, ByStatus: map[webhook.Status]int{webhook.Processed: 19, webhook.Retry: 1}, Accounts: 19, Waited: 5 * time.Second}, false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, o := create(t)
			p := prepared(t, o, steady())
			sent, err := loaded(t, p)
			if err != nil {
				t.Fatal(err)
			}
			worked(w)
			ids := slices.Sorted(maps.Keys(w.Rows))
			tt.damage(w, ids)
			got, err := p.Settle(t.Context(), sent, 5*time.Second, func(int) {})
			if err != nil {
				t.Fatal(err)
			}
			name := func(found []webhook.InboxID) (out []webhook.InboxID) {
				for _, id := range found {
					out = append(out, webhook.InboxID(string(rune('0'+slices.Index(ids, id)))))
				}
				return out
			}
			ok := got.OK()
			got.Lost, got.Doubled, got.Unapplied = name(got.Lost), name(got.Doubled), name(got.Unapplied)
			tt.want.P50, tt.want.P99 = 80*time.Millisecond, 80*time.Millisecond
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("settled (-want +got):\n%s", diff)
			}
			if ok != tt.settled {
				t.Errorf("OK is %v, want %v", ok, tt.settled)
			}
		})
	}
}

func TestALoadThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	_, o := create(t)
	for name, change := range map[string]func(*operator.Load){
		"no rate":            func(l *operator.Load) { l.Rate = 0 },
		"no time":            func(l *operator.Load) { l.Duration = 0 },
		"all are copies":     func(l *operator.Load) { l.CopyRatio = 1 },
		"no places":          func(l *operator.Load) { l.InFlight = 0 },
		"a body too large":   func(l *operator.Load) { l.Mix = []operator.BodyShare{{Bytes: 1<<20 + 1, Weight: 1}} },
		"a body of no bytes": func(l *operator.Load) { l.Mix = []operator.BodyShare{{Bytes: 0, Weight: 1}} },
		"a weight of none":   func(l *operator.Load) { l.Mix = []operator.BodyShare{{Bytes: 1000}} },
		"too many requests":  func(l *operator.Load) { l.Rate, l.Duration = 100_000, 24*time.Hour },
		"no type":            func(l *operator.Load) { l.Type = "" },
	} {
		l := steady()
		change(&l)
		_, err := o.PrepareLoad(t.Context(), l)
		if r := wantRefusal(t, err, "usage"); !r.Usage {
			t.Errorf("%s: no misuse: %v", name, err)
		}
	}
}
