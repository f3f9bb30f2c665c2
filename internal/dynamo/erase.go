package dynamo

import (
	"context"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// Erased events are listed by the UTC day of their erasing: pk "erased#<yyyymmdd>",
// sk the inbox id. Legal holds are listed together: pk "legalholds", sk the inbox id.
// Neither list expires: a restore may bring back what is years old.
const legalHolds = "legalholds"

func erasedDay(t time.Time) string { return "erased#" + t.UTC().Format("20060102") }

// EraseBy notes on an ended row that it is erased, lists it, and records the act.
// False means that the row has moved on, is erased, or is under legal hold.
func (s *Store) EraseBy(ctx context.Context, c webhook.Change, e webhook.Erased, a webhook.Act) (bool, error) {
	item := attributes{
		"pk": str(erasedDay(e.At)), "sk": str(string(e.InboxID)),
		"e": str(string(e.Endpoint)), "at": ms(e.At),
	}
	setStr(item, "tn", string(e.Tenant))
	setStr(item, "bi", string(e.BodyID))
	if len(e.Effects) > 0 {
		var list []types.AttributeValue
		for _, id := range e.Effects {
			list = append(list, str(string(id)))
		}
		item["eb"] = &types.AttributeValueMemberL{Value: list}
	}
	return s.commitFirst(ctx, s.with(a, s.changeInbox(c), s.putRegistry(item))...)
}

func (s *Store) putRegistry(item attributes) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &s.Tables.Registry, Item: item}}
}

// ErasedEvents yields the events that were erased from since to until, days
// newest first. One that was erased again is there twice.
func (s *Store) ErasedEvents(ctx context.Context, since, until time.Time) iter.Seq2[webhook.Erased, error] {
	return func(yield func(webhook.Erased, error) bool) {
		for _, day := range daysBack(until, since) {
			for item, err := range s.partition(ctx, erasedDay(day)) {
				var e webhook.Erased
				if err == nil {
					e, err = decodeErased(item)
				}
				if err == nil && (e.At.Before(since) || e.At.After(until)) {
					continue
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

func decodeErased(item attributes) (webhook.Erased, error) {
	d := decoder{a: item}
	e := webhook.Erased{
		InboxID: webhook.InboxID(d.str("sk")), Endpoint: webhook.EndpointID(d.str("e")), Tenant: webhook.Tenant(d.str("tn")),
		BodyID: webhook.BodyID(d.str("bi")), At: d.ms("at"),
	}
	if list, ok := item["eb"].(*types.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			if id, ok := v.(*types.AttributeValueMemberS); ok {
				e.Effects = append(e.Effects, webhook.BodyID(id.Value))
			}
		}
	}
	return e, d.err
}

// HoldByLawBy puts an ended row under legal hold, lists it, and records the act.
// False means that the row has moved on, is erased, or is under legal hold.
func (s *Store) HoldByLawBy(ctx context.Context, c webhook.Change, h webhook.HeldByLaw, a webhook.Act) (bool, error) {
	item := attributes{
		"pk": str(legalHolds), "sk": str(string(h.InboxID)), "e": str(string(h.Endpoint)), "at": ms(h.At), "who": str(h.Who),
	}
	setStr(item, "why", h.Why)
	return s.commitFirst(ctx, s.with(a, s.changeInbox(c), s.putRegistry(item))...)
}

// LetGoBy ends a legal hold, takes it off the list, and records the act. False
// means that the row has moved on.
func (s *Store) LetGoBy(ctx context.Context, c webhook.Change, a webhook.Act) (bool, error) {
	return s.commitFirst(ctx, s.with(a, s.changeInbox(c), types.TransactWriteItem{Delete: &types.Delete{
		TableName: &s.Tables.Registry, Key: attributes{"pk": str(legalHolds), "sk": str(string(c.ID))},
	}})...)
}

// LegalHolds yields the events under legal hold, by their ids.
func (s *Store) LegalHolds(ctx context.Context) iter.Seq2[webhook.HeldByLaw, error] {
	return func(yield func(webhook.HeldByLaw, error) bool) {
		for item, err := range s.partition(ctx, legalHolds) {
			var h webhook.HeldByLaw
			if err == nil {
				d := decoder{a: item}
				h = webhook.HeldByLaw{
					InboxID: webhook.InboxID(d.str("sk")), Endpoint: webhook.EndpointID(d.str("e")), At: d.ms("at"), Who: d.str("who"), Why: d.str("why"),
				}
				err = d.err
			}
			if !yield(h, err) || err != nil {
				return
			}
		}
	}
}

// partition yields the registry rows of one partition, strongly consistent.
func (s *Store) partition(ctx context.Context, pk string) iter.Seq2[attributes, error] {
	x := newExpression()
	condition := x.name("pk") + " = " + x.value(str(pk))
	return s.queryAll(ctx, &dynamodb.QueryInput{
		TableName: &s.Tables.Registry, KeyConditionExpression: &condition, ConsistentRead: aws.Bool(true),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	})
}
