package dynamodb

// Quotas of BatchWriteItem.
const (
	itemsPerBatchWrite = 25
	batchWriteBytesMax = 16 * 1024 * 1024
)

// batchWrite is a decoded BatchWriteItem: puts and deletes without conditions,
// each of which happens on its own. None is ever left unprocessed.
type batchWrite struct {
	tables   map[string][]*action
	capacity string
}

func (b *batchWrite) read(r *reader) {
	b.tables = map[string][]*action{}
	r.object(func(name string) {
		switch name {
		case "RequestItems":
			r.object(func(table string) {
				b.tables[table] = []*action{}
				r.array(func() { b.tables[table] = append(b.tables[table], readWriteRequest(r, table)) })
			})
		case "ReturnConsumedCapacity":
			b.capacity = r.text()
		case "ReturnItemCollectionMetrics":
			(&action{}).aloneMember(r, name)
		default:
			r.unknown("BatchWriteItem", name)
		}
	})
	r.end()
}

// readWriteRequest decodes {"PutRequest": {"Item": …}} or
// {"DeleteRequest": {"Key": …}}.
func readWriteRequest(r *reader, table string) *action {
	const oneOf = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
	var out *action
	r.object(func(name string) {
		if r.absent() {
			return
		}
		if out != nil {
			r.fail(invalid(oneOf))
		}
		out = &action{table: table}
		member := "Item"
		switch name {
		case "PutRequest":
		case "DeleteRequest":
			out.kind, member = actionDelete, "Key"
		default:
			r.unknown("RequestItems", name)
			return
		}
		r.object(func(inner string) {
			if inner != member || !out.member(r, inner) {
				r.unknown(name, inner)
			}
		})
	})
	if out == nil {
		r.fail(invalid(oneOf))
		return &action{}
	}
	return out
}

func (b *batchWrite) check() *apiError {
	total, bytes := 0, 0
	for name, actions := range b.tables {
		if len(actions) == 0 {
			return invalid("The batch write request list for a table cannot be null or empty: %s", name)
		}
		for _, a := range actions {
			if err := a.check(); err != nil {
				return err
			}
			bytes += itemSize(a.item)
		}
		total += len(actions)
	}
	switch {
	case total == 0:
		return invalid("1 validation error detected: Value at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case total > itemsPerBatchWrite:
		return invalid("Too many items requested for the BatchWriteItem call")
	case bytes > batchWriteBytesMax:
		return invalid("Batch write request size exceeded 16 MiB: %d bytes", bytes)
	}
	return checkCapacityMode(b.capacity)
}

func (s *Server) batchWriteItem(r *reader, w *writer) *apiError {
	b := &batchWrite{}
	b.read(r)
	if r.err != nil {
		return r.err
	}
	if err := b.check(); err != nil {
		return err
	}
	costs, err := s.writeAll(b)
	if err != nil {
		return err
	}
	w.open('{')
	w.name("UnprocessedItems")
	w.open('{')
	w.close('}')
	w.batchCapacity(costs, b.capacity)
	w.close('}')
	return nil
}

// writeAll checks every action before the first is committed: a malformed one
// fails the call as a whole.
func (s *Server) writeAll(b *batchWrite) (map[string]cost, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var plans []*plan
	seen := map[string]bool{}
	for _, name := range sortedKeys(b.tables) {
		for _, a := range b.tables[name] {
			p, err := s.prepare(a)
			if err == nil {
				err = p.fault
			}
			if err != nil {
				return nil, err
			}
			if seen[name+"/"+p.key] {
				return nil, invalid(messageDuplicates)
			}
			seen[name+"/"+p.key] = true
			plans = append(plans, p)
		}
	}
	costs := map[string]cost{}
	for _, p := range plans {
		if err := p.judge(); err != nil {
			return nil, err
		}
		charge(costs, p, s.commit(p))
	}
	for name, c := range costs {
		s.usage.write(name, c)
	}
	return costs, nil
}
