package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// How far an endpoint's back-fill has come is one registry row: pk
// "backfill#<endpoint id>", sk "backfill". Like an endpoint it is one JSON
// document, `doc`, beside `rev`, the revision that guards every change of it; `wn`
// beside them is when an event was last missed, which whoever misses one moves on
// without looking at the rest.
const backfillSort = "backfill"

func backfillKey(id webhook.EndpointID) attributes {
	return attributes{"pk": str("backfill#" + string(id)), "sk": str(backfillSort)}
}

// Backfill reads how far an endpoint's back-fill has come, strongly consistent;
// nothing but the endpoint's name where none was ever begun or asked for.
func (s *Store) Backfill(ctx context.Context, id webhook.EndpointID) (webhook.Backfill, error) {
	b := webhook.Backfill{Endpoint: id}
	item, err := s.read(ctx, s.Tables.Registry, backfillKey(id))
	if err != nil || item == nil {
		return b, err
	}
	d := decoder{a: item}
	if doc := d.str("doc"); doc != "" {
		if err := json.Unmarshal([]byte(doc), &b); err != nil {
			return b, fmt.Errorf("dynamo: back-fill row of %s: %w", id, err)
		}
	}
	b.Endpoint, b.WantedAt, b.Revision = id, d.ms("wn"), d.num("rev")
	return b, d.err
}

// UpdateBackfill writes a row that was read at its Revision, 0 for none, and
// leaves alone when it was last asked for. False means that somebody changed it
// since: the caller works beside another, and stops.
func (s *Store) UpdateBackfill(ctx context.Context, b webhook.Backfill) (bool, error) {
	doc, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("dynamo: back-fill of %s: %w", b.Endpoint, err)
	}
	x := newExpression()
	condition := "attribute_not_exists(" + x.name("rev") + ")"
	if b.Revision > 0 {
		condition = x.name("rev") + " = " + x.value(num(b.Revision))
	}
	update := "SET " + x.name("doc") + " = " + x.value(str(string(doc))) + ", " + x.name("rev") + " = " + x.value(num(b.Revision+1))
	return s.updateBackfill(ctx, b.Endpoint, condition, update, x)
}

// WantBackfill notes that an event is missing at an endpoint. A time that is not
// later than the one there changes nothing.
func (s *Store) WantBackfill(ctx context.Context, id webhook.EndpointID, now time.Time) error {
	x := newExpression()
	wanted, at := x.name("wn"), x.value(ms(now))
	condition := "attribute_not_exists(" + wanted + ") OR " + wanted + " < " + at
	_, err := s.updateBackfill(ctx, id, condition, "SET "+wanted+" = "+at, x)
	return err
}

func (s *Store) updateBackfill(ctx context.Context, id webhook.EndpointID, condition, update string, x *expression) (bool, error) {
	_, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Registry, Key: backfillKey(id), ConditionExpression: &condition, UpdateExpression: &update,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	})
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return false, nil
	}
	if err != nil {
		return false, unavailable("UpdateItem", err)
	}
	return true, nil
}
