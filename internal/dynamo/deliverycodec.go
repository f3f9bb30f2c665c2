package dynamo

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/delivery"
	"dakghar/internal/webhook"
)

// A delivery's rows share its id: sk "delivery" is the delivery itself, and sk
// "attempt#<n>" one attempt each, in order. Names are short as in the inbox:
//
//	delivery  id delivery_id · tn tenant · su subscription_id · ei effect_id · ii inbox_id · et type · ec call · eo ordinal
//	          eb effect's body · ed its digest · ex its body's end · ea effect's created_at · gn generation · ro replay_of · rd replayed_as
//	          st status · f fence · ac attempt_count · na next_attempt_at · lu lease_until · ci claim_id · ca created_at · dl deadline
//	          ls last_status · le last_error · en ended_at · x expires_at (epoch seconds) · wa wake_at · w wakes
//	          rk recent index with ca · wk wake index with wa · fk, en dead index
//	attempt   at · ki key id · rs result · ss partner's status · co code · tk took (ms) · an answer · rr redirects · x expires_at
const deliverySort = "delivery"

func attemptSort(n int) string { return fmt.Sprintf("attempt#%06d", n) }

func deliveryKey(id delivery.ID) attributes {
	return attributes{"id": str(string(id)), "sk": str(deliverySort)}
}

func wakeKey(shard int) string { return fmt.Sprintf("W#%d", shard) }

func deadKey(shard int) string { return fmt.Sprintf("D#%d", shard) }

func recentDeliveryKey(s delivery.SubscriptionID, day time.Time, shard int) string {
	return fmt.Sprintf("%s#%s#%d", s, day.UTC().Format("20060102"), shard)
}

// setEffect puts what an effect is beside a row's own attributes.
func setEffect(a attributes, e webhook.Effect) {
	a["ei"], a["ii"], a["et"] = str(string(e.ID)), str(string(e.InboxID)), str(e.Type)
	setStr(a, "tn", string(e.Tenant))
	setStr(a, "ec", e.Call)
	setNum(a, "eo", int64(e.Ordinal))
	setNum(a, "eh", int64(e.Hops))
	setStr(a, "eb", string(e.BodyID))
	setStr(a, "ed", string(e.Digest))
	setMS(a, "ex", e.BodyExpiresAt)
	setMS(a, "ea", e.CreatedAt)
}

func (d *decoder) effect() webhook.Effect {
	return webhook.Effect{
		ID: webhook.EffectID(d.str("ei")), InboxID: webhook.InboxID(d.str("ii")), Tenant: webhook.Tenant(d.str("tn")),
		Type: d.str("et"), Call: d.str("ec"), Ordinal: int(d.num("eo")), Hops: int(d.num("eh")), BodyID: webhook.BodyID(d.str("eb")),
		Digest: webhook.Digest(d.str("ed")), BodyExpiresAt: d.ms("ex"), CreatedAt: d.ms("ea"),
	}
}

func encodeDelivery(v delivery.Delivery) attributes {
	shard := webhook.ShardOf(string(v.ID))
	a := deliveryKey(v.ID)
	setEffect(a, v.Effect)
	a["su"], a["st"], a["f"] = str(string(v.Subscription)), str(string(v.Status)), num(int64(v.Fence))
	a["ac"], a["na"], a["ca"], a["dl"] = num(int64(v.AttemptCount)), ms(v.NextAttemptAt), ms(v.CreatedAt), ms(v.Deadline)
	a["rk"] = str(recentDeliveryKey(v.Subscription, v.CreatedAt, shard))
	setNum(a, "gn", int64(v.Generation))
	setStr(a, "ro", string(v.ReplayOf))
	setStr(a, "rd", string(v.ReplayedAs))
	setMS(a, "lu", v.LeaseUntil)
	setStr(a, "ci", string(v.ClaimID))
	setNum(a, "ls", int64(v.LastStatus))
	setStr(a, "le", v.LastError)
	setMS(a, "en", v.EndedAt)
	setNum(a, "w", int64(v.Wakes))
	if !v.ExpiresAt.IsZero() {
		a["x"] = num(v.ExpiresAt.Unix())
	}
	if !v.WakeAt.IsZero() {
		a["wa"], a["wk"] = ms(v.WakeAt), str(wakeKey(shard))
	}
	return a
}

func decodeDelivery(a attributes) (delivery.Delivery, error) {
	d := decoder{a: a}
	v := delivery.Delivery{
		ID: delivery.ID(d.str("id")), Tenant: webhook.Tenant(d.str("tn")), Subscription: delivery.SubscriptionID(d.str("su")), Effect: d.effect(),
		Generation: int(d.num("gn")), ReplayOf: delivery.ID(d.str("ro")), ReplayedAs: delivery.ID(d.str("rd")),
		Status: delivery.Status(d.str("st")), Fence: webhook.Fence(d.num("f")), AttemptCount: int(d.num("ac")),
		NextAttemptAt: d.ms("na"), LeaseUntil: d.ms("lu"), ClaimID: delivery.ClaimID(d.str("ci")), CreatedAt: d.ms("ca"), Deadline: d.ms("dl"),
		LastStatus: int(d.num("ls")), LastError: d.str("le"), EndedAt: d.ms("en"), ExpiresAt: d.expiry(), WakeAt: d.ms("wa"), Wakes: int(d.num("w")),
	}
	if v.ID == "" || v.Status == "" {
		d.fail("id or st", errors.New("absent"))
	}
	return v, d.err
}

func encodeAttempt(v delivery.Attempt, expires time.Time) attributes {
	a := attributes{"id": str(string(v.Delivery)), "sk": str(attemptSort(v.N)), "n": num(int64(v.N)), "at": ms(v.At)}
	setStr(a, "ki", v.KeyID)
	setStr(a, "rs", string(v.Result))
	setNum(a, "ss", int64(v.Status))
	setStr(a, "co", v.Code)
	setNum(a, "tk", v.Took.Milliseconds())
	setStr(a, "an", v.Answer)
	setNum(a, "rr", int64(v.Redirects))
	a["x"] = num(expires.Unix())
	return a
}

func decodeAttempt(a attributes) (delivery.Attempt, error) {
	d := decoder{a: a}
	v := delivery.Attempt{
		Delivery: delivery.ID(d.str("id")), N: int(d.num("n")), At: d.ms("at"), KeyID: d.str("ki"), Result: delivery.Result(d.str("rs")),
		Status: int(d.num("ss")), Code: d.str("co"), Took: time.Duration(d.num("tk")) * time.Millisecond, Answer: d.str("an"), Redirects: int(d.num("rr")),
	}
	if v.N < 1 {
		d.fail("n", errors.New("absent"))
	}
	return v, d.err
}

// deliveryGuard renders what must be true of a delivery.
func (e *expression) deliveryGuard(g delivery.Guard) string {
	var states []string
	for _, from := range g.From {
		states = append(states, e.name("st")+" = "+e.value(str(string(from))))
	}
	condition := anyOf(states)
	if !g.AnyFence {
		condition += " AND " + e.name("f") + " = " + e.value(num(int64(g.Fence)))
	}
	if g.AttemptsFrom > 0 {
		condition += " AND " + e.name("ac") + " >= " + e.value(num(int64(g.AttemptsFrom)))
	}
	return condition
}

// deliveryChange renders what a delivery becomes.
func (e *expression) deliveryChange(c delivery.Change) string {
	shard := webhook.ShardOf(string(c.ID))
	u := updating{e: e}
	u.put("st", str(string(c.To)))
	u.putOrRemove("lu", c.LeaseUntil.IsZero(), ms(c.LeaseUntil))
	u.putOrRemove("ci", c.ClaimID == "", str(string(c.ClaimID)))
	u.putOrRemove("wa", c.WakeAt.IsZero(), ms(c.WakeAt))
	u.putOrRemove("wk", c.WakeAt.IsZero(), str(wakeKey(shard)))
	u.remove("w")
	u.putIf(!c.NextAttemptAt.IsZero(), "na", ms(c.NextAttemptAt))
	u.putIf(c.LastStatus != 0, "ls", num(int64(c.LastStatus)))
	u.putIf(c.LastError != "", "le", str(c.LastError))
	u.putIf(c.ReplayedAs != "", "rd", str(string(c.ReplayedAs)))
	u.putIf(!c.EndedAt.IsZero(), "en", ms(c.EndedAt))
	u.putIf(!c.ExpiresAt.IsZero(), "x", num(c.ExpiresAt.Unix()))
	u.putIf(c.To == delivery.Dead && !c.EndedAt.IsZero(), "fk", str(deadKey(shard)))
	u.add("f", 1)
	if c.Attempts != 0 {
		u.add("ac", int64(c.Attempts))
	}
	return u.String()
}

func (s *Store) changeDelivery(c delivery.Change) types.TransactWriteItem {
	e := newExpression()
	guard, update := e.deliveryGuard(c.Guard), e.deliveryChange(c)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.Tables.Delivery, Key: deliveryKey(c.ID), ConditionExpression: &guard, UpdateExpression: &update,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func (s *Store) putAttempt(a delivery.Attempt, expires time.Time) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &s.Tables.Delivery, Item: encodeAttempt(a, expires)}}
}

func encodeSubscription(v delivery.Subscription) (attributes, error) {
	doc, err := encodeDocument(v, v.Unknown)
	if err != nil {
		return nil, fmt.Errorf("dynamo: subscription %s: %w", v.ID, err)
	}
	item := subscriptionKey(v.ID)
	item["doc"], item["rev"] = str(doc), num(v.Revision)
	return item, nil
}

func decodeSubscription(item attributes) (delivery.Subscription, error) {
	d := decoder{a: item}
	var v delivery.Subscription
	unknown, err := decodeDocument(d.str("doc"), &v)
	if err != nil {
		return v, fmt.Errorf("dynamo: subscription row: %w", err)
	}
	v.Unknown, v.Revision = unknown, d.num("rev")
	return v, d.err
}

func subscriptionKey(id delivery.SubscriptionID) attributes {
	return attributes{"pk": str(subscriptionPK(id)), "sk": str("subscription")}
}

func subscriptionPK(id delivery.SubscriptionID) string { return "subscription#" + string(id) }
