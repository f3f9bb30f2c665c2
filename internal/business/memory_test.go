package business_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"dakghar/internal/business"
	"dakghar/internal/webhook"
)

// memory is a business table with the store's semantics, as far as plans need
// them: reads are strongly consistent, and a plan is committed wholly, with the
// event's mark, or not at all.
type memory struct {
	mu    sync.Mutex
	rows  map[webhook.Key]webhook.Item
	marks map[string]bool
}

func newMemory() *memory {
	return &memory{rows: map[webhook.Key]webhook.Item{}, marks: map[string]bool{}}
}

func (m *memory) Get(_ context.Context, k webhook.Key) (webhook.Item, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, ok := m.rows[k]
	return maps.Clone(row), ok, nil
}

// commit applies a plan, and answers like the store.
func (m *memory) commit(ev webhook.Event, p webhook.Plan) webhook.Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark := fmt.Sprint(ev.InboxID, "#", ev.Run)
	if m.marks[mark] {
		return webhook.MarkExists
	}
	seen := map[webhook.Key]bool{}
	refused := map[webhook.Tag]bool{}
	for _, a := range p.Actions {
		if seen[a.Key] {
			panic(fmt.Sprintf("two actions on %v: the store refuses that", a.Key))
		}
		seen[a.Key] = true
		if !holds(m.rows[a.Key], a.When) {
			refused[a.Tag] = true
		}
	}
	switch {
	case refused[webhook.Newer]:
		return webhook.NotNewer
	case refused[webhook.Unchanged]:
		return webhook.RivalWrote
	case refused[webhook.Domain]:
		return webhook.RuleRefused
	case len(refused) > 0:
		panic("a condition without a tag")
	}
	m.marks[mark] = true
	for _, a := range p.Actions {
		m.write(a)
	}
	return webhook.Committed
}

func holds(row webhook.Item, when []webhook.Condition) bool {
	for _, c := range when {
		stored, there := row[c.Attribute]
		if c.Attribute == "pk" {
			there = row != nil
		}
		ok := false
		switch c.Relation {
		case webhook.Absent:
			ok = !there
		case webhook.Equal:
			ok = there && stored == c.Value
		case webhook.Less:
			ok = there && less(stored, c.Value)
		case webhook.ElseLess:
			ok = !there || less(stored, c.Value)
		}
		if !ok {
			return false
		}
	}
	return true
}

func less(a, b any) bool {
	x, ok := a.(int64)
	y, too := b.(int64)
	return ok && too && x < y
}

func (m *memory) write(a webhook.Action) {
	switch a.Op {
	case webhook.Put:
		m.rows[a.Key] = maps.Clone(a.Item)
	case webhook.Delete:
		delete(m.rows, a.Key)
	case webhook.Update:
		row := maps.Clone(m.rows[a.Key])
		if row == nil {
			row = webhook.Item{}
		}
		for name, v := range a.Item {
			row[name] = v
		}
		for name, n := range a.Add {
			sum, _ := row[name].(int64)
			row[name] = sum + n
		}
		for _, name := range a.Drop {
			delete(row, name)
		}
		m.rows[a.Key] = row
	}
}

// process does what the processor does with one event: plan, commit, and plan
// again when a rival was faster.
func (m *memory) process(r *business.Router, ev webhook.Event) (webhook.Outcome, error) {
	h, ok := r.Handler(ev)
	if !ok {
		return webhook.Ignored, nil
	}
	for range 10_000 {
		p, err := h.Plan(context.Background(), ev, m)
		if err != nil {
			return "", err
		}
		switch m.commit(ev, p) {
		case webhook.Committed:
			return p.Outcome, nil
		case webhook.MarkExists:
			return webhook.AlreadyApplied, nil
		case webhook.NotNewer:
			return webhook.Stale, nil
		case webhook.RuleRefused:
			ev.DomainRefused = true
		}
	}
	return "", errors.New("the handler's plan is refused again and again")
}

// processAll processes events one after the other and returns their outcomes.
func (m *memory) processAll(t *testing.T, r *business.Router, events ...webhook.Event) []webhook.Outcome {
	t.Helper()
	var outcomes []webhook.Outcome
	for _, ev := range events {
		outcome, err := m.process(r, ev)
		if err != nil {
			t.Fatalf("%s: %v", ev.InboxID, err)
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

// state returns what must not depend on the order of arrival: every projection
// and balance, without the counts of applied events, and without what merely
// describes the event that was first to reach a position.
func (m *memory) state() map[webhook.Key]webhook.Item {
	state := map[webhook.Key]webhook.Item{}
	for k, row := range m.rows {
		if k.SK != "projection" && !strings.HasPrefix(k.SK, "balance") {
			continue
		}
		row = maps.Clone(row)
		for _, name := range []string{
			business.AttrEvents, business.AttrEntries, business.AttrInbox, business.AttrKind,
			business.AttrAmount, business.AttrCurrency,
		} {
			delete(row, name)
		}
		maps.DeleteFunc(row, func(_ string, v any) bool { return v == int64(0) }) // nothing ever moved, or all of it came back
		state[k] = row
	}
	return state
}
