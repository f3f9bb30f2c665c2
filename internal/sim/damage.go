package sim

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"dakghar/internal/webhook"
)

// What a restore, or hands that should not have, can make of the tables. No
// program of ours leaves such things behind.

// ForgetPromise removes an event's outbox row.
func (w *World) ForgetPromise(id webhook.InboxID) {
	w.T.Helper()
	w.remove(w.tables.Outbox, "id", string(webhook.NewOutboxID(id, webhook.TopicProcess, 0)))
}

// PutPromise puts an outbox row as it is, whatever is there.
func (w *World) PutPromise(o webhook.Outbox) {
	w.T.Helper()
	stored := map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: string(o.ID)}, "ii": &types.AttributeValueMemberS{Value: string(o.InboxID)},
		"e": &types.AttributeValueMemberS{Value: string(o.Endpoint)}, "tp": &types.AttributeValueMemberS{Value: string(o.Topic)},
	}
	for name, n := range map[string]int64{
		"ca": o.CreatedAt.UnixMilli(), "g": int64(o.Gen), "du": o.DueAt.UnixMilli(), "wa": o.WakeAt.UnixMilli(), "w": int64(o.Wakes),
	} {
		stored[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
	}
	if _, err := w.db.PutItem(w.T.Context(), &dynamodb.PutItemInput{TableName: &w.tables.Outbox, Item: stored}); err != nil {
		w.T.Fatal(err)
	}
}

// ForgetMark removes the processed mark of an event's run.
func (w *World) ForgetMark(id webhook.InboxID, run int) {
	w.T.Helper()
	_, err := w.db.DeleteItem(w.T.Context(), &dynamodb.DeleteItemInput{TableName: &w.tables.Business, Key: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: fmt.Sprintf("mark#%s#%d", id, run)}, "sk": &types.AttributeValueMemberS{Value: "mark"},
	}})
	if err != nil {
		w.T.Fatal(err)
	}
}

// ForgetBody removes a body's row.
func (w *World) ForgetBody(id webhook.BodyID) {
	w.T.Helper()
	w.remove(w.bodyTable, "id", string(id))
}

// DropObjects empties the bucket, and leaves what points at it.
func (w *World) DropObjects() {
	w.T.Helper()
	for _, row := range w.rows(w.bodyTable) {
		ref, large := row["r"].(*types.AttributeValueMemberS)
		if !large {
			continue
		}
		if _, err := s3.NewFromConfig(w.config()).DeleteObject(w.T.Context(), &s3.DeleteObjectInput{Bucket: &w.bucket, Key: &ref.Value}); err != nil {
			w.T.Fatal(err)
		}
	}
}

// Garble makes an inbox row one that cannot be read.
func (w *World) Garble(id webhook.InboxID) {
	w.T.Helper()
	_, err := w.db.UpdateItem(w.T.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.tables.Inbox, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: string(id)}},
		UpdateExpression:          new("SET st = :n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "1"}},
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

func (w *World) remove(table, hash, key string) {
	w.T.Helper()
	_, err := w.db.DeleteItem(w.T.Context(), &dynamodb.DeleteItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{hash: &types.AttributeValueMemberS{Value: key}},
	})
	if err != nil {
		w.T.Fatal(err)
	}
}
