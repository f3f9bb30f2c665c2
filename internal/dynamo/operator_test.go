package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	devdynamodb "dakghar/internal/devstack/dynamodb"
	"dakghar/internal/devstack/stack"
	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// onStores runs a test on the embedded DynamoDB, and on DynamoDB Local where
// DYNAMODB_LOCAL_URL names it, with tables as the template declares them.
func onStores(t *testing.T, test func(t *testing.T, s *dynamo.Store)) {
	t.Run("embedded", func(t *testing.T) {
		server := httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))
		t.Cleanup(server.Close)
		test(t, storeAt(t, server.URL))
	})
	t.Run("DynamoDB Local", func(t *testing.T) {
		url := os.Getenv("DYNAMODB_LOCAL_URL")
		if url == "" {
			t.Skip("DYNAMODB_LOCAL_URL is not set")
		}
		test(t, storeAt(t, url))
	})
}

// wantListed compares the ids of a list. Lists come from indexes, which follow
// the table a moment later: a list that is still short is read again.
func wantListed(t *testing.T, want []webhook.InboxID, list func() iter.Seq2[webhook.Inbox, error]) {
	t.Helper()
	for try := 1; ; try++ {
		var got []webhook.InboxID
		for row, err := range list() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row.ID)
		}
		diff := cmp.Diff(want, got)
		if diff == "" {
			return
		}
		if len(got) >= len(want) || try == listTries {
			t.Errorf("ids (-want +got):\n%s", diff)
			return
		}
		if err := dynamo.Sleep(t.Context(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

const listTries = 100

func storeAt(t *testing.T, url string) *dynamo.Store {
	t.Helper()
	db := dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	suffix := strings.ToLower(rand.Text()[:10])
	tables := dynamo.Tables{Inbox: "inbox-" + suffix, Outbox: "outbox-" + suffix, Business: "business-" + suffix, Registry: "registry-" + suffix, Delivery: "delivery-" + suffix}
	err := stack.CreateTables(t.Context(), db, "../../template.yaml", map[string]string{
		"InboxTable": tables.Inbox, "OutboxTable": tables.Outbox, "BusinessTable": tables.Business, "RegistryTable": tables.Registry, "DeliveryTable": tables.Delivery,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &dynamo.Store{
		DB: db, Tables: tables, Chance: func() float64 { return 0 },
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

func rowAt(n int, e webhook.EndpointID, at time.Time) webhook.Inbox {
	event := webhook.EventID(fmt.Sprintf("evt_%s_%d", e, n))
	return webhook.Inbox{
		ID: webhook.DeriveInboxID(webhook.Scope(e), "stripe", event), Provider: "stripe", Endpoint: e, EventID: event,
		ReceivedAt: at, NextAttemptAt: at, Digest: webhook.DigestOf([]byte(event)), Status: webhook.Received,
	}
}

func accept(t *testing.T, s *dynamo.Store, row webhook.Inbox) {
	t.Helper()
	promise := webhook.NewOutbox(row, row.ReceivedAt, row.ReceivedAt)
	if existing, err := s.Accept(t.Context(), row, &promise); err != nil || existing != nil {
		t.Fatalf("accept: existing %v, error %v", existing, err)
	}
}

// Proves R3 (list): newest first over shards and days, nothing missing, nothing
// of another endpoint, and no more than was asked for.
func TestRecentInboxMergesShardsAndDaysNewestFirst(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		var want []webhook.InboxID
		for i := range 130 { // 130 events over two days and a bit, 25 minutes apart
			row := rowAt(i, "demo", noon.Add(-time.Duration(i)*25*time.Minute))
			accept(t, s, row)
			want = append(want, row.ID)
		}
		accept(t, s, rowAt(1, "other", noon))

		since := noon.Add(-50 * time.Hour) // 120 intervals
		wantListed(t, want[:121], func() iter.Seq2[webhook.Inbox, error] {
			return s.RecentInbox(t.Context(), "demo", since, noon)
		})

		first := 0
		for range s.RecentInbox(t.Context(), "demo", since, noon) {
			if first++; first == 3 {
				break
			}
		}
		if first != 3 {
			t.Errorf("stopped after %d, want 3", first)
		}
	})
}

// More than a page of one shard.
func TestRecentInboxReadsOnInALongShard(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		var want []webhook.InboxID
		for n := 0; len(want) < 120; n++ {
			row := rowAt(n, "demo", noon.Add(-time.Duration(len(want))*time.Second))
			if webhook.ShardOf(string(row.ID)) == 7 {
				accept(t, s, row)
				want = append(want, row.ID)
			}
		}
		wantListed(t, want, func() iter.Seq2[webhook.Inbox, error] {
			return s.RecentInbox(t.Context(), "demo", noon.Add(-time.Hour), noon)
		})
	})
}

// Proves M2: arrivals are the same list for a reader who stops early; a row that
// cannot be read hides no other.
func TestArrivalsPassOverWhatCannotBeRead(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		var want []webhook.InboxID
		for i := range 150 { // more than the first rows, and than one batch of the others
			row := rowAt(i, "demo", noon.Add(-time.Duration(i)*15*time.Minute))
			accept(t, s, row)
			want = append(want, row.ID)
		}
		update, id := "SET st = :n", want[2]
		if _, err := s.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &s.Tables.Inbox, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: string(id)}},
			UpdateExpression: &update, ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "1"}},
		}); err != nil {
			t.Fatal(err)
		}
		want = slices.Delete(want, 2, 3)
		wantListed(t, want, func() iter.Seq2[webhook.Inbox, error] {
			return s.Arrivals(t.Context(), "demo", noon.Add(-40*time.Hour), noon)
		})
		for row, err := range s.Arrivals(t.Context(), "demo", noon.Add(-40*time.Hour), noon) {
			if err != nil || row.ID != want[0] {
				t.Errorf("the first is %s (%v), want %s", row.ID, err, want[0])
			}
			break
		}
		for range s.Arrivals(t.Context(), "silent", noon.Add(-40*time.Hour), noon) {
			t.Error("an endpoint without events has one")
		}
	})
}

func TestFailedInboxListsFailedRowsOfAllEndpoints(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		var want []webhook.InboxID
		for i := range 30 {
			e := webhook.EndpointID([]string{"demo", "other"}[i%2])
			row := rowAt(i, e, noon.Add(-time.Hour))
			accept(t, s, row)
			if i%3 == 0 {
				continue
			}
			failed := row.Fail(noon.Add(time.Duration(i)*time.Second), "schema", time.Hour)
			if ok, err := s.Fail(t.Context(), failed, webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0)); err != nil || !ok {
				t.Fatalf("fail: ok %v, error %v", ok, err)
			}
			if i >= 10 {
				want = append(want, row.ID)
			}
		}
		slices.Reverse(want)
		wantListed(t, want, func() iter.Seq2[webhook.Inbox, error] {
			return s.FailedInbox(t.Context(), noon.Add(10*time.Second), noon.Add(time.Hour))
		})
		for row, err := range s.FailedInbox(t.Context(), noon.Add(10*time.Second), noon.Add(time.Hour)) {
			if err != nil || row.Status != webhook.Failed || row.LastError != "schema" {
				t.Errorf("row %+v, error %v, want a failed one", row, err)
			}
		}
	})
}

func TestInboxesKeepsTheOrderAndLeavesOutWhatIsGone(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		a, b := rowAt(1, "demo", noon), rowAt(2, "demo", noon)
		accept(t, s, a)
		accept(t, s, b)
		got, err := s.Inboxes(t.Context(), []webhook.InboxID{b.ID, "in_gone", a.ID})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]webhook.Inbox{b, a}, got); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	})
}

// grudging answers only one key of each batch.
type grudging struct {
	dynamo.Client
	mu    sync.Mutex
	calls int
}

func (g *grudging) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	rest := map[string]types.KeysAndAttributes{}
	for table, keys := range in.RequestItems {
		if len(keys.Keys) > 1 {
			left := keys
			left.Keys = keys.Keys[1:]
			rest[table] = left
			keys.Keys = keys.Keys[:1]
			in = &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: keys}}
		}
	}
	out, err := g.Client.BatchGetItem(ctx, in, opts...)
	if err == nil {
		out.UnprocessedKeys = rest
	}
	return out, err
}

func TestInboxesAsksAgainForWhatWasNotReached(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))
	defer server.Close()
	s := storeAt(t, server.URL)
	var want []webhook.Inbox
	var ids []webhook.InboxID
	for n := range 5 {
		row := rowAt(n, "demo", noon)
		accept(t, s, row)
		want, ids = append(want, row), append(ids, row.ID)
	}
	db := &grudging{Client: s.DB}
	s.DB = db
	var pauses []time.Duration
	s.Wait = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
	got, err := s.Inboxes(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	const ms = time.Millisecond
	if diff := cmp.Diff([]time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms}, pauses); diff != "" || db.calls != 5 {
		t.Errorf("%d calls, want 5; pauses (-want +got):\n%s", db.calls, diff)
	}
	s.Wait = func(context.Context, time.Duration) error { return context.Canceled }
	if _, err := s.Inboxes(t.Context(), ids); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the wait's", err)
	}
}

func actAt(id string, at time.Time) webhook.Act {
	return webhook.Act{ID: id, At: at, Name: "secret rotate", Subject: "endpoint demo", Who: "ada", Why: "yearly"}
}

// Proves R3 (recorded): an act and its record commit together.
func TestAnEndpointChangesTogetherWithTheRecord(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		e := webhook.Endpoint{ID: "demo", Provider: "stripe", Scope: "demo", CreatedAt: noon, Keys: []webhook.TrustedKey{{Version: "v1", AddedAt: noon}}}
		written := func(ok bool, err error, want bool) {
			t.Helper()
			if err != nil || ok != want {
				t.Fatalf("written %v, error %v, want %v", ok, err, want)
			}
		}
		ok, err := s.CreateEndpointBy(t.Context(), e, actAt("1", noon))
		written(ok, err, true)
		ok, err = s.CreateEndpointBy(t.Context(), e, actAt("2", noon))
		written(ok, err, false)

		e.Revision = 1
		changed, _ := e.Add(webhook.TrustedKey{Version: "v2", AddedAt: noon})
		ok, err = s.UpdateEndpointBy(t.Context(), changed, actAt("3", noon.Add(time.Second)))
		written(ok, err, true)
		ok, err = s.UpdateEndpointBy(t.Context(), e, actAt("4", noon.Add(2*time.Second))) // outdated
		written(ok, err, false)

		got, found, err := s.Endpoint(t.Context(), "demo")
		if err != nil || !found {
			t.Fatalf("found %v, error %v", found, err)
		}
		changed.Revision = 2
		if diff := cmp.Diff(changed, got); diff != "" {
			t.Errorf("endpoint (-want +got):\n%s", diff)
		}
		if ids, err := s.EndpointIDs(t.Context()); err != nil || !slices.Equal(ids, []webhook.EndpointID{"demo"}) {
			t.Errorf("endpoints %v, error %v, want demo", ids, err)
		}
		wantActs(t, s, noon.Add(-time.Hour), noon.Add(time.Hour), actAt("3", noon.Add(time.Second)), actAt("1", noon))
	})
}

func wantActs(t *testing.T, s *dynamo.Store, since, now time.Time, want ...webhook.Act) {
	t.Helper()
	var got []webhook.Act
	for act, err := range s.Acts(t.Context(), since, now) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, act)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
}

func TestActsAreReadNewestFirstOverDays(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		without := actAt("b", noon.Add(-24*time.Hour))
		without.Why = ""
		acts := []webhook.Act{actAt("c", noon), without, actAt("a", noon.Add(-30*time.Hour)), actAt("z", noon.Add(-70*time.Hour))}
		for _, a := range acts {
			if err := s.RecordAct(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		wantActs(t, s, noon.Add(-48*time.Hour), noon, acts[:3]...)
		wantActs(t, s, noon.Add(-24*time.Hour), noon, acts[:2]...)
		wantActs(t, s, noon.Add(time.Hour), noon)
	})
}

func TestRowsReadsOnePartitionByPrefix(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		row := rowAt(1, "demo", noon)
		accept(t, s, row)
		claimed, ok, err := s.Change(t.Context(), webhook.Claim(row.ID, "c", noon, time.Minute, 5))
		if err != nil || !ok {
			t.Fatalf("claim: ok %v, error %v", ok, err)
		}
		actions := []webhook.Action{
			webhook.PutItem(webhook.Key{PK: "a", SK: "entry#2"}, webhook.Item{"n": int64(2)}),
			webhook.PutItem(webhook.Key{PK: "a", SK: "entry#1"}, webhook.Item{"n": int64(1)}),
			webhook.PutItem(webhook.Key{PK: "a", SK: "balance"}, webhook.Item{"n": int64(3)}),
			webhook.PutItem(webhook.Key{PK: "b", SK: "entry#1"}, webhook.Item{"n": int64(4)}),
		}
		verdict, err := s.Complete(t.Context(), webhook.Completion{Change: claimed.Complete(webhook.Applied, noon, time.Hour), Claim: claimed.ClaimID, Actions: actions})
		if err != nil || verdict != webhook.Committed {
			t.Fatalf("complete: %v, error %v", verdict, err)
		}
		var got []webhook.Item
		for item, err := range s.Rows(t.Context(), "a", "entry#") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, item)
		}
		want := []webhook.Item{{"pk": "a", "sk": "entry#1", "n": int64(1)}, {"pk": "a", "sk": "entry#2", "n": int64(2)}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	})
}

func TestAListThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))
	defer server.Close()
	s := storeAt(t, server.URL)
	s.Tables = dynamo.Tables{Inbox: "missing", Business: "missing", Registry: "missing"}
	seen := 0
	for _, err := range s.RecentInbox(t.Context(), "demo", noon.Add(-time.Hour), noon) {
		seen++
		if err == nil {
			t.Error("a row of a missing table")
		}
	}
	for _, err := range s.FailedInbox(t.Context(), noon, noon) {
		seen++
		if err == nil {
			t.Error("a row of a missing table")
		}
	}
	for _, err := range s.Acts(t.Context(), noon, noon) {
		seen++
		if err == nil {
			t.Error("an act of a missing table")
		}
	}
	for _, err := range s.Rows(t.Context(), "a", "b") {
		seen++
		if err == nil {
			t.Error("a row of a missing table")
		}
	}
	if seen != 4 {
		t.Errorf("%d answers, want one error from each list", seen)
	}
}
