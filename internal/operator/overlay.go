package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"dakghar/internal/fault"
	"dakghar/internal/webhook"
)

// overlay is a business table in memory over the real one: it is read through,
// and written to nowhere else. Conditions mean what they mean in the store, which
// a test compares them with.
type overlay struct {
	base Business
	// cleared are partitions of which nothing below is seen.
	cleared map[string]bool
	// rows are those that were written; nil stands for a row that was deleted.
	rows map[webhook.Key]webhook.Item
	// failed is the first error of a read below, which is no handler's fault.
	failed error
}

func newOverlay(base Business) *overlay {
	return &overlay{base: base, cleared: map[string]bool{}, rows: map[webhook.Key]webhook.Item{}}
}

// Get implements [business.Reader].
func (v *overlay) Get(ctx context.Context, k webhook.Key) (webhook.Item, bool, error) {
	row, err := v.row(ctx, k)
	return maps.Clone(row), row != nil, err
}

// row returns a row as it stands, nil where there is none.
func (v *overlay) row(ctx context.Context, k webhook.Key) (webhook.Item, error) {
	if row, written := v.rows[k]; written || v.cleared[k.PK] {
		return row, nil
	}
	row, found, err := v.base.Get(ctx, k)
	switch {
	case err != nil:
		v.failed = errors.Join(v.failed, err)
		return nil, err
	case !found:
		return nil, nil
	}
	row = put(row)
	delete(row, "pk")
	delete(row, "sk")
	return row, nil
}

// commit applies a plan's actions together, or says which condition is false, in
// the store's order. What the store would refuse to do at all is a permanent fault.
func (v *overlay) commit(ctx context.Context, actions []webhook.Action) (webhook.Verdict, error) {
	if len(actions) > webhook.ActionsMax {
		return 0, fault.New(fault.Permanent, "plan_too_large", fmt.Errorf("%d actions, at most %d", len(actions), webhook.ActionsMax))
	}
	after := map[webhook.Key]webhook.Item{}
	refused := map[webhook.Tag]bool{}
	for _, a := range actions {
		if _, twice := after[a.Key]; twice {
			return 0, invalid("two actions on one row")
		}
		row, err := v.row(ctx, a.Key)
		if err != nil {
			return 0, err
		}
		met, err := holdAll(a.Key, row, a.When)
		switch {
		case err != nil:
			return 0, err
		case !met:
			refused[a.Tag] = true
			after[a.Key] = row
			continue
		}
		if after[a.Key], err = written(row, a); err != nil {
			return 0, err
		}
	}
	switch {
	case refused[webhook.Newer]:
		return webhook.NotNewer, nil
	case refused[webhook.Unchanged]:
		return webhook.RivalWrote, nil
	case refused[webhook.Domain]:
		return webhook.RuleRefused, nil
	case len(refused) > 0:
		return 0, invalid("a condition without a tag")
	}
	maps.Copy(v.rows, after)
	return webhook.Committed, nil
}

func invalid(problem string) error {
	return fault.New(fault.Permanent, "plan_invalid", errors.New(problem))
}

// holdAll reports whether all conditions hold for a row.
func holdAll(k webhook.Key, row webhook.Item, when []webhook.Condition) (bool, error) {
	met := true
	for _, c := range when {
		ok, err := holds(k, row, c)
		if err != nil {
			return false, err
		}
		met = met && ok
	}
	return met, nil
}

func holds(k webhook.Key, row webhook.Item, c webhook.Condition) (bool, error) {
	stored, there := row[c.Attribute]
	switch {
	case row == nil: // a row that is not there has no attributes
	case c.Attribute == "pk":
		stored, there = k.PK, true
	case c.Attribute == "sk":
		stored, there = k.SK, true
	}
	if c.Relation == webhook.Absent {
		return !there, nil
	}
	if err := supported(c.Value); err != nil {
		return false, err
	}
	if _, flag := c.Value.(bool); flag && c.Relation != webhook.Equal {
		return false, invalid("a bool is neither less nor greater")
	}
	switch c.Relation {
	case webhook.Equal:
		return there && same(stored, c.Value), nil
	case webhook.Less:
		return there && less(stored, c.Value), nil
	case webhook.ElseLess:
		return !there || less(stored, c.Value), nil
	case webhook.Absent:
	}
	return false, invalid("an unknown relation")
}

// same compares two values. Values of two types are never the same.
func same(a, b any) bool {
	if x, ok := a.([]byte); ok {
		y, ok := b.([]byte)
		return ok && bytes.Equal(x, y)
	}
	if _, ok := b.([]byte); ok {
		return false
	}
	return a == b
}

// less compares numbers as numbers, texts and bytes byte by byte. A value is less
// than none of another type.
func less(a, b any) bool {
	switch y := b.(type) {
	case int64:
		x, ok := a.(int64)
		return ok && x < y
	case string:
		x, ok := a.(string)
		return ok && x < y
	case []byte:
		x, ok := a.([]byte)
		return ok && bytes.Compare(x, y) < 0
	}
	return false
}

func supported(v any) error {
	switch v.(type) {
	case string, int64, bool, []byte:
		return nil
	}
	return fault.New(fault.Permanent, "value_unsupported", fmt.Errorf("a %T cannot be stored", v))
}

// written returns a row as an action leaves it.
func written(row webhook.Item, a webhook.Action) (webhook.Item, error) {
	for _, v := range a.Item {
		if err := supported(v); err != nil {
			return nil, err
		}
	}
	switch a.Op {
	case webhook.Put:
		return put(a.Item), nil
	case webhook.Delete:
		return nil, nil
	case webhook.Check:
		return row, nil
	case webhook.Update:
		return updated(row, a)
	}
	return nil, invalid("an unknown operation")
}

func put(item webhook.Item) webhook.Item {
	if item == nil {
		return webhook.Item{}
	}
	return maps.Clone(item)
}

func updated(row webhook.Item, a webhook.Action) (webhook.Item, error) {
	after := put(row)
	for name, v := range a.Item {
		after[name] = v
	}
	for name, n := range a.Add {
		sum, isNumber := row[name].(int64)
		if _, there := row[name]; there && !isNumber {
			return nil, invalid("a sum of something that is no number")
		}
		after[name] = sum + n
	}
	for _, name := range a.Drop {
		delete(after, name)
	}
	return after, nil
}
