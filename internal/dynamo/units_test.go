package dynamo_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	devdynamodb "dakghar/internal/devstack/dynamodb"
	"dakghar/internal/dynamo"
	"dakghar/internal/webhook"
)

// metered adds up what the writes consume, indexes included.
type metered struct {
	dynamo.Client
	units float64
}

func (m *metered) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.Client.TransactWriteItems(ctx, in, opts...)
	if err == nil {
		for _, c := range out.ConsumedCapacity {
			m.units += aws.ToFloat64(c.CapacityUnits)
		}
	}
	return out, err
}

func (m *metered) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.Client.UpdateItem(ctx, in, opts...)
	if err == nil {
		m.units += aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
	}
	return out, err
}

// The units that a bulk's plan promises (deeds and nearUnits in package operator),
// by the local stack's size formula, which DynamoDB Local does not keep to.
func TestWhatAnOperatorsActsCost(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(devdynamodb.New(devdynamodb.Config{}))
	defer server.Close()
	s := storeAt(t, server.URL)
	m := &metered{Client: s.DB}
	row := rowAt(1, "demo", noon)
	row.BodyExpiresAt = noon.Add(30 * 24 * time.Hour)
	accept(t, s, row)
	s.DB = m
	act := func(name string) webhook.Act {
		return webhook.Act{ID: "0123456789abcdefghijklmnop", At: noon, Name: name, Subject: "event " + string(row.ID), Who: "arn:aws:sts::123456789012:assumed-role/operator/ada", Why: "ticket 1234: the partner was down", Job: "job-20260301t120000-abcdefgh"}
	}
	got := map[string]float64{}
	cost := func(name string, ok bool, err error) {
		t.Helper()
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		got[name], m.units = m.units, 0
	}
	reopen := func(name string, c webhook.Change) {
		t.Helper()
		row = c.Apply(row)
		v, err := s.Reopen(t.Context(), c, row.Run, webhook.NewOutbox(row, noon, noon), act(name))
		cost(name, v == webhook.Committed, err)
	}
	hold := row.Hold("held_by_operator")
	row = hold.Apply(row)
	ok, err := s.Hold(t.Context(), hold, webhook.NewHeldOutbox(row, noon), act("hold"))
	cost("hold", ok, err)
	reopen("release", row.Release(noon))
	ok, err = s.BringNear(t.Context(), webhook.NewOutbox(row, noon, noon).Near(row, noon))
	cost("bring near", ok, err)
	fail := row.Fail(noon, "failed_by_operator", time.Hour)
	row = fail.Apply(row)
	ok, err = s.FailBy(t.Context(), fail, webhook.NewOutboxID(row.ID, webhook.TopicProcess, 0), act("fail"))
	cost("fail", ok, err)
	reopen("replay", row.Replay(noon))
	row = claimAndComplete(t, s, row)
	m.units = 0
	reopen("reprocess", row.Reprocess(noon))
	row = claimAndComplete(t, s, row)
	m.units = 0
	erase := row.Erase(noon)
	ok, err = s.EraseBy(t.Context(), erase, webhook.Erased{InboxID: row.ID, Endpoint: row.Endpoint, BodyID: row.BodyID, At: noon}, act("erase"))
	cost("erase", ok, err)
	want := map[string]float64{"erase": 8, "hold": 9, "release": 11, "bring near": 1, "fail": 9, "replay": 11, "reprocess": 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("write units (-want +got):\n%s", diff)
	}
}

func claimAndComplete(t *testing.T, s *dynamo.Store, row webhook.Inbox) webhook.Inbox {
	t.Helper()
	claimed, ok, err := s.Change(t.Context(), webhook.Claim(row.ID, "c", noon, time.Minute, 5))
	if err != nil || !ok {
		t.Fatalf("claim: %v, %v", ok, err)
	}
	change := claimed.Complete(webhook.Applied, noon, time.Hour)
	if v, err := s.Complete(t.Context(), webhook.Completion{Change: change, Claim: "c", Mark: &webhook.Mark{InboxID: row.ID, Run: row.Run, At: noon}}); err != nil || v != webhook.Committed {
		t.Fatalf("complete: %v, %v", v, err)
	}
	return change.Apply(*claimed)
}
