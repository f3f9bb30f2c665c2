package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// A limit is one registry row: pk "tokens#<its name>", sk
// "tokens"; lv its level in thousandths, ta its own time, n the requests seen.
func tokensKey(name string) attributes {
	return attributes{"pk": str("tokens#" + name), "sk": str("tokens")}
}

// Settle charges one process's requests to the row of a limit, and
// refills the row where its time is stale. Charging is a plain subtraction, so
// rivals never lose to each other; only moving the time is guarded, by the time
// that was read. It takes one write as a rule and never more than three. An
// error means that it is not known whether the requests were charged.
func (s *Store) Settle(ctx context.Context, name string, c webhook.Settlement) (webhook.Settled, error) {
	writes := 0
	if c.Alone || c.Last.At.IsZero() {
		writes++
		row, ok, err := s.refill(ctx, name, c, c.Last)
		if err != nil || ok {
			return webhook.Settled{Tokens: row, Alone: true, Writes: writes}, err
		}
	}
	writes++
	row, ok, err := s.charge(ctx, name, c)
	if err != nil {
		return webhook.Settled{Writes: writes}, err
	}
	if !ok {
		return webhook.Settled{Writes: writes}, contended("the row of tokens went")
	}
	settled := webhook.Settled{Tokens: row, Writes: writes}
	if !row.Stale(c.Now) {
		return settled, nil
	}
	settled.Writes++
	c.Spent, c.Seen = 0, 0
	// The requests are charged. A rival that was faster has refilled as well, and
	// whoever comes next does it if this write was lost.
	if moved, ok, err := s.refill(ctx, name, c, row); err == nil && ok {
		settled.Tokens, settled.Alone = moved, true
	}
	return settled, nil
}

// refill moves the row's time, adds what that brings, and charges, if the row's
// time is still the one read; what rivals charged since stays charged. A row
// that never was is made, full.
func (s *Store) refill(ctx context.Context, name string, c webhook.Settlement, read webhook.Tokens) (webhook.Tokens, bool, error) {
	x := newExpression()
	want := read.Refilled(c.Rate, c.Most, c.Now).Charged(c)
	level := x.value(num(want.Level))
	condition := "attribute_not_exists(" + x.name("pk") + ")"
	if !read.At.IsZero() {
		x = newExpression()
		condition = x.name("ta") + " = " + x.value(ms(read.At))
		level = x.name("lv") + " + " + x.value(num(want.Level-read.Level))
	}
	update := "SET " + x.name("lv") + " = " + level + ", " + x.name("ta") + " = " + x.value(ms(want.At)) +
		" ADD " + x.name("n") + " " + x.value(num(int64(c.Seen)))
	return s.updateTokens(ctx, name, condition, update, x)
}

// charge takes requests off, whatever the row holds by now. False means that
// there is no row.
func (s *Store) charge(ctx context.Context, name string, c webhook.Settlement) (webhook.Tokens, bool, error) {
	x := newExpression()
	condition := "attribute_exists(" + x.name("pk") + ")"
	update := "ADD " + x.name("lv") + " " + x.value(num(-1000*int64(c.Spent))) + ", " + x.name("n") + " " + x.value(num(int64(c.Seen)))
	return s.updateTokens(ctx, name, condition, update, x)
}

func (s *Store) updateTokens(ctx context.Context, name string, condition, update string, x *expression) (webhook.Tokens, bool, error) {
	out, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Registry, Key: tokensKey(name), ConditionExpression: aws.String(condition), UpdateExpression: aws.String(update),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values, ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
			return webhook.Tokens{}, false, nil
		}
		return webhook.Tokens{}, false, unavailable("UpdateItem", err)
	}
	d := decoder{a: out.Attributes}
	return webhook.Tokens{Level: d.num("lv"), At: d.ms("ta"), Seen: d.num("n")}, true, d.err
}
