package dynamodb

// page is one answer of a search: the rows it looked at, before the filter.
type page struct {
	rows  []*record
	bytes int
	more  bool // it stopped before the end of the range
}

func (s *Server) query(r *reader, w *writer) *apiError {
	return s.search(&search{operation: "Query"}, r, w)
}

func (s *Server) scan(r *reader, w *writer) *apiError {
	return s.search(&search{operation: "Scan"}, r, w)
}

func (s *Server) search(q *search, r *reader, w *writer) *apiError {
	q.read(r)
	if r.err != nil {
		return r.err
	}
	if err := q.check(); err != nil {
		return err
	}
	t, p, err := s.readPage(q)
	if err != nil {
		return err
	}
	c := t.cost(p, q.consistent)
	s.usage.read(q.table, c)
	t.write(w, q, p)
	if wantsCapacity(q.capacity) {
		w.name("ConsumedCapacity")
		w.consumed(q.table, c, q.capacity, "")
	}
	w.close('}')
	return nil
}

func (s *Server) readPage(q *search) (*target, *page, *apiError) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, err := s.bind(q)
	if err != nil {
		return nil, nil, err
	}
	return t, t.readPage(q), nil
}

// cost of a page: its bytes rounded up once, all on what was read.
func (t *target) cost(p *page, consistent bool) cost {
	units := readUnits(p.bytes, consistent)
	if t.index == nil {
		return cost{table: units}
	}
	return cost{indexes: []indexCost{{t.index.name, units}}}
}

func (t *target) readPage(q *search) *page {
	p := &page{}
	add := func(r *record, size int) bool {
		p.rows = append(p.rows, r)
		p.bytes += size
		p.more = q.limitGiven && len(p.rows) == q.limit || p.bytes >= pageBytesMax
		return !p.more
	}
	if t.index == nil {
		walk(t.table.rows, t.bounds(q), func(r *record) bool { return add(r, r.size) })
	} else {
		walk(t.index.entries, t.bounds(q), func(e entry) bool { return add(e.record, e.size) })
	}
	return p
}

// bounds is a range of encoded keys and the direction to walk it in.
type bounds struct {
	low, high string // high is exclusive; empty is no bound
	backward  bool
}

// bounds narrows the target's range by the start key, which is excluded. No key
// is a prefix of another, so appending a byte steps over exactly that key.
func (t *target) bounds(q *search) bounds {
	b := bounds{t.low, t.high, q.backward}
	switch {
	case q.start == nil:
	case q.backward:
		b.high = t.startKey(q.start)
	default:
		b.low = t.startKey(q.start) + "\x00"
	}
	return b
}

// walk visits the values in the range until visit returns false.
func walk[V any](o *ordered[V], b bounds, visit func(V) bool) {
	if b.backward {
		n := o.lower(b.high)
		for ; n != nil && n.key >= b.low && visit(n.value); n = o.preceding(n) {
		}
		return
	}
	n := o.ceiling(b.low)
	for ; n != nil && (b.high == "" || n.key < b.high) && visit(n.value); n = o.after(n) {
	}
}

// write encodes the page, all but its end.
func (t *target) write(w *writer, q *search, p *page) {
	w.open('{')
	count := 0
	wanted := q.choice != "COUNT"
	if wanted {
		w.name("Items")
		w.open('[')
	}
	for _, r := range p.rows {
		it := r.item
		if t.index != nil {
			it = t.index.project(it)
		}
		if t.filter != nil && !t.filter.holds(it) {
			continue
		}
		count++
		if wanted {
			w.item(t.view.apply(it))
		}
	}
	if wanted {
		w.close(']')
	}
	w.integerMember("Count", count)
	w.integerMember("ScannedCount", len(p.rows))
	if p.more {
		w.name("LastEvaluatedKey")
		w.item(t.position(p.rows[len(p.rows)-1].item))
	}
}

// position is the key of a row as ExclusiveStartKey takes it.
func (t *target) position(it item) item {
	out := item{}
	for _, a := range t.startAttributes() {
		out[a.name] = it[a.name]
	}
	return out
}
