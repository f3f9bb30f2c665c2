package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	if err := possible(actions); err != nil {
		return 0, err
	}
	after := map[webhook.Key]webhook.Item{}
	refused := map[webhook.Tag]bool{}
	for _, a := range actions {
		row, err := v.row(ctx, a.Key)
		if err != nil {
			return 0, err
		}
		if !holdAll(a.Key, row, a.When) {
			refused[a.Tag] = true
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

// possible refuses what the store refuses whatever its rows say.
func possible(actions []webhook.Action) error {
	seen := map[webhook.Key]bool{}
	for _, a := range actions {
		if seen[a.Key] {
			return invalid("two actions on one row")
		}
		seen[a.Key] = true
		for _, v := range a.Item {
			if err := supported(v); err != nil {
				return err
			}
		}
		for _, c := range a.When {
			if err := askable(c); err != nil {
				return err
			}
		}
		if err := doable(a); err != nil {
			return err
		}
	}
	return nil
}

// doable refuses an unknown operation, and an update that changes nothing or one
// attribute twice.
func doable(a webhook.Action) error {
	switch a.Op {
	case webhook.Put, webhook.Delete, webhook.Check:
		return nil
	case webhook.Update:
	default:
		return invalid("an unknown operation")
	}
	names := slices.Concat(slices.Collect(maps.Keys(a.Item)), slices.Collect(maps.Keys(a.Add)), a.Drop)
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return invalid("an update of nothing")
	case len(slices.Compact(slices.Clone(names))) < len(names):
		return invalid("an attribute is changed twice")
	}
	return nil
}

// askable refuses a condition that cannot be asked.
func askable(c webhook.Condition) error {
	switch c.Relation {
	case webhook.Absent:
		return nil
	case webhook.Equal, webhook.Less, webhook.ElseLess:
	default:
		return invalid("an unknown relation")
	}
	if _, flag := c.Value.(bool); flag && c.Relation != webhook.Equal {
		return invalid("a bool is neither less nor greater")
	}
	return supported(c.Value)
}

// holdAll reports whether all conditions hold for a row.
func holdAll(k webhook.Key, row webhook.Item, when []webhook.Condition) bool {
	return !slices.ContainsFunc(when, func(c webhook.Condition) bool { return !holds(k, row, c) })
}

func holds(k webhook.Key, row webhook.Item, c webhook.Condition) bool {
	stored, there := row[c.Attribute]
	switch {
	case row == nil: // a row that is not there has no attributes
	case c.Attribute == "pk":
		stored, there = k.PK, true
	case c.Attribute == "sk":
		stored, there = k.SK, true
	}
	switch c.Relation {
	case webhook.Absent:
		return !there
	case webhook.Equal:
		return there && same(stored, c.Value)
	case webhook.Less:
		return there && less(stored, c.Value)
	case webhook.ElseLess:
		return !there || less(stored, c.Value)
	}
	return false
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
	switch a.Op {
	case webhook.Put:
		return put(a.Item), nil
	case webhook.Delete:
		return nil, nil
	case webhook.Update:
		return updated(row, a)
	case webhook.Check:
	}
	return row, nil
}

func put(item webhook.Item) webhook.Item {
	if item == nil {
		return webhook.Item{}
	}
	return maps.Clone(item)
}

func updated(row webhook.Item, a webhook.Action) (webhook.Item, error) {
	after := put(row)
	maps.Copy(after, a.Item)
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
