package body

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// Dynamo is the part of DynamoDB that the Body table needs.
type Dynamo interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
}

// Attribute names; the package comment has the table.
const (
	attrID      = "id"
	attrSealed  = "z"
	attrRef     = "r"
	attrKeyID   = "k"
	attrPutID   = "p"
	attrFirst   = "i"
	attrExpires = "x"
	attrRenewed = "t"
	attrWrapped = "w"

	keyRowPrefix = "key#"
)

type item = map[string]types.AttributeValue

// row is a body's row. Exactly one of sealed and ref is set in a sound one.
type row struct {
	id      webhook.BodyID
	sealed  []byte
	ref     string
	keyID   string
	putID   string
	first   webhook.InboxID
	expires int64
	renewed int64 // when it was renewed last, epoch seconds; 0 if never
}

func (r row) item() item {
	it := item{
		attrID: text(string(r.id)), attrKeyID: text(r.keyID), attrPutID: text(r.putID),
		attrFirst: text(string(r.first)), attrExpires: number(r.expires),
	}
	if r.ref != "" {
		it[attrRef] = text(r.ref)
	} else {
		it[attrSealed] = &types.AttributeValueMemberB{Value: r.sealed}
	}
	return it
}

// parseRow reads what is there; what is not, or is of another type, stays zero.
func parseRow(it item) row {
	expires, _ := strconv.ParseInt(numberOf(it[attrExpires]), 10, 64)
	renewed, _ := strconv.ParseInt(numberOf(it[attrRenewed]), 10, 64)
	return row{
		id: webhook.BodyID(textOf(it[attrID])), sealed: bytesOf(it[attrSealed]), ref: textOf(it[attrRef]),
		keyID: textOf(it[attrKeyID]), putID: textOf(it[attrPutID]), first: webhook.InboxID(textOf(it[attrFirst])), expires: expires, renewed: renewed,
	}
}

// rows reads and writes the Body table.
type rows struct {
	db    Dynamo
	table string
}

// insert puts the row if there is none, or if the one that is there expires before
// atLeast, and returns the one that is there.
func (t rows) insert(ctx context.Context, r row, atLeast int64) (row, error) {
	in := &dynamodb.PutItemInput{
		TableName: &t.table, Item: r.item(), ConditionExpression: aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if atLeast > 0 {
		in.ConditionExpression = aws.String("attribute_not_exists(id) OR x < :x")
		in.ExpressionAttributeValues = item{":x": number(atLeast)}
	}
	_, err := t.db.PutItem(ctx, in)
	failed, exists := errors.AsType[*types.ConditionalCheckFailedException](err)
	switch {
	case exists && len(failed.Item) == 0:
		return row{}, fault.New(fault.Ours, "body_table_conflict", nil) // we cannot tell whose row it is
	case exists:
		return parseRow(failed.Item), nil
	case err != nil:
		return row{}, ours("table", "PutItem", err)
	}
	return r, nil
}

// renew rewrites a row that exists, but for its first inbox id. It reports
// false, and writes nothing, when there is none.
func (t rows) renew(ctx context.Context, r row) (bool, error) {
	values := item{
		":x": number(r.expires), ":t": number(r.renewed), ":p": text(r.putID), ":k": text(r.keyID), ":i": text(string(r.first)),
		":c": &types.AttributeValueMemberB{Value: r.sealed},
	}
	update := "SET x = :x, t = :t, p = :p, k = :k, i = if_not_exists(i, :i), z = :c REMOVE r"
	if r.ref != "" {
		values[":c"] = text(r.ref)
		update = "SET x = :x, t = :t, p = :p, k = :k, i = if_not_exists(i, :i), r = :c REMOVE z"
	}
	_, err := t.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.table, Key: keyOf(string(r.id)), UpdateExpression: &update,
		ConditionExpression: aws.String("attribute_exists(id)"), ExpressionAttributeValues: values,
	})
	if _, absent := errors.AsType[*types.ConditionalCheckFailedException](err); absent {
		return false, nil
	}
	if err != nil {
		return false, ours("table", "UpdateItem", err)
	}
	return true, nil
}

// remove deletes the row that putID wrote or renewed last, and returns it.
func (t rows) remove(ctx context.Context, id webhook.BodyID, putID string) (removed row, ok bool, err error) {
	out, err := t.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &t.table, Key: keyOf(string(id)), ConditionExpression: aws.String("p = :p"),
		ExpressionAttributeValues: item{":p": text(putID)}, ReturnValues: types.ReturnValueAllOld,
	})
	if _, other := errors.AsType[*types.ConditionalCheckFailedException](err); other {
		return row{}, false, nil
	}
	if err != nil {
		return row{}, false, ours("table", "DeleteItem", err)
	}
	return parseRow(out.Attributes), true, nil
}

// get reads a body's row consistently: it may be a moment old.
func (t rows) get(ctx context.Context, id webhook.BodyID) (found row, ok bool, err error) {
	it, err := t.read(ctx, string(id))
	return parseRow(it), len(it) > 0, err
}

// putKey stores a wrapped data key and returns nil only once the store has it.
func (t rows) putKey(ctx context.Context, id string, wrapped []byte, expires time.Time) error {
	_, err := t.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.table, ConditionExpression: aws.String("attribute_not_exists(id)"),
		Item: item{
			attrID: text(keyRowPrefix + id), attrWrapped: &types.AttributeValueMemberB{Value: wrapped},
			attrExpires: number(expires.Unix()),
		},
	})
	if _, exists := errors.AsType[*types.ConditionalCheckFailedException](err); exists {
		// The SDK's own earlier try, whose reply was lost; anything else is another's key.
		if stored, err := t.getKey(ctx, id); err != nil || !bytes.Equal(stored, wrapped) {
			return fault.New(fault.Ours, "body_key_row_taken", nil)
		}
		return nil
	}
	if err != nil {
		return ours("table", "PutItem", err)
	}
	return nil
}

// putPiece stores a piece of a held copy. One that is there is a rival's of the
// same event, or our own, whose reply was lost.
func (t rows) putPiece(ctx context.Context, id string, r row, piece, wrapped []byte, pieces int) error {
	it := item{
		attrID: text(id), attrPutID: text(r.putID), attrKeyID: text(r.keyID), attrFirst: text(string(r.first)),
		attrSealed: &types.AttributeValueMemberB{Value: piece}, attrWrapped: &types.AttributeValueMemberB{Value: wrapped},
		attrPieces: number(int64(pieces)),
	}
	_, err := t.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.table, Item: it, ConditionExpression: aws.String("attribute_not_exists(id)"),
	})
	if _, exists := errors.AsType[*types.ConditionalCheckFailedException](err); exists {
		there, err := t.read(ctx, id)
		if err == nil && parseRow(there).putID != r.putID {
			err = fault.New(fault.Ours, "body_hold_taken", nil)
		}
		return err
	}
	if err != nil {
		return ours("table", "PutItem", err)
	}
	return nil
}

func piecesOf(it item) int {
	n, _ := strconv.Atoi(numberOf(it[attrPieces]))
	return n
}

func (t rows) getKey(ctx context.Context, id string) ([]byte, error) {
	it, err := t.read(ctx, keyRowPrefix+id)
	if err != nil {
		return nil, err
	}
	wrapped := bytesOf(it[attrWrapped])
	if len(wrapped) == 0 {
		return nil, ErrKeyMissing
	}
	return wrapped, nil
}

func (t rows) read(ctx context.Context, id string) (item, error) {
	out, err := t.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.table, Key: keyOf(id), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, ours("table", "GetItem", err)
	}
	return out.Item, nil
}

func keyOf(id string) item { return item{attrID: text(id)} }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

func bytesOf(v types.AttributeValue) []byte {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}
