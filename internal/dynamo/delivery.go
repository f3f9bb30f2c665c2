package dynamo

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// CreateDelivery inserts a delivery. False means that it is there: another
// fan-out of the same effect was faster.
func (s *Store) CreateDelivery(ctx context.Context, d delivery.Delivery) (bool, error) {
	_, err := s.DB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.Tables.Delivery, Item: encodeDelivery(d), ConditionExpression: aws.String("attribute_not_exists(id)"),
	})
	return writtenOrNot(err)
}

// Delivery reads one delivery, strongly consistent.
func (s *Store) Delivery(ctx context.Context, id delivery.ID) (delivery.Delivery, bool, error) {
	item, err := s.read(ctx, s.Tables.Delivery, deliveryKey(id))
	if err != nil || item == nil {
		return delivery.Delivery{}, false, err
	}
	d, err := decodeDelivery(item)
	return d, err == nil, err
}

// ChangeDelivery writes one change. False means that the guard does not hold.
func (s *Store) ChangeDelivery(ctx context.Context, c delivery.Change) (bool, error) {
	e := newExpression()
	guard, update := e.deliveryGuard(c.Guard), e.deliveryChange(c)
	_, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Delivery, Key: deliveryKey(c.ID), ConditionExpression: &guard, UpdateExpression: &update,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	return writtenOrNot(err)
}

// BeginAttempt claims a delivery and records the attempt, in one transaction,
// before anything is sent. False means that the delivery is not as it was read;
// a reply that was lost is recognised by the claim.
func (s *Store) BeginAttempt(ctx context.Context, c delivery.Change, a delivery.Attempt) (bool, error) {
	reasons, err := s.commit(ctx, s.changeDelivery(c), s.putAttempt(a, a.At.Add(2*delivery.Keep)))
	switch {
	case err != nil:
		return false, err
	case reasons == nil:
		return true, nil
	case !refused(reasons[0]):
		return false, cancelledByService(reasons)
	case len(reasons[0].Item) == 0:
		return false, nil
	}
	row, err := decodeDelivery(reasons[0].Item)
	return err == nil && row.Status == delivery.Sending && row.ClaimID == c.ClaimID, err
}

// EndAttempt records how an attempt ended, with what its delivery becomes. False
// means that the delivery is another's by now: the attempt is recorded all the same.
func (s *Store) EndAttempt(ctx context.Context, c delivery.Change, a delivery.Attempt) (bool, error) {
	put := s.putAttempt(a, a.At.Add(2*delivery.Keep))
	reasons, err := s.commit(ctx, s.changeDelivery(c), put)
	switch {
	case err != nil:
		return false, err
	case reasons == nil:
		return true, nil
	case !refused(reasons[0]):
		return false, cancelledByService(reasons)
	}
	if row, err := decodeDelivery(reasons[0].Item); err == nil && row.Status == c.To && row.Fence == c.Guard.Fence+1 && !c.Guard.AnyFence {
		return true, nil // our own reply was lost
	}
	_, err = s.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.Tables.Delivery, Item: put.Put.Item})
	if err != nil {
		return false, unavailable("PutItem", err)
	}
	return false, nil
}

// Attempts returns a delivery's attempts in order.
func (s *Store) Attempts(ctx context.Context, id delivery.ID) ([]delivery.Attempt, error) {
	x := newExpression()
	condition := x.name("id") + " = " + x.value(str(string(id))) + " AND begins_with(" + x.name("sk") + ", " + x.value(str("attempt#")) + ")"
	var all []delivery.Attempt
	for item, err := range s.queryAll(ctx, &dynamodb.QueryInput{
		TableName: &s.Tables.Delivery, KeyConditionExpression: &condition, ConsistentRead: aws.Bool(true),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}) {
		if err != nil {
			return nil, err
		}
		a, err := decodeAttempt(item)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// DueDeliveries returns deliveries of one shard whose wake time has come, the
// earliest first.
func (s *Store) DueDeliveries(ctx context.Context, shard int, by time.Time, limit int) ([]delivery.ID, error) {
	e := newExpression()
	condition := e.name("wk") + " = " + e.value(str(wakeKey(shard))) + " AND " + e.name("wa") + " <= " + e.value(ms(by))
	out, err := s.DB.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.Tables.Delivery, IndexName: aws.String("wake"), KeyConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, Limit: aws.Int32(int32(limit)), //nolint:gosec // a small constant
	})
	if err != nil {
		return nil, unavailable("Query", err)
	}
	ids := make([]delivery.ID, 0, len(out.Items))
	for _, item := range out.Items {
		d := decoder{a: item}
		ids = append(ids, delivery.ID(d.str("id")))
	}
	return ids, nil
}

// RewakeDelivery moves the time at which somebody looks again, after a wake-up
// was sent. False means that the delivery has moved on.
func (s *Store) RewakeDelivery(ctx context.Context, d delivery.Delivery, wakeAt time.Time) (bool, error) {
	e := newExpression()
	condition := e.name("f") + " = " + e.value(num(int64(d.Fence))) + " AND " + e.name("wa") + " = " + e.value(ms(d.WakeAt))
	u := updating{e: e}
	u.put("wa", ms(wakeAt))
	u.add("w", 1)
	update := u.String()
	_, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Delivery, Key: deliveryKey(d.ID), ConditionExpression: &condition, UpdateExpression: &update,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	return writtenOrNot(err)
}

// ChangeDeliveryBy writes one change together with the record of an operator's act.
func (s *Store) ChangeDeliveryBy(ctx context.Context, c delivery.Change, a webhook.Act) (bool, error) {
	return s.commitFirst(ctx, s.with(a, s.changeDelivery(c))...)
}

// ReplayDelivery inserts the delivery that repeats another, links the two and
// records the act. False means that the old one has moved on.
func (s *Store) ReplayDelivery(ctx context.Context, next delivery.Delivery, c delivery.Change, a webhook.Act) (bool, error) {
	put := types.TransactWriteItem{Put: &types.Put{
		TableName: &s.Tables.Delivery, Item: encodeDelivery(next), ConditionExpression: aws.String("attribute_not_exists(id)"),
	}}
	return s.commitFirst(ctx, s.with(a, s.changeDelivery(c), put)...)
}

// DeliveriesOf yields a subscription's deliveries that were made from since to
// until, newest first. The index is eventually consistent.
func (s *Store) DeliveriesOf(ctx context.Context, id delivery.SubscriptionID, since, until time.Time) iter.Seq2[delivery.Delivery, error] {
	return func(yield func(delivery.Delivery, error) bool) {
		for _, day := range daysBack(until, since) {
			merged := s.newShards(s.Tables.Delivery, since, until, "recent", "rk", "ca", func(shard int) string { return recentDeliveryKey(id, day, shard) })
			if !s.yieldDeliveries(ctx, merged, yield) {
				return
			}
		}
	}
}

// DeadDeliveries yields deliveries that ended DEAD from since to until, newest first.
func (s *Store) DeadDeliveries(ctx context.Context, since, until time.Time) iter.Seq2[delivery.Delivery, error] {
	return func(yield func(delivery.Delivery, error) bool) {
		s.yieldDeliveries(ctx, s.newShards(s.Tables.Delivery, since, until, "dead", "fk", "en", deadKey), yield)
	}
}

// yieldDeliveries reads the deliveries that the shards name. False means that
// the caller has had enough, or that an error was yielded.
func (s *Store) yieldDeliveries(ctx context.Context, from *shards, yield func(delivery.Delivery, error) bool) bool {
	for {
		ids, err := from.next(ctx, 1)
		if err == nil && len(ids) == 0 {
			return true
		}
		var d delivery.Delivery
		found := false
		if err == nil {
			d, found, err = s.Delivery(ctx, delivery.ID(ids[0]))
		}
		if err != nil {
			yield(delivery.Delivery{}, err)
			return false
		}
		if found && !yield(d, nil) {
			return false
		}
	}
}

// Subscription reads one subscription, strongly consistent.
func (s *Store) Subscription(ctx context.Context, id delivery.SubscriptionID) (delivery.Subscription, bool, error) {
	item, err := s.read(ctx, s.Tables.Registry, subscriptionKey(id))
	if err != nil || item == nil {
		return delivery.Subscription{}, false, err
	}
	v, err := decodeSubscription(item)
	return v, err == nil, err
}

// The list rows of a tenant's subscriptions, and of all: pk below, sk the id.
const allSubscriptions = "subscriptions"

func subscriptionsOf(t webhook.Tenant) string { return "subscriptions#" + string(t) }

// CreateSubscriptionBy inserts a subscription with the record of the act. False
// means that the id is taken: ids are never used again.
func (s *Store) CreateSubscriptionBy(ctx context.Context, v delivery.Subscription, a webhook.Act) (bool, error) {
	v.Revision = 1
	item, err := encodeSubscription(v)
	if err != nil {
		return false, err
	}
	writes := []types.TransactWriteItem{{Put: &types.Put{
		TableName: &s.Tables.Registry, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}}}
	for _, list := range []string{allSubscriptions, subscriptionsOf(v.Tenant)} {
		writes = append(writes, types.TransactWriteItem{Put: &types.Put{
			TableName: &s.Tables.Registry, Item: attributes{"pk": str(list), "sk": str(string(v.ID))},
		}})
	}
	return s.commitFirst(ctx, s.with(a, writes...)...)
}

// UpdateSubscription writes a subscription that was read at its Revision. False
// means that somebody changed it since.
func (s *Store) UpdateSubscription(ctx context.Context, v delivery.Subscription) (bool, error) {
	put, err := s.updateSubscription(v)
	if err != nil {
		return false, err
	}
	_, err = s.DB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
		ExpressionAttributeNames: put.ExpressionAttributeNames, ExpressionAttributeValues: put.ExpressionAttributeValues,
	})
	return writtenOrNot(err)
}

// PauseSubscription is [Store.UpdateSubscription] together with the promise that
// others are told of it.
func (s *Store) PauseSubscription(ctx context.Context, v delivery.Subscription, promise webhook.Outbox) (bool, error) {
	put, err := s.updateSubscription(v)
	if err != nil {
		return false, err
	}
	return s.commitFirst(ctx, types.TransactWriteItem{Put: put}, s.putOutbox(promise))
}

// UpdateSubscriptionBy is [Store.UpdateSubscription] with the record of an act.
func (s *Store) UpdateSubscriptionBy(ctx context.Context, v delivery.Subscription, a webhook.Act) (bool, error) {
	put, err := s.updateSubscription(v)
	if err != nil {
		return false, err
	}
	return s.commitFirst(ctx, s.with(a, types.TransactWriteItem{Put: put})...)
}

func (s *Store) updateSubscription(v delivery.Subscription) (*types.Put, error) {
	seen := v.Revision
	v.Revision++
	item, err := encodeSubscription(v)
	if err != nil {
		return nil, err
	}
	x := newExpression()
	condition := x.name("rev") + " = " + x.value(num(seen))
	return &types.Put{
		TableName: &s.Tables.Registry, Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}, nil
}

// Subscriptions returns a tenant's subscriptions in the order of their ids, the
// stopped ones too; every tenant's for an empty one.
func (s *Store) Subscriptions(ctx context.Context, t webhook.Tenant) ([]delivery.Subscription, error) {
	list := subscriptionsOf(t)
	if t == "" {
		list = allSubscriptions
	}
	x := newExpression()
	condition := x.name("pk") + " = " + x.value(str(list))
	var ids []delivery.SubscriptionID
	for item, err := range s.queryAll(ctx, &dynamodb.QueryInput{
		TableName: &s.Tables.Registry, KeyConditionExpression: &condition, ConsistentRead: aws.Bool(true),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}) {
		if err != nil {
			return nil, err
		}
		d := decoder{a: item}
		ids = append(ids, delivery.SubscriptionID(d.str("sk")))
	}
	var all []delivery.Subscription
	for some := range slices.Chunk(ids, batchGetMax) {
		read, err := s.subscriptions(ctx, some)
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
	}
	return all, nil
}

// subscriptions reads subscriptions by id, strongly consistent, in the order of
// the ids: a tenant may have thousands, and each of them would be a call.
func (s *Store) subscriptions(ctx context.Context, ids []delivery.SubscriptionID) ([]delivery.Subscription, error) {
	keys := make(map[string]attributes, len(ids))
	for _, id := range ids {
		keys[string(id)] = subscriptionKey(id)
	}
	items, err := s.batch(ctx, s.Tables.Registry, "pk", true, false, keys)
	if err != nil {
		return nil, err
	}
	var all []delivery.Subscription
	for _, id := range ids {
		item, found := items[subscriptionPK(id)]
		if !found {
			continue
		}
		v, err := decodeSubscription(item)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// MoveCursor notes how far an effect's fan-out has come. False means that the
// promise has moved on.
func (s *Store) MoveCursor(ctx context.Context, o webhook.Outbox, cursor string) (bool, error) {
	e := newExpression()
	condition := e.name("g") + " = " + e.value(num(int64(o.Gen)))
	update := "SET " + e.name("cu") + " = " + e.value(str(cursor))
	return s.updateOutbox(ctx, o.ID, condition, update, e)
}
