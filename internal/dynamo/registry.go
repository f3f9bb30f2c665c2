package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// An endpoint is one registry row: pk "endpoint#<id>", sk "endpoint". Its
// settings are one JSON document, `doc`, beside `rev`, the revision that guards
// every change, so that two operators never overwrite each other.
//
// A list row per endpoint (pk "endpoints", sk the id) lets the command list them.
const endpointSort = "endpoint"

func endpointKey(id webhook.EndpointID) attributes {
	return attributes{"pk": str("endpoint#" + string(id)), "sk": str(endpointSort)}
}

// Endpoint reads one endpoint, strongly consistent.
func (s *Store) Endpoint(ctx context.Context, id webhook.EndpointID) (webhook.Endpoint, bool, error) {
	item, err := s.read(ctx, s.Tables.Registry, endpointKey(id))
	if err != nil || item == nil {
		return webhook.Endpoint{}, false, err
	}
	e, err := decodeEndpoint(item)
	return e, err == nil, err
}

func decodeEndpoint(item attributes) (webhook.Endpoint, error) {
	d := decoder{a: item}
	var e webhook.Endpoint
	unknown, err := decodeDocument(d.str("doc"), &e)
	if err != nil {
		return e, fmt.Errorf("dynamo: endpoint row: %w", err)
	}
	e.Unknown, e.Revision = unknown, d.num("rev")
	return e, d.err
}

// CreateEndpoint inserts an endpoint. False means that the id is taken: ids are
// never used again.
func (s *Store) CreateEndpoint(ctx context.Context, e webhook.Endpoint) (bool, error) {
	e.Revision = 1
	item, err := encodeEndpoint(e)
	if err != nil {
		return false, err
	}
	listed := attributes{"pk": str("endpoints"), "sk": str(string(e.ID))}
	reasons, err := s.commit(ctx,
		types.TransactWriteItem{Put: &types.Put{
			TableName: &s.Tables.Registry, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		}},
		types.TransactWriteItem{Put: &types.Put{TableName: &s.Tables.Registry, Item: listed}},
	)
	switch {
	case err != nil:
		return false, err
	case reasons == nil:
		return true, nil
	case refused(reasons[0]):
		return false, nil
	}
	return false, cancelledByService(reasons)
}

func encodeEndpoint(e webhook.Endpoint) (attributes, error) {
	doc, err := encodeDocument(e, e.Unknown)
	if err != nil {
		return nil, fmt.Errorf("dynamo: endpoint %s: %w", e.ID, err)
	}
	item := endpointKey(e.ID)
	item["doc"] = str(doc)
	item["rev"] = num(e.Revision)
	return item, nil
}

// UpdateEndpoint writes an endpoint that was read at its Revision. False means
// that somebody changed it since; read it and decide again.
func (s *Store) UpdateEndpoint(ctx context.Context, e webhook.Endpoint) (bool, error) {
	seen := e.Revision
	e.Revision++
	item, err := encodeEndpoint(e)
	if err != nil {
		return false, err
	}
	x := newExpression()
	condition := x.name("rev") + " = " + x.value(num(seen))
	_, err = s.DB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.Tables.Registry, Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	})
	return writtenOrNot(err)
}

// EndpointIDs returns every endpoint's id, in order.
func (s *Store) EndpointIDs(ctx context.Context) ([]webhook.EndpointID, error) {
	var ids []webhook.EndpointID
	in := &dynamodb.QueryInput{
		TableName: &s.Tables.Registry, KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: attributes{":pk": str("endpoints")}, ConsistentRead: aws.Bool(true),
	}
	pages := dynamodb.NewQueryPaginator(s.DB, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, unavailable("Query", err)
		}
		for _, item := range page.Items {
			d := decoder{a: item}
			ids = append(ids, webhook.EndpointID(d.str("sk")))
		}
	}
	return ids, nil
}

// Lease takes a named lease until a time, if it is free, over, or already the
// owner's. State is what the last owner left with [Store.Release].
func (s *Store) Lease(ctx context.Context, name, owner string, now, until time.Time) (state string, ok bool, err error) {
	x := newExpression()
	condition := "attribute_not_exists(" + x.name("pk") + ") OR " + x.name("lu") + " < " + x.value(ms(now)) +
		" OR " + x.name("ow") + " = " + x.value(str(owner))
	update := "SET " + x.name("lu") + " = " + x.value(ms(until)) + ", " + x.name("ow") + " = " + x.value(str(owner))
	out, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Registry, Key: leaseKey(name), ConditionExpression: &condition, UpdateExpression: &update,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values, ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		if _, taken := errors.AsType[*types.ConditionalCheckFailedException](err); taken {
			return "", false, nil
		}
		return "", false, unavailable("UpdateItem", err)
	}
	d := decoder{a: out.Attributes}
	return d.str("state"), true, d.err
}

// Release ends an owner's lease and leaves state for the next one. A lease that
// another has taken over is left alone.
func (s *Store) Release(ctx context.Context, name, owner, state string) error {
	x := newExpression()
	condition := x.name("ow") + " = " + x.value(str(owner))
	update := "SET " + x.name("lu") + " = " + x.value(num(0)) + ", " + x.name("state") + " = " + x.value(str(state))
	_, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Registry, Key: leaseKey(name), ConditionExpression: &condition, UpdateExpression: &update,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	})
	_, err = writtenOrNot(err)
	return err
}

func leaseKey(name string) attributes {
	return attributes{"pk": str("lease#" + name), "sk": str("lease")}
}
