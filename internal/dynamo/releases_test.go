package dynamo_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"dakghar/internal/delivery"
	devdynamodb "dakghar/internal/devstack/dynamodb"
	"dakghar/internal/dynamo"
	"dakghar/internal/storetest"
	"dakghar/internal/webhook"
)

// rowsOfReleaseOne are rows with everything in them that the first release knows. testdata/rows-1.json has them as that
// release stores them. A later one adds a file and values of its own, and leaves these as they are: they lie in tables for
// 400 days.
func rowsOfReleaseOne() map[string]any {
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	effect := webhook.Effect{
		ID: "ef_1", InboxID: "in_1", Tenant: "acme", Type: "payment.succeeded", Call: "sub_call", Ordinal: 2, BodyID: "bd_2",
		Digest: webhook.DigestOf([]byte("effect")), BodyExpiresAt: at(50), CreatedAt: at(1), Hops: 3,
	}
	return map[string]any{
		"inbox": webhook.Inbox{
			ID: "in_1", Provider: "stripe", Endpoint: "shop", Tenant: "acme", EventID: "evt_1", EventType: "payment_intent.succeeded",
			ObjectID: "pi_1", ObjectVersion: "7", ProviderCreatedAt: at(-1), ReceivedAt: noon, BodyID: "bd_1", BodyExpiresAt: at(60),
			Digest: webhook.DigestOf([]byte("body")), MatchedVersion: "k1-a", SameBodyAs: "in_0", ConflictWith: "in_2", Uncovered: true,
			Unwanted: true, Hops: 2, Status: webhook.Processed, Outcome: webhook.Applied, Fence: 3, AttemptCount: 2, Run: 1, Slot: webhook.Slot{Sequence: "order-1", Number: 4}, NextAttemptAt: at(2),
			LeaseUntil: at(3), ClaimID: "claim_1", LastError: "store_throttled", ProcessedAt: at(4), ExpiresAt: at(5), ErasedAt: at(6), LegalHold: true,
		},
		"outbox": webhook.Outbox{
			ID: "ob_1", InboxID: "in_1", Endpoint: "shop", Topic: webhook.TopicProcess, CreatedAt: noon, PublishedAt: at(1), Gen: 4,
			DueAt: at(2), WakeAt: at(3), Wakes: 5, InDueIndex: true,
		},
		"outbox of an effect": webhook.Outbox{
			ID: "ob_2", InboxID: "in_1", Endpoint: "shop", Topic: webhook.TopicEffect, CreatedAt: noon, DueAt: at(2), WakeAt: at(3),
			Effect: &effect, Cursor: "sub_9",
		},
		"delivery": delivery.Delivery{
			ID: "dl_1", Tenant: "acme", Subscription: "sub_1", Effect: effect, Generation: 1, ReplayOf: "dl_0", ReplayedAs: "dl_2",
			Status: delivery.Retry, Fence: 6, AttemptCount: 3, NextAttemptAt: at(1), LeaseUntil: at(2), ClaimID: "claim_2", CreatedAt: noon,
			Deadline: at(90), LastStatus: 503, LastError: "partner_status", EndedAt: at(4), ExpiresAt: at(5), WakeAt: at(6), Wakes: 7,
		},
		"attempt": delivery.Attempt{
			Delivery: "dl_1", N: 3, At: noon, KeyID: "k2-b", Result: "refused", Status: 503, Code: "partner_status",
			Took: 1234 * time.Millisecond, Answer: "busy", Redirects: 1,
		},
		"endpoint": webhook.Endpoint{
			ID: "shop", Provider: "stripe", Tenant: "acme", Scope: "shared", Secret: "dakghar/endpoint/shop",
			Types: []webhook.EventType{"payment_intent.succeeded"}, KeepUnknown: true, Policies: map[webhook.Kind]webhook.Policy{"payment": "version"},
			Rate: 100, Burst: 200, PausedAt: at(1), API: &webhook.API{Secret: "dakghar/api/shop", Account: map[string]string{"hook": "1"}},
			BackfillEvery: time.Hour, Overlap: 24 * time.Hour, Keys: []webhook.TrustedKey{{Version: "k1-a", AddedAt: noon, FirstMatch: at(1), NotAfter: at(2), Adopted: true}}, Retired: []webhook.KeyVersion{"k0-z"},
			CreatedAt: noon, Revision: 8,
		},
		"subscription": delivery.Subscription{
			ID: "sub_1", Tenant: "acme", Target: delivery.Target{Kind: "http", URL: "https://partner.example/hooks"}, Types: []string{"payment.*"},
			Filter: map[string]string{"object.currency": "EUR"}, Calls: true, ProfileName: "standard", Header: map[string]string{"X-Shop": "1"},
			CredentialHeader: "Authorization", Credential: "dakghar/subscription/sub_1-credential", Secret: "dakghar/subscription/sub_1",
			Keys: []delivery.Key{{ID: "k2-b", Version: "k2-b", AddedAt: noon, NotAfter: at(3)}}, Rate: 1, Burst: 2, Concurrency: 3, State: "paused", StateWhy: "by an operator", StateAt: at(1), CreatedAt: noon,
			FailingSince: at(2), Revision: 9,
		},
	}
}

const rowsFile = "testdata/rows-1.json"

// stored writes attributes as DynamoDB's JSON does.
func stored(t *testing.T, item map[string]types.AttributeValue) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for name, value := range item {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			out[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			out[name] = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberB:
			out[name] = map[string]any{"B": v.Value}
		case *types.AttributeValueMemberBOOL:
			out[name] = map[string]any{"BOOL": v.Value}
		default:
			t.Fatalf("attribute %s is a %T", name, value)
		}
	}
	return out
}

func recorded(t *testing.T) map[string]map[string]types.AttributeValue {
	t.Helper()
	data, err := os.ReadFile(rowsFile)
	if err != nil {
		t.Fatal(err)
	}
	var rows map[string]map[string]struct {
		S, N *string
		B    []byte
		BOOL *bool
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]types.AttributeValue{}
	for kind, row := range rows {
		out[kind] = map[string]types.AttributeValue{}
		for name, v := range row {
			switch {
			case v.S != nil:
				out[kind][name] = &types.AttributeValueMemberS{Value: *v.S}
			case v.N != nil:
				out[kind][name] = &types.AttributeValueMemberN{Value: *v.N}
			case v.BOOL != nil:
				out[kind][name] = &types.AttributeValueMemberBOOL{Value: *v.BOOL}
			default:
				out[kind][name] = &types.AttributeValueMemberB{Value: v.B}
			}
		}
	}
	return out
}

// A release reads what the ones before it wrote.
func TestRowsOfEarlierReleasesAreRead(t *testing.T) {
	t.Parallel()
	rows := recorded(t)
	for kind, want := range rowsOfReleaseOne() {
		got, err := dynamo.CodecOf(want, noon).Decode(rows[kind])
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-what was stored +what is read):\n%s", kind, diff)
		}
	}
}

// What this release stores is what the newest file says. If it is to store something else, that file is the older release's
// from then on: add one beside it.
func TestRowsAreStoredAsTheNewestFileSays(t *testing.T) {
	t.Parallel()
	want := recorded(t)
	for kind, v := range rowsOfReleaseOne() {
		item, err := dynamo.CodecOf(v, noon).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored(t, want[kind]), stored(t, item)); diff != "" {
			t.Errorf("%s (-%s +stored):\n%s", kind, rowsFile, diff)
		}
		delete(want, kind)
	}
	if len(want) != 0 {
		t.Errorf("%s has rows of which nobody knows the kind: %v", rowsFile, want)
	}
}

// What a newer release put beside is not read, and is no reason to refuse the row. In a row that is written whole it is
// kept, and written back.
func TestWhatANewerReleasePutsBesideIsPassedOver(t *testing.T) {
	t.Parallel()
	for kind, want := range rowsOfReleaseOne() {
		row := recorded(t)[kind]
		row["zz"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"later": &types.AttributeValueMemberS{Value: "x"}}}
		if doc, ok := row["doc"].(*types.AttributeValueMemberS); ok {
			row["doc"] = &types.AttributeValueMemberS{Value: `{"Later":{"a":1},` + doc.Value[1:]}
		}
		got, err := dynamo.CodecOf(want, noon).Decode(row)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		later := map[string]json.RawMessage{"Later": json.RawMessage(`{"a":1}`)}
		switch v := want.(type) {
		case webhook.Endpoint:
			v.Unknown = later
			want = v
		case delivery.Subscription:
			v.Unknown = later
			want = v
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// A release that changes an endpoint or a subscription, whose rows are written whole, takes no setting from it that a newer
// release has put there.
func TestAnOlderReleaseKeepsANewersSettings(t *testing.T) {
	onStores(t, func(t *testing.T, s *dynamo.Store) {
		later := map[string]json.RawMessage{"Later": json.RawMessage(`{"a":1}`), "Rates": json.RawMessage(`[1]`)}
		e := webhook.Endpoint{ID: "shop", Provider: "stripe", Tenant: "acme", Scope: "shop", Rate: 5, Unknown: later}
		if made, err := s.CreateEndpoint(t.Context(), e); err != nil || !made {
			t.Fatal(made, err)
		}
		e, _, err := s.Endpoint(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		e.Rate = 0 // a setting of its own may go
		if written, err := s.UpdateEndpoint(t.Context(), e); err != nil || !written {
			t.Fatal(written, err)
		}
		act := webhook.Act{ID: "0123456789abcdefghijklmnop", At: noon, Name: "subscription create", Subject: "subscription sub_1", Who: "ada", Why: "ticket"}
		v := delivery.Subscription{ID: "sub_1", Tenant: "acme", StateWhy: "failing", Unknown: later}
		if made, err := s.CreateSubscriptionBy(t.Context(), v, act); err != nil || !made {
			t.Fatal(made, err)
		}
		v, _, err = s.Subscription(t.Context(), "sub_1")
		if err != nil {
			t.Fatal(err)
		}
		v.StateWhy = ""
		if written, err := s.UpdateSubscription(t.Context(), v); err != nil || !written {
			t.Fatal(written, err)
		}
		got, _, err := s.Endpoint(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		told, _, err := s.Subscription(t.Context(), "sub_1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{later, 0, later, ""}, []any{got.Unknown, got.Rate, told.Unknown, told.StateWhy}); diff != "" {
			t.Errorf("settings (-want +got):\n%s", diff)
		}
	})
}

// Versions run side by side while they shift: what a newer one noted on an event's row is still there when an older one has
// claimed it and is done with it.
func TestAnOlderReleaseLeavesANewersAttributesAlone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))
	defer server.Close()
	s := storeAt(t, server.URL)
	db := s.DB.(*dynamodb.Client)
	row := storetest.Row("newer", 1)
	accept(t, s, row)
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: string(row.ID)}}
	later := &types.AttributeValueMemberS{Value: "a newer release's"}
	if _, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Inbox, Key: key, UpdateExpression: aws.String("SET zz = :zz"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":zz": later},
	}); err != nil {
		t.Fatal(err)
	}
	hold := row.Hold("held_by_operator")
	row = hold.Apply(row)
	act := webhook.Act{ID: "0123456789abcdefghijklmnop", At: noon, Name: "hold", Subject: "event " + string(row.ID), Who: "ada", Why: "ticket"}
	if ok, err := s.Hold(t.Context(), hold, webhook.NewHeldOutbox(row, noon), act); err != nil || !ok {
		t.Fatalf("hold: %v, %v", ok, err)
	}
	got, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.Tables.Inbox, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a newer release's", got.Item["zz"].(*types.AttributeValueMemberS).Value); diff != "" {
		t.Errorf("the newer release's attribute (-want +got):\n%s", diff)
	}
	if status := got.Item["st"].(*types.AttributeValueMemberS).Value; status != string(webhook.Held) {
		t.Errorf("the older release did not get to its change: %s", status)
	}
}

// Only what stands at the top of an endpoint's or a subscription's document is kept by a program that does not know it. So
// a member that is added inside one of these would be taken away by the release before: put a new setting at the top.
func TestSettingsGrowAtTheTop(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	for _, v := range []any{webhook.TrustedKey{}, webhook.API{}, webhook.AllowFrom{}, delivery.Target{}, delivery.Key{}} {
		of := reflect.TypeOf(v)
		for _, f := range reflect.VisibleFields(of) {
			got[of.String()] = append(got[of.String()], f.Name)
		}
	}
	want := map[string][]string{
		"webhook.TrustedKey": {"Version", "AddedAt", "FirstMatch", "NotAfter", "Adopted"},
		"webhook.API":        {"Secret", "Account"},
		"webhook.AllowFrom":  {"Provider", "Prefixes"},
		"delivery.Target":    {"Kind", "URL", "Bus", "RedirectHosts"},
		"delivery.Key":       {"ID", "Version", "AddedAt", "NotAfter"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}
