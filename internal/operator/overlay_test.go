package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	devdynamodb "dakghar/internal/devstack/dynamodb"
	"dakghar/internal/devstack/stack"
	"dakghar/internal/dynamo"
	"dakghar/internal/fault"
	"dakghar/internal/storetest"
	"dakghar/internal/webhook"
)

// embedded is a store on the embedded DynamoDB, with the template's tables.
func embedded(t *testing.T) *dynamo.Store {
	t.Helper()
	server := httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))
	t.Cleanup(server.Close)
	db := dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	tables := dynamo.Tables{Inbox: "inbox", Outbox: "outbox", Business: "business", Registry: "registry"}
	if err := stack.CreateTables(t.Context(), db, "../../template.yaml", map[string]string{
		"InboxTable": tables.Inbox, "OutboxTable": tables.Outbox, "BusinessTable": tables.Business, "RegistryTable": tables.Registry,
	}); err != nil {
		t.Fatal(err)
	}
	return &dynamo.Store{
		DB: db, Tables: tables, Chance: func() float64 { return 0 },
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

// table is what a table held at one time.
type table map[webhook.Key]webhook.Item

func (r table) Get(_ context.Context, k webhook.Key) (webhook.Item, bool, error) {
	row, ok := r[k]
	return maps.Clone(row), ok, nil
}

func (table) Rows(context.Context, string, string) iter.Seq2[webhook.Item, error] {
	return func(func(webhook.Item, error) bool) {}
}

func partitions() []string { return []string{"a", "b", "c"} }

// all reads every row that a random plan may have written.
func all(t *testing.T, s *dynamo.Store) table {
	t.Helper()
	rows := table{}
	for _, pk := range partitions() {
		for row, err := range s.Rows(t.Context(), pk, "") {
			if err != nil {
				t.Fatal(err)
			}
			sk, _ := row["sk"].(string)
			rows[webhook.Key{PK: pk, SK: sk}] = without(row)
		}
	}
	return rows
}

func without(row webhook.Item) webhook.Item {
	row = maps.Clone(row)
	delete(row, "pk")
	delete(row, "sk")
	return row
}

func one[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func randomValue(r *rand.Rand) any {
	return one[any](r, int64(-1), int64(0), int64(2), int64(10), "", "10", "a", "b", true, false, []byte{}, []byte{0}, []byte{1}, []byte("a"))
}

func randomCondition(r *rand.Rand) webhook.Condition {
	c := webhook.Condition{Attribute: one(r, "n", "v", "w", "pk", "sk"), Relation: one(r, webhook.Absent, webhook.Equal, webhook.Less, webhook.ElseLess)}
	if c.Relation != webhook.Absent {
		c.Value = randomValue(r)
	}
	return c
}

// randomAction makes an action on few rows and names, so that they meet. n is
// always a number. Now and then it is one that the store refuses.
func randomAction(r *rand.Rand) webhook.Action {
	k := webhook.Key{PK: one(r, partitions()...), SK: one(r, "x", "y")}
	a := webhook.DeleteItem(k)
	switch r.IntN(6) {
	case 0:
		a = webhook.PutItem(k, one(r, nil, webhook.Item{"v": randomValue(r), "n": int64(r.IntN(5))}, webhook.Item{"w": randomValue(r)}))
	case 1, 2, 3:
		a = webhook.UpdateItem(k, one(r, nil, webhook.Item{"v": randomValue(r)}, webhook.Item{"w": randomValue(r), "v": randomValue(r)}))
		if r.IntN(3) > 0 {
			a = a.Adding("n", r.Int64N(7)-3)
		}
		a.Drop = one(r, nil, []string{"w"}, []string{"z"}, []string{"w", "z"})
	case 4:
		a = webhook.CheckItem(k).If(webhook.Unchanged, randomCondition(r))
	}
	for range r.IntN(3) {
		a = a.If(one(r, webhook.Unchanged, webhook.Newer, webhook.Domain), randomCondition(r))
	}
	return a
}

// commit writes a plan to the store under an event of its own.
func commit(t *testing.T, s *dynamo.Store, n int, actions []webhook.Action) (webhook.Verdict, error) {
	t.Helper()
	row := storetest.Row("overlay", n)
	if existing, err := s.Accept(t.Context(), row, nil); err != nil || existing != nil {
		t.Fatalf("accept: existing %v, error %v", existing, err)
	}
	claimed, ok, err := s.Change(t.Context(), webhook.Claim(row.ID, "c", row.NextAttemptAt, time.Minute, 3))
	if err != nil || !ok {
		t.Fatalf("claim: %v, error %v", ok, err)
	}
	return s.Complete(t.Context(), webhook.Completion{
		Change: claimed.Complete(webhook.Applied, row.ReceivedAt, time.Hour), Claim: claimed.ClaimID, Actions: actions,
	})
}

// Proves R3 (shadow): a plan means over the overlay what it means in the store:
// the same verdict, the same refusal, and the same rows, plan after plan.
func TestAPlanMeansInTheOverlayWhatItMeansInTheStore(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	r := rand.New(rand.NewPCG(3, 7))
	verdicts := map[string]int{}
	var view *overlay
	for n := range 900 {
		if n%300 == 0 { // over an empty table first, then over what is there
			view = newOverlay(all(t, s))
		}
		actions := make([]webhook.Action, 1+r.IntN(3))
		for i := range actions {
			actions[i] = randomAction(r)
		}
		got, gotErr := view.commit(t.Context(), actions)
		want, wantErr := commit(t, s, n, actions)
		if got != want || (gotErr == nil) != (wantErr == nil) || gotErr != nil && fault.KindOf(gotErr) != fault.KindOf(wantErr) {
			t.Fatalf("plan %d: %+v\nthe overlay says %d, error %v; the store %d, error %v", n, actions, got, gotErr, want, wantErr)
		}
		verdicts[fmt.Sprint(got)]++
		wantRows(t, s, view, n, actions)
	}
	for _, v := range []webhook.Verdict{0, webhook.Committed, webhook.NotNewer, webhook.RivalWrote, webhook.RuleRefused} {
		if verdicts[fmt.Sprint(v)] < 20 {
			t.Errorf("verdict %d came only %d times: the plans are too poor", v, verdicts[fmt.Sprint(v)])
		}
	}
}

// wantRows compares every row, read through the overlay.
func wantRows(t *testing.T, s *dynamo.Store, view *overlay, n int, actions []webhook.Action) {
	t.Helper()
	got := table{}
	for _, pk := range partitions() {
		for _, sk := range []string{"x", "y"} {
			k := webhook.Key{PK: pk, SK: sk}
			row, there, err := view.Get(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			if there {
				got[k] = row
			}
		}
	}
	if diff := cmp.Diff(all(t, s), got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("after plan %d, %+v (-store +overlay):\n%s", n, actions, diff)
	}
}

// What the store would refuse is refused with the kind of fault that ends an event.
func TestAPlanThatTheStoreRefusesIsAPermanentFault(t *testing.T) {
	t.Parallel()
	k := webhook.Key{PK: "a", SK: "x"}
	many := make([]webhook.Action, webhook.ActionsMax+1)
	for i := range many {
		many[i] = webhook.DeleteItem(webhook.Key{PK: "a", SK: fmt.Sprint(i)})
	}
	s := embedded(t)
	base := table{k: {"t": "text"}}
	if v, err := commit(t, s, 0, []webhook.Action{webhook.PutItem(k, base[k])}); err != nil || v != webhook.Committed {
		t.Fatalf("verdict %v, error %v", v, err)
	}
	n := 0
	for name, actions := range map[string][]webhook.Action{
		"too many":          many,
		"one row twice":     {webhook.DeleteItem(k), webhook.CheckItem(k).If(webhook.Domain, webhook.IfAbsent())},
		"an update of none": {webhook.UpdateItem(k, nil)},
		"one name twice":    {{Op: webhook.Update, Key: k, Item: webhook.Item{"v": "a"}, Drop: []string{"v"}}},
		"dropped twice":     {{Op: webhook.Update, Key: k, Drop: []string{"v", "v"}}},
		"a strange value":   {webhook.PutItem(k, webhook.Item{"v": 1.5})},
		"a strange wish":    {webhook.DeleteItem(k).If(webhook.Domain, webhook.Condition{Attribute: "v", Relation: webhook.Equal, Value: 7})},
		"less than a bool":  {webhook.DeleteItem(k).If(webhook.Domain, webhook.Condition{Attribute: "v", Relation: webhook.Less, Value: true})},
	} {
		n++
		_, got := newOverlay(base).commit(t.Context(), actions)
		_, want := commit(t, s, n, actions)
		if fault.KindOf(got) != fault.Permanent || fault.KindOf(want) != fault.Permanent || got == nil || want == nil {
			t.Errorf("%s: the overlay says %v, the store %v; want a permanent fault", name, got, want)
		}
	}
	for name, a := range map[string]webhook.Action{
		"a sum of a text":      webhook.UpdateItem(k, nil).Adding("t", 1),
		"an unknown operation": {Op: 99, Key: k},
		"an unknown relation":  webhook.DeleteItem(k).If(webhook.Domain, webhook.Condition{Attribute: "v", Relation: 99, Value: "a"}),
		"a wish without a tag": webhook.DeleteItem(k).If(0, webhook.IfAbsent()),
	} {
		if _, err := newOverlay(base).commit(t.Context(), []webhook.Action{a}); fault.KindOf(err) != fault.Permanent || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An overlay that could not read says so even if a handler swallows the error,
// and hides what a cleared partition holds.
func TestAnOverlayTellsOfReadsThatFailedAndHidesClearedPartitions(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	view := newOverlay(broken{down})
	view.cleared["a"] = true
	row, there, err := view.Get(t.Context(), webhook.Key{PK: "a", SK: "x"})
	if row != nil || there || err != nil || view.failed != nil {
		t.Errorf("row %v %v, error %v, failed %v", row, there, err, view.failed)
	}
	if _, _, err := view.Get(t.Context(), webhook.Key{PK: "b", SK: "x"}); !errors.Is(err, down) || !errors.Is(view.failed, down) {
		t.Errorf("error %v, failed %v", err, view.failed)
	}
	if _, err := view.commit(t.Context(), []webhook.Action{webhook.DeleteItem(webhook.Key{PK: "b"})}); !errors.Is(err, down) {
		t.Errorf("commit: %v", err)
	}
}

type broken struct{ err error }

func (b broken) Get(context.Context, webhook.Key) (webhook.Item, bool, error) {
	return nil, false, b.err
}

func (broken) Rows(context.Context, string, string) iter.Seq2[webhook.Item, error] {
	return func(func(webhook.Item, error) bool) {}
}
