package dynamodb

import (
	"crypto/sha256"
	"strings"
	"time"
)

// Quotas of TransactWriteItems, and how long a request token is remembered.
const (
	transactionActionsMax = 100
	tokenLengthMax        = 36
	tokenLife             = 10 * time.Minute
)

// transaction is a decoded TransactWriteItems.
type transaction struct {
	actions  []*action
	token    string
	capacity string
	digest   [sha256.Size]byte // of the actions, if there is a token
}

func (t *transaction) read(r *reader) {
	r.object(func(name string) {
		switch name {
		case "TransactItems":
			r.array(func() { t.actions = append(t.actions, readTransactItem(r)) })
		case "ClientRequestToken":
			t.token = r.text()
		case "ReturnConsumedCapacity":
			t.capacity = r.text()
		case "ReturnItemCollectionMetrics":
			(&action{}).aloneMember(r, name)
		default:
			r.unknown("TransactWriteItems", name)
		}
	})
	r.end()
	if r.err == nil && t.token != "" {
		t.digest = digestOf(t.actions)
	}
}

// digestOf identifies the actions whatever the order of members and attributes in
// the request, which differs between two calls of one SDK.
func digestOf(actions []*action) [sha256.Size]byte {
	w := &writer{}
	w.open('[')
	for _, a := range actions {
		w.integer(int(a.kind))
		w.text(a.table)
		w.item(a.item)
		w.text(a.expressions.condition.text)
		w.text(a.expressions.update.text)
		for _, name := range sortedKeys(a.expressions.names) {
			w.text(name)
			w.text(a.expressions.names[name])
		}
		w.item(a.expressions.values)
		w.text(a.onFailure)
	}
	w.close(']')
	return sha256.Sum256(w.b)
}

// readTransactItem decodes {"Put": …} and its three brothers: exactly one.
func readTransactItem(r *reader) *action {
	var out *action
	r.object(func(name string) {
		if r.absent() {
			return
		}
		if out != nil {
			r.fail(invalid("TransactItems can only contain one of Check, Put, Update or Delete"))
		}
		kind, ok := map[string]actionKind{
			"Put": actionPut, "Update": actionUpdate, "Delete": actionDelete, "ConditionCheck": actionCheck,
		}[name]
		if !ok {
			r.unknown("TransactItems", name)
			return
		}
		out = &action{kind: kind}
		r.object(func(member string) {
			if !out.member(r, member) {
				r.unknown(name, member)
			}
		})
	})
	if out == nil {
		r.fail(invalid("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request"))
		return &action{}
	}
	return out
}

func (t *transaction) check() *apiError {
	switch {
	case len(t.actions) == 0:
		return invalid("1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case len(t.actions) > transactionActionsMax:
		return invalid("1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to %d", transactionActionsMax)
	case len(t.token) > tokenLengthMax:
		return invalid("1 validation error detected: Value at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to %d", tokenLengthMax)
	}
	for _, a := range t.actions {
		if err := a.check(); err != nil {
			return err
		}
		if a.kind == actionCheck && !a.expressions.condition.given {
			return invalid("Value null at 'transactItems.member.conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null")
		}
		if a.kind == actionUpdate && !a.expressions.update.given {
			return invalid("Value null at 'transactItems.member.update.updateExpression' failed to satisfy constraint: Member must not be null")
		}
	}
	return checkCapacityMode(t.capacity)
}

func (s *Server) transactWriteItems(r *reader, w *writer) *apiError {
	t := &transaction{}
	t.read(r)
	if r.err != nil {
		return r.err
	}
	if err := t.check(); err != nil {
		return err
	}
	costs, direction, err := s.transact(t)
	if err != nil {
		return err
	}
	w.open('{')
	if wantsCapacity(t.capacity) {
		w.name("ConsumedCapacity")
		w.open('[')
		for _, name := range sortedKeys(costs) {
			w.consumed(name, costs[name], t.capacity, direction)
		}
		w.close(']')
	}
	w.close('}')
	return nil
}

// transact runs the whole transaction under the lock: every action is judged on
// the state before the first, then all happen or none.
func (s *Server) transact(t *transaction) (costs map[string]cost, direction string, err *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plans, err := s.parseAll(t)
	if err != nil {
		return nil, "", err
	}
	replayed, err := s.tokens.seen(t, s.now())
	if err != nil {
		return nil, "", err
	}
	if err := bindAll(plans); err != nil {
		return nil, "", err
	}
	if replayed {
		costs := s.replay(plans)
		return costs, "ReadCapacityUnits", nil
	}
	if err := s.judgeAll(plans); err != nil {
		return nil, "", err
	}
	costs = map[string]cost{}
	for _, p := range plans {
		charge(costs, p, doubled(s.commit(p)))
	}
	for name, c := range costs {
		s.usage.write(name, c)
	}
	s.tokens.remember(t, s.now())
	return costs, "WriteCapacityUnits", nil
}

func (s *Server) parseAll(t *transaction) ([]*plan, *apiError) {
	plans := make([]*plan, len(t.actions))
	for i, a := range t.actions {
		p, err := s.newPlan(a)
		if err != nil {
			return nil, err
		}
		plans[i] = p
	}
	return plans, nil
}

// bindAll checks the keys, and that no item is named twice.
func bindAll(plans []*plan) *apiError {
	seen := make(map[string]bool, len(plans))
	for _, p := range plans {
		if err := p.bind(); err != nil {
			return err
		}
		if p.key == "" {
			continue
		}
		identity := p.table.name + "/" + p.key
		if seen[identity] {
			return invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[identity] = true
	}
	return nil
}

// judgeAll judges every action, also after one was refused: the reasons name all
// of them in order, None for those that could have happened.
func (s *Server) judgeAll(plans []*plan) *apiError {
	reasons := make([]reason, len(plans))
	cancelled := false
	bytes := 0
	for i, p := range plans {
		reasons[i].code = reasonNone
		err := p.judge()
		bytes += max(p.before.bytes(), p.after.bytes())
		if err == nil {
			continue
		}
		cancelled = true
		reasons[i] = reason{code: reasonValidation, message: err.message, item: err.item}
		if err.kind == kindCondition {
			reasons[i].code = reasonCondition
		}
	}
	switch {
	case cancelled:
		s.billCancelled(plans)
		return cancelledError(reasons)
	case bytes > transactionBytesMax:
		return invalid("Transaction payload size cannot exceed 4MB. Payload Size: %d", bytes)
	}
	return nil
}

func cancelledError(reasons []reason) *apiError {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = r.code
	}
	err := failure(kindCancelled, "Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", "))
	err.reasons = reasons
	return err
}

// billCancelled counts what a cancelled transaction consumed: a failed condition
// is billed like a write, and a transaction prepares all its rows before it knows.
func (s *Server) billCancelled(plans []*plan) {
	costs := map[string]cost{}
	for _, p := range plans {
		charge(costs, p, doubled(p.failed()))
	}
	for name, c := range costs {
		s.usage.write(name, c)
	}
}

// replay answers a repeated token: nothing happens, the rows are read.
func (s *Server) replay(plans []*plan) map[string]cost {
	costs := map[string]cost{}
	for _, p := range plans {
		c := cost{table: readUnits(p.table.find(p.key).bytes(), true)}
		charge(costs, p, doubled(c))
	}
	for name, c := range costs {
		s.usage.read(name, c)
	}
	return costs
}

// doubled is the price of prepare and commit; see [Units] for the indexes.
func doubled(c cost) cost {
	c.table *= 2
	return c
}

func charge(costs map[string]cost, p *plan, c cost) {
	total := costs[p.table.name]
	total.add(c)
	costs[p.table.name] = total
}

// tokens remembers the request tokens of committed transactions.
type tokens struct {
	known map[string]tokenUse
	order []string // by time of use, to forget the oldest first
}

type tokenUse struct {
	digest [sha256.Size]byte
	at     time.Time
}

func newTokens() tokens { return tokens{known: map[string]tokenUse{}} }

// seen tells a replay from a first use; the same token with other actions is an
// error. A cancelled transaction leaves no token behind.
func (t *tokens) seen(tx *transaction, now time.Time) (bool, *apiError) {
	if tx.token == "" {
		return false, nil
	}
	use, ok := t.known[tx.token]
	switch {
	case !ok || now.Sub(use.at) >= tokenLife:
		return false, nil
	case use.digest != tx.digest:
		return false, failure(kindMismatch, "the client request token was used with other parameters within the last 10 minutes")
	}
	return true, nil
}

func (t *tokens) remember(tx *transaction, now time.Time) {
	if tx.token == "" {
		return
	}
	for len(t.order) > 0 && now.Sub(t.known[t.order[0]].at) >= tokenLife {
		delete(t.known, t.order[0])
		t.order = t.order[1:]
	}
	if _, again := t.known[tx.token]; !again {
		t.order = append(t.order, tx.token)
	}
	t.known[tx.token] = tokenUse{tx.digest, now}
}
