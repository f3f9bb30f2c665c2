package dynamodb

import "slices"

// actionKind is what one write does.
type actionKind uint8

const (
	actionPut actionKind = iota
	actionUpdate
	actionDelete
	actionCheck
)

// action is a decoded write, alone or in a transaction.
type action struct {
	kind         actionKind
	table        string
	item         item // the whole item of a put, the key of any other
	expressions  expressions
	returnValues string
	onFailure    string // ReturnValuesOnConditionCheckFailure
	capacity     string // ReturnConsumedCapacity
}

// member decodes one member that every write has; false if it is another's.
func (a *action) member(r *reader, name string) bool {
	switch name {
	case "TableName":
		a.table = r.text()
	case "ReturnValuesOnConditionCheckFailure":
		a.onFailure = r.text()
	case "Item":
		if a.kind != actionPut {
			return false
		}
		a.item = r.readItem()
	case "Key":
		if a.kind == actionPut {
			return false
		}
		a.item = r.readItem()
	case "UpdateExpression":
		return a.kind == actionUpdate && a.expressions.read(r, name)
	case "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues":
		return a.expressions.read(r, name)
	default:
		return false
	}
	return true
}

// aloneMember decodes a member that only a write outside a transaction has.
func (a *action) aloneMember(r *reader, name string) bool {
	switch name {
	case "ReturnValues":
		a.returnValues = r.text()
	case "ReturnConsumedCapacity":
		a.capacity = r.text()
	case "ReturnItemCollectionMetrics":
		// Metrics exist for tables with local secondary indexes only, and there
		// are none here: both values mean the same empty answer.
		if mode := r.text(); mode != "NONE" && mode != "SIZE" {
			r.fail(invalid("ReturnItemCollectionMetrics must be NONE or SIZE"))
		}
	default:
		return false
	}
	return true
}

// check validates what needs no table.
func (a *action) check() *apiError {
	switch {
	case a.table == "":
		return invalid("Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	case a.item == nil:
		return invalid("Value null at 'item' or 'key' failed to satisfy constraint: Member must not be null")
	case a.onFailure != "" && a.onFailure != "NONE" && a.onFailure != "ALL_OLD":
		return invalid("ReturnValuesOnConditionCheckFailure must be NONE or ALL_OLD")
	}
	if err := a.checkReturnValues(); err != nil {
		return err
	}
	if err := checkCapacityMode(a.capacity); err != nil {
		return err
	}
	return a.expressions.check()
}

func (a *action) checkReturnValues() *apiError {
	allowed := []string{"", "NONE", "ALL_OLD"}
	if a.kind == actionUpdate {
		allowed = append(allowed, "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
	}
	if !slices.Contains(allowed, a.returnValues) {
		return invalid("Return values set to invalid value")
	}
	return nil
}

// plan is an action bound to its table: parsed, not yet judged.
type plan struct {
	action    *action
	table     *table
	key       string // encoded primary key; empty if fault is set
	condition condition
	update    *update
	fault     *apiError // found early, but in a transaction a reason of this action

	before, after *record // set by judge
}

// newPlan finds the action's table and parses its expressions.
func (s *Server) newPlan(a *action) (*plan, *apiError) {
	t, err := s.table(a.table)
	if err != nil {
		return nil, err
	}
	p := &plan{action: a, table: t}
	return p, p.parse(s.reserved)
}

// bind checks the action's key against the table. It reads no row. The error is
// about the call; what concerns only this action's row is kept in fault.
func (p *plan) bind() *apiError {
	if p.action.kind == actionPut {
		return p.bindPut()
	}
	return p.bindKey()
}

// prepare is newPlan and bind.
func (s *Server) prepare(a *action) (*plan, *apiError) {
	p, err := s.newPlan(a)
	if err != nil {
		return nil, err
	}
	return p, p.bind()
}

func (p *plan) parse(reserved map[string]bool) *apiError {
	e := &p.action.expressions
	bound := newBindings(e, reserved)
	if e.update.given {
		var err *apiError
		if p.update, _, err = parse("UpdateExpression", e.update.text, bound, updateRule); err != nil {
			return err
		}
	}
	if e.condition.given {
		parsed, parser, err := parse("ConditionExpression", e.condition.text, bound, conditionRule)
		if err != nil {
			return err
		}
		if err := checkKeyPaths(parser.paths, p.table.schema); err != nil {
			return err
		}
		p.condition = parsed
	}
	return bound.unused()
}

func (p *plan) bindPut() *apiError {
	it := p.action.item
	for name := range it {
		if name == "" {
			return invalid("Empty attribute name")
		}
	}
	for _, a := range p.table.schema.attributes() {
		if _, ok := it[a.name]; !ok {
			return invalid(messageInvalid+"Missing the key %s in the item", a.name)
		}
	}
	if p.fault = p.table.schema.check(it); p.fault != nil {
		return nil //nolint:nilerr // a fault is kept: in a transaction it is a reason, not the answer
	}
	if itemSize(it) > itemBytesMax {
		return invalid(messageItemSize)
	}
	p.key = p.table.schema.encode(it)
	p.fault = p.table.checkIndexes(it)
	return nil
}

func (p *plan) bindKey() *apiError {
	if len(p.action.item) != len(p.table.schema.attributes()) {
		return invalid(messageKeySchema)
	}
	if p.fault = p.table.schema.checkKey(p.action.item); p.fault != nil {
		return nil //nolint:nilerr // as in bindPut
	}
	p.key = p.table.schema.encode(p.action.item)
	if p.update == nil {
		return nil
	}
	for _, target := range p.update.paths() {
		if p.table.schema.has(target[0].name) {
			p.fault = invalid(messageInvalid+"Cannot update attribute %s. This attribute is part of the key", target[0].name)
			return nil
		}
	}
	return nil
}

// judge reads the row, decides whether the action may happen and computes the row
// after it. It changes nothing.
func (p *plan) judge() *apiError {
	if p.fault != nil {
		return p.fault
	}
	p.before = p.table.find(p.key)
	var stored item
	if p.before != nil {
		stored = p.before.item
	}
	if p.condition != nil && !p.condition.holds(stored) {
		return p.refused(stored)
	}
	switch p.action.kind {
	case actionPut:
		p.after = newRecord(p.key, p.action.item)
	case actionUpdate:
		return p.judgeUpdate(stored)
	case actionCheck:
		p.after = p.before
	case actionDelete: // nothing is left
	}
	return nil
}

func (p *plan) refused(stored item) *apiError {
	err := failure(kindCondition, messageCondition)
	if p.action.onFailure == "ALL_OLD" {
		err.item = stored
	}
	return err
}

func (p *plan) judgeUpdate(stored item) *apiError {
	if stored == nil {
		stored = p.action.item // an update of nothing starts from the key
	}
	if p.update == nil {
		p.after = newRecord(p.key, stored)
		return nil
	}
	after, err := p.update.apply(stored)
	if err != nil {
		return err
	}
	p.after = newRecord(p.key, after)
	if p.after.size > itemBytesMax {
		return invalid(messageUpdateSize)
	}
	return p.table.checkIndexes(after)
}

// unchanged tells that the action leaves the row as it was: nothing is then
// written to the stream.
func (p *plan) unchanged() bool {
	if p.before == nil || p.after == nil {
		return p.before == p.after
	}
	return equal(p.before.item, p.after.item)
}

// commit makes a judged plan happen. The caller holds the lock since judge.
func (s *Server) commit(p *plan) cost {
	if p.action.kind == actionCheck {
		return cost{table: writeUnits(p.before.bytes())}
	}
	c := p.table.replace(p.before, p.after)
	if !p.unchanged() {
		s.record(p.table, p.before, p.after, false)
	}
	return c
}

// failed is the cost of an action that did not happen: the service bills the row
// it looked at.
func (p *plan) failed() cost {
	return cost{table: writeUnits(max(p.before.bytes(), p.after.bytes()))}
}
