package dynamo_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/devstack/stack"
	"dakghar/internal/dynamo"
	"dakghar/internal/storetest"
	"dakghar/internal/webhook"
)

// acceptMany accepts events of the endpoint demo, a second apart from noon on.
func acceptMany(t *testing.T, s *dynamo.Store, n int) []webhook.Inbox {
	t.Helper()
	rows := make([]webhook.Inbox, n)
	for i := range rows {
		rows[i] = storetest.Row("audit", i)
		rows[i].ReceivedAt = noon.Add(time.Duration(i) * time.Second)
		promise := webhook.NewOutbox(rows[i], rows[i].ReceivedAt, rows[i].ReceivedAt)
		if existing, err := s.Accept(t.Context(), rows[i], &promise); err != nil || existing != nil {
			t.Fatalf("accept: existing %v, error %v", existing, err)
		}
	}
	return rows
}

func idsOf(rows []webhook.Inbox) []webhook.InboxID {
	ids := make([]webhook.InboxID, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	slices.Sort(ids)
	return ids
}

// walkRecent reads every page of every shard.
func walkRecent(t *testing.T, s *dynamo.Store, from, to time.Time, limit int) []webhook.InboxID {
	t.Helper()
	var all []webhook.InboxID
	for shard := range webhook.Shards {
		for after, more := "", true; more; more = after != "" {
			ids, next, err := s.RecentPage(t.Context(), "demo", shard, from, to, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(ids) > limit {
				t.Fatalf("a page of %d ids, at most %d", len(ids), limit)
			}
			all, after = append(all, ids...), next
		}
	}
	slices.Sort(all)
	return all
}

// Proves R1: each event of a window is named once, whatever the page size, and
// the windows meet without a gap or an overlap.
func TestEachEventOfAWindowIsNamedOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		rows := acceptMany(t, s, 60)
		middle := noon.Add(20 * time.Second)
		var got []webhook.InboxID
		for try := 0; try < listTries && len(got) < len(rows); try++ { // the index follows a moment later
			got = walkRecent(t, s, noon, noon.Add(time.Hour), 100)
		}
		for _, limit := range []int{1, 2, 7} {
			first, second := walkRecent(t, s, noon, middle, limit), walkRecent(t, s, middle, noon.Add(time.Hour), limit)
			if diff := cmp.Diff(idsOf(rows[:20]), first); diff != "" {
				t.Errorf("%d a page, before the middle (-want +got):\n%s", limit, diff)
			}
			if diff := cmp.Diff(idsOf(rows[20:]), second); diff != "" {
				t.Errorf("%d a page, from the middle on (-want +got):\n%s", limit, diff)
			}
		}
	})
}

// Proves R1: a scan in segments meets each row once; one that cannot be read is
// named and hides no other.
func TestEachRowOfTheInboxIsMetOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		rows := acceptMany(t, s, 40)
		putOdd(t, s, s.Tables.Inbox, map[string]types.AttributeValue{"id": text("odd")})
		var met, odd []webhook.InboxID
		for segment := range 3 {
			for after, more := "", true; more; more = after != "" {
				page, unreadable, next, err := s.InboxPage(t.Context(), segment, 3, after, 7)
				if err != nil {
					t.Fatal(err)
				}
				met, odd, after = append(met, idsOf(page)...), append(odd, unreadable...), next
			}
		}
		slices.Sort(met)
		if diff := cmp.Diff(idsOf(rows), met); diff != "" {
			t.Errorf("met (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]webhook.InboxID{"odd"}, odd); diff != "" {
			t.Errorf("unreadable (-want +got):\n%s", diff)
		}
	})
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func putOdd(t *testing.T, s *dynamo.Store, table string, item map[string]types.AttributeValue) {
	t.Helper()
	if _, err := s.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// What a page of events is compared with, read many at a time.
func TestRowsPromisesAndMarksAreReadTogether(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		rows := acceptMany(t, s, 3)
		claimed, ok, err := s.Change(t.Context(), webhook.Claim(rows[0].ID, "c", noon, time.Minute, 5))
		if err != nil || !ok {
			t.Fatalf("claim: %v, %v", ok, err)
		}
		mark := &webhook.Mark{InboxID: rows[0].ID, At: noon}
		verdict, err := s.Complete(t.Context(), webhook.Completion{Change: claimed.Complete(webhook.Applied, noon, time.Hour), Claim: "c", Mark: mark})
		if err != nil || verdict != webhook.Committed {
			t.Fatalf("complete: %s, %v", verdict, err)
		}
		if ok, err := s.DeleteOutbox(t.Context(), webhook.NewOutboxID(rows[0].ID, webhook.TopicProcess, 0), 2); err != nil || !ok {
			t.Fatalf("delete: %v, %v", ok, err)
		}
		putOdd(t, s, s.Tables.Inbox, map[string]types.AttributeValue{"id": text("odd")})

		found, unreadable, err := s.InboxRows(t.Context(), append(idsOf(rows), "odd", "nobody"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(idsOf(rows), slices.Sorted(maps.Keys(found))); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(rows[1], found[rows[1].ID]); diff != "" {
			t.Errorf("a row (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]webhook.InboxID{"odd"}, unreadable); diff != "" {
			t.Errorf("unreadable (-want +got):\n%s", diff)
		}
		var ids []webhook.OutboxID
		want := map[webhook.OutboxID]webhook.Outbox{}
		for i, row := range rows {
			id := webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0)
			if ids = append(ids, id); i > 0 {
				want[id] = webhook.NewOutbox(row, row.ReceivedAt, row.ReceivedAt)
			}
		}
		promises, err := s.Promises(t.Context(), ids)
		if diff := cmp.Diff(want, promises); err != nil || diff != "" {
			t.Errorf("promises, error %v (-want +got):\n%s", err, diff)
		}
		marks, err := s.MarksOf(t.Context(), slices.Collect(maps.Values(found)))
		if diff := cmp.Diff(map[webhook.InboxID]bool{rows[0].ID: true}, marks); err != nil || diff != "" {
			t.Errorf("marks, error %v (-want +got):\n%s", err, diff)
		}
		again := found[rows[0].ID]
		again.Run = 1
		marks, err = s.MarksOf(t.Context(), []webhook.Inbox{again})
		if err != nil || len(marks) != 0 {
			t.Errorf("the mark of run 0 is taken for run 1's: %v, error %v", marks, err)
		}
	})
}

// A body is kept until its expiry, swept or not.
func TestABodyIsKeptUntilItExpires(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		s.Tables.Body = "body-" + strings.ToLower(rand.Text()[:10])
		if err := stack.CreateTables(t.Context(), s.DB.(*dynamodb.Client), "../../template.yaml", map[string]string{"BodyTable": s.Tables.Body}); err != nil {
			t.Fatal(err)
		}
		expiry := &types.AttributeValueMemberN{Value: fmt.Sprint(noon.Unix())}
		putOdd(t, s, s.Tables.Body, map[string]types.AttributeValue{"id": text("bd_1"), "x": expiry})
		for _, tt := range []struct {
			id   webhook.BodyID
			now  time.Time
			want bool
		}{{"bd_1", noon.Add(-time.Second), true}, {"bd_1", noon, false}, {"bd_2", noon.Add(-time.Second), false}} {
			if got, err := s.BodyKept(t.Context(), tt.id, tt.now); err != nil || got != tt.want {
				t.Errorf("%s at %s: %v, want %v, error %v", tt.id, tt.now, got, tt.want, err)
			}
		}
	})
}

// Proves R2: a promise of another life goes only while its subject, and it, are
// as they were seen.
func TestAPromiseOfAnotherLifeIsDroppedAsItWasSeen(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		row := acceptMany(t, s, 1)[0]
		id := webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0)
		seen, _, err := s.Outbox(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		moved, older := row, seen
		moved.Fence, older.Gen = 1, 7
		for name, tt := range map[string]struct {
			row     webhook.Inbox
			promise webhook.Outbox
		}{"the subject has moved on": {moved, seen}, "the promise has": {row, older}} {
			if ok, err := s.DropPromise(t.Context(), tt.row, tt.promise); ok || err != nil {
				t.Errorf("%s: dropped %v, error %v", name, ok, err)
			}
		}
		for _, want := range []bool{true, false} {
			if ok, err := s.DropPromise(t.Context(), row, seen); ok != want || err != nil {
				t.Errorf("dropped %v, want %v, error %v", ok, want, err)
			}
		}
		if _, found, err := s.Outbox(t.Context(), id); found || err != nil {
			t.Errorf("the promise is there: %v, error %v", found, err)
		}
	})
}

// Proves R2: a requeue leaves the row as it is but for its fence, puts a promise
// under it, and writes nothing once the row has moved on.
func TestARequeueIsWrittenAsItWasDecided(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		for i, status := range []webhook.Status{webhook.Received, webhook.Retry, webhook.Processing, webhook.Held, webhook.Parked} {
			row := storetest.Row("requeue", i)
			row.Status, row.Fence, row.AttemptCount = status, 3, 2
			if status == webhook.Processing {
				row.ClaimID, row.LeaseUntil = "c", noon.Add(time.Minute)
			}
			if status == webhook.Parked {
				row.Slot = webhook.Slot{Sequence: "sq_1", Number: 4}
			}
			if existing, err := s.Accept(t.Context(), row, nil); err != nil || existing != nil {
				t.Fatalf("accept: existing %v, error %v", existing, err)
			}
			change := row.Requeue()
			want := change.Apply(row)
			promise := webhook.NewOutbox(want, noon, noon)
			for _, written := range []bool{true, false} {
				if ok, err := s.Retry(t.Context(), change, promise); ok != written || err != nil {
					t.Errorf("%s: written %v, want %v, error %v", status, ok, written, err)
				}
			}
			got, _, err := s.Inbox(t.Context(), row.ID)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s, error %v (-want +got):\n%s", status, err, diff)
			}
			kept, _, err := s.Outbox(t.Context(), promise.ID)
			if diff := cmp.Diff(promise, kept); err != nil || diff != "" {
				t.Errorf("promise of %s, error %v (-want +got):\n%s", status, err, diff)
			}
		}
	})
}

// What a service did not get to in a batch is asked again.
func TestABatchThatWasCutShortIsReadToItsEnd(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		rows := acceptMany(t, s, 9)
		waits := 0
		s.DB = &short{Client: s.DB}
		s.Wait = func(context.Context, time.Duration) error { waits++; return nil }
		found, _, err := s.InboxRows(t.Context(), idsOf(rows))
		if err != nil || len(found) != len(rows) || waits == 0 {
			t.Errorf("%d rows after %d waits, error %v", len(found), waits, err)
		}
	})
}

// short answers a batch read for two keys at a time.
type short struct{ dynamo.Client }

func (s *short) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	for table, ask := range in.RequestItems {
		left := ask.Keys[min(2, len(ask.Keys)):]
		ask.Keys = ask.Keys[:min(2, len(ask.Keys))]
		out, err := s.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: ask}}, o...)
		if err == nil && len(left) > 0 {
			ask.Keys = left
			out.UnprocessedKeys = map[string]types.KeysAndAttributes{table: ask}
		}
		return out, err
	}
	return s.Client.BatchGetItem(ctx, in, o...)
}
