package dynamodb

// itemsPerBatchGet and the byte limit of one BatchGetItem answer are quotas.
const (
	itemsPerBatchGet = 100
	batchGetBytesMax = 16 * 1024 * 1024
)

// getRequest is a decoded GetItem.
type getRequest struct {
	table       string
	key         item
	consistent  bool
	capacity    string
	expressions expressions
}

func (g *getRequest) read(r *reader) {
	r.object(func(name string) {
		switch name {
		case "TableName":
			g.table = r.text()
		case "Key":
			g.key = r.readItem()
		case "ConsistentRead":
			g.consistent = r.boolean()
		case "ReturnConsumedCapacity":
			g.capacity = r.text()
		case "ProjectionExpression", "ExpressionAttributeNames":
			g.expressions.read(r, name)
		default:
			r.unknown("GetItem", name)
		}
	})
	r.end()
}

func (g *getRequest) check() *apiError {
	switch {
	case g.table == "":
		return invalid("Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	case g.key == nil:
		return invalid("Value null at 'key' failed to satisfy constraint: Member must not be null")
	}
	if err := checkCapacityMode(g.capacity); err != nil {
		return err
	}
	return g.expressions.check()
}

func (s *Server) getItem(r *reader, w *writer) *apiError {
	g := &getRequest{}
	g.read(r)
	if r.err != nil {
		return r.err
	}
	if err := g.check(); err != nil {
		return err
	}
	found, view, err := s.lookUp(g)
	if err != nil {
		return err
	}
	c := cost{table: readUnits(found.bytes(), g.consistent)}
	s.usage.read(g.table, c)
	w.open('{')
	if found != nil {
		w.name("Item")
		w.item(view.apply(found.item))
	}
	if wantsCapacity(g.capacity) {
		w.name("ConsumedCapacity")
		w.consumed(g.table, c, g.capacity, "")
	}
	w.close('}')
	return nil
}

func (s *Server) lookUp(g *getRequest) (*record, *projection, *apiError) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, err := s.table(g.table)
	if err != nil {
		return nil, nil, err
	}
	view, err := parseProjection(&g.expressions, s.reserved)
	if err != nil {
		return nil, nil, err
	}
	if err := t.schema.checkKey(g.key); err != nil {
		return nil, nil, err
	}
	return t.find(t.schema.encode(g.key)), view, nil
}

// parseProjection reads a projection that stands alone in its request; without
// one the projection is nil, which keeps everything.
func parseProjection(e *expressions, reserved map[string]bool) (*projection, *apiError) {
	bound := newBindings(e, reserved)
	view, _, err := bound.projection(e.projection)
	if err != nil {
		return nil, err
	}
	return view, bound.unused()
}

func (b *bindings) projection(s source) (*projection, []path, *apiError) {
	if !s.given {
		return nil, nil, nil
	}
	const label = "ProjectionExpression"
	paths, _, err := parse(label, s.text, b, projectionRule)
	if err != nil {
		return nil, nil, err
	}
	if err := checkDisjoint(label, paths); err != nil {
		return nil, nil, err
	}
	return newProjection(paths), paths, nil
}

// tableKeys is one table's share of a BatchGetItem.
type tableKeys struct {
	keys        []item
	consistent  bool
	expressions expressions
}

func (k *tableKeys) read(r *reader) {
	r.object(func(name string) {
		switch name {
		case "Keys":
			r.array(func() { k.keys = append(k.keys, r.readItem()) })
		case "ConsistentRead":
			k.consistent = r.boolean()
		case "ProjectionExpression", "ExpressionAttributeNames":
			k.expressions.read(r, name)
		default:
			r.unknown("RequestItems", name)
		}
	})
}

// batchGet is a decoded BatchGetItem and, once run, its answer.
type batchGet struct {
	tables   map[string]*tableKeys
	capacity string

	found map[string][]item
	left  map[string]*tableKeys // beyond the byte limit
	costs map[string]cost
}

func (b *batchGet) read(r *reader) {
	b.tables = map[string]*tableKeys{}
	r.object(func(name string) {
		switch name {
		case "RequestItems":
			r.object(func(table string) {
				k := &tableKeys{}
				k.read(r)
				b.tables[table] = k
			})
		case "ReturnConsumedCapacity":
			b.capacity = r.text()
		default:
			r.unknown("BatchGetItem", name)
		}
	})
	r.end()
}

func (b *batchGet) check() *apiError {
	total := 0
	for name, k := range b.tables {
		if len(k.keys) == 0 {
			return invalid("The list of keys in RequestItems for BatchGetItem is required: %s has an empty list", name)
		}
		if err := k.expressions.check(); err != nil {
			return err
		}
		total += len(k.keys)
	}
	switch {
	case total == 0:
		return invalid("1 validation error detected: Value at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case total > itemsPerBatchGet:
		return invalid("Too many items requested for the BatchGetItem call")
	}
	return checkCapacityMode(b.capacity)
}

func (s *Server) batchGetItem(r *reader, w *writer) *apiError {
	b := &batchGet{}
	b.read(r)
	if r.err != nil {
		return r.err
	}
	if err := b.check(); err != nil {
		return err
	}
	if err := s.getAll(b); err != nil {
		return err
	}
	for name, c := range b.costs {
		s.usage.read(name, c)
	}
	b.write(w)
	return nil
}

func (s *Server) getAll(b *batchGet) *apiError {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b.found, b.left, b.costs = map[string][]item{}, map[string]*tableKeys{}, map[string]cost{}
	bytes := 0
	for _, name := range sortedKeys(b.tables) {
		t, err := s.table(name)
		if err != nil {
			return err
		}
		if bytes, err = s.getSome(b, t, bytes); err != nil {
			return err
		}
	}
	return nil
}

// getSome reads one table's keys until the answer is full; bytes counts its size
// so far.
func (s *Server) getSome(b *batchGet, t *table, bytes int) (int, *apiError) {
	k := b.tables[t.name]
	view, err := parseProjection(&k.expressions, s.reserved)
	if err != nil {
		return 0, err
	}
	encoded, err := distinctKeys(t, k.keys)
	if err != nil {
		return 0, err
	}
	b.found[t.name] = []item{}
	var c cost
	for i, key := range encoded {
		row := t.find(key)
		if bytes += row.bytes(); bytes > batchGetBytesMax {
			b.left[t.name] = &tableKeys{keys: k.keys[i:], consistent: k.consistent, expressions: k.expressions}
			break
		}
		c.table += readUnits(row.bytes(), k.consistent)
		if row != nil {
			b.found[t.name] = append(b.found[t.name], view.apply(row.item))
		}
	}
	b.costs[t.name] = c
	return bytes, nil
}

func distinctKeys(t *table, keys []item) ([]string, *apiError) {
	out := make([]string, len(keys))
	seen := make(map[string]bool, len(keys))
	for i, key := range keys {
		if err := t.schema.checkKey(key); err != nil {
			return nil, err
		}
		out[i] = t.schema.encode(key)
		if seen[out[i]] {
			return nil, invalid(messageDuplicates)
		}
		seen[out[i]] = true
	}
	return out, nil
}

func (b *batchGet) write(w *writer) {
	w.open('{')
	w.name("Responses")
	w.open('{')
	for _, name := range sortedKeys(b.found) {
		w.name(name)
		writeAll(w, b.found[name], w.item)
	}
	w.close('}')
	w.name("UnprocessedKeys")
	w.open('{')
	for _, name := range sortedKeys(b.left) {
		w.name(name)
		b.left[name].write(w)
	}
	w.close('}')
	w.batchCapacity(b.costs, b.capacity)
	w.close('}')
}

// write encodes keys that were not read, ready to be sent again.
func (k *tableKeys) write(w *writer) {
	w.open('{')
	w.name("Keys")
	writeAll(w, k.keys, w.item)
	w.name("ConsistentRead")
	w.boolean(k.consistent)
	if k.expressions.projection.given {
		w.textMember("ProjectionExpression", k.expressions.projection.text)
	}
	if k.expressions.names != nil {
		w.name("ExpressionAttributeNames")
		w.open('{')
		for _, name := range sortedKeys(k.expressions.names) {
			w.textMember(name, k.expressions.names[name])
		}
		w.close('}')
	}
	w.close('}')
}

// batchCapacity writes ConsumedCapacity, one object a table, if it was asked for.
func (w *writer) batchCapacity(costs map[string]cost, mode string) {
	if !wantsCapacity(mode) {
		return
	}
	w.name("ConsumedCapacity")
	w.open('[')
	for _, name := range sortedKeys(costs) {
		w.consumed(name, costs[name], mode, "")
	}
	w.close(']')
}
