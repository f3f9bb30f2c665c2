package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"dakghar/internal/webhook"
)

// A sequence is one business row: pk its id, sk "sequence". `ls` is the last
// number applied, `pn` how many are parked, and `p<number>` names the event that
// waits there. The slots are attributes of their own, so that a condition can
// stand on one of them although the row is not there yet.
const (
	sequenceSort = "sequence"
	slotPrefix   = "p"
)

func sequenceKey(id webhook.SequenceID) webhook.Key {
	return webhook.Key{PK: string(id), SK: sequenceSort}
}

func slotName(n int64) string { return slotPrefix + strconv.FormatInt(n, 10) }

// Sequence reads an object's sequence, strongly consistent; an empty one where
// nothing was applied or parked yet.
func (s *Store) Sequence(ctx context.Context, id webhook.SequenceID) (webhook.Sequence, error) {
	seq := webhook.Sequence{ID: id, Parked: map[int64]webhook.InboxID{}}
	item, err := s.read(ctx, s.Tables.Business, keyOf(sequenceKey(id)))
	if err != nil || item == nil {
		return seq, err
	}
	d := decoder{a: item}
	seq.Last = d.num("ls")
	for name := range item {
		number, ok := strings.CutPrefix(name, slotPrefix)
		n, err := strconv.ParseInt(number, 10, 64)
		if ok && err == nil {
			seq.Parked[n] = webhook.InboxID(d.str(name))
		}
	}
	return seq, d.err
}

// Park puts a claimed row aside at its slot, with the promise that somebody
// comes at its deadline. The verdict is [webhook.Committed], [webhook.ClaimLost]
// or [webhook.TurnMoved]: the sequence is not as it was read.
func (s *Store) Park(ctx context.Context, c webhook.Change, seq webhook.Sequence, promise webhook.Outbox) (webhook.Verdict, error) {
	e := newExpression()
	condition, update := e.intoSlot(seq, c.Slot.Number, c.ID)
	reasons, err := s.commit(ctx, s.changeInbox(c), s.updateSequence(seq.ID, condition, update, e), s.putOutbox(promise))
	switch {
	case err != nil:
		return 0, err
	case reasons == nil:
		return webhook.Committed, nil
	case refused(reasons[0]):
		return parkedBefore(reasons[0], c)
	case refused(reasons[1]):
		return webhook.TurnMoved, nil
	}
	return 0, cancelledByService(reasons)
}

// intoSlot renders the taking of a slot, which the event may have already: a
// restore can leave it behind.
func (e *expression) intoSlot(seq webhook.Sequence, n int64, id webhook.InboxID) (condition, update string) {
	slot, me := e.name(slotName(n)), e.value(str(string(id)))
	update = "SET " + slot + " = " + me
	if seq.Parked[n] == id {
		return e.lastIs(seq.Last) + " AND " + slot + " = " + me, update
	}
	parked := e.name("pn")
	condition = e.lastIs(seq.Last) + " AND attribute_not_exists(" + slot + ")" +
		" AND (attribute_not_exists(" + parked + ") OR " + parked + " < " + e.value(num(webhook.ParkedMax)) + ")"
	return condition, update + " ADD " + parked + " " + e.value(num(1))
}

// parkedBefore tells a lost reply from a lost claim: the row waits at our slot,
// one change after the one we asked for.
func parkedBefore(r types.CancellationReason, c webhook.Change) (webhook.Verdict, error) {
	if len(r.Item) == 0 {
		return webhook.ClaimLost, nil
	}
	row, err := decodeInbox(r.Item)
	if err == nil && row.Status == webhook.Parked && row.Slot == c.Slot && row.Fence == c.Guard.Fence+1 {
		return webhook.Committed, nil
	}
	return webhook.ClaimLost, err
}

// lastIs requires that a sequence stands where it was read.
func (e *expression) lastIs(last int64) string {
	if last == 0 {
		return "attribute_not_exists(" + e.name("ls") + ")"
	}
	return e.name("ls") + " = " + e.value(num(last))
}

// waitingIs requires that just these events wait: as many as there are, and each at
// its number. At most [webhook.ParkedMax] do, far below an expression's 4 KB.
func (e *expression) waitingIs(waiting map[int64]webhook.InboxID) string {
	parked := e.name("pn")
	is := parked + " = " + e.value(num(int64(len(waiting))))
	if len(waiting) == 0 {
		return "(attribute_not_exists(" + parked + ") OR " + is + ")"
	}
	for _, n := range slices.Sorted(maps.Keys(waiting)) {
		is += " AND " + e.name(slotName(n)) + " = " + e.value(str(string(waiting[n])))
	}
	return is
}

func (s *Store) updateSequence(id webhook.SequenceID, condition, update string, e *expression) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.Tables.Business, Key: keyOf(sequenceKey(id)), ConditionExpression: &condition, UpdateExpression: &update,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}}
}

// turnWrites renders a step of a sequence: the sequence itself, and the event
// behind it that goes on. One that skips also stands on who waits.
func (s *Store) turnWrites(t webhook.Turn, skips bool) []types.TransactWriteItem {
	e := newExpression()
	next := e.name(slotName(t.Number + 1))
	condition := e.lastIs(t.Last)
	if skips {
		condition += " AND " + e.waitingIs(t.Waiting)
	}
	update := "SET " + e.name("ls") + " = " + e.value(num(t.Number))
	if t.Next == "" {
		condition += " AND attribute_not_exists(" + next + ")"
	} else {
		condition += " AND " + next + " = " + e.value(str(string(t.Next)))
		update += " ADD " + e.name("pn") + " " + e.value(num(-1)) + " REMOVE " + next
	}
	writes := []types.TransactWriteItem{s.updateSequence(t.Sequence, condition, update, e)}
	if t.Unpark != nil {
		writes = append(writes, s.changeInbox(*t.Unpark), s.putOutbox(*t.Promise))
	}
	return writes
}

// Skip gives up the numbers up to the turn's, by an operator, lets the event
// behind them go on and records the act. False means that the sequence, or who
// waits in it, is not as it was read.
func (s *Store) Skip(ctx context.Context, t webhook.Turn, act webhook.Act) (bool, error) {
	reasons, err := s.commit(ctx, s.with(act, s.turnWrites(t, true)...)...)
	switch {
	case err != nil:
		return false, err
	case reasons == nil:
		return true, nil
	case slices.ContainsFunc(reasons, refused):
		return false, nil
	}
	return false, cancelledByService(reasons)
}

// leaveSlot takes a row's slot away, whoever takes the row out of PARKED.
func (s *Store) leaveSlot(slot webhook.Slot, id webhook.InboxID) types.TransactWriteItem {
	e := newExpression()
	name := e.name(slotName(slot.Number))
	condition := name + " = " + e.value(str(string(id)))
	update := "ADD " + e.name("pn") + " " + e.value(num(-1)) + " REMOVE " + name
	return s.updateSequence(slot.Sequence, condition, update, e)
}

// commitLeaving is [Store.commitFirst] that also clears the slot which the change
// leaves. A slot that is another's by now, or gone, keeps nobody in PARKED.
func (s *Store) commitLeaving(ctx context.Context, c webhook.Change, with ...types.TransactWriteItem) (bool, error) {
	writes := append([]types.TransactWriteItem{s.changeInbox(c)}, with...)
	if c.Leaves == (webhook.Slot{}) {
		return s.commitFirst(ctx, writes...)
	}
	reasons, err := s.commit(ctx, append(writes, s.leaveSlot(c.Leaves, c.ID))...)
	switch {
	case err != nil:
		return false, err
	case reasons == nil:
		return true, nil
	case refused(reasons[0]):
		return false, nil
	case refused(reasons[len(writes)]):
		return s.commitFirst(ctx, writes...)
	}
	return false, cancelledByService(reasons)
}

// Ticket draws the next ticket for reading an object at its provider: higher
// than every one drawn before this call was answered. A ticket that nobody uses
// is a gap and nothing more.
func (s *Store) Ticket(ctx context.Context, k webhook.Key) (int64, error) {
	e := newExpression()
	update := "ADD " + e.name("n") + " " + e.value(num(1))
	out, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Tables.Business, Key: keyOf(k), UpdateExpression: aws.String(update),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValues: types.ReturnValueUpdatedNew,
	})
	if err != nil {
		return 0, unavailable("UpdateItem", err)
	}
	d := decoder{a: out.Attributes}
	n := d.num("n")
	if d.err == nil && n < 1 {
		d.fail("n", fmt.Errorf("is %d", n))
	}
	return n, d.err
}
