package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dakghar/internal/fault"
	"dakghar/internal/reconciler"
	"dakghar/internal/webhook"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// tables are the rows of a fake store. Each method that a test needs to go wrong
// can be told to.
type tables struct {
	reconciler.Evidences
	rows     map[webhook.InboxID]webhook.Inbox
	promises map[webhook.OutboxID]webhook.Outbox
	marks    map[webhook.InboxID]bool
	gone     []webhook.InboxID // named by the index only
	leases   map[string]string

	outbox, marked, page func() error // called before the answer
	// stale promises are not told when many are asked for.
	stale bool
}

func newTables(rows ...webhook.Inbox) *tables {
	s := &tables{
		rows: map[webhook.InboxID]webhook.Inbox{}, promises: map[webhook.OutboxID]webhook.Outbox{}, marks: map[webhook.InboxID]bool{},
		leases: map[string]string{},
	}
	for _, row := range rows {
		s.rows[row.ID] = row
	}
	return s
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (s *tables) Inbox(_ context.Context, id webhook.InboxID) (webhook.Inbox, bool, error) {
	row, ok := s.rows[id]
	return row, ok, nil
}

func (s *tables) Outbox(_ context.Context, id webhook.OutboxID) (webhook.Outbox, bool, error) {
	err := call(s.outbox)
	o, ok := s.promises[id]
	return o, ok, err
}

func (s *tables) Marked(_ context.Context, id webhook.InboxID, _ int) (bool, error) {
	err := call(s.marked)
	return s.marks[id], err
}

func (s *tables) InboxPage(_ context.Context, segment, _ int, _ string, _ int) ([]webhook.Inbox, []webhook.InboxID, string, error) {
	if err := call(s.page); err != nil || segment != 0 {
		return nil, nil, "", err
	}
	var rows []webhook.Inbox
	for _, row := range s.rows {
		rows = append(rows, row)
	}
	return rows, nil, "", nil
}

func (s *tables) EndpointIDs(context.Context) ([]webhook.EndpointID, error) {
	return []webhook.EndpointID{"demo"}, nil
}

func (s *tables) RecentPage(_ context.Context, _ webhook.EndpointID, shard int, _, _ time.Time, _ string, _ int) ([]webhook.InboxID, string, error) {
	if shard != 0 {
		return nil, "", nil
	}
	return s.gone, "", nil
}

func (s *tables) InboxRows(context.Context, []webhook.InboxID) (map[webhook.InboxID]webhook.Inbox, []webhook.InboxID, error) {
	return s.rows, nil, nil
}

func (s *tables) Promises(context.Context, []webhook.OutboxID) (map[webhook.OutboxID]webhook.Outbox, error) {
	if s.stale {
		return nil, nil
	}
	return s.promises, nil
}

func (s *tables) MarksOf(context.Context, []webhook.Inbox) (map[webhook.InboxID]bool, error) {
	return s.marks, nil
}

func (s *tables) Lease(_ context.Context, name, _ string, _, _ time.Time) (string, bool, error) {
	return s.leases[name], true, nil
}

func (s *tables) Release(_ context.Context, name, _, state string) error {
	s.leases[name] = state
	return nil
}

func (s *tables) Retry(_ context.Context, c webhook.Change, o webhook.Outbox) (bool, error) {
	row, ok := s.rows[c.ID]
	if !ok || !c.Guard.Allows(row) {
		return false, nil
	}
	s.rows[c.ID], s.promises[o.ID] = c.Apply(row), o
	return true, nil
}

func (s *tables) compare() *reconciler.Pass {
	n := 0
	return &reconciler.Pass{Comparer: &reconciler.Comparer{
		Store: s, Now: func() time.Time { return noon }, NewID: func() string { n++; return fmt.Sprint("id-", n) }, AtOnce: 1, Slack: time.Minute,
	}}
}

// Every state of a row, with and without a promise and a mark: what does not
// agree. Proves R1.
func TestWhatAgreesAndWhatDoesNot(t *testing.T) {
	t.Parallel()
	type found = []reconciler.Kind
	open := map[string]found{
		"promise": nil, "nothing": {reconciler.OpenWithoutPromise}, "promise+mark": {reconciler.MarkedButOpen},
		"mark": {reconciler.OpenWithoutPromise, reconciler.MarkedButOpen}, "ahead": {reconciler.PromiseAhead},
		"ahead+mark": {reconciler.PromiseAhead, reconciler.MarkedButOpen},
	}
	want := map[webhook.Status]map[string]found{
		webhook.Received: open, webhook.Retry: open, webhook.Processing: open, webhook.Held: open, webhook.Parked: open,
		webhook.Processed: {
			"promise": {reconciler.PromiseLeft, reconciler.MarkMissing}, "nothing": {reconciler.MarkMissing}, "promise+mark": {reconciler.PromiseLeft},
			"mark": nil, "ahead": {reconciler.PromiseAhead, reconciler.MarkMissing}, "ahead+mark": {reconciler.PromiseAhead},
		},
		webhook.Failed: {
			"promise": {reconciler.PromiseLeft}, "nothing": nil, "promise+mark": {reconciler.PromiseLeft, reconciler.MarkedButFailed},
			"mark": {reconciler.MarkedButFailed}, "ahead": {reconciler.PromiseAhead}, "ahead+mark": {reconciler.PromiseAhead, reconciler.MarkedButFailed},
		},
	}
	got := map[webhook.Status]map[string]found{}
	for _, status := range webhook.Statuses() {
		got[status] = map[string]found{}
		for has := range open {
			e := reconciler.Evidence{Row: webhook.Inbox{ID: "in_1", Status: status, Fence: 4}}
			switch has {
			case "promise", "promise+mark":
				e.Promise = &webhook.Outbox{Gen: 4}
			case "ahead", "ahead+mark":
				e.Promise = &webhook.Outbox{Gen: 5}
			}
			e.Marked = has == "mark" || has == "promise+mark" || has == "ahead+mark"
			got[status][has] = e.Differences()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// A row that changes between every look and its end is told to be so, and not
// called a fault: whatever changes it looks after it.
func TestARowThatNeverRestsIsUnsettled(t *testing.T) {
	t.Parallel()
	s := newTables(webhook.Inbox{ID: "in_1", Status: webhook.Received})
	s.outbox = func() error {
		row := s.rows["in_1"]
		row.Fence++
		s.rows["in_1"] = row
		return nil
	}
	got, err := s.compare().Run(t.Context())
	want := reconciler.PassProgress{Tally: reconciler.Tally{Compared: 1, Found: map[reconciler.Finding]int{{Kind: reconciler.Unsettled, Deed: reconciler.Reported}: 1}}, Done: true}
	if diff := cmp.Diff(want, got); err != nil || diff != "" || got.Faults() != 0 {
		t.Errorf("%d faults, error %v (-want +got):\n%s", got.Faults(), err, diff)
	}
}

// The first look was wrong because the row was completed right then: nothing is
// reported.
func TestARowThatChangedMeanwhileIsNoDifference(t *testing.T) {
	t.Parallel()
	s := newTables(webhook.Inbox{ID: "in_1", Status: webhook.Received})
	s.outbox = func() error {
		s.rows["in_1"] = webhook.Inbox{ID: "in_1", Status: webhook.Processed, Fence: 2}
		s.marks["in_1"] = true
		return nil
	}
	got, err := s.compare().Run(t.Context())
	if diff := cmp.Diff(reconciler.PassProgress{Tally: reconciler.Tally{Compared: 1, Found: map[reconciler.Finding]int{}}, Done: true}, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// The same, seen at the mark: the row was open when it was read, and applied when
// its mark was.
func TestAMarkThatCameMeanwhileIsNoDifference(t *testing.T) {
	t.Parallel()
	s := newTables(webhook.Inbox{ID: "in_1", Status: webhook.Received})
	promise := webhook.NewOutboxID("in_1", webhook.TopicProcess, 0)
	s.stale, s.promises[promise] = true, webhook.Outbox{ID: promise}
	s.marked = func() error {
		s.rows["in_1"] = webhook.Inbox{ID: "in_1", Status: webhook.Processed, Fence: 2}
		s.marks["in_1"] = true
		delete(s.promises, promise)
		return nil
	}
	got, err := s.compare().Run(t.Context())
	if diff := cmp.Diff(reconciler.PassProgress{Tally: reconciler.Tally{Compared: 1, Found: map[reconciler.Finding]int{}}, Done: true}, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// A promise that cannot be read is told of, and does not keep its page from
// being finished.
func TestAPromiseThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	s := newTables(webhook.Inbox{ID: "in_1", Status: webhook.Received})
	s.outbox = func() error { return fault.New(fault.Permanent, "row_malformed", errors.New("x")) }
	got, err := s.compare().Run(t.Context())
	want := map[reconciler.Finding]int{{Kind: reconciler.RowUnreadable, Deed: reconciler.Reported}: 1}
	if diff := cmp.Diff(want, got.Found); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// Proves R1: a page that met an error is compared again whole, and what it only
// reported is counted once.
func TestAPageThatMetAnErrorIsComparedAgain(t *testing.T) {
	t.Parallel()
	s := newTables(
		webhook.Inbox{ID: "in_1", Status: webhook.Processed}, webhook.Inbox{ID: "in_2", Status: webhook.Processed}, webhook.Inbox{ID: "in_3", Status: webhook.Received},
	)
	reads := 0
	s.outbox = func() error {
		if reads++; reads == 3 {
			return fault.New(fault.Ours, "store_unreachable", errors.New("x"))
		}
		return nil
	}
	first, err := s.compare().Run(t.Context())
	if fault.CodeOf(err) != "store_unreachable" || first.Done || first.Compared != 0 || first.Of(reconciler.MarkMissing) != 0 {
		t.Fatalf("%+v, error %v", first, err)
	}
	second, err := s.compare().Run(t.Context())
	if err != nil || !second.Done || !second.Resumed || second.Compared != 3 || second.Of(reconciler.MarkMissing) != 2 || second.Of(reconciler.OpenWithoutPromise) != 1 {
		t.Errorf("%+v, error %v", second, err)
	}
}

// An event that the index names and the table has not.
func TestARowThatIsGoneIsReported(t *testing.T) {
	t.Parallel()
	s := newTables()
	s.gone = []webhook.InboxID{"in_1"}
	s.leases["audit"] = fmt.Sprintf(`{"from":%d}`, noon.Add(-30*time.Hour).UnixMilli())
	got := s.compare().Audit(t.Context(), time.Minute)
	want := reconciler.AuditReport{
		Ran: true, Age: 24 * time.Hour,
		Tally:   reconciler.Tally{Compared: 1, Found: map[reconciler.Finding]int{{Kind: reconciler.RowGone, Deed: reconciler.Reported}: 1}},
		Details: []reconciler.Detail{{InboxID: "in_1", Finding: reconciler.Finding{Kind: reconciler.RowGone, Deed: reconciler.Reported}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.compare().Audit(t.Context(), time.Minute); got.Compared != 0 || got.Err != nil {
		t.Errorf("again: %+v", got)
	}
}

// A state that is of another program, or none, begins the comparison a day ago.
func TestAnAuditWithoutAStateBeginsADayAgo(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", "{", `{"from":-1}`, `[]`} {
		s := newTables()
		s.leases["audit"] = state
		got := s.compare().Audit(t.Context(), time.Minute)
		if diff := cmp.Diff(reconciler.AuditReport{Ran: true, Age: 24 * time.Hour}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", state, diff)
		}
	}
}

// One lane that cannot be read leaves the others alone.
func TestALaneThatCannotBeReadLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	s := newTables(webhook.Inbox{ID: "in_1", Status: webhook.Failed})
	calls := 0
	s.page = func() error {
		if calls++; calls == 2 {
			return fault.New(fault.Ours, "store_unreachable", errors.New("x"))
		}
		return nil
	}
	got, err := s.compare().Run(t.Context())
	if fault.CodeOf(err) != "store_unreachable" || got.Compared != 1 || calls != 8 {
		t.Errorf("%+v after %d calls, error %v", got, calls, err)
	}
	if got, err := s.compare().Run(t.Context()); err != nil || got.Compared != 1 || !got.Done || calls != 9 {
		t.Errorf("again: %+v after %d calls, error %v", got, calls, err)
	}
}
