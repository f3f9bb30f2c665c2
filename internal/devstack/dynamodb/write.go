package dynamodb

func (s *Server) putItem(r *reader, w *writer) *apiError {
	return s.writeAlone(&action{kind: actionPut}, "PutItem", r, w)
}

func (s *Server) updateItem(r *reader, w *writer) *apiError {
	return s.writeAlone(&action{kind: actionUpdate}, "UpdateItem", r, w)
}

func (s *Server) deleteItem(r *reader, w *writer) *apiError {
	return s.writeAlone(&action{kind: actionDelete}, "DeleteItem", r, w)
}

// writeAlone is PutItem, UpdateItem and DeleteItem: one action under the lock.
func (s *Server) writeAlone(a *action, operation string, r *reader, w *writer) *apiError {
	r.object(func(name string) {
		if !a.member(r, name) && !a.aloneMember(r, name) {
			r.unknown(operation, name)
		}
	})
	r.end()
	if r.err != nil {
		return r.err
	}
	if err := a.check(); err != nil {
		return err
	}
	p, c, err := s.writeOne(a)
	if err != nil {
		return err
	}
	w.open('{')
	if attributes := p.returned(); len(attributes) > 0 {
		w.name("Attributes")
		w.item(attributes)
	}
	if wantsCapacity(a.capacity) {
		w.name("ConsumedCapacity")
		w.consumed(a.table, c, a.capacity, "")
	}
	w.close('}')
	return nil
}

func (s *Server) writeOne(a *action) (*plan, cost, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.prepare(a)
	if err != nil {
		return nil, cost{}, err
	}
	if err := p.judge(); err != nil {
		if err.kind == kindCondition {
			s.usage.write(a.table, p.failed())
		}
		return nil, cost{}, err
	}
	c := s.commit(p)
	s.usage.write(a.table, c)
	return p, c, nil
}

// returned is what ReturnValues asks for. The UPDATED forms return exactly the
// paths that the update names, nested ones within their containers.
func (p *plan) returned() item {
	var before, after item
	if p.before != nil {
		before = p.before.item
	}
	if p.after != nil {
		after = p.after.item
	}
	switch p.action.returnValues {
	case "ALL_OLD":
		return before
	case "ALL_NEW":
		return after
	case "UPDATED_OLD":
		return p.updated(before)
	case "UPDATED_NEW":
		return p.updated(after)
	}
	return nil
}

func (p *plan) updated(it item) item {
	if p.update == nil {
		return nil
	}
	return newProjection(p.update.paths()).apply(it)
}
